"""Correlation, confidence intervals, significance tests and rater agreement: arrays in, numbers out."""

from caplens.stats.agreement import fleiss_kappa, interval_alpha, krippendorff_alpha
from caplens.stats.correlation import COEFFICIENTS, PEARSON, SPEARMAN, TAU_B, TAU_C, Coefficient, get_coefficient
from caplens.stats.pairwise import PairwiseAccuracy, pairwise_accuracy, tie_calibrated_accuracy
from caplens.stats.preferences import (
    Power,
    Strength,
    bradley_terry,
    bradley_terry_strengths,
    majority,
    side_by_side_power,
    sign_test,
)
from caplens.stats.resampling import RESAMPLES, bootstrap, bootstrap_pooled, interval
from caplens.stats.sign_flips import SystemPair, exchange_systems, smallest_p
from caplens.stats.significance import (
    CORRECTION,
    Difference,
    benjamini_hochberg,
    bonferroni,
    bootstrap_metrics,
    bootstrap_systems,
    bootstrapped_difference,
    get_correction,
    holm,
    permute_metrics,
    permute_systems,
    williams,
)
from caplens.stats.systems import input_level, soft_pairwise_accuracy, system_level

__all__ = [
    "COEFFICIENTS",
    "CORRECTION",
    "PEARSON",
    "RESAMPLES",
    "SPEARMAN",
    "TAU_B",
    "TAU_C",
    "Coefficient",
    "Difference",
    "PairwiseAccuracy",
    "Power",
    "Strength",
    "SystemPair",
    "benjamini_hochberg",
    "bonferroni",
    "bootstrap",
    "bootstrap_metrics",
    "bootstrap_pooled",
    "bootstrap_systems",
    "bootstrapped_difference",
    "bradley_terry",
    "bradley_terry_strengths",
    "exchange_systems",
    "fleiss_kappa",
    "get_coefficient",
    "get_correction",
    "holm",
    "input_level",
    "interval",
    "interval_alpha",
    "krippendorff_alpha",
    "majority",
    "pairwise_accuracy",
    "permute_metrics",
    "permute_systems",
    "side_by_side_power",
    "sign_test",
    "smallest_p",
    "soft_pairwise_accuracy",
    "system_level",
    "tie_calibrated_accuracy",
    "williams",
]
