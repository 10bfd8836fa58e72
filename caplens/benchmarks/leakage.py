"""Finding images of a benchmark among training images, by file name and by content."""

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from caplens.benchmarks.base import Benchmark
from caplens.benchmarks.evaluate import load_checked
from caplens.data.files import Place, Source
from caplens.data.sample import Sample
from caplens.embed.images import UnreadableError, image_key
from caplens.errors import InputError
from caplens.progress import track
from caplens.results.leakage import LeakageResult

_IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})


def find_leaks(
    benchmark: Benchmark[Any],
    data: str | PathLike[str],
    training: str | PathLike[str],
    images: str | PathLike[str] | None = None,
    lang: str | None = None,
) -> LeakageResult:
    """Find the images of a benchmark that are among training images.

    Names are compared by `Benchmark.image_key`, without folder and suffix, because copies are often re-encoded. Contents are
    compared if the training images are files: those of the folder, or the paths in the list that exist.

    Parameters
    ----------
    benchmark
        The benchmark.
    data
        The folder of its data set.
    training
        A folder of images, or a file with one name or path per line.
    images
        The folder of the benchmark's images; by default that of the data set.
    lang
        The language of the captions, for benchmarks whose images differ between languages.

    Raises
    ------
    InputError
        If the benchmark is not about images, or `training` has none.
    """
    home = benchmark.home(Path(data))
    lang = lang or ("en" if benchmark.in_english else next(iter(benchmark.languages(home)), "en"))
    samples = load_checked(benchmark, home, next(iter(benchmark.protocols)), lang).samples
    names = sorted({str(sample.image) for sample in samples if sample.image is not None})
    if not names:
        raise InputError(f"{benchmark.name} is not about images.")
    training_images = list(_training_images(Path(training)))
    keys = {benchmark.image_key(path.name) for path in training_images}
    training_hashes = set(_content_hashes(path for path in training_images if path.is_file()))
    same_content: list[str] = []
    compared = 0
    if training_hashes:
        folder = images or benchmark.image_folder(home)
        located = benchmark.located((Sample(name, image=name) for name in names), folder)
        paths = {name: Path(str(sample.image)) for name, sample in zip(names, located, strict=True)}
        same_content, compared = _same_content(paths, training_hashes)
    same_name = [name for name in names if benchmark.image_key(Path(name).name) in keys]
    return LeakageResult(benchmark.name, len(names), len(training_images), same_name, same_content, compared)


def _same_content(paths: Mapping[str, Path], hashes: set[bytes]) -> tuple[list[str], int]:
    """The images whose content has one of the hashes, and how many could be read."""
    content = {name: content_hash for name, path in paths.items() for content_hash in _content_hashes([path])}
    return [name for name, content_hash in content.items() if content_hash in hashes], len(content)


def _training_images(training: Path) -> Iterator[Path]:
    """The images in a folder, or the paths in a list, which need not exist."""
    if training.is_dir():
        paths = [path for path in sorted(training.rglob("*")) if path.suffix.lower() in _IMAGE_SUFFIXES]
        if not paths:
            raise InputError(f"{training}: there are no images in this folder.")
        yield from paths
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


def _content_hashes(paths: Iterable[Path]) -> Iterator[bytes]:
    """The hash of each image's content; images that cannot be read are skipped."""
    for path in track(list(paths), "reading images"):
        try:
            yield image_key(path)
        except UnreadableError:
            continue
