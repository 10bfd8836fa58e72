"""The ratings of a caption that may be aggregated: those of one criterion, one from each rater."""

from collections import Counter
from collections.abc import Iterable

from caplens.data.sample import Rating, Sample
from caplens.errors import InputError


def check_criteria(samples: Iterable[Sample], remedy: str) -> None:
    """Raise an error if ratings are by different criteria, which are not mixed. `remedy` says how to choose one."""
    criteria: set[str | None] = set()
    for sample in samples:
        criteria |= {rating.criterion for rating in sample.ratings}
        if len(criteria) > 1:
            names = ", ".join(sorted(str(name) for name in criteria))
            raise InputError(
                f"sample {sample.id!r} is rated by several criteria ({names}), or by another than samples before it. {remedy}"
            )


def ratings_by(sample: Sample, criterion: str | None = None) -> list[Rating]:
    """The ratings of a sample by a criterion; all, if none is named. Raises an error if a rater appears twice."""
    ratings = [rating for rating in sample.ratings if criterion is None or rating.criterion == criterion]
    raters = Counter(rating.rater for rating in ratings if rating.rater is not None)
    if raters and (most := raters.most_common(1)[0])[1] > 1:
        raise InputError(f"sample {sample.id!r} has two ratings of the rater {most[0]!r}. Keep one of them.")
    return ratings
