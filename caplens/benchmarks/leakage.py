"""Which images of a benchmark were trained on: by file name, and by what the files hold."""

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from caplens.benchmarks.base import Benchmark
from caplens.benchmarks.evaluate import load_checked
from caplens.data.files import Place, Source
from caplens.data.sample import Sample
from caplens.embed.images import UnreadableError, image_key, read
from caplens.errors import InputError
from caplens.progress import track
from caplens.results.leakage import LeakageResult

_IMAGES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})


def find_leaks(
    benchmark: Benchmark[Any],
    data: str | PathLike[str],
    training: str | PathLike[str],
    images: str | PathLike[str] | None = None,
    lang: str | None = None,
) -> LeakageResult:
    """`training` is a folder of images, or a file with one name or path per line.

    Names are compared without folder and suffix, because copies are often re-encoded, and as the benchmark knows its images.
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
    return LeakageResult(benchmark.name, len(names), len(trained), same_name, same_content, compared)


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
        raise InputError(f"{training}: the list is empty; give one name or path of an image per line.")
    for number, line in lines:
        if "\t" in line or line.startswith(("{", "[")):
            raise InputError(f"{Place(training, number)}: this is not a list of images; give one name or path per line.")
        path = Path(line)
        yield path if path.is_absolute() else training.parent / path


def _hashes(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in track(list(paths), "reading images"):
        try:
            yield image_key(read(path))
        except UnreadableError:
            continue
