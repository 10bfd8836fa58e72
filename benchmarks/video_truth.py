"""EMScore where the truth is known: `python benchmarks/video_truth.py --data DATA`.

Each video shows ten test photos of Flickr8k for a second each. A caption of one of them is compared with one of a photo that is
not shown: how often it scores higher, by the whole score and by its coarse part alone, and how often the frame that supports its
words most is the right second. DATA holds flickr8k.
"""

import argparse
import random
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caplens.backbones import load_backbone
from caplens.embed import Engine, Text
from caplens.embed.videos import FrameChoice, VideoClip
from caplens.metrics.emscore import RareWords, Words, match_video
from caplens.training.mini.collection import Group, read_groups, read_photos

SECONDS, RATE, SIDE = 10, 10, 224


def write_video(path: Path, photos: NDArray[np.uint8]) -> None:
    """Each photo for a second."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"crf": "18"})
        stream.width = stream.height = SIDE
        stream.pix_fmt = "yuv420p"
        for photo in photos:
            for _ in range(RATE):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(photo), format="rgb24")))
        container.mux(stream.encode())


def words_of(engine: Engine, texts: list[str]) -> dict[str, Words]:
    backbone, wrapped = engine.backbone, [Text(text) for text in texts]
    tokens = backbone.tokenize(texts)
    rare = RareWords(one.ids for one in tokens)
    vectors = engine.texts(wrapped)
    return {
        text: Words(matrix, rare.weights(one.ids), vectors.vectors[vectors.index[place]], len(matrix) >= backbone.max_tokens)
        for place, (text, matrix, one) in enumerate(zip(texts, engine.tokens(wrapped), tokens, strict=True))
    }


def english(group: Group) -> str:
    return next(text for lang, text in group.captions if lang == "en")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="caplens-mini")
    parser.add_argument("--cases", type=int, default=1000)
    options = parser.parse_args()
    groups = [group for group in read_groups(options.data, "test") if group.photo is not None]
    rng = random.Random(0)
    rng.shuffle(groups)
    engine = Engine(load_backbone(options.model))
    words = words_of(engine, list(dict.fromkeys(english(group) for group in groups)))
    right, coarse, fine, second, cases = 0, 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, options.cases, SECONDS):
            shown = groups[start : start + SECONDS]
            others = [group for group in groups if group not in shown]
            path = Path(folder) / f"{start}.mp4"
            write_video(path, read_photos(options.data, [str(group.photo) for group in shown], SIDE).transpose(0, 2, 3, 1))
            (frames,) = engine.frames([VideoClip(str(path))], FrameChoice(SECONDS)).matrices
            assert frames is not None
            for place, group in enumerate(shown):
                own, other = words[english(group)], words[english(rng.choice(others))]
                good, bad = match_video(own, frames), match_video(other, frames)
                right += good.score > bad.score
                coarse += good.coarse > bad.coarse
                fine += good.fine > bad.fine
                second += int((own.weights @ (own.tokens @ frames.T)).argmax()) == place
                cases += 1
    for what, count in (("EMScore", right), ("coarse alone", coarse), ("fine alone", fine), ("right second", second)):
        print(f"| {what} | {100 * count / cases:.1f}% of {cases:,} |")


if __name__ == "__main__":
    main()
