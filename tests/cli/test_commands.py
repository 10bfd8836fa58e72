"""The command as a user meets it."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import caplens as package

ROWS = [
    {"id": "1", "caption": "a dog runs", "references": ["a dog is running", "the dog runs"], "system": "s"},
    {"id": "2", "caption": "a cat sleeps", "references": ["a cat is sleeping", "one cat sleeps"], "system": "s"},
]


def test_the_example_that_comes_with_it_is_scored(caplens):
    said = caplens("score", "--example")
    assert said.status == 0
    assert "clipscore" in said.out
    assert "cider" in said.out
    assert "45 of 45 captions scored" in said.out
    assert said.err.startswith("caplens: scoring with caplens-mini")
    assert [line for line in said.err.splitlines()[1:] if "no score over all 9 languages" not in line] == []


@pytest.mark.parametrize("command", ["score", "compare", "bench", "train mini", "convert", "count-df", "list", "doctor"])
def test_help_has_examples(caplens, command):
    said = caplens(*command.split(), "--help")
    assert said.status == 0
    assert f"caplens {command}" in said.out
    assert "Example" in said.out


def test_version(caplens):
    assert caplens("--version").out.strip() == package.__version__


@pytest.mark.parametrize("kind", ["metrics", "tokenizers", "benchmarks", "languages"])
def test_lists(caplens, kind):
    found = json.loads(caplens("list", kind, "-f", "json").out)[kind]
    names = {next(iter(row.values())) for row in found}
    expected = {
        "metrics": {"bleu1", "bleu2", "bleu3", "bleu4", "rouge-l", "cider", "cider-original", "length", "meteor", "spice"},
        "tokenizers": {"ptb", "13a", "intl", "char", "unicode"},
        "benchmarks": {"flickr8k-expert", "flickr8k-cf"},
        "languages": {"en", "quz", "th"},
    }
    assert expected[kind] <= names


def test_doctor_names_the_cure_for_what_is_missing(caplens, monkeypatch):
    monkeypatch.setenv("PATH", "")
    checks = {row["what"]: row for row in json.loads(caplens("doctor", "-f", "json").out)["checks"]}
    assert checks["numpy"]["state"] == "ok"
    assert checks["Java (METEOR; SPICE needs 8 or 11)"]["state"] == "missing"
    assert "apt-get install" in checks["Java (METEOR; SPICE needs 8 or 11)"]["how to get it"]


def test_every_form_of_a_score(caplens, write, tmp_path):
    captions = write("captions.jsonl", ROWS)
    found = {}
    for suffix in ("json", "jsonl", "csv", "tsv", "md", "tex", "txt"):
        output = tmp_path / f"scores.{suffix}"
        assert caplens("score", captions, "-m", "cider,bleu1", "-o", output).status == 0
        found[suffix] = output.read_text(encoding="utf-8")
    document = json.loads(found["json"])
    values = document["metrics"]["bleu1"]["values"]
    assert document["metrics"]["bleu1"]["low"] <= document["metrics"]["bleu1"]["corpus"]
    rows = [json.loads(line) for line in found["jsonl"].splitlines()]
    assert [row["id"] for row in rows] == ["1", "2"]
    assert [row["bleu1"] for row in rows] == values
    table = list(csv.DictReader(io.StringIO(found["csv"])))
    assert [float(row["bleu1"]) for row in table] == values
    assert list(csv.DictReader(io.StringIO(found["tsv"]), delimiter="\t")) == table
    assert "| metric | score |" in found["md"]
    assert r"\toprule" in found["tex"]
    assert "metric" in found["txt"]


def test_compare_takes_a_file_for_each_system_or_one_for_all(caplens, write):
    other = [{**row, "caption": "nothing alike", "system": "t"} for row in ROWS]
    a, b, both = write("a.jsonl", ROWS), write("b.jsonl", other), write("both.jsonl", ROWS + other)
    apart = json.loads(caplens("compare", a, b, "-m", "bleu1", "-f", "json").out)
    together = json.loads(caplens("compare", both, "-m", "bleu1", "-f", "json").out)
    assert apart["systems"] == ["a", "b"]
    assert together["systems"] == ["s", "t"]
    assert [c["difference"] for c in apart["contrasts"]] == [c["difference"] for c in together["contrasts"]]
    assert caplens("compare", a, b).status == 0
    assert "all rows are of one system" in caplens("compare", a).err
    assert "twice" in caplens("compare", a, a).err
    nameless = write("c.jsonl", [{key: value for key, value in ROWS[0].items() if key != "system"}])
    assert "has no 'system'" in caplens("compare", nameless).err


def test_bench_prints_the_published_values_beside_ours(caplens, flickr8k):
    said = caplens("bench", "flickr8k-expert", "--data", flickr8k, "-m", "bleu1", "--resamples", 20, "-f", "json")
    found = json.loads(said.out)
    assert set(found["results"]["bleu1"]["tau-c"]) == {"value", "low", "high", "published", "points", "ties"}
    assert found["results"]["bleu1"]["tau-c"]["published"] == 32.3
    assert found["protocol"] == "expanded"
    assert "has no protocol 'max'" in caplens("bench", "flickr8k-expert", "--data", flickr8k, "--protocol", "max").err


def test_convert_there_and_back(caplens, write, tmp_path):
    captions = write("captions.jsonl", ROWS)
    results, annotations, back = tmp_path / "results.json", tmp_path / "annotations.json", tmp_path / "back.jsonl"
    assert caplens("convert", captions, results, "--to", "coco", "--references-output", annotations).status == 0
    assert caplens("convert", results, back, "--references", annotations).status == 0
    assert [json.loads(line) for line in back.read_text().splitlines()] == [dict(sorted(row.items())) for row in ROWS]
    assert "2 samples written" in caplens("convert", annotations, tmp_path / "references.csv").err
    assert "names no format" in caplens("convert", captions, tmp_path / "x.json").err
    assert "unknown format 'xml'" in caplens("convert", captions, tmp_path / "x", "--to", "xml").err


def test_document_frequencies_are_counted_once_and_kept(caplens, write, tmp_path):
    references, df = write("references.json", {"1": ["a dog"], "2": ["a cat"], "3": ["a man"]}), tmp_path / "df.json"
    assert "3 images (en) written" in caplens("count-df", references, df).err
    captions = write("captions.jsonl", ROWS)
    kept = json.loads(caplens("score", captions, "-m", "cider", "--df", df, "-f", "json").out)
    counted = json.loads(caplens("score", captions, "-m", "cider", "--df", references, "-f", "json").out)
    assert kept == counted


def test_captions_may_come_through_a_pipe():
    rows = "".join(json.dumps(row) + "\n" for row in ROWS)
    for place in ("-", "/dev/stdin"):
        command = [sys.executable, "-m", "caplens", "score", place, "-m", "bleu1", "-f", "json"]
        found = subprocess.run(command, input=rows, capture_output=True, text=True, check=True)
        assert json.loads(found.stdout)["ids"] == ["1", "2"]


def test_document_frequencies_may_come_through_a_pipe(tmp_path):
    command = [sys.executable, "-m", "caplens", "count-df", "-", str(tmp_path / "df.json")]
    subprocess.run(command, input=json.dumps({"1": ["a dog"], "2": ["a cat"]}), text=True, check=True)
    assert json.loads((tmp_path / "df.json").read_text())["counts"]["a"] == 2


def test_the_language_of_captions_chooses_their_references(caplens, write):
    captions = write("captions.json", {"1": "ein Hund"})
    rows = [{"id": "1", "caption": "a dog", "lang": "en"}, {"id": "1", "caption": "ein Hund", "lang": "de"}]
    references = write("references.jsonl", rows)
    said = caplens("score", captions, "-r", references, "-m", "bleu1", "--lang", "de", "-f", "json")
    found = json.loads(said.out)["metrics"]["bleu1"]
    assert found["corpus"] == pytest.approx(1)
    assert "|refs:1|" in found["signature"]


def test_output_is_written_through_links_and_never_over_what_is_read(caplens, write, tmp_path):
    captions, link, real = write("captions.jsonl", ROWS), tmp_path / "link.json", tmp_path / "real.json"
    link.symlink_to(real)
    assert caplens("score", captions, "-m", "bleu1", "-o", link).status == 0
    assert link.is_symlink()
    assert json.loads(real.read_text())["ids"] == ["1", "2"]
    before = captions.read_text()
    for command in (["score", captions, "-o", captions], ["convert", captions, captions]):
        said = caplens(*command)
        assert said.status == 2
        assert "named twice" in said.err
    assert captions.read_text() == before


def test_a_device_stays_a_device(caplens, write):
    assert caplens("score", write("captions.jsonl", ROWS), "-m", "bleu1", "-f", "json", "-o", "/dev/null").status == 0
    assert Path("/dev/null").is_char_device()


def test_signatures_are_not_broken_into_lines(caplens):
    assert any(
        line.startswith("cider-d|tok:") and line.endswith(f"v:{package.__version__}")
        for line in caplens("score", "--example").out.splitlines()
    )


def test_help_shows_defaults(caplens):
    words = " ".join(caplens("score", "--help").out.replace("│", " ").split())
    assert "[default: by language]" in words
    assert "Without --metric: clipscore with --images or a --model, else bleu1 to bleu4, rouge-l and cider" in words


def test_it_runs_as_a_program_and_starts_without_heavy_libraries():
    code = (
        "import sys; from caplens.cli.main import build_app; build_app();"
        "heavy = {'torch', 'transformers', 'onnxruntime', 'pyarrow', 'jieba'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_progress_shows_rate_and_time_left(write, monkeypatch):
    import rich.console

    from caplens.cli import progress_bar

    shown = io.StringIO()
    monkeypatch.setattr(progress_bar.sys, "stderr", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr(progress_bar, "Console", lambda stderr: rich.console.Console(file=shown, force_terminal=True, width=120))
    path = write("captions.jsonl", [{**ROWS[0], "id": str(i)} for i in range(5000)])
    with progress_bar.progress_bar(quiet=False):
        package.score(path, ["cider"], resamples=0)
    assert "reading captions.jsonl" in shown.getvalue()
    assert "/s" in shown.getvalue()
    assert "left:" in shown.getvalue()
