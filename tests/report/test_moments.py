"""Which moment of a video supports which word: a heatmap in the report."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import caplens as package


@pytest.fixture
def scored(tmp_path, monkeypatch):
    """A video of four pictures, scored."""
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "video"
    folder.mkdir()
    for number, colour in enumerate(("red", "green", "blue", "white")):
        Image.new("RGB", (80, 60), colour).save(folder / f"{number}.png")
    captions = tmp_path / "captions.jsonl"
    captions.write_text(f'{{"id": "v1", "caption": "a red wall", "video": "{folder}"}}\n', encoding="utf-8")
    result = package.score(captions, ["emscore", "length"], frames=4)
    return captions, result


def test_every_word_is_shown_beside_every_frame(scored, tmp_path):
    captions, result = scored
    package.write_report(result, tmp_path / "page.html", captions=captions, moments=["v1"])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    figure = page[page.index("Words and moments: v1") :]
    figure = figure[: figure.index("</figure>")]
    assert figure.count("<image") == 1
    for word in ("a", "red", "wall"):
        assert f">{word}</text>" in figure


def test_the_values_are_cosines_of_words_and_frames(scored):
    from caplens.embed.videos import FrameChoice, VideoClip
    from caplens.embed.word_vectors import word_vectors
    from caplens.metrics.options import ScoringOptions
    from caplens.report import heatmaps

    captions, _ = scored
    engine = ScoringOptions(keep_store=False).engine()
    (frames,) = engine.frames([VideoClip(str(captions.parent / "video"))], FrameChoice(4)).matrices
    words = word_vectors(engine, "a red wall", "en")
    drawn = heatmaps.moments(words.words, [np.zeros((8, 8, 3), np.uint8)] * 4, words.vectors @ frames.T)
    assert f">{words.vectors[1] @ frames[2]:.2f}</text>".replace("-", "\N{MINUS SIGN}") in drawn.replace("-0", "\N{MINUS SIGN}0")


@pytest.mark.parametrize(
    ("ids", "message"), [(["nobody"], "there is no caption 'nobody'"), ([f"v{number}" for number in range(2, 40)], "there is no")]
)
def test_captions_that_are_not_there_are_told(scored, tmp_path, ids, message):
    captions, result = scored
    with pytest.raises(package.InputError, match=message):
        package.write_report(result, tmp_path / "page.html", captions=captions, moments=ids)
    assert not (tmp_path / "page.html").exists()


def test_captions_of_images_have_no_moments(tmp_path):
    captions = tmp_path / "captions.jsonl"
    captions.write_text('{"id": "1", "caption": "a dog"}\n', encoding="utf-8")
    result = package.score(captions, ["length"])
    with pytest.raises(package.InputError, match="scored with emscore or pacs-video; there are none"):
        package.write_report(result, tmp_path / "page.html", captions=captions, moments=["1"])


def test_a_model_that_has_changed_is_told(scored, tmp_path):
    captions, result = scored
    scores = result["emscore"]
    start, _, rest = scores.signature.partition("@")
    result.metrics["emscore"] = replace(scores, signature=f"{start}@{'0' * 8}{rest[8:]}")
    with pytest.raises(package.InputError, match="not the version that scored"):
        package.write_report(result, tmp_path / "page.html", captions=captions, moments=["v1"])
