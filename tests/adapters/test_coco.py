"""Scorers of the COCO evaluation and ours give the same for the same `gts` and `res`, whatever these hold."""

import gzip

import numpy as np
import pytest
from extras import need
from hypothesis import given, settings
from hypothesis import strategies as st

from caplens.adapters import coco
from caplens.errors import InputError

need("pycocoevalcap")

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

WORDS = st.sampled_from("a dog cat runs on the grass two men".split())
TEXT = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)
CAPTION = st.one_of(TEXT, st.just(""))
CORPUS = st.lists(st.tuples(st.lists(CAPTION, min_size=1, max_size=3), CAPTION), min_size=2, max_size=5).filter(
    # pycocoevalcap cannot take a corpus whose references are all empty.
    lambda corpus: any(text for references, _ in corpus for text in references)
)


@settings(max_examples=60, deadline=None)
@given(CORPUS)
def test_scores_are_those_of_pycocoevalcap(corpus):
    gts = {n: references for n, (references, _) in enumerate(corpus)}
    res = {n: [caption] for n, (_, caption) in enumerate(corpus)}
    for ours, theirs in ((coco.Cider(), Cider()), (coco.Rouge(), Rouge())):
        score, scores = ours.compute_score(gts, res)
        expected, each = theirs.compute_score(gts, res)
        assert score == pytest.approx(expected, abs=1e-9)
        assert np.allclose(scores, each, atol=1e-9)
        assert ours.method() == theirs.method()
    score, scores = coco.Bleu(4).compute_score(gts, res)
    expected, each = Bleu(4).compute_score(gts, res, verbose=0)
    assert np.allclose(score, expected, atol=1e-9)
    assert np.allclose(scores, each, atol=1e-9)


def test_the_whole_evaluation_is_that_of_coco(coco_example, tmp_path, capsys):
    """On COCO's own example, against what its README prints."""
    pycocotools = need("pycocotools.coco")
    for name in ("captions_val2014", "captions_val2014_fakecap_results"):
        (tmp_path / f"{name}.json").write_bytes(gzip.decompress((coco_example / f"en_{name}.json.gz").read_bytes()))
    data = pycocotools.COCO(str(tmp_path / "captions_val2014.json"))
    results = data.loadRes(str(tmp_path / "captions_val2014_fakecap_results.json"))
    evaluation = coco.COCOEvalCap(data, results)
    evaluation.params["image_id"] = results.getImgIds()
    evaluation.evaluate()
    assert "CIDEr: 0.600" in capsys.readouterr().out
    assert [round(evaluation.eval[name], 3) for name in ("Bleu_1", "Bleu_4", "ROUGE_L")] == [0.579, 0.191, 0.396]
    assert len(evaluation.evalImgs) == len(results.getImgIds())


def test_other_constants_are_refused():
    assert coco.Cider(n=4, sigma=6.0).method() == "CIDEr"
    with pytest.raises(InputError, match="sigma = 6"):
        coco.Cider(sigma=5.0)


def test_captions_are_tokenized_on_the_way():
    """Worked by hand after the COCO evaluation: lower case, no punctuation, `can't` in two."""
    made = coco.PTBTokenizer().tokenize({7: [{"caption": "A dog can't swim, though."}], "x": [{"caption": "Two!"}]})
    assert made == {7: ["a dog ca n't swim though"], "x": ["two"]}


@pytest.mark.parametrize(
    ("gts", "res", "said"),
    [
        ({1: ["a"]}, {2: ["a"]}, "one of gts and res only"),
        ({1: ["a"]}, {1: ["a", "b"]}, "a list of one caption"),
        ({1: ["a"]}, {1: "a"}, "a list of texts"),
        ({1: "a dog"}, {1: ["a"]}, "a list of texts"),
        ({1: []}, {1: ["a"]}, "a list of texts"),
        ({}, {}, "empty"),
    ],
)
def test_what_does_not_fit_is_told(gts, res, said):
    with pytest.raises(InputError, match=said):
        coco.Cider().compute_score(gts, res)
