"""The files of Flickr8k (Hodosh, Young and Hockenmaier 2013) that both of its benchmarks read."""

from pathlib import Path

from caplens.bench.files import find_file, read_fields
from caplens.data.files import Place
from caplens.errors import InputError

WHERE = "They come with the Flickr8k text archive (Flickr8k_text.zip) from the authors of the data set."
IMAGE_FOLDERS = ("Flicker8k_Dataset", "Flickr8k_Dataset", "images")
"""The authors' archive has the first name."""
_CAPTIONS = ("Flickr8k.token.txt", "captions/en.tsv")


def read_captions(folder: Path) -> dict[str, dict[str, str]]:
    """Photo -> number of the caption -> caption. Lines are `photo#number<TAB>caption`, or `photo<TAB>number<TAB>caption`."""
    path = find_file(folder, _CAPTIONS, "the file of captions", WHERE)
    captions: dict[str, dict[str, str]] = {}
    if path.name.startswith("Flickr8k.token"):
        rows = [[*split_caption_id(name, place), caption] for place, (name, caption) in read_fields(path, 2)]
    else:
        rows = [fields for _, fields in read_fields(path, 3)]
    for photo, number, caption in rows:
        captions.setdefault(photo, {})[number] = caption
    return captions


def split_caption_id(identifier: str, place: Place) -> tuple[str, str]:
    photo, mark, number = identifier.partition("#")
    if not mark:
        raise InputError(f"{place}: {identifier!r} is not a caption id such as 'photo.jpg#2'.")
    return photo, number


def caption_of(identifier: str, captions: dict[str, dict[str, str]], place: Place) -> str:
    photo, number = split_caption_id(identifier, place)
    try:
        return captions[photo][number]
    except KeyError:
        raise InputError(
            f"{place}: the caption {identifier!r} is not in the file of captions; both must be of the same data set."
        ) from None


def references_of(photo: str, captions: dict[str, dict[str, str]], place: Place) -> tuple[str, ...]:
    try:
        return tuple(captions[photo].values())
    except KeyError:
        raise InputError(
            f"{place}: the photo {photo!r} is not in the file of captions; both must be of the same data set."
        ) from None


def count_warning(found: int, published: int, what: str) -> list[str]:
    return [] if found == published else [f"{found:,} {what} where the published data set has {published:,}."]
