"""What BLEU, ROUGE-L, CIDEr and length share: captions become integer tokens, language by language."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from caplens.arrays import Floats, Ints
from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import option
from caplens.metrics.base import Collector, Metric, signature
from caplens.metrics.options import ScoringOptions
from caplens.results.scores import Scores
from caplens.stats.exact import column_sums
from caplens.stats.means import mean_pool, mean_statistics
from caplens.stats.significance import Pool
from caplens.text.corpus import CorpusBuilder, TokenizedCorpus
from caplens.text.tokenizer import TokenizerChoice, tokenizer_for


@dataclass(frozen=True)
class LanguagePart:
    """The captions of one language and their rows in the result."""

    lang: str
    rows: Ints
    corpus: TokenizedCorpus


class TokenCollector(Collector):
    """Tokenises samples on arrival, each language apart: words and their frequencies are not shared between languages."""

    def __init__(self, tokenizer: TokenizerChoice | None, lang: str | None, needs: frozenset[str]) -> None:
        super().__init__(needs)
        self._tokenizer, self._lang = tokenizer, lang
        self.key = ("tokens", tokenizer, lang, needs)
        self._with_references = "references" in needs
        self._builders: dict[str, CorpusBuilder] = {}
        self._rows: dict[str, list[int]] = {}
        self._unlabelled = self._foreign = self._blank = 0
        if tokenizer is not None:
            tokenizer_for(base_language(lang or "en"), tokenizer)

    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        by_language: dict[str, list[int]] = {}
        for index, sample in enumerate(samples):
            by_language.setdefault(self._language(sample), []).append(index)
        for lang, indices in by_language.items():
            if lang not in self._builders:
                self._builders[lang], self._rows[lang] = CorpusBuilder(tokenizer_for(lang, self._tokenizer)), []
            self._rows[lang].extend(rows[index] for index in indices)
            of_language = [samples[index] for index in indices]
            references = [self._references(sample) for sample in of_language]
            self._builders[lang].add([sample.caption or "" for sample in of_language], references)

    def _language(self, sample: Sample) -> str:
        tag = sample.lang or self._lang
        if tag is None:
            self._unlabelled += 1
            self._foreign += _is_not_latin(sample.caption or "")
            return "en"
        return base_language(tag)

    def _references(self, sample: Sample) -> Sequence[str]:
        """Those that are not blank."""
        if not self._with_references:
            return ()
        references = [text for text in sample.references if text and not text.isspace()]
        self._blank += len(sample.references) - len(references)
        return references

    @cached_property
    def parts(self) -> list[LanguagePart]:
        """What was collected; nothing can be added after this was read."""
        return [LanguagePart(lang, np.array(self._rows[lang]), builder.build()) for lang, builder in self._builders.items()]

    @property
    def tokenizers(self) -> dict[str, str]:
        return {lang: builder.tokenizer.name for lang, builder in self._builders.items()}

    @property
    def signature(self) -> str:
        """Tokenizers and the languages they served; English by itself is not named."""
        served: dict[str, list[str]] = {}
        for lang, builder in sorted(self._builders.items()):
            served.setdefault(builder.tokenizer.signature, []).append(lang)
        return ",".join(name if langs == ["en"] else f"{name}[{' '.join(langs)}]" for name, langs in served.items())

    def warnings(self) -> list[str]:
        warnings = []
        if self._foreign and self._tokenizer is None:
            warnings.append(
                f"{self._foreign} of {self._unlabelled} captions without a language are not in Latin script but were"
                f" tokenised as English; give their language with {option('lang')} (or in the column 'lang')."
            )
        vanished = sum(builder.without_tokens for builder in self._builders.values())
        if vanished:
            warnings.append(f"{vanished} captions have no words, only signs that the tokenizer drops, and score 0.")
        if self._blank:
            warnings.append(f"{self._blank} empty references were left out.")
        return warnings


def _is_not_latin(text: str) -> bool:
    if text.isascii():
        return False
    letters = [character for character in text if character.isalpha()]
    return sum(character > "\u02ff" for character in letters) * 2 > len(letters)


class LexicalMetric(Metric):
    """A metric of tokens. Subclasses say what one language's entries score."""

    needs: frozenset[str] = frozenset({"caption", "references"})
    pool: Pool = staticmethod(mean_pool)

    def __init__(self, tokenizer: TokenizerChoice | None = None, lang: str | None = None) -> None:
        self.tokenizer, self.lang = tokenizer, lang

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Self:
        return cls(options.tokenizer, options.lang)

    def collectors(self) -> tuple[TokenCollector]:
        return (TokenCollector(self.tokenizer, self.lang, self.needs),)

    @abstractmethod
    def score_corpus(self, corpus: TokenizedCorpus) -> tuple[Floats, Floats]:
        """Value and statistics of each caption; statistics are those of the mean unless `pool` says otherwise."""

    def score_part(self, corpus: TokenizedCorpus, lang: str) -> tuple[Floats, Floats]:
        """The same of captions in one language, where it differs from the COCO evaluation on purpose."""
        return self.score_corpus(corpus)

    @abstractmethod
    def signature_fields(self) -> tuple[str, dict[str, object]]:
        """The name and the options in the signature."""

    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        (collector,) = collected
        assert isinstance(collector, TokenCollector)
        values = np.full(size, np.nan)
        statistics: Floats | None = None
        by_language: dict[str, float] = {}
        counts: set[int] = set()
        for part in collector.parts:
            part_values, part_statistics = self.score_part(part.corpus, part.lang)
            if statistics is None:
                statistics = np.zeros((size, part_statistics.shape[1]))
            values[part.rows], statistics[part.rows] = part_values, part_statistics
            by_language[part.lang] = float(self.pool(column_sums(part_statistics)))
            counts.update(np.unique(part.corpus.reference_counts).tolist())
        if statistics is None:
            statistics = mean_statistics(values)
        corpus = float(self.pool(column_sums(statistics))) if by_language else float("nan")
        return Scores(values, corpus, self._signature(collector.signature, counts), statistics, self.pool, by_language)

    def _signature(self, tok: str, reference_counts: set[int]) -> str:
        name, fields = self.signature_fields()
        if "references" in self.needs and reference_counts:
            low, high = min(reference_counts), max(reference_counts)
            fields["refs"] = low if low == high else f"{low}-{high}"
        return signature(name, tok=tok, **fields)
