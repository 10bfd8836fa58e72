"""Images for a study of many languages, taken where each language is spoken (Crossmodal-3600, section 2.2).

`regions.tsv` has the areas of the 36 languages as boxes of latitude and longitude: coarse, so that a box holds what lies just
across a border too. Another table of the same columns takes its place.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from caplens.data.extracted import original_name
from caplens.data.files import Source, max_line_bytes
from caplens.data.formats.photo_folder import place_of
from caplens.data.languages import CROSSMODAL_3600, base_language
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.progress import track
from caplens.results.selection import LEVELS, SelectedImage

_COLUMNS = ("lang", "level", "name", "south", "west", "north", "east")
_NAMES = (("latitude", "lat"), ("longitude", "lon", "lng", "long"))
_PLACE_NAMES = frozenset(name for names in _NAMES for name in names)


class Region(NamedTuple):
    """A box in which a language is spoken."""

    lang: str
    level: str
    name: str
    south: float
    west: float
    north: float
    east: float


class Candidate(NamedTuple):
    """An image and where it was taken."""

    sample: Sample
    latitude: float
    longitude: float


def read_regions(path: str | PathLike[str] | None = None) -> list[Region]:
    """The regions of a table, or those of the package."""
    if path is None:
        text, name = files("caplens.human").joinpath("regions.tsv").read_text(encoding="utf-8"), "regions.tsv"
    else:
        with Source(path) as source:
            text, name = source.text(), str(path)
    regions = []
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    csv.field_size_limit(max_line_bytes())
    header = list(rows.fieldnames or ())
    if set(_COLUMNS) - set(header) or len(set(header)) < len(header):
        raise InputError(f"{name}: a table of regions has the columns {', '.join(_COLUMNS)}, each once, with tabs between them.")
    for number, row in enumerate(rows, 2):
        try:
            south, west, north, east = (float(row[column]) for column in _COLUMNS[3:])
        except (TypeError, ValueError):
            raise InputError(f"{name}, line {number}: south, west, north and east are degrees.") from None
        if row["level"] not in LEVELS[:-1] or not (-90 <= south < north <= 90 and -180 <= west < east <= 180):
            levels = ", ".join(LEVELS[:-1])
            raise InputError(f"{name}, line {number}: the level is {levels}, and a box lies between -90, -180 and 90, 180.")
        regions.append(Region(base_language(row["lang"]), row["level"], row["name"], south, west, north, east))
    return regions


def located(samples: Iterable[Sample]) -> tuple[list[Candidate], list[str]]:
    """The images of which the place is known, by the columns latitude and longitude or by EXIF; and the ids of the others."""
    candidates, unknown = [], []
    for sample in track(samples, "reading places"):
        place = _place_in_columns(sample) or _place_in_exif(sample)
        if place is None:
            unknown.append(sample.id)
        else:
            candidates.append(Candidate(sample, *place))
    return candidates, unknown


def _place_in_columns(sample: Sample) -> tuple[float, float] | None:
    columns: dict[str, object] = {}
    for name, value in sample.meta.items():
        if columns.setdefault(name.lower(), value) != value and name.lower() in _PLACE_NAMES:
            raise InputError(f"sample {sample.id!r}: there are two columns {name.lower()!r} with different values. Remove one.")
    values = [next((columns[name] for name in names if columns.get(name) not in (None, "")), None) for names in _NAMES]
    if any(value is None for value in values):
        return None
    try:
        latitude, longitude = (float(value) for value in values if isinstance(value, str | int | float))
    except ValueError:
        raise InputError(f"sample {sample.id!r}: latitude and longitude are degrees, not {values[0]!r}, {values[1]!r}.") from None
    return _checked(sample, latitude, longitude)


def _checked(sample: Sample, latitude: float, longitude: float) -> tuple[float, float]:
    if not (abs(latitude) <= 90 and abs(longitude) <= 180):
        raise InputError(f"sample {sample.id!r}: {latitude}, {longitude} is no place on earth.")
    return latitude, longitude


def _place_in_exif(sample: Sample) -> tuple[float, float] | None:
    return place_of(Path(sample.image)) if isinstance(sample.image, str | PathLike) else None


def select_by_language(
    candidates: Sequence[Candidate],
    per_language: int,
    langs: Sequence[str] | None = None,
    regions: Sequence[Region] | None = None,
    seed: int = 0,
) -> list[SelectedImage]:
    """Choose images for each language, as near as possible to where it is spoken, none twice.

    Languages with the fewest images in their areas choose first. Where these are too few, images of a country where the language
    is spoken are taken, then of a continent, then of anywhere.

    Parameters
    ----------
    candidates
        Images and their places.
    per_language
        How many images each language gets.
    langs
        The languages; by default those of Crossmodal-3600.
    regions
        Where they are spoken; by default those of the package.
    seed
        Of the draws.

    Returns
    -------
    list of SelectedImage
        By language, the nearest first.

    Raises
    ------
    InputError
        If there are fewer images than are needed, or a language has no region.
    """
    languages = [base_language(lang) for lang in (langs or CROSSMODAL_3600)]
    places: dict[object, tuple[float, float]] = {}
    for one in candidates:
        place = one.latitude, one.longitude
        if places.setdefault(one.sample.image or one.sample.id, place) != place:
            raise InputError(f"sample {one.sample.id!r}: its image was taken at two places. Remove or correct one of its rows.")
    # Several captions of one image are one candidate.
    candidates = list({one.sample.image or one.sample.id: one for one in reversed(candidates)}.values())[::-1]
    _check_wanted(languages, per_language, len(candidates))
    inside = _levels(candidates, read_regions() if regions is None else regions, languages)
    order = sorted(languages, key=lambda lang: (int((inside[lang] == 0).sum()), lang))
    free, rng = np.ones(len(candidates), dtype=bool), np.random.default_rng(seed)
    chosen: dict[str, list[SelectedImage]] = {}
    for lang in order:
        # The nearest level first, and within a level at random.
        ranked = np.lexsort((rng.random(len(candidates)), inside[lang]))
        rows = [row for row in ranked.tolist() if free[row]][:per_language]
        free[rows] = False
        chosen[lang] = [_selected(candidates[row], lang, LEVELS[inside[lang][row]]) for row in rows]
    return [one for lang in languages for one in chosen[lang]]


def _check_wanted(languages: Sequence[str], per_language: int, count: int) -> None:
    wanted = per_language * len(languages)
    if len(set(languages)) < len(languages) or per_language < 1:
        raise InputError("name each language once, and at least one image for each.")
    if not count:
        raise InputError("no image says where it was taken: give columns latitude and longitude, or photos with GPS in EXIF.")
    if count < wanted:
        raise InputError(
            f"{len(languages)} languages with {per_language:,} images each need {wanted:,}, and the place of {count:,} is known."
        )


def _selected(candidate: Candidate, lang: str, level: str) -> SelectedImage:
    sample = candidate.sample
    return SelectedImage(
        sample.id, original_name(str(sample.image or sample.id)), lang, level, candidate.latitude, candidate.longitude
    )


def _levels(candidates: Sequence[Candidate], regions: Sequence[Region], langs: Sequence[str]) -> Mapping[str, np.ndarray]:
    """Language -> the number of the nearest level of each candidate."""
    latitudes, longitudes = (np.array([getattr(one, name) for one in candidates]) for name in ("latitude", "longitude"))
    levels = {}
    for lang in langs:
        own = [region for region in regions if region.lang == lang]
        if not own:
            raise InputError(f"the regions of {lang} are not known; name a table that has them with 'regions'.")
        nearest = np.full(len(candidates), len(LEVELS) - 1)
        for region in own:
            within = (region.south <= latitudes) & (latitudes <= region.north)
            within &= (region.west <= longitudes) & (longitudes <= region.east)
            nearest = np.where(within, np.minimum(nearest, LEVELS.index(region.level)), nearest)
        levels[lang] = nearest
    return levels
