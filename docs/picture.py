"""Makes docs/bench.svg, the picture of the README: `python docs/picture.py FLICKR8K_FOLDER`."""

import io
import re
import sys
from pathlib import Path

import rich.console

import caplens
from caplens.cli.output import rich_table
from caplens.results.views import bench_table

results = caplens.bench("flickr8k-expert", sys.argv[1], ["bleu1", "bleu4", "rouge-l", "cider", "length"])
console = rich.console.Console(record=True, width=84, file=io.StringIO())
table = bench_table(results)
console.print(rich_table(table))
for note in table.notes[:2]:
    console.print(note, style="dim", highlight=False)
svg = console.export_svg(title="caplens bench flickr8k-expert --data flickr8k")
# No font from elsewhere: the page may be read offline.
svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
(Path(__file__).parent / "bench.svg").write_text(svg, encoding="utf-8")
