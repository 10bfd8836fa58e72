"""A package that is installed beside caplens brings a metric, a benchmark, a tokenizer, a model family and a captioner."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from extras import need

import caplens as package
from caplens.metrics import Metric
from caplens.plugins import GROUPS

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The example package, installed by pip into a folder of its own."""
    need("hatchling")
    target = tmp_path_factory.mktemp("plugin")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(target)]
    subprocess.run([*command, str(EXAMPLE)], check=True, capture_output=True)
    return target


@pytest.fixture
def run(installed, tmp_path):
    """Run the command in a process that sees the plug-in."""

    def run_command(*arguments: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(installed), "CAPLENS_CACHE": str(tmp_path / "cache")}
        command = [sys.executable, "-m", "caplens", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)

    return run_command


def _listed(run, kind: str) -> dict[str, dict[str, object]]:
    rows = json.loads(run("list", kind, "--json").stdout)[kind]
    return {next(iter(row.values())): row for row in rows}


def test_what_a_package_brings_is_listed(run):
    metric = _listed(run, "metrics")["distinct"]
    assert (metric["needs"], metric["description"][:9]) == ("caption", "the share")
    assert "letters" in _listed(run, "tokenizers")
    assert "better-captions" in _listed(run, "benchmarks")
    assert "colours:…" in run("list", "models").stdout
    assert "colours:…" in _listed(run, "models")
    assert "colour-namer" in _listed(run, "captioners")


def test_its_metric_tokenizer_and_model_score_captions(run, write):
    from PIL import Image

    folder = write("captions.jsonl", [{"id": "1", "caption": "red red sky", "image": "1.png"}]).parent
    Image.new("RGB", (8, 8), (255, 0, 0)).save(folder / "1.png")
    ran = run("score", folder / "captions.jsonl", "-m", "distinct,length", "--tokenizer", "letters", "--json")
    metrics = json.loads(ran.stdout)["metrics"]
    assert metrics["length"]["corpus"] == 9
    assert metrics["distinct"]["corpus"] == pytest.approx(6 / 9)
    assert "tok:letters" in metrics["distinct"]["signature"]
    ran = run("score", folder / "captions.jsonl", "-m", "clipscore", "--images", folder, "--model", "colours:rgb", "--json")
    assert json.loads(ran.stdout)["metrics"]["clipscore"]["corpus"] == pytest.approx(2.5)


def test_its_benchmark_is_run(run, tmp_path):
    data = tmp_path / "better-captions"
    data.mkdir()
    pairs = [{"image": "1", "better": "a brown dog", "worse": "dog dog"}, {"image": "2", "better": "cat cat", "worse": "a cat"}]
    (data / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
    ran = run("bench", "better-captions", "--data", tmp_path, "-m", "distinct,length", "--resamples", 10, "--json")
    results = json.loads(ran.stdout)["results"]
    assert results["distinct"]["accuracy"]["value"] == 50
    assert results["length"]["accuracy"]["value"] == 50


def test_its_captioner_describes_images(installed, tmp_path):
    code = (
        "from PIL import Image; from caplens.captioners import load_captioner;"
        "print(load_captioner('colour-namer')([Image.new('RGB', (4, 4), 'green')]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert ran.stdout.strip() == "['something green']"


def test_every_group_of_the_example_is_one_that_caplens_reads():
    import tomllib

    groups = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    assert set(groups) == set(GROUPS)


class Shouting(Metric):
    """For the tests below: named by its path."""

    name = "shouting"

    def collectors(self):
        from caplens.metrics.function import SampleCollector

        return (SampleCollector(self.needs),)

    def compute(self, collected, size):
        from caplens.metrics import FunctionMetric

        return FunctionMetric(lambda caption: float(caption.isupper()), "shouting").compute(collected, size)


def test_a_metric_can_be_named_by_its_path(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "my_metrics", sys.modules[__name__])
    result = package.score({"1": "A DOG", "2": "a cat"}, ["my_metrics:Shouting", "length"], resamples=0)
    assert result["shouting"].values.tolist() == [1, 0]
    for name, message in (
        ("my_metrics:Nothing", "cannot be imported"),
        ("no_such_module:Metric", "cannot be imported"),
        ("json:decoder", "a metric is a name, a Metric or a function"),
        (":Metric", "cannot be imported"),
        (".relative:Metric", "cannot be imported"),
    ):
        with pytest.raises(package.InputError, match=message):
            package.score({"1": "a"}, [name])


def test_a_file_of_the_current_folder_can_hold_the_metric(run, write, tmp_path):
    code = """
import caplens
def letters(caption):
    return len(caption)
words = caplens.metric(lambda caption: len(caption.split()), name="words")
"""
    (tmp_path / "own_metrics.py").write_text(code, encoding="utf-8")
    (tmp_path / "broken_metrics.py").write_text("1 / 0", encoding="utf-8")
    captions = write("captions.jsonl", [{"id": "1", "caption": "a dog"}])
    ran = run("score", captions, "-m", "own_metrics:letters,own_metrics:words", "--json")
    metrics = json.loads(ran.stdout)["metrics"]
    assert {name: scores["corpus"] for name, scores in metrics.items()} == {"letters": 5, "words": 2}
    ran = run("score", captions, "-m", "broken_metrics:letters")
    assert (ran.returncode, "Traceback" in ran.stderr) == (2, False)
    assert "'broken_metrics:letters' cannot be imported (division by zero)" in ran.stderr


def test_a_metric_class_is_built_with_the_options():
    from caplens.metrics import Bleu1, Length

    result = package.score({"1": "ab"}, [Length, "length", Bleu1], references={"1": ["ab"]}, tokenizer="char", resamples=0)
    assert list(result) == ["length", "bleu1"]
    assert result["length"].corpus == 2


def _overlap(caption, references):
    return max(len(set(caption.split()) & set(text.split())) for text in references)


def test_a_plain_function_is_a_metric_for_score_compare_and_bench(flickr8k_small):
    captions, references = {"1": "a dog runs", "2": "a cat"}, {"1": ["the dog runs"], "2": ["a bird"]}
    overlap = package.metric(_overlap, name="overlap")
    result = package.score(captions, [overlap, _overlap], references=references, resamples=0)
    assert result["overlap"].values.tolist() == result["_overlap"].values.tolist() == [2, 1]
    assert overlap.needs == {"caption", "references"}
    words = package.metric(lambda samples: [len(sample.caption) for sample in samples], name="letters", needs=["caption"])
    comparison = package.compare({"a": captions, "b": {"1": "a", "2": "b"}}, [words], resamples=20)
    assert comparison.scores["letters"]["a"].value == 7.5
    agreement = package.bench("flickr8k-expert", flickr8k_small, [words, "length"], resamples=5)
    assert set(agreement.results) == {"letters", "length"}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda samples: [1], "returned values of shape"),
        (lambda caption: "x", "must return numbers"),
        (5, "is a name, a Metric or a function"),
    ],
)
def test_a_function_that_is_not_a_metric_is_one_sentence(function, message):
    with pytest.raises(package.InputError, match=message):
        package.score({"1": "a dog", "2": "a cat"}, [function])


@pytest.fixture
def flickr8k_small(tmp_path):
    from stage import _flickr8k

    (tmp_path / "photos").mkdir()
    return _flickr8k(tmp_path / "flickr8k", tmp_path / "photos")
