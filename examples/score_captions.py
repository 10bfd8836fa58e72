"""Score captions against images and references, and write a report: `python examples/score_captions.py [CAPTIONS PHOTOS]`.

Without arguments, the example inside the package is scored.
"""

import sys
from importlib.resources import files
from pathlib import Path

import caplens

shipped = Path(str(files("caplens").joinpath("examples")))
captions, photos = map(Path, sys.argv[1:]) if len(sys.argv) > 1 else (shipped / "good.jsonl", shipped)

results = caplens.score(captions, ["clipscore", "refclipscore", "cider"], images=photos)
for name, scores in results.metrics.items():
    low, high = results.intervals[name]
    print(f"{name}: {scores.corpus:.3f} [{low:.3f}, {high:.3f}]  {scores.signature}")

worst = min(results.to_rows(), key=lambda row: row["clipscore"] if row["clipscore"] is not None else 9)
print("the caption to look at first:", worst["id"], worst["clipscore"])

page = caplens.write_report({"captions": results}, "scores.html", captions=captions, images=photos)
print("the report is in", page)
