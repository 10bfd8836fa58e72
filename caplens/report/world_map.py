"""A map of the world with points on it, offline.

`coastlines.txt` has the outlines of continents and large islands, set by hand to about a hundred kilometres:
`name: longitude,latitude longitude,latitude …`.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np
from matplotlib.figure import Figure

from caplens.arrays import Floats
from caplens.report.plots import COLOURS, INK, drawn

_SOUTH, _NORTH = -58, 84
_HEIGHT = 4.4
_SIZE = 3.5


def world_map(points: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """An SVG of the world: name of a group -> latitude and longitude of its points, the last group below the others."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for outline in outlines().values():
            axes.fill(*outline, color=INK, alpha=0.12, linewidth=0)
        for place, (name, places) in reversed(list(enumerate(points.items()))):
            if places:
                latitudes, longitudes = np.array(places).T
                axes.plot(longitudes, latitudes, "o", color=COLOURS[place % len(COLOURS)], markersize=_SIZE, alpha=0.8,
                          markeredgewidth=0, label=f"{name}: {len(places):,}")  # fmt: skip
        axes.set(xlim=(-180, 180), ylim=(_SOUTH, _NORTH), aspect="equal", xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside lower left", ncols=4)

    return drawn(_HEIGHT, draw)


@cache
def outlines() -> dict[str, Floats]:
    """Continent or island -> longitudes and latitudes."""
    lines = files("caplens.report").joinpath("coastlines.txt").read_text(encoding="utf-8").splitlines()
    parts = (line.partition(": ") for line in lines)
    return {name: np.array([pair.split(",") for pair in pairs.split()], dtype=float).T for name, _, pairs in parts}
