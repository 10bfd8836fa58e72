"""VALSE: captions against foils that differ in one linguistic phenomenon (Parcalabescu et al. 2022).

Each file is an instrument. A pair is valid if at least two of three annotators accept the caption.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from caplens.benchmarks.base import count_warning
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial, prefer
from caplens.data.records import find_file, read_json
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.results.agreement import MEAN

_INSTRUMENTS = (
    "existence", "plurals", "counting-hard", "counting-small-quant", "counting-adversarial", "relations", "action-replacement",
    "actant-swap", "coreference-standard", "coreference-hard", "foil-it",
)  # fmt: skip
_VALID_PAIRS = {"existence": 505, "plurals": 851, "counting-small-quant": 900, "foil-it": 943, "actant-swap": 949}
_WHERE = "They are in the folder data of the VALSE repository (Heidelberg-NLP/VALSE)."
_MIN_ACCEPTED = 2


class Valse(PreferenceBenchmark):
    name = "valse"
    summary = "captions against foils, eleven linguistic instruments"
    protocols = {
        "valid": "pairs whose caption at least two of three annotators accept (what papers report)",
        "unfiltered": "all pairs",
    }
    averaged = True
    folder, marker = "valse", "existence.json"

    def is_in(self, folder: Path) -> bool:
        return any(_has_instrument(folder, name) for name in _INSTRUMENTS)

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        samples: list[Sample] = []
        trials: list[Trial] = []
        warnings = []
        available = [name for name in _INSTRUMENTS if _has_instrument(data, name)]
        for name in available or _INSTRUMENTS[:1]:
            path = find_file(data, [f"{name}.json"], f"the file of the instrument {name!r}", _WHERE)
            pair_count = 0
            for pair in _read_pairs(path, valid_only=protocol == "valid"):
                pair_count += 1
                trials.append(prefer(name, pair.image, len(samples), len(samples) + 1))
                samples += [
                    Sample(f"{name} {pair.key} {kind}", text, image=pair.image, lang="en")
                    for kind, text in (("caption", pair.caption), ("foil", pair.foil))
                ]
            if protocol == "valid" and name in _VALID_PAIRS:
                warnings += count_warning(pair_count, _VALID_PAIRS[name], f"valid pairs of {name}")
        missing = [name for name in _INSTRUMENTS if name not in available]
        if missing:
            warnings.append(f"{len(missing)} of the {len(_INSTRUMENTS)} instruments are missing: {', '.join(missing)}.")
        return PreferenceData(samples, trials, warnings=warnings, incomplete=frozenset({MEAN} if missing else ()))


class _Pair(NamedTuple):
    key: str
    image: str
    caption: str
    foil: str


def _has_instrument(folder: Path, name: str) -> bool:
    return any(True for _ in folder.glob(f"{name}.json*"))


def _read_pairs(path: Path, *, valid_only: bool) -> Iterator[_Pair]:
    for key, row in read_json(path).items():
        try:
            accepted = int(row["mturk"]["caption"])
            pair = _Pair(key, str(row["image_file"]), row["caption"], row["foil"])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path}: the entry {key!r} has no caption, foil, image_file or mturk.") from None
        if not valid_only or accepted >= _MIN_ACCEPTED:
            yield pair
