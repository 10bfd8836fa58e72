"""Makes docs/bench.svg, the picture of docs/choosing.md: `python docs/picture.py FLICKR8K_FOLDER`."""

import io
import re
import sys
from pathlib import Path

import rich.console

import caplens
from caplens.results.table import to_rich

result = caplens.bench("flickr8k-expert", sys.argv[1], ["bleu1", "bleu4", "rouge-l", "cider", "length"])
table = result.measures_table()
console = rich.console.Console(record=True, width=84, file=io.StringIO())
console.print(to_rich(table))
for note in table.notes[:2]:
    console.print(note, style="dim", highlight=False)
svg = console.export_svg(title="caplens bench flickr8k-expert --data flickr8k")
# No fonts from other sites: the page may be read offline.
svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
(Path(__file__).parent / "bench.svg").write_text(svg, encoding="utf-8")
