"""Score captions against images and references, and write a report: `python examples/score_captions.py [CAPTIONS PHOTOS]`.

Without arguments, the example inside the package is scored.
"""

import sys
from importlib.resources import files
from pathlib import Path

import caplens

shipped = Path(str(files("caplens").joinpath("examples")))
captions, photos = map(Path, sys.argv[1:]) if len(sys.argv) > 1 else (shipped / "good.jsonl", shipped)

result = caplens.score(captions, ["clipscore", "refclipscore", "cider"], images=photos)
for name, scores in result.metrics.items():
    low, high = result.intervals[name]
    print(f"{name}: {scores.corpus:.3f} [{low:.3f}, {high:.3f}]  {scores.signature}")

scored = [row for row in result.to_rows() if row["clipscore"] is not None]
worst = min(scored, key=lambda row: row["clipscore"])
print("the caption with the lowest CLIPScore:", worst["id"], worst["clipscore"])

page = caplens.write_report({"captions": result}, "scores.html", captions=captions, images=photos)
print("the report is in", page)
