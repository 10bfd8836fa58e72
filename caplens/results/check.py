"""`CheckResult`: which captions are bad, and why."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, Self

from caplens.data.rows import free_name
from caplens.results.base import Content, Result, ResultRow, null_if_nan, number
from caplens.results.table import Cell, Table

_SHOWN = 20
_CAPTION_SHOWN = 40


class Verdict(StrEnum):
    """What to do with a caption."""

    fix = "fix"
    look = "look"
    fine = "fine"


_ORDER = [Verdict.fix, Verdict.look, Verdict.fine]


class Fault(NamedTuple):
    """One thing that is wrong with a caption, or may be.

    Attributes
    ----------
    kind
        Such as `empty` or `wrong language`.
    verdict
        How sure that is: `fix`, or `look` where a person has to decide.
    reason
        A sentence for people.
    """

    kind: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class CheckedCaption:
    """A caption with what is wrong with it.

    Attributes
    ----------
    id, caption, image, lang, system
        As in the file.
    faults
        What is wrong, the surest first.
    score
        Its CLIPScore; NaN without an image.
    chance, good
        The percentiles of its score among captions of other images, and among good captions.
    better_image
        An image of the same file that the caption fits better, where its own does not fit.
    words
        Words that nothing in the image supports, where the image does not fit.
    columns
        The other columns of the file.
    doubt
        Why how it fits its image is not to be trusted: the model was not trained on such images, or on its language.
    path, row
        Where the image is now, and the number of the caption in the file, from 0; results that are saved do not keep these.
    suggestion
        What a captioner says of the image, where it was asked.
    """

    id: str
    caption: str
    image: str | None = None
    lang: str | None = None
    system: str | None = None
    faults: tuple[Fault, ...] = ()
    score: float = float("nan")
    chance: float = float("nan")
    good: float = float("nan")
    better_image: str | None = None
    words: tuple[str, ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)
    doubt: str | None = None
    path: str | None = field(default=None, compare=False)
    row: int = field(default=-1, compare=False)
    suggestion: str | None = None

    @property
    def verdict(self) -> Verdict:
        return min((fault.verdict for fault in self.faults), key=_ORDER.index, default=Verdict.fine)

    @property
    def badness(self) -> tuple[int, int, int, float]:
        """What captions are sorted by: verdict, then how many sure faults, how many in all, and how they fit their image."""
        sure = sum(fault.verdict is Verdict.fix for fault in self.faults)
        return _ORDER.index(self.verdict), -sure, -len(self.faults), 100.0 if self.good != self.good else self.good


@dataclass(repr=False)
class CheckResult(Result):
    """Captions, worst first, each with the reasons why it is bad.

    Attributes
    ----------
    captions
        Worst first.
    signature
        Of the CLIPScore by which images were compared; empty without images.
    calibration
        What its percentiles were measured on.
    """

    kind = "check"

    captions: list[CheckedCaption]
    signature: str = ""
    calibration: str = ""
    warnings: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return str(self)

    def __iter__(self) -> Iterator[CheckedCaption]:
        return iter(self.captions)

    def counts(self) -> dict[Verdict, int]:
        """Verdict -> how many captions."""
        counted = Counter(caption.verdict for caption in self.captions)
        return {verdict: counted[verdict] for verdict in _ORDER}

    def faults(self) -> Counter[tuple[str, Verdict]]:
        """(Kind, verdict) -> how many captions have such a fault."""
        return Counter((fault.kind, fault.verdict) for caption in self.captions for fault in caption.faults)

    def tables(self) -> list[Table]:
        counts = self.counts()
        kinds: list[list[Cell]] = [[kind, verdict, count] for (kind, verdict), count in self.faults().most_common()]
        total = len(self.captions)
        summary = (
            f"{total:,} captions: {counts[Verdict.fix]:,} to fix, {counts[Verdict.look]:,} to look at,"
            f" {counts[Verdict.fine]:,} fine."
        )
        marked = [caption for caption in self.captions if caption.faults]
        worst: list[list[Cell]] = [
            [caption.verdict, caption.id, caption.lang or "", _shortened(caption.caption), _reasons(caption.faults)]
            for caption in marked[:_SHOWN]
        ]
        more = (
            [f"… and {len(marked) - _SHOWN:,} more: write all of them with -o FILE.html, .xlsx or .csv."]
            if len(marked) > _SHOWN
            else []
        )
        tables = [Table(["fault", "verdict", "captions"], kinds, notes=[summary])]
        if worst:
            tables.append(Table(["verdict", "id", "lang", "caption", "reasons"], worst, title="Worst first", notes=more))
        return tables

    def to_rows(self) -> Iterator[ResultRow]:
        """One row per caption, worst first."""
        scored = bool(self.signature)
        with_system = any(caption.system for caption in self.captions)
        doubts = any(caption.doubt for caption in self.captions)
        suggests = any(caption.suggestion for caption in self.captions)
        columns = column_names(self.captions)
        for caption in self.captions:
            row = {
                "verdict": str(caption.verdict),
                "reasons": _reasons(caption.faults),
                "id": caption.id,
                "image": caption.image,
                **({"system": caption.system} if with_system else {}),
                "lang": caption.lang,
                "caption": caption.caption,
                "kinds": ", ".join(dict.fromkeys(fault.kind for fault in caption.faults)),
                **(_score_columns(caption) if scored else {}),
            }
            if suggests:
                row["suggestion"] = caption.suggestion
            if doubts:
                row["doubt"] = caption.doubt
            yield with_columns(row, caption.columns, columns)

    def translated(self, say: Callable[[str], str]) -> Self:
        """The same with the reasons in another language."""
        captions = [
            replace(caption, faults=tuple(fault._replace(reason=say(fault.reason)) for fault in caption.faults))
            for caption in self.captions
        ]
        return replace(self, captions=captions)

    def content(self) -> dict[str, Any]:
        return {
            "signature": self.signature,
            "calibration": self.calibration,
            "counts": {str(verdict): count for verdict, count in self.counts().items()},
            "captions": [_caption_content(caption) for caption in self.captions],
            "warnings": self.warnings,
        }

    @classmethod
    def from_dict(cls, content: Content) -> Self:
        captions = [_caption_from(entry) for entry in content["captions"]]
        return cls(captions, str(content["signature"]), str(content["calibration"]), [str(line) for line in content["warnings"]])


def column_names(captions: Iterable[CheckedCaption]) -> list[str]:
    """The other columns of the file, those of all rows together."""
    return list(dict.fromkeys(name for caption in captions for name in caption.columns))


def with_columns(row: ResultRow, columns: Mapping[str, Any], names: Sequence[str]) -> ResultRow:
    """A row of the result with the file's own columns beside it, none of which takes the place of another."""
    for name in names:
        row[free_name(name, row)] = columns.get(name)
    return row


def _score_columns(caption: CheckedCaption) -> ResultRow:
    return {
        "clipscore": null_if_nan(round(caption.score, 4)),
        "chance_percentile": null_if_nan(round(caption.chance, 1)),
        "good_percentile": null_if_nan(round(caption.good, 1)),
        "better_image": caption.better_image,
        "unsupported_words": ", ".join(caption.words),
    }


def _caption_content(caption: CheckedCaption) -> dict[str, Any]:
    optional = {"image": caption.image, "lang": caption.lang, "system": caption.system, "better_image": caption.better_image}
    numbers = {"clipscore": caption.score, "chance_percentile": caption.chance, "good_percentile": caption.good}
    return {
        "id": caption.id,
        "caption": caption.caption,
        "verdict": str(caption.verdict),
        "faults": [{"kind": fault.kind, "verdict": str(fault.verdict), "reason": fault.reason} for fault in caption.faults],
        **{name: value for name, value in optional.items() if value is not None},
        **{name: value for name, value in numbers.items() if value == value},
        **({"unsupported_words": list(caption.words)} if caption.words else {}),
        **({"columns": dict(caption.columns)} if caption.columns else {}),
        **({"doubt": caption.doubt} if caption.doubt else {}),
        **({"suggestion": caption.suggestion} if caption.suggestion else {}),
    }


def _caption_from(content: Content) -> CheckedCaption:
    faults = tuple(Fault(str(f["kind"]), Verdict(f["verdict"]), str(f["reason"])) for f in content["faults"])
    image, lang, system, better = (
        None if content.get(name) is None else str(content[name]) for name in ("image", "lang", "system", "better_image")
    )
    score, chance, good = (number(content.get(name)) for name in ("clipscore", "chance_percentile", "good_percentile"))
    words = tuple(str(word) for word in content.get("unsupported_words", []))
    return CheckedCaption(
        str(content["id"]), str(content["caption"]), image, lang, system, faults, score, chance, good, better, words,
        dict(content.get("columns", {})), None if content.get("doubt") is None else str(content["doubt"]),
        suggestion=None if content.get("suggestion") is None else str(content["suggestion"]),
    )  # fmt: skip


def _reasons(faults: Sequence[Fault]) -> str:
    return "; ".join(fault.reason for fault in faults)


def _shortened(caption: str) -> str:
    return caption if len(caption) <= _CAPTION_SHOWN else f"{caption[: _CAPTION_SHOWN - 1]}…"
