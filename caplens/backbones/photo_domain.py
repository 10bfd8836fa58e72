"""Images that are unlike the photos a model was trained on, by statistics of their pixels: drawings, charts, text, night, blur.

An image is out of domain if it is flatter or rougher than nearly all training photos, or if eight statistics taken together lie
far from theirs. Alone they say little: a photo may be bright, or without colour, but one that is both and has thin edges is a
drawing.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from caplens.arrays import Flags, Floats

_SHARE = 0.999
"""Of the training photos, how many are less flat, and how many less rough, than the limits."""
_NEAR = 0.99
"""How many of them are within the limit of the distance."""
_STATISTICS = 8
_RIDGE = 1e-6
"""Added to their variances, for a few photos that are all alike."""
_SPREAD = 8
"""Brightness and colour are taken from every eighth pixel of every eighth row."""


class PhotoDomain(NamedTuple):
    """What photos a model knows."""

    flattest: float
    roughest: float
    mean: Floats | None = None
    """Of the statistics; None in the first version of caplens-mini."""
    precision: Floats | None = None
    """The inverse of their covariance."""
    limit: float = np.inf
    """The largest distance (Mahalanobis) of their mean that is in domain."""

    @classmethod
    def fit(cls, flat: Floats, rough: Floats, statistics: Floats) -> "PhotoDomain":
        """The domain of photos, of which this is `flatness` and `photo_statistics`."""
        mean: Floats = statistics.mean(0)
        covariance = np.cov(statistics.T) + _RIDGE * np.eye(_STATISTICS)
        precision: Floats = np.linalg.inv(covariance).astype(np.float64)
        limit = float(np.quantile(_distances(statistics, mean, precision), _NEAR))
        return cls(float(np.quantile(flat, _SHARE)), float(np.quantile(rough, _SHARE)), mean, precision, limit)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> "PhotoDomain":
        limits = cls(float(settings["flattest"]), float(settings["roughest"]))
        if "statistics" not in settings:
            return limits
        statistics = settings["statistics"]
        mean, precision = (np.asarray(statistics[key], dtype=np.float64) for key in ("mean", "precision"))
        if mean.shape != (_STATISTICS,) or precision.shape != (_STATISTICS, _STATISTICS):
            raise ValueError("the statistics of photos do not fit")
        return limits._replace(mean=mean, precision=precision, limit=float(statistics["limit"]))

    def to_dict(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"flattest": self.flattest, "roughest": self.roughest}
        if self.mean is not None and self.precision is not None:
            settings["statistics"] = {"mean": self.mean.tolist(), "precision": self.precision.tolist(), "limit": self.limit}
        return settings

    def outside(self, pixels: Any) -> Flags:
        """Which images (n, height, width, 3) are out of domain."""
        flat, rough = flatness(pixels)
        outside = (flat > self.flattest) | (rough > self.roughest)
        if self.mean is not None and self.precision is not None:
            outside |= _distances(photo_statistics(pixels, flat, rough), self.mean, self.precision) > self.limit
        return np.asarray(outside)


def flatness(pixels: Any) -> tuple[Floats, Floats]:
    """The share of flat pixels (0 to 1) and the mean difference of neighbouring pixels, for each image (n, height, width, 3).

    Drawings and charts are mostly flat, and noise differs everywhere. In a photo, light and lens vary nearly all pixels a little.
    """
    grey = _light(pixels)
    across, down = np.abs(np.diff(grey, axis=2))[:, :-1], np.abs(np.diff(grey, axis=1))[:, :, :-1]
    change = across + down
    return (change == 0).mean((1, 2)), change.mean((1, 2)) / 6


def photo_statistics(pixels: Any, flat: Floats, rough: Floats) -> Floats:
    """Eight statistics of each image: flatness, roughness, sharpness, light, medium and dark parts, contrast and colour."""
    pixels = np.asarray(pixels)
    grey = _light(pixels)
    # Laplace's operator at every second pixel.
    centre = grey[:, 1:-1:2, 1:-1:2]
    rows, columns = centre.shape[1:]
    around = [grey[:, down::2, across::2][:, :rows, :columns] for down, across in ((0, 1), (2, 1), (1, 0), (1, 2))]
    sharp = np.abs(4 * centre - sum(around)).mean((1, 2)) / 3
    sample = pixels[:, ::_SPREAD, ::_SPREAD]
    light = sample.mean(-1).reshape(len(sample), -1)
    dark, medium, bright = np.quantile(light, (0.05, 0.5, 0.95), axis=1)
    colour = (sample.max(-1) - sample.min(-1)).mean((1, 2))
    logarithms = (np.log1p(values) for values in (rough, sharp, bright, light.std(1), colour))
    return np.stack([np.sqrt(flat), medium, dark, *logarithms], axis=1)


def _light(pixels: Any) -> Any:
    """The sum of the three colours, ten times as fast as `sum` over them."""
    red, green, blue = np.moveaxis(np.asarray(pixels), -1, 0)
    return red.astype(np.int16) + green + blue


def _distances(statistics: Floats, mean: Floats, precision: Floats) -> Floats:
    apart = statistics - mean
    return np.asarray(np.sqrt(np.einsum("ni,ij,nj->n", apart, precision, apart)))
