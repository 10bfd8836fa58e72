"""The section about captions that are bad: cards with reasons, worst first."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from caplens.data.sample import Sample
from caplens.report.cases import Case
from caplens.report.documents import Document, InputPaths
from caplens.report.sections.section import Section, distribution_plot
from caplens.results.check import CheckedCaption, CheckResult, Verdict
from caplens.results.table import Cell, Table

MOST_CARDS = 300


@dataclass(frozen=True)
class CheckCard:
    """A caption with what is wrong with it, and what the page shows of its image."""

    checked: CheckedCaption
    sample: Sample


def check_section(document: Document, result: CheckResult, cases: list[Case]) -> Section:
    """The section about one file of captions that was checked."""
    counts = result.counts()
    section = Section(
        document.name,
        "captions to fix",
        {
            "captions": f"{len(result.captions):,}",
            **{_COUNTS[verdict]: f"{counts[verdict]:,}" for verdict in Verdict},
            "languages": ", ".join(sorted({caption.lang for caption in result if caption.lang})),
        },
        [result.signature] if result.signature else [],
        result.warnings,
    )
    section.tables = [_kinds_table(result), *_languages_table(result)]
    if result.signature:
        good = np.array([caption.good for caption in result])
        langs = [caption.lang or "" for caption in result]
        section.plots.append(distribution_plot({"percentile among good captions": good}, langs, "language"))
    marked = [caption for caption in result if caption.faults]
    section.checked = [CheckCard(caption, _sample(caption)) for caption in marked[:MOST_CARDS]]
    section.not_shown = len(marked) - len(section.checked)
    return section


_COUNTS = {Verdict.fix: "to fix", Verdict.look: "to look at", Verdict.fine: "fine"}


def with_images_of(result: CheckResult, document: Document, paths: InputPaths) -> CheckResult:
    """A result that was read from a file, with the places of its images where the folder is named."""
    named = document.inputs.get("images")
    folder = paths.images or (document.folder / str(named) if named else None)
    if folder is None or any(caption.path for caption in result):
        return result
    return replace(result, captions=[_located(caption, folder) for caption in result])


def _located(caption: CheckedCaption, folder: Path) -> CheckedCaption:
    """Only images inside the folder are opened: anybody may have written the result."""
    if caption.image is None:
        return caption
    path = (folder / caption.image).resolve()
    return replace(caption, path=str(path)) if path.is_relative_to(folder.resolve()) else caption


def _sample(caption: CheckedCaption) -> Sample:
    return Sample(caption.id, caption.caption, image=caption.path, lang=caption.lang, system=caption.system)


def _kinds_table(result: CheckResult) -> Table:
    by_kind: dict[str, Counter[Verdict]] = {}
    for (kind, verdict), count in result.faults().most_common():
        by_kind.setdefault(kind, Counter())[verdict] += count
    rows: list[list[Cell]] = [[kind, counts[Verdict.fix], counts[Verdict.look]] for kind, counts in by_kind.items()]
    return Table(["fault", "to fix", "to look at"], rows, "What is wrong")


def _languages_table(result: CheckResult) -> list[Table]:
    by_language: dict[str, Counter[Verdict]] = {}
    for caption in result:
        by_language.setdefault(caption.lang or "", Counter())[caption.verdict] += 1
    if len(by_language) < 2:
        return []
    rows: list[list[Cell]] = [
        [lang, counts.total(), counts[Verdict.fix], counts[Verdict.look]] for lang, counts in sorted(by_language.items())
    ]
    return [Table(["language", "captions", "to fix", "to look at"], rows, "By language")]
