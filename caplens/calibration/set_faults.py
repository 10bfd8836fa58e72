"""Faults that show when the captions of a file are seen together: one caption on several images."""

from collections.abc import Iterator, Sequence

from caplens.data.sample import Sample
from caplens.results.check import Fault, Verdict
from caplens.text.normalize import without_punctuation

DUPLICATE = "duplicate"
_FEWEST_WORDS, _MOST_WORDS = 8, 300
"""Shorter captions that differ in one word often are about two images that differ in one thing."""
_NAMED = 3
CaptionWords = tuple[str, ...]


def duplicate_faults(samples: Sequence[Sample], langs: Sequence[str]) -> dict[int, Fault]:
    """Row -> a fault, where another image has the same caption, or one that differs in a word.

    Case, punctuation and spaces do not matter. Captions of the same image, or of several systems, may be equal.
    """
    words = [tuple(without_punctuation(sample.caption or "").casefold().split()) for sample in samples]
    same: dict[tuple[str, str | None, CaptionWords], list[int]] = {}
    for row, (sample, lang, of_row) in enumerate(zip(samples, langs, words, strict=True)):
        if of_row:
            same.setdefault((lang, sample.system, of_row), []).append(row)
    faults: dict[int, Fault] = {}
    for rows in same.values():
        faults |= _shared_by(samples, rows, "another image has the same caption", "other images have the same caption")
    one_word_apart: dict[tuple[str, str | None, int], list[int]] = {}
    for (lang, system, of_row), rows in same.items():
        # What one caption takes grows with the square of its words.
        if _FEWEST_WORDS <= len(of_row) <= _MOST_WORDS:
            for shortened in _without_one(of_row):
                # Only the hash is kept: a long caption has as many neighbours as words.
                one_word_apart.setdefault((lang, system, hash(shortened)), []).append(rows[0])
    for rows in one_word_apart.values():
        if len(rows) > 1:
            near = _shared_by(
                samples, rows, "another image has nearly the same caption", "other images have nearly the same caption"
            )
            faults = near | faults
    return faults


def _without_one(words: CaptionWords) -> Iterator[CaptionWords]:
    """The caption without each of its words in turn; captions that differ in a word, or lack one, share one of these."""
    yield words
    for place in range(len(words)):
        yield words[:place] + words[place + 1 :]


def _shared_by(samples: Sequence[Sample], rows: Sequence[int], one: str, several: str) -> dict[int, Fault]:
    id_of_group: dict[str, str] = {}
    for row in rows:
        id_of_group.setdefault(samples[row].group, samples[row].id)
    groups = list(id_of_group)
    if len(groups) < 2:
        return {}
    faults = {}
    for row in rows:
        others = [group for group in groups[: _NAMED + 1] if group != samples[row].group][:_NAMED]
        ids = ", ".join(id_of_group[group] for group in others)
        more = f" and {len(groups) - 1 - len(others):,} more" if len(groups) - 1 > len(others) else ""
        reason = f"{one} ({ids})" if len(groups) == 2 else f"{len(groups) - 1:,} {several} ({ids}{more})"
        faults[row] = Fault(DUPLICATE, Verdict.look, reason)
    return faults
