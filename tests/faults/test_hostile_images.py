"""Images made to break a decoder get one sentence each, within a gigabyte."""

import json
import os
import subprocess
import sys

import pytest
from faults.harness import plain_environment
from faults.hostile_images import KINDS, write_hostile_images
from PIL import Image

from caplens.embed import images
from caplens.embed.images import UnreadableError, decode, image_key, opened
from caplens.embed.memory import MemoryBudget

GIGABYTE = 1 << 30


@pytest.mark.slow
def test_a_hundred_hostile_images_are_scored_within_a_gigabyte(tmp_path):
    """One of each kind here; `PYTHONPATH=tests python -m faults.test_hostile_images` scores a hundred and prints the peak."""
    peak, errors = score_hostile_images(tmp_path, len(KINDS))
    assert peak < GIGABYTE
    assert any("CAPLENS_MAX_IMAGE_MB" in error for error in errors.values())


def score_hostile_images(folder, count):
    """The peak of the memory of `caplens score` with four workers, and the errors by image."""
    (folder / "images").mkdir()
    paths = write_hostile_images(folder / "images", count)
    rows = [{"id": path.name, "image": path.name, "caption": "a dog"} for path in paths]
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    command = [sys.executable, "-c", "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode;"
               " print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"]  # fmt: skip
    score = [sys.executable, "-m", "caplens", "score", "captions.jsonl", "--images", "images", "-m", "clipscore"]
    done = subprocess.run(
        [*command, *score, "--no-store", "--workers", "4", "-o", "scores.json", "-q"],
        cwd=folder,
        env=plain_environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    errors = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["errors"]
    return int(done.stdout) * 1024, errors


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_only_regular_files_are_images(tmp_path, make):
    path = tmp_path / "photo.jpg"
    make(path)
    for use in (image_key, decode):
        with pytest.raises(UnreadableError, match="is a pipe or a device"):
            use(str(path))


def test_formats_that_call_programs_are_not_opened(tmp_path):
    path = tmp_path / "photo.jpg"
    path.write_bytes(KINDS["postscript"]())
    with pytest.raises(UnreadableError, match="not an image that can be read"):
        decode(path)


def test_what_takes_more_than_the_limit_is_refused_and_the_limit_can_be_raised(tmp_path, monkeypatch):
    path = tmp_path / "photo.png"
    Image.new("RGBA", (600, 600)).save(path)
    monkeypatch.setenv("CAPLENS_MAX_IMAGE_MB", "2")
    with pytest.raises(UnreadableError, match="takes 2 MB of memory to decode, and the limit is 2 MB"):
        decode(path)
    monkeypatch.setenv("CAPLENS_MAX_IMAGE_MB", "3")
    with opened(path) as image:
        assert image.size == (600, 600)


def test_a_turned_png_is_counted_even_if_it_says_so_at_its_end(tmp_path, monkeypatch):
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "photo.png"
    Image.new("RGB", (1000, 600)).save(path, exif=exif)
    content = path.read_bytes()
    start = content.index(b"eXIf") - 4
    end = start + 12 + int.from_bytes(content[start : start + 4])
    tail = content.index(b"IEND") - 4
    path.write_bytes(content[:start] + content[end:tail] + content[start:end] + content[tail:])
    with opened(path) as image:
        assert image.size == (600, 1000)
    monkeypatch.setattr(images, "budget", MemoryBudget(3 << 20))
    with pytest.raises(UnreadableError, match="takes 4 MB"):
        decode(path)


def main():
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        peak, errors = score_hostile_images(Path(folder), 100)
    print(f"100 hostile images, 4 workers: peak {peak / GIGABYTE:.2f} GiB, {len(errors)} refused")


if __name__ == "__main__":
    main()
