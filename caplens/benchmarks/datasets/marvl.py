"""MaRVL: true or false statements about two photos, in Indonesian, Swahili, Tamil, Turkish and Chinese (Liu et al. 2021), with
the protocol of multilingual CLIPScore (appendix E).

A true statement counts with the photo that fits it best, a false one with the photo that fits it least. Accuracy 1 compares each
pair of photos for which a statement is true with each for which it is false. For accuracy 2 all comparisons of a statement must
be right.
"""

from itertools import product
from pathlib import Path

from caplens.benchmarks.base import Published, count_warning
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial
from caplens.data.records import field, find_file, read_records
from caplens.data.sample import Sample

_MEASURES = ("accuracy 1", "accuracy 2")
_PUBLISHED = {"id": (92.4, 82.3), "zh": (89.4, 80.1), "sw": (85.0, 65.3), "ta": (85.7, 74.7), "tr": (93.5, 87.0)}
_ROWS = {"id": 1128, "zh": 1012, "sw": 1108, "ta": 1242, "tr": 1180}
_WHERE = "It comes from the authors (marvl-challenge/marvl-code, data)."


class Marvl(PreferenceBenchmark):
    name = "marvl"
    summary = "statements about two photos each, true or false; id, sw, ta, tr, zh"
    protocols = {
        "best against least": "the best-fitting photo of a true statement against the worst-fitting photo of a false one",
    }
    in_english = False
    folder, marker = "marvl", "marvl-*.jsonl"
    published = tuple(
        Published(
            "multilingual CLIPScore, table 5; CLIPScore with the ViT-H/14 and XLM-R large of LAION, not fine-tuned",
            "best against least",
            {measure: {"clipscore": value} for measure, value in zip(_MEASURES, row, strict=True)},
            lang,
        )
        for lang, row in _PUBLISHED.items()
    )

    def worse(self, scores: list[float]) -> float:
        return min(scores)

    def languages(self, data: Path) -> list[str]:
        return sorted(path.name.removeprefix("marvl-").split(".")[0] for path in data.glob("marvl-*.jsonl*"))

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        path = find_file(data, [f"marvl-{lang}.jsonl"], f"the statements in {lang!r}", _WHERE)
        samples: list[Sample] = []
        rows_by_statement: dict[str, dict[bool, list[tuple[int, int]]]] = {}
        for place, record in read_records(path):
            caption, concept, key = (str(field(record, [name], place)) for name in ("caption", "concept", "id"))
            label = field(record, ["label"], place) in (True, "True", "true")
            rows_by_statement.setdefault(caption, {True: [], False: []})[label].append((len(samples), len(samples) + 1))
            for side in ("left_img", "right_img"):
                image = f"{lang}/images/{concept}/{field(record, [side], place)}"
                samples.append(Sample(f"{key} {side}", caption, image=image, lang=lang))
        trials: list[Trial] = []
        for statement, rows_by_label in rows_by_statement.items():
            constraints = tuple(product(rows_by_label[True], rows_by_label[False]))
            trials += [Trial(_MEASURES[0], statement, (constraint,)) for constraint in constraints]
            if constraints:
                trials.append(Trial(_MEASURES[1], statement, constraints))
        trials.sort(key=lambda trial: trial.measure)
        warnings = count_warning(len(samples) // 2, _ROWS[lang], "statements") if lang in _ROWS else []
        return PreferenceData(samples, trials, warnings=warnings)
