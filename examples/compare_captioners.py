"""Is one captioner better than another? `python examples/compare_captioners.py [A B PHOTOS]`."""

import sys
from importlib.resources import files
from pathlib import Path

import caplens

shipped = Path(str(files("caplens").joinpath("examples")))
*paths, photos = map(Path, sys.argv[1:]) if len(sys.argv) > 1 else (shipped / "good.jsonl", shipped / "bad.jsonl", shipped)

comparison = caplens.compare({path.stem: path for path in paths}, ["clipscore", "cider"], images=photos)
for contrast in comparison.contrasts:
    verdict = "significant" if contrast.p_corrected < 0.05 else "not significant"
    print(
        f"{contrast.metric}: {contrast.first} minus {contrast.second} is {contrast.difference:+.3f}"
        f" [{contrast.low:+.3f}, {contrast.high:+.3f}], p = {contrast.p_corrected:.3f}: {verdict}"
    )
for warning in comparison.warnings:
    print("warning:", warning)
