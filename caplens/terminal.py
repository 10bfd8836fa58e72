"""Text from files as a terminal may get it: what would move the cursor, change colours or hide text is shown as an escape."""

import re
import sys
from contextlib import suppress

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb]")
"""Control characters but for tab and line feed, marks that reverse the direction of text, and halves of characters."""


def visible(text: str) -> str:
    """Text in which no character is an order to the terminal.

    Examples
    --------
    >>> visible("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def say(message: str) -> None:
    """A line on standard error; where that cannot be written, there is nowhere left to say it."""
    with suppress(OSError):
        print(visible(message), file=sys.stderr)


def in_one_line(text: str) -> str:
    """The same for a cell of a table: line feeds and tabs are shown as escapes too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")
