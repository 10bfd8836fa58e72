"""The files of Flickr8k (Hodosh, Young and Hockenmaier 2013) that both of its benchmarks read."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from caplens.benchmarks.rating import RatedSamples, RatingBenchmark
from caplens.data.files import Place
from caplens.data.records import find_file, read_fields
from caplens.data.sample import Sample
from caplens.errors import InputError

WHERE = "They come with the Flickr8k text archive (Flickr8k_text.zip) from the authors of the data set."
IMAGE_FOLDERS = ("Flicker8k_Dataset", "Flickr8k_Dataset", "images")
"""The authors' archive has the first name."""
_CAPTIONS = ("Flickr8k.token.txt", "captions/en.tsv")
_TRANSLATED = ("mt", "human")
"""Origins of captions that are translations, numbered as what they translate."""
Captions = dict[str, dict[str, str]]
"""Photo -> number of the caption -> caption."""


class FlickrRatings(RatingBenchmark):
    folder = "flickr8k"
    image_folders = IMAGE_FOLDERS

    def check_language(self, data: Path, lang: str) -> None:
        """Reading the translations tells."""

    def languages(self, data: Path) -> list[str]:
        """English, and those whose translations have captions of photos that were judged."""
        judged = {photo for _, (photo, *_) in read_fields(find_file(data, [self.marker], "the file of ratings", WHERE), 5)}
        named = {path.name.split(".")[0] for path in (data / "captions").glob("*.*.tsv*")} - {"en"}
        return ["en", *(lang for lang in sorted(named) if _has_translations(data, lang, judged))]


def _has_translations(data: Path, lang: str, judged: set[str]) -> bool:
    paths = [path for origin in _TRANSLATED for path in (data / "captions").glob(f"{lang}.{origin}.tsv*")]
    return any(not judged.isdisjoint(_read(path)) for path in paths)


def read_captions(folder: Path) -> Captions:
    """Lines are `photo#number<TAB>caption`, or `photo<TAB>number<TAB>caption`."""
    return _read(find_file(folder, _CAPTIONS, "the file of captions", WHERE))


def read_translations(folder: Path, lang: str) -> Captions:
    """Captions in another language that are numbered as the English ones they translate."""
    names = [f"captions/{lang}.{origin}.tsv" for origin in _TRANSLATED]
    what = f"the translation of the captions into {lang!r}"
    return _read(find_file(folder, names, what, "Its lines are numbered as the English ones."))


def translated(judged: RatedSamples, english: Captions, folder: Path, lang: str) -> RatedSamples:
    """RatedSamples of English captions, made about their translations; those whose caption has none are left out.

    Samples carry the id of their caption in `meta`.
    """
    captions = read_translations(folder, lang)
    samples = judged.samples
    kept: list[tuple[Sample, float]] = []
    for sample, value in zip(samples, judged.human.tolist(), strict=True):
        photo = str(sample.image)
        other, number = str(sample.meta["caption"]).split("#")
        text = captions.get(other, {}).get(number)
        wanted = {key for key, reference in english[photo].items() if reference in sample.references}
        references = tuple(reference for key, reference in captions.get(photo, {}).items() if key in wanted)
        if text is not None:
            kept.append((replace(sample, caption=text, references=references, lang=lang), value))
    if not kept:
        raise InputError(f"{folder / 'captions'}: the translations into {lang!r} have none of the captions that were judged.")
    missing = len(samples) - len(kept)
    warnings = list(judged.warnings)
    if missing:
        warnings.append(f"{missing:,} judgements are about captions without a translation and are left out.")
    return RatedSamples([sample for sample, _ in kept], np.array([value for _, value in kept]), warnings=warnings)


def _read(path: Path) -> Captions:
    captions: Captions = {}
    if path.name.startswith("Flickr8k.token"):
        rows = [[*split_caption_id(name, place), caption] for place, (name, caption) in read_fields(path, 2)]
    else:
        rows = [fields for _, fields in read_fields(path, 3, tabs_in_last=True)]
    for photo, number, caption in rows:
        captions.setdefault(photo, {})[number] = caption
    return captions


def split_caption_id(identifier: str, place: Place) -> tuple[str, str]:
    photo, mark, number = identifier.partition("#")
    if not mark:
        raise InputError(f"{place}: {identifier!r} is not a caption id such as 'photo.jpg#2'.")
    return photo, number


def caption_of(identifier: str, captions: Captions, place: Place) -> str:
    photo, number = split_caption_id(identifier, place)
    try:
        return captions[photo][number]
    except KeyError:
        raise InputError(
            f"{place}: the caption {identifier!r} is not in the file of captions; both must be of the same data set."
        ) from None


def references_of(photo: str, captions: Captions, place: Place) -> tuple[str, ...]:
    try:
        return tuple(captions[photo].values())
    except KeyError:
        raise InputError(
            f"{place}: the photo {photo!r} is not in the file of captions; both must be of the same data set."
        ) from None
