"""How well do metrics agree with your raters? `python examples/judge_a_metric.py [RATED PHOTOS]`.

RATED is a file of captions with `ratings`. Without one, the good captions of the example are rated 1 and the bad ones 0.
"""

import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import caplens

shipped = Path(str(files("caplens").joinpath("examples")))
if len(sys.argv) > 1:
    rated, photos = map(Path, sys.argv[1:])
else:
    photos = shipped
    rated = [
        replace(sample, id=f"{sample.id} {quality}", ratings=(caplens.Rating(value),))
        for quality, value in (("good", 1), ("bad", 0))
        for sample in caplens.SampleFile(shipped / f"{quality}.jsonl")
    ]

result = caplens.agreement(rated, ["clipscore", "refclipscore", "cider", "length"], images=photos, coefficients=["tau-b"])
for name, estimates in result.results.items():
    value, low, high, *_ = estimates["tau-b"]
    print(f"{name}: Kendall's tau-b with the ratings, times 100: {value:.1f} [{low:.1f}, {high:.1f}]")
if result.raters is not None:
    print(f"human ceiling: {result.raters.ceiling['tau-b']:.1f}; Krippendorff's alpha: {result.raters.alpha:.3f}")
for warning in result.warnings:
    print("warning:", warning)
