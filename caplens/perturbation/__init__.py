"""Perturbations that make captions worse (PR-MCS, Kim et al. 2023), and how metrics respond to them."""

from caplens.perturbation.base import PROTOCOLS, Perturbation, Protocol, check_protocol
from caplens.perturbation.jumble import Jumble
from caplens.perturbation.masking import Masking
from caplens.perturbation.registry import PERTURBATIONS, get_perturbation, get_perturbations
from caplens.perturbation.removal import Removal
from caplens.perturbation.repetition import Repetition
from caplens.perturbation.robustness import measure_robustness, perturbed
from caplens.perturbation.substitution import Substitution

__all__ = [
    "PERTURBATIONS",
    "PROTOCOLS",
    "Jumble",
    "Masking",
    "Perturbation",
    "Protocol",
    "Removal",
    "Repetition",
    "Substitution",
    "check_protocol",
    "get_perturbation",
    "get_perturbations",
    "measure_robustness",
    "perturbed",
]
