"""MaRVL: true or false statements about two photos, in Indonesian, Swahili, Tamil, Turkish and Chinese (Liu et al. 2021), with
the protocol of multilingual CLIPScore (appendix E).

A true statement counts with the photo that fits it best, a false one with the photo that fits it least. Accuracy 1 compares each
pair of photos for which a statement is true with each for which it is false. For accuracy 2 all comparisons of a statement must
be right. English are the machine translations of all five languages that the authors provide.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from caplens.benchmarks.base import count_warning
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial
from caplens.data.files import Place
from caplens.data.records import Record, field, find_file, read_records
from caplens.data.sample import Sample

_MEASURES = ("accuracy 1", "accuracy 2")
_ROWS = {"id": 1128, "zh": 1012, "sw": 1108, "ta": 1242, "tr": 1180}
_FOLDERS = ("", "marvl-annotations/", "annotations/", "zero_shot/annotations/")
"""Where the statements are: in the folder itself, in the release, and in IGLUE."""
_ENGLISH_FOLDERS = ("", "annotations_machine-translate/", "zero_shot/annotations_machine-translate/")
_WHERE = "It comes from the authors (marvl-challenge/marvl-code, data), or with IGLUE (e-bug/iglue, datasets/marvl)."


class Marvl(PreferenceBenchmark):
    name = "marvl"
    summary = "statements about two photos each, true or false; id, sw, ta, tr, zh, and their translations into English"
    protocols = {
        "best against least": "the best-fitting photo of a true statement against the worst-fitting photo of a false one",
    }
    in_english = False
    folder, marker = "marvl", "marvl-*.jsonl"
    image_folders = ("marvl-images", "images")

    def worse(self, scores: list[float]) -> float:
        return min(scores)

    def is_in(self, folder: Path) -> bool:
        return bool(self.languages(folder))

    def languages(self, data: Path) -> list[str]:
        translated = _available(data, "marvl-{lang}_gmt.jsonl", _ENGLISH_FOLDERS)
        return sorted([*_available(data, "marvl-{lang}.jsonl", _FOLDERS), *(["en"] if translated else [])])

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        samples: list[Sample] = []
        rows_by_statement: dict[tuple[str, str], dict[bool, list[tuple[int, int]]]] = {}
        for place, record in self._records(data, lang):
            caption, concept, key = (str(field(record, [name], place)) for name in ("caption", "concept", "id"))
            of_photos = str(record.get("language") or lang)
            label = field(record, ["label"], place) in (True, "True", "true")
            statement = rows_by_statement.setdefault((of_photos, caption), {True: [], False: []})
            statement[label].append((len(samples), len(samples) + 1))
            for side in ("left_img", "right_img"):
                image = f"{of_photos}/images/{concept}/{field(record, [side], place)}"
                samples.append(Sample(f"{key} {side}", caption, image=image, lang=lang))
        trials: list[Trial] = []
        for (of_photos, caption), rows_by_label in rows_by_statement.items():
            constraints = tuple(product(rows_by_label[True], rows_by_label[False]))
            group = f"{of_photos} {caption}"
            trials += [Trial(_MEASURES[0], group, (constraint,)) for constraint in constraints]
            if constraints:
                trials.append(Trial(_MEASURES[1], group, constraints))
        trials.sort(key=lambda trial: trial.measure)
        expected = sum(_ROWS.values()) if lang == "en" else _ROWS.get(lang, len(samples) // 2)
        return PreferenceData(samples, trials, warnings=count_warning(len(samples) // 2, expected, "statements"))

    def _records(self, data: Path, lang: str) -> Iterator[tuple[Place, Record]]:
        if lang != "en":
            names = [f"{folder}marvl-{lang}.jsonl" for folder in _FOLDERS]
            yield from read_records(find_file(data, names, f"the statements in {lang!r}", _WHERE))
            return
        # The translations of each language are about its own photos.
        for source in _available(data, "marvl-{lang}_gmt.jsonl", _ENGLISH_FOLDERS) or list(_ROWS):
            names = [f"{folder}marvl-{source}_gmt.jsonl" for folder in _ENGLISH_FOLDERS]
            yield from read_records(find_file(data, names, f"the translation of the statements in {source!r}", _WHERE))


def _available(data: Path, name: str, folders: Sequence[str]) -> list[str]:
    """The languages whose file is in one of the folders."""
    return [lang for lang in _ROWS if any(any(data.glob(f"{folder}{name.format(lang=lang)}*")) for folder in folders)]
