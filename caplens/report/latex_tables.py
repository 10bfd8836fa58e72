"""Tables as LaTeX, which compiles by itself and can be put into a paper as it is."""

import re
from collections.abc import Sequence

from caplens.results.table import REPRODUCE, Table
from caplens.terminal import in_one_line

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "−": "$-$",
    "–": "--",
    "†": r"$^{\dagger}$",
    "‡": r"$^{\ddagger}$",
}
_NOT_LATIN = re.compile(r"[^\x20-\x7e\u00a0-\u017f‘’“”…]")
"""What pdflatex has no letters for."""
_HEAD = r"""% \input this file in a paper that loads booktabs and graphicx, or compile it by itself.
\expandafter\ifx\csname @twoclasseserror\endcsname\documentclass
  \def\caplensend{}
\else
  \documentclass{article}
  \usepackage{booktabs,graphicx}
  \begin{document}
  \def\caplensend{\end{document}}
\fi
"""
_TABLE = r"""\begin{table}[tb]
\centering
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%%
%s}
\caption{%s}
\label{tab:%s}
\end{table}
"""
_TAIL = "\\caplensend\n"


def latex(table: Table) -> str:
    """Format a table as a LaTeX `tabular`, with title and notes as comments.

    Parameters
    ----------
    table
        The table; numbers are rounded to `table.digits`.

    Returns
    -------
    str
        A `tabular` with the rules of the booktabs package, ending in a newline.
    """
    alignment = "".join("r" if _is_right(table, column) else "l" for column in range(len(table.columns)))
    body = [
        " & ".join(_cell(table.shown(cell), bold=(row, column) in table.bold) for column, cell in enumerate(cells)) + r" \\"
        for row, cells in enumerate(table.rows)
    ]
    heading = " & ".join(_cell(table.shown(column)) for column in table.columns) + r" \\"
    notes = [f"% {in_one_line(note)}" for note in (table.title, *table.notes) if note]
    begin, end = rf"\begin{{tabular}}{{{alignment}}}", r"\end{tabular}"
    return "\n".join([*notes, begin, r"\toprule", heading, r"\midrule", *body, r"\bottomrule", end]) + "\n"


def latex_document(tables: Sequence[Table], label: str = "caplens") -> str:
    r"""Tables as LaTeX that pdflatex compiles by itself, and that `\input` puts into a paper.

    Parameters
    ----------
    tables
        The tables. Each floats and is no wider than the text; its caption is its title and notes, and the lines that reproduce it
        are comments.
    label
        What `\ref{tab:LABEL}` refers to; further tables have their number behind it.

    Returns
    -------
    str
        The text of a file.
    """
    bare = re.sub(r"[^A-Za-z0-9-]+", "-", label).strip("-") or "caplens"
    labels = [bare, *(f"{bare}-{number}" for number in range(2, len(tables) + 1))]
    floats = (_TABLE % (latex(table), _caption(table), name) for table, name in zip(tables, labels, strict=False))
    return _HEAD + "".join(floats) + _TAIL


def _caption(table: Table) -> str:
    notes = table.notes[: table.notes.index(REPRODUCE)] if REPRODUCE in table.notes else table.notes
    return _cell(" ".join(([f"{table.title}."] if table.title else []) + [in_one_line(note) for note in notes]))


def _is_right(table: Table, column: int) -> bool:
    """Numbers stand at the right, also those with a mark beside them."""
    return table.is_number(column) or (column > 0 and any(place == column for _, place in table.bold))


def _cell(text: str, *, bold: bool = False) -> str:
    escaped = "".join(_SPECIAL.get(character) or _NOT_LATIN.sub("?", character) for character in text)
    return rf"\textbf{{{escaped}}}" if bold else escaped
