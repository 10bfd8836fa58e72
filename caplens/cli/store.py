"""`caplens store`: the vectors that are kept between runs."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from caplens.cli.command import command
from caplens.cli.options import FormatOptions, OutputOptions
from caplens.cli.output import write_tables
from caplens.embed import Store, default_store
from caplens.embed.store import ModelVectorsInfo
from caplens.embed.vector_shards import export_vectors, import_vectors
from caplens.errors import InputError
from caplens.results.table import Cell, Table

_DAY = 86_400
_GB = 1e9
_SHORT = 8
_DAMAGED, _UNOPENED = "(damaged)", "(not opened)"

Folder = Annotated[Path | None, typer.Option("--store", help="The store. \\[default: the one in the user's cache]")]


def _store(folder: Path | None) -> Store:
    if folder is not None and not folder.is_dir():
        raise InputError(f"{folder}: there is no such store.")
    return default_store() if folder is None else Store(folder)


def show(output: OutputOptions, store: Folder = None) -> None:
    """Show what is kept: for each model how many vectors, how large, and when they were last used."""
    form = output.checked()
    kept = _store(store)
    models = kept.models()
    rows: list[list[Cell]] = [
        [
            about.model or (_UNOPENED if about.unopened else _DAMAGED),
            about.fingerprint[:_SHORT],
            about.vectors,
            about.bytes / 1e6,
            _shown_time(about.used),
        ]
        for about in models
    ]
    table = Table(["model", "fingerprint", "vectors", "MB", "last used"], rows, notes=[f"In {kept.folder}"], digits=1)
    document = {"store": str(kept.folder), "models": [about._asdict() | {"path": str(about.path)} for about in models]}
    write_tables([table], output.output, form, lambda: document)


class PruneRule(NamedTuple):
    """Which models' vectors are removed."""

    model: str | None
    """A name, or the start of a fingerprint."""
    older_than: float | None
    """Days since the last use."""
    max_size: float | None
    """GB that are kept, last used models first."""
    everything: bool

    def choose(self, models: Iterable[ModelVectorsInfo]) -> Iterator[ModelVectorsInfo]:
        size = 0
        for about in models:
            size += about.bytes
            if self._is_named(about) or self._is_old(about) or (self.max_size is not None and size > self.max_size * _GB):
                size -= about.bytes
                yield about

    def _is_named(self, about: ModelVectorsInfo) -> bool:
        named = self.model is not None and (about.model == self.model or about.fingerprint.startswith(self.model))
        return self.everything or named

    def _is_old(self, about: ModelVectorsInfo) -> bool:
        return self.older_than is not None and time.time() - about.used > self.older_than * _DAY


def prune(
    shown: FormatOptions,
    store: Folder = None,
    model: Annotated[
        str | None, typer.Option(help="Remove the vectors of this model: its name or the start of its fingerprint.")
    ] = None,
    older_than: Annotated[float | None, typer.Option(min=0, help="Remove those of models not used for this many days.")] = None,
    max_size: Annotated[float | None, typer.Option(min=0, help="Keep at most this many GB, last used models first.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
) -> None:
    """Remove vectors that are no longer wanted; they are made again when needed."""
    if model is None and older_than is None and max_size is None and not everything:
        raise InputError("choose what to remove: --model, --older-than, --max-size or --all.")
    if model is not None and len(model) < _SHORT:
        raise InputError(f"give a model's name, or at least {_SHORT} characters of its fingerprint; --all removes all.")
    kept = _store(store)
    rule = PruneRule(model, older_than, max_size, everything)
    # What could not be opened may be in order, or none of ours.
    removed = list(rule.choose(about for about in kept.models() if about.unopened is None))
    if not dry_run:
        for about in removed:
            kept.remove(about)
    rows: list[list[Cell]] = [[_name(about), about.vectors, about.bytes / 1e6] for about in removed]
    notes = ["nothing to remove" if not removed else "these would be removed" if dry_run else "these were removed"]
    done = {"removed": [about._asdict() | {"path": str(about.path)} for about in removed], "dry_run": dry_run}
    table = Table(["model", "vectors", "MB"], rows, notes=notes, digits=1)
    write_tables([table], None, shown.checked(), lambda: done)


def verify(shown: FormatOptions, store: Folder = None) -> None:
    """Check every vector, and remove those that are damaged; they are made again when needed.

    The exit status is 3 when any is.
    """
    kept = _store(store)
    checked = list(kept.verify())
    rows: list[list[Cell]] = [
        [_name(about), count, about.unopened or ("the whole file" if broken < 0 else broken)] for about, count, broken in checked
    ]
    damaged = any(broken for *_, broken in checked)
    unopened = [about for about, *_ in checked if about.unopened]
    notes = [
        f"nothing is kept in {kept.folder}" if not checked else "what was damaged was removed" if damaged else "no damage found"
    ]
    done = {
        "checked": [
            {"model": about.model, "vectors": count, "damaged": broken} | ({"unopened": about.unopened} if about.unopened else {})
            for about, count, broken in checked
        ]
    }
    if unopened:
        notes.append(f"{len(unopened)} could not be opened, and stay as they are")
    table = Table(["model", "vectors", "damaged"], rows, notes=notes)
    write_tables([table], None, shown.checked(), lambda: done)
    if damaged or unopened:
        raise typer.Exit(3)


def export(
    shown: FormatOptions,
    folder: Annotated[Path, typer.Argument(help="The folder to write into; each model gets one of its own.")],
    store: Folder = None,
    model: Annotated[str | None, typer.Option(help="Only of this model: its name or the start of its fingerprint.")] = None,
) -> None:
    """Write vectors as Parquet, to carry them to another machine or to a network disk, where SQLite does not work.

    What the folder has already is kept beside them. The exit status is 3 when any vector is damaged.
    """
    kept = _store(store)
    rule = PruneRule(model, None, None, model is None)
    chosen = list(rule.choose(about for about in kept.models() if about.unopened is None and about.model is not None))
    if not chosen:
        raise InputError(f"{kept.folder}: there are no vectors{'' if model is None else f' of {model!r}'}.")
    written = {_name(about): export_vectors(kept, about, folder) for about in chosen}
    rows: list[list[Cell]] = [[name, count] for name, count in written.items()]
    damaged = sum(about.vectors for about in chosen) - sum(written.values())
    notes = [f"Written to {folder}, beside what was there"]
    if damaged:
        notes.append(f"{damaged:,} damaged ones were left out; 'caplens store verify' removes them")
    write_tables([Table(["model", "vectors"], rows, notes=notes)], None, shown.checked(), lambda: written)
    if damaged:
        raise typer.Exit(3)


def import_(
    shown: FormatOptions,
    folder: Annotated[Path, typer.Argument(help="A folder that 'store export' wrote into.")],
    store: Folder = None,
) -> None:
    """Take vectors that 'store export' wrote; those that are kept already stay as they are.

    The exit status is 3 when any is damaged.
    """
    kept = default_store() if store is None else Store(store)
    taken = import_vectors(folder, kept)
    rows: list[list[Cell]] = [[one.model, one.taken, one.damaged] for one in taken]
    table = Table(["model", "taken", "damaged"], rows, notes=[f"Kept in {kept.folder}"])
    write_tables([table], None, shown.checked(), lambda: {"imported": [one._asdict() for one in taken]})
    if any(one.damaged for one in taken):
        raise typer.Exit(3)


def _name(about: ModelVectorsInfo) -> str:
    return f"{about.model or (_UNOPENED if about.unopened else _DAMAGED)} ({about.fingerprint[:_SHORT]})"


def _shown_time(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "?"


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        no_args_is_help=True, rich_markup_mode="rich", help="Show, check, prune or carry the vectors that are kept between runs."
    )
    command(group, "info", "caplens store info")(show)
    command(group, examples="caplens store prune --older-than 30\ncaplens store prune --max-size 5 --dry-run")(prune)
    command(group, examples="caplens store verify")(verify)
    command(group, examples="caplens store export /mnt/shared/vectors")(export)
    command(group, "import", "caplens store import /mnt/shared/vectors")(import_)
    app.add_typer(group, name="store")
