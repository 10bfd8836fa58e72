"""What METEOR and SPICE need: a Java runtime and the jars that pycocoevalcap brings (the `java` extra)."""

import shutil
from abc import abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np

from caplens.errors import InputError, MissingExtraError
from caplens.metrics.base import Collector, Floats, Metric, Scores, mean_pool, mean_statistics, signature
from caplens.metrics.lexical import TokenCollector


def find_java() -> str | None:
    return shutil.which("java")


def coco_folder() -> Path | None:
    """Where pycocoevalcap is installed."""
    spec = find_spec("pycocoevalcap")
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


class JavaMetric(Metric):
    """A metric that hands Penn Treebank tokens of English captions to a Java program."""

    requires = frozenset({"caption", "references"})
    version: ClassVar[str]
    corpus_is_mean: ClassVar[bool] = True

    def __init__(self, tokenizer: str | None = None, lang: str | None = None) -> None:
        self.tokenizer, self.lang = tokenizer, lang
        java, folder = find_java(), coco_folder()
        if java is None:
            install = "your system's package manager, e.g. apt-get install default-jre-headless"
            raise MissingExtraError(self.name, "a Java runtime", install)
        if folder is None:
            raise MissingExtraError(self.name, "pycocoevalcap", "pip install 'caplens[java]'")
        self.java, self.folder = java, folder / self.name
        self.prepare()

    def prepare(self) -> None:
        """Complain before any caption is read if something else is missing."""

    @abstractmethod
    def score_texts(self, candidates: Sequence[str], references: Sequence[list[str]]) -> tuple[float, Floats]:
        """Corpus score and values."""

    def collector(self) -> TokenCollector:
        return TokenCollector(self.tokenizer, self.lang, self.requires)

    def compute(self, collected: Collector, size: int) -> Scores:
        assert isinstance(collected, TokenCollector)
        others = [part.lang for part in collected.parts if part.lang != "en"]
        if others:
            raise InputError(
                f"{self.name} is for English captions only, but there are some in {', '.join(others)}. Leave it out."
            )
        values = np.full(size, np.nan)
        corpus = float("nan")
        for part in collected.parts:
            candidates, references = zip(*part.entries.strings(), strict=True)
            corpus, values[part.rows] = self.score_texts(candidates, references)
        made = signature(self.name, tok=collected.signature, version=self.version)
        return Scores(values, corpus, made, mean_statistics(values), mean_pool, {"en": corpus}, self.corpus_is_mean)
