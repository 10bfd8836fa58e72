"""The quality of a model on held-out photos, to compare choices of a recipe.

Measures the recall of photos by their captions in each language, and for English the agreement with CIDEr on captions of other
photos. There are no human ratings of the dev photos; CIDEr, which agrees with people, takes their place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.registry import get_metric
from caplens.stats import get_coefficient
from caplens.text.tokenizer import get_tokenizer
from caplens.training.mini.collection import Group

Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]
_NEAR, _FAR = 6, 4
"""Captions per photo that are taken from photos with similar captions, and from random photos."""
_RANKS = (1, 5, 10)


@dataclass(frozen=True)
class Rated:
    """Captions paired with photos that they do not belong to, and their CIDEr."""

    rows: NDArray[np.int64]
    """The row of each caption's photo."""
    captions: list[str]
    references: list[list[str]]
    """The photo's own captions."""
    values: NDArray[np.float64]
    """CIDEr of each caption."""


def recall(queries: Vectors, items: Vectors, own: NDArray[np.int64]) -> dict[int, float]:
    """Recall at 1, 5 and 10, in percent. `own` is the row of each query's item."""
    hits: dict[int, list[bool]] = {rank: [] for rank in _RANKS}
    for start in range(0, len(queries), 1000):
        cosines = queries[start : start + 1000] @ items.T
        targets = own[start : start + 1000]
        better = (cosines > np.take_along_axis(cosines, targets[:, None], 1)).sum(1)
        for rank in _RANKS:
            hits[rank] += (better < rank).tolist()
    return {rank: 100 * float(np.mean(values)) for rank, values in hits.items()}


def recalls(groups: Sequence[Group], images: Vectors, encode: Encode) -> dict[str, dict[int, float]]:
    """Language -> recall of photos by its captions."""
    by_language: dict[str, list[tuple[int, str]]] = {}
    for row, group in enumerate(groups):
        for lang, caption in group.captions:
            by_language.setdefault(lang, []).append((row, caption))
    return {
        lang: recall(encode([caption for _, caption in captions]), images, np.array([row for row, _ in captions]))
        for lang, captions in sorted(by_language.items())
    }


def rate(groups: Sequence[Group], seed: int = 0) -> Rated:
    """Pair photos with captions of similar and of random photos, and score these with CIDEr."""
    english = [[caption for lang, caption in group.captions if lang == "en"] for group in groups]
    if not all(english):
        raise InputError("every photo needs an English caption to be rated by CIDEr.")
    tokenizer = get_tokenizer("unicode", "en")
    words: dict[str, int] = {}
    entries = [
        (row, words.setdefault(word, len(words)))
        for row, captions in enumerate(english)
        for caption in captions
        for word in tokenizer(caption)
    ]
    rows, columns = zip(*entries, strict=True)
    counts = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(english), len(words)))
    weighted = (counts > 0).astype(np.float64) * np.log(len(english) / np.maximum(1, (counts > 0).sum(0)))
    cosines = (weighted @ weighted.T).toarray()
    cosines /= np.sqrt(np.outer(cosines.diagonal(), cosines.diagonal()))
    np.fill_diagonal(cosines, -1)
    rng = np.random.default_rng(seed)
    near = np.argsort(-cosines, axis=1)[:, :_NEAR]
    pairs = [
        (row, english[other][rng.integers(len(english[other]))])
        for row in range(len(english))
        for other in [*near[row], *rng.choice(np.delete(np.arange(len(english)), row), _FAR, replace=False)]
    ]
    samples = [Sample(str(number), caption, tuple(english[row]), lang="en") for number, (row, caption) in enumerate(pairs)]
    values = get_metric("cider")(samples).values
    return Rated(np.array([row for row, _ in pairs]), [text for _, text in pairs], [english[row] for row, _ in pairs], values)


def agreement(rated: Rated, images: Vectors, encode: Encode) -> dict[str, float]:
    """Kendall's tau-b with CIDEr, times 100, of the cosine with the image and of the highest cosine with a reference."""
    captions = encode(rated.captions)
    unique = {text: row for row, text in enumerate(dict.fromkeys(text for texts in rated.references for text in texts))}
    vectors = encode(list(unique))
    best = [
        float((vectors[[unique[text] for text in references]] @ caption).max())
        for references, caption in zip(rated.references, captions, strict=True)
    ]
    tau = get_coefficient("tau-b")
    image = np.einsum("nd,nd->n", images[rated.rows], captions).astype(np.float64)
    return {"image": 100 * tau(image, rated.values), "references": 100 * tau(np.array(best), rated.values)}
