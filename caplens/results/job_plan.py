"""`JobPlan`: how long a job takes and what it costs, on this machine and on others."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from caplens.results.base import Content, Result, ResultRow, json_object, null_if_nan, number
from caplens.results.table import Cell, Table

_SECONDS_PER_HOUR = 3600


class JobSize(NamedTuple):
    """What a job consists of: captions, different images, and different texts that a model encodes."""

    rows: int
    images: int
    texts: int


class MachineCost(NamedTuple):
    """What a job takes on one kind of machine; NaN where its speed or price is unknown.

    Attributes
    ----------
    machine
        Its name.
    machines
        How many of them share the job.
    images_rate, texts_rate
        Images and texts that one of them encodes per second.
    hours
        Until all of them are done.
    money
        In US dollars, for all of them.
    source
        Where the rates come from.
    """

    machine: str
    machines: int
    images_rate: float
    texts_rate: float
    hours: float
    money: float
    source: str


@dataclass(repr=False)
class JobPlan(Result):
    """How long a job takes and what it costs.

    Attributes
    ----------
    model
        The model that encodes images and texts; empty where no metric needs one.
    size
        What the job consists of.
    rows_read
        How many captions were read to count that; the rest is assumed to be like them.
    partitions
        The parts that are scored one by one.
    rows_rate
        Captions per second that this machine scores without counting the model: reading, tokenising, computing, writing.
    machines
        What each kind of machine takes; this one is the first.
    """

    kind = "job-plan"

    model: str
    size: JobSize
    rows_read: int
    partitions: int
    rows_rate: float
    machines: list[MachineCost]
    warnings: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return str(self)

    def tables(self) -> list[Table]:
        size = self.size
        about: list[list[Cell]] = [
            ["captions", size.rows], ["partitions", self.partitions],
            ["different images", size.images], ["different texts", size.texts],
            ["captions per second without the model", round(self.rows_rate)],
        ]  # fmt: skip
        rows: list[list[Cell]] = [
            [
                cost.machine, cost.machines, cost.images_rate, cost.texts_rate, _duration(cost.hours),
                cost.money, cost.money / size.rows * 1e6, cost.source,
            ]
            for cost in self.machines
        ]  # fmt: skip
        notes = [f"Images and texts are those that {self.model} encodes, each once."] if self.model else []
        if self.rows_read < size.rows:
            notes.append(f"{self.rows_read:,} captions were read; the rest is taken to be like them.")
        columns = ["machine", "count", "images/s", "texts/s", "time", "$", "$ per million", "source"]
        return [Table(["job", ""], about, notes=notes), Table(columns, rows, digits=2)]

    def to_rows(self) -> Iterator[ResultRow]:
        """One row per kind of machine."""
        for cost in self.machines:
            yield json_object(cost)

    def content(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "size": self.size._asdict(),
            "rows_read": self.rows_read,
            "partitions": self.partitions,
            "rows_rate": null_if_nan(self.rows_rate),
            "machines": list(self.to_rows()),
            "warnings": self.warnings,
        }

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        size = JobSize(**{name: int(value) for name, value in content["size"].items()})
        machines = [
            MachineCost(
                str(cost["machine"]), int(cost["machines"]), number(cost["images_rate"]), number(cost["texts_rate"]),
                number(cost["hours"]), number(cost["money"]), str(cost["source"]),
            )
            for cost in content["machines"]
        ]  # fmt: skip
        return cls(
            str(content["model"]), size, int(content["rows_read"]), int(content["partitions"]), number(content["rows_rate"]),
            machines, [str(line) for line in content["warnings"]],
        )  # fmt: skip


def _duration(hours: float) -> str | None:
    """Hours as people say them."""
    if hours != hours:
        return None
    seconds = round(hours * _SECONDS_PER_HOUR)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 2 * _SECONDS_PER_HOUR:
        return f"{seconds / 60:.0f} min"
    return f"{hours:,.1f} h" if hours < 72 else f"{hours / 24:,.1f} days"
