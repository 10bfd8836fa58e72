"""1,000 bootstrap resamples by image, on 16,992 rows, compared with a loop over scipy: `python benchmarks/bootstrap_speed.py`.

The data has the shape of Flickr8k-Expert: 1,000 images, 5,664 pairs with distinct scores, three ratings of 1 to 4 each.
"""

import time

import numpy as np
import scipy.stats

from caplens.stats import COEFFICIENTS, bootstrap, interval

RESAMPLES, LOOPED = 1000, 100
SCIPY = {
    "tau-b": lambda x, y: scipy.stats.kendalltau(x, y, variant="b").statistic,
    "tau-c": lambda x, y: scipy.stats.kendalltau(x, y, variant="c").statistic,
    "spearman": lambda x, y: scipy.stats.spearmanr(x, y).statistic,
    "pearson": lambda x, y: scipy.stats.pearsonr(x, y).statistic,
}


def main() -> None:
    generator = np.random.default_rng(0)
    image = np.repeat(generator.integers(0, 1000, 5664), 3)
    ratings = generator.integers(1, 5, 16_992).astype(float)
    scores = np.repeat(generator.normal(size=5664), 3) + np.repeat(ratings.reshape(-1, 3).mean(axis=1), 3)
    rows_of = [np.flatnonzero(image == number) for number in range(1000)]
    for name, coefficient in COEFFICIENTS.items():
        start = time.perf_counter()
        drawn = bootstrap(coefficient, scores, ratings, image, RESAMPLES)
        ours = time.perf_counter() - start
        start = time.perf_counter()
        looped = []
        for _ in range(LOOPED):
            rows = np.concatenate([rows_of[number] for number in generator.integers(0, 1000, 1000)])
            looped.append(SCIPY[name](scores[rows], ratings[rows]))
        theirs = (time.perf_counter() - start) * RESAMPLES / LOOPED
        low, high = interval(drawn)
        print(
            f"{name:9} caplens {ours:.2f} s, scipy in a loop {theirs:.2f} s (from {LOOPED} resamples), ratio {theirs / ours:.1f};"
            f" interval {low:.3f} to {high:.3f}, in the loop {np.quantile(looped, 0.025):.3f} to {np.quantile(looped, 0.975):.3f}"
        )


if __name__ == "__main__":
    main()
