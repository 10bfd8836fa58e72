"""The engine: unique images and texts become vectors, each encoded once and kept in the store.

Images are opened and resized by threads or processes while the model runs, and the next batches are always ready: neither waits
for the other. Texts are sorted by length, so that a batch holds little padding. A batch is stored as soon as it is encoded, so
that a killed run loses no more than the batch in flight.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from os import PathLike
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL.Image import DecompressionBombWarning

from caplens.backbones.base import Backbone, Flags, Tokens, Vectors, normalized
from caplens.backbones.registry import load_backbone
from caplens.backbones.transform import Pixels
from caplens.data.sample import Picture
from caplens.embed.opener import Item, Opened, Openers, open_pixels
from caplens.embed.pictures import UnreadableError, content_key, decode, name_of, picture_key, read
from caplens.embed.pipeline import READY, ahead, in_order
from caplens.embed.store import Store, default_store
from caplens.errors import CaplensError, InputError
from caplens.progress import track
from caplens.text.sentences import split_sentences

T = TypeVar("T")
Keyed = tuple[bytes, Pixels | UnreadableError]
LongTexts = Literal["cut", "split"]

_IMAGES_ON_CPU, _TEXTS_ON_CPU = 32, 64
_IMAGES_ON_GPU, _TEXTS_ON_GPU = 256, 1024
_TOKENIZED_AT_ONCE = 8192
"""Texts that are sorted by length together."""
_WORTH_PROCESSES = 512
"""Images for which starting processes pays."""
_OPENED_BY_THREAD, _OPENED_BY_PROCESS = 4, 32
"""Images that a worker opens before it hands them over: handing over costs time too."""
_READ_AT_ONCE = 256
"""Files that are read to know what they hold before the first of them is opened: the model waits for these."""
_READERS = 4
"""Threads that read files to know what they hold; more of them only wait for each other."""
_MOST_WORKERS = 32


class Text(NamedTuple):
    """A caption and the prompt that goes before it, or before each of its sentences; its language if the model reads that."""

    caption: str
    prompt: str = ""
    lang: str = ""

    @property
    def whole(self) -> str:
        return self.prompt + self.caption


@dataclass(frozen=True)
class Embedded:
    """The vectors of several items: that of item i is `vectors[index[i]]`, or none where the index is -1."""

    vectors: Vectors
    index: NDArray[np.int64]
    marked: Flags
    """Texts that are longer than the model takes; images unlike those that it was trained on."""
    problems: dict[int, str]
    """Item -> why it has no vector."""


class Engine:
    """Encodes with one model, through one store.

    `long` says what happens to a text that is longer than the model takes: `cut` keeps its beginning, `split` takes the mean over
    its sentences.
    """

    def __init__(
        self,
        backbone: Backbone,
        store: Store | None = None,
        *,
        batch_size: int | None = None,
        workers: int | None = None,
        long: LongTexts = "cut",
    ) -> None:
        if long not in ("cut", "split"):
            raise InputError(f"long texts can be 'cut' or 'split', not {long!r}.")
        for what, number in (("a batch", batch_size), ("the pool of workers", workers)):
            if number is not None and number < 1:
                raise InputError(f"{what} cannot have the size {number}; it is at least 1.")
        self.backbone, self.long = backbone, long
        self._store = store or Store.temporary()
        self._shelf = self._store.shelf(backbone.name, backbone.fingerprint)
        self._batch_size = batch_size
        self._workers = workers or min(os.cpu_count() or 1, _MOST_WORKERS)
        self._openers: Openers | None = None
        self._keys: dict[tuple[str, int, int], bytes] = {}
        """Path, size and time of change -> key, so that a file is read once however often it is scored."""
        self._unreadable: dict[bytes, str] = {}
        """Key -> why there is no vector."""

    def close(self) -> None:
        """End the processes that open images, and close the store; the engine can be used again."""
        self._openers = None
        self._shelf.close()

    def prepare(self, pictures: Sequence[Picture], texts: Iterable[Text]) -> None:
        """Encode what the store lacks. Many at once are faster than few: batches are fuller, and texts better sorted."""
        unique = list({str(picture) if _has_path(picture) else id(picture): picture for picture in pictures}.values())
        self._encode_images(self._unknown(unique), len(unique))
        wanted = {text_key(text): text for text in set(texts)}
        present = self._shelf.known(list(wanted))
        self._encode_texts({key: text for key, text in wanted.items() if key not in present})

    def _unknown(self, pictures: Sequence[Picture]) -> Iterator[Item]:
        """Those that the store lacks, each once."""
        passed: set[bytes] = set()
        for start in range(0, len(pictures), _READ_AT_ONCE):
            some = pictures[start : start + _READ_AT_ONCE]
            items = _by_key(self._picture_keys(some), some)
            passed |= self._shelf.known(list(items))
            yield from ((key, picture) for key, picture in items.items() if key not in passed)
            passed |= items.keys()

    def images(self, pictures: Sequence[Picture]) -> Embedded:
        keys = self._picture_keys(pictures)
        vectors, place, strange = self._look_up(
            _by_key(keys, pictures), lambda lacking: self._encode_images(lacking.items(), len(lacking))
        )
        problems = {}
        index = np.full(len(pictures), -1, dtype=np.int64)
        for row, key in enumerate(keys):
            if isinstance(key, UnreadableError):
                problems[row] = str(key)
            elif key in place:
                index[row] = place[key]
            else:
                problems[row] = self._unreadable[key]
        flags = strange[index] & (index >= 0) if len(strange) else np.zeros(len(index), dtype=bool)
        return Embedded(vectors, index, flags, problems)

    def texts(self, texts: Sequence[Text]) -> Embedded:
        keys = {text: text_key(text) for text in dict.fromkeys(texts)}
        vectors, place, cut = self._look_up({key: text for text, key in keys.items()}, self._encode_texts)
        row = {text: place[key] for text, key in keys.items()}
        if self.long == "split" and cut.any():
            self._average_sentences({row[text]: text for text in keys if cut[row[text]]}, vectors, cut)
        index = np.array([row[text] for text in texts], dtype=np.int64)
        return Embedded(vectors, index, cut[index], {})

    def _average_sentences(self, long: dict[int, Text], vectors: Vectors, cut: Flags) -> None:
        """The mean over its sentences in place of each long text's vector; a sentence too long in itself is still cut."""
        parts = {row: [text._replace(caption=part) for part in split_sentences(text.caption)] for row, text in long.items()}
        wanted = {text_key(part): part for some in parts.values() for part in some}
        found, place, shortened = self._look_up(wanted, self._encode_texts)
        for row, some in parts.items():
            rows = [place[text_key(part)] for part in some]
            vectors[row], cut[row] = normalized(found[rows].mean(axis=0)), shortened[rows].any()

    def _look_up(
        self, wanted: dict[bytes, T], encode: Callable[[dict[bytes, T]], None]
    ) -> tuple[Vectors, dict[bytes, int], Flags]:
        """Vectors of keys from the store, after encoding those that it lacks, and where each key's is."""
        keys = list(wanted)
        found = self._shelf.get(keys)
        lacking = {key: wanted[key] for key, present in zip(keys, found.present, strict=True) if not present}
        if lacking:
            encode(lacking)
            found = self._shelf.get(keys)
        if any(key not in self._unreadable for key, there in zip(keys, found.present, strict=True) if not there):
            # What was just written cannot be read: the file is damaged in a way that SQLite did not notice.
            self._shelf.begin_anew()
            encode(wanted)
            found = self._shelf.get(keys)
        return found.vectors, {key: row for row, key in enumerate(keys) if found.present[row]}, found.cut

    def _picture_keys(self, pictures: Sequence[Picture]) -> list[bytes | UnreadableError]:
        """What stands for each picture in the store, or why it cannot be read."""
        paths = dict.fromkeys(str(picture) for picture in pictures if _has_path(picture))
        versions = {path: _version(path) for path in paths}
        known = {path: self._keys[version] for path, version in versions.items() if version in self._keys}
        keys: dict[str, bytes | UnreadableError] = dict(known)
        new = [path for path in paths if path not in known]
        if new:
            with ThreadPoolExecutor(min(self._workers, _READERS)) as pool:
                keys.update(zip(new, pool.map(_key, new), strict=True))
        for path in new:
            version, key = versions[path], keys[path]
            if version is not None and isinstance(key, bytes):
                self._keys[version] = key
        return [keys[str(picture)] if _has_path(picture) else _key(picture) for picture in pictures]

    def _encode_images(self, items: Iterable[Item], expected: int) -> None:
        """`expected` is about how many there are to come."""
        remaining = (item for item in items if item[0] not in self._unreadable)
        first = next((item for item in remaining if self._is_readable(*item)), None)
        if first is None:
            return
        size = self._batch_size or (_IMAGES_ON_CPU if self.backbone.device == "cpu" else _IMAGES_ON_GPU)
        open_some, together = self._opener(expected)

        def opened() -> Iterator[Keyed]:
            """Everything that can be done to images without the model, done by as many as there are workers."""
            waiting = chain([first], remaining)
            groups = iter(lambda: list(islice(waiting, together)), [])
            tasks = (partial(_with_keys, open_some, group) for group in groups)
            pool = ThreadPoolExecutor(self._workers)
            try:
                for some in in_order(pool, tasks, READY * size // together + self._workers):
                    yield from some
            finally:
                pool.shutdown(cancel_futures=True)

        def batches() -> Iterator[tuple[list[bytes], Any]]:
            found = opened()
            while portion := list(islice(found, size)):
                good = [(key, pixels) for key, pixels in portion if not isinstance(pixels, UnreadableError)]
                self._unreadable |= {key: str(error) for key, error in portion if isinstance(error, UnreadableError)}
                yield [key for key, _ in good], self.backbone.stack([pixels for _, pixels in good]) if good else None

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DecompressionBombWarning)
            for keys, stacked in track(ahead(batches()), "encoding images", expected, size=lambda batch: len(batch[0])):
                if keys:
                    self._put(keys, self.backbone.encode_pixels(stacked), self.backbone.strange_images(stacked).tolist())

    def _is_readable(self, key: bytes, picture: Picture) -> bool:
        """Whether the model is needed at all: it is not loaded for the sake of images that cannot be read."""
        try:
            decode(read(picture), name_of(picture))
        except UnreadableError as error:
            self._unreadable[key] = str(error)
            return False
        return True

    def _put(self, keys: Sequence[bytes], vectors: Vectors, cut: Sequence[bool]) -> None:
        if not np.isfinite(vectors).all():
            advice = "Its weights are damaged." if self.backbone.dtype == "fp32" else "Try --dtype fp32."
            raise CaplensError(
                f"{self.backbone.name} gives vectors that are not finite numbers in {self.backbone.dtype}. {advice}"
            )
        self._shelf.put(keys, vectors, cut)

    def _opener(self, images: int) -> tuple[Callable[[Sequence[Item]], Opened], int]:
        """What opens images, and how many together.

        Processes where a GPU waits for many images, else the threads themselves: a processor as model is slower than they.
        """
        transform = self.backbone.transform
        waited_for = self.backbone.device != "cpu" and images >= _WORTH_PROCESSES
        if self._openers is None and transform is not None and waited_for and self._workers > 1:
            self._openers = Openers(self._workers, _OPENED_BY_PROCESS, transform)
        if self._openers is not None:
            return self._openers, _OPENED_BY_PROCESS
        return partial(open_pixels, transform=transform or self.backbone.pixels), _OPENED_BY_THREAD

    def _encode_texts(self, wanted: dict[bytes, Text]) -> None:
        if not wanted:
            return
        # Asked here, so that the model is loaded by this thread.
        _ = self.backbone.max_tokens
        size = self._batch_size or (_TEXTS_ON_CPU if self.backbone.device == "cpu" else _TEXTS_ON_GPU)

        def batches() -> Iterator[list[tuple[bytes, Tokens]]]:
            items = iter(wanted.items())
            while portion := list(islice(items, _TOKENIZED_AT_ONCE)):
                langs = [text.lang or "en" for _, text in portion]
                tokens = self.backbone.tokenize([text.whole for _, text in portion], langs)
                pairs = [(key, found) for (key, _), found in zip(portion, tokens, strict=True)]
                # The longest come first: if they fit in memory, all do.
                pairs.sort(key=lambda pair: -len(pair[1].ids))
                yield from (pairs[start : start + size] for start in range(0, len(pairs), size))

        for batch in track(ahead(batches()), "encoding texts", len(wanted), size=len):
            vectors = self.backbone.encode_ids([tokens.ids for _, tokens in batch])
            self._put([key for key, _ in batch], vectors, [tokens.cut for _, tokens in batch])


def open_engine(
    model: str,
    *,
    store: Store | str | PathLike[str] | None = None,
    keep: bool = True,
    device: str = "auto",
    dtype: str = "fp32",
    batch_size: int | None = None,
    workers: int | None = None,
    long: LongTexts = "cut",
    offline: bool = False,
    trust_remote_code: bool = False,
) -> Engine:
    """An engine for the model of this name. Vectors are kept in `store`, or the user's cache, unless `keep` is false."""
    backbone = load_backbone(model, device=device, dtype=dtype, offline=offline, trust_remote_code=trust_remote_code)
    if not keep:
        place = None
    elif store is None:
        place = default_store()
    else:
        place = store if isinstance(store, Store) else Store(store)
    return Engine(backbone, place, batch_size=batch_size, workers=workers, long=long)


def text_key(text: Text) -> bytes:
    language = f"\0{text.lang}" if text.lang else ""
    return content_key(b"t", (text.whole + language).encode("utf-8", "surrogatepass"))


def _key(picture: Picture) -> bytes | UnreadableError:
    try:
        return picture_key(read(picture))
    except UnreadableError as error:
        return error


def _version(path: str) -> tuple[str, int, int] | None:
    """What tells that a file is still the same; None for one that is not there."""
    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return None
    return path, about.st_size, about.st_mtime_ns


def _has_path(picture: Picture) -> bool:
    return isinstance(picture, str | PathLike)


def _by_key(keys: Sequence[bytes | UnreadableError], pictures: Sequence[Picture]) -> dict[bytes, Picture]:
    return {key: picture for key, picture in zip(keys, pictures, strict=True) if isinstance(key, bytes)}


def _with_keys(open_some: Callable[[Sequence[Item]], Opened], items: Sequence[Item]) -> Iterable[Keyed]:
    return zip((key for key, _ in items), open_some(items), strict=True)
