"""What scores mean: for a model and metric, language by language, the level of chance and that of good captions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from caplens.arrays import Floats
from caplens.results.base import Content, Result, ResultRow, floats, number
from caplens.results.table import Cell, Table
from caplens.stats.conformal import ConformalBounds
from caplens.stats.percentiles import SHARES, Distribution

_COUNTS = ("truncated", "refs", "v")
"""Parts of a signature that belong to the captions or the version, not to the metric."""
_FIELD = re.compile(r"(?<!\\)\|")
_LANGUAGES = re.compile(r"\[[a-z ]+\]")
_SHOWN = (5, 50, 95)
_DIGITS = 5


@dataclass(frozen=True)
class LanguageLevels:
    """The levels of one language.

    Attributes
    ----------
    chance
        Scores of captions with the image and references of another image.
    good
        Scores of the good captions with their own.
    """

    chance: Distribution
    good: Distribution


@dataclass(frozen=True)
class MetricLevels:
    """The levels of one metric, with the signature of the scores that they are for."""

    signature: str
    languages: Mapping[str, LanguageLevels]
    ratings: ConformalBounds | None = None
    """What ratings people gave, by score; if captions were rated."""

    def fits(self, signature: str) -> bool:
        """Whether scores with this signature are on the same scale."""
        return same_scale(self.signature, signature)


@dataclass(repr=False)
class Calibration(Result):
    """What the scores of one or more metrics mean.

    Attributes
    ----------
    metrics
        Metric -> its levels.
    lengths
        Language -> how many characters its good captions have.
    about
        What was measured on.
    """

    kind = "calibration"

    metrics: dict[str, MetricLevels]
    lengths: dict[str, Distribution] = field(default_factory=dict)
    about: str = ""
    warnings: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return str(self)

    def levels_for(self, metric: str, signature: str) -> MetricLevels | None:
        """The levels for scores with this signature, if there are any."""
        levels = self.metrics.get(metric)
        return levels if levels is not None and levels.fits(signature) else None

    def tables(self) -> list[Table]:
        tables = []
        for metric, levels in self.metrics.items():
            rows: list[list[Cell]] = [
                [
                    lang,
                    of_language.good.count,
                    of_language.chance.mean,
                    *(of_language.chance.quantile(share) for share in _SHOWN),
                    of_language.good.mean,
                    *(of_language.good.quantile(share) for share in _SHOWN),
                    _separation(of_language),
                ]
                for lang, of_language in levels.languages.items()
            ]
            columns = ["language", "captions", "chance", *(f"{share}%" for share in _SHOWN)]
            columns += ["good", *(f"{share}% " for share in _SHOWN), "good above chance"]
            notes = [
                "Means and percentiles of scores: captions with other images (chance), and with their own (good). The last column"
                " is the share of good captions above 95% of chance.",
                *_rating_notes(levels),
            ]
            tables.append(Table(columns, rows, title=f"{metric}: {self.about}" if self.about else metric, notes=notes))
        return tables

    def to_rows(self) -> Iterator[ResultRow]:
        """One row for each metric, language, and level."""
        for metric, levels in self.metrics.items():
            for lang, of_language in levels.languages.items():
                for level, distribution in (("chance", of_language.chance), ("good", of_language.good)):
                    yield {
                        "metric": metric, "lang": lang, "level": level, "count": distribution.count, "mean": distribution.mean,
                        **{f"p{share:g}": float(value) for share, value in zip(SHARES, distribution.quantiles, strict=True)},
                    }  # fmt: skip

    def content(self) -> dict[str, Any]:
        return {
            "about": self.about,
            "shares": SHARES.tolist(),
            "metrics": {metric: _levels_content(levels) for metric, levels in self.metrics.items()},
            "lengths": {lang: _distribution_content(lengths) for lang, lengths in self.lengths.items()},
            "warnings": self.warnings,
        }

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        if list(content["shares"]) != SHARES.tolist():
            raise ValueError("its percentiles are not those of this version")
        metrics = {str(name): _levels_from(levels) for name, levels in content["metrics"].items()}
        lengths = {str(lang): _distribution_from(table) for lang, table in content.get("lengths", {}).items()}
        return cls(metrics, lengths, str(content.get("about", "")), [str(text) for text in content.get("warnings", [])])


def same_scale(first: str, second: str) -> bool:
    """Whether two signatures differ in nothing but counts of captions and the languages that prompts were used for."""
    (first_fields, first_prompts), (second_fields, second_prompts) = _scale(first), _scale(second)
    return first_fields == second_fields and (first_prompts <= second_prompts or second_prompts <= first_prompts)


def _scale(signature: str) -> tuple[list[str], set[str]]:
    fields = [part for part in _FIELD.split(signature) if part.partition(":")[0] not in _COUNTS]
    prompts = {text for part in fields if part.startswith("prompt:") for text in _LANGUAGES.sub("", part[7:]).split(",")}
    return [part for part in fields if not part.startswith("prompt:")], prompts


def _separation(levels: LanguageLevels) -> float:
    """The share of good captions above 95% of chance, in percent."""
    return float(100 - levels.good.percentile(np.array([levels.chance.quantile(95)]))[0])


def _rating_notes(levels: MetricLevels) -> list[str]:
    bounds = levels.ratings
    if bounds is None:
        return []
    low, high = bounds.interval(bounds.scores)
    return [
        f"Ratings: an interval contains {100 * bounds.coverage:g}% of them, and is {np.mean(high - low):.2f} wide in the mean, of"
        f" a range of {bounds.low:g} to {bounds.high:g}."
    ]


def _distribution_content(distribution: Distribution) -> dict[str, Any]:
    return {
        "count": distribution.count,
        "mean": round(distribution.mean, _DIGITS),
        "quantiles": [round(value, _DIGITS) for value in distribution.quantiles.tolist()],
    }


def _levels_content(levels: MetricLevels) -> dict[str, Any]:
    languages = {
        lang: {"chance": _distribution_content(of_language.chance), "good": _distribution_content(of_language.good)}
        for lang, of_language in levels.languages.items()
    }
    return {
        "signature": levels.signature,
        "languages": languages,
        **({} if levels.ratings is None else {"ratings": _bounds_content(levels.ratings)}),
    }


def _bounds_content(bounds: ConformalBounds) -> dict[str, Any]:
    arrays = {name: getattr(bounds, name).tolist() for name in ("scores", "ratings", "errors")}
    return {**arrays, "reach": bounds.reach, "coverage": bounds.coverage, "low": bounds.low, "high": bounds.high}


def _levels_from(content: Content) -> MetricLevels:
    languages = {
        str(lang): LanguageLevels(_distribution_from(tables["chance"]), _distribution_from(tables["good"]))
        for lang, tables in content["languages"].items()
    }
    ratings = content.get("ratings")
    return MetricLevels(str(content["signature"]), languages, None if ratings is None else _bounds_from(ratings))


def _distribution_from(content: Content) -> Distribution:
    quantiles = floats(content["quantiles"])
    if len(quantiles) != len(SHARES) or np.isnan(quantiles).any() or (np.diff(quantiles) < 0).any():
        raise ValueError("a table of quantiles is damaged")
    return Distribution(int(content["count"]), number(content["mean"]), quantiles)


def _bounds_from(content: Content) -> ConformalBounds:
    knots, ratings, errors = (_finite(content[name]) for name in ("scores", "ratings", "errors"))
    if not 0 < len(knots) == len(ratings) == len(errors) or (np.diff(knots) < 0).any():
        raise ValueError("the curve of ratings is damaged")
    return ConformalBounds(knots, ratings, errors, *(number(content[name]) for name in ("reach", "coverage", "low", "high")))


def _finite(values: Sequence[float | None]) -> Floats:
    array = floats(values)
    if not np.isfinite(array).all():
        raise ValueError("a number is missing")
    return array
