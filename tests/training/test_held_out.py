"""Recall by hand, and agreement with CIDEr of scores that are made to agree."""

import numpy as np
import pytest
from held_out import agreement, rate, recall, recalls

from caplens.training.mini.collection import Group

WORDS = "dog cat man child tree car beach snow ball house bird boat".split()


def groups() -> list[Group]:
    return [
        Group(
            [("en", f"a {WORDS[n % 12]} near a {WORDS[(n + k) % 12]}") for k in range(1, 6)] + [("de", f"Bild {n}")], f"{n}.jpg"
        )
        for n in range(24)
    ]


def bag(texts) -> np.ndarray:
    made = np.array([[float(word in text) for word in WORDS] for text in texts], dtype=np.float32) + 1e-3
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_recall_by_hand():
    items = np.eye(12, dtype=np.float32)
    queries = items[[0, 1, 2]].copy()
    queries[1, 5:9] = 2.0
    queries[2, 3:] = 2.0
    assert recall(queries, items, np.array([0, 1, 2])) == pytest.approx({1: 100 / 3, 5: 200 / 3, 10: 100})


def test_every_language_is_counted_for_itself():
    pairs = {"dog": 0, "cat": 1, "Hund": 0, "Katze": 0}
    two = [Group([("en", "dog"), ("de", "Hund")], "0.jpg"), Group([("en", "cat"), ("de", "Katze")], "1.jpg")]
    found = recalls(two, np.eye(2, dtype=np.float32), lambda texts: np.eye(2, dtype=np.float32)[[pairs[text] for text in texts]])
    assert (found["en"][1], found["de"][1]) == (100, 50)


def test_vectors_of_words_agree_with_cider():
    rated = rate(groups())
    assert len(rated.captions) == 24 * 10
    english = [[text for lang, text in group.captions if lang == "en"] for group in groups()]
    photos = bag([" ".join(some) for some in english])
    assert agreement(rated, photos, bag)["references"] > 50
    turned = agreement(rated, -photos, bag)
    assert turned["image"] == pytest.approx(-agreement(rated, photos, bag)["image"])
