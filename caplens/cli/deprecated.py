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
            _warn(name, OPTIONS[name])
            name = OPTIONS[name]
            modern[place] = f"{name}{equals}{_VALUES.get((name, value), value)}"
            if not equals and place + 1 < end:
                modern[place + 1] = _VALUES.get((name, modern[place + 1]), modern[place + 1])
    return modern


def _warn(old: str, new: str) -> None:
    logger.warning(f"{old!r} is the old name of {new!r} and will stop working in the next version; use {new!r}.")
