"""Images of captions and captions of photos, by tiny models that are laid out as on the hub; a run that was stopped goes on."""

import json

import numpy as np
import pytest
from extras import need

need("torch")

import tiny_models
from PIL import Image

from caplens.captioners import load_captioner
from caplens.data import Sample
from caplens.errors import CaplensError, InputError
from caplens.training.augment import augment_captions, load_painter


class StoppedError(Exception):
    pass


class Maker:
    """Stands for both models: draws a colour for a caption and says how bright a photo is."""

    def __init__(self, most: int = 99) -> None:
        self.painted, self.described, self.most = [], [], most

    def paint(self, captions, seeds):
        if len(self.painted) >= self.most:
            raise StoppedError
        self.painted += captions
        return [Image.new("RGB", (8, 8), (seed % 255, 10, 10)) for seed in seeds]

    def describe(self, photos):
        self.described += photos
        return [f"brightness {np.asarray(photo).mean():.0f}" for photo in photos]


@pytest.fixture
def samples(tmp_path):
    made = []
    for number in range(3):
        path = tmp_path / f"{number}.png"
        Image.new("RGB", (12, 12), (40 * number, 40 * number, 40 * number)).save(path)
        made += [Sample(f"{number}{letter}", f"caption {letter} of {number}", image=path.name, lang="en") for letter in "ab"]
    return made


def test_a_stopped_run_goes_on(samples, tmp_path):
    whole, stopped, again = Maker(), Maker(most=4), Maker()
    arguments = {"seed": 3, "batch": 2}
    one = augment_captions(samples, tmp_path, tmp_path / "one", whole.paint, whole.describe, **arguments)
    with pytest.raises(StoppedError):
        augment_captions(samples, tmp_path, tmp_path / "two", stopped.paint, stopped.describe, **arguments)
    assert not (tmp_path / "two" / "captions.jsonl").exists()
    two = augment_captions(samples, tmp_path, tmp_path / "two", again.paint, again.describe, **arguments)
    assert len(stopped.painted) == 4
    assert again.painted == whole.painted[4:]
    assert one.read_text() == two.read_text()
    lines = [json.loads(line) for line in one.read_text().splitlines()]
    assert [line["made_caption"] for line in lines] == ["brightness 0"] * 2 + ["brightness 40"] * 2 + ["brightness 80"] * 2
    for line in lines:
        first, second = (Image.open(tmp_path / run / line["made_image"]) for run in ("one", "two"))
        assert first.tobytes() == second.tobytes()
    # Photos are described once, whatever their captions.
    assert len(whole.described) == 3


def test_a_line_that_was_being_written_is_made_again(samples, tmp_path):
    maker = Maker()
    place = augment_captions(samples, tmp_path, tmp_path / "out", maker.paint, maker.describe)
    before, described = place.read_text(), tmp_path / "out" / "described.jsonl"
    described.write_text(described.read_text()[:-9])
    assert augment_captions(samples, tmp_path, tmp_path / "out", maker.paint, maker.describe).read_text() == before


def test_bad_input_is_told(samples, tmp_path):
    maker = Maker()
    with pytest.raises(InputError, match="no caption has an image"):
        augment_captions([Sample("0", " ")], tmp_path, tmp_path / "out", maker.paint, maker.describe)
    with pytest.raises(InputError, match="no caption has an image"):
        augment_captions([Sample("none", "a dog")], tmp_path, tmp_path / "none", maker.paint, maker.describe)
    with pytest.raises(InputError, match="the captioner returns no text"):
        augment_captions(samples, tmp_path, tmp_path / "out", maker.paint, lambda photos: [""] * len(photos))
    gone = [Sample("1", "a dog", image="gone.png")]
    with pytest.raises(InputError, match="there is no file"):
        augment_captions(gone, tmp_path, tmp_path / "gone", maker.paint, maker.describe)


def test_a_painter_of_diffusers(tmp_path):
    need("diffusers")
    folder = tiny_models.painter(tmp_path / "painter")
    paint = load_painter(str(folder), steps=2, size=16, device="cpu")
    one, two = paint(["a dog", "a cat"], [1, 2])
    assert one.size == two.size == (16, 16)
    # An image depends on its caption and seed, not on what else is painted.
    np.testing.assert_allclose(np.asarray(paint(["a cat"], [2])[0]).astype(int), np.asarray(two).astype(int), atol=1)
    with pytest.raises(CaplensError, match="diffusers cannot load"):
        load_painter(str(tmp_path / "nowhere"), steps=2, size=16, device="cpu")


def test_a_captioner_of_transformers(tmp_path):
    need("transformers")
    folder = tiny_models.captioner(tmp_path / "captioner")
    describe = load_captioner(str(folder), device="cpu")
    said = describe([Image.new("RGB", (40, 30), (200, 0, 0)), Image.new("RGB", (40, 30), (0, 0, 200))])
    assert len(said) == 2
    assert all(word in tiny_models.CAPTIONER_WORDS for text in said for word in text.split())
    with pytest.raises(CaplensError, match="nowhere: there is no such model"):
        load_captioner(str(tmp_path / "nowhere"), device="cpu")


def test_images_that_a_safety_checker_blacked_out_are_left_out(samples, tmp_path, caplog):
    maker = Maker()

    def paint(captions, seeds):
        images = maker.paint(captions, seeds)
        return [Image.new("RGB", (8, 8)) if "a of 1" in text else image for text, image in zip(captions, images, strict=True)]

    place = augment_captions(samples, tmp_path, tmp_path / "out", paint, maker.describe)
    assert [json.loads(line)["id"] for line in place.read_text().splitlines()] == ["0a", "0b", "1b", "2a", "2b"]
    assert "1 of 6 captions were left out: the painter's safety checker" in caplog.text
    painted = len(maker.painted)
    augment_captions(samples, tmp_path, tmp_path / "out", paint, maker.describe)
    assert len(maker.painted) == painted
    black = lambda texts, _: [Image.new("RGB", (8, 8))] * len(texts)  # noqa: E731
    with pytest.raises(InputError, match="blacked out every image"):
        augment_captions(samples, tmp_path, tmp_path / "black", black, maker.describe)


def test_the_watermark_is_a_choice(tmp_path, monkeypatch):
    diffusers = need("diffusers")
    folder = tiny_models.painter(tmp_path / "painter")
    pipelines = []
    opened = diffusers.AutoPipelineForText2Image.from_pretrained

    def with_watermark(*arguments, **keywords):
        pipe = opened(*arguments, **keywords)
        pipe.watermark = object()
        pipelines.append(pipe)
        return pipe

    monkeypatch.setattr(diffusers.AutoPipelineForText2Image, "from_pretrained", with_watermark)
    for watermark in (False, True):
        load_painter(str(folder), steps=1, size=16, device="cpu", watermark=watermark)
    assert [pipe.watermark is not None for pipe in pipelines] == [False, True]
