"""MSVD-Eval: captions of short videos, rated by several people for four criteria (G-VEval, Tong et al. 2024)."""

from pathlib import Path

import numpy as np

from caplens.benchmarks.rating import RatedSamples, RatingBenchmark
from caplens.data.records import find_file, numbers, read_json, text, texts
from caplens.data.sample import Sample
from caplens.errors import InputError

_WHERE = "It is in the repository of G-VEval (ztangaj/gveval)."
_CRITERIA = ("accuracy", "completeness", "conciseness", "relevance", "average")
"""In the order of the file; the last is the mean of the others."""


class MsvdEval(RatingBenchmark):
    name = "msvd-eval"
    summary = "ratings (1 to 5) of captions of short videos, by four criteria"
    protocols = {
        "average": "each person's mean over the criteria (what papers report)",
        **{name: f"each person's rating of {name}" for name in _CRITERIA[:-1]},
    }
    coefficients = ("tau-b", "tau-c", "spearman", "pearson")
    folder, marker = "msvd-eval", "MSVD-Eval.json"
    image_folders = ("YouTubeClips", "videos")

    def load(self, data: Path, protocol: str, lang: str = "en") -> RatedSamples:
        path = find_file(data, [self.marker], "the ratings file", _WHERE)
        column = _CRITERIA.index(protocol)
        samples, human = [], []
        for identifier, entry in read_json(path).items():
            if not isinstance(entry, dict):
                raise InputError(f"{path}: {identifier!r} should be an object with vname, ref, candidate and human_score.")
            references, caption, video = texts(entry["ref"], path), text(entry["candidate"], path), text(entry["vname"], path)
            for rater, ratings in enumerate(entry["human_score"]):
                values = numbers(ratings, path)
                if len(values) != len(_CRITERIA):
                    raise InputError(
                        f"{path}: a person's ratings of {identifier!r} are {len(_CRITERIA)} numbers, not {len(values)}."
                    )
                samples.append(Sample(f"{identifier} {rater}", caption, references, video=video, lang="en"))
                human.append(values[column])
        return RatedSamples(samples, np.array(human))
