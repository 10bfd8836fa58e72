"""The engine: unique images and texts become vectors, each encoded once and kept in the store.

A plan says which keys the store lacks, an executor turns those items into vectors, and the store keeps each batch as soon as it
is encoded, so that a killed run loses no more than a few batches.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Literal, NamedTuple, TypeVar, Unpack

import numpy as np

from caplens.arrays import Flags, Ints, Vectors
from caplens.backbones.base import Backbone, normalized
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.registry import LoadKeywords, load_backbone
from caplens.data.media import ImageSource
from caplens.embed.decode_pool import ImageItem
from caplens.embed.executors import EncodedBatch, Executor, ExecutorName, LocalExecutor, open_executor
from caplens.embed.images import UnreadableError, image_key
from caplens.embed.keys import Text, file_version, text_key
from caplens.embed.pipeline import READY, in_order
from caplens.embed.sequences import FrameEmbeddings, SequenceEncoder
from caplens.embed.store import Store, default_store
from caplens.embed.videos import FrameChoice, VideoClip
from caplens.errors import InputError
from caplens.progress import note_kept, track
from caplens.text.sentences import split_sentences

T = TypeVar("T")
Overlong = Literal["truncate", "split"]
"""What happens to a text that is longer than the model takes: keep its beginning, or take the mean over its sentences."""

_READ_TOGETHER = 256
"""Files that are hashed before the first of them is decoded: the model waits for these."""
_READERS = 4
"""Threads that hash files; more of them only wait for each other."""


@dataclass(frozen=True)
class TextEmbeddings:
    """The vectors of several texts: that of text i is `vectors[index[i]]`."""

    vectors: Vectors
    index: Ints
    truncated: Flags
    """Which texts are longer than the model takes."""


@dataclass(frozen=True)
class ImageEmbeddings:
    """The vectors of several images: that of image i is `vectors[index[i]]`, or none where the index is -1."""

    vectors: Vectors
    index: Ints
    out_of_domain: Flags
    """Which images are unlike those that the model was trained on."""
    errors: dict[int, str]
    """Image -> why it has no vector."""


class EncodingPlan(NamedTuple):
    """The items that the store lacks: each unique image and text once."""

    images: Iterator[ImageItem]
    image_count: int
    """At most this many images."""
    texts: Mapping[bytes, Text]


class Engine:
    """Encodes with one model, through one store.

    Parameters
    ----------
    backbone
        The model.
    store
        Where vectors are kept; by default, none are kept after the process.
    batch_size, workers
        Of the local executor: images or texts encoded together, and threads or processes that decode images.
    overlong
        `truncate` keeps the beginning of a text that is longer than the model takes, `split` takes the mean over its sentences.
    executor
        What computes the vectors; by default, this machine.
    """

    def __init__(
        self,
        backbone: Backbone,
        store: Store | None = None,
        *,
        batch_size: int | None = None,
        workers: int | None = None,
        overlong: Overlong = "truncate",
        executor: Executor | None = None,
    ) -> None:
        if overlong not in ("truncate", "split"):
            raise InputError(f"overlong texts can be handled by 'truncate' or 'split', not {overlong!r}.")
        for what, size in (("a batch", batch_size), ("the pool of workers", workers)):
            if size is not None and size < 1:
                raise InputError(f"{what} cannot have the size {size}; it is at least 1.")
        self.backbone, self.overlong = backbone, overlong
        self._store = store or Store.temporary()
        if store is not None:
            note_kept(f"Vectors that were encoded are in {store.folder} and are not encoded again.")
        self._vectors = self._store.model_vectors(backbone.name, backbone.fingerprint)
        self._executor = executor or LocalExecutor(backbone, batch_size, workers)
        self._sequences = SequenceEncoder(backbone, self._vectors, workers)
        self._keys: dict[tuple[str, int, int], bytes] = {}
        """Path, size and time of change -> key, so that a file is hashed once however often it is scored."""
        self._unreadable: dict[bytes, str] = {}
        """Key -> why there is no vector."""

    def close(self) -> None:
        """End the processes that decode images, and close the store; the engine can be used again."""
        self._executor.close()
        self._vectors.close()

    def prepare(self, images: Sequence[ImageSource], texts: Iterable[Text]) -> None:
        """Encode what the store lacks. Many at once are faster than few: batches are fuller, and texts better sorted."""
        plan = self.plan(images, texts)
        self._encode_images(plan.images, plan.image_count)
        self._encode_texts(plan.texts)

    def plan(self, images: Sequence[ImageSource], texts: Iterable[Text]) -> EncodingPlan:
        """What the store lacks of these. Images are hashed while the plan is carried out."""
        unique = list({str(image) if _has_path(image) else id(image): image for image in images}.values())
        by_key = {text_key(text): text for text in dict.fromkeys(texts)}
        present = self._vectors.present(list(by_key))
        missing = {key: text for key, text in by_key.items() if key not in present}
        return EncodingPlan(self._missing_images(unique), len(unique), missing)

    def _missing_images(self, images: Sequence[ImageSource]) -> Iterator[ImageItem]:
        seen: set[bytes] = set()
        for start in range(0, len(images), _READ_TOGETHER):
            portion = images[start : start + _READ_TOGETHER]
            items = _by_key(self._image_keys(portion), portion)
            seen |= self._vectors.present(list(items))
            yield from ((key, image) for key, image in items.items() if key not in seen)
            seen |= items.keys()

    def images(self, images: Sequence[ImageSource]) -> ImageEmbeddings:
        keys = self._image_keys(images)
        vectors, row_of, flags = self._look_up(
            _by_key(keys, images), lambda missing: self._encode_images(missing.items(), len(missing))
        )
        errors = {}
        index = np.full(len(images), -1, dtype=np.int64)
        for place, key in enumerate(keys):
            if isinstance(key, UnreadableError):
                errors[place] = str(key)
            elif key in row_of:
                index[place] = row_of[key]
            else:
                errors[place] = self._unreadable[key]
        out_of_domain = flags[index] & (index >= 0) if len(flags) else np.zeros(len(index), dtype=bool)
        return ImageEmbeddings(vectors, index, out_of_domain, errors)

    def texts(self, texts: Sequence[Text]) -> TextEmbeddings:
        keys = {text: text_key(text) for text in dict.fromkeys(texts)}
        vectors, row_of, truncated = self._look_up({key: text for text, key in keys.items()}, self._encode_texts)
        row = {text: row_of[key] for text, key in keys.items()}
        if self.overlong == "split" and truncated.any():
            self._average_sentences({row[text]: text for text in keys if truncated[row[text]]}, vectors, truncated)
        index = np.array([row[text] for text in texts], dtype=np.int64)
        return TextEmbeddings(vectors, index, truncated[index])

    def frames(self, clips: Sequence[VideoClip], choice: FrameChoice) -> FrameEmbeddings:
        """The vectors of the chosen frames of videos."""
        return self._sequences.frames(clips, choice)

    def tokens(self, texts: Sequence[Text]) -> list[Vectors]:
        """The vectors of each text's tokens, from its start to its end marker."""
        return self._sequences.tokens(texts)

    def _average_sentences(self, overlong: dict[int, Text], vectors: Vectors, truncated: Flags) -> None:
        """Put the mean over its sentences in place of each overlong text's vector; a sentence that is itself too long is cut."""
        sentences = {
            row: [text._replace(caption=part) for part in split_sentences(text.caption)] for row, text in overlong.items()
        }
        by_key = {text_key(sentence): sentence for parts in sentences.values() for sentence in parts}
        sentence_vectors, row_of, shortened = self._look_up(by_key, self._encode_texts)
        for row, parts in sentences.items():
            rows = [row_of[text_key(sentence)] for sentence in parts]
            vectors[row], truncated[row] = normalized(sentence_vectors[rows].mean(axis=0)), shortened[rows].any()

    def _look_up(
        self, items: dict[bytes, T], encode: Callable[[dict[bytes, T]], None]
    ) -> tuple[Vectors, dict[bytes, int], Flags]:
        """Vectors of keys from the store, after encoding those that it lacks, and the row of each key."""
        keys = list(items)
        stored = self._vectors.get(keys)
        missing = {key: items[key] for key, present in zip(keys, stored.present, strict=True) if not present}
        if missing:
            encode(missing)
            stored = self._vectors.get(keys)
        if any(key not in self._unreadable for key, present in zip(keys, stored.present, strict=True) if not present):
            # What was just written cannot be read: the file is damaged in a way that SQLite did not notice.
            self._vectors.reset()
            encode(items)
            stored = self._vectors.get(keys)
        return stored.vectors, {key: row for row, key in enumerate(keys) if stored.present[row]}, stored.flags

    def _image_keys(self, images: Sequence[ImageSource]) -> list[bytes | UnreadableError]:
        """The key of each image in the store, or why it cannot be read."""
        paths = dict.fromkeys(str(image) for image in images if _has_path(image))
        versions = {path: file_version(path) for path in paths}
        keys: dict[str, bytes | UnreadableError] = {
            path: self._keys[version] for path, version in versions.items() if version in self._keys
        }
        new = [path for path in paths if path not in keys]
        if new:
            with ThreadPoolExecutor(min(os.cpu_count() or 1, _READERS)) as pool:
                keys.update(zip(new, pool.map(_image_key, new), strict=True))
        for path in new:
            version, key = versions[path], keys[path]
            if version is not None and isinstance(key, bytes):
                self._keys[version] = key
        return [keys[str(image)] if _has_path(image) else _image_key(image) for image in images]

    def _encode_images(self, items: Iterable[ImageItem], expected: int) -> None:
        remaining = (item for item in items if item[0] not in self._unreadable)
        self._keep(self._executor.encode_images(remaining, expected), "encoding images", expected)

    def _encode_texts(self, texts: Mapping[bytes, Text]) -> None:
        self._keep(self._executor.encode_texts(texts), "encoding texts", len(texts))

    def _keep(self, batches: Iterator[EncodedBatch], description: str, expected: int) -> None:
        """Store every batch as it comes, while the next ones are encoded."""
        shown = track(batches, description, expected, size=lambda batch: len(batch.keys))
        with ThreadPoolExecutor(1) as writer:
            # Whatever ends the loop, what was encoded is written.
            for _ in in_order(writer, (partial(self._put, batch) for batch in shown), READY):
                pass

    def _put(self, batch: EncodedBatch) -> None:
        self._unreadable |= batch.errors
        if batch.keys:
            self._vectors.put(batch.keys, batch.vectors, batch.flags)


def open_engine(
    model: str,
    *,
    store: Store | str | PathLike[str] | None = None,
    keep_store: bool = True,
    load: LoadOptions | None = None,
    batch_size: int | None = None,
    workers: int | None = None,
    overlong: Overlong = "truncate",
    long: str | None = None,
    executor: ExecutorName = "local",
    ray_address: str | None = None,
    **keywords: Unpack[LoadKeywords],
) -> Engine:
    """An engine for the model of this name.

    Parameters
    ----------
    model
        Its name, as `load_backbone` takes it.
    store
        Where vectors are kept: a `Store` or a folder. By default, the user's cache.
    keep_store
        False to keep no vectors after the process.
    load
        How the model is loaded; its fields `device`, `dtype`, `offline` and `trust_remote_code` can be passed one by one.
    batch_size, workers, overlong
        See `Engine`.
    long
        The old name of `overlong`.
    executor, ray_address
        What computes vectors: this machine, or a cluster of Ray, and where that is.
    """
    if long is not None:
        warnings.warn("open_engine(long=…) is deprecated; use overlong='truncate' or 'split'.", DeprecationWarning, stacklevel=2)
        overlong = "truncate" if long == "cut" else "split"
    backbone = load_backbone(model, load, **keywords)
    spread = open_executor(executor, backbone, ray_address, batch_size, workers)
    kept = _open_store(store) if keep_store else None
    return Engine(backbone, kept, batch_size=batch_size, workers=workers, overlong=overlong, executor=spread)


def _open_store(store: Store | str | PathLike[str] | None) -> Store:
    if store is None:
        return default_store()
    return store if isinstance(store, Store) else Store(store)


def _image_key(image: ImageSource) -> bytes | UnreadableError:
    try:
        return image_key(image)
    except UnreadableError as error:
        return error


def _has_path(image: ImageSource) -> bool:
    return isinstance(image, str | PathLike)


def _by_key(keys: Sequence[bytes | UnreadableError], images: Sequence[ImageSource]) -> dict[bytes, ImageSource]:
    return {key: image for key, image in zip(keys, images, strict=True) if isinstance(key, bytes)}
