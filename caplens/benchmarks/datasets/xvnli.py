"""XVNLI: statements about photos that follow from them, may or may not be true, or contradict them, in five languages
(Bugliarello et al. 2022), used as multilingual CLIPScore does (appendix E).

Statements about one photo are put in the order of their labels: every two with the extreme labels (accuracy 1), every two with
different labels (accuracy 2), and every three with all labels (accuracy 3). The premise, a caption of the photo, is the
reference.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, product
from os import PathLike
from pathlib import Path

from caplens.benchmarks.base import Published, count_warning
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial, prefer
from caplens.data.records import field, find_file, read_records
from caplens.data.sample import Sample

_ORDER = ("contradiction", "neutral", "entailment")
_MEASURES = ("accuracy 1", "accuracy 2", "accuracy 3")
_PUBLISHED = {
    "en": (92.3, 80.7, 47.7), "ar": (84.6, 76.3, 44.7), "fr": (86.7, 77.9, 45.4), "es": (86.2, 77.7, 46.7),
    "ru": (87.5, 78.0, 44.4),
}  # fmt: skip
_WHERE = "It is part of IGLUE (e-bug/iglue, datasets/XVNLI/annotations)."


class Xvnli(PreferenceBenchmark):
    name = "xvnli"
    summary = "statements about photos in the order entailed, neutral, contradicted; en, ar, es, fr, ru"
    protocols = {"order": "statements with the same photo, in the order of their labels (multilingual CLIPScore, appendix E)"}
    folder, marker = "xvnli", "*test.jsonl"
    image_folders = ("flickr30k-images", "flickr30k_images", "images")
    published = tuple(
        Published(
            "multilingual CLIPScore, table 5; CLIPScore with the ViT-H/14 and XLM-R large of LAION, not fine-tuned",
            "order",
            {measure: {"clipscore": value} for measure, value in zip(_MEASURES, row, strict=True)},
            lang,
        )
        for lang, row in _PUBLISHED.items()
    )

    def is_in(self, folder: Path) -> bool:
        return bool(self.languages(folder))

    def languages(self, data: Path) -> list[str]:
        flat = {path.name.split(".")[0] for path in data.glob("*.test.jsonl*")}
        return sorted(flat | {path.parent.name for path in data.glob("*/test.jsonl*")}, key=lambda lang: (lang != "en", lang))

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        path = find_file(data, [f"{lang}.test.jsonl", f"{lang}/test.jsonl"], f"the test part in {lang!r}", _WHERE)
        samples: list[Sample] = []
        by_photo: dict[str, dict[str, list[int]]] = {}
        rows = 0
        for place, record in read_records(path):
            rows += 1
            label, premise, statement, photo, key = (
                str(field(record, [name], place)) for name in ("gold_label", "sentence1", "sentence2", "Flikr30kID", "pairID")
            )
            # Where annotators did not agree, the label is "-".
            if label in _ORDER:
                by_photo.setdefault(photo, {one: [] for one in _ORDER})[label].append(len(samples))
                image = f"{photo.removesuffix('.jpg')}.jpg"
                samples.append(Sample(f"{key} {place.number}", statement, (premise,), image=image, lang=lang))
        trials: list[Trial] = []
        for photo, rows_of in by_photo.items():
            for low, high in combinations(_ORDER, 2):
                pairs = list(product(rows_of[high], rows_of[low]))
                if (low, high) == (_ORDER[0], _ORDER[2]):
                    trials += [prefer(_MEASURES[0], photo, better, worse) for better, worse in pairs]
                trials += [prefer(_MEASURES[1], photo, better, worse) for better, worse in pairs]
            for least, middle, most in product(*(rows_of[label] for label in _ORDER)):
                trials.append(Trial(_MEASURES[2], photo, (((most,), (middle,)), ((middle,), (least,)))))
        trials.sort(key=lambda trial: trial.measure)
        return PreferenceData(samples, trials, warnings=count_warning(rows, 1164, "statements"))

    def image_key(self, name: str) -> str:
        return Path(name).stem.partition("_")[0]

    def located(self, samples: Iterable[Sample], images: str | PathLike[str]) -> list[Sample]:
        """By the photo's number, with which the names of Flickr30k's and of Flickr8k's files begin."""
        names = sorted(path.name for path in Path(images).iterdir()) if Path(images).is_dir() else []
        by_number = {self.image_key(name): name for name in names}
        named = (replace(sample, image=by_number.get(self.image_key(str(sample.image)), sample.image)) for sample in samples)
        return super().located(named, images)
