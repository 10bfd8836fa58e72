"""The perturbations by name."""

from collections.abc import Sequence

from caplens.errors import InputError
from caplens.perturbation.base import Perturbation
from caplens.perturbation.jumble import Jumble
from caplens.perturbation.masking import Masking
from caplens.perturbation.removal import Removal
from caplens.perturbation.repetition import Repetition
from caplens.perturbation.substitution import Substitution

PERTURBATIONS: dict[str, Perturbation] = {
    perturbation.name: perturbation for perturbation in (Repetition(), Removal(), Masking(), Jumble(), Substitution())
}


def get_perturbation(name: str) -> Perturbation:
    try:
        return PERTURBATIONS[name]
    except KeyError:
        raise InputError(f"unknown perturbation {name!r}; choose from: {', '.join(PERTURBATIONS)}, or all.") from None


def get_perturbations(names: Sequence[str]) -> list[Perturbation]:
    """Those of the names; `all` is all of them."""
    wanted = [name for given in names for name in (PERTURBATIONS if given == "all" else [given])]
    return [get_perturbation(name) for name in dict.fromkeys(wanted)]
