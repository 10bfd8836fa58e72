"""The files of Flickr8k (Hodosh, Young and Hockenmaier 2013) that Flickr8k-Expert and Flickr8k-CF share."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from caplens.benchmarks.rating import RatedSamples, RatingBenchmark
from caplens.data.files import Place
from caplens.data.records import add_once, find_file, read_fields
from caplens.data.sample import Sample
from caplens.errors import InputError

WHERE = "They come with the Flickr8k text archive (Flickr8k_text.zip) from the authors of the data set."
IMAGE_FOLDERS = ("Flicker8k_Dataset", "Flickr8k_Dataset", "images")
"""The first name, with its misspelling, is that of the authors' archive."""
_CAPTION_FILES = ("Flickr8k.token.txt", "captions/en.tsv")
_TRANSLATION_ORIGINS = ("mt", "human")
"""Origins of captions that are translations; they have the numbers of the captions they translate."""
PhotoCaptions = dict[str, dict[str, str]]
"""Photo -> number of the caption -> caption."""


class FlickrRatings(RatingBenchmark):
    """Ratings of Flickr8k captions, which may be translated."""

    folder = "flickr8k"
    image_folders = IMAGE_FOLDERS

    def check_language(self, data: Path, lang: str) -> None:
        """Do nothing: `load` raises an error if there are no translations into `lang`."""

    def languages(self, data: Path) -> list[str]:
        """English, and languages with translations for photos that were judged."""
        judged = {photo for _, (photo, *_) in read_fields(find_file(data, [self.marker], "the ratings file", WHERE), 5)}
        candidates = {path.name.split(".")[0] for path in (data / "captions").glob("*.*.tsv*")} - {"en"}
        return ["en", *(lang for lang in sorted(candidates) if _has_translations(data, lang, judged))]


def _has_translations(data: Path, lang: str, judged: set[str]) -> bool:
    paths = [path for origin in _TRANSLATION_ORIGINS for path in (data / "captions").glob(f"{lang}.{origin}.tsv*")]
    return any(not judged.isdisjoint(_read_captions(path)) for path in paths)


def read_captions(folder: Path) -> PhotoCaptions:
    """Read the English captions, from lines `photo#number<TAB>caption` or `photo<TAB>number<TAB>caption`."""
    return _read_captions(find_file(folder, _CAPTION_FILES, "the captions file", WHERE))


def read_translations(folder: Path, lang: str) -> PhotoCaptions:
    """Read captions in another language; they have the numbers of the English captions they translate."""
    names = [f"captions/{lang}.{origin}.tsv" for origin in _TRANSLATION_ORIGINS]
    what = f"the translation of the captions into {lang!r}"
    return _read_captions(find_file(folder, names, what, "Its captions have the numbers of the English ones."))


def translated(judged: RatedSamples, english: PhotoCaptions, folder: Path, lang: str) -> RatedSamples:
    """Replace the English captions and references of `judged` by their translations; untranslated captions are left out.

    Samples have the id of their caption in `meta`.
    """
    captions = read_translations(folder, lang)
    samples = judged.samples
    translations: list[tuple[Sample, float]] = []
    for sample, value in zip(samples, judged.human.tolist(), strict=True):
        photo = str(sample.image)
        caption_photo, caption_number = str(sample.meta["caption"]).split("#")
        text = captions.get(caption_photo, {}).get(caption_number)
        numbers = {number for number, reference in english[photo].items() if reference in sample.references}
        references = tuple(reference for number, reference in captions.get(photo, {}).items() if number in numbers)
        if text is not None:
            translations.append((replace(sample, caption=text, references=references, lang=lang), value))
    if not translations:
        raise InputError(f"{folder / 'captions'}: the translations into {lang!r} include none of the captions that were judged.")
    missing = len(samples) - len(translations)
    warnings = list(judged.warnings)
    if missing:
        warnings.append(f"{missing:,} judgements are about captions without a translation and are left out.")
    return RatedSamples([sample for sample, _ in translations], np.array([value for _, value in translations]), warnings=warnings)


def _read_captions(path: Path) -> PhotoCaptions:
    captions: PhotoCaptions = {}
    if path.name.startswith("Flickr8k.token"):
        for place, (name, caption) in read_fields(path, 2):
            photo, number = split_caption_id(name, place)
            add_once(captions.setdefault(photo, {}), number, caption, place)
        return captions
    for place, (photo, number, caption) in read_fields(path, 3, tabs_in_last=True):
        if path.name.startswith("en."):
            add_once(captions.setdefault(photo, {}), number, caption, place)
        else:
            # Some translations have two for one number; the last one counts.
            captions.setdefault(photo, {})[number] = caption
    return captions


def split_caption_id(identifier: str, place: Place) -> tuple[str, str]:
    """Split `photo#number` into photo and number."""
    photo, separator, number = identifier.partition("#")
    if not separator:
        raise InputError(f"{place}: {identifier!r} is not a caption id such as 'photo.jpg#2'.")
    return photo, number


def caption_of(identifier: str, captions: PhotoCaptions, place: Place) -> str:
    photo, number = split_caption_id(identifier, place)
    try:
        return captions[photo][number]
    except KeyError:
        raise InputError(
            f"{place}: the caption {identifier!r} is not in the captions file; both must be from the same data set."
        ) from None


def references_of(photo: str, captions: PhotoCaptions, place: Place) -> tuple[str, ...]:
    try:
        return tuple(captions[photo].values())
    except KeyError:
        raise InputError(
            f"{place}: the photo {photo!r} is not in the captions file; both must be from the same data set."
        ) from None
