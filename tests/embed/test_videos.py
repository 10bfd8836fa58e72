"""Reading videos, beside what was encoded: each frame has a grey of its own."""

import struct
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from extras import need
from PIL import Image

from caplens.data.media import Frames
from caplens.embed.images import UnreadableError
from caplens.embed.videos import FrameChoice, VideoClip, clip_key, read_frames

av = need("av")


def encode(path, greys, codec="mpeg4", rate=25, size=(64, 48), pts=None, options=None, container_options=None):
    """A video whose frames are grey, in the order given; `pts` are their times in units of 1/rate."""
    with av.open(str(path), "w", options=container_options or {}) as container:
        stream = container.add_stream(codec, rate=rate, options=options or {})
        stream.width, stream.height = size
        stream.pix_fmt = "rgb8" if codec == "gif" else "yuv420p"
        stream.codec_context.time_base = Fraction(1, rate)
        for number, grey in enumerate(greys):
            frame = av.VideoFrame.from_ndarray(np.full((size[1], size[0], 3), grey, np.uint8), format="rgb24")
            frame.pts = number if pts is None else pts[number]
            frame.time_base = Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def greys_of(path, choice=FrameChoice(), **clip):  # noqa: B008
    frames = read_frames(VideoClip(str(path), **clip), choice, lambda image: np.asarray(image.convert("RGB")))
    return [int(frame.mean()) for frame in frames]


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("a.mp4", "mpeg4", {}),
        ("a.mp4", "libx264", {"g": "12", "bf": "2"}),
        ("a.mkv", "libx264", {"g": "250"}),
        ("a.webm", "libvpx", {}),
        ("a.avi", "mpeg4", {}),
        ("a.mov", "libx264", {"g": "30"}),
        ("a.gif", "gif", {}),
    ],
)
def test_frames_are_evenly_spaced_from_the_first_to_the_last(tmp_path, name, codec, options):
    if codec not in av.codecs_available:
        pytest.skip(f"needs an FFmpeg with {codec}")
    count = 48
    path = encode(tmp_path / name, [20 + 4 * number for number in range(count)], codec, options=options)
    wanted = [20 + 4 * int(index) for index in np.linspace(0, count - 1, 10)]
    # GIF has eight bits for all colours.
    assert np.abs(np.subtract(greys_of(path), wanted)).max() <= (20 if codec == "gif" else 4)


def test_a_range_of_seconds_and_frames_per_second(tmp_path):
    path = encode(tmp_path / "a.mp4", [20 + number for number in range(200)], rate=20)
    assert np.allclose(greys_of(path, FrameChoice(fps=1)), range(20, 220, 20), atol=5)
    assert np.allclose(greys_of(path, FrameChoice(3), start=2, end=4), [60, 79, 99], atol=6)
    with pytest.raises(UnreadableError, match="before the clip starts"):
        greys_of(path, FrameChoice(2), start=100)


def test_frames_that_come_at_odd_times_are_counted_as_frames(tmp_path):
    pts = [0, 1, 2, 3, 50, 51, 52, 53, 54, 100]
    path = encode(tmp_path / "a.mkv", [20 * number for number in range(10)], "libx264", pts=pts, options={"g": "3"})
    assert np.allclose(greys_of(path), range(0, 200, 20), atol=4)
    assert np.allclose(greys_of(path, FrameChoice(2), start=1.9, end=2.2), [80, 160], atol=4)


def test_few_frames_are_shown_several_times(tmp_path):
    path = encode(tmp_path / "a.mp4", [100, 200])
    assert np.allclose(greys_of(path, FrameChoice(4)), [100, 100, 100, 200], atol=3)


def test_a_video_that_is_to_be_turned_is_turned(tmp_path):
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 32, "yuv420p"
        picture = np.zeros((32, 64, 3), np.uint8)
        picture[:, :32] = 200
        for _ in range(3):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    content = bytearray((tmp_path / "a.mp4").read_bytes())
    place = content.index(b"tkhd") + 4 + 40
    one = 1 << 16
    # As a telephone writes it that was held upright: to be turned clockwise by a quarter.
    content[place : place + 36] = struct.pack(">9i", 0, one, 0, -one, 0, 0, 32 * one, 0, 1 << 30)
    (tmp_path / "b.mp4").write_bytes(content)
    (frame,) = read_frames(VideoClip(str(tmp_path / "b.mp4")), FrameChoice(1), np.asarray)
    assert frame.shape == (64, 32, 3)
    assert frame[:32].mean() > 150
    assert frame[32:].mean() < 50


def test_folders_of_frames_and_images_in_memory(tmp_path):
    images = [Image.new("RGB", (8, 8), (10 * number,) * 3) for number in range(12)]
    (tmp_path / "clip").mkdir()
    for number, image in enumerate(images):
        image.save(tmp_path / "clip" / f"frame{number}.png")
    (tmp_path / "clip" / "notes.txt").write_text("x", encoding="utf-8")
    assert greys_of(tmp_path / "clip", FrameChoice(4)) == [0, 30, 70, 110]
    # The frames of ActivityNet-FOIL: t0 * F // duration up to t1 * F // duration.
    assert greys_of(tmp_path / "clip", FrameChoice(3), start=1, end=3.5, duration=6) == [20, 40, 60]
    clip = VideoClip(Frames(tuple(images)))
    assert [int(frame.mean()) for frame in read_frames(clip, FrameChoice(4), np.asarray)] == [0, 30, 70, 110]
    array = np.stack([np.asarray(image) for image in images])
    assert [int(frame.mean()) for frame in read_frames(VideoClip(array), FrameChoice(4), np.asarray)] == [0, 30, 70, 110]
    with pytest.raises(UnreadableError, match="the 'duration' of the video"):
        greys_of(tmp_path / "clip", start=1)


def test_what_cannot_be_read_is_told(tmp_path):
    good = encode(tmp_path / "a.mp4", range(0, 250, 5)).read_bytes()
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "text.mp4").write_text("no video", encoding="utf-8")
    (tmp_path / "cut.mp4").write_bytes(good[: len(good) // 2])
    (tmp_path / "folder").mkdir()
    (tmp_path / "list.m3u8").write_text("#EXTM3U\n#EXTINF:1,\na.mp4\n#EXT-X-ENDLIST\n", encoding="utf-8")
    key = "00112233445566778899aabbccddeeff"
    scheme = {"encryption_scheme": "cenc-aes-ctr", "encryption_key": key, "encryption_kid": key}
    encode(tmp_path / "encrypted.mp4", range(0, 250, 5), "libx264", container_options=scheme)
    with av.open(str(tmp_path / "sound.mp4"), "w") as container:
        sound = container.add_stream("aac", rate=8000)
        silence = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        silence.rate = 8000
        container.mux(sound.encode(silence))
        container.mux(sound.encode())
    for name, reason in {
        "empty.mp4": "is empty",
        "text.mp4": "cannot be decoded as a video",
        "cut.mp4": "cannot be decoded as a video",
        "folder": "a folder without images",
        "list.m3u8": "cannot be decoded as a video",
        "encrypted.mp4": "encrypted|cannot be decoded",
        "sound.mp4": "only sound",
        "missing.mp4": "there is no file",
    }.items():
        with pytest.raises(UnreadableError, match=reason):
            greys_of(tmp_path / name)


def test_damaged_bytes_end_with_a_sentence_or_with_frames(tmp_path):
    good = bytearray(encode(tmp_path / "a.mp4", range(0, 250, 5), "libx264").read_bytes())
    rng = np.random.default_rng(0)
    for number in range(60):
        content = bytearray(good)
        for place in rng.integers(0, len(content), 1 + number % 12):
            content[place] ^= int(rng.integers(1, 256))
        (tmp_path / "b.mp4").write_bytes(content)
        try:
            assert len(greys_of(tmp_path / "b.mp4")) == 10
        except UnreadableError as error:
            message = str(error)
            assert "b.mp4" in message


LONG = """
import resource, sys
from pathlib import Path
import numpy as np
from caplens.embed.videos import FrameChoice, VideoClip, read_frames
frames = read_frames(VideoClip(sys.argv[1]), FrameChoice(10), lambda image: np.asarray(image.resize((32, 32))))
assert len(frames) == 10
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_two_hours_in_4k_take_no_more_memory_than_seconds(tmp_path):
    """A second of video, written again and again with later times."""
    if "libx264" not in av.codecs_available:
        pytest.skip("needs an FFmpeg with libx264")
    second = encode(tmp_path / "second.mkv", [100] * 25, "libx264", size=(3840, 2160), options={"g": "25", "preset": "ultrafast"})
    peaks = []
    for seconds in (10, 7200):
        path = tmp_path / f"{seconds}.mkv"
        with av.open(str(second)) as source, av.open(str(path), "w") as target:
            stream = source.streams.video[0]
            packets = [packet for packet in source.demux(stream) if packet.dts is not None]
            copy = target.add_stream_from_template(stream)
            times = [(packet.pts, packet.dts) for packet in packets]
            length = round(1 / stream.time_base)
            for number in range(seconds):
                for packet, (pts, dts) in zip(packets, times, strict=True):
                    packet.pts, packet.dts, packet.stream = pts + number * length, dts + number * length, copy
                    target.mux(packet)
        said = subprocess.run([sys.executable, "-c", LONG, str(path)], check=True, capture_output=True, text=True)
        peaks.append(int(said.stdout) / 1024)
    assert peaks[1] < peaks[0] + 100


def test_keys_are_by_content_and_by_the_frames_that_are_wanted(tmp_path):
    first = encode(tmp_path / "a.mp4", [1, 2, 3])
    (tmp_path / "b.mp4").write_bytes(first.read_bytes())
    other = encode(tmp_path / "c.mp4", [3, 2, 1])
    key = clip_key(VideoClip(str(first)), FrameChoice())
    assert clip_key(VideoClip(str(tmp_path / "b.mp4")), FrameChoice()) == key
    assert clip_key(VideoClip(first.read_bytes()), FrameChoice()) == key
    different = {
        key,
        clip_key(VideoClip(str(other)), FrameChoice()),
        clip_key(VideoClip(str(first)), FrameChoice(3)),
        clip_key(VideoClip(str(first), 0.0, 1.0), FrameChoice()),
        clip_key(VideoClip(str(first)), FrameChoice(fps=2)),
    }
    assert len(different) == 5
