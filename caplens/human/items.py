"""The items of a study, from captions: one for each caption, each two systems, or each image to be described."""

import random
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from caplens.comparison.systems import align_systems, pairs_of_systems
from caplens.data.extracted import is_extracted
from caplens.data.languages import base_language
from caplens.data.media import MissingImage
from caplens.data.sample import Sample
from caplens.embed.images import UnreadableError, opened
from caplens.errors import InputError, option
from caplens.human.database import NewItem
from caplens.human.settings import StudySettings, StudyTask
from caplens.progress import track

GOLD = "gold"
"""The column of the answer that is right: a label or value of the scale, or for side by side -1, 0 or 1."""


class StudyItems(NamedTuple):
    """What a study asks about."""

    paths: dict[str, str]
    """Image -> file."""
    items: list[NewItem]
    left_out: dict[str, str]
    """Caption -> why it cannot be shown."""
    warnings: list[str]


def study_items(
    settings: StudySettings,
    systems: Mapping[str, Iterable[Sample]],
    langs: Sequence[str] = (),
    lang: str | None = None,
    baseline: str | None = None,
) -> StudyItems:
    """The items of a study, in a random order that the seed gives.

    Parameters
    ----------
    settings
        What the study asks.
    systems
        Name -> captions with images. `rate` and `write` take one or more; with one, its name does not count.
    langs
        The languages to write captions in.
    lang
        The language of captions that name none.
    baseline
        Of side by side: the system that each other one is compared with; by default every two are compared.

    Returns
    -------
    StudyItems
        Items, the files of their images, and what was left out.

    Raises
    ------
    InputError
        If nothing can be shown, or systems have no captions in common.
    """
    left_out: dict[str, str] = {}
    warnings: list[str] = []
    if settings.task is StudyTask.sidebyside:
        if len(systems) < 2:
            raise InputError("side by side needs captions of two or more systems: NAME=FILE for each.")
        alignment = align_systems(systems)
        warnings += alignment.warnings()
        items = _pairs(alignment.samples, lang, baseline)
    elif settings.task is StudyTask.write:
        if not langs:
            raise InputError(f"say in which languages captions are to be written: {option('langs', 'de,hi')}.")
        items = _to_write(systems, [base_language(code) for code in langs])
    else:
        items = _captions(settings, systems, lang)
    paths = _images(items, left_out)
    kept = [item._replace(image=_name(sample)) for item, sample in items if _name(sample) in paths]
    if not kept:
        why = next(iter(left_out.values()), "there are no captions")
        raise InputError(f"the study would be empty: {why}. Name the folder of the images with {option('images', 'FOLDER')}.")
    rng = random.Random(settings.seed)
    rng.shuffle(kept)
    return StudyItems(paths, _with_pilot(kept, settings.pilot), left_out, warnings)


def _captions(settings: StudySettings, systems: Mapping[str, Iterable[Sample]], lang: str | None) -> list[tuple[NewItem, Sample]]:
    items = []
    for system, samples in systems.items():
        name = system if len(systems) > 1 else ""
        for sample in samples:
            if sample.caption and not sample.invalid:
                caption = {"system": sample.system or name, "id": sample.id, "caption": sample.caption}
                code = base_language(sample.lang or lang or "en")
                items.append((NewItem(code, "", sample.id, [caption], _gold_rating(settings, sample)), sample))
    return items


def _gold_rating(settings: StudySettings, sample: Sample) -> list[float] | None:
    """The ratings that are right, of a caption whose row has them: GOOD, or "GOOD|MEDIUM"."""
    cell = sample.meta.get(GOLD)
    if cell is None or cell == "":
        return None
    names = {name.casefold(): value for name, value in settings.values.items()}
    names |= {f"{value:g}": value for value in settings.values.values()}
    parts = [f"{part:g}" if isinstance(part, float) else str(part) for part in (cell if isinstance(cell, list) else [cell])]
    labels = [part.strip().casefold() for text in parts for part in text.split("|")]
    unknown = next((label for label in labels if label not in names), None)
    if unknown is not None:
        raise InputError(f"sample {sample.id!r}: {GOLD} is a point of the scale ({', '.join(settings.values)}), not {unknown!r}.")
    return [names[label] for label in labels]


def _pairs(systems: Mapping[str, Sequence[Sample]], lang: str | None, baseline: str | None) -> list[tuple[NewItem, Sample]]:
    items = []
    for first, second in pairs_of_systems(list(systems), baseline):
        for one, other in zip(systems[first], systems[second], strict=True):
            if not one.caption or not other.caption:
                continue
            captions = [
                {"system": name, "id": sample.id, "caption": sample.caption or ""}
                for name, sample in ((first, one), (second, other))
            ]
            sample = one if isinstance(one.image, str | PathLike) else other
            code = base_language(one.lang or lang or "en")
            items.append((NewItem(code, "", one.id, captions, _gold_preference(one)), sample))
    return items


def _gold_preference(sample: Sample) -> int | None:
    cell = sample.meta.get(GOLD)
    if cell is None or cell == "":
        return None
    if str(cell) not in {"-1", "0", "1", "-1.0", "0.0", "1.0"}:
        raise InputError(
            f"sample {sample.id!r}: {GOLD} is 1 where the first caption is better, -1 where the second is, 0 where they are"
            f" alike, not {cell!r}."
        )
    return int(float(cell))


def _to_write(systems: Mapping[str, Iterable[Sample]], langs: Sequence[str]) -> list[tuple[NewItem, Sample]]:
    """Each image once for each language; the caption that is rated first is the one of the file."""
    by_image: dict[str, tuple[Sample, list[dict[str, str]]]] = {}
    for samples in systems.values():
        for sample in samples:
            if not sample.invalid:
                shown = [{"system": "", "id": sample.id, "caption": sample.caption}] if sample.caption else []
                by_image.setdefault(_name(sample), (sample, shown))
    return [(NewItem(code, "", sample.id, shown), sample) for code in langs for sample, shown in by_image.values()]


def _name(sample: Sample) -> str:
    """What an image is called; samples without one have their id, under which no file is found."""
    return str(sample.image) if isinstance(sample.image, str | PathLike) and str(sample.image) else sample.id


def _images(items: Sequence[tuple[NewItem, Sample]], left_out: dict[str, str]) -> dict[str, str]:
    """Image -> file, of those that can be opened."""
    samples = {_name(sample): sample for _, sample in items}
    paths = {}
    for name, sample in track(samples.items(), "opening images", len(samples)):
        if isinstance(sample.image, MissingImage):
            left_out[sample.id] = sample.image.reason
            continue
        if not isinstance(sample.image, str | PathLike):
            left_out[sample.id] = "it has no image in a file"
            continue
        if is_extracted(sample.image):
            left_out[sample.id] = "its image is inside of the file, and raters are shown files. Unpack the images first"
            continue
        try:
            with opened(sample.image):
                paths[name] = str(Path(sample.image).absolute())
        except (InputError, UnreadableError) as error:
            left_out[sample.id] = str(error).rstrip(".")
    return paths


def _with_pilot(items: Sequence[NewItem], pilot: int) -> list[NewItem]:
    """The first items of each language are those of the pilot."""
    counts: dict[str, int] = {}
    marked = []
    for item in items:
        counts[item.lang] = counts.get(item.lang, 0) + 1
        marked.append(item._replace(pilot=counts[item.lang] <= pilot))
    return marked
