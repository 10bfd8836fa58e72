"""Opening images in processes of their own.

Python runs one thread at a time, and opening an image holds it up now and then: on sixteen cores, threads open not half as many
images as processes do. A process gets some paths and keys, and gives back the pixels that the model takes. It is a program
of its own, so that nothing of the caller's is run again or copied; one that an image has crashed is replaced.
"""

import json
import math
import mmap
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from queue import LifoQueue
from typing import Any

import numpy as np
from PIL.Image import Image

from caplens.backbones.transform import ImageTransform, Pixels
from caplens.data.sample import Picture
from caplens.embed.pictures import UnreadableError, decode, name_of, picture_key, read

Item = tuple[bytes, Picture]
"""A picture and the key of what it holds."""
Opened = list[Pixels | UnreadableError]


def open_pixels(items: Sequence[Item], transform: Callable[[Image], Pixels]) -> Opened:
    """The pixels that a model takes, of pictures that still hold what their keys say."""
    return [_open_one(key, picture, transform) for key, picture in items]


def _open_one(key: bytes, picture: Picture, transform: Callable[[Image], Pixels]) -> Pixels | UnreadableError:
    try:
        data = read(picture)
        if picture_key(data) != key:
            raise UnreadableError(f"{name_of(picture)} changed while it was read")
        image = decode(data, name_of(picture))
    except UnreadableError as error:
        return error
    try:
        return transform(image)
    except Exception as error:
        # One odd picture, a single row of pixels say, must not end the run.
        return UnreadableError(f"{name_of(picture)} cannot be brought to the model's size ({error})")


class Openers:
    """Processes that open images; called from as many threads, with up to `most` images at a time."""

    def __init__(self, count: int, most: int, transform: ImageTransform) -> None:
        self._most, self._transform = most, transform
        self._idle: LifoQueue[_Process] = LifoQueue()
        for _ in range(count):
            self._idle.put(_Process(most, transform))

    def __call__(self, items: Sequence[Item]) -> Opened:
        if not all(isinstance(picture, str | PathLike) for _, picture in items):
            return open_pixels(items, self._transform)
        process = self._idle.get()
        try:
            return process.open(items)
        except (OSError, EOFError, ValueError):
            process = _Process(self._most, self._transform)
        finally:
            self._idle.put(process)
        if len(items) > 1:
            return [opened for item in items for opened in self([item])]
        return [UnreadableError(f"{name_of(items[0][1])} crashed the process that opened it")]


class _Process:
    """Pixels come back through memory that both sides share; what is said about them, through a pipe."""

    def __init__(self, most: int, transform: ImageTransform) -> None:
        folder = str(Path(__file__).parents[2])
        program = f"import sys; sys.path.insert(0, {folder!r}); from caplens.embed.opener import serve; serve()"
        with tempfile.TemporaryFile() as shared:
            shared.truncate(most * transform.most_bytes)
            self._pixels = np.frombuffer(mmap.mmap(shared.fileno(), 0), dtype=np.uint8)
            # In a session of its own it does not get the user's Ctrl-C; it ends when nobody can ask it any more.
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[shared.fileno()],
                start_new_session=True,
            )
            weakref.finalize(self, _end, self._process)
            self._send([shared.fileno(), asdict(transform)])

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def open(self, items: Sequence[Item]) -> Opened:
        self._send([(key.hex(), str(picture)) for key, picture in items])
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise EOFError
        made: Opened = []
        start = 0
        for shape in json.loads(answer):
            if isinstance(shape, str):
                made.append(UnreadableError(shape))
            else:
                end = start + math.prod(shape)
                made.append(self._pixels[start:end].reshape(shape).copy())
                start = end
        return made


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def serve() -> None:
    """Answer until nobody asks: lay the pixels into the shared memory, and say for each image its shape, or why there is none."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    shared, chosen = json.loads(requests.readline())
    settings: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()}
    transform, memory = ImageTransform(**settings), np.frombuffer(mmap.mmap(shared, 0), dtype=np.uint8)
    for line in requests:
        said: list[str | tuple[int, ...]] = []
        start = 0
        for pixels in open_pixels([(bytes.fromhex(key), path) for key, path in json.loads(line)], transform):
            if isinstance(pixels, UnreadableError):
                said.append(str(pixels))
            else:
                said.append(pixels.shape)
                memory[start : start + pixels.size] = pixels.ravel()
                start += pixels.size
        answers.write(json.dumps(said).encode() + b"\n")
        answers.flush()
