"""VATEX-EVAL: 18,000 captions of 3,000 videos, each rated 1 to 5 by three people (Shi et al. 2022).

The coefficient is computed with each person's ratings and averaged over the three. The public files are pickles, which caplens
never opens; docs/benchmarks.md says how to convert them to JSON.
"""

from pathlib import Path
from typing import Any

import numpy as np

from caplens.arrays import Flags, Floats
from caplens.benchmarks.base import Measured, Published, count_warning
from caplens.benchmarks.rating import RatedSamples, RatingBenchmark
from caplens.data.records import find_file, read_json, texts
from caplens.data.sample import Sample
from caplens.errors import InputError

_WHERE = "They come with EMScore (ShiYaya/emscore) as pickles; docs/benchmarks.md says how to convert them."
_RATERS = 3
_SOURCE = "Sarto et al. 2023 (PAC-S), table 3"
_ONE_REF = {
    "bleu1": (12.2, 15.9),
    "bleu4": (12.6, 16.4),
    "rouge-l": (12.5, 16.3),
    "meteor": (16.4, 21.5),
    "cider": (17.3, 22.6),
    "refemscore": (28.6, 37.1),
    "refpacs-video": (31.4, 40.5),
}
_NINE_REFS = {
    "bleu1": (28.9, 37.0),
    "bleu4": (22.4, 29.5),
    "rouge-l": (23.8, 30.9),
    "meteor": (27.6, 35.7),
    "cider": (27.8, 36.1),
    "refemscore": (36.8, 47.2),
    "refpacs-video": (38.1, 48.8),
}
_NO_REFS = {"emscore": (23.2, 30.3), "pacs-video": (25.1, 32.6)}
_NAMED = {"9-refs": _NINE_REFS, "1-ref": _ONE_REF, "no-refs": _NO_REFS}
_REFERENCES = {"9-refs": 9, "1-ref": 1, "no-refs": 0, **{f"{number}-refs": number for number in range(2, 9)}}
"""Protocol -> how many references count."""
_ROUNDED, _DIGITS = "-rounded", 4
"""What the names of protocols end with by which scores are rounded, as EMScore's own script does, and to how many digits."""


class VatexEval(RatingBenchmark):
    name = "vatex-eval"
    summary = "ratings (1 to 5) of 18,000 captions of videos"
    protocols = {
        "9-refs": "nine references",
        "1-ref": "one reference",
        "no-refs": "no references",
        **{f"{number}-refs": f"{number} references" for number in range(2, 9)},
        **{f"{name}{_ROUNDED}": f"{name}, scores rounded to {_DIGITS} digits (EMScore's script)" for name in _NAMED},
    }
    coefficients = ("tau-b", "spearman")
    folder, marker = "vatex-eval", "candidates_list.json"
    image_folders = ("videos",)
    published = tuple(
        Published(
            _SOURCE,
            protocol,
            {name: {metric: row[column] for metric, row in table.items()} for column, name in enumerate(("tau-b", "spearman"))},
        )
        for name, table in _NAMED.items()
        for protocol in (name, f"{name}{_ROUNDED}")
    )

    def load(self, data: Path, protocol: str, lang: str = "en") -> RatedSamples:
        names = ("candidates_list", "gts_list", "video_ids", "human_scores")
        captions, reference_lists, videos, ratings = (
            read_json(find_file(data, [f"{name}.json"], f"the file {name}.json", _WHERE), list) for name in names
        )
        by_rater = _ratings_by_rater(ratings, data)
        if not len(captions) == len(reference_lists) == len(videos) == by_rater.shape[1]:
            counts = f"{len(captions)}, {len(reference_lists)}, {len(videos)} and {by_rater.shape[1]}"
            raise InputError(f"{data}: the four files are about {counts} captions; they belong to different data.")
        reference_count = _REFERENCES[protocol.removesuffix(_ROUNDED)]
        samples = [
            Sample(f"{video} {row}", caption, texts(references, data)[:reference_count], video=video, lang="en")
            for row, (caption, references, video) in enumerate(zip(captions, reference_lists, videos, strict=True))
        ]
        digits = _DIGITS if protocol.endswith(_ROUNDED) else None
        warnings, fewer = (
            count_warning(len(samples), 18000, "captions"),
            sum(len(sample.references) < reference_count for sample in samples),
        )
        if fewer:
            warnings.append(f"{fewer:,} captions have fewer than {reference_count} references.")
        incomplete = frozenset(self.coefficients if fewer else ())
        return RatedSamples(samples, by_rater.T, digits=digits, warnings=warnings, incomplete=incomplete)

    def judge(self, loaded: RatedSamples, values: Floats, scored: Flags, resamples: int, seed: int) -> dict[str, Measured]:
        measures_by_rater = [
            super(VatexEval, self).judge(
                RatedSamples(loaded.samples, ratings, digits=loaded.digits), values, scored, resamples, seed
            )
            for ratings in loaded.human.T
        ]
        return {
            name: Measured(
                float(np.mean([measures[name].value for measures in measures_by_rater])),
                np.mean([measures[name].drawn for measures in measures_by_rater], axis=0),
                first.points,
            )
            for name, first in measures_by_rater[0].items()
        }


def _ratings_by_rater(ratings: list[Any], data: Path) -> Floats:
    """Three rows of ratings; in the release they are concatenated."""
    try:
        values = np.array(ratings, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty(0)
    flat = [value for row in ratings for value in (row if isinstance(row, list) else [row])]
    if not np.isfinite(values).all() or any(isinstance(value, bool) for value in flat):
        raise InputError(f"{data}: human_scores.json has a rating that is not a number.")
    if values.ndim == 1 and values.size and values.size % _RATERS == 0:
        return values.reshape(_RATERS, -1)
    if values.ndim == 2 and _RATERS in values.shape:
        return values if len(values) == _RATERS else values.T
    raise InputError(f"{data}: human_scores.json should contain the ratings of three people, concatenated or in three rows.")
