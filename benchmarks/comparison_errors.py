"""How often the tests of `compare` err: `python benchmarks/comparison_errors.py`.

Pairs of equal systems with 200 images each, by a mean of scores and by a corpus BLEU-1 whose lengths vary: the share that is
called different at 0.05. Families of four comparisons with a baseline, corrected by Holm: the share with any difference. And the
power for systems that do differ.
"""

import argparse

import numpy as np

from caplens.stats import SystemPair, exchange_systems, holm

LEVEL, IMAGES, BATCH = 0.05, 200, 100


def mean(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / sums[..., 1]


def corpus_bleu(sums: np.ndarray) -> np.ndarray:
    brevity = np.exp(np.minimum(0, 1 - sums[..., 2] / sums[..., 1]))
    return brevity * sums[..., 0] / sums[..., 1]


def scores(rng: np.random.Generator, better: float) -> np.ndarray:
    return np.stack([rng.normal(better, 1, IMAGES), np.ones(IMAGES)], axis=1)


def captions(rng: np.random.Generator, better: float) -> np.ndarray:
    """Matches, lengths and lengths of references."""
    lengths = rng.integers(6, 14, IMAGES)
    return np.stack([rng.binomial(lengths, 0.4 + better), lengths, np.full(IMAGES, 9.5)], axis=1).astype(float)


def p_values(rng: np.random.Generator, count: int, kind: str, better: float) -> np.ndarray:
    make, pool = (scores, mean) if kind == "mean" else (captions, corpus_bleu)
    pairs = [SystemPair(make(rng, better), make(rng, 0.0), pool) for _ in range(count)]
    return np.concatenate([exchange_systems(pairs[start : start + BATCH], seed=start) for start in range(0, count, BATCH)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2000)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    for kind, better in (("mean", 0.2), ("corpus BLEU", 0.02)):
        null = (p_values(rng, arguments.pairs, kind, 0.0) < LEVEL).mean()
        power = (p_values(rng, arguments.pairs // 4, kind, better) < LEVEL).mean()
        print(f"{kind}: {100 * null:.1f}% of equal systems called different, {100 * power:.1f}% of different ones", flush=True)
    rejected = 0
    for family in range(arguments.pairs):
        baseline, *others = [scores(rng, 0.0) for _ in range(5)]
        pairs = [SystemPair(other, baseline, mean) for other in others]
        rejected += bool((holm(exchange_systems(pairs, family=4, seed=family)) < LEVEL).any())
    print(f"families of four: {100 * rejected / arguments.pairs:.1f}% with any difference", flush=True)


if __name__ == "__main__":
    main()
