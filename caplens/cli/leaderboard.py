"""`caplens leaderboard`: results of benchmarks as one static page, to which others can add theirs."""

import os
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.benchmarks.leaderboard import build_leaderboard, complete_leaderboard, merge_leaderboards, results_of
from caplens.cli.command import command
from caplens.cli.output import info
from caplens.data.replacing import ensure_apart, ensure_writable
from caplens.data.temporary import temporary_folder
from caplens.errors import InputError
from caplens.results.leaderboard import Leaderboard
from caplens.results.loading import load_results

EXAMPLES_ADD = """
caplens bench all --data data --images photos -m clipscore,my_package:my_metric -o mine.json
caplens leaderboard add mine.json --to contributions --name "Our group" --against clipscore
"""
EXAMPLES_BUILD = """
caplens leaderboard build all.json -o site --against clipscore
caplens leaderboard build contributions -o site
"""
Against = Annotated[str | None, typer.Option(help="The metric that others are tested against, such as clipscore.")]


def add(
    result: Annotated[Path, typer.Argument(help="JSON that 'caplens bench' wrote.")],
    to: Annotated[Path, typer.Option(help="The folder of contributions.")],
    name: Annotated[str, typer.Option(help="Who computed the values; shown beside the metrics.")],
    against: Against = None,
) -> dict[str, Any]:
    """Add the results of a run to a folder of contributions: one JSON file with each value, its interval and its signature."""
    if not name.strip():
        raise InputError("a contribution needs the name of who made it (--name).")
    board = build_leaderboard(results_of(load_results(result), str(result)), against, name.strip())
    computed = [entry for entry in board.entries if not entry.published]
    target = to / f"{_file_name(name)}.json"
    if target.exists():
        raise InputError(f"{target}: there is a contribution of this name already. Remove the file, or choose another name.")
    to.mkdir(parents=True, exist_ok=True)
    Leaderboard(computed, board.ceilings, {}, against).save(target)
    info(f"{len(computed)} values written to {target}")
    return {"written": str(target), "values": len(computed)}


def build(
    inputs: Annotated[
        list[Path], typer.Argument(help="Folders of contributions, their files, or JSON that 'caplens bench' wrote.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the page; it is made.")],
    against: Against = None,
    title: Annotated[str, typer.Option(help="The title of the page.")] = "Metrics of captions, and how they agree with people",
) -> dict[str, Any]:
    """Make a static page of all results, beside every published value with its source.

    The folder gets index.html, which needs nothing else, and the values as leaderboard.json and leaderboard.csv.
    """
    files = [file for path in inputs for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    if not files:
        raise InputError(f"{inputs[0]}: there is no JSON file in this folder. Put results there with 'caplens leaderboard add'.")
    written = {name: output / name for name in ("index.html", "leaderboard.json", "leaderboard.csv")}
    if any(path.is_dir() and path.resolve() == output.resolve() for path in inputs):
        raise InputError(f"{output}: this is the folder of contributions. Write the page into another one.")
    for path in written.values():
        ensure_apart(path, *files)
    board = complete_leaderboard(merge_leaderboards((str(file), _read(file, against)) for file in files))
    from caplens.report.leaderboard_page import write_leaderboard

    output.mkdir(parents=True, exist_ok=True)
    for path in written.values():
        ensure_writable(path)
    # All are complete before the first takes the place of an old one.
    complete = temporary_folder(output, "leaderboard")
    try:
        write_leaderboard(board, complete / "index.html", title)
        board.save(complete / "leaderboard.json")
        board.save(complete / "leaderboard.csv")
        for name, path in written.items():
            os.replace(complete / name, path)
    finally:
        shutil.rmtree(complete, ignore_errors=True)
    info(f"written to {output}")
    return {"written": [str(path) for path in written.values()], "values": len(board.entries)}


def _read(path: Path, against: str | None) -> Leaderboard:
    """The computed values of a file."""
    result = load_results(path)
    if isinstance(result, Leaderboard):
        return result
    return build_leaderboard(results_of(result, str(path)), against)


def _file_name(name: str) -> str:
    """The name in letters that every file system takes."""
    kept = "".join(letter if letter.isalnum() else "-" for letter in name.lower())
    return "-".join(part for part in kept.split("-") if part)[:80] or "contribution"


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Metrics by benchmarks, as one page.")
    command(group, examples=EXAMPLES_ADD)(add)
    command(group, examples=EXAMPLES_BUILD)(build)
    app.add_typer(group, name="leaderboard")
