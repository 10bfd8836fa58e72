"""VALSE: captions against foils that differ in one linguistic phenomenon (Parcalabescu et al. 2022).

Each of its files is an instrument. A pair counts where at least two of three annotators accept the caption and not the foil.
"""

from pathlib import Path

from caplens.benchmarks.base import Published, count_warning
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial, prefer
from caplens.data.records import find_file, read_json
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.results.agreement import MEAN

_INSTRUMENTS = (
    "existence", "plurals", "counting-hard", "counting-small-quant", "counting-adversarial", "relations", "action-replacement",
    "actant-swap", "coreference-standard", "coreference-hard", "foil-it",
)  # fmt: skip
_VALID = {"existence": 505, "plurals": 851, "counting-small-quant": 900, "foil-it": 943, "actant-swap": 949}
_VIT_H = (74.7, 69.6, 66.9, 72.4, 65.3, 61.7, 86.7, 56.1, 51.3, 45.2, 94.2, 67.6)
_WHERE = "They are in the folder data of the VALSE repository (Heidelberg-NLP/VALSE)."
_ACCEPTED = 2


class Valse(PreferenceBenchmark):
    name = "valse"
    summary = "captions against foils, eleven linguistic instruments"
    protocols = {
        "valid": "pairs whose caption at least two of three annotators accept (what papers report)",
        "unfiltered": "all pairs",
    }
    averaged = True
    folder, marker = "valse", "existence.json"
    published = (
        Published(
            "multilingual CLIPScore, table 6; CLIPScore with the ViT-H/14 and XLM-R large of LAION, not fine-tuned",
            "valid",
            {name: {"clipscore": value} for name, value in zip((*_INSTRUMENTS, "mean"), _VIT_H, strict=True)},
        ),
    )

    def is_in(self, folder: Path) -> bool:
        return any(True for name in _INSTRUMENTS for _ in folder.glob(f"{name}.json*"))

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        samples: list[Sample] = []
        trials: list[Trial] = []
        there = [name for name in _INSTRUMENTS if any(True for _ in data.glob(f"{name}.json*"))]
        warnings = []
        for name in there or _INSTRUMENTS[:1]:
            path = find_file(data, [f"{name}.json"], f"the file of the instrument {name!r}", _WHERE)
            before = len(trials)
            for key, row in read_json(path).items():
                try:
                    accepted, texts = int(row["mturk"]["caption"]), (row["caption"], row["foil"])
                    image = str(row["image_file"])
                except (KeyError, TypeError, ValueError):
                    raise InputError(f"{path}: the entry {key!r} has no caption, foil, image_file or mturk.") from None
                if protocol == "valid" and accepted < _ACCEPTED:
                    continue
                trials.append(prefer(name, image, len(samples), len(samples) + 1))
                samples += [
                    Sample(f"{name} {key} {kind}", text, image=image, lang="en")
                    for kind, text in zip(("caption", "foil"), texts, strict=True)
                ]
            if protocol == "valid" and name in _VALID:
                warnings += count_warning(len(trials) - before, _VALID[name], f"valid pairs of {name}")
        missing = [name for name in _INSTRUMENTS if name not in there]
        if missing:
            warnings.append(f"{len(missing)} of the {len(_INSTRUMENTS)} instruments are not there: {', '.join(missing)}.")
        return PreferenceData(samples, trials, warnings=warnings, incomplete=frozenset({MEAN} if missing else ()))
