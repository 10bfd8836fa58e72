"""XVNLI: statements about photos, labelled entailment, neutral or contradiction, in five languages (Bugliarello et al. 2022),
with the protocol of multilingual CLIPScore (appendix E), which translated it into five more.

Scores of statements about the same photo should be in the order of their labels: for each pair of an entailment and a
contradiction (accuracy 1), each pair with different labels (accuracy 2), and each triple with all labels (accuracy 3). The
premise, a caption of the photo, is the reference.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, product
from os import PathLike
from pathlib import Path

from caplens.benchmarks.base import count_warning
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial, prefer
from caplens.data.image_folder import SUFFIXES
from caplens.data.records import field, find_file, read_records
from caplens.data.sample import Sample
from caplens.errors import InputError

_LABELS = ("contradiction", "neutral", "entailment")
"""From the lowest expected score to the highest."""
_MEASURES = ("accuracy 1", "accuracy 2", "accuracy 3")
_MOST_STATEMENTS = 100
"""About one photo and with one label; every three of them with different labels are compared. XVNLI has a handful."""
_WHERE = "It is part of IGLUE (e-bug/iglue, datasets/XVNLI/annotations)."


class Xvnli(PreferenceBenchmark):
    name = "xvnli"
    summary = "statements about photos in the order entailed, neutral, contradicted; en, ar, es, fr, ru"
    protocols = {"order": "statements with the same photo, in the order of their labels (multilingual CLIPScore, appendix E)"}
    folder, marker = "xvnli", "*test.jsonl"
    image_folders = ("flickr30k-images", "flickr30k_images", "images")

    def is_in(self, folder: Path) -> bool:
        return bool(self.languages(folder))

    def languages(self, data: Path) -> list[str]:
        flat = {path.name.split(".")[0] for path in data.glob("*.test.jsonl*")}
        return sorted(flat | {path.parent.name for path in data.glob("*/test.jsonl*")}, key=lambda lang: (lang != "en", lang))

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        path = find_file(data, [f"{lang}.test.jsonl", f"{lang}/test.jsonl"], f"the test part in {lang!r}", _WHERE)
        samples: list[Sample] = []
        rows_by_photo: dict[str, dict[str, list[int]]] = {}
        statement_count = 0
        for place, record in read_records(path):
            statement_count += 1
            label, premise, statement, photo, key = (
                str(field(record, [name], place)) for name in ("gold_label", "sentence1", "sentence2", "Flikr30kID", "pairID")
            )
            # The label is "-" if annotators did not agree.
            if label in _LABELS:
                rows_by_photo.setdefault(photo, {name: [] for name in _LABELS})[label].append(len(samples))
                image = f"{photo.removesuffix('.jpg')}.jpg"
                samples.append(Sample(f"{key} {place.number}", statement, (premise,), image=image, lang=lang))
        trials: list[Trial] = []
        for photo, rows_by_label in rows_by_photo.items():
            if max(map(len, rows_by_label.values())) > _MOST_STATEMENTS:
                raise InputError(f"{path}: the photo {photo} has more than {_MOST_STATEMENTS} statements of one label.")
            for low, high in combinations(_LABELS, 2):
                pairs = list(product(rows_by_label[high], rows_by_label[low]))
                if (low, high) == (_LABELS[0], _LABELS[2]):
                    trials += [prefer(_MEASURES[0], photo, better, worse) for better, worse in pairs]
                trials += [prefer(_MEASURES[1], photo, better, worse) for better, worse in pairs]
            for least, middle, most in product(*(rows_by_label[label] for label in _LABELS)):
                trials.append(Trial(_MEASURES[2], photo, (((most,), (middle,)), ((middle,), (least,)))))
        trials.sort(key=lambda trial: trial.measure)
        return PreferenceData(samples, trials, warnings=count_warning(statement_count, 1164, "statements"))

    def image_key(self, name: str) -> str:
        return Path(name).stem.partition("_")[0]

    def located(self, samples: Iterable[Sample], images: str | PathLike[str]) -> list[Sample]:
        """Match images by the photo number that file names of Flickr30k and Flickr8k begin with."""
        names = sorted(path.name for path in Path(images).iterdir()) if Path(images).is_dir() else []
        by_number: dict[str, list[str]] = {}
        for name in names:
            if Path(name).suffix.lower() in SUFFIXES:
                by_number.setdefault(self.image_key(name), []).append(name)

        def name_of(image: str) -> str:
            candidates = by_number.get(self.image_key(image), [image])
            if image not in candidates and len(candidates) > 1:
                raise InputError(f"{images}: the photo {image} could be {' or '.join(candidates)}. Remove those that are not.")
            return image if image in candidates else candidates[0]

        return super().located((replace(sample, image=name_of(str(sample.image))) for sample in samples), images)
