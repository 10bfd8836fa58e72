"""Asking people: studies of captions, and what the answers say."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

from caplens.api.metrics import Metrics, metrics_of
from caplens.comparison.systems import align_systems, score_systems
from caplens.data.inputs import Captions, ImagesInput, ReferencesInput, open_references, read_captions
from caplens.data.languages import base_language
from caplens.data.replacing import ensure_writable, replacing
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.human.settings import StudySettings
from caplens.libraries import require
from caplens.metrics.base import Metric
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.results.base import ROW_WRITERS
from caplens.results.study import StudyResult
from caplens.stats import RESAMPLES, Power, side_by_side_power

if TYPE_CHECKING:
    from caplens.human.dashboard import Overview
    from caplens.human.database import StudyDatabase
    from caplens.human.guard import Guard

_EXTRA = "human"


def _require_database() -> None:
    for library in ("sqlalchemy", "alembic"):
        require(library, "A study of people's judgements", _EXTRA)


class NewStudy(NamedTuple):
    """A study that was made. The owner's token is kept nowhere else; `left_out` says how many captions cannot be shown."""

    owner_token: str
    state: str
    items: int
    images: int
    left_out: int
    warnings: list[str]


def create_study(
    study: str | PathLike[str],
    settings: StudySettings,
    systems: Mapping[str, Iterable[Sample]],
    *,
    langs: Sequence[str] = (),
    lang: str | None = None,
    baseline: str | None = None,
) -> NewStudy:
    """Make a study of captions.

    Parameters
    ----------
    study
        The file to make, or the URL of a PostgreSQL database.
    settings
        What the study asks.
    systems
        Name -> captions with their images.
    langs
        For `write`, the languages of captions.
    lang
        The language of captions that name none.
    baseline
        For `sidebyside`, the system that each other one is compared with.

    Returns
    -------
    NewStudy
        What it has, and the token of its owner.

    Raises
    ------
    InputError
        If nothing can be shown, or there is a study already.

    Examples
    --------
    >>> made = create_study("study.db", StudySettings(), {"base": samples})  # doctest: +SKIP
    >>> made.items  # doctest: +SKIP
    """
    _require_database()
    from caplens.human.database import StudyDatabase
    from caplens.human.items import study_items

    is_file = "://" not in str(study)
    if is_file and Path(study).exists():
        raise InputError(f"{study}: this file exists already. Choose another, or remove it.")
    if is_file:
        ensure_writable(study)
    content = study_items(settings, systems, langs, lang, baseline)
    with replacing(study, new=True) if is_file else nullcontext(study) as place:
        if is_file:
            Path(place).unlink()
        try:
            database = StudyDatabase(place, create=True, name=str(study))
            token = database.fill(settings, content.paths, content.items)
            database.close()
        finally:
            for suffix in ("-wal", "-shm") if is_file else ():
                Path(f"{place}{suffix}").unlink(missing_ok=True)
        if is_file:
            # It names people.
            Path(place).chmod(0o600)
    database = StudyDatabase(study)
    warnings = list(content.warnings)
    if content.left_out:
        first = "; ".join(f"{name}: {why}" for name, why in list(content.left_out.items())[:3])
        warnings.append(f"{len(content.left_out):,} captions were left out ({first}).")
    return NewStudy(token, database.state, len(content.items), len(content.paths), len(content.left_out), warnings)


def open_study(study: str | PathLike[str]) -> "StudyDatabase":
    """The database of a study, to invite raters and to open, pause or close it."""
    _require_database()
    from caplens.human.database import StudyDatabase

    return StudyDatabase(study)


def study_server(study: str | PathLike[str], *, secure: bool = False) -> "Guard":
    """The pages of a study as an ASGI application; `secure` where it is reached by TLS only."""
    require("fastapi", "Serving a study", _EXTRA)
    from caplens.human.server import create_app

    return create_app(open_study(study), secure=secure)


def study_status(study: str | PathLike[str]) -> "Overview":
    """How far a study is, by language and rater."""
    database = open_study(study)
    from caplens.human.dashboard import overview

    return overview(database)


def export_study(
    study: str | PathLike[str], output: str | PathLike[str], *, events: bool = False, allow_formulas: bool = False
) -> int:
    """Write the answers of a study, or with `events` all that happened, and say how many rows there are.

    Parameters
    ----------
    study
        The study.
    output
        A `.jsonl`, `.csv`, `.tsv`, `.xlsx` or `.parquet` file.
    events
        Whether what happened is written instead of the answers.
    allow_formulas
        Whether text that a spreadsheet would run as a formula is written as it is, without an apostrophe before it.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    InputError
        If the file cannot be written, or its suffix is another one.
    """
    database = open_study(study)
    from caplens.data.formats.formulas import formulas_allowed
    from caplens.human.export import event_rows, exported_rows

    write = ROW_WRITERS.get(Path(output).suffix.lower())
    if write is None:
        raise InputError(f"{output}: answers are written as {', '.join(ROW_WRITERS)}.")
    rows = list(event_rows(database) if events else exported_rows(database))
    with replacing(output) as target, formulas_allowed(allow_formulas):
        write(rows, target)
    return len(rows)


def analyze_study(
    study: str | PathLike[str],
    metrics: Metrics | None = None,
    systems: Mapping[str, Captions] | None = None,
    *,
    references: ReferencesInput = None,
    images: ImagesInput = None,
    criterion: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    options: ScoringOptions | None = None,
    **keywords: Unpack[ScoringKeywords],
) -> StudyResult:
    """What people said in a study, by language, and how well metrics predict it.

    Parameters
    ----------
    study
        The study.
    metrics, systems
        Metrics whose differences are compared with those of people, and the captions of the systems by name.
    references, images, options, **keywords
        As for `score`.
    criterion
        Which one of several is analysed; the first by default.
    resamples, seed
        For intervals.

    Returns
    -------
    StudyResult
        Quality of captions, or wins and losses with strengths.

    Raises
    ------
    InputError
        If the study has no such criterion, or asks people to write captions.
    """
    database = open_study(study)
    from caplens.human.studies import analyze_answers

    scores = None
    if metrics is not None and systems is not None:
        options = ScoringOptions.of(options, **keywords)
        built = metrics_of("compare", metrics, images, options)
        opened = open_references(references) if references is not None else None
        samples = {name: list(read_captions(captions, opened, images, options.lang)) for name, captions in systems.items()}
        scores = _scores_by_language(align_systems(samples).samples, built, options.lang or "en")
    return analyze_answers(database, scores, criterion, resamples, seed)


def _scores_by_language(
    systems: Mapping[str, Sequence[Sample]], built: Sequence[Metric], lang: str
) -> dict[str, dict[tuple[str, str], float]]:
    """Metric -> (language, system) -> corpus score."""
    results, _ = score_systems(systems, built)
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for system, result in results.items():
        for metric, values in result.metrics.items():
            by_language = values.by_language or {base_language(lang): values.corpus}
            for code, value in by_language.items():
                scores.setdefault(metric, {})[code, system] = value
    return scores


def plan_study(
    study: str | PathLike[str],
    system: str,
    baseline: str,
    sizes: Iterable[tuple[int, int]],
    *,
    simulations: int = 1000,
    seed: int = 0,
) -> list[Power]:
    """How often studies of some sizes would show which of two systems is better, by the answers to a pilot.

    Parameters
    ----------
    study
        A side-by-side study with answers.
    system, baseline
        The two systems.
    sizes
        Images, and raters of each.
    simulations, seed
        How many studies are drawn, and the seed.

    Returns
    -------
    list of Power
        One for each size.

    Raises
    ------
    InputError
        If the study has no answers about the two.
    """
    database = open_study(study)
    from caplens.human.analysis import votes_of_pair
    from caplens.human.studies import judged_preferences

    votes = votes_of_pair(judged_preferences(database), system, baseline)
    if not votes.size:
        raise InputError(f"{study}: nobody has compared {system} with {baseline}; a plan needs the answers to a pilot.")
    return [side_by_side_power(votes, images, raters, simulations, seed) for images, raters in sizes]


def forget_rater(study: str | PathLike[str], name: str) -> None:
    """Delete all that a rater did, and who they are."""
    database = open_study(study)
    from caplens.human.dashboard import forget_rater as forget

    forget(database, name)
