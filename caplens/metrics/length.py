"""Caption length in tokens: the baseline that any score should beat."""

from typing import ClassVar

import numpy as np

from caplens.metrics.base import Floats, mean_statistics
from caplens.metrics.lexical import LexicalMetric
from caplens.text.corpus import Entries


class Length(LexicalMetric):
    name = "length"
    requires: ClassVar[frozenset[str]] = frozenset({"caption"})

    def score_entries(self, entries: Entries) -> tuple[Floats, Floats]:
        values = entries.candidates.lengths.astype(np.float64)
        return values, mean_statistics(values)

    def choices(self) -> tuple[str, dict[str, object]]:
        return "length", {}
