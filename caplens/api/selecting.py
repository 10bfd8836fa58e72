"""Choosing images for studies of many languages."""

from collections import Counter
from os import PathLike
from pathlib import Path

from caplens.data.inputs import Captions, read_captions
from caplens.data.reading import SampleFile
from caplens.data.replacing import replacing
from caplens.errors import InputError
from caplens.human.selection import counts_by_level, located, read_regions, select_by_language
from caplens.results.base import ROW_WRITERS


def select_images(
    candidates: Captions,
    output: str | PathLike[str],
    per_language: int = 100,
    langs: list[str] | None = None,
    *,
    regions: str | PathLike[str] | None = None,
    seed: int = 0,
) -> tuple[dict[str, Counter[str]], int]:
    """Write images for each language, chosen from where it is spoken (Crossmodal-3600, section 2.2).

    Parameters
    ----------
    candidates
        Images with `latitude` and `longitude`, or with GPS in their EXIF.
    output
        A `.jsonl`, `.csv`, `.tsv`, `.xlsx` or `.parquet` file: an image, its language, how near it is, and its place.
    per_language
        How many images each language gets.
    langs
        The languages; by default those of Crossmodal-3600.
    regions
        A table of where languages are spoken; by default that of the package.
    seed
        Of the draws.

    Returns
    -------
    tuple
        Language -> level -> images, and how many images have no place.

    Raises
    ------
    InputError
        If there are too few images, or a file cannot be read or written.
    """
    write = ROW_WRITERS.get(Path(output).suffix.lower())
    if write is None:
        raise InputError(f"{output}: images are written as {', '.join(ROW_WRITERS)}.")
    samples = candidates if isinstance(candidates, SampleFile) else read_captions(candidates)
    found, unknown = located(samples)
    selected = select_by_language(found, per_language, langs, read_regions(regions), seed)
    rows = [
        {
            "id": one.candidate.sample.id, "image": str(one.candidate.sample.image or one.candidate.sample.id), "lang": one.lang,
            "level": one.level, "latitude": one.candidate.latitude, "longitude": one.candidate.longitude,
        }
        for one in selected
    ]  # fmt: skip
    with replacing(output) as target:
        write(rows, target)
    return counts_by_level(selected), len(unknown)
