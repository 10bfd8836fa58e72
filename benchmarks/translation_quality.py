"""What choosing among translations gains: `python benchmarks/translation_quality.py --data DATA --model DIR --images PHOTOS`.

English captions that `translation_model.py` left out are translated by its model, 25 times each: BLEU and chrF (sacrebleu) of the
first translation, of the best by each way to choose, and of the best by chrF with the reference, which no way can know. Intervals
of the gain over the first are 95% by bootstrap over captions. How many are in another language is printed too. Translations are
kept in the model's folder; `--only-translate` stops there, for a machine that has a GPU and no photos.
"""

import argparse
import random
from pathlib import Path

import numpy as np
import sacrebleu
from translation_model import LANGUAGES, Pair, pairs

from caplens.api.metrics import metrics_of
from caplens.data import Sample
from caplens.metrics.options import ScoringOptions
from caplens.translation import TranslationOptions, Translator, load_translator, translate_samples
from caplens.translation.chrf import chrf
from caplens.translation.selection import MBR
from caplens.translation.store import TranslationStore, translation_key

RESAMPLES = 1000
FIRST, ORACLE = "first", "oracle"
SELECTORS = {
    FIRST: [],
    "mini-qe": ["mini-qe"],
    "use-qe": ["use-qe"],
    "image": ["clipscore"],
    "mbr": ["mbr"],
    "mini-qe, image": ["mini-qe", "clipscore"],
    "mini-qe, mbr": ["mini-qe", "mbr"],
}
"""What chooses -> the quality estimates whose ranks are averaged."""
USE_LANGUAGES = ("de", "fr", "ja", "tr", "zh")
"""Languages of the model that USE-multilingual knows."""


def gain(chosen: list[str], first: list[str], references: list[str]) -> tuple[float, float, float]:
    """By how much the mean sentence chrF is higher than that of the first translations, with its interval."""
    difference = np.array([chrf(a, r) - chrf(b, r) for a, b, r in zip(chosen, first, references, strict=True)]) * 100
    rng = np.random.default_rng(0)
    means = difference[rng.integers(0, len(difference), (RESAMPLES, len(difference)))].mean(1)
    return float(difference.mean()), *np.quantile(means, [0.025, 0.975]).tolist()


def photo_path(pair: Pair, photos: dict[str, Path]) -> str | None:
    """The file of its photo; Multi30k names photos by the number that file names of Flickr8k begin with."""
    name = pair.photo.rpartition(".")[0] or pair.photo
    path = photos.get(name) or photos.get(name.partition("_")[0])
    return None if path is None else str(path)


def measure(arguments: argparse.Namespace, lang: str, translator: Translator, photos: dict[str, Path]) -> None:
    held_out = [pair for pair in pairs(arguments.data, of_held_out=True) if pair.lang == lang]
    rows = random.Random(0).sample(held_out, min(arguments.count, len(held_out)))
    samples = [Sample(str(number), pair.source, image=photo_path(pair, photos)) for number, pair in enumerate(rows)]
    references = [pair.translation for pair in rows]
    store = TranslationStore(arguments.model)
    texts: dict[str, list[str]] = {}
    shares: dict[str, float] = {}
    for name, estimates in usable_selectors(lang, with_photos=bool(photos)).items():
        named = [estimate for estimate in estimates if estimate != MBR]
        metrics = metrics_of("score", named, None, ScoringOptions()) if named else []
        options = TranslationOptions(arguments.nbest, metrics, MBR in estimates, check_language=name != FIRST, store=store)
        translated, report = translate_samples(samples, translator, lang, options=options)
        if arguments.only_translate:
            return
        texts[name] = [sample.caption or "" for sample in translated]
        shares[name] = report.wrong_language / report.texts
        shares[FIRST] = report.first_in_wrong_language / report.texts
    texts[ORACLE] = nearest_to_references(rows, store, lang, arguments.nbest, translator)
    show(lang, texts, shares, references)


def usable_selectors(lang: str, *, with_photos: bool) -> dict[str, list[str]]:
    return {
        name: estimates
        for name, estimates in SELECTORS.items()
        if (name != "use-qe" or lang in USE_LANGUAGES) and ("clipscore" not in estimates or with_photos)
    }


def nearest_to_references(rows: list[Pair], store: TranslationStore, lang: str, nbest: int, translator: Translator) -> list[str]:
    """Of each caption the hypothesis that is nearest to the reference."""
    keys = [translation_key(pair.source, "en", lang, nbest, translator.fingerprint) for pair in rows]
    stored = store.get(keys)
    return [
        max((hypothesis.text for hypothesis in stored[key]), key=lambda text, reference=pair.translation: chrf(text, reference))
        for key, pair in zip(keys, rows, strict=True)
    ]


def show(lang: str, texts: dict[str, list[str]], shares: dict[str, float], references: list[str]) -> None:
    """A row of the table for each way to choose."""
    tokenizer = {"ja": "ja-mecab", "zh": "zh"}.get(lang, "13a")
    for name, chosen in texts.items():
        bleu = sacrebleu.corpus_bleu(chosen, [references], tokenize=tokenizer).score
        score = sacrebleu.corpus_chrf(chosen, [references]).score
        mean, low, high = gain(chosen, texts[FIRST], references)
        change = "" if name == FIRST else f"{mean:+.2f} ({low:+.2f} to {high:+.2f})"
        other = f"{100 * shares[name]:.1f}%" if name in shares else ""
        print(f"| {lang} | {name} | {bleu:.1f} | {score:.1f} | {change} | {other} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds flickr8k and multi30k")
    parser.add_argument("--model", type=Path, required=True, help="the folder of the translation model")
    parser.add_argument("--images", type=Path, help="Flickr8k's photos; without, none is chosen by its image")
    parser.add_argument("--family", default="ct2", choices=("ct2", "hf"))
    parser.add_argument("--lang", action="append", choices=LANGUAGES, help="languages; all by default")
    parser.add_argument("--count", type=int, default=500, help="captions of each language, at most")
    parser.add_argument("--nbest", type=int, default=25)
    parser.add_argument("--beams", type=int, default=25)
    parser.add_argument("--only-translate", action="store_true", help="fill the store, and choose nothing")
    arguments = parser.parse_args()
    translator = load_translator(f"{arguments.family}:{arguments.model}", beams=arguments.beams)
    photos: dict[str, Path] = {}
    for path in sorted(arguments.images.iterdir()) if arguments.images else ():
        photos[path.stem] = path
        photos.setdefault(path.stem.partition("_")[0], path)
    print("| lang | chosen by | BLEU | chrF | gain in chrF over the first | in another language |\n|---|---|---|---|---|---|")
    for language in arguments.lang or LANGUAGES:
        measure(arguments, language, translator, photos)


if __name__ == "__main__":
    main()
