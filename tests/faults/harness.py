"""Jobs that are killed, starved and damaged. A new command joins with one line in `JOBS`.

A job is a command line, the files that it writes, and what it reads. Whatever happens to it, a file is either the old one or the
new one, and running it again gives the bytes of a run that nothing happened to.
"""

import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

EXAMPLES = Path(str(files("caplens").joinpath("examples")))
GOOD = str(EXAMPLES / "good.jsonl")
OLD = b"what was there before\n"
_PROGRAM = """
import sys
if "train" in sys.argv:
    from caplens.training.loop import fit
    fit._CHECKPOINT_SECONDS = -1.0
from caplens.cli.main import main
main()
"""
_TIMEOUT = 300


class Job(NamedTuple):
    """A command, and the files that it writes into its folder; with `needs`, a library that it takes."""

    name: str
    command: str
    outputs: tuple[str, ...]
    needs: str | None = None

    def arguments(self) -> list[str]:
        return [part.format(good=GOOD, examples=EXAMPLES) for part in self.command.split()]


_TRAIN = "--images {examples} --device cpu --out run --set train.photos=4 --set train.steps=12"
_TRAINED = ("run/tune.safetensors", "run/model/text.onnx")
JOBS = [
    Job("score", "score many.jsonl --images {examples} -m clipscore,cider --store store -o out.json", ("out.json",)),
    Job("score partitions", "score many.jsonl --images {examples} -m clipscore,cider --store store -o out", ("out/result.json",)),
    Job("videos", "score videos.jsonl -m emscore --store store -o out.json", ("out.json",)),
    Job("mid fit", "mid fit many.jsonl out.npz --images {examples} --store store", ("out.npz",)),
    Job("compare", "compare many.jsonl other.jsonl -m bleu4,cider --resamples 2000 -o out.json", ("out.json",)),
    Job("robustness", "robustness {good} --images {examples} -m clipscore --store store -o out.json", ("out.json",)),
    Job("agreement", "agreement rated.jsonl -m length,cider --resamples 500 -o out.json", ("out.json",)),
    Job("convert", "convert many.jsonl out.csv", ("out.csv",)),
    Job("convert to two files", "convert many.jsonl out.json --to coco --references-output refs.json", ("out.json", "refs.json")),
    Job("count-df", "count-df many.jsonl out.json --lang en", ("out.json",)),
    Job("perturb", "perturb many.jsonl out.jsonl", ("out.jsonl",)),
    Job(
        "translate",
        "translate english.jsonl out.jsonl --to de --translator file:german.jsonl --no-language-check --qe mini-qe --store store",
        ("out.jsonl",),
    ),
    Job("calibrate", "calibrate calibrated.jsonl -m cider,length --draws 3 -o out.json", ("out.json",)),
    Job("check", "check many.jsonl --images {examples} --store store -o out.csv", ("out.csv",)),
    Job("check page", "check many.jsonl --images {examples} --store store -o out.html", ("out.html",)),
    Job("filter", "filter many.jsonl out.jsonl --images {examples} --store store --keep-top 30%", ("out.jsonl",)),
    Job("filter partitions", "filter many.jsonl out --images {examples} --store store --keep-top 30%", ("out/result.json",)),
    Job("caption", "caption {examples} -o out.jsonl --lang en,de,zh --nbest 3 --rerank clipscore --store store", ("out.jsonl",)),
    Job("study export", "study export study.db -o out.jsonl", ("out.jsonl",), "sqlalchemy"),
    Job("drift", "drift scores.json later.json -o out.json", ("out.json",)),
    Job("report", "report scores.json -o out.html", ("out.html",)),
    Job("train prmcs", f"train prmcs {{good}} {_TRAIN}", _TRAINED, "torch"),
    Job(
        "train captioner",
        "train captioner {good} --images {examples} --device cpu --out run --set train.captions=8 --set train.steps=8"
        " --set decoder.layers=1 --set validation.share=0.2 --set reward.steps=3 --set reward.photos=2",
        ("run/reward.safetensors", "run/model/decoder.npz"),
        "torch",
    ),
    Job("train mclipscore", f"train mclipscore {{good}} --ratings rated.jsonl {_TRAIN}", _TRAINED, "torch"),
]


def prepare(folder: Path) -> None:
    """The files that jobs read."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in Path(GOOD).read_text(encoding="utf-8").splitlines()]
    many = [
        {**row, "id": f"{row['id']}-{row['lang']}-{turn}", "caption": f"{row['caption']} {turn}", "references": [row["caption"]]}
        for turn in range(20)
        for row in rows
    ]
    for name, entries in {
        "many.jsonl": many,
        "english.jsonl": [{**row, "lang": "en"} for row in many],
        "german.jsonl": [
            {"source": text, "caption": f"{text}!", "lang": "de"} for row in many for text in (row["caption"], *row["references"])
        ],
        "other.jsonl": [{**row, "caption": row["caption"][::-1]} for row in many],
        "videos.jsonl": [
            {"id": row["id"], "caption": row["caption"], "video": str(EXAMPLES), "duration": 20, "start": number % 10}
            for number, row in enumerate(many)
        ],
        "rated.jsonl": [{**row, "ratings": [number % 5]} for number, row in enumerate(rows)],
        "calibrated.jsonl": [
            {
                "id": f"p{number}",
                "caption": f"{rows[0]['caption']} {'very ' * number}well",
                "references": [f"scene {number}"],
                "lang": "en",
            }
            for number in range(25)
        ],
    }.items():
        (folder / name).write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    if find_spec("sqlalchemy") is not None:
        run(folder, ["study", "create", "many.jsonl", "--images", str(EXAMPLES), "-o", "study.db", "-q"])
    for captions, scores in (("many.jsonl", "scores.json"), ("other.jsonl", "later.json")):
        run(folder, ["score", captions, "-m", "cider,bleu4", "-o", scores, "-q"])


def start(folder: Path, arguments: list[str], limit: int | None = None) -> "subprocess.Popen[bytes]":
    """A command in a process group of its own; with `limit`, no file that it writes may be larger."""

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    environment = {
        **plain_environment(),
        "CAPLENS_CACHE": str(folder / "cache"),
        "PYTHONHASHSEED": "random",
        "TMPDIR": str(_scratch(folder)),
    }
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=limited,
    )


def plain_environment() -> dict[str, str]:
    """The environment without what measures coverage: it writes files of its own, and makes loops slow."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}


def _scratch(folder: Path) -> Path:
    path = folder / "scratch"
    path.mkdir(exist_ok=True)
    return path


def run(folder: Path, arguments: list[str], limit: int | None = None) -> tuple[int, str]:
    """The exit status and the messages of a command."""
    process = start(folder, arguments, limit)
    _, messages = process.communicate(timeout=_TIMEOUT)
    return process.returncode, messages.decode(errors="replace")


def hashes(folder: Path, job: Job) -> dict[str, str]:
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in job.outputs if (folder / name).exists()}


def expected(folder: Path, job: Job) -> tuple[dict[str, str], float]:
    """What a run writes that nothing happens to, and how long it takes."""
    undisturbed = folder / "undisturbed"
    shutil.copytree(folder / "inputs", undisturbed)
    for _ in range(2):
        # The second run is timed: what an earlier one has kept makes it shorter.
        began = time.monotonic()
        status, messages = run(undisturbed, job.arguments())
        assert status == 0, messages
        seconds = time.monotonic() - began
    written = hashes(undisturbed, job)
    shutil.rmtree(undisturbed)
    return written, seconds


def kill_and_resume(folder: Path, job: Job, wanted: dict[str, str], seconds: float, kills: int, rng: random.Random) -> int:
    """Kill a job at random moments, then let it finish; returns the number of kills that hit it alive."""
    place = folder / "killed"
    shutil.copytree(folder / "inputs", place)
    plain = [name for name in job.outputs if "/" not in name]
    for name in plain:
        (place / name).write_bytes(OLD)
    hits = 0
    for _ in range(kills):
        process = start(place, job.arguments())
        time.sleep(rng.uniform(0.1, 0.95) * seconds)
        hits += process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        for name, content in hashes(place, job).items():
            old = hashlib.sha256(OLD).hexdigest()
            allowed = (wanted[name], old) if name in plain else (wanted[name],)
            assert content in allowed, f"{job.name}: {name} is half-written"
    status, messages = run(place, job.arguments())
    assert status == 0, messages
    assert "Traceback" not in messages, messages
    assert hashes(place, job) == wanted, f"{job.name}: the resumed run wrote other bytes"
    left = [path.name for path in place.rglob("*.tmp")]
    assert not left, f"{job.name}: {left} were left behind"
    shutil.rmtree(place)
    return hits


def starve(folder: Path, job: Job, wanted: dict[str, str], limit: int) -> int:
    """Run a job that may write no file beyond a limit, as on a full disk; returns its status."""
    place = folder / "starved"
    shutil.copytree(folder / "inputs", place)
    plain = [name for name in job.outputs if "/" not in name]
    for name in plain:
        (place / name).write_bytes(OLD)
    status, messages = run(place, job.arguments(), limit)
    assert "Traceback" not in messages, messages
    assert status in (0, 2), f"{job.name}: status {status}: {messages}"
    if status == 2:
        assert messages.strip(), f"{job.name}: an error without a message"
        assert all((place / name).read_bytes() == OLD for name in plain if len(plain) == 1), (
            f"{job.name}: an old file was changed"
        )
    else:
        assert hashes(place, job) == wanted
    assert not list(place.rglob("*.tmp")), f"{job.name}: temporary files were left behind"
    shutil.rmtree(place)
    return status


def together(folder: Path, job: Job, wanted: dict[str, str]) -> None:
    """Two processes of one job at once, with one store and one output."""
    place = folder / "together"
    shutil.copytree(folder / "inputs", place)
    processes = [start(place, job.arguments()) for _ in range(2)]
    for process in processes:
        _, messages = process.communicate(timeout=_TIMEOUT)
        assert process.returncode == 0, messages.decode()
    assert hashes(place, job) == wanted
    shutil.rmtree(place)


def damage(path: Path, rng: random.Random) -> None:
    """Change, cut or lengthen the bytes of a file."""
    content = bytearray(path.read_bytes())
    kind = rng.choice(("flip", "flip", "flip", "cut", "append", "zero"))
    if kind == "flip":
        for _ in range(rng.choice((1, 8, 100))):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del content[rng.randrange(len(content)) :]
    elif kind == "append":
        content += os.urandom(100)
    else:
        start_at = rng.randrange(len(content))
        content[start_at : start_at + 4096] = bytes(min(4096, len(content) - start_at))
    path.write_bytes(bytes(content))


def run_caplens(folder: Path, *arguments: object) -> tuple[int, str]:
    """Run a command in a folder; returns its status and what it said on standard error."""
    command = [sys.executable, "-m", "caplens", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=plain_environment(), capture_output=True, text=True)
    return done.returncode, done.stderr


def write_rows(path: Path, *rows: object) -> Path:
    """Write JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
