"""What a seventh attacker met: each test failed before."""

import io
import json
import time
import zipfile

import numpy as np
import pytest
from extras import need
from PIL import Image

import caplens as package
from caplens.data import Sample
from caplens.embed import Text
from caplens.embed.images import UnreadableError
from caplens.embed.videos import FrameChoice, VideoClip, clip_of
from caplens.errors import InputError
from caplens.metrics.pair_statistics import PairStatistics
from caplens.perturbation import get_perturbation
from caplens.report import heatmaps


@pytest.fixture
def frames(tmp_path):
    """A video of two frames."""
    folder = tmp_path / "video"
    folder.mkdir()
    for number in range(2):
        Image.new("RGB", (16, 16), (80 * number, 0, 0)).save(folder / f"{number}.png")
    return folder


@pytest.fixture
def scored_video(frames, tmp_path, caplens):
    """A result of EMScore, and its content."""
    rows = tmp_path / "v.jsonl"
    rows.write_text(json.dumps({"id": "v", "caption": "a dog runs", "video": "video"}), encoding="utf-8")
    result = tmp_path / "em.json"
    assert caplens("score", rows, "--images", tmp_path, "-m", "emscore", "--frames", 2, "--no-store", "-o", result).status == 0
    return result, json.loads(result.read_text(encoding="utf-8"))


def with_signature(scored_video, old, new):
    path, content = scored_video
    text = json.dumps(content)
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_a_report_downloads_no_model_that_a_result_names(scored_video, tmp_path, caplens, monkeypatch):
    need("huggingface_hub")
    import huggingface_hub

    def asked(*_, **__):
        raise AssertionError("the hub was asked")

    monkeypatch.setattr(huggingface_hub, "HfApi", asked)
    path = with_signature(scored_video, "model:caplens-mini@", "model:hf:evil/model@")
    said = caplens("report", path, "--moments", "v", "-o", tmp_path / "r.html")
    assert said.status == 2
    assert "evil/model" in said.err


@pytest.mark.parametrize("label", ["300000000", "nanfps", "0", "1e9"])
def test_a_report_looks_at_no_more_frames_than_scoring_does(scored_video, tmp_path, caplens, label):
    path = with_signature(scored_video, "|frames:2|", f"|frames:{label}|")
    said = caplens("report", path, "--moments", "v", "-o", tmp_path / "r.html")
    assert said.status == 2
    assert len(said.err.strip().splitlines()) == 1


def test_a_signature_of_any_length_is_read_quickly(scored_video, tmp_path, caplens):
    path = with_signature(scored_video, "emscore|model:", "emscore" + "|model:" * 40000)
    start = time.monotonic()
    assert caplens("report", path, "--moments", "v", "-o", tmp_path / "r.html").status == 2
    assert time.monotonic() - start < 10


def test_a_small_file_of_statistics_takes_no_gigabytes(tmp_path):
    def header(shape, descr="|i1"):
        out = io.BytesIO()
        np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
        return out.getvalue()

    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("mean.npy", header((10**9,)) + bytes(1000))
    with pytest.raises(InputError, match="'mean' has another type or shape"):
        PairStatistics.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"count": np.array(0)},
        {"count": np.array(-5)},
        {"scatter": np.triu(np.ones((8, 8)))},
        {"lengths": np.array([1.0, np.nan])},
        {"scatter": np.ones((8, 8), dtype=np.complex128)},
        {"model": np.array("m" * 100_000)},
    ],
)
def test_statistics_that_cannot_be_are_told(tmp_path, change):
    statistics = PairStatistics(4, "m", "0" * 64)
    rng = np.random.default_rng(0)
    statistics.add(rng.normal(size=(50, 4)), rng.normal(size=(50, 4)))
    statistics.save(tmp_path / "mid.npz")
    content = dict(np.load(tmp_path / "mid.npz"))
    np.savez(tmp_path / "bad.npz", **(content | change))
    with pytest.raises(InputError, match="statistics"):
        PairStatistics.load(tmp_path / "bad.npz")


@pytest.mark.parametrize("name", ["../secret.png", "/secret.png"])
def test_a_generated_image_outside_its_folder_is_told(tmp_path, name):
    need("torch")
    from caplens.training.recipes.pacs import Tuples

    folder = tmp_path / "made"
    folder.mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    target = str(tmp_path) + name if name.startswith("/") else name
    sample = Sample("1", "a dog", image="a.jpg", meta={"made_image": target, "made_caption": "a cat"})
    with pytest.raises(InputError, match="outside the folder"):
        Tuples([sample], folder)


def test_photos_of_one_size_with_other_content_are_other_data(tmp_path):
    need("torch")
    from caplens.training.recipes.pairs import Photos

    for name, colour in (("cat", "red"), ("dog", "blue")):
        Image.new("RGB", (8, 8), colour).save(tmp_path / f"{name}.bmp")
    samples = [Sample(name, f"a {name}", image=str(tmp_path / f"{name}.bmp")) for name in ("cat", "dog")]
    before = Photos(samples).fingerprint
    assert Photos(samples).fingerprint == before
    cat, dog = ((tmp_path / f"{name}.bmp").read_bytes() for name in ("cat", "dog"))
    (tmp_path / "cat.bmp").write_bytes(dog)
    (tmp_path / "dog.bmp").write_bytes(cat)
    assert Photos(samples).fingerprint != before


def test_other_captions_for_idf_have_another_signature(frames, tmp_path):
    sample = Sample("v", "a dog runs", video=str(frames))
    signatures = set()
    for text in ("a dog", "a cat"):
        (tmp_path / "idf.jsonl").write_text(json.dumps({"id": "1", "caption": text}), encoding="utf-8")
        result = package.score([sample], ["emscore"], idf=tmp_path / "idf.jsonl", keep_store=False)
        signatures.add(result["emscore"].signature)
    assert len(signatures) == 2


def test_captions_for_idf_without_any_text_are_told(frames, tmp_path):
    (tmp_path / "idf.jsonl").write_text(json.dumps({"id": "1", "caption": " "}), encoding="utf-8")
    sample = Sample("v", "a dog runs", video=str(frames))
    with pytest.raises(InputError, match="no captions in the file"):
        package.score([sample], ["emscore"], idf=tmp_path / "idf.jsonl", keep_store=False)


def test_a_clip_outside_its_video_has_no_score():
    with pytest.raises(UnreadableError, match="before the clip starts"):
        VideoClip("v.mp4", 100.0).part([0.0, 1.0, 2.0])
    assert VideoClip("v.mp4", 2.5).part([0.0, 1.0, 2.0]) == range(2, 3)
    for meta, why in (({"start": 2, "end": 1}, "before it starts"), ({"start": True}, "number of seconds")):
        with pytest.raises(InputError, match=why):
            clip_of(Sample("1", "a dog", video="v.mp4", meta=meta))


def test_scores_of_a_file_have_no_published_values(tmp_path, caplens):
    rows = [{"imgid": f"{n}.jpg", "caption": "a dog " * n, "score": n} for n in range(1, 5)]
    (tmp_path / "vicr_test.json").write_text(json.dumps(rows), encoding="utf-8")
    ids = [sample.id for sample in package.benchmarks.get_benchmark("vicr").load(tmp_path, "mean").samples]
    scores = tmp_path / "cider.jsonl"
    scores.write_text("\n".join(json.dumps({"id": name, "score": n}) for n, name in enumerate(ids)), encoding="utf-8")
    said = caplens("bench", "vicr", "--data", tmp_path, "--scores", scores, "--resamples", 5, "-f", "json")
    assert json.loads(said.out)["results"]["cider"]["tau-c"]["published"] is None


@pytest.mark.parametrize(("text", "lang"), [("another " * 24000, "en"), ("la casa " * 12000, "it")])
def test_long_captions_are_perturbed_in_linear_time(text, lang):
    start = time.monotonic()
    get_perturbation("substitution")(text, lang)
    assert time.monotonic() - start < 10


def test_the_words_of_a_long_caption_are_shown_in_linear_time():
    from caplens.embed.word_vectors import word_vectors
    from caplens.metrics.options import ScoringOptions

    engine = ScoringOptions(keep_store=False).engine()
    start = time.monotonic()
    words = word_vectors(engine, "dog " * 60000)
    assert 0 < len(words.words) < 64
    assert time.monotonic() - start < 10
    assert engine.texts([Text("dog")]).vectors.shape[0] == 1


@pytest.mark.filterwarnings("error")
def test_a_word_without_tokens_has_no_row():
    from caplens.embed.word_vectors import word_vectors
    from caplens.metrics.options import ScoringOptions

    words = word_vectors(ScoringOptions(keep_store=False).engine(), "...")
    assert np.isfinite(words.vectors).all()
    assert len(words.words) == len(words.vectors)


@pytest.mark.parametrize("objects", [5, {"dog": 1}, ["dog", ""], ["dog", 3], ["x"] * 2000, "[dog"])
@pytest.mark.parametrize("protocol", ["paper", "gentle"])
def test_objects_that_are_none_are_told(objects, protocol, write, caplens, tmp_path):
    path = write("c.jsonl", [{"id": "1", "caption": "a dog and a cat", "objects": objects}])
    said = caplens("perturb", path, tmp_path / "o.jsonl", "--perturbation", "substitution", "--protocol", protocol)
    assert said.status == 2
    assert "'objects'" in said.err


def test_objects_may_be_missing_or_json_in_a_cell(write, caplens, tmp_path):
    path = write("c.jsonl", [{"id": "1", "caption": "a dog and a cat", "objects": None}])
    assert caplens("perturb", path, tmp_path / "o.jsonl").status == 0
    (tmp_path / "c.csv").write_text('id,caption,objects\n1,a dog and a cat,"[""dog"",""cat""]"\n', encoding="utf-8")
    assert caplens("perturb", tmp_path / "c.csv", tmp_path / "o.jsonl", "--perturbation", "substitution").status == 0
    assert "a cat and a dog" in (tmp_path / "o.jsonl").read_text(encoding="utf-8")


def test_fitting_says_what_was_left_out_and_ends_with_3(tmp_path, caplens):
    Image.new("RGB", (32, 32)).save(tmp_path / "a.png")
    rows = [{"id": "1", "caption": "a dog", "image": "a.png"}, {"id": "2", "caption": "a cat", "image": "no.png"}]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    said = caplens("mid", "fit", tmp_path / "c.jsonl", tmp_path / "mid.npz", "--images", tmp_path, "--no-store")
    assert said.status == 3
    assert (tmp_path / "mid.npz").exists()


@pytest.mark.parametrize("sign", ["\x1b", "\x00", "\ufffe", "\uffff", "\x85"])
def test_plots_are_well_formed_whatever_a_word_contains(sign):
    from xml.etree import ElementTree

    svg = heatmaps.heatmap([f"a{sign}b"], ["x"], np.ones((1, 1)), [["1"]])
    ElementTree.fromstring(svg)


def test_ratings_of_videos_are_numbers(tmp_path):
    benchmark = package.benchmarks.get_benchmark("vatex-eval")
    files = {"candidates_list": ["a", "b"], "gts_list": [["x", "y"], ["z"]], "video_ids": ["1", "2"]}
    for bad in ("Infinity", "NaN", "true"):
        for name, content in files.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        (tmp_path / "human_scores.json").write_text(f"[1, 2, 3, 4, 5, {bad}]", encoding="utf-8")
        with pytest.raises(InputError):
            benchmark.load(tmp_path, "9-refs")
    (tmp_path / "human_scores.json").write_text("[1, 2, 3, 4, 5, 4]", encoding="utf-8")
    loaded = benchmark.load(tmp_path, "2-refs")
    assert loaded.incomplete == {"tau-b", "spearman"}
    assert "1 captions have fewer than 2 references." in loaded.warnings


def test_ratings_that_contradict_each_other_are_counted(tmp_path):
    row = ";" * 27 + "x.jpg;a;b;c;{};2;3"
    for part in ("8k", "30k", "coco"):
        lines = ["head", row.format(1), row.format(5)] if part == "8k" else ["head"]
        (tmp_path / f"{part}_correctness.csv").write_text("\n".join(lines), encoding="utf-8")
    loaded = package.benchmarks.get_benchmark("composite").load(tmp_path, "unique")
    assert any("appear twice for a photo with different ratings" in text for text in loaded.warnings)


def test_the_number_of_frames_has_a_limit():
    assert FrameChoice(2).label == "2"
    with pytest.raises(InputError, match="between 1 and 4,096"):
        package.ScoringOptions(frames=10**9)
