"""A plain Python function as a metric."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from caplens.arrays import Floats
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Collector, Metric, signature
from caplens.results.row_errors import RowError
from caplens.results.scores import Scores
from caplens.stats.means import mean_of, mean_pool, mean_statistics

SampleFunction = Callable[[list[Sample]], Iterable[float]]
"""All samples at once -> a number for each."""
CaptionFunction = Callable[..., float]
"""`(caption, references, image) -> number`, one caption at a time; parameters are matched by name, and any may be left out."""
_PARAMETERS = ("caption", "references", "image", "video", "source", "lang")


class SampleCollector(Collector):
    """Keeps the samples themselves."""

    def __init__(self, needs: frozenset[str]) -> None:
        super().__init__(needs)
        self.key = ("samples", needs)
        self.rows: list[int] = []
        self.samples: list[Sample] = []

    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        self.rows += rows
        self.samples += samples


class FunctionMetric(Metric):
    """A metric that a function computes: of a list of samples, or of one caption with its references and image."""

    def __init__(self, function: SampleFunction | CaptionFunction, name: str | None = None, needs: Iterable[str] = ()) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", "function").strip("<>")
        parameters = inspect.signature(function).parameters
        self._by_caption = [name for name in parameters if name in _PARAMETERS] if list(parameters) != ["samples"] else []
        required = [name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty]
        unknown = next((name for name in required if name not in _PARAMETERS), None) if self._by_caption else None
        if unknown is not None:
            choice = ", ".join(_PARAMETERS)
            raise InputError(f"the metric {self.name} has a parameter {unknown!r}; a function of one caption takes: {choice}.")
        parameters_needed = frozenset(self._by_caption) & {"references", "image", "video", "source"}
        self.needs = (frozenset(needs) or parameters_needed) | {"caption"}

    @property
    def needs_all_captions(self) -> bool:
        return not self._by_caption

    def collectors(self) -> tuple[SampleCollector]:
        return (SampleCollector(self.needs),)

    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        (collector,) = collected
        assert isinstance(collector, SampleCollector)
        values = np.full(size, np.nan)
        if collector.samples:
            values[collector.rows] = self._numbers(collector.samples)
        undefined = [row for row in collector.rows if not np.isfinite(values[row])]
        values[undefined] = np.nan
        return Scores(
            values,
            mean_of(values),
            signature(self.name, function="python"),
            mean_statistics(values),
            mean_pool,
            errors={row: RowError("the metric returned no finite number") for row in undefined},
        )

    def _numbers(self, samples: list[Sample]) -> Floats:
        if self._by_caption:
            function = cast(CaptionFunction, self.function)
            numbers: Any = [function(**{name: getattr(sample, name) for name in self._by_caption}) for sample in samples]
        else:
            numbers = cast(SampleFunction, self.function)(samples)
        try:
            values = np.asarray(list(numbers), dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"the metric {self.name} must return numbers, one for each sample.") from None
        if values.shape != (len(samples),):
            raise InputError(f"the metric {self.name} returned values of shape {values.shape} for {len(samples)} samples.")
        return values


def metric(function: SampleFunction | CaptionFunction, *, name: str | None = None, needs: Iterable[str] = ()) -> FunctionMetric:
    """Make a metric of a plain function, for `score`, `compare`, `bench` and `agreement`.

    Parameters
    ----------
    function
        Either `f(samples) -> numbers`, which gets all samples at once, or `f(caption, references, image) -> number`, which gets
        one caption at a time. Parameters of the second form are matched by name (caption, references, image, video, source,
        lang), and any may be left out. A function with a single parameter called `samples` has the first form.
    name
        What results call it; by default, the name of the function.
    needs
        What a caption must have to be scored: caption, references, image, video, source. By default, what the parameters name.

    Returns
    -------
    FunctionMetric
        A metric that goes wherever a name does.

    Raises
    ------
    InputError
        If a function of one caption has a parameter that captions do not have.

    Examples
    --------
    >>> words = caplens.metric(lambda caption: len(caption.split()), name="words")
    >>> caplens.score(["a dog runs"], [words])["words"].corpus
    3.0
    """
    return FunctionMetric(function, name, needs)
