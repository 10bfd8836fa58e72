"""Opening images in processes of their own.

Python runs one thread at a time, and opening an image holds it up now and then: on sixteen cores, threads open not half as many
images as processes do. A process gets a path and the image's key, and sends back the pixels that the model takes. It is a program
of its own, so that nothing of the caller's is run again or copied; one that an image has crashed is replaced.
"""

import json
import subprocess
import sys
import weakref
from collections.abc import Callable
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


def open_pixels(picture: Picture, key: bytes, transform: Callable[[Image], Pixels]) -> Pixels:
    """The pixels that a model takes, of a picture that still holds what its key says."""
    data = read(picture)
    if picture_key(data) != key:
        raise UnreadableError(f"{name_of(picture)} changed while it was read")
    return transform(decode(data, name_of(picture), getattr(transform, "smallest_side", None)))


class Openers:
    """Processes that open images; called from as many threads."""

    def __init__(self, count: int, transform: ImageTransform) -> None:
        self._transform = transform
        self._idle: LifoQueue[_Process] = LifoQueue()
        for _ in range(count):
            self._idle.put(_Process(transform))

    def __call__(self, picture: Picture, key: bytes) -> Pixels:
        if not isinstance(picture, str | PathLike):
            return open_pixels(picture, key, self._transform)
        process = self._idle.get()
        try:
            return process.open(str(picture), key)
        except (OSError, EOFError):
            process = _Process(self._transform)
            raise UnreadableError(f"{picture} crashed the process that opened it") from None
        finally:
            self._idle.put(process)


class _Process:
    def __init__(self, transform: ImageTransform) -> None:
        folder = str(Path(__file__).parents[2])
        program = f"import sys; sys.path.insert(0, {folder!r}); from caplens.embed.opener import serve; serve()"
        # In a session of its own it does not get the user's Ctrl-C; it ends when nobody can ask it any more.
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        weakref.finalize(self, _end, self._process)
        self._send(asdict(transform))

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def open(self, path: str, key: bytes) -> Pixels:
        self._send([path, key.hex()])
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise EOFError
        shape = json.loads(answer)
        if isinstance(shape, str):
            raise UnreadableError(shape)
        pixels: Pixels = np.empty(shape, dtype=np.uint8)
        stream: Any = self._process.stdout
        if stream.readinto(pixels.reshape(-1)) < pixels.size:
            raise EOFError
        return pixels


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def serve() -> None:
    """Answer until nobody asks: a line with the shape and then the pixels, or a line with why there are none."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    chosen = json.loads(requests.readline())
    settings: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()}
    transform = ImageTransform(**settings)
    for line in requests:
        path, key = json.loads(line)
        try:
            pixels = open_pixels(path, bytes.fromhex(key), transform)
            answers.write(json.dumps(pixels.shape).encode() + b"\n")
            answers.write(np.ascontiguousarray(pixels).data)
        except UnreadableError as error:
            answers.write(json.dumps(str(error)).encode() + b"\n")
        answers.flush()
