"""Reading videos: the frames that are wanted, as a person would see them, or one sentence why not.

The packets of a file are read once without decoding, which gives the times of all frames, however irregular; then only what lies
between a wanted frame and the key frame before it is decoded. A video may also be a folder of images, or images in memory.
"""

import hashlib
import io
import math
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from PIL import Image

from caplens.backbones.transform import Pixels
from caplens.data.files import open_regular
from caplens.data.media import ADDRESS, Frames, ImageArray, ImageSource, MissingImage, VideoSource, as_images, media_name
from caplens.data.sample import Sample
from caplens.embed import images
from caplens.embed.images import TooLargeError, UnreadableError, image_key, opened
from caplens.embed.keys import content_key
from caplens.errors import InputError, MissingExtraError, option
from caplens.libraries import install_command

DEFAULT_FRAMES = 10
_FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,gif,mpegts,mpeg,flv,ogg,asf"
"""What is opened; not playlists, which name other files."""
_IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
_BYTES = 34
"""Of a pixel: a decoder keeps at most 20 frames of 1.5 bytes a pixel, and one is converted."""
_SOUGHT_BY_POSITION = frozenset({"mpegts", "mpeg"})
"""Formats whose frames are not found by their times."""
_MOST_FRAMES, _MOST_PACKETS = 4096, 1 << 22
_LEAST_DURATION, _MOST_SECONDS = 1e-3, 1e9
_LAST_FRAME = 1.0
"""Seconds for which the last frame may be shown."""
_NUMBER = re.compile(r"(\d+)")


class FrameChoice(NamedTuple):
    """Which frames of a video are looked at."""

    number: int = DEFAULT_FRAMES
    """So many, evenly spaced from the first to the last."""
    fps: float | None = None
    """Instead, so many per second."""

    @property
    def label(self) -> str:
        return str(self.number) if self.fps is None else f"{self.fps!r}fps"

    def indices(self, times: Sequence[float]) -> list[int]:
        """The frames that are wanted of those shown at these seconds, in order of time."""
        if self.fps is None:
            return [int(index) for index in np.linspace(0, len(times) - 1, self.number)]
        # A frame is wanted if a moment at which one is taken comes while it is shown.
        shown = (np.asarray(times) - times[0]) * self.fps
        moments = np.ceil(shown - 1e-6)
        wanted = np.append(moments[:-1] < shown[1:] - 1e-6, moments[-1] <= shown[-1] + 1e-6)
        chosen = [int(index) for index in np.flatnonzero(wanted)]
        if len(chosen) > _MOST_FRAMES:
            raise UnreadableError(f"the video has {len(chosen):,} frames at this rate, more than {_MOST_FRAMES:,}")
        return chosen


class VideoClip(NamedTuple):
    """A video, or what it shows between two seconds."""

    source: VideoSource
    start: float | None = None
    end: float | None = None
    duration: float | None = None
    """Seconds of a video that is given as frames."""

    def part(self, times: Sequence[float]) -> range:
        """The frames between start and end; at least one."""
        if self.start is not None and self.start > times[-1] + _LAST_FRAME:
            raise UnreadableError(f"the video ends after {times[-1]:.1f} seconds, before the clip starts ({self.start:g})")
        first = 0 if self.start is None else int(np.searchsorted(times, self.start - 1e-9))
        last = len(times) if self.end is None else int(np.searchsorted(times, self.end - 1e-9))
        first = min(first, len(times) - 1)
        return range(first, max(first + 1, last))


def clip_of(sample: Sample) -> VideoClip:
    """The video of a sample; `start`, `end` and `duration` are seconds."""
    assert sample.video is not None
    start, end, duration = (_seconds(sample, name) for name in ("start", "end", "duration"))
    if start is not None and end is not None and end < start:
        raise InputError(f"sample {sample.id!r}: its clip ends ({end:g}) before it starts ({start:g}).")
    return VideoClip(sample.video, start, end, duration)


def _seconds(sample: Sample, name: str) -> float | None:
    values = [value for column, value in sample.meta.items() if column.strip().lower() == name and value not in (None, "")]
    if not values:
        return None
    if len(values) > 1:
        raise InputError(f"sample {sample.id!r}: several columns mean {name!r}. Rename all but one.")
    (value,) = values
    try:
        seconds = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if not (_LEAST_DURATION if name == "duration" else 0) <= seconds < _MOST_SECONDS:
        raise InputError(f"sample {sample.id!r}: {name!r} is a number of seconds, not {value!r}.")
    return seconds


def check_choice(number: int, fps: float | None) -> FrameChoice:
    """The choice of frames; an error if there can be none."""
    if not 1 <= number <= _MOST_FRAMES or (fps is not None and not 0 < fps < math.inf):
        raise InputError(
            f"a video needs at least one frame: between 1 and {_MOST_FRAMES:,} for {option('frames')}, and a number above 0 for"
            f" {option('fps')}."
        )
    return FrameChoice(number, fps)


def clip_key(clip: VideoClip, choice: FrameChoice) -> bytes:
    """By content: the hash of the file, and which of its frames are wanted."""
    about = f"{clip.start} {clip.end} {clip.duration} {choice.label}".encode()
    sources = _frame_sources(clip.source)
    if sources is not None:
        return content_key(b"v", about + b"".join(image_key(source) for source in sources))
    with _open_file(clip.source) as (file, name):
        try:
            return content_key(b"v", about + hashlib.file_digest(file, "sha256").digest())  # type: ignore[arg-type]
        except OSError as error:
            raise UnreadableError(f"{name} cannot be read ({error.strerror or error})") from None


def read_frames(clip: VideoClip, choice: FrameChoice, transform: Callable[[Image.Image], Pixels]) -> list[Pixels]:
    """The frames that are wanted, each as the model takes it."""
    sources = _frame_sources(clip.source)
    if sources is not None:
        return _listed_frames(sources, clip, choice, transform)
    with _open_file(clip.source) as (file, name):
        try:
            return _decoded_frames(file, name, clip, choice, transform)
        except UnreadableError:
            raise
        except (_av().FFmpegError, ValueError, ArithmeticError, IndexError) as error:
            raise UnreadableError(f"{name} cannot be decoded as a video ({_reason(error)})") from None


def _av() -> Any:
    try:
        import av
    except ImportError:
        raise MissingExtraError("Reading videos", "av", install_command("video")) from None
    return av


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


@contextmanager
def _open_file(source: VideoSource) -> Iterator[tuple[IO[bytes], str]]:
    """The content of a video file, and the name by which messages call it."""
    if isinstance(source, str) and ADDRESS.match(source):
        raise UnreadableError(f"{source} is an address; videos are not downloaded")
    name = media_name(source, "video")
    try:
        file = io.BytesIO(source) if isinstance(source, bytes) else open_regular(source)  # type: ignore[arg-type]
    except FileNotFoundError:
        raise UnreadableError(f"there is no file {name}") from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"{name} cannot be read ({getattr(error, 'strerror', None) or error})") from None
    with file:
        if not file.read(1):
            raise UnreadableError(f"{name} is empty")
        file.seek(0)
        yield file, name


def _frame_sources(source: VideoSource) -> tuple[ImageSource, ...] | None:
    """The images of a video that is given as such, or as a folder; None for a file."""
    if isinstance(source, MissingImage):
        raise UnreadableError(source.reason)
    if isinstance(source, Frames):
        if not source.images:
            raise UnreadableError("the video has no frames")
        return source.images
    if isinstance(source, ImageArray):
        return tuple(image for image in as_images(source) if image is not None)
    if isinstance(source, bytes) or not os.path.isdir(source):  # noqa: PTH112
        return None
    files = [entry for entry in Path(source).iterdir() if entry.suffix.lower() in _IMAGE_SUFFIXES and entry.is_file()]
    if not files:
        raise UnreadableError(f"{source} is a folder without images")
    return tuple(str(file) for file in sorted(files, key=_natural_order))


def _natural_order(file: Path) -> list[tuple[int, str]]:
    """frame2 before frame10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBER.split(file.name)]


def _listed_frames(
    sources: Sequence[ImageSource], clip: VideoClip, choice: FrameChoice, transform: Callable[[Image.Image], Pixels]
) -> list[Pixels]:
    count = len(sources)
    if clip.duration is None:
        if choice.fps is not None or clip.start is not None or clip.end is not None:
            raise UnreadableError("the seconds of single frames are not known; give the 'duration' of the video")
        part: Sequence[int] = range(count)
        times = [float(index) for index in part]
    else:
        if clip.start is not None and clip.start >= clip.duration:
            raise UnreadableError(f"the video takes {clip.duration:g} seconds, and the clip starts later ({clip.start:g})")
        # The frames of ActivityNet-FOIL: t0 * F // duration up to t1 * F // duration.
        first = min(count - 1, int((clip.start or 0) * count // clip.duration))
        last = count if clip.end is None else int(clip.end * count // clip.duration)
        part = range(first, max(first + 1, min(count, last)))
        times = [index * clip.duration / count for index in part]
    chosen = [part[index] for index in choice.indices(times)]
    pixels = {}
    for index in dict.fromkeys(chosen):
        with opened(sources[index]) as image:
            pixels[index] = transform(image)
    return [pixels[index] for index in chosen]


class _Timeline(NamedTuple):
    """When the frames of a stream are shown, in its own units."""

    shown: list[int]
    keys: list[int]
    """Frames from which decoding can begin."""
    seekable: bool
    """Whether a frame can be found by its time."""

    @classmethod
    def of(cls, container: Any, stream: Any) -> "_Timeline":
        shown, keys = [], []
        # Streams of MPEG are sought by position, and lead to a frame that may be later than the one that is wanted.
        seekable = not _SOUGHT_BY_POSITION.intersection(container.format.name.split(","))
        for packet in islice(container.demux(stream), _MOST_PACKETS + 1):
            time = packet.pts if packet.pts is not None else packet.dts
            if time is not None and packet.size and not packet.is_discard:
                # Without this, only the order of decoding is known, which is not that of showing.
                seekable = seekable and packet.pts is not None
                shown.append(time)
                if packet.is_keyframe:
                    keys.append(time)
        if len(shown) > _MOST_PACKETS:
            raise UnreadableError(f"the video has more than {_MOST_PACKETS:,} frames")
        return cls(sorted(shown), sorted(keys), seekable)


def _decoded_frames(
    file: IO[bytes], name: str, clip: VideoClip, choice: FrameChoice, transform: Callable[[Image.Image], Pixels]
) -> list[Pixels]:
    with _container(file) as (container, stream):
        _check_stream(stream, name)
        timeline = _Timeline.of(container, stream)
        scale, size = float(stream.time_base), stream.codec_context.width * stream.codec_context.height
    if not timeline.shown:
        raise UnreadableError(f"{name} has no frames")
    times = [(time - timeline.shown[0]) * scale for time in timeline.shown]
    part = clip.part(times)
    chosen = [part[index] for index in choice.indices([times[index] for index in part])]
    wanted = sorted(set(chosen))
    with images.budget.taken(size * _BYTES):
        try:
            if not timeline.seekable:
                raise _WrongFrameError
            pixels = _transformed(file, partial(_frames_by_time, timeline, wanted), name, transform)
        except _WrongFrameError:
            pixels = _transformed(file, partial(_frames_by_number, wanted), name, transform)
    if len(pixels) < len(wanted):
        raise UnreadableError(f"{name} is damaged: it ends before its last frame")
    return [pixels[number] for number in chosen]


def _transformed(
    file: IO[bytes],
    frames_of: Callable[[Any, Any], Iterator[tuple[int, Any]]],
    name: str,
    transform: Callable[[Image.Image], Pixels],
) -> dict[int, Pixels]:
    """Number of a frame -> its pixels."""
    file.seek(0)
    pixels: dict[int, Pixels] = {}
    with _container(file) as (container, stream):
        for number, frame in frames_of(container, stream):
            _check_size(frame.width, frame.height, name)
            image = frame.to_image()
            pixels[number] = transform(image.rotate(frame.rotation, expand=True) if frame.rotation else image)
    return pixels


@contextmanager
def _container(file: IO[bytes]) -> Iterator[tuple[Any, Any]]:
    """The file and its first stream of pictures."""
    options = {"format_whitelist": _FORMATS, "protocol_whitelist": ""}
    with _av().open(file, container_options=options, metadata_errors="replace") as container:
        stream = next(iter(container.streams.video), None)
        if stream is not None and stream.codec_context is not None:
            # One thread for each video: many are read at a time.
            stream.codec_context.thread_count = 1
        yield container, stream


def _check_stream(stream: Any, name: str) -> None:
    if stream is None:
        raise UnreadableError(f"{name} has no pictures, only sound or text")
    if stream.codec_context is None:
        raise UnreadableError(f"{name} is encrypted, or in a format that cannot be decoded")
    _check_size(stream.codec_context.width, stream.codec_context.height, name)


def _check_size(width: int, height: int, name: str) -> None:
    if width * height * _BYTES > images.budget.limit:
        raise TooLargeError(f"{name} has frames of {width} x {height} pixels, which is more than is decoded")


class _WrongFrameError(Exception):
    """The frame of a time was not found there."""


def _frames_by_time(timeline: _Timeline, wanted: Sequence[int], container: Any, stream: Any) -> Iterator[tuple[int, Any]]:
    """The frames with these numbers, in order; what lies before the key frame of the next one is skipped."""
    frames, keys = container.decode(stream), timeline.keys
    last: Any = None
    for number in wanted:
        time = timeline.shown[number]
        place = bisect_right(keys, time)
        key = keys[place - 1] if place else None
        if key is not None and key > (_time(last) if last is not None else keys[0]):
            container.seek(key, stream=stream, backward=True)
            frames, last = container.decode(stream), None
        while last is None or _time(last) < time:
            last = next(frames, None)
            if last is None:
                raise _WrongFrameError
        if _time(last) != time:
            raise _WrongFrameError
        yield number, last


def _frames_by_number(wanted: Sequence[int], container: Any, stream: Any) -> Iterator[tuple[int, Any]]:
    """The same by counting all frames from the first, which takes longer and works for every format."""
    for number, frame in enumerate(islice(container.decode(stream), wanted[-1] + 1)):
        if number in wanted:
            yield number, frame


def _time(frame: Any) -> int:
    time = frame.pts if frame.pts is not None else frame.dts
    if time is None:
        raise ValueError("a frame has no time")
    return int(time)
