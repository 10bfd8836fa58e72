"""SugarCrepe: captions of COCO photos against wrong captions that are fluent and plausible (Hsieh et al. 2023)."""

from pathlib import Path

from caplens.benchmarks.base import count_warning
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial, prefer
from caplens.data.records import find_file, read_json, text
from caplens.data.sample import Sample
from caplens.errors import InputError

_PARTS = {
    "add_att": 692, "add_obj": 2062, "replace_att": 788, "replace_obj": 1652, "replace_rel": 1406, "swap_att": 666,
    "swap_obj": 245,
}  # fmt: skip
_WHERE = "They are in the folder data of the SugarCrepe repository (RAIVNLab/sugar-crepe)."


class SugarCrepe(PreferenceBenchmark):
    name = "sugarcrepe"
    summary = "captions against plausible wrong ones: objects, attributes or relations added, replaced or swapped"
    protocols = {"accuracy": "the correct caption scores higher (what papers report)"}
    averaged = True
    folder, marker = "sugarcrepe", "add_att.json"
    image_folders = ("val2017", "images")

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        samples: list[Sample] = []
        trials: list[Trial] = []
        warnings = []
        for part, count in _PARTS.items():
            path = find_file(data, [f"{part}.json"], f"the part {part!r}", _WHERE)
            rows = read_json(path)
            for key, row in rows.items():
                try:
                    image, right, wrong = (text(row[name], path) for name in ("filename", "caption", "negative_caption"))
                except (KeyError, TypeError):
                    raise InputError(f"{path}: the entry {key!r} has no filename, caption or negative_caption.") from None
                trials.append(prefer(part, image, len(samples), len(samples) + 1))
                samples += [
                    Sample(f"{part} {key} {kind}", caption, image=image, lang="en")
                    for kind, caption in (("right", right), ("wrong", wrong))
                ]
            warnings += count_warning(len(rows), count, f"pairs of {part}")
        return PreferenceData(samples, trials, warnings=warnings)
