"""What BLEU, ROUGE-L, CIDEr and length share: samples become integer tokens, language by language."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.metrics.base import Collector, Floats, Metric, Pool, Scores, mean_pool, mean_statistics, signature
from caplens.text import default_tokenizer, get_tokenizer
from caplens.text.corpus import Entries, EntriesBuilder, Ints


@dataclass(frozen=True)
class Part:
    """The entries of one language and their places in the result."""

    lang: str
    rows: Ints
    entries: Entries


class TokenCollector(Collector):
    """Tokenises samples on arrival, each language apart: words and their frequencies are not shared between languages."""

    def __init__(self, tokenizer: str | None, lang: str | None, requires: frozenset[str]) -> None:
        super().__init__()
        self._tokenizer, self._lang = tokenizer, lang
        self.key = ("tokens", tokenizer, lang, requires)
        self._with_references = "references" in requires
        self._builders: dict[str, EntriesBuilder] = {}
        self._rows: dict[str, list[int]] = {}
        self._unlabelled = self._foreign = self._blank = 0
        if tokenizer is not None:
            get_tokenizer(tokenizer, base_language(lang or "en"))

    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        by_language: dict[str, list[int]] = {}
        for index, sample in enumerate(samples):
            tag = sample.lang or self._lang
            by_language.setdefault("en" if tag is None else base_language(tag), []).append(index)
            if tag is None:
                self._unlabelled += 1
                self._foreign += _is_not_latin(sample.caption or "")
        for lang, indices in by_language.items():
            if lang not in self._builders:
                tokenizer = get_tokenizer(self._tokenizer or default_tokenizer(lang), lang)
                self._builders[lang], self._rows[lang] = EntriesBuilder(tokenizer), []
            self._rows[lang].extend(rows[index] for index in indices)
            chosen = [samples[index] for index in indices]
            references = [self._references(sample) for sample in chosen]
            self._builders[lang].add([sample.caption or "" for sample in chosen], references)

    def _references(self, sample: Sample) -> Sequence[str]:
        """Those that say something."""
        if not self._with_references:
            return ()
        found = [text for text in sample.references if text and not text.isspace()]
        self._blank += len(sample.references) - len(found)
        return found

    @cached_property
    def parts(self) -> list[Part]:
        """What was collected; nothing can be added once this was asked for."""
        return [Part(lang, np.array(self._rows[lang]), builder.build()) for lang, builder in self._builders.items()]

    @property
    def tokenizers(self) -> dict[str, str]:
        return {lang: builder.tokenizer.name for lang, builder in self._builders.items()}

    @property
    def signature(self) -> str:
        """Tokenizers and the languages they served; English by itself goes without saying."""
        served: dict[str, list[str]] = {}
        for lang, builder in sorted(self._builders.items()):
            served.setdefault(builder.tokenizer.signature, []).append(lang)
        return ",".join(name if langs == ["en"] else f"{name}[{' '.join(langs)}]" for name, langs in served.items())

    def warnings(self) -> list[str]:
        found = []
        if self._foreign and self._tokenizer is None:
            found.append(
                f"{self._foreign} of {self._unlabelled} captions without a language are not in Latin script but were"
                " tokenised as English; give their language with --lang (or in 'lang')."
            )
        if self._blank:
            found.append(f"{self._blank} empty references were left out.")
        return found


def _is_not_latin(text: str) -> bool:
    if text.isascii():
        return False
    letters = [character for character in text if character.isalpha()]
    return sum(character > "\u02ff" for character in letters) * 2 > len(letters)


class LexicalMetric(Metric):
    """A metric of tokens. Subclasses say what one language's entries score."""

    requires: ClassVar[frozenset[str]] = frozenset({"caption", "references"})
    pool: Pool = staticmethod(mean_pool)

    def __init__(self, tokenizer: str | None = None, lang: str | None = None) -> None:
        self.tokenizer, self.lang = tokenizer, lang

    def collector(self) -> TokenCollector:
        return TokenCollector(self.tokenizer, self.lang, self.requires)

    @abstractmethod
    def score_entries(self, entries: Entries) -> tuple[Floats, Floats]:
        """Value and statistics of each entry; statistics are those of the mean unless `pool` says otherwise."""

    @abstractmethod
    def choices(self) -> tuple[str, dict[str, object]]:
        """The name and the options for the signature."""

    def compute(self, collected: Collector, size: int) -> Scores:
        assert isinstance(collected, TokenCollector)
        values = np.full(size, np.nan)
        statistics: Floats | None = None
        by_language: dict[str, float] = {}
        counts: set[int] = set()
        for part in collected.parts:
            part_values, part_statistics = self.score_entries(part.entries)
            if statistics is None:
                statistics = np.zeros((size, part_statistics.shape[1]))
            values[part.rows], statistics[part.rows] = part_values, part_statistics
            by_language[part.lang] = float(self.pool(part_statistics.sum(axis=0)))
            counts.update(np.unique(part.entries.reference_counts).tolist())
        if statistics is None:
            statistics = mean_statistics(values)
        corpus = float(self.pool(statistics.sum(axis=0))) if by_language else float("nan")
        return Scores(values, corpus, self._signature(collected.signature, counts), statistics, self.pool, by_language)

    def _signature(self, tok: str, reference_counts: set[int]) -> str:
        name, choices = self.choices()
        if "references" in self.requires and reference_counts:
            low, high = min(reference_counts), max(reference_counts)
            choices["refs"] = low if low == high else f"{low}-{high}"
        return signature(name, tok=tok, **choices)
