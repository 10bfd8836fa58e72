"""Names of caplens 0.1 that still work for one version, with a warning that says what to use."""

from collections.abc import Sequence

from caplens.progress import logger

COMMANDS = {("df",): ("count-df",), ("train", "teacher"): ("train", "distill")}
OPTIONS = {
    "--long": "--overlong",
    "--kind": "--perturbation",
    "--items": "--export-items",
    "--quality": "--translation-quality",
}
_WITH_OPTION = {
    "--long": ("score", "compare", "bench", "crossmodal", "robustness"),
    "--kind": ("perturb", "robustness"),
    "--items": ("bench",),
    "--quality": ("bench",),
}
"""The commands that had each option."""
_VALUES = {("--overlong", "cut"): "truncate"}


def modern_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command line with old names replaced."""
    modern = list(arguments)
    for old, new in COMMANDS.items():
        if tuple(modern[: len(old)]) == old:
            modern[: len(old)] = new
            _warn(f"caplens {' '.join(old)}", f"caplens {' '.join(new)}")
    command = modern[0] if modern else ""
    end = modern.index("--") if "--" in modern else len(modern)
    for place in range(1, end):
        name, equals, value = modern[place].partition("=")
        if name in OPTIONS and command in _WITH_OPTION[name]:
            if equals:
                modern[place] = "=".join(_modern_option(name, value))
            else:
                modern[place : place + 2] = _modern_option(name, *modern[place + 1 : min(place + 2, end)])
    return modern


def _modern_option(name: str, value: str = "") -> list[str]:
    """The new name of an option, and of its value if it has one."""
    new_name = OPTIONS[name]
    new_value = _VALUES.get((new_name, value), value)
    old, new = (f"{name} {value}", f"{new_name} {new_value}") if new_value != value else (name, new_name)
    _warn(old, new)
    return [new_name, new_value] if value else [new_name]


def _warn(old: str, new: str) -> None:
    logger.warning(f"{old!r} is the old name of {new!r} and will stop working in the next version; use {new!r}.")
