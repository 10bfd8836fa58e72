"""Matrices: a row for each frame of a video, or for each token of a text. Each is computed once, and kept in the store."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from os import PathLike

import numpy as np
from PIL.Image import Image

from caplens.arrays import Vectors
from caplens.backbones.base import Backbone, check_finite
from caplens.backbones.transform import Pixels
from caplens.data.media import media_name
from caplens.embed.images import UnreadableError
from caplens.embed.keys import Text, content_key, file_version, text_key
from caplens.embed.pipeline import ahead, in_order
from caplens.embed.vector_file import ModelVectors
from caplens.embed.videos import FrameChoice, VideoClip, clip_key, read_frames
from caplens.errors import InputError
from caplens.progress import track

_ClipVersion = tuple[str | float | int | None, ...]
_FRAMES_TOGETHER, _TEXTS_TOGETHER = 64, 64
_AHEAD = 4
"""Videos for each worker that are read before the model takes them."""
_MOST_WORKERS = 8


@dataclass(frozen=True)
class FrameEmbeddings:
    """The vectors of the frames of several videos."""

    matrices: list[Vectors | None]
    """Of each video (frames, dim); None where it could not be read."""
    errors: dict[int, str]
    """Video -> why it has none."""


class SequenceEncoder:
    """Encodes the frames of videos and the tokens of texts with one model, through its file in the store."""

    def __init__(self, backbone: Backbone, vectors: ModelVectors, workers: int | None = None) -> None:
        self._backbone, self._vectors = backbone, vectors
        self._workers = min(workers or os.cpu_count() or 1, _MOST_WORKERS)
        self._keys: dict[_ClipVersion, bytes | UnreadableError] = {}
        """So that a file is hashed once, however many captions it has."""

    def frames(self, clips: Sequence[VideoClip], choice: FrameChoice) -> FrameEmbeddings:
        """The vectors of the chosen frames of each video."""
        keys = self._clip_keys(clips, choice)
        by_key = {key: clip for key, clip in zip(keys, clips, strict=True) if isinstance(key, bytes)}
        matrices = self._vectors.get_matrices(list(by_key))
        missing = {key: clip for key, clip in by_key.items() if key not in matrices}
        unreadable: dict[bytes, str] = {}
        for new in track(self._encode_clips(missing, choice, unreadable), "encoding videos", len(missing), size=len):
            self._vectors.put_matrices(new)
            matrices.update(new)
        errors = {
            place: unreadable[key] if isinstance(key, bytes) else str(key)
            for place, key in enumerate(keys)
            if not isinstance(key, bytes) or key in unreadable
        }
        return FrameEmbeddings([matrices.get(key) if isinstance(key, bytes) else None for key in keys], errors)

    def _clip_keys(self, clips: Sequence[VideoClip], choice: FrameChoice) -> list[bytes | UnreadableError]:
        versions = [_version(clip, choice) for clip in clips]
        new = {version: clip for version, clip in zip(versions, clips, strict=True) if version and version not in self._keys}
        with ThreadPoolExecutor(self._workers) as pool:
            self._keys.update(zip(new, pool.map(partial(_key_of, choice=choice), new.values()), strict=True))
        return [self._keys[version] if version else _key_of(clip, choice) for version, clip in zip(versions, clips, strict=True)]

    def _encode_clips(
        self, clips: Mapping[bytes, VideoClip], choice: FrameChoice, errors: dict[bytes, str]
    ) -> Iterator[dict[bytes, Vectors]]:
        """Frames of several videos go through the model together; videos that cannot be read are put into `errors`."""
        if not clips:
            return
        pool = ThreadPoolExecutor(self._workers)
        transform = self._backbone.transform or self._backbone.pixels
        tasks = (partial(_read, key, clip, choice, transform) for key, clip in clips.items())
        waiting: list[tuple[bytes, list[Pixels]]] = []
        try:
            for key, pixels in in_order(pool, tasks, _AHEAD * self._workers):
                if isinstance(pixels, UnreadableError):
                    errors[key] = str(pixels)
                    continue
                waiting.append((key, pixels))
                if sum(len(frames) for _, frames in waiting) >= _FRAMES_TOGETHER:
                    yield self._encode_frames(waiting)
                    waiting = []
            if waiting:
                yield self._encode_frames(waiting)
        finally:
            pool.shutdown(cancel_futures=True)

    def _encode_frames(self, videos: Sequence[tuple[bytes, list[Pixels]]]) -> dict[bytes, Vectors]:
        frames = [pixels for _, of_video in videos for pixels in of_video]
        vectors = np.concatenate(
            [
                self._backbone.encode_pixels(self._backbone.stack(frames[start : start + _FRAMES_TOGETHER]))
                for start in range(0, len(frames), _FRAMES_TOGETHER)
            ]
        )
        check_finite(self._backbone, vectors)
        ends = np.cumsum([len(pixels) for _, pixels in videos])
        return {key: vectors[end - len(pixels) : end] for (key, pixels), end in zip(videos, ends, strict=True)}

    def tokens(self, texts: Sequence[Text]) -> list[Vectors]:
        """The vectors of each text's tokens, from its start to its end marker."""
        keys = [_tokens_key(text) for text in texts]
        by_key = dict(zip(keys, texts, strict=True))
        matrices = self._vectors.get_matrices(list(by_key))
        missing = [(key, text) for key, text in by_key.items() if key not in matrices]
        for new in track(ahead(self._encode_tokens(missing)), "encoding words", len(missing), size=len):
            self._vectors.put_matrices(new)
            matrices.update(new)
        return [matrices[key] for key in keys]

    def _encode_tokens(self, texts: Sequence[tuple[bytes, Text]]) -> Iterator[dict[bytes, Vectors]]:
        ordered = sorted(texts, key=lambda item: len(item[1].whole))
        for start in range(0, len(ordered), _TEXTS_TOGETHER):
            batch = ordered[start : start + _TEXTS_TOGETHER]
            try:
                matrices = self._backbone.encode_tokens([text.whole for _, text in batch])
            except NotImplementedError:
                raise InputError(
                    f"{self._backbone.name} has no vectors of single words, which this metric needs. Choose another model."
                ) from None
            for matrix in matrices:
                check_finite(self._backbone, matrix)
            yield {key: matrix for (key, _), matrix in zip(batch, matrices, strict=True)}


def _version(clip: VideoClip, choice: FrameChoice) -> _ClipVersion | None:
    """By which a clip of a file is known to be unchanged; None for what is not a file, such as a folder of frames."""
    is_file = isinstance(clip.source, str | PathLike) and not os.path.isdir(clip.source)  # noqa: PTH112
    version = file_version(str(clip.source)) if is_file else None
    return None if version is None else (*version, *clip[1:], choice.label)


def _tokens_key(text: Text) -> bytes:
    return content_key(b"w", text_key(text))


def _key_of(clip: VideoClip, choice: FrameChoice) -> bytes | UnreadableError:
    try:
        return clip_key(clip, choice)
    except UnreadableError as error:
        return error


def _read(
    key: bytes, clip: VideoClip, choice: FrameChoice, transform: Callable[[Image], Pixels]
) -> tuple[bytes, list[Pixels] | UnreadableError]:
    try:
        frames = read_frames(clip, choice, transform)
        if clip_key(clip, choice) != key:
            raise UnreadableError(f"{media_name(clip.source, 'video')} changed while it was read")
        return key, frames
    except UnreadableError as error:
        return key, error
