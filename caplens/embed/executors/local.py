"""The executor of one machine.

Images are decoded and resized by threads or processes while the model runs, and the next batches are always ready: neither
waits for the other. Texts are sorted by length, so that a batch holds little padding.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
from PIL.Image import DecompressionBombWarning

from caplens.arrays import Vectors
from caplens.backbones.base import Backbone, Tokens, check_finite
from caplens.backbones.transform import Pixels
from caplens.embed.decode_pool import DecodedImages, DecoderPool, ImageItem, decode_images
from caplens.embed.executors.base import EncodedBatch
from caplens.embed.images import UnreadableError, decode
from caplens.embed.keys import Text
from caplens.embed.pipeline import READY, ahead, in_order

_IMAGES_ON_CPU, _TEXTS_ON_CPU = 32, 64
_IMAGES_ON_GPU, _TEXTS_ON_GPU = 256, 1024
_TOKENIZED_TOGETHER = 8192
"""Texts that are sorted by length together."""
_WORTH_PROCESSES = 512
"""Images for which starting processes pays."""
_PER_THREAD, _PER_PROCESS = 4, 32
"""Images that a worker decodes before it hands them over: handing over costs time too."""
_MOST_WORKERS = 32
KeyedPixels = tuple[bytes, Pixels | UnreadableError]
Decoder = Callable[[Sequence[ImageItem]], DecodedImages]


class LocalExecutor:
    """Encodes on this machine, with one model."""

    def __init__(self, backbone: Backbone, batch_size: int | None = None, workers: int | None = None) -> None:
        self._backbone, self._batch_size = backbone, batch_size
        self._workers = workers or min(os.cpu_count() or 1, _MOST_WORKERS)
        self._pool: DecoderPool | None = None

    def close(self) -> None:
        self._pool = None

    def encode_images(self, items: Iterable[ImageItem], expected: int) -> Iterator[EncodedBatch]:
        remaining = iter(items)
        errors: dict[bytes, str] = {}
        first = next((item for item in remaining if _is_readable(item, errors)), None)
        if errors:
            yield EncodedBatch([], _no_vectors(), [], errors)
        if first is None:
            return
        size = self._batch_size or (_IMAGES_ON_CPU if self._backbone.device == "cpu" else _IMAGES_ON_GPU)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DecompressionBombWarning)
            for keys, stacked, failed in ahead(self._image_batches(chain([first], remaining), size, expected)):
                if not keys:
                    yield EncodedBatch([], _no_vectors(), [], failed)
                    continue
                vectors = self._checked(self._backbone.encode_pixels(stacked))
                yield EncodedBatch(keys, vectors, self._backbone.out_of_domain(stacked).tolist(), failed)

    def _image_batches(
        self, items: Iterator[ImageItem], size: int, expected: int
    ) -> Iterator[tuple[list[bytes], Any, dict[bytes, str]]]:
        """Keys, images as the model takes them, and the errors of those that cannot be decoded."""
        decoded = self._decoded(items, size, expected)
        while portion := list(islice(decoded, size)):
            good = [(key, pixels) for key, pixels in portion if not isinstance(pixels, UnreadableError)]
            failed = {key: str(error) for key, error in portion if isinstance(error, UnreadableError)}
            yield [key for key, _ in good], self._backbone.stack([pixels for _, pixels in good]) if good else None, failed

    def _decoded(self, items: Iterator[ImageItem], size: int, expected: int) -> Iterator[KeyedPixels]:
        """Everything that can be done to images without the model, by as many workers as there are."""
        decoder, together = self._decoder(expected)
        groups = iter(lambda: list(islice(items, together)), [])
        tasks = (partial(_with_keys, decoder, group) for group in groups)
        threads = ThreadPoolExecutor(self._workers)
        try:
            for portion in in_order(threads, tasks, READY * size // together + self._workers):
                yield from portion
        finally:
            threads.shutdown(cancel_futures=True)

    def _decoder(self, expected: int) -> tuple[Decoder, int]:
        """What decodes images, and how many together.

        Processes where a GPU waits for many images, else the threads themselves: a CPU as model is slower than they are.
        """
        transform = self._backbone.transform
        awaited = self._backbone.device != "cpu" and expected >= _WORTH_PROCESSES
        if self._pool is None and transform is not None and awaited and self._workers > 1:
            self._pool = DecoderPool(self._workers, _PER_PROCESS, transform)
        if self._pool is not None:
            return self._pool, _PER_PROCESS
        return partial(decode_images, transform=transform or self._backbone.pixels), _PER_THREAD

    def encode_texts(self, texts: Mapping[bytes, Text]) -> Iterator[EncodedBatch]:
        if not texts:
            return
        # Asked here, so that the model is loaded by this thread.
        _ = self._backbone.max_tokens
        size = self._batch_size or (_TEXTS_ON_CPU if self._backbone.device == "cpu" else _TEXTS_ON_GPU)
        for batch in ahead(self._text_batches(texts, size)):
            vectors = self._checked(self._backbone.encode_ids([tokens.ids for _, tokens in batch]))
            yield EncodedBatch([key for key, _ in batch], vectors, [tokens.cut for _, tokens in batch], {})

    def _text_batches(self, texts: Mapping[bytes, Text], size: int) -> Iterator[list[tuple[bytes, Tokens]]]:
        items = iter(texts.items())
        while portion := list(islice(items, _TOKENIZED_TOGETHER)):
            langs = [text.lang or "en" for _, text in portion]
            tokens = self._backbone.tokenize([text.whole for _, text in portion], langs)
            pairs = [(key, text_tokens) for (key, _), text_tokens in zip(portion, tokens, strict=True)]
            # The longest come first: if they fit in memory, all do.
            pairs.sort(key=lambda pair: -len(pair[1].ids))
            yield from (pairs[start : start + size] for start in range(0, len(pairs), size))

    def _checked(self, vectors: Vectors) -> Vectors:
        check_finite(self._backbone, vectors)
        return vectors


def _is_readable(item: ImageItem, errors: dict[bytes, str]) -> bool:
    """Whether the model is needed at all: it is not loaded for the sake of images that cannot be read."""
    key, image = item
    try:
        decode(image)
    except UnreadableError as error:
        errors[key] = str(error)
        return False
    return True


def _with_keys(decoder: Decoder, items: Sequence[ImageItem]) -> Iterable[KeyedPixels]:
    return zip((key for key, _ in items), decoder(items), strict=True)


def _no_vectors() -> Vectors:
    return np.zeros((0, 0), dtype=np.float32)
