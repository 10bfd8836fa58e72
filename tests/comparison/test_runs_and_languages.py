"""Runs without common captions, and languages against each other: the tests decide as often as they should."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

import caplens as package
from caplens.comparison.drift import compare_runs
from caplens.comparison.language_pairs import compare_language_pairs
from caplens.errors import InputError
from caplens.results.language_pairs import lowest_language
from caplens.results.scores import ScoreResult, Scores
from caplens.stats.means import mean_of, mean_pool, mean_statistics


def _result(by_language: dict[str, np.ndarray], *, images: dict[str, np.ndarray] | None = None) -> ScoreResult:
    """Scores of captions in several languages; by default of the same images."""
    values = np.concatenate(list(by_language.values()))
    langs = [lang for lang, scores in by_language.items() for _ in scores]
    groups = [str(image) for lang, scores in by_language.items() for image in (images or {}).get(lang, range(len(scores)))]
    means = {lang: float(scores.mean()) for lang, scores in by_language.items()}
    scores = Scores(values, mean_of(values), "m|v:0", mean_statistics(values), mean_pool, means if len(means) > 1 else {})
    return ScoreResult([f"{lang}-{row}" for row, lang in enumerate(langs)], groups, {"m": scores}, langs=list(langs))


def test_languages_of_the_same_photos_are_compared_in_pairs():
    rng = np.random.default_rng(0)
    photos = rng.normal(size=200)
    by_language = {"de": photos + rng.normal(0, 0.1, 200), "en": photos + 0.05 + rng.normal(0, 0.1, 200)}
    (pair,) = compare_language_pairs(_result(by_language))["m"]
    assert (pair.first, pair.second, pair.images, pair.paired) == ("de", "en", 200, True)
    assert pair.p == pytest.approx(ttest_rel(by_language["de"], by_language["en"]).pvalue, abs=0.01)
    assert pair.low < pair.difference < pair.high < 0
    assert pair.correlation == pytest.approx(np.corrcoef(by_language["de"], by_language["en"])[0, 1])
    # The same captions as those of other photos: the difference between photos hides it.
    other = compare_language_pairs(_result(by_language, images={"en": np.arange(200, 400)}))["m"][0]
    assert not other.paired
    assert other.p > 0.05


def test_more_images_than_are_permuted_give_the_same_answer():
    rng = np.random.default_rng(1)
    photos = rng.normal(size=3000)
    by_language = {lang: photos + shift + rng.normal(0, 1, 3000) for lang, shift in (("de", 0), ("en", 0.08), ("fr", 0.08))}
    pairs = {(pair.first, pair.second): pair for pair in compare_language_pairs(_result(by_language), resamples=200)["m"]}
    assert pairs["de", "en"].is_certain
    assert pairs["de", "fr"].is_certain
    assert not pairs["en", "fr"].is_certain


def test_equal_languages_are_told_apart_no_more_often_than_chance():
    rng, wrong = np.random.default_rng(2), 0
    for _ in range(200):
        photos = rng.normal(size=60)
        by_language = {lang: photos + rng.normal(0, 0.5, 60) for lang in ("de", "en", "fr", "zh")}
        pairs = compare_language_pairs(_result(by_language), resamples=0)["m"]
        wrong += any(pair.is_certain for pair in pairs)
    assert wrong / 200 <= 0.09


def test_it_says_which_language_is_the_worst_and_whether_that_is_chance():
    rng = np.random.default_rng(3)
    photos = rng.normal(size=100)
    worse = {lang: photos + shift + rng.normal(0, 0.1, 100) for lang, shift in (("de", -1), ("en", 0), ("fr", 0))}
    result = _result(worse)
    said = lowest_language(compare_language_pairs(result)["m"], result["m"].by_language)
    assert said.startswith("German has the lowest percentiles, and that is not chance")
    same = _result({lang: photos + rng.normal(0, 1, 100) for lang in ("de", "en", "fr")})
    said = lowest_language(compare_language_pairs(same)["m"], same["m"].by_language)
    assert "may be chance" in said


def test_scores_that_are_not_on_one_scale_call_no_language_the_worst():
    rng = np.random.default_rng(3)
    photos = rng.normal(size=100)
    result = _result({lang: photos + shift for lang, shift in (("de", -1), ("en", 0), ("fr", 0))})
    result.language_pairs = compare_language_pairs(result)
    assert result.lowest_languages() == []
    assert not any("lowest" in sentence for table in result.tables() for sentence in table.notes if "percentiles" in sentence)


def test_cider_has_no_score_over_languages_with_different_tokens():
    rows = [
        {"id": str(number), "caption": f"{caption} {number}", "references": [f"{reference} {number}"], "lang": lang}
        for number, (caption, reference, lang) in enumerate([("a dog", "a dog", "en"), ("ein Hund", "der Hund", "de")] * 3)
    ]
    result = package.score(rows, ["cider", "bleu1"], resamples=10)
    assert np.isnan(result["cider"].corpus)
    assert not np.isnan(result["bleu1"].corpus)
    assert any("no score over all 2 languages" in warning for warning in result.warnings)
    pooled = package.score(rows, ["cider"], resamples=10, pool_languages=True)
    assert pooled["cider"].corpus > 0
    assert result["cider"].by_language == pooled["cider"].by_language


def test_drift_is_seen_where_there_is_some_and_else_not():
    rng = np.random.default_rng(4)
    old = _result({"en": rng.normal(0.5, 0.1, 400)})
    assert compare_runs(old, _result({"en": rng.normal(0.5, 0.1, 400)}))["m", "all"].verdict == "no change seen"
    assert compare_runs(old, _result({"en": rng.normal(0.46, 0.1, 400)}))["m", "all"].verdict == "lower"
    assert compare_runs(old, _result({"en": rng.normal(0.5, 0.25, 400)}))["m", "all"].verdict == "spread differently"
    assert compare_runs(old, _result({"en": rng.normal(0.5, 0.25, 3)}))["m", "all"].verdict == "too few"


def test_drift_is_tested_in_each_language():
    rng = np.random.default_rng(5)
    old = _result({lang: rng.normal(0.5, 0.1, 300) for lang in ("de", "en")})
    new = _result({"de": rng.normal(0.4, 0.1, 300), "en": rng.normal(0.5, 0.1, 300)})
    result = compare_runs(old, new)
    assert result["m", "de"].verdict == "lower"
    assert result["m", "en"].verdict == "no change seen"


def test_runs_of_other_metrics_or_options_are_said(caplens, write, tmp_path):
    files = {}
    for name, metric in (("a", "length"), ("b", "bleu1"), ("c", "length")):
        rows = [{"id": f"{name}{n}", "caption": "a dog " + "runs " * (n % 5), "references": ["a dog"]} for n in range(12)]
        files[name] = tmp_path / f"{name}.json"
        assert caplens("score", write(f"{name}.jsonl", rows), "-m", metric, "-o", files[name]).status == 0
    said = caplens("drift", files["a"], files["b"])
    assert said.status == 2
    assert "no metric in common" in said.err
    said = caplens("drift", files["a"], files["c"], "-o", tmp_path / "drift.json")
    assert said.status == 0
    assert "no change seen" in said.out
    assert "the two runs are one file" in caplens("drift", files["a"], files["a"]).err
    assert "not of 'caplens score'" in caplens("drift", tmp_path / "drift.json", files["a"]).err
    with pytest.raises(InputError):
        package.drift(tmp_path / "nothing.json", files["a"])


def test_a_drop_can_end_a_pipeline(caplens, write, tmp_path):
    for name, words in (("old", 9), ("new", 3)):
        rows = [{"id": f"{name}{n}", "caption": "word " * (words + n % 3)} for n in range(40)]
        caplens("score", write(f"{name}.jsonl", rows), "-m", "length", "-o", tmp_path / f"{name}.json")
    assert caplens("drift", tmp_path / "old.json", tmp_path / "new.json", "--fail-on-drop").status == 4
    assert caplens("drift", tmp_path / "new.json", tmp_path / "old.json", "--fail-on-drop").status == 0
