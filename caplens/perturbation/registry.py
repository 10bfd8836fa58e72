"""The registry of perturbations."""

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
    """Look up a perturbation by name.

    Parameters
    ----------
    name
        A key of `PERTURBATIONS`.

    Returns
    -------
    Perturbation
        Call it with a caption to get the perturbed caption.

    Raises
    ------
    InputError
        If the name is unknown.

    Examples
    --------
    >>> get_perturbation("repetition")("dog", protocol="gentle")
    'dog dog'
    """
    try:
        return PERTURBATIONS[name]
    except KeyError:
        raise InputError(f"unknown perturbation {name!r}; choose from: {', '.join(PERTURBATIONS)}, or all.") from None


def get_perturbations(names: Sequence[str]) -> list[Perturbation]:
    """Look up several perturbations.

    Parameters
    ----------
    names
        Keys of `PERTURBATIONS`, or `all`.

    Returns
    -------
    list of Perturbation
        In the order of the names, each once.

    Raises
    ------
    InputError
        If a name is unknown.
    """
    expanded = [key for name in names for key in (PERTURBATIONS if name == "all" else [name])]
    return [get_perturbation(key) for key in dict.fromkeys(expanded)]
