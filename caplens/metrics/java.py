"""What METEOR and SPICE need: a Java runtime and the jars that pycocoevalcap brings (the `java` extra)."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from typing import Any

import numpy as np

from caplens.errors import CaplensError, InputError, MissingExtraError
from caplens.metrics.base import Collector, Floats, Metric, Scores, mean_pool, mean_statistics, signature
from caplens.metrics.lexical import TokenCollector


def find_java() -> str | None:
    return shutil.which("java")


def coco_scorer(metric: str, module: str, class_name: str) -> Any:
    """pycocoevalcap's class for `metric`, or one sentence on what is missing."""
    if find_java() is None:
        raise MissingExtraError(
            metric, "a Java runtime", "your system's package manager, e.g. apt-get install default-jre-headless"
        )
    try:
        return getattr(import_module(f"pycocoevalcap.{module}"), class_name)
    except ImportError:
        raise MissingExtraError(metric, "pycocoevalcap", "pip install 'caplens[java]'") from None


@contextmanager
def java_failures(metric: str, advice: str) -> Iterator[None]:
    """Whatever goes wrong around the Java program becomes one sentence, and what its driver prints goes to the error stream."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (OSError, ValueError, EOFError, RuntimeError, subprocess.SubprocessError) as error:
        raise CaplensError(f"{metric} could not run its Java program ({error}). {advice}") from error


class JavaMetric(Metric):
    """A metric that hands Penn Treebank tokens of English captions to a Java program."""

    requires = frozenset({"caption", "references"})
    version: str
    corpus_is_mean = True

    def __init__(self, tokenizer: str | None = None, lang: str | None = None) -> None:
        self.tokenizer, self.lang = tokenizer, lang
        self.scorer = self.load()

    def load(self) -> Any:
        """The Java program's driver; raises at once if something is missing, before any caption is read."""
        raise NotImplementedError

    def score_texts(self, candidates: Sequence[str], references: Sequence[list[str]]) -> tuple[float, Floats]:
        """Corpus score and values."""
        raise NotImplementedError

    def collector(self) -> TokenCollector:
        return TokenCollector(self.tokenizer, self.lang, self.requires)

    def compute(self, collected: Collector, size: int) -> Scores:
        assert isinstance(collected, TokenCollector)
        (part,) = collected.parts[:1]
        others = [part.lang for part in collected.parts if part.lang != "en"]
        if others:
            raise InputError(
                f"{self.name} is for English captions only, but there are some in {', '.join(map(repr, others))}. Leave it out."
            )
        texts = list(part.entries.strings())
        values = np.full(size, np.nan)
        corpus, values[part.rows] = self.score_texts([text for text, _ in texts], [references for _, references in texts])
        made = signature(self.name, tok=collected.tokenizers["en"], version=self.version)
        return Scores(
            values,
            corpus,
            made,
            mean_statistics(values),
            mean_pool,
            {"en": corpus},
            corpus_is_pooled=self.corpus_is_mean,
        )
