"""Reading frames of videos, beside decord and OpenCV: `python benchmarks/video_speed.py --data DATA`, where these are installed.

Each clip shows twenty photos of Flickr8k for half a second each, in H.264 with a key frame every second or only at the start. Ten
frames of a clip are read and resized, in one thread. Then many clips go through the engine with caplens-mini; its peak of memory
is measured after a tenth of them and at the end. DATA holds flickr8k.
"""

import argparse
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from caplens.backbones import load_backbone
from caplens.embed import Engine
from caplens.embed.videos import FrameChoice, VideoClip, read_frames
from caplens.training.mini.collection import read_groups, read_photos

RATE, SECONDS, SHOWN, SIZE = 25, 10, 20, (640, 360)
FRAMES = 10
Read = Callable[[str], int]


def write_clip(path: Path, photos: NDArray[np.uint8], keys: int) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"g": str(keys), "preset": "veryfast"})
        stream.width, stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        for number in range(RATE * SECONDS):
            photo = Image.fromarray(photos[number * SHOWN // (RATE * SECONDS)])
            # A slow zoom, so that frames differ.
            margin = number % (RATE // 2)
            picture = photo.crop((margin, margin, photo.width - margin, photo.height - margin)).resize(SIZE)
            container.mux(stream.encode(av.VideoFrame.from_image(picture)))
        container.mux(stream.encode())


def resized(image: Image.Image) -> NDArray[np.uint8]:
    return np.asarray(image.resize((224, 224), Image.Resampling.BICUBIC))


def by_caplens(path: str) -> int:
    return len(read_frames(VideoClip(path), FrameChoice(FRAMES), resized))


def by_decord(path: str) -> int:
    decord: Any = import_module("decord")
    reader = decord.VideoReader(path, num_threads=1)
    frames = reader.get_batch(np.linspace(0, len(reader) - 1, FRAMES).astype(int)).asnumpy()
    return len([resized(Image.fromarray(frame)) for frame in frames])


def by_opencv(path: str) -> int:
    cv2: Any = import_module("cv2")
    video = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
    frames = []
    for index in np.linspace(0, video.get(cv2.CAP_PROP_FRAME_COUNT) - 1, FRAMES).astype(int):
        video.set(cv2.CAP_PROP_POS_FRAMES, int(index))
        frames.append(resized(Image.fromarray(cv2.cvtColor(video.read()[1], cv2.COLOR_BGR2RGB))))
    return len(frames)


def rate(read: Read, files: list[str]) -> float:
    """Frames per second, the median of three runs."""
    rates = []
    for _ in range(3):
        start = time.perf_counter()
        count = sum(map(read, files))
        rates.append(count / (time.perf_counter() - start))
    return float(np.median(rates))


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--clips", type=int, default=1000)
    options = parser.parse_args()
    names = [group.photo for group in read_groups(options.data, "test") if group.photo][: SHOWN * options.files]
    photos = np.ascontiguousarray(read_photos(options.data, names, 256).transpose(0, 2, 3, 1))
    readers: dict[str, Read] = {"caplens": by_caplens}
    readers |= {"decord": by_decord} if find_spec("decord") else {}
    readers |= {"OpenCV": by_opencv} if find_spec("cv2") else {}
    with tempfile.TemporaryDirectory() as folder:
        for keys, what in ((RATE, "a key frame every second"), (RATE * SECONDS, "one key frame")):
            files = []
            for number in range(options.files):
                path = Path(folder) / f"{keys}-{number}.mp4"
                write_clip(path, photos[SHOWN * number : SHOWN * (number + 1)], keys)
                files.append(str(path))
            rates = {name: rate(read, files) for name, read in readers.items()}
            shown = ", ".join(f"{name} {value:.0f} (ratio {rates['caplens'] / value:.2f})" for name, value in rates.items())
            print(f"frames/s, {what}: {shown}")
        copies = [shutil.copy(files[number % len(files)], f"{folder}/copy{number}.mp4") for number in range(options.clips)]
        # Each copy has a part of its own, so that all are read and encoded.
        clips = [VideoClip(copy, 0.0, 9 + number / len(copies)) for number, copy in enumerate(copies)]
        engine, start = Engine(load_backbone("caplens-mini")), time.perf_counter()
        engine.frames(clips[: len(clips) // 10], FrameChoice(FRAMES))
        first = peak()
        for place in range(len(clips) // 10, len(clips), 100):
            engine.frames(clips[place : place + 100], FrameChoice(FRAMES))
        seconds = time.perf_counter() - start
        print(f"{len(clips):,} clips in {seconds:.0f} s; peak {first:.0f} MB after a tenth, {peak():.0f} MB at the end")


if __name__ == "__main__":
    main()
