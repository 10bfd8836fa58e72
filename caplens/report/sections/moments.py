"""Which moment of a video supports which word of its caption: every word against every frame, by the model that scored."""

import re
from collections.abc import Sequence

import numpy as np

from caplens.backbones.transform import Pixels
from caplens.embed.engine import Engine
from caplens.embed.images import UnreadableError
from caplens.embed.videos import DEFAULT_FRAMES, FrameChoice, check_choice, clip_of, read_frames
from caplens.embed.word_vectors import word_vectors
from caplens.errors import InputError, option
from caplens.metrics.options import ScoringOptions
from caplens.report import heatmaps
from caplens.report.cases import Case
from caplens.report.sections.section import Plot
from caplens.results.scores import ScoreResult

_SIGNATURE = re.compile(
    r"\|model:(?P<model>.*)@(?P<fingerprint>[0-9a-f]{8})\|frames:(?P<frames>[^|]+)\|.*\|dtype:(?P<dtype>\w+)\|"
)
_MOST, _LONGEST_SIGNATURE = 24, 4096
_ABOUT = (
    "The cosine of each word and each frame that was looked at, in order; the darkest of a row is the moment that supports the"
    " word most. The vector of a word depends on the whole caption, so that neighbours look alike."
)


def moment_plots(result: ScoreResult, cases: Sequence[Case], ids: Sequence[str]) -> list[Plot]:
    """A heatmap for each of the captions that are named."""
    named = [case for case in cases if case.sample.id in ids]
    missing = next((identifier for identifier in ids if identifier not in {case.sample.id for case in named}), None)
    if missing is not None:
        raise InputError(f"there is no caption {missing!r} whose words could be shown with {option('moments', missing)}.")
    if len(named) > _MOST:
        raise InputError(f"{len(named):,} captions are named with {option('moments')}; choose at most {_MOST}.")
    signatures = [scores.signature for scores in result.metrics.values() if len(scores.signature) <= _LONGEST_SIGNATURE]
    matches = [match for line in signatures if (match := _SIGNATURE.search(line)) is not None]
    if not matches:
        raise InputError(
            f"{option('moments')} shows captions of videos that were scored with emscore or pacs-video; there are none."
        )
    # A file names the model, not the user: nothing is downloaded for it.
    engine = ScoringOptions(model=matches[0]["model"], dtype=matches[0]["dtype"], offline=True).engine()
    if not engine.backbone.fingerprint.startswith(matches[0]["fingerprint"]):
        raise InputError(f"{engine.backbone.name} is not the version that scored the captions. Score them again.")
    return [_plot(engine, case, _choice(matches[0]["frames"])) for case in named]


def _choice(label: str) -> FrameChoice:
    if label.endswith("fps"):
        return check_choice(DEFAULT_FRAMES, float(label.removesuffix("fps")))
    return check_choice(int(label), None)


def _plot(engine: Engine, case: Case, choice: FrameChoice) -> Plot:
    sample = case.sample
    clip = clip_of(sample)
    frames = engine.frames([clip], choice)
    if frames.matrices[0] is None:
        raise InputError(f"the words of {sample.id!r} cannot be shown: {frames.errors[0]}.")
    words = word_vectors(engine, sample.caption or "", sample.lang)
    values = words.vectors.astype(np.float64) @ frames.matrices[0].T.astype(np.float64)
    try:
        pictures: list[Pixels] = read_frames(clip, choice, heatmaps.small_picture)
    except UnreadableError as error:
        raise InputError(f"the words of {sample.id!r} cannot be shown: {error}.") from None
    return Plot(f"Words and moments: {sample.id}", heatmaps.moments(words.words, pictures, values), _ABOUT)
