import json

import numpy as np
import pytest
from fake_backbone import FakeBackbone
from PIL import Image

import caplens as package
from caplens.comparison.human_baseline import human_captions
from caplens.data import Sample
from caplens.embed import Engine

REFERENCES = {str(i): (f"a dog number {i} runs on the grass", f"dog {i} is running") for i in range(30)}


def _system(caption):
    return [Sample(identifier, caption(i), REFERENCES[identifier]) for i, identifier in enumerate(REFERENCES)]


def test_a_better_system_is_told_from_a_worse_one():
    good, bad = _system(lambda i: f"a dog number {i} runs"), _system(lambda i: f"a cat number {i + 1} sleeps")
    found = package.compare({"good": good, "bad": bad}, ["bleu1", "cider"], resamples=200)
    for contrast in found.contrasts:
        assert contrast.difference > 0
        assert contrast.p <= contrast.p_corrected < 0.05
        assert contrast.low - 1e-9 <= contrast.difference <= contrast.high + 1e-9
    alone = package.score(good, ["bleu1", "cider"], resamples=0)
    for metric in ("bleu1", "cider"):
        assert found.scores[metric]["good"].value == pytest.approx(alone[metric].corpus)


def test_equal_systems_do_not_differ():
    same = _system(lambda i: f"a dog number {i} runs")
    found = package.compare({"one": same, "two": same}, ["bleu4"], resamples=100)
    assert (found.contrasts[0].difference, found.contrasts[0].p) == (0, 1)


def test_a_corpus_score_that_is_no_mean_is_resampled_from_its_parts():
    generator = np.random.default_rng(0)
    words = "a dog runs on the grass number is running".split()
    samples = [Sample(i, " ".join(generator.choice(words, generator.integers(3, 9))), texts) for i, texts in REFERENCES.items()]
    results = package.score(samples, ["bleu2"], resamples=0)
    rows = generator.integers(0, 30, 30)
    again = package.score(
        [Sample(str(k), samples[r].caption, samples[r].references) for k, r in enumerate(rows)], ["bleu2"], resamples=0
    )
    pooled = results["bleu2"].pool(results["bleu2"].statistics[rows].sum(axis=0))
    assert pooled == pytest.approx(again["bleu2"].corpus, abs=1e-12)


def test_captions_are_paired_by_id_and_what_is_missing_is_said():
    first = _system(lambda i: f"a dog number {i} runs")
    second = list(reversed(first[3:]))
    found = package.compare({"first": first, "second": second}, ["bleu1"], resamples=50)
    assert found.samples == 27
    assert found.warnings == ["first: 3 captions whose ids others lack were left out."]
    assert found.contrasts[0].difference == 0


def test_captions_of_one_id_in_two_languages_are_two():
    def both(english, german):
        texts = {"en": english, "de": german}
        return [Sample(str(i), text, ("a dog", "ein Hund"), lang=lang) for lang, text in texts.items() for i in range(4)]

    found = package.compare({"one": both("a dog", "ein Hund"), "two": both("zebra", "ein Hund")}, ["bleu1"], resamples=20)
    assert found.samples == 8
    assert found.scores["bleu1"]["two"].value < 0.8


def test_equal_captions_score_equal_whatever_else_a_system_has():
    first = _system(lambda i: f"a dog number {i} runs")
    more = [*first, *(Sample(f"x{s.id}", s.caption, s.references) for s in first)]
    blank = [Sample("x1", "", ("a dog",))]
    found = package.compare({"one": first, "two": more}, ["cider"], resamples=20)
    assert (found.contrasts[0].difference, found.failed) == (0, 0)
    found = package.compare({"one": [*first, Sample("x1", "a", ("a dog",))], "two": [*first, *blank]}, ["cider"], resamples=20)
    assert (found.contrasts[0].difference, found.failed) == (0, 1)
    assert "1 captions that cannot be scored for every system" in found.warnings[0]


def test_captions_about_one_image_are_resampled_together():
    def system(every, copies):
        return [
            Sample(f"{i}-{k}", f"a dog number {i} {'runs' if i % every else 'sleeps'}", REFERENCES[str(i)], image=f"{i}.jpg")
            for i in range(len(REFERENCES))
            for k in range(copies)
        ]

    single, double = (package.compare({"a": system(2, n), "b": system(3, n)}, ["bleu1"], resamples=300) for n in (1, 2))
    assert 0.05 < single.contrasts[0].p < 0.95
    assert double.contrasts[0].p == single.contrasts[0].p
    for bound in ("low", "high"):
        assert getattr(double.contrasts[0], bound) == pytest.approx(getattr(single.contrasts[0], bound))
    alone, twice = (package.score(system(2, n), ["bleu1"], resamples=300).intervals["bleu1"] for n in (1, 2))
    assert twice == pytest.approx(alone)


def test_what_cannot_be_compared_is_said():
    one = _system(lambda i: "a dog")
    with pytest.raises(package.InputError, match="at least two systems"):
        package.compare({"one": one}, ["bleu1"])
    other = [Sample(f"x{s.id}", s.caption, s.references) for s in one]
    with pytest.raises(package.InputError, match="no id in common"):
        package.compare({"one": one, "other": other}, ["bleu1"])
    with pytest.raises(package.InputError, match="unknown correction 'sidak'"):
        package.compare({"one": one, "two": one}, ["bleu1"], correction="sidak")


def test_a_metric_of_two_parts_is_compared_on_the_captions_of_its_parts():
    """As `score` does it: a caption without an image still counts for CIDEr's document frequencies."""
    engine = Engine(FakeBackbone())
    images = [Image.new("RGB", (8, 8), (60 * n, 0, 0)) for n in range(3)]
    texts = ["a dog runs", "a cat sleeps", "two birds", "a red car"]

    def samples(captions):
        pairs = zip(captions, texts, [*images, None], strict=True)
        return [Sample(str(n), caption, (text, "a photo"), image=image) for n, (caption, text, image) in enumerate(pairs)]

    systems = {"same": samples(texts), "other": samples(["a dog", "a cat", "birds", "a car"])}
    names = ["clip+cider", "clipscore", "cider"]
    compared = package.compare(systems, names, model=engine, resamples=5)
    scored = package.score(systems["other"], names, model=engine, resamples=0)
    for name in names:
        np.testing.assert_allclose(compared.values[name]["other"], scored[name].values)


def test_no_resamples_are_as_many_as_the_tests_need_at_least():
    assert package.compare({"a": ["x y"], "b": ["x"]}, ["length"], resamples=0).contrasts[0].difference == 1


def test_people_are_a_system_by_one_of_their_own_references(tmp_path, caplens):
    """Table 7 of PAC-S: the drawn reference is not compared with itself."""
    references = {str(n): [f"dog {n} {k}" for k in range(5)] for n in range(6)}
    captions = dict.fromkeys(references, "a cat")
    comparison = package.compare({"cats": captions}, ["bleu1"], references=references, human_baseline=True, resamples=20)
    assert comparison.systems == ["cats", "humans"]
    assert comparison.scores["bleu1"]["humans"].value == pytest.approx(2 / 3)
    assert "refs:5" in comparison.signatures["bleu1"]
    for seed in (0, 1):
        drawn = human_captions([package.Sample(key, "x", tuple(texts)) for key, texts in references.items()], seed)
        assert all(sample.caption not in sample.references and len(sample.references) == 4 for sample in drawn)
    (tmp_path / "cats.json").write_text(json.dumps(captions), encoding="utf-8")
    (tmp_path / "refs.json").write_text(json.dumps(references), encoding="utf-8")
    result = tmp_path / "r.json"
    command = ["compare", tmp_path / "cats.json", "-r", tmp_path / "refs.json", "--human-baseline", "-m", "bleu1"]
    said = caplens(*command, "--resamples", 20, "-o", result)
    assert said.status == 0, said.err
    assert caplens("report", result, "-o", tmp_path / "r.html").status == 0
    with pytest.raises(package.InputError, match="no image has two references"):
        package.compare({"cats": captions}, ["bleu1"], references={"1": ["a dog"]}, human_baseline=True)
