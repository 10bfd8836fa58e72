import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import caplens as package
from caplens.benchmarks import RatedSamples, RatingBenchmark, get_benchmark
from caplens.benchmarks.evaluate import evaluate_metrics
from caplens.data import Sample
from caplens.metrics import get_metric

METRICS = ["bleu1", "bleu4", "rouge-l", "cider"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flickr8k-expert", "flickr8k-cf"])
def test_the_published_correlations_are_reproduced(flickr8k, golden, name):
    found = package.bench(name, flickr8k, METRICS, resamples=20)
    for coefficient, published in golden("flickr8k")[name].items():
        for metric, value in published.items():
            estimate = found.results[metric][coefficient]
            assert estimate.value == pytest.approx(value, abs=0.1), (metric, coefficient)
            assert estimate.published == value
            assert estimate.low < estimate.value < estimate.high
    if name == "flickr8k-expert":
        for coefficient, value in golden("flickr8k")["cider on flickr8k-expert"].items():
            assert found.results["cider"][coefficient].value == pytest.approx(value, abs=0.001)
    assert (found.rows, found.images, found.warnings) == ({"flickr8k-expert": 16992, "flickr8k-cf": 47830}[name], 1000, [])


def test_how_ratings_are_aggregated_moves_the_number(flickr8k):
    by = {
        p: package.bench("flickr8k-expert", flickr8k, ["bleu1"], protocol=p, resamples=5) for p in ("expanded", "mean", "median")
    }
    assert [results.rows for results in by.values()] == [16992, 5664, 5664]
    values = [results.results["bleu1"]["tau-c"].value for results in by.values()]
    assert max(values) - min(values) > 0.5
    assert by["mean"].results["bleu1"]["tau-c"].published is None


@pytest.fixture
def tiny(tmp_path):
    """The original layout of Flickr8k, with three photos."""
    captions = {"x": "a dog", "y": "a cat", "z": "a man"}
    lines = [f"{photo}.jpg#{n}\t{text} number {n} .\n" for photo, text in captions.items() for n in range(2)]
    (tmp_path / "Flickr8k.token.txt").write_text("".join(lines))
    (tmp_path / "ExpertAnnotations.txt").write_text("x.jpg\ty.jpg#0\t1\t2\t2\nx.jpg\tx.jpg#0\t4\t4\t4\ny.jpg\tz.jpg#1\t1\t1\t4\n")
    with gzip.open(tmp_path / "CrowdFlowerAnnotations.txt.gz", "wt") as out:
        out.write("x.jpg\tx.jpg#1\t1\t3\t0\nx.jpg\ty.jpg#0\t0.25\t1\t3\n")
    return tmp_path


def test_the_original_files_are_read_by_their_protocol(tiny):
    expert = get_benchmark("flickr8k-expert")
    expanded = expert.load(tiny, "expanded")
    assert expanded.human.tolist() == [1, 2, 2, 1, 1, 4]
    assert [sample.group for sample in expanded.samples] == ["x.jpg"] * 3 + ["y.jpg"] * 3
    assert expanded.samples[0].caption == "a cat number 0 ."
    assert expanded.samples[0].references == ("a dog number 0 .", "a dog number 1 .")
    assert expert.load(tiny, "mean").human == pytest.approx([5 / 3, 2])
    assert expert.load(tiny, "median").human.tolist() == [2, 1]
    assert expanded.warnings == ["3 rows of expert ratings where the published data set has 5,822."]

    crowd = get_benchmark("flickr8k-cf")
    loaded = crowd.load(tiny, "mean")
    assert loaded.human.tolist() == [1, 0.25]
    # The photo's own caption was judged, so it is no reference of that photo, in either row.
    assert [sample.references for sample in loaded.samples] == [("a dog number 0 .",)] * 2
    assert crowd.load(tiny, "expanded").human.tolist() == [1, 1, 1, 1, 0, 0, 0]
    assert crowd.load(tiny, "median").human.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("ExpertAnnotations.txt", "x.jpg\ty.jpg#0\t1\t2\n", "line 1: 4 tab-separated fields where 5 are expected"),
        ("ExpertAnnotations.txt", "\nx.jpg\ty.jpg#0\t1\t2\tbad\n", "line 2: the ratings .* are not numbers"),
        ("ExpertAnnotations.txt", "x.jpg\ty.jpg#0\t1\t2\tnan\n", "line 1: the ratings .* are not numbers"),
        ("ExpertAnnotations.txt", "x.jpg\ty.jpg#9\t1\t2\t3\n", "'y.jpg#9' is not in the captions file"),
        ("ExpertAnnotations.txt", "q.jpg\ty.jpg#0\t1\t2\t3\n", "'q.jpg' is not in the captions file"),
        ("Flickr8k.token.txt", "x.jpg\ta dog\n", "'x.jpg' is not a caption id"),
    ],
)
def test_broken_files_are_told_by_line(tiny, file, text, words):
    (tiny / file).write_text(text)
    with pytest.raises(package.InputError, match=words):
        get_benchmark("flickr8k-expert").load(tiny, "expanded")


def test_translations_take_the_place_of_captions_and_references(tiny, caplens):
    (tiny / "captions").mkdir()
    lines = ["x.jpg\t0\tein Hund 0", "x.jpg\t1\tein Hund 1", "y.jpg\t0\teine\tKatze 0", "y.jpg\t1\teine Katze 1"]
    (tiny / "captions" / "de.mt.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    loaded = get_benchmark("flickr8k-expert").load(tiny, "expanded", "de")
    # The caption z.jpg#1 has no translation.
    assert loaded.human.tolist() == [1, 2, 2]
    assert loaded.samples[0].caption == "eine\tKatze 0"
    assert loaded.samples[0].references == ("ein Hund 0", "ein Hund 1")
    assert loaded.samples[0].lang == "de"
    assert loaded.warnings[1:] == ["3 judgements are about captions without a translation and are left out."]
    # As in English, the photo's own judged caption is no reference.
    assert get_benchmark("flickr8k-cf").load(tiny, "mean", "de").samples[1].references == ("ein Hund 0",)

    said = caplens("bench", "flickr8k-expert", "--data", tiny, "--lang", "de", "-m", "length", "--resamples", 5)
    assert "captions in German" in said.out
    assert "Published" not in said.out
    assert (
        "the translation of the captions into 'fr' is missing"
        in caplens("bench", "flickr8k-cf", "--data", tiny, "--lang", "fr").err
    )
    (tiny / "captions" / "tr.mt.tsv").write_text("w.jpg\t0\tbir adam\n", encoding="utf-8")
    assert "none of the captions that were judged" in caplens("bench", "flickr8k-cf", "--data", tiny, "--lang", "tr").err


def test_ratings_of_one_photo_are_resampled_together():
    class Copies(RatingBenchmark):
        name, protocols, coefficients = "ratings", {"one": ""}, ("pearson",)
        folder, marker = "ratings", "ratings"

        def __init__(self, copies):
            self.copies = copies

        def load(self, data, protocol, lang="en"):
            generator = np.random.default_rng(0)
            human = generator.integers(1, 5, 60)
            lengths = human + generator.integers(0, 4, 60)
            samples = [
                Sample(f"{i}-{k}", "dog " * int(length), ("a dog",), image=f"{i}.jpg")
                for i, length in enumerate(lengths)
                for k in range(self.copies)
            ]
            return RatedSamples(samples, np.repeat(human, self.copies).astype(float))

    alone, twice = (
        evaluate_metrics(Copies(n), ".", [get_metric("length")], resamples=200).results["length"]["pearson"] for n in (1, 2)
    )
    assert twice[:3] == pytest.approx(alone[:3])
    assert (alone.points, twice.points) == (60, 120)


def test_undefined_coefficients_are_null_and_said(tiny, caplens):
    said = caplens("bench", "flickr8k-cf", "--data", tiny, "-m", "bleu1,length", "-f", "json", "--resamples", 5)
    found = json.loads(said.out)
    assert found["results"]["length"]["tau-b"]["value"] is None
    assert found["contrasts"][0]["difference"] is None
    assert any("no coefficient is defined for" in warning for warning in found["warnings"])


def test_contrasts_between_metrics_are_on_the_same_resamples(flickr8k):
    found = package.bench("flickr8k-expert", flickr8k, ["cider", "length"], resamples=50)
    contrast = next(c for c in found.contrasts if c.measure == "tau-c")
    values = found.results
    assert contrast.difference == pytest.approx(values["cider"]["tau-c"].value - values["length"]["tau-c"].value)
    assert contrast.low < contrast.difference < contrast.high
    assert contrast.p < 0.05
    assert np.isfinite(contrast.p)


@pytest.fixture(scope="module")
def photos(flickr8k, tmp_path_factory):
    """The test photos in a folder."""
    if not (flickr8k / "images.zip").is_file():
        from conftest import missing_data

        missing_data("flickr8k/images.zip")
    folder = tmp_path_factory.mktemp("photos")
    wanted = {Path(name).stem for name in (flickr8k / "test.txt").read_text(encoding="utf-8").split()}
    with zipfile.ZipFile(flickr8k / "images.zip") as archive:
        for name in archive.namelist():
            if Path(name).stem in wanted:
                (folder / Path(name).name).write_bytes(archive.read(name))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "lang", "coefficient", "least"),
    [
        ("flickr8k-expert", "en", "tau-c", {"clipscore": 45.5, "refclipscore": 52.0}),
        ("flickr8k-expert", "ja", "tau-c", {"clipscore": 43.5}),
        ("flickr8k-expert", "tr", "tau-c", {"clipscore": 43.5}),
        ("flickr8k-cf", "en", "tau-b", {"clipscore": 28.5, "refclipscore": 34.0}),
    ],
)
def test_caplens_mini_agrees_with_people_better_than_cider(flickr8k, photos, name, lang, coefficient, least):
    """Trials on the same data reached this with a tower of the same size; CIDEr has 43.9 and 24.6."""
    found = package.bench(name, flickr8k, list(least), images=photos, lang=lang, resamples=1).results
    for metric, value in least.items():
        assert found[metric][coefficient].value >= value
