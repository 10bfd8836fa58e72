"""Which tokens belong to which word."""

import numpy as np
import pytest
from extras import need
from hypothesis import given, settings
from hypothesis import strategies as st

from caplens.backbones import load_backbone
from caplens.embed import Engine
from caplens.embed.word_vectors import token_ranges, word_vectors
from caplens.text.words import join, split


@pytest.fixture(scope="module")
def mini():
    return Engine(load_backbone("caplens-mini"))


@pytest.mark.parametrize(
    ("caption", "lang"),
    [
        ("a dog runs over the grass .", "en"),
        ("ein Hund läuft über das Gras", "de"),
        ("一只狗在草地上跑", "zh"),
        ("كلب يجري", "ar"),
    ],
)
def test_the_tokens_of_all_words_are_those_of_the_text(mini, caption, lang):
    words = split(caption, lang)
    ranges = token_ranges(mini.backbone, [join(words[: number + 1]) for number in range(len(words))])
    assert [token for part in ranges for token in part] == list(range(len(mini.backbone.tokenize([caption])[0].ids) - 1))


def test_a_start_marker_belongs_to_no_word(clip_folder):
    need("transformers")
    clip = load_backbone(f"hf:{clip_folder}")
    ranges = token_ranges(clip, ["a", "a dog", "a dog runs"])
    assert ranges[0].start == 1
    assert ranges[-1].stop == len(clip.tokenize(["a dog runs"])[0].ids) - 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["dog", "grass", "unbelievable", "x", "ski", "snow ."]), max_size=60))
def test_every_word_that_the_model_reads_has_a_vector_of_length_one(mini, words):
    found = word_vectors(mini, " ".join(words))
    assert found.vectors.shape == (len(found.words), mini.backbone.dim)
    assert np.linalg.norm(found.vectors, axis=1) == pytest.approx(1)
    assert len(found.words) <= len(words)


def test_words_beyond_the_limit_of_the_model_are_left_out(mini):
    found = word_vectors(mini, " ".join(["snowboarder"] * 200))
    assert 0 < len(found.words) < mini.backbone.max_tokens
