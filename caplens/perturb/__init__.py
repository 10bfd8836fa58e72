"""Captions made worse on purpose (PR-MCS), and how much a score notices."""

from caplens.perturb.base import Perturbation
from caplens.perturb.jumble import Jumble
from caplens.perturb.masking import Masking
from caplens.perturb.registry import PERTURBATIONS, get_perturbation, get_perturbations
from caplens.perturb.removal import Removal
from caplens.perturb.repetition import Repetition
from caplens.perturb.robustness import Noticed, Robustness, measure_robustness, perturbed
from caplens.perturb.substitution import Substitution

__all__ = [
    "PERTURBATIONS",
    "Jumble",
    "Masking",
    "Noticed",
    "Perturbation",
    "Removal",
    "Repetition",
    "Robustness",
    "Substitution",
    "get_perturbation",
    "get_perturbations",
    "measure_robustness",
    "perturbed",
]
