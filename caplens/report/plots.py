"""The plots of the report, as inline SVG.

Text stays text in the reader's fonts, so that every script is drawn and can be searched. Lines and text are in `currentColor`, so
that a plot follows the page from light to dark.
"""

import io
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from caplens.arrays import Floats

INK, _RULE = "#0b0b0c", "#c3c2b8"
"""Placeholders that are replaced with the colours of the page."""
COLOURS = ("#2a78d6", "#d9622b", "#1b9e77", "#b8860b", "#8e5bc0", "#c2407e", "#4f7d1e", "#5f6b7a")
_MAX_POINTS = 400
_MAX_LEVELS = 10
"""More distinct ratings than this are drawn as points, not as violins."""
_MIN_VIOLIN = 10
"""Fewer scores than this are drawn as points."""
_CHARACTERS_PER_INCH = 12
_MAX_NAME = 26
"""Characters of a name beside a plot."""
WIDTH = 9.4
"""Inches, of a plot as wide as the page."""
_HALF, _THIRD = 4.6, 3.05
"""Inches, of panels side by side; on a phone they stand below each other."""
_LEGEND_LINES = 12

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": _RULE,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _RULE,
    "grid.linewidth": 0.5,
    "xtick.color": _RULE,
    "ytick.color": _RULE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that neither XML nor HTML may contain."""
_TAG = re.compile(r"<[^>]*>")
_FONT = re.compile(r"font: ([\d.]+)px [^;\"]*")
_figure_numbers = count()


def printable(text: str) -> str:
    """The text with a sign in place of each character that a page may not contain."""
    return _UNPRINTABLE.sub("\ufffd", text)


def drawn(height: float, draw: Callable[[Figure], None], width: float = WIDTH) -> str:
    """The figure that `draw` fills, as an SVG element."""
    with matplotlib.rc_context():
        # Not the settings of a `matplotlibrc` in the current folder: it may call LaTeX, and would change the report.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_STYLE, "svg.hashsalt": f"caplens-{next(_figure_numbers)}"})
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        out = io.StringIO()
        with _without_font_warnings():
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = printable(out.getvalue())
    # Only inside tags: a name in the text may contain anything, also a placeholder.
    return _TAG.sub(lambda tag: _with_page_style(tag[0]), svg[svg.index("<svg") :]).strip()


def _with_page_style(tag: str) -> str:
    tag = tag.replace(INK, "currentColor").replace(_RULE, "var(--rule, #c3c2b8)")
    return _FONT.sub(r"font-size: \1px", tag)


@contextmanager
def _without_font_warnings() -> Iterator[None]:
    """Hide warnings about missing glyphs: the font only measures text, which the browser draws in its own fonts."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


def shortened(name: str) -> str:
    """Long names lose their middle, as names mostly differ at either end."""
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME // 2]}…{name[-_MAX_NAME // 2 + 1 :]}"


def panels(names: Iterable[str], draw: Callable[[int, str, Axes], None], height: float, width: float = _HALF) -> str:
    """One small plot for each name, as SVG elements that stand beside or below each other, as the screen allows."""

    def one(number: int, name: str) -> str:
        def fill(figure: Figure) -> None:
            axes = figure.add_subplot()
            draw(number, name, axes)
            axes.set_title(shortened(name))

        return f"<div>{drawn(height, fill, width)}</div>"

    return f'<div class="panels">{"".join(one(number, name) for number, name in enumerate(names))}</div>'


def intervals(
    labels: Sequence[str],
    estimates: Mapping[str, Sequence[Sequence[float]]],
    groups: Sequence[int] = (),
    published: Mapping[str, Sequence[float | None]] | None = None,
    ceilings: Mapping[str, float] | None = None,
) -> str:
    """Values with intervals, one line per label and one panel per measure, coloured by group.

    `published` values are diamonds, and the agreement of people with each other is a dashed line.
    """

    def draw(_: int, name: str, axes: Axes) -> None:
        for row, (value, low, high) in enumerate(estimates[name]):
            colour = COLOURS[(groups[row] if groups else 0) % len(COLOURS)]
            axes.plot([low, high], [row, row], color=colour, linewidth=1.6, solid_capstyle="round")
            axes.plot([value], [row], "o", color=colour, markersize=5)
        for row, value_published in enumerate((published or {}).get(name, ())):
            if value_published is not None:
                axes.plot([value_published], [row], "D", color="none", markeredgecolor=INK, markersize=6)
        if (ceiling := (ceilings or {}).get(name)) is not None and ceiling == ceiling:
            axes.axvline(ceiling, color=INK, linestyle="--", linewidth=1)
        axes.set_yticks(range(len(labels)), list(map(shortened, labels)))
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(4))

    return panels(estimates, draw, 0.75 + 0.26 * len(labels))


def crowded(names: Sequence[str], inches: float) -> bool:
    """Whether names side by side would overlap."""
    return sum(len(shortened(name)) + 2 for name in names) > _CHARACTERS_PER_INCH * inches


def distributions(groups: Mapping[str, Mapping[str, Floats]]) -> str:
    """Violins with medians and quartiles of metric -> language or system -> scores; horizontal if labels are many or long."""
    labels = list(dict.fromkeys(label for by_label in groups.values() for label in by_label))
    horizontal = crowded(labels, _HALF) or len(labels) > _MAX_LEVELS

    def draw(number: int, name: str, axes: Axes) -> None:
        columns = [groups[name].get(label, np.array([])) for label in labels]
        _violins(axes, columns, COLOURS[number % len(COLOURS)], horizontal=horizontal)
        if horizontal:
            axes.set_yticks(range(len(labels)), list(map(shortened, labels)))
            axes.set_ylim(len(labels) - 0.4, -0.6)
            axes.xaxis.set_major_locator(MaxNLocator(4))
        else:
            axes.set_xticks(range(len(labels)), list(map(shortened, labels)))

    return panels(groups, draw, 0.75 + 0.3 * len(labels) if horizontal else 2.1)


def _violins(axes: Axes, columns: Sequence[Floats], colour: str, *, horizontal: bool = False) -> None:
    """One violin per column of scores with its quartiles; points where there are too few scores for a shape."""
    _violin_bodies(axes, columns, colour, horizontal)
    for place, column in enumerate(columns):
        if 0 < len(column) < _MIN_VIOLIN:
            places = np.full(len(column), place)
            axes.plot(*_oriented(places, column, horizontal), "o", color=colour, alpha=0.6, markersize=3.5)
        elif len(column):
            low, median, high = np.quantile(column, [0.25, 0.5, 0.75])
            quartiles = _oriented([place, place], [low, high], horizontal)
            axes.plot(*quartiles, color=colour, linewidth=2.4, solid_capstyle="round")
            axes.plot(*_oriented([place], [median], horizontal), "o", color="white", markeredgecolor=colour, markersize=4)
    axes.grid(visible=False, axis="y" if horizontal else "x")


def _violin_bodies(axes: Axes, columns: Sequence[Floats], colour: str, horizontal: bool) -> None:
    places = [place for place, column in enumerate(columns) if len(column) >= _MIN_VIOLIN and np.ptp(column) > 0]
    if not places:
        return
    orientation: Any = "horizontal" if horizontal else "vertical"
    data = [columns[place] for place in places]
    parts = axes.violinplot(data, places, widths=0.8, showextrema=False, orientation=orientation)
    for body in parts["bodies"]:  # type: ignore[attr-defined]
        body.set(facecolor=colour, alpha=0.3, edgecolor=colour)


def _oriented(places: Any, values: Any, horizontal: bool) -> tuple[Any, Any]:
    """The x and y of points at `places` along the axis of the labels."""
    return (values, places) if horizontal else (places, values)


def against_people(human: Floats, scores: Mapping[str, Floats], captions: Mapping[str, str]) -> str:
    """Scores by human rating: violins if there are few distinct ratings, else points. `captions` are put below each metric."""
    levels = np.unique(human)
    rng = np.random.default_rng(0)

    def draw(number: int, name: str, axes: Axes) -> None:
        values, colour = scores[name], COLOURS[number % len(COLOURS)]
        shown = rng.permutation(len(human))[:_MAX_POINTS]
        if len(levels) <= _MAX_LEVELS:
            place = np.searchsorted(levels, human)
            jitter = rng.uniform(-0.16, 0.16, len(shown))
            axes.plot(place[shown] + jitter, values[shown], ".", color=colour, markersize=2, alpha=0.45)
            _violins(axes, [values[human == level] for level in levels], colour)
            names = [f"{level:g}" if level == round(level, 2) else f"{level:.2f}" for level in levels]
            axes.set_xticks(range(len(levels)), names)
        else:
            axes.plot(human[shown], values[shown], ".", color=colour, markersize=3.5, alpha=0.5)
        axes.set_xlabel("people" + (f"\n{captions[name]}" if captions.get(name) else ""))

    return panels(scores, draw, 2.6, _THIRD if len(levels) <= 6 else _HALF)


def against_number(numbers: Floats, scores: Mapping[str, Floats], label: str, groups: Sequence[str] = ()) -> str:
    """Mean score and interquartile range by a number per caption, such as its words; with `groups`, a line of means for each."""
    names = np.array(groups)
    lines = list(dict.fromkeys(groups))[:_LEGEND_LINES]

    def draw(number: int, name: str, axes: Axes) -> None:
        values, colour = scores[name], COLOURS[number % len(COLOURS)]
        if len(lines) > 1:
            for place, line in enumerate(lines):
                rows = names == line
                middles, means, _ = _binned(numbers[rows], values[rows], 6)
                axes.plot(middles, means, marker=".", color=COLOURS[place % len(COLOURS)], markersize=4, linewidth=1.2,
                          linestyle="-" if place < len(COLOURS) else ":", label=line)  # fmt: skip
            axes.figure.legend(loc="outside lower left", fontsize=7, ncols=6)
        else:
            middles, means, quartiles = _binned(numbers, values, 12)
            axes.fill_between(middles, *quartiles, color=colour, alpha=0.18, linewidth=0)
            axes.plot(middles, means, "o-", color=colour, markersize=3.5, linewidth=1.5)
        axes.set_xlabel(label)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))

    return panels(scores, draw, 3.0 if len(lines) > 1 else 2.3)


def differences(human: Floats, deltas: Mapping[str, Floats], groups: Sequence[str]) -> str:
    """Points of differences by metric against those by people, with a colour for each group."""
    names = list(dict.fromkeys(groups))

    def draw(_: int, name: str, axes: Axes) -> None:
        for place, group in enumerate(names):
            rows = [row for row, other in enumerate(groups) if other == group]
            axes.plot(human[rows], deltas[name][rows], "o", color=COLOURS[place % len(COLOURS)], markersize=5, label=group,
                      fillstyle="full" if place < len(COLOURS) else "none")  # fmt: skip
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.axvline(0, color=INK, linewidth=0.6)
        axes.set_xlabel("people: wins - losses, %")
        if len(names) > 1:
            axes.figure.legend(loc="outside lower left", fontsize=7, ncols=6)

    return panels(deltas, draw, 3.2)


def _binned(numbers: Floats, values: Floats, bins: int) -> tuple[list[float], list[float], Floats]:
    """In bins of about equally many captions: the mean number, the mean score, and the quartiles of scores."""
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, bins + 1)))
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, max(0, len(edges) - 2))
    parts = [place == part for part in np.unique(place)]
    quartiles: Floats = np.array([np.quantile(values[part], [0.25, 0.75]) for part in parts]).T
    return [float(numbers[part].mean()) for part in parts], [float(values[part].mean()) for part in parts], quartiles


def two_distributions(names: Sequence[str], quantiles: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """Cumulative distributions of two sets of scores, from their percentiles, one panel for each metric and language."""

    def draw(_: int, title: str, axes: Axes) -> None:
        for number, (name, values) in enumerate(zip(names, quantiles[title], strict=True)):
            axes.plot(values, np.arange(len(values)), color=COLOURS[number], linewidth=1.5, label=shortened(name))
        axes.set_ylabel("percent of captions below")
        axes.legend(loc="lower right")

    return panels(quantiles, draw, 2.4)


def curves(runs: Mapping[str, tuple[Floats, Floats]], label: str) -> str:
    """Lines over steps: name -> steps, values."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for number, (name, (steps, values)) in enumerate(runs.items()):
            marker = "o" if len(steps) < 40 else ""
            axes.plot(steps, values, color=COLOURS[number % len(COLOURS)], linewidth=1.5, label=name, marker=marker, markersize=3)
        axes.set_xlabel("step")
        axes.set_title(label)
        if len(runs) > 1:
            axes.legend(loc="upper right")

    return drawn(2.6, draw)
