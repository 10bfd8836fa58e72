"""A progress bar on the terminal, with rate and time left."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from caplens.progress import Advance, shown_by
from caplens.terminal import in_one_line


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        count = task.fields.get("count", 0)
        elapsed = task.finished_time or task.elapsed or 0
        return Text(f"{count:,} done, {count / elapsed:,.0f}/s" if elapsed and count else "")


def progress_bar(quiet: bool) -> AbstractContextManager[None]:
    """Bars on standard error while the block runs, if that is a terminal and the user wants them."""
    return nullcontext() if quiet or not sys.stderr.isatty() else shown_by(_display)


@contextmanager
def _display(description: str, total: float | None) -> Iterator[Advance]:
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        _Rate(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with progress:
        task = progress.add_task(in_one_line(description), total=total)
        yield lambda count, done: progress.update(task, completed=done, count=count)
