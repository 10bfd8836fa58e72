"""Which images of a benchmark were trained on: by file name, and by what the files hold."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from caplens.bench.base import Benchmark
from caplens.bench.evaluation import load_checked
from caplens.data.files import Place, Source
from caplens.data.sample import Sample
from caplens.embed.pictures import UnreadableError, picture_key, read
from caplens.errors import InputError
from caplens.progress import track
from caplens.version import __version__

_IMAGES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})


@dataclass(frozen=True)
class Leakage:
    """Images of a benchmark that a training list has too."""

    benchmark: str
    images: int
    trained: int
    """How many images the list has."""
    same_name: list[str]
    same_content: list[str]
    compared: int
    """Images of the benchmark whose content could be compared."""

    @property
    def leaked(self) -> list[str]:
        return sorted({*self.same_name, *self.same_content})

    def to_dict(self) -> dict[str, Any]:
        about = {"benchmark": self.benchmark, "images": self.images, "trained": self.trained, "compared": self.compared}
        return {"caplens": __version__, **about, "same_name": self.same_name, "same_content": self.same_content}


def find_leaks(
    benchmark: Benchmark[Any],
    data: str | PathLike[str],
    training: str | PathLike[str],
    images: str | PathLike[str] | None = None,
    lang: str | None = None,
) -> Leakage:
    """`training` is a folder of images, or a file with a name or path on each line.

    Names are compared without folder and suffix, because copies are often packed anew, and as the benchmark knows its images.
    Contents are compared where there are files: in a folder, or at the paths that the list names.
    """
    home = benchmark.home(Path(data))
    lang = lang or ("en" if benchmark.in_english else next(iter(benchmark.languages(home)), "en"))
    samples = load_checked(benchmark, home, next(iter(benchmark.protocols)), lang).samples
    names = sorted({str(sample.image) for sample in samples if sample.image is not None})
    if not names:
        raise InputError(f"{benchmark.name} is not about images.")
    trained = list(_trained(Path(training)))
    keys = {benchmark.image_key(path.name) for path in trained}
    hashes = set(_hashes(path for path in trained if path.is_file()))
    same_content, compared = [], 0
    if hashes:
        folder = images or benchmark.image_folder(home)
        located = benchmark.located((Sample(name, image=name) for name in names), folder)
        for name, sample in zip(names, located, strict=True):
            for found in _hashes([Path(str(sample.image))]):
                compared += 1
                if found in hashes:
                    same_content.append(name)
    same_name = [name for name in names if benchmark.image_key(Path(name).name) in keys]
    return Leakage(benchmark.name, len(names), len(trained), same_name, same_content, compared)


def _trained(training: Path) -> Iterator[Path]:
    if training.is_dir():
        found = [path for path in sorted(training.rglob("*")) if path.suffix.lower() in _IMAGES]
        if not found:
            raise InputError(f"{training}: there are no images in this folder.")
        yield from found
        return
    with Source(training) as source:
        lines = [(number, line.strip()) for number, line in source.lines() if line.strip()]
    if not lines:
        raise InputError(f"{training}: the list is empty; give a name or path of an image on each line.")
    for number, line in lines:
        if "\t" in line or line.startswith(("{", "[")):
            raise InputError(f"{Place(training, number)}: this is no list of images; give a name or path of one on each line.")
        path = Path(line)
        yield path if path.is_absolute() else training.parent / path


def _hashes(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in track(list(paths), "reading images"):
        try:
            yield picture_key(read(path))
        except UnreadableError:
            continue
