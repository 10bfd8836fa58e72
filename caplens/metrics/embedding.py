"""What CLIPScore, PAC-S and MCS share: captions, images and references become cosines.

Cosines are taken while samples stream by, a window at a time, and only they are kept: vectors stay in the engine's store, and
memory does not grow with them.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from caplens.data.languages import base_language
from caplens.data.sample import Picture, Sample
from caplens.embed import Engine, Text
from caplens.errors import InputError
from caplens.metrics.base import Collector, Floats, Metric, Scores, mean_of, mean_pool, mean_statistics, signature

_WINDOW = 16_384
"""Samples that are encoded together."""
_CHUNK = 2_048
"""Samples whose vectors are in memory together."""

Prompt = str | Mapping[str, str]
"""A prompt for all captions, or language -> prompt; languages that are not named have what the metric gives them."""


class Prompts:
    """The prompt of each language."""

    def __init__(self, prompt: Prompt | None, default: Mapping[str, str]) -> None:
        if prompt is not None and not isinstance(prompt, str | Mapping):
            raise InputError(f"a prompt is a text, or a text for each language, not {prompt!r}.")
        self._for_all = prompt if isinstance(prompt, str) else ""
        self._named = {} if isinstance(prompt, str) else dict(default)
        for lang, text in prompt.items() if isinstance(prompt, Mapping) else ():
            self._named[base_language(lang)] = text
        self.key = (self._for_all, *sorted(self._named.items()))

    def __call__(self, lang: str) -> str:
        return self._named.get(lang, self._for_all)

    def signature(self, langs: Sequence[str]) -> str:
        """`A photo depicts ` or, with several languages, `A photo depicts [en],none[de fr]`."""
        users: dict[str, list[str]] = {}
        for lang in sorted(langs):
            users.setdefault(self(lang).replace("|", r"\|") or "none", []).append(lang)
        return ",".join(text if len(users) == 1 else f"{text}[{' '.join(some)}]" for text, some in users.items())


class CosineCollector(Collector):
    """Takes the cosines of captions with their images and, if asked, with the nearest of their references."""

    def __init__(self, engine: Engine, prompts: Prompts, lang: str | None, requires: frozenset[str]) -> None:
        super().__init__()
        self.engine, self.prompts = engine, prompts
        self.key = ("cosines", id(engine), prompts.key, lang, requires)
        self._lang, self._with_references = lang, "references" in requires
        self._waiting: list[tuple[int, Sample]] = []
        self._languages: dict[str, int] = {}
        self._parts: list[tuple[NDArray[np.int64], Floats, Floats, NDArray[np.int64]]] = []
        self._reference_counts: set[int] = set()
        self.truncated: dict[int, str] = {}
        """Rows with texts that are longer than the model takes, and their languages."""
        self.doubts: dict[int, str] = {}
        """Rows of which the model is no good judge, and why."""

    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        self._waiting += zip(rows, samples, strict=True)
        if len(self._waiting) >= _WINDOW:
            self.finish()

    def finish(self) -> None:
        """Take the cosines of what is waiting."""
        waiting, self._waiting = self._waiting, []
        samples = [sample for _, sample in waiting]
        texts = (text for sample in samples for text in (self._caption(sample), *self._references(sample)))
        self.engine.prepare([_picture(sample) for sample in samples], texts)
        for start in range(0, len(waiting), _CHUNK):
            self._take_cosines(waiting[start : start + _CHUNK])

    def _language(self, sample: Sample) -> str:
        return base_language(sample.lang or self._lang or "en")

    def _caption(self, sample: Sample) -> Text:
        lang = self._language(sample)
        return Text(sample.caption or "", self.prompts(lang), lang if self.engine.backbone.reads_language else "")

    def _references(self, sample: Sample) -> list[Text]:
        if not self._with_references:
            return []
        caption = self._caption(sample)
        return [caption._replace(caption=text) for text in sample.references if text and not text.isspace()]

    def _take_cosines(self, waiting: list[tuple[int, Sample]]) -> None:
        images = self.engine.images([_picture(sample) for _, sample in waiting])
        self.problems |= {waiting[index][0]: reason for index, reason in images.problems.items()}
        seen = [index for index in range(len(waiting)) if index not in images.problems]
        if not seen:
            return
        chosen = [waiting[index] for index in seen]
        captions = self.engine.texts([self._caption(sample) for _, sample in chosen])
        caption = captions.vectors[captions.index]
        to_image = np.einsum("nd,nd->n", images.vectors[images.index[seen]], caption, dtype=np.float64)
        cut = captions.marked
        to_reference = np.full(len(chosen), np.nan)
        if self._with_references:
            by_sample = [self._references(sample) for _, sample in chosen]
            counts = np.array([len(some) for some in by_sample])
            references = self.engine.texts([text for some in by_sample for text in some])
            mine = np.repeat(caption, counts, axis=0)
            cosines = np.einsum("nd,nd->n", references.vectors[references.index], mine, dtype=np.float64)
            starts = np.cumsum(counts) - counts
            to_reference = np.maximum.reduceat(cosines, starts)
            cut = cut | np.logical_or.reduceat(references.marked, starts)
            self._reference_counts.update(counts.tolist())
        rows = np.array([row for row, _ in chosen])
        langs = [self._languages.setdefault(self._language(sample), len(self._languages)) for _, sample in chosen]
        self._parts.append((rows, to_image, to_reference, np.array(langs)))
        self.truncated |= {chosen[index][0]: self._language(chosen[index][1]) for index in np.flatnonzero(cut).tolist()}
        for (row, sample), strange in zip(chosen, images.marked[seen].tolist(), strict=True):
            about_text = self.engine.backbone.doubt(sample.caption or "", sample.lang or self._lang)
            about_image = f"{self.engine.backbone.name} was not trained on such images" if strange else None
            if about_text or about_image:
                self.doubts[row] = " and ".join(reason for reason in (about_text, about_image) if reason)

    def collected(self) -> Iterator[tuple[NDArray[np.int64], Floats, Floats]]:
        """Rows and their cosines to images and to references."""
        return ((rows, to_image, to_reference) for rows, to_image, to_reference, _ in self._parts)

    def means(self, values: Floats) -> dict[str, float]:
        """The mean of each language's values."""
        if not self._parts:
            return {}
        rows, langs = (np.concatenate([part[place] for part in self._parts]) for place in (0, 3))
        return {lang: float(values[rows[langs == number]].mean()) for lang, number in self._languages.items()}

    @property
    def languages(self) -> list[str]:
        return list(self._languages)

    @property
    def reference_counts(self) -> set[int]:
        return self._reference_counts

    def warnings(self) -> list[str]:
        counted = Counter(self.doubts.values()).most_common()
        doubtful = [f"do not trust the scores of {count} of the captions: {reason}." for reason, count in counted]
        return doubtful + self._lengths()

    def _lengths(self) -> list[str]:
        if not self.truncated:
            return []
        counts = ", ".join(f"{lang} {count}" for lang, count in sorted(Counter(self.truncated.values()).items()))
        what = "captions or references of theirs" if self._with_references else "captions"
        if self.engine.long == "cut":
            how = "were cut; --long split takes the mean over their sentences instead"
        else:
            how = "have sentences that were cut"
        return [f"{len(self.truncated)} {what} ({counts}) are longer than the model takes and {how}."]


def _picture(sample: Sample) -> Picture:
    assert sample.image is not None
    return sample.image


class EmbeddingMetric(Metric):
    """A metric of cosines. Subclasses say what they make of them."""

    requires: ClassVar[frozenset[str]] = frozenset({"caption", "image"})
    prompt: ClassVar[Mapping[str, str]] = {}
    """Language -> what goes before captions unless the user wants something else."""
    weight: float

    def __init__(self, engine: Engine, prompt: Prompt | None = None, lang: str | None = None) -> None:
        self.engine, self.lang = engine, lang
        backbone = engine.backbone
        self.weight = backbone.weight or self.weight
        self.prompts = Prompts(prompt, self.prompt if backbone.prompted else {})

    @abstractmethod
    def score_cosines(self, to_image: Floats, to_reference: Floats) -> Floats:
        """The scores of captions from their cosines to their images and to the nearest of their references."""

    def collector(self) -> CosineCollector:
        return CosineCollector(self.engine, self.prompts, self.lang, self.requires)

    def compute(self, collected: Collector, size: int) -> Scores:
        assert isinstance(collected, CosineCollector)
        values = np.full(size, np.nan)
        for rows, to_image, to_reference in collected.collected():
            values[rows] = self.score_cosines(to_image, to_reference)
        return Scores(
            values,
            mean_of(values),
            self._signature(collected),
            mean_statistics(values),
            mean_pool,
            collected.means(values),
            warnings=self.warnings(),
            truncated=dict(collected.truncated),
            doubts=dict(collected.doubts),
        )

    def warnings(self) -> list[str]:
        return []

    def _signature(self, collected: CosineCollector) -> str:
        backbone = self.engine.backbone
        counts = collected.reference_counts
        references = {"refs": f"{min(counts)}-{max(counts)}" if len(counts) > 1 else min(counts)} if counts else {}
        return signature(
            self.name,
            model=f"{backbone.name}@{backbone.fingerprint[:8]}",
            prompt=self.prompts.signature(collected.languages),
            w=f"{self.weight:g}",
            dtype=backbone.dtype,
            long=self.engine.long,
            truncated=len(collected.truncated),
            **references,
        )
