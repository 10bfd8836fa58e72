"""How well do metrics agree with your raters? `python examples/judge_a_metric.py [RATED PHOTOS]`.

RATED is a file of captions with `ratings`. Without one, good captions of the example count as rated 1 and bad ones as rated 0.
"""

import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np

import caplens
from caplens.stats import TAU_B, bootstrap, interval

shipped = Path(str(files("caplens").joinpath("examples")))
if len(sys.argv) > 1:
    samples = [sample for sample in caplens.SampleFile(sys.argv[1]) if sample.ratings]
else:
    samples = [
        replace(sample, id=f"{sample.id} {kind}", ratings=(rating,))
        for kind, rating in (("good", 1.0), ("bad", 0.0))
        for sample in caplens.SampleFile(shipped / f"{kind}.jsonl")
    ]
photos = Path(sys.argv[2]) if len(sys.argv) > 1 else shipped

results = caplens.score(samples, ["clipscore", "refclipscore", "cider", "length"], images=photos, resamples=0)
people = np.array([np.mean(sample.ratings) for sample in samples])
for name, scores in results.metrics.items():
    known = ~np.isnan(scores.values)
    groups = [group for group, there in zip(results.groups, known, strict=True) if there]
    found = TAU_B(scores.values[known], people[known])
    low, high = interval(bootstrap(TAU_B, scores.values[known], people[known], groups))
    print(f"{name}: Kendall's tau-b with people {100 * found:.1f} [{100 * low:.1f}, {100 * high:.1f}]")
