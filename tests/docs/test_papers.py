"""docs/papers.md has every table and figure of the four papers, commands that parse, and numbers that stand in a golden file."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from caplens.cli.main import build_app

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
ITEMS = {
    "PAC-S (Sarto et al. 2023)": (11, 8),
    "Multilingual CLIPScore": (7, 3),
    "PR-MCS": (11, 15),
    "Crossmodal-3600": (6, 4),
}
"""Paper -> how many tables and figures it has."""
STATUS = {"reproduced", "runs", "not done"}
NUMBER = re.compile(r"-?\d*\.\d+")
COMMAND = re.compile(r"`(caplens [^`]+)`")


def rows():
    """(paper, cells) of each row."""
    paper = None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            paper = line.removeprefix("## ")
        elif paper in ITEMS and line.startswith("| ") and not line.startswith("| item"):
            yield paper, [cell.strip() for cell in line.strip("|").split("|")]


def test_no_table_or_figure_is_missing():
    for paper, (tables, figures) in ITEMS.items():
        found = {cells[0] for name, cells in rows() if name == paper}
        assert found == {f"table {n + 1}" for n in range(tables)} | {f"figure {n + 1}" for n in range(figures)}, paper


def test_every_row_says_how_it_stands():
    for _, (item, _, status, _, ours, command) in rows():
        assert status in STATUS, item
        assert command, item
        assert not ours or status == "reproduced", item


def test_every_number_stands_in_the_golden_file(golden):
    known = golden("papers")["rows"]
    found = [
        {"paper": paper, "item": cells[0], "published": numbers(cells[3]), "ours": numbers(cells[4])}
        for paper, cells in rows()
        if numbers(cells[3]) or numbers(cells[4])
    ]
    assert found == known


def numbers(cell):
    return [float(text) for text in NUMBER.findall(cell)]


@pytest.mark.parametrize("command", sorted({text for _, cells in rows() for text in COMMAND.findall(cells[5])}))
def test_every_command_parses(command):
    group = typer.main.get_command(build_app())
    arguments = shlex.split(command)[1:]
    context = group.make_context("caplens", arguments)
    while hasattr(group, "resolve_command"):
        name, group, arguments = group.resolve_command(context, [*context._protected_args, *context.args])
        context = group.make_context(name, list(arguments), parent=context)
    assert not context.args
