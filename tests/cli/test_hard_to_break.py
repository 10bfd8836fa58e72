"""What attackers found, at the command: streams, names, devices, signals and tables that used to hang, crash or mislead."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from extras import need

ROW = {"id": "1", "caption": "a dog runs", "references": ["a dog is running", "the dog runs"]}
SCORE = ("score", "captions.jsonl", "-m", "bleu1", "-q")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "captions.jsonl").write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    return tmp_path


def run(folder, *arguments, **more):
    """Another process, whose streams and surroundings are ours to break."""
    environment = {**os.environ, **more.pop("env", {})}
    for name in more.pop("without", ()):
        environment.pop(name, None)
    return subprocess.run(
        [sys.executable, "-m", "caplens", *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        timeout=60,
        **more,
    )


def said(done, status=2):
    """The one sentence of an error."""
    message = done.stderr.decode(errors="replace")
    assert done.returncode == status, message
    assert "Traceback" not in message
    assert len(message.splitlines()) == 1, message
    return message


def test_json_and_csv_on_standard_output_are_utf8_whatever_the_stream_says(folder):
    row = {**ROW, "id": "犬"}
    (folder / "captions.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    for encoding in ("ascii", "latin-1", "utf-16"):
        done = run(folder, *SCORE, "-f", "jsonl", env={"PYTHONIOENCODING": encoding})
        assert json.loads(done.stdout.decode("utf-8"))["id"] == "犬"


@pytest.mark.parametrize("arguments", [SCORE, (*SCORE, "--json"), ("--help",), ("--version",), ("list", "metrics")])
def test_a_full_output_is_told(folder, arguments):
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        environment = {**os.environ}
        done = subprocess.run(
            [sys.executable, "-m", "caplens", *arguments], cwd=folder, env=environment, stdout=full, stderr=subprocess.PIPE
        )
    assert "No space left on device" in said(done)


def test_surroundings_that_lack_something(folder):
    assert run(folder, *SCORE, without=("HOME",)).returncode == 0
    assert "the folder of this user is not known" in said(
        run(folder, "score", "captions.jsonl", "-m", "clipscore", "--store", "~nouser/x", "-q", "--images", ".")
    )
    gone = folder / "gone"
    gone.mkdir()
    program = "import os, sys; os.rmdir(os.getcwd()); from caplens.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", program, *SCORE], cwd=gone, capture_output=True)
    assert "the current folder no longer exists" in said(done)


def test_names_that_no_file_can_have(folder):
    (folder / "loop").symlink_to("loop")
    assert "Too many levels of symbolic links" in said(run(folder, "score", "loop"))
    long = "a" * 300
    for arguments in (
        ("score", long),
        ("report", long),
        ("score", "captions.jsonl", "--images", long),
        (*SCORE, "-o", f"{long}.json"),
    ):
        assert "File name too long" in run(folder, *arguments).stderr.decode()
    odd = os.fsdecode(b"odd\xff.jsonl")
    (folder / odd).write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    done = run(folder, "score", odd, "-m", "bleu1", "-o", "scores.json", "-q")
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "scores.json").read_text(encoding="utf-8"))["inputs"]["captions"] == r"odd\udcff.jsonl"
    assert run(folder, "report", "scores.json", "-o", "page.html", "-q").returncode == 0


def test_only_regular_files_are_captions_and_results(folder):
    os.mkfifo(folder / "pipe")
    (folder / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        assert "it is a pipe or a device, not a file" in said(run(folder, "score", name))
        assert "it is a pipe or a device, not a file" in said(run(folder, "report", name))
    with open("/dev/zero", "rb") as endless:  # noqa: PTH123
        assert "CAPLENS_MAX_LINE_MB" in said(run(folder, "score", "-", stdin=endless, env={"CAPLENS_MAX_LINE_MB": "8"}))
    done = run(folder, "score", "-", "-m", "bleu1", "-q", input=(folder / "captions.jsonl").read_bytes())
    assert done.returncode == 0


def test_a_line_has_a_limit_that_can_be_raised(folder):
    row = json.dumps({**ROW, "x": "y" * (3 << 20)})
    (folder / "captions.jsonl").write_bytes(gzip.compress(row.encode(), 1))
    assert "longer than 2 MB" in said(run(folder, *SCORE, env={"CAPLENS_MAX_LINE_MB": "2"}))
    assert run(folder, *SCORE, env={"CAPLENS_MAX_LINE_MB": "4"}).returncode == 0
    assert "a whole number of megabytes" in said(run(folder, *SCORE, env={"CAPLENS_MAX_LINE_MB": "many"}))


def test_text_from_files_cannot_order_a_terminal_about(folder, caplens, write):
    row = {**ROW, "id": "\x1b[31m1", "system": "\x9b2J\u202eA"}
    path = write("hostile.jsonl", json.dumps(row) + "\n" + json.dumps({**row, "system": "B"}) + "\n")
    table = caplens("compare", path, "-m", "bleu1", "--resamples", 5)
    assert "\\x9b2J\\u202eA" in table.out
    for text in (table.out, table.err, caplens("score", path, "-m", "bleu1", "--strict").err):
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)
    assert r"hostile\x1b.jsonl" in caplens("score", folder / "hostile\x1b.jsonl").err


def test_a_narrow_terminal_still_shows_the_score(folder):
    table = run(folder, *SCORE, env={"COLUMNS": "10"}).stdout.decode()
    assert "score" in table
    assert "bleu1" in table
    assert "1.000" in table


@pytest.mark.parametrize("moment", [0.02, 0.1, 0.2, 0.4])
def test_an_interrupt_at_any_moment_is_one_line_and_status_130(folder, moment):
    program = "import sys; from caplens.cli.main import main; print('ready', flush=True); main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "score", "captions.jsonl", "-m", "clipscore", "--images", ".", "-q"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.readline()
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert b"Traceback" not in messages
    if process.returncode not in (0, 2, 3):
        assert process.returncode == 130
        assert messages.decode().startswith("caplens: interrupted.")


def test_an_interrupt_of_a_command_that_has_its_status_changes_nothing(folder):
    program = """
import linecache, os, signal, sys
from caplens.cli import main

def trace(frame, event, argument):
    if frame.f_code is not main.main.__code__:
        return None
    if event == "line" and linecache.getline(main.__file__, frame.f_lineno).strip() == "raise":
        print("interrupted", flush=True)
        os.kill(os.getpid(), signal.SIGINT)
    return trace

main._main = lambda arguments: sys.exit(3)
sys.settrace(trace)
main.main()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=25)
    assert (done.returncode, done.stdout, done.stderr) == (3, "interrupted\n", "")


def test_an_interrupt_while_an_error_is_shown_changes_nothing(folder):
    program = """
import os, signal, sys
from caplens.cli import main, output

say = output.say

def interrupted(message):
    say(message)
    os.kill(os.getpid(), signal.SIGINT)

output.say = interrupted
main.main()
"""
    command = [sys.executable, "-c", program, "score", "nowhere.jsonl"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=25)
    assert (done.returncode, done.stderr) == (2, "caplens: nowhere.jsonl: there is no such file. Check the path.\n")


def test_an_interrupt_while_python_cleans_up_is_not_lost(folder):
    program = """
import os, signal, sys, time
from caplens.cli import main

class Cleaned:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)

def work(arguments):
    Cleaned()
    time.sleep(30)

main._main = work
main.main()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=25)
    assert (done.returncode, done.stderr) == (130, "caplens: interrupted. Nothing was written.\n")


def test_twice_is_an_error(caplens, write):
    row = '{"id": "1", "caption": "a dog", "caption": "a cat"}\n'
    assert "the key 'caption' appears twice" in caplens("score", write("captions.jsonl", row)).err
    table = "id,references,caption\n1,a dog,a dog\n"
    scores = write("mine.jsonl", '{"id": "1", "score": 1}\n{"id": "1", "score": 2}\n')
    failed = caplens("agreement", write("captions.csv", table), "--scores", scores)
    assert (failed.status, "mine.jsonl, line 2: the id '1' has a score already" in failed.err) == (2, True)


def test_spreadsheets_get_no_formulas(caplens, write, tmp_path):
    captions = ["=1+1", "+2", "-3", "@x", "\tx", "\rx", "'=y", "a dog", "'s"]
    rows = [{"id": f"={n}", "caption": text, "references": ["a dog"]} for n, text in enumerate(captions)]
    path = write("captions.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    table = caplens("score", path, "-m", "bleu1", "-f", "csv", "--keep-columns", "caption").out
    cells = [line.split(",")[1].strip('"') for line in table.split("\n")[1:] if line and line[0] == "'"]
    assert cells == ["'=1+1", "'+2", "'-3", "'@x", "'\tx", "'\rx", "''=y", "a dog", "'s"]
    assert "=1+1,=" not in table
    caplens("convert", path, tmp_path / "guarded.csv")
    caplens("convert", path, tmp_path / "plain.csv", "--allow-formulas")
    assert "\n'=0,," in (tmp_path / "guarded.csv").read_text(encoding="utf-8").replace("\r", "")
    assert "\n=0,," in (tmp_path / "plain.csv").read_text(encoding="utf-8").replace("\r", "")
    caplens("convert", tmp_path / "guarded.csv", tmp_path / "back.jsonl")
    back = [json.loads(line) for line in (tmp_path / "back.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["caption"]) for row in back] == [(row["id"], row["caption"]) for row in rows]


def test_captions_of_which_nothing_is_left_score_nothing(caplens, write):
    rows = [{"id": "1", "caption": "😀", "references": ["🎉"]}, ROW | {"id": "2"}]
    done = caplens(
        "score", write("captions.jsonl", "".join(json.dumps(row) + "\n" for row in rows)), "-m", "rouge-l,bleu1,cider", "--json"
    )
    scores = {name: metric["values"][0] for name, metric in json.loads(done.out)["metrics"].items()}
    assert scores == {"rouge-l": 0.0, "bleu1": pytest.approx(0, abs=1e-6), "cider": 0.0}
    assert "1 captions have no words" in done.err


def test_markdown_rows_are_one_line_each(caplens, write):
    rows = [{**ROW, "system": system} for system in ("a\nb", "c|d")]
    table = caplens(
        "compare", write("captions.jsonl", "".join(json.dumps(row) + "\n" for row in rows)), "-m", "bleu1", "-f", "markdown"
    ).out
    assert "| a\\\\nb |" in table
    assert "| c\\|d |" in table


def test_what_json_cannot_hold_is_never_written(caplens, write, tmp_path):
    path = write("captions.jsonl", '{"id": "1", "caption": "a dog", "x": NaN, "y": [NaN, 1]}\n')
    for target in ("out.jsonl", "out.csv", "out.json"):
        assert caplens("convert", path, tmp_path / target, *(["--to", "coco"] if target == "out.json" else [])).status == 0
        assert "NaN" not in (tmp_path / target).read_text(encoding="utf-8")
    failed = caplens("convert", write("large.jsonl", '{"id": "1", "caption": "a dog", "x": 1e999}\n'), tmp_path / "not.jsonl")
    assert (failed.status, (tmp_path / "not.jsonl").exists()) == (2, False)


def test_dates_of_parquet_become_text(caplens, tmp_path):
    need("pyarrow")
    from datetime import UTC, datetime

    import pyarrow
    import pyarrow.parquet

    rows = [{"id": "1", "caption": "a dog", "when": datetime(2026, 1, 2, tzinfo=UTC)}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "captions.parquet")
    assert caplens("convert", tmp_path / "captions.parquet", tmp_path / "captions.csv").status == 0
    assert "2026-01-02T00:00:00" in (tmp_path / "captions.csv").read_text(encoding="utf-8")


def test_an_image_name_does_not_leave_its_folder(tmp_path):
    from caplens.data import Sample, with_images
    from caplens.data.media import MissingImage

    (tmp_path / "photos").mkdir()
    (tmp_path / "secret.png").touch()
    names = ["../secret.png", "a://../../secret.png", str(tmp_path / "secret.png"), "x/../../secret.png"]
    for sample in with_images([Sample(str(n), "x", image=name) for n, name in enumerate(names)], tmp_path / "photos"):
        assert isinstance(sample.image, MissingImage) or not os.path.exists(sample.image)  # noqa: PTH110
