"""What scores mean, and which captions are bad: levels of chance and of good captions, percentiles, and reasons."""

from caplens.calibration.applying import CalibrationChoice, add_levels, built_in_calibration, open_calibration
from caplens.calibration.levels import measure_levels, with_rating_bounds

__all__ = [
    "CalibrationChoice",
    "add_levels",
    "built_in_calibration",
    "measure_levels",
    "open_calibration",
    "with_rating_bounds",
]
