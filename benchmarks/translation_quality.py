"""What choosing among translations gains: `python benchmarks/translation_quality.py --data DATA --model DIR --images PHOTOS`.

English captions that `translation_model.py` left out are translated by its model, 25 times each: BLEU and chrF (sacrebleu) of the
first translation, of the best by each way to choose, and of the best by chrF with the reference, which no way can know. Intervals
of the gain over the first are 95% by bootstrap over captions. How many are in another language is printed too.
"""

import argparse
import random
from pathlib import Path

import numpy as np
import sacrebleu
from translation_model import LANGUAGES, pairs

from caplens.data import Sample
from caplens.metrics.base import Metric
from caplens.metrics.registry import get_metric
from caplens.translation import TranslationOptions, load_translator, translate_samples
from caplens.translation.chrf import chrf
from caplens.translation.store import TranslationStore, translation_key

RESAMPLES = 1000


def gain(chosen: list[str], first: list[str], references: list[str]) -> tuple[float, float, float]:
    """By how much the mean sentence chrF is higher than that of the first translations, with its interval."""
    difference = np.array([chrf(a, r) - chrf(b, r) for a, b, r in zip(chosen, first, references, strict=True)]) * 100
    rng = np.random.default_rng(0)
    means = difference[rng.integers(0, len(difference), (RESAMPLES, len(difference)))].mean(1)
    return float(difference.mean()), *np.quantile(means, [0.025, 0.975]).tolist()


def measure(arguments: argparse.Namespace, lang: str) -> None:
    held_out = [(source, text) for source, language, text in pairs(arguments.data, of_held_out=True) if language == lang]
    rows = random.Random(0).sample(held_out, min(arguments.count, len(held_out)))
    samples = [Sample(str(number), source) for number, (source, _) in enumerate(rows)]
    references = [text for _, text in rows]
    translator = load_translator(f"{arguments.family}:{arguments.model}", beams=arguments.nbest)
    store = TranslationStore(arguments.model)
    quality = get_metric("mini-qe")
    ways: dict[str, tuple[list[Metric], bool]] = {"first": ([], False), "mini-qe": ([quality], False), "mbr": ([], True)}
    texts: dict[str, list[str]] = {}
    for name, (metrics, mbr) in ways.items():
        options = TranslationOptions(arguments.nbest, metrics, mbr, check_language=name != "first", store=store)
        translated, report = translate_samples(samples, translator, lang, options=options)
        texts[name] = [sample.caption or "" for sample in translated]
        if name == "mini-qe":
            wrong = (
                f"{100 * report.first_in_wrong_language / report.texts:.1f}% -> {100 * report.wrong_language / report.texts:.1f}%"
            )
    keys = [translation_key(source, "en", lang, arguments.nbest, translator.fingerprint) for source, _ in rows]
    known = store.get(keys)
    texts["oracle"] = [
        max((hypothesis.text for hypothesis in known[key]), key=lambda text, r=reference: chrf(text, r))
        for key, reference in zip(keys, references, strict=True)
    ]
    tokenizer = {"ja": "ja-mecab", "zh": "zh"}.get(lang, "13a")
    for name, chosen in texts.items():
        bleu = sacrebleu.corpus_bleu(chosen, [references], tokenize=tokenizer).score
        score = sacrebleu.corpus_chrf(chosen, [references]).score
        mean, low, high = gain(chosen, texts["first"], references)
        print(f"| {lang} | {name} | {bleu:.1f} | {score:.1f} | {mean:+.2f} ({low:+.2f} to {high:+.2f}) | {wrong} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds flickr8k and multi30k")
    parser.add_argument("--model", type=Path, required=True, help="the folder of the translation model")
    parser.add_argument("--family", default="ct2", choices=("ct2", "hf"))
    parser.add_argument("--lang", action="append", choices=LANGUAGES, help="languages; all by default")
    parser.add_argument("--count", type=int, default=500, help="captions of each language")
    parser.add_argument("--nbest", type=int, default=25)
    given = parser.parse_args()
    print(
        "| lang | kept | BLEU | chrF | gain in chrF over the first | in another language, first -> kept |\n"
        "|---|---|---|---|---|---|"
    )
    for language in given.lang or LANGUAGES:
        measure(given, language)
