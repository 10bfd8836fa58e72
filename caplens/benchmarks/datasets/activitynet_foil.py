"""ActivityNet-FOIL: paragraphs about videos, and copies with an error in at least one sentence (Shi et al. 2022).

Each sentence is scored against the other annotator's sentences about the same seconds; a paragraph's score is their mean.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from caplens.benchmarks.base import Published, count_warning
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial
from caplens.data.records import find_file, read_json
from caplens.data.sample import Sample
from caplens.errors import InputError

_MIN_OVERLAP = 0.4
_WHERE = "They come with EMScore (ShiYaya/emscore)."


class ActivityNetFoil(PreferenceBenchmark):
    name = "activitynet-foil"
    summary = "1,900 paragraphs about videos against copies with errors"
    protocols = {"accuracy": "the correct paragraph scores higher (what papers report)"}
    folder, marker = "activitynet-foil", "final_right_video_sentences.json"
    image_folders = ("videos",)
    published = (
        Published(
            "Sarto et al. 2023 (PAC-S), table 6",
            "accuracy",
            {
                "accuracy": {
                    "bleu1": 60.1,
                    "bleu4": 66.1,
                    "rouge-l": 56.7,
                    "meteor": 72.9,
                    "cider": 77.9,
                    "emscore": 89.5,
                    "refemscore": 92.4,
                    "pacs-video": 90.1,
                    "refpacs-video": 93.5,
                }
            },
        ),
    )

    def better(self, scores: list[float]) -> float:
        return fmean(scores)

    worse = better

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        names = ("final_right_video_sentences.json", "final_foil_video_sentences.json")
        right, foil, first_annotator, second_annotator = (
            read_json(find_file(data, [name], f"the file {name}", _WHERE))
            for name in (*names, "anet_entities_test_1.json", "anet_entities_test_2.json")
        )
        samples: list[Sample] = []
        trials: list[Trial] = []
        try:
            for video, sentences in right["results"].items():
                sides = []
                for kind, paragraph in (("right", sentences), ("foil", foil["results"][video])):
                    if not paragraph:
                        raise InputError(f"{data}: the {kind} paragraph of {video} is empty.")
                    sides.append(range(len(samples), len(samples) + len(paragraph)))
                    for number, part in enumerate(paragraph):
                        interval = first_annotator[video]["timestamps"][number]
                        references = _overlapping_sentences(interval, second_annotator.get(video, {}))
                        seconds = {"start": interval[0], "end": interval[1], "duration": first_annotator[video].get("duration")}
                        samples.append(
                            Sample(f"{video} {kind} {number}", part["sentence"], references, video=video, lang="en", meta=seconds)
                        )
                trials.append(Trial("accuracy", video, ((sides[0], sides[1]),)))
        except KeyError as error:
            raise InputError(f"{data}: these are not the files of ActivityNet-FOIL; the key {error} is missing.") from None
        return PreferenceData(samples, trials, warnings=count_warning(len(trials), 1900, "pairs of paragraphs"))


def _overlapping_sentences(interval: Sequence[float], annotation: Mapping[str, Any]) -> tuple[str, ...]:
    """The sentences of which more than 0.4 of their seconds lie in `interval`; all sentences if there are none."""
    sentences = tuple(annotation.get("sentences", ()))
    begin, end = (int(second) for second in interval)
    overlapping = []
    for text, (start, stop) in zip(sentences, annotation.get("timestamps", ()), strict=False):
        seconds = range(int(start), int(stop) + 1)
        shared = range(max(begin, seconds[0]), min(end, seconds[-1]) + 1)
        if len(shared) / len(seconds) > _MIN_OVERLAP:
            overlapping.append(text)
    return tuple(overlapping) or sentences
