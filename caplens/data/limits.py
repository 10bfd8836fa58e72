"""Limits on what is read at once, which environment variables can change."""

import os

from caplens.errors import InputError

_MOST_DIGITS = 9


def megabytes_in(variable: str, default: int) -> int:
    """The bytes of an environment variable that holds megabytes, or of the default."""
    value = os.environ.get(variable) or str(default)
    if not (value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS and int(value) > 0):
        raise InputError(f"{variable}={value[:40]}: a whole number of megabytes is expected.")
    return int(value) << 20
