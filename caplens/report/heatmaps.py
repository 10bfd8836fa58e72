"""Heatmaps: languages by metrics, languages by languages, and the words of a caption by the moments of a video."""

import warnings
from collections.abc import Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL.Image import Image
from PIL.ImageOps import fit

from caplens.arrays import Floats
from caplens.backbones.transform import Pixels
from caplens.report.plots import INK, WIDTH, crowded, drawn, shortened

_SHADES = LinearSegmentedColormap.from_list("caplens", ["#f3f7fc", "#b9d4f2", "#5b97de"])
_DIVERGING = LinearSegmentedColormap.from_list("caplens-diverging", ["#e39a6b", "#f6f5f1", "#5b97de"])
_ON_SHADES = "#16161a"
"""Text on a shade; on the darkest one its contrast ratio is 5.9 (WCAG)."""
_SAME_SHADE = 5e-4
"""If values span at most this, they round to nearly the same number and get the same colour."""
_INTERVALS = 3
"""Intervals that the colour scale spans at least: differences that may be chance have similar colours."""
_PICTURE = 64
"""Pixels of the side of a frame."""


def heatmap(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Floats,
    notes: Sequence[Sequence[str]],
    *,
    by_column: bool = False,
    widths: Floats | None = None,
    diverging: bool = False,
) -> str:
    """One cell per row and column, with its note as text.

    With `by_column`, each column has its own colour scale. `widths` are those of the intervals of the values: values whose
    intervals overlap have similar colours. With `diverging`, 0 is white, and values on either side of it have different colours.
    """
    height = 0.6 + (0.42 if any("\n" in note for line in notes for note in line) else 0.3) * len(rows)
    width = min(WIDTH, 1.9 + max(0.75, 0.13 * _widest(notes)) * len(columns))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        shades = _diverging_shades(values, widths) if diverging else _shades(values, by_column, widths)
        edges = [np.arange(len(names) + 1) - 0.5 for names in (columns, rows)]
        colours = _DIVERGING if diverging else _SHADES
        axes.pcolormesh(*edges, np.ma.masked_invalid(shades), cmap=colours, vmin=0, vmax=1, edgecolors="face", linewidth=0.3)
        axes.invert_yaxis()
        axes.set_xticks(range(len(columns)), list(map(shortened, columns)))
        axes.xaxis.tick_top()
        if crowded(columns, width):
            for label in axes.get_xticklabels():
                label.set(rotation=40, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(len(rows)), list(map(shortened, rows)))
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        for row, line in enumerate(notes):
            for column, note in enumerate(line):
                colour = INK if np.isnan(shades[row, column]) else _ON_SHADES
                size = 8.5 if len(columns) < 9 else 6.5 if len(columns) < 24 else 5
                axes.text(column, row, note, ha="center", va="center", fontsize=size, color=colour)

    return drawn(height, draw, width)


def small_picture(image: Image) -> Pixels:
    """A frame as it stands above a column of `moments`."""
    return np.asarray(fit(image.convert("RGB"), (_PICTURE, _PICTURE)))


def moments(words: Sequence[str], pictures: Sequence[Pixels], values: Floats) -> str:
    """One row per word, one column per frame of a video below its picture; a row has its own colour scale."""
    columns = len(pictures)
    width = min(WIDTH, 1.6 + 0.7 * columns)
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
        below.set_yticks(range(len(words)), list(map(shortened, words)))
        above.set(xlim=(-0.5, columns - 0.5), ylim=(0, 1), yticks=[])
        for axes in (above, below):
            axes.set_xticks([])
            axes.grid(visible=False)
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0)
        for (row, column), value in np.ndenumerate(values):
            below.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color=_ON_SHADES)

    return drawn(height, draw, width)


def _widest(notes: Sequence[Sequence[str]]) -> int:
    return max((len(part) for line in notes for note in line for part in note.split("\n")), default=1)


def _shades(values: Floats, by_column: bool, widths: Floats | None = None) -> Floats:
    """The values scaled from 0 to 1, over all of them or over each column; over three intervals at least."""
    axis = 0 if by_column else None
    low = np.min(np.where(np.isnan(values), np.inf, values), axis=axis, keepdims=True)
    high = np.max(np.where(np.isnan(values), -np.inf, values), axis=axis, keepdims=True)
    span = np.maximum(high - low, _INTERVALS * _typical(widths, axis))
    with np.errstate(invalid="ignore"):
        # In the middle of the scale where the span is wider than the values.
        shades: Floats = (values - (low + high - span) / 2) / np.where(span > _SAME_SHADE, span, np.inf)
    return shades


def _diverging_shades(values: Floats, widths: Floats | None) -> Floats:
    """The values scaled around 0, which is 0.5."""
    reach = np.max(np.abs(np.where(np.isnan(values), 0, values)), initial=_SAME_SHADE)
    reach = max(float(reach), _INTERVALS / 2 * float(np.max(_typical(widths, None))))
    shades: Floats = 0.5 + values / (2 * reach)
    return shades


def _typical(widths: Floats | None, axis: int | None) -> Floats:
    """The median width of intervals, of all or of each column; 0 where there are none."""
    if widths is None or np.isnan(widths).all():
        return np.zeros((1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.nan_to_num(np.nanmedian(widths, axis=axis, keepdims=True))
