"""An experiment from one file: captioners, languages and metrics, a page, and a study of what metrics disagree on."""

import json
import shutil

import numpy as np
import pytest
from extras import need

need("fastapi")
need("sqlalchemy")

from PIL import Image

import caplens as package
from caplens.api import open_study
from caplens.api.experiments import Experiment, _disputed, run_experiment
from caplens.errors import InputError

FILE = """
images = "photos"
output = "out"
references = "test.jsonl"
metrics = ["clipscore", "cider", "length"]
langs = ["en", "de"]
side_by_side = 2
resamples = 50

[systems]
mini = "caplens-mini-captioner"
people = "people.jsonl"
"""


@pytest.fixture
def experiment(tmp_path, write, monkeypatch):
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "photos").mkdir()
    rng = np.random.default_rng(0)
    rows, people = [], []
    for number in range(6):
        Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(tmp_path / "photos" / f"{number}.png")
        for lang, text in (("en", f"a dog runs over {number} roads"), ("de", f"ein Hund läuft über {number} Wege")):
            rows.append({"id": str(number), "image": f"{number}.png", "lang": lang, "references": [text, text + " dort"]})
            people.append({**rows[-1], "caption": text})
    write("test.jsonl", rows)
    write("people.jsonl", people)
    return write("study.toml", FILE)


def test_captioners_are_compared_by_language_with_a_page_and_a_study(experiment, caplens, tmp_path):
    run = caplens("study-run", experiment, "--json")
    assert run.status == 0, run.err
    said = json.loads(run.out[run.out.rindex('{"page"') :])
    result = package.load_results(tmp_path / "out" / "comparison.json")
    assert list(result) == ["en", "de"]
    written = [
        json.loads(line) for line in (tmp_path / "out" / "captions" / "mini.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert {row["lang"] for row in written} == {"en", "de"}
    # The numbers are those of comparing the files by hand.
    by_hand = package.compare(
        {
            name: [sample for sample in package.SampleFile(path) if sample.lang == "en"]
            for name, path in (("mini", tmp_path / "out" / "captions" / "mini.jsonl"), ("people", tmp_path / "people.jsonl"))
        },
        ["clipscore", "cider", "length"], images=tmp_path / "photos", resamples=50,
    )  # fmt: skip
    assert result["en"].to_dict()["systems"] == by_hand.to_dict()["systems"]
    assert "<html" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    with open_study(next(iter(said["studies"]))).reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM items").scalar_one() == 4
    again = caplens("study-run", experiment)
    assert "stays as it is" in again.err


def test_people_are_asked_where_metrics_disagree_most():
    rows = [(1.0, 1.0), (2.0, -2.0), (0.5, 0.4), (-1.0, 1.2)]
    first, second = (package.score([f"caption {n}" for n in range(4)], ["length"], resamples=0) for _ in range(2))
    scores = first["length"]
    from dataclasses import replace

    for result, sign in ((first, 1), (second, 0)):
        result.metrics = {
            name: replace(scores, values=np.array([sign * row[place] for row in rows])) for place, name in enumerate("ab")
        }
    assert _disputed(first, second, ["a", "b"], 2) == {"1", "3"}
    assert _disputed(first, second, ["a"], 1) == {"1"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('images = "photos"\n', "", "'images' is missing"),
        ("side_by_side = 2", 'side_by_side = "2"', "a whole number"),
        ("langs", "langauges", "no setting 'langauges'"),
        ('people = "people.jsonl"\n', "", "at least two lines"),
        ('metrics = ["clipscore", "cider", "length"]', 'metrics = ["nothing"]', "nothing"),
        ('mini = "caplens-mini-captioner"', 'mini = "/no/where"', "no such model"),
        ('mini = "caplens-mini-captioner"', '"../../mini" = "caplens-mini-captioner"', "the name of a file of captions"),
        ("people.jsonl", "peeple.jsonl", "no such file of captions"),
        ('images = "photos"', "images = { a = 1 }", "'images' is a text"),
        ('metrics = ["clipscore", "cider", "length"]', "metrics = []", "'metrics' is a list"),
        ("resamples = 50", 'baseline = "other"', "none of the systems"),
        ('references = "test.jsonl"', 'references = "out/captions/mini.jsonl"', "mini.jsonl"),
    ],
)
def test_a_wrong_file_is_one_sentence(experiment, caplens, tmp_path, old, new, words):
    (tmp_path / "out" / "captions").mkdir(parents=True)
    shutil.copy(tmp_path / "test.jsonl", tmp_path / "out" / "captions" / "mini.jsonl")
    experiment.write_text(experiment.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    run = caplens("study-run", experiment)
    assert run.status == 2
    assert words in run.err
    assert (tmp_path / "out" / "captions" / "mini.jsonl").read_bytes() == (tmp_path / "test.jsonl").read_bytes()


def test_a_folder_of_images_is_captioned_in_all_languages(tmp_path, experiment):
    content = Experiment(
        {"one": "caplens-mini-captioner", "two": "caplens-mini-captioner"}, tmp_path / "photos", tmp_path / "two",
        langs=["ja", "tr"], resamples=10,
    )  # fmt: skip
    report = run_experiment(content)
    assert list(report.comparison) == ["ja", "tr"]
    assert report.studies == {}
    with pytest.raises(InputError, match="writes no captions"):
        run_experiment(
            Experiment({"one": "caplens-mini-captioner", "two": "x.jsonl"}, tmp_path / "photos", tmp_path / "x", langs=["sw"])
        )
