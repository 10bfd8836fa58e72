"""The engine encodes each image and text once, goes on where it was killed, and lives with bad images."""

import io
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from fake_backbone import FakeBackbone
from PIL import Image
from tiny_models import picture

import caplens as package
from caplens.backbones.base import normalized
from caplens.backbones.transform import ImageTransform
from caplens.data import Sample
from caplens.embed import Engine, Store, Text
from caplens.embed.decode_pool import DecoderPool, decode_images
from caplens.embed.images import decode, image_key
from caplens.errors import CaplensError

TESTS = Path(__file__).parents[1]


@pytest.fixture
def photos(tmp_path):
    paths = []
    for number in range(10):
        paths.append(str(tmp_path / f"{number}.png"))
        picture(number).save(paths[-1])
    return paths


def encoded(log: Path) -> Counter:
    return Counter(log.read_text(encoding="ascii").splitlines()) if log.exists() else Counter()


def test_each_image_and_text_is_encoded_once_by_content(tmp_path, photos):
    copy = tmp_path / "copy.png"
    copy.write_bytes(Path(photos[0]).read_bytes())
    log = tmp_path / "log"
    engine = Engine(FakeBackbone(log), Store(tmp_path / "store"), batch_size=4)
    images = engine.images([*photos, str(copy), Path(photos[3]), copy.read_bytes()])
    texts = engine.texts([Text("a dog"), Text("a cat"), Text("a dog"), Text("dog", "a ")])
    assert images.index.tolist()[10:] == [images.index[0], images.index[3], images.index[0]]
    assert texts.index[0] == texts.index[2] == texts.index[3] != texts.index[1]
    again = Engine(FakeBackbone(log), Store(tmp_path / "store"))
    again.prepare(photos, [Text("a cat")])
    np.testing.assert_array_equal(again.images(photos).vectors, images.vectors)
    assert sum(encoded(log).values()) == 12
    assert set(encoded(log).values()) == {1}


def test_pictures_in_memory_equal_each_other_by_content():
    engine = Engine(FakeBackbone())
    found = engine.images([picture(1), picture(2), picture(1).copy()])
    assert found.index.tolist() == [0, 1, 0]


def test_batches_of_texts_are_sorted_by_length(tmp_path):
    backbone = FakeBackbone()
    lengths = []
    backbone.encode_ids = lambda batch: lengths.append([len(ids) for ids in batch]) or np.ones((len(batch), 8), np.float32)
    Engine(backbone, batch_size=3).texts([Text("a " * (1 + number * 7 % 10) + str(number)) for number in range(10)])
    flat = [length for batch in lengths for length in batch]
    assert flat == sorted(flat, reverse=True)


def test_a_long_text_is_cut_or_split_into_sentences():
    long = "one two three four five six. seven eight nine ten eleven twelve. thirteen"
    backbone = FakeBackbone()
    cut, split = (
        Engine(backbone, overlong=policy).texts([Text(long, "photo: "), Text("short", "photo: ")])
        for policy in ("truncate", "split")
    )
    whole = backbone.encode_texts([f"photo: {long}", "photo: short"])
    np.testing.assert_array_equal(cut.vectors, whole)
    assert cut.truncated.tolist() == [True, False]
    parts = backbone.encode_texts(
        [f"photo: {part}" for part in ("one two three four five six.", "seven eight nine ten eleven twelve.", "thirteen")]
    )
    np.testing.assert_allclose(split.vectors[0], normalized(parts.mean(axis=0)), atol=1e-6)
    np.testing.assert_array_equal(split.vectors[1], whole[1])
    assert split.truncated.tolist() == [False, False]


def test_a_sentence_that_is_too_long_itself_is_counted():
    found = Engine(FakeBackbone(), overlong="split").texts([Text("word " * 30 + ". short.")])
    assert found.truncated.tolist() == [True]


def test_a_damaged_vector_is_made_again(tmp_path, photos):
    import sqlite3

    log = tmp_path / "log"
    engine = Engine(FakeBackbone(log), Store(tmp_path / "store"))
    before = engine.images(photos)
    with sqlite3.connect(engine._vectors.path) as connection:
        connection.execute("UPDATE vectors SET vector = zeroblob(32) WHERE rowid = 3")
    engine = Engine(FakeBackbone(log), Store(tmp_path / "store"))
    engine.prepare(photos, [])
    np.testing.assert_array_equal(engine.images(photos).vectors, before.vectors)
    assert sorted(encoded(log).values()) == [1] * 9 + [2]


RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from fake_backbone import FakeBackbone
from caplens.embed import Engine, Store
folder = Path(sys.argv[2])
engine = Engine(FakeBackbone(folder / "log", seconds=0.02), Store(folder / "store"), batch_size=50)
engine.prepare(sorted(map(str, (folder / "photos").iterdir())), [])
"""


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    """2,000 images, `kill -9` in the middle: nothing is encoded twice but the batch in flight, and the scores are the same."""
    (tmp_path / "photos").mkdir()
    for number in range(2000):
        Image.new("RGB", (8, 8), (number % 256, number // 256, 7)).save(tmp_path / "photos" / f"{number:04}.png")
    command = [sys.executable, "-c", RUN, str(TESTS), str(tmp_path)]
    process = subprocess.Popen(command)
    while sum(encoded(tmp_path / "log").values()) < 700:
        assert process.poll() is None, "the run ended by itself"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = sum(encoded(tmp_path / "log").values())
    assert 700 <= before < 2000
    subprocess.run(command, check=True)
    counts = encoded(tmp_path / "log")
    assert len(counts) == 2000
    assert sum(counts.values()) <= 2000 + 50
    paths = sorted(map(str, (tmp_path / "photos").iterdir()))
    resumed = Engine(FakeBackbone(), Store(tmp_path / "store")).images(paths)
    undisturbed = Engine(FakeBackbone()).images(paths)
    np.testing.assert_array_equal(resumed.vectors[resumed.index], undisturbed.vectors[undisturbed.index])


def as_bytes(image: Image.Image, kind: str, **options) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def bad_images() -> dict[str, tuple[bytes | None, str | None]]:
    """Name -> its bytes, and the reason expected (None: it can be read)."""
    photo = picture(3, 64, 48)
    bomb = as_bytes(Image.new("1", (25_000, 20_000)), "PNG")
    deep = Image.fromarray(np.linspace(0, 65535, 64 * 48).reshape(48, 64).astype(np.uint16))
    exif = Image.Exif()
    exif[0x0112] = 6
    palette = photo.quantize(16)
    frames = [picture(number, 64, 48) for number in range(3)]
    return {
        "good.jpg": (as_bytes(photo, "JPEG"), None),
        "truncated.jpg": (as_bytes(picture(3, 640, 480), "JPEG")[:3000], r"truncated\.jpg is damaged"),
        "text.jpg": (b"this is no picture\n", r"text\.jpg is not an image that can be read"),
        "zero.jpg": (b"", r"zero\.jpg is empty"),
        "bomb.png": (bomb, r"bomb\.png has more pixels than can be unpacked safely"),
        "cmyk.jpg": (as_bytes(photo.convert("CMYK"), "JPEG"), None),
        "16-bit.png": (as_bytes(deep, "PNG"), None),
        "animated.gif": (as_bytes(frames[0], "GIF", save_all=True, append_images=frames[1:]), None),
        "animated.webp": (as_bytes(frames[0], "WEBP", save_all=True, append_images=frames[1:]), None),
        "rotated.jpg": (as_bytes(photo, "JPEG", exif=exif), None),
        "palette.png": (as_bytes(palette, "PNG", transparency=0), None),
        "alpha.png": (as_bytes(photo.convert("RGBA"), "PNG"), None),
        "grey.png": (as_bytes(photo.convert("L"), "PNG"), None),
        "float.tiff": (as_bytes(Image.fromarray(np.ones((8, 8), np.float32)), "TIFF"), "floating-point"),
        "missing.jpg": (None, "there is no file"),
    }


def test_every_bad_image_is_read_properly_or_gives_its_reason(tmp_path, recwarn):
    expected = bad_images()
    for name, (data, _) in expected.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
    (tmp_path / "folder.jpg").mkdir()
    names = [*expected, "folder.jpg"]
    found = Engine(FakeBackbone(), batch_size=4).images([str(tmp_path / name) for name in names])
    for row, name in enumerate(names):
        reason = expected.get(name, (None, "is a folder"))[1]
        assert (row in found.errors) == (reason is not None), (name, found.errors.get(row))
        assert (found.index[row] < 0) == (reason is not None)
        if reason is not None:
            assert re.search(reason, found.errors[row]), found.errors[row]
    assert [str(warning.message) for warning in recwarn] == []


def test_pictures_are_read_as_a_person_sees_them(tmp_path):
    data = {name: data for name, (data, _) in bad_images().items()}
    photo = picture(3, 64, 48)

    def close(name: str, seen: Image.Image, most: float = 6.0) -> None:
        difference = np.abs(np.asarray(decode(data[name]), float) - np.asarray(seen, float)).mean()
        assert difference < most, (name, difference)

    close("rotated.jpg", photo.transpose(Image.Transpose.ROTATE_270))
    close("animated.gif", picture(0, 64, 48), 12)
    close("animated.webp", picture(0, 64, 48), 8)
    close("cmyk.jpg", photo, 8)
    close("grey.png", photo.convert("L").convert("RGB"))
    grey = np.asarray(decode(data["16-bit.png"]))
    assert grey[0, 0, 0] == 0
    assert grey[-1, -1, 0] == 255
    assert abs(int(grey[24, 0, 0]) - 128) < 4
    clear = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    assert np.asarray(decode(as_bytes(clear, "PNG"))).min() == 255
    palette = picture(3, 64, 48).quantize(16)
    index = np.asarray(palette)
    assert (np.asarray(decode(data["palette.png"]))[index == 0] == 255).all()


def test_an_image_that_changes_while_it_is_read_gets_no_vector_of_another(tmp_path, photos, monkeypatch):
    engine = Engine(FakeBackbone())
    keys = engine._image_keys(photos)
    Path(photos[2]).write_bytes(Path(photos[5]).read_bytes())
    monkeypatch.setattr(engine, "_image_keys", lambda pictures: keys[: len(pictures)])
    assert engine.images(photos[:3]).errors == {2: f"{photos[2]} changed while it was read"}


def test_a_file_that_comes_or_changes_between_two_calls_is_read_anew(tmp_path, photos):
    engine = Engine(FakeBackbone())
    late = tmp_path / "late.png"
    assert "there is no file" in engine.images([str(late)]).errors[0]
    picture(20).save(late)
    first = engine.images([str(late)]).vectors
    picture(21, 64, 64).save(late)
    second = engine.images([str(late)]).vectors
    assert not np.allclose(first, second)


def test_pictures_in_memory_are_told_apart_by_what_is_seen_of_them():
    upright, turned = picture(1), picture(1)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.info["exif"] = exif.tobytes()
    assert Engine(FakeBackbone()).images([upright, turned]).index.tolist() == [0, 1]
    cut = Image.open(io.BytesIO(as_bytes(picture(3, 640, 480), "JPEG")[:3000]))
    found = Engine(FakeBackbone()).images([cut, Image.new("RGB", (0, 0)), upright])
    assert "is damaged" in found.errors[0]
    assert list(found.errors) == [0, 1]


@pytest.mark.parametrize("fit", ["crop", "pad", "squash", "patches"])
def test_an_image_of_any_shape_is_encoded_or_refused(fit):
    class Shaped(FakeBackbone):
        transform = ImageTransform((32, 32), fit, resize=32)

        def stack(self, images):
            return list(images)

    strips = [Image.new("RGB", size) for size in [(1, 1), (1, 300), (300, 1), (1, 12_000), (12_000, 1)]]
    found = Engine(Shaped()).images(strips)
    assert not {0} & found.errors.keys()
    assert all("too narrow" in reason for reason in found.errors.values())


def test_the_model_is_not_loaded_for_images_that_cannot_be_read(tmp_path, photos):
    class NotLoaded(FakeBackbone):
        @property
        def transform(self):
            raise AssertionError("the model was loaded")

    (tmp_path / "text.jpg").write_text("no picture", encoding="ascii")
    Engine(FakeBackbone(), Store(tmp_path / "store")).images(photos)
    found = Engine(NotLoaded(), Store(tmp_path / "store")).images([*photos, str(tmp_path / "text.jpg")])
    assert list(found.errors) == [10]


@pytest.mark.parametrize("what", ["images", "texts"])
def test_vectors_that_are_no_numbers_are_an_error_and_not_kept(tmp_path, photos, what):
    class Broken(FakeBackbone):
        def _encode(self, kind, contents):
            return super()._encode(kind, contents) * np.float32("nan")

    engine = Engine(Broken(), Store(tmp_path / "store"))
    with pytest.raises(CaplensError, match="vectors that are not finite numbers in fp32"):
        engine.images(photos) if what == "images" else engine.texts([Text("a dog")])
    assert Store(tmp_path / "store").models()[0].vectors == 0


def test_the_language_is_part_of_a_text_only_for_models_that_read_it():
    samples = [Sample(f"{n} {lang}", "a dog", image=picture(n), lang=lang) for n in range(8) for lang in ("en", "de")]
    seen = []

    class Reader(FakeBackbone):
        reads_language = True

        def tokenize(self, texts, langs=None):
            seen.extend(zip(texts, langs, strict=True))
            return super().tokenize([f"{lang} {text}" for text, lang in zip(texts, langs, strict=True)])

    values = package.score(samples, ["mcs"], model=Engine(Reader()), resamples=0)["mcs"].values
    assert sorted(seen) == [("a dog", "de"), ("a dog", "en")]
    assert (values[::2] != values[1::2]).any()
    values = package.score(samples, ["mcs"], model=Engine(FakeBackbone()), resamples=0)["mcs"].values
    assert (values[::2] == values[1::2]).all()


def test_processes_open_images_as_threads_do(tmp_path, photos):
    """Also bad ones; one that crashes the process costs nothing but itself."""
    transform = ImageTransform((24, 20), resize=24)
    openers = DecoderPool(2, 4, transform)
    (tmp_path / "text.jpg").write_text("no picture", encoding="ascii")
    items = [(image_key(path), path) for path in [*photos[:2], str(tmp_path / "text.jpg")]]
    items.append((b"another key", photos[3]))
    by_process, by_thread = openers(items), decode_images(items, transform)
    for one, other in zip(by_process[:2], by_thread[:2], strict=True):
        np.testing.assert_array_equal(one, other)
    assert [str(error) for error in by_process[2:]] == [str(error) for error in by_thread[2:]]
    assert str(by_process[3]) == f"{photos[3]} changed while it was read"

    for process in openers._idle.queue:
        process._process.kill()
    (crashed,) = openers(items[:1])
    assert str(crashed) == f"{photos[0]} crashed the process that decoded it"
    np.testing.assert_array_equal(openers(items[:2])[1], by_thread[1])


def test_processes_that_all_crash_hold_nothing_up(photos):
    """What they were opening is opened again one by one, by new processes."""
    transform = ImageTransform((24, 20), resize=24)
    openers = DecoderPool(2, 4, transform)
    for process in openers._idle.queue:
        process._process.kill()
    groups = [[(image_key(path), path) for path in photos[start : start + 4]] for start in (0, 4)]
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(openers, group) for group in groups]
        for opened, group in zip(found, groups, strict=True):
            for one, other in zip(opened.result(timeout=60), decode_images(group, transform), strict=True):
                np.testing.assert_array_equal(one, other)


def test_a_gpu_is_fed_by_processes(tmp_path, photos, monkeypatch):
    class OnGPU(FakeBackbone):
        device = "cuda"
        transform = ImageTransform((4, 4), "squash")

        def pixels(self, image):
            raise AssertionError("images are opened elsewhere")

    monkeypatch.setattr("caplens.embed.executors.local._WORTH_PROCESSES", 4)
    Path(photos[3]).write_bytes(b"broken")
    engine = Engine(OnGPU(), workers=2)
    found = engine.images([*photos, picture(3)])
    assert list(found.errors) == [3]
    expected = OnGPU().encode_pixels([OnGPU.transform(picture(number)) for number in range(3)])
    np.testing.assert_array_equal(found.vectors[found.index[:3]], expected)
