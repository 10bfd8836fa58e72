"""Captioners, languages and metrics from one file: captions, a comparison, a page, and a study of what metrics disagree on."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caplens.api.captioning import BEAMS, caption
from caplens.api.comparing import compare
from caplens.api.reporting import write_report
from caplens.api.scoring import score
from caplens.api.studies import create_study
from caplens.arrays import Floats
from caplens.captioners import SearchOptions
from caplens.data import Sample, SampleFile, with_images, write_samples
from caplens.data.formats.toml_document import read_toml
from caplens.data.languages import base_language
from caplens.data.replacing import ensure_apart
from caplens.data.writing import SUFFIXES
from caplens.errors import InputError
from caplens.human.settings import StudySettings, StudyTask
from caplens.metrics.options import ScoringOptions
from caplens.metrics.registry import build_metrics
from caplens.progress import logger
from caplens.results.comparison import LanguageComparison
from caplens.results.scores import ScoreResult
from caplens.terminal import visible

CAPTIONS, COMPARISON, PAGE = "captions", "comparison.json", "report.html"
"""What an experiment writes into its folder."""
_FILE_NAME = re.compile(r"[\w-][\w.-]{0,79}")
_REQUIRED, _PLACES = ("systems", "images", "output"), ("images", "output", "references")
_LISTS, _NUMBERS = ("metrics", "langs"), ("beams", "nbest", "side_by_side", "resamples")
BySystem = dict[str, dict[str, list[Sample]]]
"""Language -> system -> captions."""


@dataclass(frozen=True)
class Experiment:
    """Which captioners are compared, on what, and how.

    Attributes
    ----------
    systems
        Name -> a captioner, as `caption` takes it, or a file of captions that there is.
    images
        The folder of images.
    output
        The folder for all that is written.
    metrics
        Their names.
    references
        A file whose rows have images and references; without it, all images of the folder are captioned.
    langs
        The languages of captions; without any, those of the rows.
    beams, nbest, rerank
        How captions are searched and chosen.
    model
        What metrics that look at images score with.
    baseline
        The system that others are tested against; by default, all pairs are.
    side_by_side
        Images of each language on which metrics disagree most about the two best systems, for a study of people; 0 for none.
    resamples
        Of intervals and tests.
    """

    systems: Mapping[str, str]
    images: Path
    output: Path
    metrics: Sequence[str] = ("clipscore",)
    references: Path | None = None
    langs: Sequence[str] = ()
    beams: int = BEAMS
    nbest: int = 1
    rerank: str | None = None
    model: str | None = None
    baseline: str | None = None
    side_by_side: int = 0
    resamples: int = 1000

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Experiment":
        """From a TOML file; paths in it are relative to its folder."""
        content, folder = read_toml(Path(path), "experiment"), Path(path).parent
        _check_names(path, content, [field.name for field in fields(cls)])
        for name, value in content.items():
            _check_type(path, name, value)
        settings: dict[str, Any] = dict(content)
        settings |= {name: folder / content[name] for name in _PLACES if name in content}
        settings["systems"] = {name: _placed(folder, captioner) for name, captioner in content["systems"].items()}
        return cls(**settings)


def _check_names(path: str | PathLike[str], content: Mapping[str, Any], settings: Sequence[str]) -> None:
    unknown = next((name for name in content if name not in settings), None)
    if unknown is not None:
        raise InputError(f"{path}: there is no setting {unknown!r}; choose from: {', '.join(settings)}.")
    missing = next((name for name in _REQUIRED if name not in content), None)
    if missing is not None:
        raise InputError(f"{path}: {missing!r} is missing.")
    systems = content["systems"]
    if not isinstance(systems, dict) or len(systems) < 2 or not all(isinstance(name, str) for name in systems.values()):
        raise InputError(f'{path}: [systems] has at least two lines such as mini = "caplens-mini-captioner".')
    odd = next((name for name in systems if not _FILE_NAME.fullmatch(name)), None)
    if odd is not None:
        raise InputError(
            f"{path}: the system {visible(odd)!r} is the name of a file of captions, too; use letters, digits, - and _."
        )


def _check_type(path: str | PathLike[str], name: str, value: Any) -> None:
    fits: bool
    if name in _LISTS:
        what, fits = "a list of texts", isinstance(value, list) and all(isinstance(entry, str) for entry in value)
    elif name in _NUMBERS:
        what, fits = "a whole number", type(value) is int and value >= 0
    else:
        what, fits = "a text", isinstance(value, dict if name == "systems" else str) and bool(value)
    if not fits or (name == "metrics" and not value):
        raise InputError(f"{path}: {name!r} is {what}, not {value!r}.")


def _placed(folder: Path, captioner: str) -> str:
    """A file or folder beside the experiment, or the name of a captioner."""
    place = folder / captioner
    if Path(captioner).suffix.lower() in SUFFIXES and not place.is_file():
        raise InputError(f"{place}: there is no such file of captions.")
    return str(place) if captioner and place.exists() else captioner


class ExperimentReport(NamedTuple):
    """What an experiment wrote."""

    comparison: LanguageComparison
    page: Path
    studies: dict[Path, str | None]
    """The studies for people, and the token of the owner of those that are new."""


def run_experiment(experiment: Experiment | str | PathLike[str]) -> ExperimentReport:
    """Caption images with several captioners in several languages, and compare them.

    Parameters
    ----------
    experiment
        The experiment, or its TOML file.

    Returns
    -------
    ExperimentReport
        The comparison by language, which is also in `comparison.json`, the page and, where they were asked for, the studies.

    Raises
    ------
    InputError
        If the file cannot be used, or a captioner or metric is not there.
    """
    if not isinstance(experiment, Experiment):
        experiment = Experiment.read(experiment)
    options = ScoringOptions(model=experiment.model)
    _check(experiment, options)
    by_language = _captioned(experiment, options)
    comparisons = {
        lang: compare(
            systems, list(experiment.metrics), resamples=experiment.resamples, baseline=experiment.baseline, options=options
        )
        for lang, systems in by_language.items()
    }
    result = LanguageComparison(comparisons, experiment.output.name)
    result.save(experiment.output / COMPARISON)
    page = write_report({experiment.output.name: result}, experiment.output / PAGE, title=f"Captioners: {experiment.output.name}")
    return ExperimentReport(result, page, _with_studies(experiment, by_language, options) if experiment.side_by_side else {})


def _check(experiment: Experiment, options: ScoringOptions) -> None:
    """Errors for what would otherwise be noticed after hours of captioning."""
    build_metrics(list(experiment.metrics), options)
    if experiment.baseline is not None and experiment.baseline not in experiment.systems:
        raise InputError(f"the baseline {experiment.baseline!r} is none of the systems: {', '.join(experiment.systems)}.")
    inputs = [experiment.references, *(Path(place) for place in experiment.systems.values() if Path(place).is_file())]
    written = [
        experiment.output / CAPTIONS / f"{name}.jsonl" for name, place in experiment.systems.items() if not _is_file(place)
    ]
    for path in (*written, experiment.output / COMPARISON, experiment.output / PAGE):
        ensure_apart(path, *inputs)


def _is_file(captioner: str) -> bool:
    """Whether a system is a file of captions that there are."""
    return Path(captioner).suffix.lower() in SUFFIXES and Path(captioner).is_file()


def _captioned(experiment: Experiment, options: ScoringOptions) -> BySystem:
    """The captions of all systems, by language; written beside each other."""
    (experiment.output / CAPTIONS).mkdir(parents=True, exist_ok=True)
    wanted = {base_language(lang) for lang in experiment.langs}
    by_language: BySystem = {}
    for name, captioner in experiment.systems.items():
        for sample in with_images(_captions_of(experiment, name, captioner, options), experiment.images):
            lang = base_language(sample.lang or "en")
            if not wanted or lang in wanted:
                by_language.setdefault(lang, {}).setdefault(name, []).append(sample)
    for lang in [lang for lang, systems in by_language.items() if len(systems) < 2]:
        logger.warning(f"only one system has captions in {lang!r}, which are not compared.")
        del by_language[lang]
    if not by_language:
        raise InputError("no language has captions of two systems.")
    return by_language


def _captions_of(experiment: Experiment, name: str, captioner: str, options: ScoringOptions) -> list[Sample]:
    """The captions of a system: those of its file, or new ones."""
    if _is_file(captioner):
        return list(SampleFile(captioner))
    logger.info(f"captioning with {name}")
    samples, _ = caption(
        experiment.references or experiment.images, captioner, langs=experiment.langs, images=experiment.images,
        nbest=experiment.nbest, rerank=experiment.rerank, search=SearchOptions(max(experiment.beams, experiment.nbest)),
        options=options,
    )  # fmt: skip
    samples = [replace(sample, system=name) for sample in samples]
    write_samples(samples, experiment.output / CAPTIONS / f"{name}.jsonl")
    return samples


def _with_studies(experiment: Experiment, by_language: BySystem, options: ScoringOptions) -> dict[Path, str | None]:
    """A study of each pair of systems that is the best in some language."""
    pairs: dict[tuple[str, str], dict[str, list[Sample]]] = {}
    for systems in by_language.values():
        scored = {
            name: score(samples, list(experiment.metrics), resamples=0, options=options) for name, samples in systems.items()
        }
        first, second = _best(scored, experiment.metrics[0])
        ids = _disputed(scored[first], scored[second], experiment.metrics, experiment.side_by_side)
        low, high = sorted((first, second))
        chosen = pairs.setdefault((low, high), {low: [], high: []})
        for name in (low, high):
            chosen[name] += [sample for sample in systems[name] if sample.id in ids]
    studies: dict[Path, str | None] = {}
    for (low, high), samples in pairs.items():
        place = experiment.output / f"{low}-{high}.db"
        if place.exists():
            logger.info(f"{place} is there already, and stays as it is.")
            studies[place] = None
        else:
            settings = StudySettings(task=StudyTask.sidebyside, title=experiment.output.name)
            studies[place] = create_study(place, settings, samples).owner_token
    return studies


def _best(scored: Mapping[str, ScoreResult], metric: str) -> tuple[str, str]:
    """The two systems with the highest corpus scores."""
    first, second, *_ = sorted(scored, key=lambda name: -np.nan_to_num(scored[name][metric].corpus, nan=-np.inf))
    return first, second


def _disputed(first: ScoreResult, second: ScoreResult, metrics: Sequence[str], count: int) -> set[str]:
    """The ids on which metrics disagree most about which of two systems is better; with one metric, on which they differ most."""
    row_of = {identifier: row for row, identifier in enumerate(second.ids)}
    ids = [identifier for identifier in first.ids if identifier in row_of]
    rows = [row_of[identifier] for identifier in ids]
    own = [row for row, identifier in enumerate(first.ids) if identifier in row_of]
    differences = np.array([_standardized(first[name].values[own] - second[name].values[rows]) for name in metrics])
    disagreement = np.ptp(differences, axis=0) if len(metrics) > 1 else np.abs(differences[0])
    order = np.argsort(-np.nan_to_num(disagreement, nan=-1.0), kind="stable")[:count]
    return {ids[place] for place in order}


def _standardized(values: Floats) -> Floats:
    spread = np.nanstd(values)
    return values / spread if spread else values
