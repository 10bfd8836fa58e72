"""Captions, references and images as Python callers have them: a file, samples, rows, parallel lists or a data frame."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import cast

from caplens.data.files import Place
from caplens.data.formats.dataframe import DataFrame, has_ids, is_dataframe, read_dataframe
from caplens.data.image_folder import with_images
from caplens.data.media import ImageArray, ImageSource, as_image, as_images
from caplens.data.reading import SampleFile, marked_repeats
from caplens.data.references import References, read_references
from caplens.data.rows import sample_from_row
from caplens.data.sample import Sample
from caplens.errors import InputError

Captions = str | PathLike[str] | Sequence[str] | Mapping[str, str] | Iterable[Sample | Mapping[str, object]] | DataFrame
"""A file, a list of texts, id -> text, samples, rows as in a file, or a pandas or polars data frame."""
ReferencesInput = References | Mapping[str, Sequence[str] | str] | Sequence[Sequence[str] | str] | str | PathLike[str] | None
"""A file, id -> texts, or, for captions in a list, the texts of each."""
ImagesInput = str | PathLike[str] | Mapping[str, ImageSource] | Sequence[ImageSource | ImageArray] | None
"""A folder, id -> image, or, for captions in a list, the image of each."""


def read_captions(
    captions: Captions, references: ReferencesInput = None, images: ImagesInput = None, lang: str | None = None
) -> Iterable[Sample]:
    """Samples with their references and images; a repeated id makes its row invalid."""
    texts = _text_list(captions)
    if texts is not None:
        return samples_from_lists(texts, _parallel(references, "references"), _parallel(images, "images"))
    if is_dataframe(captions) and not has_ids(captions):
        for name, values in (("references", references), ("images", images)):
            if values is not None and not (name == "images" and isinstance(values, str | PathLike)):
                raise InputError(
                    f"the data frame has no column 'id' by which {name} could be found. Add one, or a column {name!r}."
                )
    samples = _samples(captions)
    joined = samples if references is None else open_references(references).joined(samples, lang)
    if images is None:
        return joined
    if isinstance(images, Mapping):
        by_id = {str(identifier): image for identifier, image in images.items()}
        if len(by_id) < len(images):
            raise InputError("images: two keys are the same id; an id is text, so that 1 and '1' are one.")
        return (replace(sample, image=as_image(by_id.get(sample.id, sample.image))) for sample in joined)
    if isinstance(images, str | PathLike):
        return with_images(joined, images)
    raise InputError("images in a list belong to captions in a list; for other captions pass a folder, or id -> image.")


def _text_list(captions: object) -> list[str] | None:
    """Captions that are a plain list of texts, beside which references and images are lists too; None for others."""
    values = _as_list(captions)
    return cast(list[str], values) if values and isinstance(values[0], str) else None


def _as_list(values: object) -> list[object] | None:
    """A list, tuple, array or column of a data frame as a list; None for a text, a mapping and other things."""
    if isinstance(values, Sequence):
        return None if isinstance(values, str | bytes) else list(values)
    convert = getattr(values, "tolist", None) or getattr(values, "to_list", None)
    return list(convert()) if callable(convert) and not isinstance(values, Mapping) and not is_dataframe(values) else None


def _parallel(values: object, name: str) -> Sequence[object] | None:
    """A list that goes beside a list of captions."""
    if values is None:
        return None
    if name == "images" and isinstance(values, ImageArray) and len(values.shape) > 1:
        return as_images(values)
    listed = _as_list(values)
    if listed is None:
        raise InputError(
            f"captions in a list have no ids by which {name} could be found; pass {name} as a list too, one for each caption, or"
            " the captions as id -> text."
        )
    return listed


def samples_from_lists(
    captions: Sequence[str],
    references: Sequence[object] | None = None,
    images: Sequence[object] | None = None,
    langs: Sequence[str | None] | None = None,
    start: int = 0,
) -> list[Sample]:
    """Samples from parallel lists; ids are numbers from `start` on."""
    for name, values in (("references", references), ("images", images), ("languages", langs)):
        if values is not None and len(values) != len(captions):
            raise InputError(f"there are {len(captions)} captions and {len(values)} {name}; give one for each caption.")
    odd = next((caption for caption in captions if not isinstance(caption, str)), None)
    if odd is not None:
        raise InputError(f"captions are texts, not {type(odd).__name__}; images are passed with images=.")
    return [
        Sample(
            str(start + place),
            caption,
            () if references is None else _texts(references[place]),
            None if images is None else as_image(cast(ImageSource | ImageArray, images[place])),
            lang=None if langs is None else langs[place],
        )
        for place, caption in enumerate(captions)
    ]


def _texts(references: object) -> tuple[str, ...]:
    """The references of one caption: a text, several, or none."""
    if references is None:
        return ()
    if not isinstance(references, Iterable):
        raise InputError(f"references are texts, one or several for each caption, not {type(references).__name__}.")
    texts = (references,) if isinstance(references, str) else tuple(references)
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"references are texts, not {type(next(text for text in texts if not isinstance(text, str))).__name__}.")
    return texts


def _samples(captions: Captions) -> Iterable[Sample]:
    if isinstance(captions, str | PathLike):
        return SampleFile(captions, mark_repeats=True)
    if isinstance(captions, SampleFile):
        return captions
    numbered = enumerate(read_dataframe(captions) if is_dataframe(captions) else _checked(captions), 1)
    origin = Path("captions")
    return (sample for _, sample in marked_repeats((Place(origin, number, "row"), sample) for number, sample in numbered))


def _checked(captions: object) -> Iterator[Sample]:
    """Samples from Python, which may be rows or hold what is not text."""
    if isinstance(captions, Mapping):
        captions = [{"id": identifier, "caption": caption} for identifier, caption in captions.items()]
    if not isinstance(captions, Iterable):
        raise InputError(f"captions are a file or samples, not {captions!r}.")
    for number, sample in enumerate(captions, 1):
        if isinstance(sample, Sample):
            try:
                "".join((sample.caption or "", *sample.references))
            except TypeError:
                raise InputError(f"sample {sample.id!r}: its caption and references must be text.") from None
            yield sample
        elif isinstance(sample, Mapping):
            yield sample_from_row(dict(sample), Place(Path("samples"), number, "row"))
        else:
            raise InputError(f"row {number}: a caplens.Sample or a row with 'id' and 'caption' is needed, not {sample!r}.")


def open_references(references: ReferencesInput) -> References:
    """References from a file or from id -> texts."""
    if isinstance(references, References):
        return references
    if isinstance(references, str | PathLike):
        return read_references(references)
    if isinstance(references, Mapping):
        return References.of(references)
    raise InputError("references in a list belong to captions in a list; for other captions pass a file, or id -> texts.")
