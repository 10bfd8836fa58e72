"""Decoding images in a pool of processes.

Python runs one thread at a time, and decoding an image holds the lock now and then: on sixteen cores, threads decode less than
half as many images as processes do. A process gets paths and keys, and returns the pixels that the model takes. It is a program
of its own, so that nothing of the caller's is run again or copied; one that an image has crashed is replaced.
"""

import json
import math
import mmap
import os
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict
from os import PathLike
from queue import LifoQueue
from typing import Any

import numpy as np
from PIL.Image import Image

from caplens.backbones.transform import ImageTransform, Pixels
from caplens.data.media import ImageSource, media_name
from caplens.embed import images
from caplens.embed.images import TooLargeError, UnreadableError
from caplens.embed.memory import MemoryBudget
from caplens.errors import CaplensError
from caplens.programs import program_of

ImageItem = tuple[bytes, ImageSource]
"""The key of an image's content, and the image."""
DecodedImages = list[Pixels | UnreadableError]


def decode_images(items: Sequence[ImageItem], transform: Callable[[Image], Pixels]) -> DecodedImages:
    """The pixels that a model takes, of images whose content still has the key."""
    return [_decode_image(key, image, transform) for key, image in items]


def _decode_image(key: bytes, source: ImageSource, transform: Callable[[Image], Pixels]) -> Pixels | UnreadableError:
    try:
        with images.opened(source, key) as image:
            return _resized(image, source, transform)
    except UnreadableError as error:
        return error


def _resized(image: Image, source: ImageSource, transform: Callable[[Image], Pixels]) -> Pixels | UnreadableError:
    try:
        return transform(image)
    except Exception as error:
        # One odd image, a single row of pixels say, must not end the run.
        return UnreadableError(f"{media_name(source)} cannot be brought to the model's size ({error})")


class DecoderPool:
    """Processes that decode images; called from as many threads, with up to `most` images at a time."""

    def __init__(self, count: int, most: int, transform: ImageTransform) -> None:
        self._most, self._transform = most, transform
        self._idle: LifoQueue[_Process] = LifoQueue()
        self._memory = images.budget.limit // count
        """What each process may take; an image that takes more is decoded here."""
        for _ in range(count):
            self._idle.put(_Process(most, transform, self._memory))

    def __call__(self, items: Sequence[ImageItem]) -> DecodedImages:
        if not all(isinstance(image, str | PathLike) for _, image in items):
            return decode_images(items, self._transform)
        process = self._idle.get()
        try:
            decoded = process.decode(items)
            return [
                _decode_image(*item, self._transform) if isinstance(pixels, TooLargeError) else pixels
                for item, pixels in zip(items, decoded, strict=True)
            ]
        except (OSError, EOFError, ValueError):
            process = _Process(self._most, self._transform, self._memory)
        finally:
            self._idle.put(process)
        if len(items) > 1:
            return [pixels for item in items for pixels in self([item])]
        return [UnreadableError(f"{media_name(items[0][1])} crashed the process that decoded it")]


class _Process:
    """Pixels come back through memory that both sides share; what is said about them, through a pipe."""

    def __init__(self, most: int, transform: ImageTransform, memory: int) -> None:
        with tempfile.TemporaryFile() as shared:
            _reserve(shared.fileno(), most * transform.most_bytes)
            self._pixels = np.frombuffer(mmap.mmap(shared.fileno(), 0), dtype=np.uint8)
            # In a session of its own it does not get the user's Ctrl-C; it ends when nobody can ask it any more.
            self._process = subprocess.Popen(
                program_of("caplens.embed.decode_pool", "serve"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[shared.fileno()],
                start_new_session=True,
            )
            weakref.finalize(self, _end, self._process)
            self._send([shared.fileno(), asdict(transform), memory])

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def decode(self, items: Sequence[ImageItem]) -> DecodedImages:
        self._send([(key.hex(), str(image)) for key, image in items])
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise EOFError
        decoded: DecodedImages = []
        start = 0
        for shape in json.loads(answer):
            if shape is None:
                decoded.append(TooLargeError())
            elif isinstance(shape, str):
                decoded.append(UnreadableError(shape))
            else:
                end = start + math.prod(shape)
                decoded.append(self._pixels[start:end].reshape(shape).copy())
                start = end
        return decoded


def _reserve(file: int, size: int) -> None:
    """Make a file so large. Where the disk is full that is an error now, and not the end of a process that writes to it."""
    try:
        os.posix_fallocate(file, 0, size) if hasattr(os, "posix_fallocate") else os.ftruncate(file, size)
    except OSError as error:
        raise CaplensError(f"{tempfile.gettempdir()}: there is no room for decoded images ({error.strerror}).") from None


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def serve() -> None:
    """Answer until nobody asks: lay the pixels into the shared memory, and say for each image its shape, or why there is none.

    Of an image that takes more memory than a process has, nothing is said.
    """
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    shared, chosen, memory_limit = json.loads(requests.readline())
    images.budget = MemoryBudget(memory_limit)
    settings: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()}
    transform, memory = ImageTransform(**settings), np.frombuffer(mmap.mmap(shared, 0), dtype=np.uint8)
    for line in requests:
        reply: list[str | tuple[int, ...] | None] = []
        start = 0
        for pixels in decode_images([(bytes.fromhex(key), path) for key, path in json.loads(line)], transform):
            if isinstance(pixels, UnreadableError):
                reply.append(None if isinstance(pixels, TooLargeError) else str(pixels))
            else:
                reply.append(pixels.shape)
                memory[start : start + pixels.size] = pixels.ravel()
                start += pixels.size
        answers.write(json.dumps(reply).encode() + b"\n")
        answers.flush()
