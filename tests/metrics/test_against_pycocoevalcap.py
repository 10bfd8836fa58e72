"""BLEU, ROUGE-L and CIDEr equal the reference implementation on the same tokens."""

import gzip
import json

import numpy as np
import pytest
from extras import need
from hypothesis import given, settings
from hypothesis import strategies as st

from caplens.metrics import bleu as ours_bleu
from caplens.metrics import cider as ours_cider
from caplens.metrics.bleu import bleu, bleu_statistics
from caplens.metrics.cider import cider
from caplens.metrics.rouge import RougeL

Bleu = need("pycocoevalcap.bleu.bleu").Bleu
Rouge = need("pycocoevalcap.rouge.rouge").Rouge
Cider = need("pycocoevalcap.cider.cider").Cider

SENTENCE = st.lists(st.sampled_from("a man dog red runs . on the".split()), max_size=9).map(" ".join)
ENTRIES = st.lists(st.tuples(SENTENCE, st.lists(SENTENCE, min_size=1, max_size=4)), min_size=2, max_size=8)


def _check(entries, candidates, references):
    gts, res = dict(enumerate(references)), {i: [text] for i, text in enumerate(candidates)}
    corpus, values = Cider().compute_score(gts, res)
    assert cider(entries) == pytest.approx(values, abs=1e-9)
    assert cider(entries).mean() == pytest.approx(corpus, abs=1e-9)
    corpus, values = Rouge().compute_score(gts, res)
    assert RougeL().score_corpus(entries)[0] == pytest.approx(values, abs=1e-9)
    corpus, values = Bleu(4).compute_score(gts, res, verbose=0)
    statistics = bleu_statistics(entries)
    for order in (1, 2, 3, 4):
        assert bleu(statistics, order) == pytest.approx(np.array(values[order - 1]), abs=1e-9)
        assert float(bleu(statistics.sum(axis=0), order)) == pytest.approx(corpus[order - 1], abs=1e-9)


@given(ENTRIES)
@settings(deadline=None)
def test_on_random_captions(entries_of, cases):
    # pycocoevalcap asks for the largest document frequency and cannot take a corpus whose references are all empty.
    if not any(text for _, texts in cases for text in texts):
        return
    candidates, references = [candidate for candidate, _ in cases], [texts for _, texts in cases]
    _check(entries_of(candidates, references), candidates, references)


@pytest.mark.parametrize("tokens", [1, 40, 10**6])
def test_on_the_coco_example_in_chunks_of_any_size(entries_of, coco_example, monkeypatch, tokens):
    def after(name):
        return json.load(gzip.open(coco_example / f"en_captions_val2014_{name}_after_tokenization.json.gz"))

    references, captions = after("references"), after("results")
    few = list(references)[: 1000 if tokens > 100 else 60]
    monkeypatch.setattr(ours_cider, "_CHUNK_TOKENS", tokens)
    monkeypatch.setattr(ours_bleu, "_CHUNK_TOKENS", tokens)
    candidates, references = [captions[key][0] for key in few], [references[key] for key in few]
    _check(entries_of(candidates, references), candidates, references)
    monkeypatch.setattr(ours_cider, "_KEPT_TOKENS", 0)
    _check(entries_of(candidates, references), candidates, references)
