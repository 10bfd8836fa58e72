"""The section about perturbed captions."""

from caplens.report.cases import Case
from caplens.report.documents import Document
from caplens.report.sections.section import Section, language_heatmap, without_notes
from caplens.results.robustness import ALL, RobustnessResult
from caplens.results.table import LEVEL

_MEASURES = (
    ("drop in percent", "drop", "Of the mean score, as PR-MCS reports it: the lower, the more is noticed."),
    ("noticed, of 100", "accuracy", "How often a caption scores higher than its perturbed form; 50 is chance."),
)


def robustness_section(document: Document, results: RobustnessResult, cases: list[Case]) -> Section:
    """The section about the effect of perturbations on scores."""
    skipped = sum(results.skipped.values())
    section = Section(
        document.name,
        "robustness",
        {
            "captions": f"{max((effect.captions for effect in results.effects if effect.perturbation != ALL), default=0):,}",
            "cannot be perturbed": f"{skipped:,}",
            "not scored": f"{results.failed:,}",
        },
        list(results.signatures.values()),
        results.warnings,
    )
    section.tables = [without_notes(results.effects_table(), "Drop and share noticed")]
    for metric in dict.fromkeys(effect.metric for effect in results.effects):
        effects = [effect for effect in results.effects if effect.metric == metric]
        perturbations = list(dict.fromkeys(effect.perturbation for effect in effects))
        langs = list(dict.fromkeys(effect.lang for effect in effects))
        for title, name, about in _MEASURES:
            cells = {
                (effect.lang, effect.perturbation): [getattr(effect, name + end) for end in ("", "_low", "_high")]
                for effect in effects
            }
            about = f"{about} In brackets {LEVEL} intervals by bootstrap over images."
            section.plots.append(
                language_heatmap(
                    f"{metric}: {title}",
                    about,
                    langs,
                    perturbations,
                    cells,
                    digits=1,
                    lower=name == "drop",
                    diverging=name == "drop",
                    names={ALL: "mean"},
                )
            )
    return section
