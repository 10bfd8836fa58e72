"""The errors that caplens raises for people: each message says what is wrong, where, and what to do."""


class CaplensError(Exception):
    """Something the user can mend. The command prints the message and exits with status 2."""


class InputError(CaplensError):
    """A file or value that was handed in cannot be used."""


class MissingExtraError(CaplensError):
    """A feature needs an optional package or program that is not installed."""

    def __init__(self, feature: str, needs: str, install: str) -> None:
        super().__init__(f"{feature} needs {needs}, which is not installed. Install it with: {install}")


def reason(error: BaseException) -> str:
    """What an error of another library says, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines and not lines[0].endswith(":") else " ".join(lines[:2]) or type(error).__name__
