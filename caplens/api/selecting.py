"""Choosing images for studies of many languages."""

from os import PathLike

from caplens.data.inputs import Captions, read_captions
from caplens.data.reading import SampleFile
from caplens.human.selection import located, read_regions, select_by_language
from caplens.results.selection import SelectionResult


def select_images(
    candidates: Captions,
    per_language: int = 100,
    langs: list[str] | None = None,
    *,
    regions: str | PathLike[str] | None = None,
    seed: int = 0,
) -> SelectionResult:
    """Choose images for each language from where it is spoken (Crossmodal-3600, section 2.2).

    Parameters
    ----------
    candidates
        Images with `latitude` and `longitude`, or with GPS in their EXIF.
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
    SelectionResult
        The images of each language, which `save` writes, and the ids of those without a place.

    Raises
    ------
    InputError
        If there are too few images, or a file cannot be read.
    """
    samples = candidates if isinstance(candidates, SampleFile) else read_captions(candidates)
    places, unknown = located(samples)
    result = SelectionResult(select_by_language(places, per_language, langs, read_regions(regions), seed), unknown)
    if unknown:
        result.warnings.append(f"the place of {len(unknown):,} images is not known; they were left out.")
    return result
