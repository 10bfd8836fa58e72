"""Captions with their scores, and the selection of those worth looking at."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from caplens.arrays import Floats
from caplens.benchmarks import get_benchmark
from caplens.benchmarks.evaluate import load_checked
from caplens.data import Sample, SampleFile, read_references, samples_by_system, with_images
from caplens.data.columns import parsed_columns
from caplens.data.content import CAPTIONS, captions_hash, changes
from caplens.data.languages import base_language
from caplens.errors import InputError, option
from caplens.perturbation import PERTURBATIONS, check_protocol, perturbed
from caplens.progress import logger
from caplens.report.documents import Document, InputPaths
from caplens.results.agreement import AgreementResult
from caplens.results.base import Result
from caplens.results.comparison import Comparison
from caplens.results.robustness import RobustnessResult
from caplens.results.scores import ScoreResult

MOST = 200
"""Captions shown per result."""
_CHANGED = "have changed since they were scored; the scores are of the old ones. Score them again."
_PER_REASON = 12
_PER_LANGUAGE = 2
"""Captions of each language that are shown for a reason, if others are stronger."""
_METRICS_PAIRED = 3
"""The first metrics, every two of which are searched for disagreements."""
ORIGINAL = "original"
"""What a caption is called beside its perturbed forms."""
_PERTURBED_SHOWN = 6
"""Captions of each language that are shown with their perturbed forms."""
_MIN_CASES = 4
"""With fewer captions, none are called best or worst."""
_MIN_RANK_GAP = 0.3
"""A disagreement is a difference in normalized rank above this."""


@dataclass(frozen=True)
class Case:
    """A caption with all its scores, its mean human rating if it has one, and the reasons to show it."""

    sample: Sample
    scores: Mapping[str, float]
    human: float | None = None
    reasons: tuple[str, ...] = ()
    percentiles: Mapping[str, float] = field(default_factory=dict)
    """Metric -> the percentile among good captions of the language, where there are levels."""

    def comparable(self, metric: str) -> float:
        """What captions of several languages are ordered by."""
        return self.percentiles.get(metric, self.scores.get(metric, np.nan))


def find_cases(document: Document, paths: InputPaths) -> list[Case]:
    """The captions of a result with their scores; an `InputError` if they are missing or are not those that were scored."""
    result = document.result
    if isinstance(result, ScoreResult):
        captions = SampleFile(_captions_path(document, paths), columns=_columns(document), mark_repeats=True)
        return _score_cases(result, list(_with_inputs(captions, document, paths)), document.lang)
    if isinstance(result, Comparison):
        systems = {name: list(_with_inputs(samples, document, paths)) for name, samples in _by_system(document, paths).items()}
        return _comparison_cases(result, systems)
    if isinstance(result, AgreementResult):
        return _agreement_cases(result, _judged_samples(result, document, paths))
    if isinstance(result, RobustnessResult) and (paths.captions or document.inputs.get("captions")):
        captions = SampleFile(_captions_path(document, paths), mark_repeats=True)
        return _perturbed_cases(result, _with_inputs(captions, document, paths), document.lang)
    return []


def changes_of(result: Result, cases: Sequence[Case]) -> list[str]:
    """What has changed in the files since they were scored, in sentences."""
    if not cases:
        return []
    if isinstance(result, ScoreResult):
        samples = [replace(case.sample, lang=lang) for case, lang in zip(cases, result.langs, strict=True)]
        return [f"The {name} {_CHANGED}" for name in changes(result.content_hashes, samples)]
    if isinstance(result, Comparison):
        by_system = {system: [case.sample for case in cases if case.sample.system == system] for system in result.systems}
        return [
            f"The {name} of {system} {_CHANGED}"
            for system, samples in by_system.items()
            for name in changes(result.content_hashes.get(system, {}), samples)
        ]
    if isinstance(result, AgreementResult):
        now = captions_hash(case.sample for case in cases)
        return [f"The {CAPTIONS} {_CHANGED}"] if result.content_hashes.get(CAPTIONS, now) != now else []
    return []


def _judged_samples(result: AgreementResult, document: Document, paths: InputPaths) -> list[Sample]:
    """The captions of a benchmark, or of the file with one's own ratings."""
    if paths.captions or document.inputs.get("captions"):
        captions = SampleFile(_captions_path(document, paths), mark_repeats=True)
        return [sample for sample in _with_inputs(captions, document, paths) if not sample.invalid]
    return _benchmark_samples(result, document, paths)


def _score_cases(results: ScoreResult, samples: Sequence[Sample], lang: str = "en") -> list[Case]:
    """`samples` are those that were scored, in the same order; `lang` is the language of those that name none."""
    scored = list(zip(results.ids, results.langs, results.systems, strict=True))
    if [(sample.id, sample.lang, sample.system) for sample in samples] != scored:
        raise InputError(f"the captions are not those that were scored; pass the scored file with {option('captions', 'FILE')}.")
    # Where a language has no levels, scores are all that captions can be ordered by.
    percentiles = {
        name: levels.good
        for name, levels in results.levels.items()
        if not np.isnan(levels.good[~np.isnan(results[name].values)]).any()
    }
    return [
        Case(
            replace(sample, lang=base_language(sample.lang or lang)),
            {name: float(scores.values[row]) for name, scores in results.metrics.items()},
            float(np.mean(sample.rating_values)) if sample.ratings else None,
            percentiles={name: float(values[row]) for name, values in percentiles.items()},
        )
        for row, sample in enumerate(samples)
    ]


def _perturbed_cases(result: RobustnessResult, samples: Iterable[Sample], lang: str) -> list[Case]:
    """The first captions of each language, each followed by what became of it: perturbations are made again by their seed."""
    names = list(dict.fromkeys(effect.perturbation for effect in result.effects if effect.perturbation in PERTURBATIONS))
    protocol = check_protocol(result.protocol)
    by_language: dict[str, int] = {}
    cases = []
    for sample in samples:
        code = base_language(sample.lang or lang)
        if sample.invalid or not sample.caption or by_language.get(code, 0) >= _PERTURBED_SHOWN:
            continue
        by_language[code] = by_language.get(code, 0) + 1
        cases.append(Case(replace(sample, lang=code, system=ORIGINAL, references=()), {}))
        for name in names:
            changed = perturbed(replace(sample, lang=code), PERTURBATIONS[name], result.seed, protocol=protocol)
            if changed is not None and changed.caption != sample.caption:
                cases.append(Case(replace(changed, lang=code, system=name, references=()), {}))
    return cases[:MOST]


def _comparison_cases(comparison: Comparison, systems: Mapping[str, Sequence[Sample]]) -> list[Case]:
    cases = []
    for name in comparison.systems:
        by_key = {sample.key: sample for sample in systems.get(name, ()) if not sample.invalid}
        for row, (identifier, tag) in enumerate(zip(comparison.ids, comparison.langs, strict=True)):
            key = (identifier, None if tag is None else base_language(tag))
            if key not in by_key:
                raise InputError(
                    f"the captions of {name} are not those that were compared;"
                    f" pass the compared file with {option('captions', 'FILE')}."
                )
            scores = {metric: float(by_system[name][row]) for metric, by_system in comparison.values.items()}
            cases.append(Case(replace(by_key[key], system=name), scores))
    return cases


def _agreement_cases(results: AgreementResult, samples: Sequence[Sample]) -> list[Case]:
    by_id: dict[str, list[Sample]] = {}
    for sample in samples:
        by_id.setdefault(sample.id, []).append(sample)
    # A caption with several ratings may be several data points.
    points = [
        _rated_sample(by_id.get(identifier, []), lang, system)
        for identifier, lang, system in zip_longest(results.ids, results.langs, results.systems)
    ]
    rows_by_caption: dict[tuple[str | None, ...], list[int]] = {}
    for row, sample in enumerate(points):
        rows_by_caption.setdefault((sample.group, sample.caption, sample.lang, sample.system), []).append(row)
    return [
        Case(
            replace(points[rows[0]], lang=points[rows[0]].lang or results.lang),
            {metric: float(values[rows[0]]) for metric, values in results.scores.items()},
            None if results.human is None else float(np.nanmean(results.human[rows])),
        )
        for rows in rows_by_caption.values()
    ]


def _rated_sample(samples: Sequence[Sample], lang: str | None, system: str | None) -> Sample:
    """The sample of a data point, of those that have its id."""
    meant = [sample for sample in samples if lang in (None, sample.lang) and system in (None, sample.system)]
    if len({(sample.group, sample.caption) for sample in meant}) != 1:
        raise InputError(
            f"the captions are not those that were rated; pass them with {option('captions', 'FILE')}, or the folder of the"
            f" benchmark with {option('data', 'FOLDER')}."
        )
    return meant[0]


def _by_system(document: Document, paths: InputPaths) -> Mapping[str, Iterable[Sample]]:
    """System -> captions, from one file per system or one file of all."""
    if paths.captions:
        return samples_by_system(paths.captions)
    files = document.inputs.get("systems")
    if files:
        return {name: SampleFile(_existing_path(document, file), mark_repeats=True) for name, file in files.items()}
    return samples_by_system([_captions_path(document, paths)])


def _columns(document: Document) -> dict[str, str]:
    """Which columns were said to be which when the captions were scored."""
    named = document.inputs.get("columns")
    return parsed_columns([named]) if isinstance(named, str) else {}


def _captions_path(document: Document, paths: InputPaths) -> Path:
    if len(paths.captions) > 1:
        raise InputError(f"this result is about one file of captions, but {option('captions')} names several.")
    if paths.captions:
        return paths.captions[0]
    if not document.inputs.get("captions"):
        raise InputError(f"the result does not name the file of its captions; pass it with {option('captions', 'FILE')}.")
    return _existing_path(document, document.inputs["captions"])


def _existing_path(document: Document, name: Any) -> Path:
    path = document.folder / str(name)
    # Not a pipe or a device: a result that a stranger wrote may name any.
    if not path.is_file() and not path.is_dir():
        raise InputError(f"{path}: there is no such file or folder any more.")
    if not path.resolve().is_relative_to(document.folder.resolve()):
        logger.info(f"{path} is read, because the result names it.")
    return path


def _with_inputs(samples: Any, document: Document, paths: InputPaths) -> Iterator[Sample]:
    """The samples with references and images, where `paths` or the result names them."""
    references, images = (document.inputs.get(name) for name in ("references", "images"))
    source = paths.references or (_existing_path(document, references) if references else None)
    folder = paths.images or (_existing_path(document, images) if images else None)
    if source is not None:
        samples = read_references(source).joined(samples, document.inputs.get("lang"))
    yield from samples if folder is None else with_images(samples, folder)


def _benchmark_samples(result: AgreementResult, document: Document, paths: InputPaths) -> list[Sample]:
    data_input = document.inputs.get("data")
    data = paths.data or (_existing_path(document, data_input) if data_input else None)
    if data is None:
        raise InputError(f"the result does not name the folder of the benchmark; pass it with {option('data', 'FOLDER')}.")
    benchmark = get_benchmark(result.benchmark)
    home = benchmark.home(data)
    samples = load_checked(benchmark, home, result.protocol, result.lang).samples
    images = document.inputs.get("images")
    folder = paths.images or (_existing_path(document, images) if images else None)
    if folder is None:
        folder = next((home / name for name in benchmark.image_folders if (home / name).is_dir()), None)
    return samples if folder is None else list(with_images(samples, folder))


def choose(cases: Sequence[Case]) -> list[Case]:
    """The cases to show, with the reasons: the best, the worst, and the largest disagreements between metrics and people, two
    metrics, or systems. The others follow if there are at most `MOST` in total.
    """
    strengths = _reason_strengths(cases) if len(cases) >= _MIN_CASES else {}
    count = max(1, min(_PER_REASON, MOST // max(1, len(strengths)), len(cases) // _MIN_CASES))
    reasons_by_row: dict[int, list[str]] = {}
    for reason, strength in strengths.items():
        for row in _strongest(strength, cases, count):
            reasons_by_row.setdefault(row, []).append(reason)
    if len(cases) <= MOST:
        for row in range(len(cases)):
            reasons_by_row.setdefault(row, [])
    return [replace(cases[row], reasons=tuple(reasons)) for row, reasons in list(reasons_by_row.items())[:MOST]]


def _reason_strengths(cases: Sequence[Case]) -> dict[str, Floats]:
    """Reason to show a caption -> its strength for each case, NaN where it does not apply."""
    metrics = list(dict.fromkeys(name for case in cases for name in case.scores))
    ranks = {metric: _ranks([case.comparable(metric) for case in cases]) for metric in metrics}
    strengths: dict[str, Floats] = {f"worst by {metric}": -ranks[metric] for metric in metrics}
    if any(case.human is not None for case in cases):
        human_ranks = _ranks([np.nan if case.human is None else case.human for case in cases])
        for metric in metrics:
            strengths[f"higher by {metric} than by people"] = _rank_gap(ranks[metric], human_ranks)
            strengths[f"lower by {metric} than by people"] = _rank_gap(human_ranks, ranks[metric])
    strengths |= _system_differences(cases, metrics)
    for first, second in combinations(metrics[:_METRICS_PAIRED], 2):
        strengths[f"higher by {first} than by {second}"] = _rank_gap(ranks[first], ranks[second])
        strengths[f"higher by {second} than by {first}"] = _rank_gap(ranks[second], ranks[first])
    return strengths | {f"best by {metric}": ranks[metric] for metric in metrics}


def _rank_gap(above: Floats, below: Floats) -> Floats:
    """How much higher `above` ranks each caption than `below`; NaN where the gap is small."""
    return np.where(above - below > _MIN_RANK_GAP, above - below, np.nan)


def _ranks(values: Sequence[float]) -> Floats:
    """Ranks from 0 to 1, averaged over ties; all NaN if the values are all the same."""
    count = np.count_nonzero(~np.isnan(values))
    if count < 2 or np.nanmin(values) == np.nanmax(values):
        return np.full(len(values), np.nan)
    ranks: Floats = (rankdata(values, nan_policy="omit") - 1) / (count - 1)
    return ranks


def _strongest(strength: Floats, cases: Sequence[Case], count: int) -> list[int]:
    """The rows of the highest values, overall and in each language, without duplicates: data sets repeat captions."""
    rows: dict[object, int] = {}
    captions = Counter(case.sample.lang for case in cases)
    missing = Counter({lang: min(number, count, _PER_LANGUAGE) for lang, number in captions.items()})
    # Many captions have the lowest score that there is; which of them are shown should not depend on the order of languages.
    mixed = np.random.default_rng(0).permutation(len(strength))
    for row in mixed[np.argsort(-np.where(np.isnan(strength), -np.inf, strength)[mixed], kind="stable")]:
        sample = cases[row].sample
        key = (sample.group, sample.caption, sample.system)
        if np.isnan(strength[row]) or (len(rows) >= count and not missing):
            break
        if key not in rows and (len(rows) < count or sample.lang in missing):
            rows[key] = int(row)
            missing -= Counter([sample.lang])
    return list(rows.values())


def _system_differences(cases: Sequence[Case], metrics: Sequence[str]) -> dict[str, Floats]:
    """The range of the systems' scores for each item, the same for all its captions, so that they are shown together."""
    by_key: dict[object, list[int]] = {}
    for row, case in enumerate(cases):
        if case.sample.system is not None:
            by_key.setdefault(case.sample.key, []).append(row)
    shared_items = [rows for rows in by_key.values() if len(rows) > 1]
    differences = {}
    for metric in metrics if shared_items else ():
        score_range = np.full(len(cases), np.nan)
        for rows in shared_items:
            score_range[rows] = np.ptp([cases[row].scores[metric] for row in rows])
        differences[f"systems differ by {metric}"] = score_range
    return differences
