"""The table of docs/translation.md: `python benchmarks/language_identification.py --data DATA`.

How well the language of captions is identified: the first 1,000 captions of Flickr8k's dev photos in each of its languages.
"""

import argparse
from collections import Counter
from pathlib import Path

from caplens.data.languages import CROSSMODAL_3600
from caplens.text.identification import identify_language
from caplens.training.mini.collection import read_groups

LANGUAGES = "ar bo cs de en fr hi ja mn tr ug zh".split()
MOST = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds flickr8k")
    groups = read_groups(parser.parse_args().data, "dev")
    candidates = sorted({*CROSSMODAL_3600, *LANGUAGES})
    counts: Counter[tuple[str, str | None]] = Counter()
    for lang in LANGUAGES:
        captions = [text for group in groups for language, text in group.captions if language == lang][:MOST]
        counts.update((lang, identify_language(text, candidates).lang) for text in captions)
    print(f"| | {' | '.join(LANGUAGES)} |\n|{'---|' * (len(LANGUAGES) + 1)}")
    for name, side in (("recall", 0), ("precision", 1)):
        totals = [sum(count for pair, count in counts.items() if pair[side] == lang) for lang in LANGUAGES]
        shares = [100 * counts[lang, lang] / max(1, total) for lang, total in zip(LANGUAGES, totals, strict=True)]
        print(f"| {name} | {' | '.join(f'{share:.1f}' for share in shares)} |")


if __name__ == "__main__":
    main()
