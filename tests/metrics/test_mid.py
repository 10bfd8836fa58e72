"""MID beside its definition: log p(x, y) - log p(x) - log p(y) under normal distributions, as scipy computes it."""

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import caplens as package
from caplens.errors import InputError
from caplens.metrics import get_metric
from caplens.metrics.mid import Mid
from caplens.metrics.pair_statistics import LEDOIT_WOLF, PairGaussians, PairStatistics

EXAMPLES = Path(str(files("caplens").joinpath("examples")))
DIM = 6


def vectors(seed, count=400, dim=DIM):
    """Images and texts that are related."""
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(count, dim))
    texts = images @ rng.normal(size=(dim, dim)) * 0.5 + rng.normal(size=(count, dim))
    return [part / np.linalg.norm(part, axis=1, keepdims=True) for part in (images, texts)]


def statistics_of(images, texts, portion=None):
    statistics = PairStatistics(images.shape[1], "a model", "0" * 64)
    for start in range(0, len(images), portion or len(images)):
        end = start + (portion or len(images))
        statistics.add(images[start:end], texts[start:end])
    return statistics


def by_scipy(images, texts, fitted_images, fitted_texts, shrinkage=0.0):
    fitted = np.concatenate([fitted_images, fitted_texts], axis=1)
    mean, covariance = fitted.mean(0), np.cov(fitted.T) + shrinkage * np.eye(fitted.shape[1])
    half = images.shape[1]
    first, second = slice(0, half), slice(half, None)
    pairs = np.concatenate([images, texts], axis=1)
    return (
        multivariate_normal(mean, covariance).logpdf(pairs)
        - multivariate_normal(mean[first], covariance[first, first]).logpdf(images)
        - multivariate_normal(mean[second], covariance[second, second]).logpdf(texts)
    )


@pytest.mark.parametrize("shrinkage", [0.0, 5e-4])
@pytest.mark.parametrize("portion", [None, 1, 7])
def test_it_is_the_pointwise_mutual_information_of_normal_distributions(shrinkage, portion):
    fitted, judged = vectors(0), vectors(1, 50)
    gaussians = PairGaussians(statistics_of(*fitted, portion), shrinkage)
    np.testing.assert_allclose(gaussians.pointwise(*judged), by_scipy(*judged, *fitted, shrinkage), rtol=0, atol=1e-8)


def test_statistics_in_portions_are_those_of_all():
    images, texts = vectors(0)
    statistics = statistics_of(images, texts, 13)
    pairs = np.concatenate([images, texts], axis=1)
    np.testing.assert_allclose(statistics.mean, pairs.mean(0), atol=1e-13)
    np.testing.assert_allclose(statistics.covariance(), np.cov(pairs.T), atol=1e-13)


@pytest.mark.parametrize("count", [20, 400])
def test_shrinkage_of_ledoit_and_wolf_is_that_of_the_paper(count):
    images, texts = vectors(0, count)
    pairs = np.concatenate([images, texts], axis=1)
    centred = pairs - pairs.mean(0)
    sample, size = centred.T @ centred / count, pairs.shape[1]
    scale = np.trace(sample) / size
    distance = np.square(sample - scale * np.eye(size)).sum()
    spread = sum(np.square(np.outer(row, row) - sample).sum() for row in centred) / count**2
    share = min(spread, distance) / distance
    unbiased = np.cov(pairs.T)
    expected = (1 - share) * unbiased + share * np.trace(unbiased) / size * np.eye(size)
    np.testing.assert_allclose(statistics_of(images, texts, 9).covariance(LEDOIT_WOLF), expected, atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), which=st.sampled_from([0, 1]))
def test_invertible_maps_of_images_or_of_texts_change_nothing(seed, which):
    rng = np.random.default_rng(seed)
    mapping = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0] * rng.uniform(0.5, 2, DIM)

    def mapped(parts):
        return [part @ mapping if place == which else part for place, part in enumerate(parts)]

    fitted, judged = vectors(seed, 100), vectors(seed + 1, 10)
    plain = PairGaussians(statistics_of(*fitted))
    other = PairGaussians(statistics_of(*mapped(fitted)))
    np.testing.assert_allclose(other.pointwise(*mapped(judged)), plain.pointwise(*judged), atol=1e-6)
    assert other.information == pytest.approx(plain.information, abs=1e-8)


def test_too_few_pairs_are_told():
    with pytest.raises(InputError, match="needs more pairs than that; there are 12"):
        PairGaussians(statistics_of(*vectors(0, 2 * DIM)))
    for shrinkage in (5e-4, LEDOIT_WOLF):
        assert np.isfinite(PairGaussians(statistics_of(*vectors(0, 2 * DIM)), shrinkage).information)


def test_pairs_that_lie_in_a_plane_are_told():
    images, texts = vectors(0)
    images[:, 0] = images[:, 1]
    with pytest.raises(InputError, match="do not span the space"):
        PairGaussians(statistics_of(images, texts))


def test_statistics_are_read_as_they_were_written(tmp_path):
    statistics = statistics_of(*vectors(0))
    statistics.save(tmp_path / "mid.npz")
    again = PairStatistics.load(tmp_path / "mid.npz")
    assert again.label == statistics.label
    np.testing.assert_array_equal(again.covariance(LEDOIT_WOLF), statistics.covariance(LEDOIT_WOLF))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no statistics", "object", "shape"])
def test_files_that_are_no_statistics_are_told(tmp_path, content):
    path = tmp_path / "mid.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        mean = np.array([{}, 1], dtype=object) if content == "object" else np.zeros(3)
        np.savez(
            path,
            mean=mean,
            scatter=np.zeros((2, 2)),
            lengths=np.zeros(2),
            weighted=np.zeros(2),
            model="",
            fingerprint="",
            count=1,
        )
    with pytest.raises(InputError, match="caplens mid fit"):
        PairStatistics.load(path)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Statistics of the example's captions with caplens-mini."""
    path = tmp_path_factory.mktemp("mid") / "mid.npz"
    package.fit_mid(EXAMPLES / "good.jsonl", images=EXAMPLES, model="caplens-mini", keep_store=False).save(path)
    return path


def test_good_captions_score_above_bad_ones(fitted, caplens):
    said = caplens(
        "score", EXAMPLES / "good.jsonl", "--images", EXAMPLES, "-m", "mid", "--mid", fitted, "--shrinkage", "1e-3", "-f", "json"
    )
    assert said.status == 0, said.err
    result = json.loads(said.out)["metrics"]["mid"]
    assert np.isfinite(result["corpus"])
    assert "|shrinkage:0.001|" in result["signature"]
    assert "|pairs:" in result["signature"]


def test_statistics_of_python_are_those_of_a_file(fitted):
    metrics = [get_metric("mid", mid=mid, shrinkage=1e-3) for mid in (fitted, PairStatistics.load(fitted))]
    assert all(isinstance(metric, Mid) for metric in metrics)
    samples = [replace(sample, image=EXAMPLES / str(sample.image)) for sample in package.SampleFile(EXAMPLES / "good.jsonl")]
    first, second = (metric(samples).values for metric in metrics)
    np.testing.assert_array_equal(first, second)


def test_fitting_on_the_command_line(tmp_path, caplens, fitted):
    target = tmp_path / "mid.npz"
    said = caplens("mid", "fit", EXAMPLES / "good.jsonl", target, "--images", EXAMPLES)
    assert said.status == 0, said.err
    first, second = PairStatistics.load(target), PairStatistics.load(fitted)
    assert first.count == second.count
    np.testing.assert_allclose(first.covariance(), second.covariance(), atol=1e-6)


def test_errors_of_use(tmp_path, caplens, fitted):
    captions = EXAMPLES / "good.jsonl"
    few = caplens("score", captions, "--images", EXAMPLES, "-m", "mid", "--mid", fitted)
    assert few.status == 2
    assert "--shrinkage" in few.err
    odd = caplens("score", captions, "--images", EXAMPLES, "-m", "mid", "--mid", fitted, "--shrinkage", "-1")
    assert "the shrinkage is a number of at least 0, or ledoit-wolf" in odd.err
    other = caplens("score", captions, "--images", EXAMPLES, "-m", "mid", "--mid", fitted, "--model", "caplens-mini@1")
    assert "were fitted with caplens-mini, not with caplens-mini@1" in other.err
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"id": "1", "caption": "a dog"}\n', encoding="utf-8")
    assert "no pairs" in caplens("mid", "fit", empty, tmp_path / "x.npz").err
    assert not (tmp_path / "x.npz").exists()
