"""SPICE 1.0 (Anderson et al. 2016) through its Java program, as the COCO caption evaluation runs it."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout

import numpy as np

from caplens.arrays import Floats
from caplens.errors import CaplensError
from caplens.metrics.java import JavaMetric


class Spice(JavaMetric):
    name = "spice"
    version = "1.0"

    def prepare(self) -> None:
        from pycocoevalcap.spice.get_stanford_models import get_stanford_models

        with _failures_explained():
            get_stanford_models()

    def score_texts(self, candidates: Sequence[str], references: Sequence[list[str]]) -> tuple[float, Floats]:
        from pycocoevalcap.spice.spice import Spice as Program

        with _failures_explained():
            corpus, scores = Program().compute_score(
                dict(enumerate(references)), {row: [text] for row, text in enumerate(candidates)}
            )
        return float(corpus), np.array([entry["All"]["f"] for entry in scores])


@contextmanager
def _failures_explained() -> Iterator[None]:
    """What goes wrong becomes one sentence, and what pycocoevalcap prints goes to the error stream."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise CaplensError(
            f"SPICE could not run ({error}). On first use pycocoevalcap downloads the Stanford CoreNLP 3.6.0 models (about"
            " 400 MB) into its folder spice/lib; without a connection, copy stanford-corenlp-3.6.0.jar and"
            " stanford-corenlp-3.6.0-models.jar there. SPICE runs on Java 8 or 11."
        ) from error
