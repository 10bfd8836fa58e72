"""Captioning systems side by side, in one language or in many."""

from caplens.comparison.languages import correlate_languages, read_quality
from caplens.comparison.systems import align_systems, compare_systems, score_systems

__all__ = ["align_systems", "compare_systems", "correlate_languages", "read_quality", "score_systems"]
