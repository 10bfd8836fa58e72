"""Killed, starved, damaged and doubled jobs lose nothing. The long run is `PYTHONPATH=tests python -m faults.run`."""

import json
import random

import pytest
from extras import need
from faults.harness import JOBS, damage, expected, hashes, kill_and_resume, prepare, run, starve, together

KILLED_IN_CI = ("score", "convert to two files", "train mclipscore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the inputs of all jobs."""
    path = tmp_path_factory.mktemp("faults")
    prepare(path / "inputs")
    return path


@pytest.fixture(params=KILLED_IN_CI)
def job(request):
    chosen = next(job for job in JOBS if job.name == request.param)
    if chosen.needs:
        need(chosen.needs)
        need("onnx")
    return chosen


@pytest.mark.slow
def test_a_job_survives_being_killed_starved_and_doubled(folder, job, tmp_path_factory):
    wanted, seconds = expected(folder, job)
    rng = random.Random(job.name)
    assert kill_and_resume(folder, job, wanted, seconds, 2, rng) > 0
    if not job.name.startswith("train"):
        starve(folder, job, wanted, 2000)
        together(folder, job, wanted)


@pytest.mark.slow
def test_a_damaged_store_gives_the_same_scores(folder, tmp_path):
    job = JOBS[0]
    prepared = tmp_path / "job"
    prepare(prepared)
    assert run(prepared, job.arguments())[0] == 0
    wanted, rng = hashes(prepared, job), random.Random(0)
    (store,) = (prepared / "store").glob("*.vectors")
    for _ in range(3):
        damage(store, rng)
        status, messages = run(prepared, job.arguments())
        assert status == 0, messages
        assert hashes(prepared, job) == wanted


def test_temporary_files_of_dead_processes_are_swept_and_those_of_others_stay(folder, tmp_path):
    prepare(tmp_path)
    assert run(tmp_path, ["convert", "many.jsonl", "out.csv"])[0] == 0
    from caplens.data.temporary import temporary_file

    mine = temporary_file(tmp_path, "out.csv")
    dead = mine.with_name(mine.name.replace(f"-{_pid(mine)}-", "-999999999-"))
    dead.write_text("half", encoding="utf-8")
    assert run(tmp_path, ["convert", "many.jsonl", "out.csv"])[0] == 0
    assert mine.exists()
    assert not dead.exists()


def _pid(path):
    import os

    assert str(os.getpid()) in path.name
    return os.getpid()


def test_an_interrupted_command_says_what_is_kept(folder, tmp_path):
    import os
    import signal
    import time

    from faults.harness import start

    prepare(tmp_path)
    process = start(
        tmp_path, ["score", "many.jsonl", "--images", str(JOBS[0].arguments()[3]), "-m", "clipscore", "--store", "store"]
    )
    while not (tmp_path / "store").exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    said = messages.decode().splitlines()
    assert process.returncode == 130
    assert said[-1] == "caplens: interrupted. Vectors that were encoded are in store and are not encoded again."
    assert "Traceback" not in messages.decode()
    assert json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
