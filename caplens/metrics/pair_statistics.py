"""Pairs of vectors of an image and a text: their mean and covariance in one pass, and the mutual information of such pairs.

x is the vector of an image, y that of a text, z = [x; y], S their covariances, and D2 the squared Mahalanobis distance from the
mean. The pointwise mutual information of a pair under normal distributions is

    1/2 log(|Sx| |Sy| / |Sz|) + 1/2 (D2(x) + D2(y) - D2(z))
"""

import hashlib
import zipfile
import zlib
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import solve_triangular

from caplens.arrays import Floats, Vectors
from caplens.data.files import expanded, open_regular
from caplens.data.replacing import replacing
from caplens.errors import InputError, option

LEDOIT_WOLF = "ledoit-wolf"
ADVISED_SHRINKAGE, ENOUGH_PAIRS = 5e-4, 30_000
"""What the authors add to variances where there are fewer pairs."""
_MOST_NUMBERS, _MOST_TEXT, _MOST_PAIRS = 16_384, 16_384, 1 << 40
"""Of a pair's vector, bytes of a text in a file, and pairs."""
Shrinkage = float | str
"""What is added to the variances, or `ledoit-wolf`."""


class PairStatistics:
    """Mean and covariance of pairs of an image's and a text's vector: one pass, and memory for one matrix."""

    def __init__(self, dim: int, model: str, fingerprint: str, prompt: str = "") -> None:
        self.dim, self.model, self.fingerprint, self.count = dim, model, fingerprint, 0
        self.prompt = prompt
        """What stood before the texts."""
        self.mean = np.zeros(2 * dim)
        self.scatter = np.zeros((2 * dim, 2 * dim))
        """The sum of the outer products of the pairs with themselves, about their mean."""
        self.lengths = np.zeros(2)
        """The sums of the pairs' squared lengths, and of their squares."""
        self.weighted = np.zeros(2 * dim)
        """The sum of the pairs times their squared lengths."""
        self.left_out = 0
        """Samples that gave no pair; not saved."""

    def add(self, images: Vectors, texts: Vectors) -> None:
        """Take in pairs; merged with those before by the formulas of Chan, Golub and LeVeque (1983)."""
        if not len(images):
            return
        pairs = np.concatenate([images, texts], axis=1).astype(np.float64)
        mean = pairs.mean(0)
        centred, apart, total = pairs - mean, mean - self.mean, self.count + len(pairs)
        self.scatter += centred.T @ centred + np.outer(apart, apart) * (self.count * len(pairs) / total)
        self.mean += apart * (len(pairs) / total)
        lengths = np.square(pairs).sum(1)
        self.lengths += lengths.sum(), np.square(lengths).sum()
        self.weighted += lengths @ pairs
        self.count = total

    @property
    def label(self) -> str:
        """For signatures: the number of pairs, and a hash of their statistics."""
        digest = hashlib.sha256(self.mean.tobytes() + self.scatter.tobytes()).hexdigest()
        return f"{self.count}@{digest[:8]}"

    def covariance(self, shrinkage: Shrinkage = 0.0) -> Floats:
        """Over N - 1, shrunk towards a multiple of the unit matrix."""
        covariance: Floats = self.scatter / max(1, self.count - 1)
        if shrinkage == LEDOIT_WOLF:
            share, scale = self._ledoit_wolf(), float(covariance.trace()) / len(covariance)
            return (1 - share) * covariance + share * scale * np.eye(len(covariance))
        return covariance + float(shrinkage) * np.eye(len(covariance))

    def _ledoit_wolf(self) -> float:
        """The share of the unit matrix by Ledoit and Wolf (2004), from sums over the pairs."""
        count, size = self.count, len(self.mean)
        covariance, offset = self.scatter / count, float(self.mean @ self.mean)
        along = float(self.mean @ self.scatter @ self.mean) + count * offset**2
        # The sum of |z - m|^4, which is (|z|^2 - 2 m z + |m|^2)^2.
        fourth = (
            self.lengths[1] + 4 * along + count * offset**2
            - 4 * float(self.mean @ self.weighted) + 2 * offset * self.lengths[0] - 4 * offset * count * offset
        )  # fmt: skip
        squared, scale = float(np.square(covariance).sum()), float(covariance.trace()) / size
        distance = squared - size * scale**2
        return min(1.0, max(0.0, (fourth / count - squared) / count / distance)) if distance > 0 else 1.0

    def save(self, path: str | PathLike[str]) -> None:
        """Write the statistics to a file of numpy."""
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(
                file,
                mean=self.mean,
                scatter=self.scatter,
                lengths=self.lengths,
                weighted=self.weighted,
                model=np.array(self.model),
                fingerprint=np.array(self.fingerprint),
                prompt=np.array(self.prompt),
                count=np.array(self.count),
            )

    @classmethod
    def load(cls, path: str | PathLike[str], dim: int | None = None, model: str = "") -> Self:
        """From a file that `save` wrote, for a model whose vectors have `dim` numbers."""
        try:
            with open_regular(expanded(path)) as file, zipfile.ZipFile(file) as archive:
                size = _numbers(archive, "mean", 1, _MOST_NUMBERS).shape[0]
                if dim is not None and size != 2 * dim:
                    raise InputError(
                        f"{path}: these statistics of MID were fitted with {_text(archive, 'model')}, not with {model}: vectors"
                        f" have {size // 2:,} numbers, not {dim:,}. Fit them with this model ('caplens mid fit')."
                    )
                shapes = {"mean": (size,), "scatter": (size, size), "lengths": (2,), "weighted": (size,)}
                mean, scatter, lengths, weighted = (
                    _numbers(archive, name, len(shape), size, shape) for name, shape in shapes.items()
                )
                statistics = cls(size // 2, *(_text(archive, name) for name in ("model", "fingerprint", "prompt")))
                statistics.count = int(_member(archive, "count", "iu", 0, 1))
        except (
            OSError,
            EOFError,
            LookupError,
            TypeError,
            ValueError,
            RuntimeError,
            NotImplementedError,
            zipfile.BadZipFile,
        ) as error:
            raise InputError(f"{path}: these are no statistics of MID ({error}). Make them with 'caplens mid fit'.") from None
        except zlib.error:
            raise InputError(f"{path}: these statistics are damaged. Make them again with 'caplens mid fit'.") from None
        statistics.mean, statistics.scatter, statistics.lengths, statistics.weighted = mean, scatter, lengths, weighted
        statistics._check(str(path))
        return statistics

    def _check(self, name: str) -> None:
        """An error if these cannot be sums over pairs."""
        arrays = (self.mean, self.scatter, self.lengths, self.weighted)
        plausible = (
            1 <= self.count <= _MOST_PAIRS
            and all(np.isfinite(values).all() for values in arrays)
            and np.allclose(self.scatter, self.scatter.T, rtol=1e-6, atol=1e-9 * float(np.abs(self.scatter).max(initial=0)))
            and bool((self.scatter.diagonal() >= 0).all() and (self.lengths >= 0).all())
        )
        if not plausible:
            raise InputError(f"{name}: these statistics are damaged. Make them again with 'caplens mid fit'.")


def _member(archive: zipfile.ZipFile, name: str, kinds: str, dimensions: int, most: int) -> np.ndarray[Any, Any]:
    """An array of the archive, if its header says that it is of these kinds and no larger: a small file can hold gigabytes."""
    with archive.open(f"{name}.npy") as file:
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(file)
    if dtype.kind not in kinds or dtype.itemsize > _MOST_TEXT or len(shape) != dimensions or any(side > most for side in shape):
        raise ValueError(f"{name!r} has another type or shape")
    with archive.open(f"{name}.npy") as file:
        return np.asarray(np.lib.format.read_array(file))


def _numbers(archive: zipfile.ZipFile, name: str, dimensions: int, most: int, shape: tuple[int, ...] | None = None) -> Floats:
    values = _member(archive, name, "f", dimensions, max(2, most))
    if shape is not None and values.shape != shape:
        raise ValueError(f"{name!r} has another shape")
    return values.astype(np.float64)


def _text(archive: zipfile.ZipFile, name: str) -> str:
    return str(_member(archive, name, "U", 0, 1))


class _Gaussian(NamedTuple):
    """A normal distribution by the Cholesky factor of its covariance."""

    mean: Floats
    factor: Floats

    @classmethod
    def of(cls, mean: Floats, covariance: Floats) -> "_Gaussian":
        return cls(mean, np.linalg.cholesky(covariance).astype(np.float64))

    @property
    def log_determinant(self) -> float:
        return 2 * float(np.log(self.factor.diagonal()).sum())

    def distances(self, values: Floats) -> Floats:
        """Squared Mahalanobis distances from the mean."""
        return np.asarray(np.square(solve_triangular(self.factor, (values - self.mean).T, lower=True)).sum(0))


class PairGaussians:
    """The distributions of images, of texts, and of pairs."""

    def __init__(self, statistics: PairStatistics, shrinkage: Shrinkage = 0.0) -> None:
        dim, count = statistics.dim, statistics.count
        advice = (
            f"Fit more ('caplens mid fit'), or shrink the covariance: {option('shrinkage', str(ADVISED_SHRINKAGE))}, or"
            f" {option('shrinkage', LEDOIT_WOLF)}."
        )
        if not shrinkage and count <= 2 * dim:
            raise InputError(
                f"MID fits a normal distribution in {2 * dim:,} dimensions to pairs of image and reference, and needs more pairs"
                f" than that; there are {count:,}. {advice}"
            )
        mean, covariance = statistics.mean, statistics.covariance(shrinkage)
        try:
            self._images = _Gaussian.of(mean[:dim], covariance[:dim, :dim])
            self._texts = _Gaussian.of(mean[dim:], covariance[dim:, dim:])
            self._pairs = _Gaussian.of(mean, covariance)
        except np.linalg.LinAlgError:
            raise InputError(f"MID: the {count:,} pairs do not span the space of their vectors. {advice}") from None

    @property
    def information(self) -> float:
        """The mutual information of the reference pairs, in nats."""
        return (self._images.log_determinant + self._texts.log_determinant - self._pairs.log_determinant) / 2

    def pointwise(self, images: Vectors, texts: Vectors) -> Floats:
        """The pointwise mutual information of pairs."""
        first, second = images.astype(np.float64), texts.astype(np.float64)
        distances = self._images.distances(first) + self._texts.distances(second)
        return self.information + (distances - self._pairs.distances(np.concatenate([first, second], axis=1))) / 2


def parsed_shrinkage(value: object) -> Shrinkage:
    """A number that is not negative, or `ledoit-wolf`."""
    if value == LEDOIT_WOLF:
        return LEDOIT_WOLF
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = float("nan")
    if not 0 <= number < np.inf:
        raise InputError(f"the shrinkage is a number of at least 0, or {LEDOIT_WOLF}, not {value!r}.")
    return number
