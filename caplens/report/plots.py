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
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL.Image import Image
from PIL.ImageOps import fit

from caplens.arrays import Floats
from caplens.backbones.transform import Pixels

_INK, _RULE = "#0b0b0c", "#c3c2b8"
"""Placeholders that are replaced with the colours of the page."""
COLOURS = ("#2a78d6", "#d9622b", "#1b9e77", "#b8860b", "#8e5bc0", "#c2407e", "#4f7d1e", "#5f6b7a")
_SHADES = LinearSegmentedColormap.from_list("caplens", ["#f3f7fc", "#b9d4f2", "#5b97de"])
_ON_SHADES = "#16161a"
"""Text on a shade; on the darkest one its contrast ratio is 5.9 (WCAG)."""
_MAX_POINTS = 400
_MAX_LEVELS = 10
"""More distinct ratings than this are drawn as points, not as violins."""
_SAME_SHADE = 5e-4
"""If values span at most this, they round to nearly the same number and get the same colour."""
_MIN_VIOLIN = 10
"""Fewer scores than this are drawn as points."""
_CHARACTERS_PER_INCH = 12
_MAX_NAME = 26
"""Characters of a name beside a plot."""
_PICTURE = 64
"""Pixels of the side of a frame."""
_WIDTH = 9.4
"""Inches, of a plot as wide as the page."""

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": _INK,
    "axes.labelcolor": _INK,
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
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
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


def drawn(height: float, draw: Callable[[Figure], None], width: float = _WIDTH) -> str:
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
    tag = tag.replace(_INK, "currentColor").replace(_RULE, "var(--rule, #c3c2b8)")
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


def heatmap(
    rows: Sequence[str], columns: Sequence[str], values: Floats, notes: Sequence[Sequence[str]], *, by_column: bool = False
) -> str:
    """One cell per row and column, with its note as text. With `by_column`, each column has its own colour scale."""
    height = 0.6 + (0.42 if any("\n" in note for line in notes for note in line) else 0.3) * len(rows)
    width = min(_WIDTH, 1.9 + max(0.75, 0.13 * _widest(notes)) * len(columns))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        shades = _shades(values, by_column)
        edges = [np.arange(len(names) + 1) - 0.5 for names in (columns, rows)]
        axes.pcolormesh(*edges, np.ma.masked_invalid(shades), cmap=_SHADES, vmin=0, vmax=1, edgecolors="face", linewidth=0.3)
        axes.invert_yaxis()
        axes.set_xticks(range(len(columns)), list(map(_short, columns)))
        axes.xaxis.tick_top()
        if _crowded(columns, width):
            for label in axes.get_xticklabels():
                label.set(rotation=40, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(len(rows)), list(map(_short, rows)))
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        for row, line in enumerate(notes):
            for column, note in enumerate(line):
                colour = _INK if np.isnan(shades[row, column]) else _ON_SHADES
                size = 8.5 if len(columns) < 9 else 6.5 if len(columns) < 24 else 5
                axes.text(column, row, note, ha="center", va="center", fontsize=size, color=colour)

    return drawn(height, draw, width)


def small_picture(image: Image) -> Pixels:
    """A frame as it stands above a column of `moments`."""
    return np.asarray(fit(image.convert("RGB"), (_PICTURE, _PICTURE)))


def moments(words: Sequence[str], pictures: Sequence[Pixels], values: Floats) -> str:
    """One row per word, one column per frame of a video below its picture; a row has its own colour scale."""
    columns = len(pictures)
    width = min(_WIDTH, 1.6 + 0.7 * columns)
    side = (width - 1.6) / columns
    height = 0.2 + side + 0.26 * len(words)

    def draw(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[side, 0.26 * max(1, len(words))])
        for column, picture in enumerate(pictures):
            above.imshow(picture, extent=(column - 0.49, column + 0.49, 0, 1), aspect="auto")
        edges = np.arange(columns + 1) - 0.5, np.arange(len(words) + 1) - 0.5
        shades = _shades(values.T, by_column=True).T
        below.pcolormesh(*edges, shades, cmap=_SHADES, vmin=0, vmax=1, edgecolors="face", linewidth=0.3)
        below.invert_yaxis()
        below.set_yticks(range(len(words)), list(map(_short, words)))
        above.set(xlim=(-0.5, columns - 0.5), ylim=(0, 1), yticks=[])
        for axes in (above, below):
            axes.set_xticks([])
            axes.grid(visible=False)
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0)
        for (row, column), value in np.ndenumerate(values):
            below.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color=_ON_SHADES)

    return drawn(height, draw, width)


def _short(name: str) -> str:
    """Long names lose their middle, as names mostly differ at either end."""
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME // 2]}…{name[-_MAX_NAME // 2 + 1 :]}"


def _widest(notes: Sequence[Sequence[str]]) -> int:
    return max((len(part) for line in notes for note in line for part in note.split("\n")), default=1)


def _shades(values: Floats, by_column: bool) -> Floats:
    """The values scaled from 0 to 1, over all of them or over each column."""
    axis = 0 if by_column else None
    low = np.min(np.where(np.isnan(values), np.inf, values), axis=axis, keepdims=True)
    high = np.max(np.where(np.isnan(values), -np.inf, values), axis=axis, keepdims=True)
    with np.errstate(invalid="ignore"):
        shades: Floats = (values - low) / np.where(high - low > _SAME_SHADE, high - low, np.inf)
    return shades


def intervals(labels: Sequence[str], panels: Mapping[str, Sequence[Sequence[float]]], groups: Sequence[int] = ()) -> str:
    """Values with intervals, one line per label and one panel per measure, coloured by group."""
    across = _across(len(panels))
    down = -(-len(panels) // across)

    def draw(figure: Figure) -> None:
        for number, ((name, estimates), axes) in enumerate(zip(panels.items(), _panels(figure, down, across), strict=False)):
            for row, (value, low, high) in enumerate(estimates):
                colour = COLOURS[(groups[row] if groups else 0) % len(COLOURS)]
                axes.plot([low, high], [row, row], color=colour, linewidth=1.6, solid_capstyle="round")
                axes.plot([value], [row], "o", color=colour, markersize=5)
            axes.set_yticks(range(len(labels)), list(map(_short, labels)))
            axes.tick_params(labelleft=number % across == 0)
            axes.set_ylim(len(labels) - 0.4, -0.6)
            axes.set_title(name)
            axes.grid(visible=False, axis="y")
            axes.xaxis.set_major_locator(MaxNLocator(4))

    return drawn(down * (0.75 + 0.26 * len(labels)), draw)


def _crowded(names: Sequence[str], inches: float) -> bool:
    """Whether names side by side would overlap."""
    return sum(len(_short(name)) + 2 for name in names) > _CHARACTERS_PER_INCH * inches


def _across(count: int, maximum: int = 3) -> int:
    """The number of panels side by side; four panels are two by two."""
    return 2 if count == 4 else min(count, maximum)


def _panels(figure: Figure, down: int, across: int) -> Iterable[Axes]:
    """The axes of a grid, one at a time; those not taken stay hidden."""
    grid = figure.subplots(down, across, squeeze=False).ravel()
    for axes in grid:
        axes.set_visible(False)
    for axes in grid:
        axes.set_visible(True)
        yield axes


def distributions(groups: Mapping[str, Mapping[str, Floats]]) -> str:
    """Violins with medians and quartiles of metric -> language or system -> scores; horizontal if the names are long."""
    labels = list(dict.fromkeys(label for by_label in groups.values() for label in by_label))
    across = 1 if len(labels) > 8 else min(len(groups), 2 if len(labels) > 1 else 4)
    horizontal = _crowded(labels, _WIDTH / across)
    across = _across(len(groups)) if horizontal else across
    down = -(-len(groups) // across)

    def draw(figure: Figure) -> None:
        for number, ((name, by_label), axes) in enumerate(zip(groups.items(), _panels(figure, down, across), strict=False)):
            columns = [by_label.get(label, np.array([])) for label in labels]
            _violins(axes, columns, COLOURS[number % len(COLOURS)], horizontal=horizontal)
            if horizontal:
                axes.set_yticks(range(len(labels)), list(map(_short, labels)))
                axes.set_ylim(len(labels) - 0.4, -0.6)
                axes.tick_params(labelleft=number % across == 0)
                axes.xaxis.set_major_locator(MaxNLocator(4))
            else:
                axes.set_xticks(range(len(labels)), list(map(_short, labels)))
            axes.set_title(name)

    return drawn(down * (0.75 + 0.3 * len(labels)) if horizontal else 2.1 * down, draw)


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
    across = _across(len(scores), 3 if len(levels) <= 6 else 2)
    down = -(-len(scores) // across)
    rng = np.random.default_rng(0)

    def draw(figure: Figure) -> None:
        for number, ((name, values), axes) in enumerate(zip(scores.items(), _panels(figure, down, across), strict=False)):
            colour = COLOURS[number % len(COLOURS)]
            shown = rng.permutation(len(human))[:_MAX_POINTS]
            if len(levels) <= _MAX_LEVELS:
                place = np.searchsorted(levels, human)
                jitter = rng.uniform(-0.16, 0.16, len(shown))
                axes.plot(place[shown] + jitter, values[shown], ".", color=colour, markersize=2, alpha=0.45)
                _violins(axes, [values[human == level] for level in levels], colour)
                axes.set_xticks(
                    range(len(levels)), [f"{level:g}" if level == round(level, 2) else f"{level:.2f}" for level in levels]
                )
            else:
                axes.plot(human[shown], values[shown], ".", color=colour, markersize=3.5, alpha=0.5)
            axes.set_title(name)
            axes.set_xlabel("people" + (f"\n{captions[name]}" if captions.get(name) else ""))

    return drawn(2.6 * down, draw)


def against_number(numbers: Floats, scores: Mapping[str, Floats], label: str) -> str:
    """Mean score and interquartile range by a number per caption, such as its words or its references."""
    across = _across(len(scores))
    down = -(-len(scores) // across)
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, 13)))
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, max(0, len(edges) - 2))

    def draw(figure: Figure) -> None:
        for number, ((name, values), axes) in enumerate(zip(scores.items(), _panels(figure, down, across), strict=False)):
            colour = COLOURS[number % len(COLOURS)]
            bins = np.unique(place)
            means = [numbers[place == part].mean() for part in bins]
            low, high = np.array([np.quantile(values[place == part], [0.25, 0.75]) for part in bins]).T
            axes.fill_between(means, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(means, [values[place == part].mean() for part in bins], "o-", color=colour, markersize=3.5, linewidth=1.5)
            axes.set_title(name)
            axes.set_xlabel(label)
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))

    return drawn(2.3 * down, draw)


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
