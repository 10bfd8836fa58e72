"""What METEOR and SPICE need: a Java runtime and the jars that pycocoevalcap brings (the `java` extra)."""

import shutil
from abc import abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from caplens.arrays import Floats
from caplens.errors import InputError, MissingExtraError
from caplens.libraries import install_command
from caplens.metrics.base import Collector, Metric, signature
from caplens.metrics.lexical import TokenCollector
from caplens.metrics.options import ScoringOptions
from caplens.results.row_errors import RowError
from caplens.results.scores import Scores
from caplens.stats.means import mean_pool, mean_statistics
from caplens.text.tokenizer import TokenizerChoice


def find_java() -> str | None:
    return shutil.which("java")


def coco_folder() -> Path | None:
    """Where pycocoevalcap is installed."""
    spec = find_spec("pycocoevalcap")
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


class JavaMetric(Metric):
    """A metric that hands Penn Treebank tokens of English captions to a Java program."""

    needs = frozenset({"caption", "references"})
    version: ClassVar[str]
    corpus_is_mean: ClassVar[bool] = True

    def __init__(self, tokenizer: TokenizerChoice | None = None, lang: str | None = None) -> None:
        self.tokenizer, self.lang = tokenizer, lang
        java, folder = find_java(), coco_folder()
        if java is None:
            install = "your system's package manager, e.g. apt-get install default-jre-headless"
            raise MissingExtraError(self.name, "a Java runtime", install)
        if folder is None:
            raise MissingExtraError(self.name, "pycocoevalcap", install_command("java"))
        self.java, self.folder = java, folder / self.name
        self.prepare()

    def prepare(self) -> None:
        """Raise an error before any caption is read if something else is missing."""

    @abstractmethod
    def score_texts(self, candidates: Sequence[str], references: Sequence[list[str]]) -> tuple[float, Floats]:
        """Corpus score and values."""

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Self:
        return cls(options.tokenizer, options.lang)

    @property
    def needs_all_captions(self) -> bool:
        return True

    def collectors(self) -> tuple[TokenCollector]:
        return (TokenCollector(self.tokenizer, self.lang, self.needs),)

    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        (collector,) = collected
        assert isinstance(collector, TokenCollector)
        others = [part for part in collector.parts if part.lang != "en"]
        if others and len(others) == len(collector.parts):
            languages = ", ".join(part.lang for part in others)
            raise InputError(f"{self.name} is for English captions only, but these are in {languages}. Leave it out.")
        errors = {row: RowError(f"{self.name} is for English captions only") for part in others for row in part.rows.tolist()}
        values = np.full(size, np.nan)
        corpus = float("nan")
        for part in collector.parts:
            if part.lang == "en":
                candidates, references = zip(*part.corpus.strings(), strict=True)
                corpus, values[part.rows] = self.score_texts(candidates, references)
        line = signature(self.name, tok=collector.signature, version=self.version)
        statistics = mean_statistics(values)
        return Scores(values, corpus, line, statistics, mean_pool, {"en": corpus}, self.corpus_is_mean, errors=errors)
