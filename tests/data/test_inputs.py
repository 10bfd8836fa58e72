"""Captions, references and images as Python callers have them."""

import numpy as np
import pytest
from extras import need

import caplens as package
from caplens.data import Sample

CAPTIONS, REFERENCES = ["a dog runs", "a cat"], [["a dog runs"], "a cat sleeps"]


def _bleu(captions, references, **options):
    return package.score(captions, ["bleu1"], references=references, resamples=0, **options)["bleu1"].values


def test_lists_tuples_and_arrays_are_the_same_captions():
    expected = _bleu([Sample("0", "a dog runs", ("a dog runs",)), Sample("1", "a cat", ("a cat sleeps",))], None)
    assert _bleu(CAPTIONS, REFERENCES) == pytest.approx(expected)
    assert _bleu(tuple(CAPTIONS), tuple(REFERENCES)) == pytest.approx(expected)
    assert _bleu(np.array(CAPTIONS), np.array(["a dog runs", "a cat sleeps"])) == pytest.approx(expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_data_frames_are_lists(library):
    frames = need(library)
    columns = frames.Series(CAPTIONS), frames.Series(["a dog runs", "a cat sleeps"])
    assert _bleu(*columns) == pytest.approx(_bleu(CAPTIONS, REFERENCES))


def test_a_caption_that_is_missing_from_a_list_has_no_score():
    assert np.isnan(_bleu(["a dog runs", None], REFERENCES)).tolist() == [False, True]


@pytest.mark.parametrize(
    ("what", "value"), [("references", {"0": ["a dog"]}), ("references", "refs.jsonl"), ("images", "photos")]
)
def test_what_is_found_by_id_does_not_go_with_a_list(what, value):
    with pytest.raises(package.InputError, match=f"captions in a list have no ids by which {what} could be found"):
        package.score(CAPTIONS, ["length"], **{what: value})


@pytest.mark.parametrize("references", [[1, 2], [["a dog"], [3]], [float("nan"), "a cat"]])
def test_references_that_are_not_texts(references):
    with pytest.raises(package.InputError, match="references are texts"):
        _bleu(CAPTIONS, references)


def test_lists_of_different_lengths():
    with pytest.raises(package.InputError, match="there are 2 captions and 1 references"):
        _bleu(CAPTIONS, [["a dog"]])


def test_systems_without_names():
    with pytest.raises(package.InputError, match="systems are a mapping of name -> captions, not list"):
        package.compare([CAPTIONS, CAPTIONS], ["length"])


def test_old_names_of_options_warn():
    with pytest.warns(FutureWarning, match="overlong"):
        assert package.score(CAPTIONS, ["length"], long="cut").metrics["length"].corpus == 2.5
    with pytest.warns(FutureWarning, match="perturbations"):
        effects = package.robustness(["a dog runs fast"], ["length"], kinds=["repetition"], resamples=10)
    assert {effect.perturbation for effect in effects.effects} >= {"repetition"}
