"""Which images of a benchmark were trained on: by file name, and by what the files hold."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from caplens.bench.base import Benchmark
from caplens.data.files import Source
from caplens.data.sample import Sample
from caplens.embed.pictures import UnreadableError, picture_key, read
from caplens.errors import InputError
from caplens.progress import track
from caplens.version import __version__


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
    lang: str = "en",
) -> Leakage:
    """`training` is a folder of images, or a file with a name or path on each line.

    Names are compared without folder and suffix, because copies are often packed anew. Contents are compared where there are
    files: in a folder, or at the paths that the list names.
    """
    home = benchmark.home(Path(data))
    samples = benchmark.load(home, next(iter(benchmark.protocols)), lang).samples
    names = sorted({str(sample.image) for sample in samples if sample.image is not None})
    if not names:
        raise InputError(f"{benchmark.name} is not about images.")
    trained = list(_trained(Path(training)))
    stems = {path.stem for path in trained}
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
    same_name = [name for name in names if Path(name).stem in stems]
    return Leakage(benchmark.name, len(names), len(trained), same_name, same_content, compared)


def _trained(training: Path) -> Iterator[Path]:
    if training.is_dir():
        yield from (path for path in sorted(training.rglob("*")) if path.is_file())
        return
    with Source(training) as source:
        lines = [line.strip() for _, line in source.lines() if line.strip()]
    if not lines:
        raise InputError(f"{training}: the list is empty; give a name or path of an image on each line.")
    for line in lines:
        path = Path(line)
        yield path if path.is_absolute() else training.parent / path


def _hashes(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in track(list(paths), "reading images"):
        try:
            yield picture_key(read(path))
        except UnreadableError:
            continue
