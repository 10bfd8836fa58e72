"""Several benchmarks, languages, protocols and models in one run, on real files where they are at hand."""

import json

import numpy as np
import pytest
from PIL import Image

import caplens as package
from caplens.benchmarks import get_benchmark
from caplens.benchmarks.leakage import find_leaks
from caplens.comparison.languages import correlate_languages, read_quality


def test_pascal_50s_is_reproduced(benchmarks, golden):
    metrics = ["length", "bleu1", "bleu4", "rouge-l", "cider"]
    found = package.bench("pascal-50s", benchmarks / "pascal50s", metrics, resamples=5).results
    published = next(one["values"] for one in golden("benchmarks") if one["benchmark"] == "pascal-50s")
    off = {
        (metric, measure): abs(found[metric][measure].value - published[measure][metric])
        for measure in ("HC", "HI", "HM", "MM", "mean")
        for metric in metrics
    }
    # The file holds one draw of references; papers average over five. Half the ties of `length` are a coin's, on average.
    assert off["length", "mean"] < 0.5
    assert all(off[metric, "mean"] < 0.8 for metric in metrics)
    assert off.pop(("bleu4", "MM")) < 2.5
    assert all(far < 1.5 for far in off.values()), off


def test_the_valid_pairs_of_valse_are_as_many_as_published(benchmarks):
    found = package.bench("valse", benchmarks, ["length"], resamples=5)
    points = {name: estimate.points for name, estimate in found.results["length"].items()}
    counts = {"existence": 505, "plurals": 851, "counting-small-quant": 900, "actant-swap": 949, "foil-it": 943}
    assert points == {**counts, "mean": sum(counts.values())}
    assert len(found.warnings) == 1
    # A foil of these instruments has as many words as the caption.
    assert found.results["length"]["foil-it"].ties == 100


def test_every_language_of_marvl_and_xvnli_is_read(benchmarks):
    suite = package.bench_many(["marvl", "xvnli"], benchmarks, ["length", "bleu1"], resamples=5)
    found = suite.results
    assert [(one.benchmark, one.lang) for one in found] == [
        *(("marvl", lang) for lang in ("id", "sw", "ta", "tr", "zh")),
        *(("xvnli", lang) for lang in ("en", "ar", "es", "fr", "ru")),
    ]
    assert not suite.failed
    # MaRVL has no references and one statement for all its photos, so that its length tells nothing.
    assert list(found[0].results) == ["length"]
    assert found[0].results["length"]["accuracy 1"][:1] == (0.0,)
    assert all("statements where" not in warning for one in found for warning in one.warnings)
    assert found[5].results["bleu1"]["accuracy 1"].value > 50


@pytest.fixture
def collection(tmp_path):
    """A folder with two data sets, one of which has photos."""
    (tmp_path / "valse").mkdir()
    row = {"caption": "two dogs run", "foil": "a dog", "image_file": "1.jpg", "mturk": {"caption": 3}}
    (tmp_path / "valse" / "existence.json").write_text(json.dumps({"a": row}), encoding="utf-8")
    folder = tmp_path / "benchmarks" / "xvnli"
    folder.mkdir(parents=True)
    labels = ("entailment", "neutral", "contradiction")
    for lang, word in (("en", "dog"), ("fr", "chien")):
        # About the second photo the French statements are as long as the English ones are short.
        rows = [
            {
                "gold_label": label,
                "sentence1": f"{word}{photo}",
                "sentence2": " ".join([f"{word}{photo}"] * (n + 1 if (lang, photo) == ("fr", "12") else 3 - n)),
                "Flikr30kID": photo,
                "pairID": f"{photo}{n}",
            }
            for photo in ("11", "12")
            for n, label in enumerate(labels)
        ]
        (folder / f"{lang}.test.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    photos = tmp_path / "photos"
    photos.mkdir()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)).save(photos / "11_abc.png")
    return tmp_path


def test_bench_all_runs_what_is_there_and_says_what_is_not(collection, caplens):
    said = caplens("bench", "all", "--data", collection, "--images", collection / "photos", "-f", "json", "--resamples", 5)
    assert said.status == 0, said.err
    found = json.loads(said.out)
    ran = {(one["benchmark"], one["lang"]): one for one in found["benchmarks"]}
    assert set(ran) == {("valse", "en"), ("xvnli", "en"), ("xvnli", "fr")}
    # Of the two photos one is there, under its name in another collection.
    assert ran["xvnli", "en"]["counts"] == {"rows": 3, "images": 1, "failed": 0, "without_image": 3}
    assert "clipscore" in ran["xvnli", "fr"]["results"]
    # VALSE has no references, and its photos are not there.
    assert list(ran["valse", "en"]["results"]) == ["length"]
    assert any("clipscore, refclipscore left out: its images are missing" in text for text in ran["valse", "en"]["warnings"])
    assert found["not_run"]["composite"] == "its files are not at hand"
    assert [one["langs"] for one in found["across_languages"]] == [["en", "fr"]]
    table = caplens("bench", "all", "--data", collection, "-m", "length", "--resamples", 5)
    assert "xvnli, protocol order, by language" in table.out
    assert "the files of flickr8k-expert, " in table.err


def test_a_broken_benchmark_does_not_stop_the_others(collection, caplens):
    (collection / "valse" / "existence.json").write_text('{"a": {"caption": "a dog"}}', encoding="utf-8")
    said = caplens("bench", "all", "--data", collection, "-m", "length", "--resamples", 5, "-f", "json")
    assert said.status == 3
    assert "has no caption, foil, image_file or mturk" in json.loads(said.out)["not_run"]["valse (en, valid)"]
    assert "valse (en, valid) was not run" in said.err
    empty = collection / "photos"
    assert "there are no files of any benchmark" in caplens("bench", "all", "--data", empty, "-m", "length").err


def test_photos_that_are_not_there_are_told(collection, caplens):
    empty = collection / "valse"
    said = caplens("bench", "xvnli", "--data", collection, "--images", empty, "-m", "clipscore", "--resamples", 5)
    assert said.status == 2
    assert "none of the 2 images of xvnli is there" in said.err


def test_protocols_side_by_side(flickr8k, caplens):
    said = caplens("bench", "flickr8k-expert", "--data", flickr8k, "-m", "bleu1,length", "--protocol", "all", "--resamples", 2)
    assert "tau-c by protocol" in said.out
    assert "32.32 (1)" in said.out


def test_several_models_in_one_run(collection, caplens):
    import shutil
    from importlib.resources import files

    twin = collection / "twin"
    shutil.copytree(str(files("caplens.backbones").joinpath("caplens-mini")), twin)
    said = caplens(
        "bench", "xvnli", "--data", collection, "--images", collection / "photos", "-m", "clipscore,bleu1", "--resamples", 5,
        "--model", "caplens-mini", "--model", twin, "-f", "json",
    )  # fmt: skip
    results = json.loads(said.out)["results"]
    first, second = (name for name in results if name.startswith("clipscore["))
    assert results[first] == results[second]
    assert set(results) == {first, second, "bleu1"}
    said = caplens("score", collection / "no.jsonl", "-m", "clipscore", "--model", "caplens-mini", "--model", twin)
    assert "one model at a time" in said.err


def test_scores_are_correlated_across_languages(collection, write):
    found = package.bench_many(["xvnli"], collection, ["length"], resamples=5).results
    french = found[1].captions
    qualities = zip(french, (4, 5, 6, 1, 2, 3), strict=True)
    rows = [{"id": text, "caption": text, "lang": "fr", "quality": quality} for text, quality in qualities]
    across = correlate_languages(found, read_quality(write("quality.jsonl", rows)))
    assert (across.langs, across.items) == (["en", "fr"], 6)
    # Lengths are 3 2 1 3 2 1 and 3 2 1 1 2 3; the worst two translations are the fourth and fifth, the best the second and third.
    for part, value in (("all", 0), ("low", -1), ("high", 1)):
        assert across.correlations["length"][part] == pytest.approx(np.array([[1, value], [value, 1]]))
    assert across.to_dict()["correlations"]["length"]["high"] == [[1, 1], [1, 1]]
    assert across.with_quality == {"en": 0, "fr": 6}
    with pytest.raises(package.InputError, match="line 1: there is no 'quality'"):
        read_quality(write("bad.jsonl", [{"caption": "x", "lang": "fr"}]))
    with pytest.raises(package.InputError, match="none of the qualities is about a caption of this run"):
        correlate_languages(found, {("fr", "something else"): 1.0})


def test_translations_of_expert_captions_are_judged_alike(flickr8k):
    found = package.bench_many(["flickr8k-expert"], flickr8k, ["length"], langs=["en", "ja", "tr"], resamples=2).results
    across = correlate_languages(found)
    english, japanese, turkish = across.correlations["length"]["all"]
    # Long captions have long translations.
    assert 0.5 < english[1] < 1
    assert 0.5 < english[2] < 1
    assert english[1] == japanese[0]
    assert turkish[2] == 1


def test_the_languages_of_flickr8k_are_those_with_judged_captions(flickr8k):
    assert get_benchmark("flickr8k-expert").languages(flickr8k) == ["en", "ja", "tr"]


def test_leaks_are_found_by_name_and_by_content(collection, caplens):
    photos = collection / "photos"
    training = collection / "training"
    training.mkdir()
    (training / "renamed.png").write_bytes((photos / "11_abc.png").read_bytes())
    (training / "12_other.jpg").write_bytes(b"something else")
    (photos / "12_abc.png").write_bytes(b"another content")
    found = find_leaks(get_benchmark("xvnli"), collection, training, photos)
    assert (found.same_name, found.same_content, found.compared) == (["12.jpg"], ["11.jpg"], 2)
    listed = collection / "train.txt"
    listed.write_text("folder/12.webp\nother.jpg\n", encoding="utf-8")
    said = caplens("leakage", "xvnli", "--data", collection, "--training", listed, "-f", "json")
    assert said.status == 3
    assert json.loads(said.out)["same_name"] == ["12.jpg"]
    for content, words in (("\n", "the list is empty"), ("12.jpg\ta dog\n", "line 1: this is not a list of images")):
        listed.write_text(content, encoding="utf-8")
        assert words in caplens("leakage", "xvnli", "--data", collection, "--training", listed).err
    assert (
        "there are no images in this folder"
        in caplens("leakage", "xvnli", "--data", collection, "--training", collection / "valse").err
    )


def test_no_test_photo_of_flickr8k_is_in_its_training_list(flickr8k):
    for list_, leaks in (("train.txt", 0), ("test.txt", 1000)):
        assert len(find_leaks(get_benchmark("flickr8k-expert"), flickr8k, flickr8k / list_).leaked) == leaks


def test_a_language_that_is_not_there_is_refused(collection, caplens):
    assert (
        "valse has no captions in 'ja' here; there are: en."
        in caplens("bench", "valse", "--data", collection, "--lang", "ja").err
    )
    assert "there are: en, fr." in caplens("bench", "xvnli", "--data", collection, "--lang", "de", "-m", "length").err


def test_a_wrong_folder_of_images_is_not_overlooked(collection, caplens):
    said = caplens("bench", "xvnli", "--data", collection, "--images", collection / "nothing")
    assert (said.status, "there is no such folder of images" in said.err) == (2, True)


def test_overall_is_the_mean_of_the_languages(collection, caplens):
    said = caplens("bench", "xvnli", "--data", collection, "-m", "length", "--lang", "all", "--resamples", 5)
    # All English statements are in the order of their lengths, and half of the French.
    assert ["accuracy", "1", "length", "100.0", "50.0", "75.0"] in [line.split() for line in said.out.splitlines()]
    assert (
        "--translation-quality is for several languages"
        in caplens("bench", "xvnli", "--data", collection, "-m", "length", "--translation-quality", _quality(collection)).err
    )


def _quality(folder):
    path = folder / "quality.tsv"
    path.write_text("lang\tcaption\tquality\nfr\tchien11\t0.5\n", encoding="utf-8")
    return path


def test_p_is_corrected_for_all_pairs(flickr8k):
    def p(metrics):
        found = package.bench("flickr8k-expert", flickr8k, metrics, resamples=50).contrasts
        return min(contrast.p for contrast in found if contrast.measure == "tau-c")

    # The smallest p of 50 resamples is 2/51; Holm multiplies the smallest of three by three.
    assert p(["cider", "length"]) == pytest.approx(2 / 51)
    assert p(["cider", "length", "bleu1"]) == pytest.approx(6 / 51)


def test_what_was_published_is_not_held_against_a_part(collection, flickr8k, caplens):
    found = package.bench("xvnli", collection, ["clipscore"], images=collection / "photos", resamples=5)
    assert found.results["clipscore"]["accuracy 1"].published is None
    said = caplens("bench", "flickr8k-expert", "--data", flickr8k, "-m", "cider", "--resamples", 2, "-f", "csv")
    rows = [dict(zip(said.out.splitlines()[0].split(","), line.split(","), strict=True)) for line in said.out.splitlines()[1:]]
    assert [(row["measure"], row["published"], round(float(row["within"]), 2)) for row in rows[:3]] == [
        ("tau-c", "43.9", 0.01), ("tau-b", "43.6", 0.0), ("spearman", "54.3", 0.05),
    ]  # fmt: skip


def test_a_metric_of_ones_own_is_judged_from_a_file(flickr8k, caplens, tmp_path):
    items = tmp_path / "items.jsonl"
    assert caplens("bench", "flickr8k-expert", "--data", flickr8k, "--items", items, "--protocol", "mean").status == 0
    rows = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 5664
    assert set(rows[0]) >= {"id", "image", "caption", "references", "ratings"}
    mine = tmp_path / "mine.jsonl"
    mine.write_text("\n".join(json.dumps({"id": row["id"], "score": row["ratings"][0]}) for row in rows), encoding="utf-8")
    said = caplens(
        "bench", "flickr8k-expert", "--data", flickr8k, "--protocol", "mean", "--scores", mine, "-m", "length",
        "--resamples", 5, "-f", "json",
    )  # fmt: skip
    found = json.loads(said.out)["results"]
    # The ratings themselves agree with people entirely.
    assert found["mine"]["spearman"]["value"] == pytest.approx(100)
    assert set(found) == {"mine", "length"}
    half = "\n".join(json.dumps({"id": row["id"], "score": row["ratings"][0]}) for row in rows[:100])
    mine.write_text(half, encoding="utf-8")
    said = caplens("bench", "flickr8k-expert", "--data", flickr8k, "--protocol", "mean", "--scores", mine, "--resamples", 5)
    # The default metrics are beside it, on the captions that all of them score.
    assert "5,564 captions were left out, because mine cannot score them: mine has no score for it." in said.err
    assert "cider" in said.out
    mine.write_text('{"id": "x", "score": 1}\n', encoding="utf-8")
    assert "mine has no score for it" in caplens("bench", "flickr8k-expert", "--data", flickr8k, "--scores", mine).err
    mine.write_text('{"id": "x", "score": "high"}\n', encoding="utf-8")
    assert "line 1: an 'id' and a 'score' that is a number" in caplens("bench", "valse", "--data", flickr8k, "--scores", mine).err
