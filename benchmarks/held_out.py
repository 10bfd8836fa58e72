"""How good a model in training is on photos it has not seen, for every choice that a recipe makes.

For each language, how often a caption finds its photo among all (recall); and, for English, how well scores of captions of other
photos agree with CIDEr's. Nobody rated the dev photos; CIDEr stands in for people there, and is known to agree with them.
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
"""Captions per photo that come from photos described alike, and from any."""
_RANKS = (1, 5, 10)


@dataclass(frozen=True)
class Rated:
    """Captions about photos (by their row) that are not their own, and CIDEr's opinion of them."""

    rows: NDArray[np.int64]
    captions: list[str]
    references: list[list[str]]
    values: NDArray[np.float64]


def recall(queries: Vectors, items: Vectors, own: NDArray[np.int64]) -> dict[int, float]:
    """Of 100 queries, how many have their own item among the first 1, 5, 10."""
    found: dict[int, list[bool]] = {rank: [] for rank in _RANKS}
    for start in range(0, len(queries), 1000):
        cosines = queries[start : start + 1000] @ items.T
        mine = own[start : start + 1000]
        better = (cosines > np.take_along_axis(cosines, mine[:, None], 1)).sum(1)
        for rank in _RANKS:
            found[rank] += (better < rank).tolist()
    return {rank: 100 * float(np.mean(hits)) for rank, hits in found.items()}


def recalls(groups: Sequence[Group], images: Vectors, encode: Encode) -> dict[str, dict[int, float]]:
    """Language -> how often its captions find their photos."""
    by_language: dict[str, list[tuple[int, str]]] = {}
    for row, group in enumerate(groups):
        for lang, caption in group.captions:
            by_language.setdefault(lang, []).append((row, caption))
    return {
        lang: recall(encode([caption for _, caption in some]), images, np.array([row for row, _ in some]))
        for lang, some in sorted(by_language.items())
    }


def rate(groups: Sequence[Group], seed: int = 0) -> Rated:
    """Pairs of photos and captions of other photos, near and far, as CIDEr sees them."""
    english = [[caption for lang, caption in group.captions if lang == "en"] for group in groups]
    if not all(english):
        raise InputError("every photo needs an English caption to be rated by CIDEr.")
    tokenizer = get_tokenizer("unicode", "en")
    words: dict[str, int] = {}
    entries = [
        (row, words.setdefault(word, len(words))) for row, some in enumerate(english) for text in some for word in tokenizer(text)
    ]
    rows, columns = zip(*entries, strict=True)
    counts = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(english), len(words)))
    weighed = (counts > 0).astype(np.float64) * np.log(len(english) / np.maximum(1, (counts > 0).sum(0)))
    cosines = (weighed @ weighed.T).toarray()
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
    """Kendall's tau-b with CIDEr, times 100: of the image's cosine, and of the best reference's."""
    captions = encode(rated.captions)
    unique = {text: row for row, text in enumerate(dict.fromkeys(text for some in rated.references for text in some))}
    vectors = encode(list(unique))
    best = [
        float((vectors[[unique[text] for text in some]] @ mine).max())
        for some, mine in zip(rated.references, captions, strict=True)
    ]
    tau = get_coefficient("tau-b")
    image = np.einsum("nd,nd->n", images[rated.rows], captions).astype(np.float64)
    return {"image": 100 * tau(image, rated.values), "references": 100 * tau(np.array(best), rated.values)}
