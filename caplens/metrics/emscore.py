"""EMScore (Shi et al. 2022) and PAC-S for video (Sarto et al. 2023): how near a caption is to a video, as a whole and by parts.

Coarse is the cosine of the caption and the mean of the frames. Fine compares every word with every frame: P is the mean over
words of the nearest frame, weighted by how rare a word is, R the mean over frames of the nearest word, and fine is their F1. The
score is the mean of coarse and fine; with references, the mean of that against the video and against the nearest reference.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Literal, NamedTuple, Self

import numpy as np

from caplens.arrays import Floats, Vectors
from caplens.data.languages import base_language
from caplens.data.reading import SampleFile
from caplens.data.sample import Sample
from caplens.embed import Engine, Text
from caplens.embed.videos import FrameChoice, clip_of
from caplens.errors import InputError
from caplens.metrics.base import Collector, Metric, signature
from caplens.metrics.options import ScoringOptions
from caplens.metrics.pacs import checkpoint_warnings
from caplens.results.row_errors import RowError
from caplens.results.scores import Scores
from caplens.stats.means import mean_of, mean_pool, mean_statistics

Maximum = Literal["parts", "whole"]
"""Over references, the maximum of P, R, F and coarse separately (EMScore's code), or of the score (equation 6 of PAC-S)."""
_CHUNK = 512
_NO_IDF = "none"


class Match(NamedTuple):
    """How a caption matches a video, or a reference."""

    coarse: float
    precision: float
    recall: float

    @property
    def fine(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    @property
    def score(self) -> float:
        return (self.coarse + self.fine) / 2


class Words(NamedTuple):
    """A text: the vectors of its tokens, how much each weighs, and its own vector."""

    tokens: Vectors
    weights: Floats
    vector: Vectors
    full: bool
    """Whether it has as many tokens as the model takes."""


class RareWords:
    """How rare token ids are in a corpus: log((N + 1) / (df + 1))."""

    def __init__(self, documents: Iterable[Sequence[int]]) -> None:
        counts: Counter[int] = Counter()
        number = 0
        for ids in documents:
            counts.update(set(ids))
            number += 1
        content = hashlib.sha256(repr(sorted(counts.items())).encode()).hexdigest()
        self.documents, self.content = number, content[:8]
        """The number of documents, and a hash of their counts."""
        self._weights = {token: float(np.log((number + 1) / (count + 1))) for token, count in counts.items()}
        self._unseen = float(np.log(number + 1))
        self._mean = float(np.mean(list(self._weights.values()))) if self._weights else 1.0

    def weights(self, ids: Sequence[int]) -> Floats:
        """Of the tokens of a text, whose last is the end marker: it weighs as much as words on average."""
        weights = np.array([self._weights.get(token, self._unseen) for token in ids])
        weights[-1] = self._mean
        return weights


def match_video(words: Words, frames: Vectors) -> Match:
    """A caption against the frames of a video."""
    similarities = words.tokens.astype(np.float64) @ frames.T.astype(np.float64)
    video = frames.astype(np.float64).mean(0)
    coarse = float(words.vector.astype(np.float64) @ (video / np.linalg.norm(video)))
    return Match(coarse, _mean(similarities.max(1), words.weights), float(_nearest(similarities.T, words).mean()))


def match_texts(words: Words, reference: Words) -> Match:
    """A caption against a reference."""
    similarities = words.tokens.astype(np.float64) @ reference.tokens.T.astype(np.float64)
    coarse = float(words.vector.astype(np.float64) @ reference.vector.astype(np.float64))
    precision = _mean(_nearest(similarities, reference), words.weights)
    return Match(coarse, precision, _mean(_nearest(similarities.T, words), reference.weights))


def _nearest(similarities: Floats, words: Words) -> Floats:
    """The nearest word; the positions after the end of a text, which EMScore looks at too, have the similarity 0."""
    nearest: Floats = similarities.max(1)
    return nearest if words.full else np.maximum(nearest, 0.0)


def _mean(values: Floats, weights: Floats) -> float:
    """The weighted mean; the plain one where no word weighs anything, as in a corpus of one caption."""
    total = float(weights.sum())
    return float(values @ weights) / total if total else float(values.mean())


def best_match(matches: Sequence[Match], maximum: Maximum) -> float:
    """The score against the nearest of several references."""
    if maximum == "whole":
        return max(match.score for match in matches)
    return (max(match.coarse for match in matches) + max(match.fine for match in matches)) / 2


class VideoCollector(Collector):
    """Keeps captions of videos, and the token ids of the corpus that says how rare words are."""

    def __init__(self, engine: Engine, choice: FrameChoice, idf: str | None, lang: str | None, needs: frozenset[str]) -> None:
        super().__init__(needs)
        self.engine, self.choice, self._lang = engine, choice, lang
        self.key = ("videos", id(engine), choice, idf, lang, needs)
        self.rows: list[tuple[int, Sample]] = []
        self.languages: dict[int, str] = {}
        self.coverage_warnings: dict[int, str] = {}
        """Row -> why the model cannot be trusted there."""

    def add(self, rows: Sequence[int], samples: Sequence[Sample]) -> None:
        self.rows += zip(rows, samples, strict=True)

    def finish(self) -> None:
        """Encode all videos and texts, and drop captions whose video cannot be read."""
        kept = []
        for start in range(0, len(self.rows), _CHUNK):
            chunk = self.rows[start : start + _CHUNK]
            frames = self.engine.frames([clip_of(sample) for _, sample in chunk], self.choice)
            self.errors |= {chunk[place][0]: RowError(reason, unusable=True) for place, reason in frames.errors.items()}
            kept += [pending for place, pending in enumerate(chunk) if place not in frames.errors]
        self.rows = kept
        self.languages = {row: self.language(sample) for row, sample in kept}
        for row, sample in kept:
            reason = self.engine.backbone.coverage_warning(sample.caption or "", sample.lang or self._lang)
            if reason:
                self.coverage_warnings[row] = reason

    def language(self, sample: Sample) -> str:
        return base_language(sample.lang or self._lang or "en")

    def warnings(self) -> list[str]:
        counts = Counter(self.coverage_warnings.values()).most_common()
        return [f"do not trust the scores of {count} of the captions: {reason}." for reason, count in counts]


class EmScore(Metric):
    """EMScore of captions of videos."""

    name = "emscore"
    needs: frozenset[str] = frozenset({"caption", "video", "encoder"})
    maximum: Maximum = "parts"

    def __init__(
        self,
        engine: Engine,
        choice: FrameChoice = FrameChoice(),  # noqa: B008
        idf: str | PathLike[str] | None = None,
        lang: str | None = None,
    ) -> None:
        self.engine, self.choice, self.lang, self._idf = engine, choice, lang, idf

    @property
    def needs_all_captions(self) -> bool:
        return self._idf is None

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Self:
        return cls(options.engine(), options.frame_choice(), options.idf, options.lang)

    def collectors(self) -> tuple[VideoCollector]:
        return (VideoCollector(self.engine, self.choice, None if self._idf is None else str(self._idf), self.lang, self.needs),)

    def compute(self, collected: Sequence[Collector], size: int) -> Scores:
        (collector,) = collected
        assert isinstance(collector, VideoCollector)
        values = np.full(size, np.nan)
        rare = self._rare_words([sample for _, sample in collector.rows])
        truncated: dict[int, str] = {}
        for start in range(0, len(collector.rows), _CHUNK):
            chunk = collector.rows[start : start + _CHUNK]
            scores, cut = self._score([sample for _, sample in chunk], rare, collector)
            values[[row for row, _ in chunk]] = scores
            truncated |= {row: collector.languages[row] for (row, _), was_cut in zip(chunk, cut, strict=True) if was_cut}
        return Scores(
            values,
            mean_of(values),
            self._signature(rare, len(truncated)),
            mean_statistics(values),
            mean_pool,
            _means(values, collector.languages),
            warnings=self.warnings() + _truncation_warnings(truncated),
            truncated=truncated,
            coverage_warnings=dict(collector.coverage_warnings),
        )

    def warnings(self) -> list[str]:
        return []

    def _rare_words(self, samples: Sequence[Sample]) -> RareWords | None:
        if self._idf == _NO_IDF:
            return None
        if self._idf is not None:
            texts = [text for sample in SampleFile(self._idf, caption_required=False) for text in _corpus(sample)]
            if not texts:
                raise InputError(f"{self._idf}: there are no captions in the file that could say how rare words are.")
        else:
            references = [text for sample in samples for text in sample.references if text.strip()]
            texts = references or [sample.caption or "" for sample in samples]
        return RareWords(tokens.ids for tokens in self.engine.backbone.tokenize(list(texts))) if texts else None

    def _score(
        self, samples: Sequence[Sample], rare: RareWords | None, collector: VideoCollector
    ) -> tuple[list[float], list[bool]]:
        frames = self.engine.frames([clip_of(sample) for sample in samples], self.choice).matrices
        by_sample = [self._texts(sample, collector.language(sample)) for sample in samples]
        words, cut = self._words(list(dict.fromkeys(text for texts in by_sample for text in texts)), rare)
        scores = []
        for (caption, *references), matrix in zip(by_sample, frames, strict=True):
            assert matrix is not None
            score = match_video(words[caption], matrix).score
            if references:
                matches = [match_texts(words[caption], words[reference]) for reference in references]
                score = (score + best_match(matches, self.maximum)) / 2
            scores.append(score)
        return scores, [any(cut[text] for text in texts) for texts in by_sample]

    def _texts(self, sample: Sample, lang: str) -> list[Text]:
        """The caption, and the references that count."""
        references = [text for text in sample.references if text.strip()] if "references" in self.needs else []
        read = lang if self.engine.backbone.reads_language else ""
        return [Text(text, "", read) for text in (sample.caption or "", *references)]

    def _words(self, texts: Sequence[Text], rare: RareWords | None) -> tuple[Mapping[Text, Words], Mapping[Text, bool]]:
        backbone = self.engine.backbone
        langs = [text.lang for text in texts] if backbone.reads_language else None
        tokens = backbone.tokenize([text.caption for text in texts], langs)
        matrices, vectors = self.engine.tokens(texts), self.engine.texts(texts)
        words = {
            text: Words(
                matrix,
                np.ones(len(matrix)) if rare is None else rare.weights(ids.ids),
                vectors.vectors[vectors.index[place]],
                len(matrix) >= backbone.max_tokens,
            )
            for place, (text, matrix, ids) in enumerate(zip(texts, matrices, tokens, strict=True))
        }
        return words, {text: ids.cut for text, ids in zip(texts, tokens, strict=True)}

    def _idf_label(self, rare: RareWords | None) -> str | int:
        """How many documents say how rare words are; of a file, a hash of what they say too."""
        if rare is None:
            return _NO_IDF
        return rare.documents if self._idf is None else f"{rare.documents}@{rare.content}"

    def _signature(self, rare: RareWords | None, truncated: int) -> str:
        backbone = self.engine.backbone
        maximum = {"max": self.maximum} if "references" in self.needs else {}
        return signature(
            self.name,
            model=f"{backbone.name}@{backbone.fingerprint[:8]}",
            frames=self.choice.label,
            idf=self._idf_label(rare),
            **maximum,
            dtype=backbone.dtype,
            truncated=truncated,
        )


def _corpus(sample: Sample) -> list[str]:
    return [text for text in (*sample.references, sample.caption or "") if text.strip()]


def _means(values: Floats, languages: Mapping[int, str]) -> dict[str, float]:
    by_language: dict[str, list[int]] = {}
    for row, lang in languages.items():
        by_language.setdefault(lang, []).append(row)
    return {lang: mean_of(values[rows]) for lang, rows in by_language.items()}


def _truncation_warnings(truncated: Mapping[int, str]) -> list[str]:
    return (
        [f"{len(truncated):,} captions or references of theirs are longer than the model takes and were cut."]
        if truncated
        else []
    )


class RefEmScore(EmScore):
    name = "refemscore"
    needs = frozenset({"caption", "video", "references", "encoder"})


class PacSVideo(EmScore):
    name = "pacs-video"
    maximum = "whole"

    def warnings(self) -> list[str]:
        return checkpoint_warnings(self.name, self.engine.backbone)


class RefPacSVideo(PacSVideo):
    name = "refpacs-video"
    needs = RefEmScore.needs
