"""Faults that scores show: a caption that fits its image no better than captions of other images do, or not its references."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from caplens.arrays import Floats, Vectors
from caplens.data.extracted import original_name
from caplens.data.languages import language_names
from caplens.data.sample import Sample
from caplens.embed import Engine, Text
from caplens.metrics.embedding import CosineCollector, image_of
from caplens.results.check import Fault, Verdict
from caplens.results.scores import ScoreResult
from caplens.text.words import join, split

IMAGE, MISMATCH, REFERENCES = "image", "wrong image", "unlike its references"
_BELOW_GOOD = 1.0
"""Percentile of good captions: fewer than this share of them score lower."""
_AT_CHANCE = 90.0
"""Percentile of captions of other images; a caption above it is more than chance."""
_BLOCK = 1024
_MOST_WORDS, _MOST_NAMED = 40, 3
_LEAST_GAIN = 0.02
"""By how much the cosine must rise without a word for the word to be named."""


@dataclass(frozen=True)
class ImageFindings:
    """What comparing captions with images shows, by row.

    Attributes
    ----------
    faults
        At most one a row.
    better_images
        For captions that do not fit theirs, an image of the file that they fit better.
    words
        For the same captions, words without which they would fit better.
    """

    faults: dict[int, list[Fault]] = field(default_factory=dict)
    better_images: dict[int, str] = field(default_factory=dict)
    words: dict[int, tuple[str, ...]] = field(default_factory=dict)


def image_faults(samples: Sequence[Sample], langs: Sequence[str], result: ScoreResult, metric: str) -> ImageFindings:
    """Faults by a score of caption and image whose levels are known.

    A caption whose image is unlike what the model was trained on, or whose language the model does not know, is never judged
    surely.
    """
    findings = ImageFindings()
    scores, names = result[metric], language_names()
    for row, error in scores.errors.items():
        if error.unusable or samples[row].image is not None:
            findings.faults[row] = [Fault(IMAGE, Verdict.fix, error.reason)]
    levels = result.levels.get(metric)
    if levels is None:
        return findings
    for row in np.flatnonzero(levels.chance < _AT_CHANCE).tolist():
        chance, good = levels.chance[row], levels.good[row]
        about = names.get(langs[row], langs[row])
        reason = (
            f"the caption fits its image better than only {chance:.0f}% of captions of other images do, and"
            f" {100 - good:.0f}% of good captions in {about} fit better"
        )
        doubt = scores.coverage_warnings.get(row)
        sure = good < _BELOW_GOOD and doubt is None
        findings.faults[row] = [Fault(MISMATCH, Verdict.fix if sure else Verdict.look, reason + (f" ({doubt})" if doubt else ""))]
    return findings


def find_better_images(
    findings: ImageFindings, samples: Sequence[Sample], collector: CosineCollector, folder: Path | None = None
) -> None:
    """For captions that do not fit their image, name the image of the file that fits best, if it is beyond chance."""
    rows = [row for row, faults in findings.faults.items() if faults[0].kind == MISMATCH]
    by_image = {sample.group: sample for sample in samples if sample.image is not None}
    if not rows or len(by_image) < 2:
        return
    engine = collector.engine
    embedded = engine.images([image_of(sample) for sample in by_image.values()])
    readable = np.flatnonzero(embedded.index >= 0)
    groups, vectors = np.array(list(by_image), dtype=object)[readable], embedded.vectors[embedded.index[readable]]
    place = {group: number for number, group in enumerate(groups.tolist())}
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        cosines = _cosines_of(engine, [collector.caption_text(samples[row]) for row in block], vectors)
        for row, of_row in zip(block, cosines, strict=True):
            best = int(of_row.argmax())
            own = place.get(samples[row].group)
            if own is not None and best != own and _stands_out(of_row, own, best):
                group = str(groups[best])
                findings.better_images[row] = _name_of(by_image[group], folder)
                fault = findings.faults[row][0]
                findings.faults[row][0] = fault._replace(reason=f"{fault.reason}; it fits {findings.better_images[row]} better")


def _cosines_of(engine: Engine, texts: Sequence[Text], vectors: Vectors) -> Floats:
    captions = engine.texts(texts)
    cosines: Floats = (captions.vectors[captions.index] @ vectors.T).astype(np.float64)
    return cosines


def _stands_out(cosines: Floats, own: int, best: int) -> bool:
    """Whether the best image fits by more than two standard deviations more than the own one."""
    return bool(cosines[best] - cosines[own] > 2 * cosines.std())


def _name_of(sample: Sample, folder: Path | None) -> str:
    return name_in(folder, sample.image) if isinstance(sample.image, str) else sample.id


def name_in(folder: Path | None, path: str) -> str:
    """An image as the file names it: relative to the folder of images."""
    if folder is not None and Path(path).is_relative_to(folder):
        return Path(path).relative_to(folder).as_posix()
    return original_name(path)


def find_unsupported_words(findings: ImageFindings, samples: Sequence[Sample], collector: CosineCollector) -> None:
    """For captions that do not fit their image, name the words without which they would fit better."""
    rows = [row for row, faults in findings.faults.items() if faults[0].kind == MISMATCH]
    for start in range(0, len(rows), _BLOCK):
        for row, words in _unsupported(rows[start : start + _BLOCK], samples, collector):
            if words:
                findings.words[row] = words


def _unsupported(
    rows: Sequence[int], samples: Sequence[Sample], collector: CosineCollector
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Each word of a caption is left out in turn; the cosine rises most without the word that the image supports least."""
    engine = collector.engine
    images = engine.images([image_of(samples[row]) for row in rows])
    words_of = {row: split(samples[row].caption or "", samples[row].lang)[:_MOST_WORDS] for row in rows}
    shorter = {
        row: [join([*words[:place], *words[place + 1 :]]) for place in range(len(words))] for row, words in words_of.items()
    }
    texts = [
        collector.caption_text(samples[row])._replace(caption=text)
        for row in rows
        for text in (samples[row].caption or "", *shorter[row])
    ]
    embedded = engine.texts(texts)
    start = 0
    for place, row in enumerate(rows):
        end = start + 1 + len(shorter[row])
        cosines = embedded.vectors[embedded.index[start:end]].astype(np.float64) @ images.vectors[images.index[place]]
        start = end
        gains = cosines[1:] - cosines[0]
        worst = [index for index in np.argsort(-gains, kind="stable")[:_MOST_NAMED] if gains[index] > _LEAST_GAIN]
        yield row, tuple(words_of[row][index].text for index in sorted(worst)) if len(gains) > 1 else ()


def reference_faults(samples: Sequence[Sample], langs: Sequence[str], collector: CosineCollector, seed: int) -> dict[int, Fault]:
    """Row -> a fault, where a caption is no nearer to its references than to those of other images of its language."""
    engine, generator = collector.engine, np.random.default_rng(seed)
    by_language: dict[str, list[int]] = {}
    for row, sample in enumerate(samples):
        if sample.caption and any(text.strip() for text in sample.references):
            by_language.setdefault(langs[row], []).append(row)
    faults: dict[int, Fault] = {}
    for rows in by_language.values():
        if len({samples[row].group for row in rows}) < 20:
            continue
        captions = engine.texts([collector.caption_text(samples[row]) for row in rows])
        vectors = captions.vectors[captions.index]
        own = _nearest(vectors, [samples[row] for row in rows], collector)
        groups = np.array([samples[row].group for row in rows], dtype=object)
        order = generator.permutation(len(rows))
        other = _nearest(vectors[order], [samples[rows[place]] for place in np.roll(order, 1)], collector)
        different = groups[order] != groups[np.roll(order, 1)]
        limit = np.quantile(other[different], 0.5)
        for place in np.flatnonzero(own < limit).tolist():
            faults[rows[place]] = Fault(
                REFERENCES, Verdict.look, "the caption is no nearer to its references than to those of other images"
            )
    return faults


def _nearest(vectors: Vectors, samples: Sequence[Sample], collector: CosineCollector) -> Floats:
    """The cosine of each vector with the nearest reference of each sample."""
    texts = [[text for text in sample.references if text.strip()] for sample in samples]
    plain = [
        collector.caption_text(sample)._replace(caption=text)
        for sample, of_one in zip(samples, texts, strict=True)
        for text in of_one
    ]
    embedded = collector.engine.texts(plain)
    counts = np.array([len(of_one) for of_one in texts])
    repeated = np.repeat(vectors, counts, axis=0)
    cosines = np.einsum("nd,nd->n", repeated, embedded.vectors[embedded.index], dtype=np.float64)
    nearest: Floats = np.maximum.reduceat(cosines, np.cumsum(counts) - counts)
    return nearest
