"""CTranslate2 beside transformers: `python benchmarks/translation_speed.py --model DIR --captions captions.tsv`.

The same model, captions, beams and number of translations, one after the other in one run on the processor; the first batch of
each, which loads the model, is not timed.
"""

import argparse
import time
from pathlib import Path

from caplens.data.records import read_fields
from caplens.translation import Translator, load_translator

WARM_UP = 4


def seconds(translator: Translator, texts: list[str], target: str, nbest: int) -> float:
    translator.translate(texts[:WARM_UP], "en", target, nbest)
    start = time.perf_counter()
    translator.translate(texts, "en", target, nbest)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="the folder of a translation model, such as translation_model.py makes")
    parser.add_argument("--captions", type=Path, required=True, help="lines of photo, number and English caption")
    parser.add_argument("--to", default="de")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--beams", type=int, default=5)
    parser.add_argument("--nbest", type=int, default=5)
    arguments = parser.parse_args()
    texts = [text for _, (_, _, text) in read_fields(arguments.captions, 3, tabs_in_last=True)[: arguments.count]]
    times = {
        family: seconds(load_translator(f"{family}:{arguments.model}", arguments.beams), texts, arguments.to, arguments.nbest)
        for family in ("hf", "ct2")
    }
    for family, taken in times.items():
        print(f"{family}: {len(texts) / taken:.1f} captions/s")
    print(f"ratio: {times['hf'] / times['ct2']:.1f}")


if __name__ == "__main__":
    main()
