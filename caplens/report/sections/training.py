"""The section about a training run."""

import numpy as np

from caplens.report import plots
from caplens.report.cases import Case
from caplens.report.documents import Document
from caplens.report.sections.section import Plot, Section
from caplens.results.training_log import TrainingLog


def training_section(document: Document, log: TrainingLog, cases: list[Case]) -> Section:
    """The section about the losses and validation scores of a run."""
    section = Section(
        document.name,
        "training",
        {
            "stages": ", ".join(log.stages),
            "steps": f"{sum(int(stage[-1]['step']) for stage in log.stages.values()):,}",
            "minutes": f"{sum(stage[-1].get('seconds', 0.0) for stage in log.stages.values()) / 60:.1f}",
        },
        tables=log.tables(),
    )
    for measure in log.measures:
        curves = {}
        for stage, lines in log.stages.items():
            points = [(line["step"], line[measure]) for line in lines if measure in line]
            if points:
                steps, values = np.array(points).T
                curves[stage] = (steps, values)
        section.plots.append(Plot(measure.capitalize(), plots.curves(curves, measure)))
    return section
