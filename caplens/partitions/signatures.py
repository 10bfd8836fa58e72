"""One signature of the signatures of all partitions."""

from collections.abc import Sequence

_RANGE, _SUM = "refs", "truncated"


def merged_signature(signatures: Sequence[str]) -> str:
    """The signature of all captions together: counts are added, ranges joined, and other differences listed."""
    columns = list(zip(*(signature.split("|") for signature in signatures), strict=False))
    return "|".join(_merged(list(fields)) for fields in columns) if signatures else ""


def _merged(fields: list[str]) -> str:
    name, colon, _ = fields[0].partition(":")
    values = [field.partition(":")[2] for field in fields]
    if name == _SUM:
        return f"{_SUM}:{sum(int(value) for value in values)}"
    unique = list(dict.fromkeys(values)) if colon else list(dict.fromkeys(fields))
    if len(unique) == 1:
        return fields[0]
    if name == _RANGE:
        bounds = [int(bound) for value in unique for bound in value.split("-")]
        return f"{_RANGE}:{min(bounds)}-{max(bounds)}"
    parts = sorted(dict.fromkeys(part for value in unique for part in value.split(",")))
    return f"{name}{colon}{','.join(parts)}" if colon else ",".join(parts)
