"""Crossmodal-3600: 3,600 images with human captions in 36 languages (Thapliyal et al. 2022), used as references.

Its CIDEr is that of the paper (footnote 9): by the equations of Vedantam et al., in lower case and without punctuation.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from caplens.data.files import Source
from caplens.data.formats import crossmodal3600
from caplens.data.formats.crossmodal3600 import CrossmodalImage
from caplens.data.languages import base_language
from caplens.data.records import find_file
from caplens.data.references import References
from caplens.errors import InputError
from caplens.results.comparison import Comparison, RegionScore
from caplens.results.table import Cell, Table
from caplens.text.normalize import without_punctuation
from caplens.text.tokenizer import Tokenizer, tokenizer_for

NAME = "crossmodal-3600"
WHERE = "captions.jsonl is in captions.zip of the Crossmodal-3600 release (google.github.io/crossmodal-3600)."


class Statistics(NamedTuple):
    """A row of table 1 of the paper: captions, images with one, two and more of them, mean words and characters per caption."""

    lang: str
    captions: int
    once: int
    twice: int
    more: int
    words: float
    characters: float


def read_images(data: Path) -> list[CrossmodalImage]:
    """The images of the data set, in the order of its file."""
    path = find_file(data, ["captions.jsonl"], "the captions file", WHERE)
    with Source(path) as source:
        images = [image for _, image in crossmodal3600.read_images(source)]
    if not images:
        raise InputError(f"{path}: there are no captions in the file.")
    return images


def select_images(
    images: Sequence[CrossmodalImage], regions: Sequence[str] | None = None, subset: int | None = None, seed: int = 0
) -> list[CrossmodalImage]:
    """Those of some regions, and of these a random subset: 600 of all are what the paper calls XM600, drawn by another seed."""
    chosen = list(images)
    if regions is not None:
        codes = {base_language(region) for region in regions}
        missing = codes - {_region(image) for image in images}
        if missing:
            raise InputError(f"no image is of the region {', '.join(sorted(missing))}; regions are the codes in 'image/locale'.")
        chosen = [image for image in chosen if _region(image) in codes]
    if subset is not None:
        if not 0 < subset <= len(chosen):
            raise InputError(f"a subset has between 1 and {len(chosen):,} images, not {subset:,}.")
        # By key, so that the order of the file does not matter.
        chosen.sort(key=lambda image: image.key)
        rows = np.random.default_rng(seed).choice(len(chosen), subset, replace=False)
        chosen = [chosen[row] for row in sorted(rows)]
    return chosen


def _region(image: CrossmodalImage) -> str:
    return base_language(image.region) if image.region else ""


def regions_by_image(images: Sequence[CrossmodalImage]) -> dict[str, str]:
    """Key -> region, of images that have one."""
    return {image.key: _region(image) for image in images if image.region}


def references(images: Sequence[CrossmodalImage], data: str = NAME) -> References:
    """The captions as references, by image and language."""
    by_image = References(data)
    for image in images:
        for lang, captions in image.captions.items():
            texts = tuple(caption for caption in captions if caption.strip())
            if texts:
                by_image.add(image.key, base_language(lang), texts, image=f"{image.key}.jpg")
    return by_image


class ReleasedTokens(Tokenizer):
    """The tokens that the release has for its own captions, without punctuation; those of the language's tokenizer for others."""

    name = "xm3600"

    def __init__(self, lang: str, tokens: Mapping[str, Sequence[str]]) -> None:
        super().__init__(lang)
        self._tokens, self._other = tokens, tokenizer_for(lang)

    @property
    def signature(self) -> str:
        return f"{self.name}+{self._other.signature}"

    def __call__(self, text: str) -> list[str]:
        tokens = self._tokens.get(text)
        return self._other(text) if tokens is None else list(tokens)


def released_tokenizers(images: Sequence[CrossmodalImage]) -> Callable[[str], Tokenizer]:
    """Language -> tokenizer: that of the release where it has tokens of its captions, else the default."""
    tokens: dict[str, dict[str, list[str]]] = {}
    ambiguous: set[tuple[str, str]] = set()
    for image in images:
        for lang, texts in image.tokens.items():
            of_language = tokens.setdefault(base_language(lang), {})
            for caption, text in zip(image.captions[lang], texts, strict=True):
                words = [token for token in text.split() if without_punctuation(token).strip()]
                if of_language.setdefault(caption, words) != words:
                    ambiguous.add((base_language(lang), caption))
    # A caption that the release splits in two ways is split by the default, whatever the order of lines.
    for lang, caption in ambiguous:
        del tokens[lang][caption]
    tokenizers = {lang: ReleasedTokens(lang, of_language) for lang, of_language in tokens.items()}
    return lambda lang: tokenizers.get(lang) or tokenizer_for(lang)


def region_scores(comparison: Comparison, regions: Mapping[str, str]) -> list[RegionScore]:
    """The mean score of each system on the images of each region, with the document frequencies of all images."""
    of_caption = np.array([regions.get(identifier, "") for identifier in comparison.ids])
    scores = []
    for metric, by_system in comparison.values.items():
        for system, values in by_system.items():
            for region in sorted(set(of_caption.tolist()) - {""}):
                rows = values[(of_caption == region) & ~np.isnan(values)]
                if len(rows):
                    scores.append(RegionScore(metric, system, region, len(rows), float(rows.mean())))
    return scores


def statistics(data: Path) -> list[Statistics]:
    """Count what table 1 of the paper counts. Words are split at spaces, which means little in Chinese, Japanese and Thai."""
    by_language: dict[str, list[tuple[str, ...]]] = {}
    for image in read_images(data):
        for lang, texts in image.captions.items():
            by_language.setdefault(lang, []).append(texts)
    rows = []
    for lang, images in sorted(by_language.items()):
        captions = [caption for image_captions in images for caption in image_captions]
        replication = Counter(min(3, len(image_captions)) for image_captions in images)
        words, characters = (sum(map(count, captions)) / max(1, len(captions)) for count in (lambda text: len(text.split()), len))
        rows.append(Statistics(lang, len(captions), replication[1], replication[2], replication[3], words, characters))
    return rows


def published_statistics() -> dict[str, Statistics]:
    """Table 1 of the paper, by its language codes."""
    lines = files("caplens.comparison").joinpath("crossmodal3600.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return {lang: Statistics(lang, *map(int, counts[:4]), *map(float, counts[4:])) for lang, *counts in rows}


def statistics_table(statistics_: Sequence[Statistics]) -> Table:
    """The statistics as a table, with those of the paper in brackets where they differ."""
    published = published_statistics()
    rows: list[list[Cell]] = []
    for row in statistics_:
        paper = published.get(row.lang)
        cells: list[Cell] = [row.lang]
        for column, value in enumerate(row[1:], 1):
            shown = f"{value:.1f}" if isinstance(value, float) else f"{value:,}"
            expected = None if paper is None else paper[column]
            same = expected is None or round(value, 1) == expected
            cells.append(shown if same else f"{shown} ({expected:,})")
        rows.append(cells)
    notes = [
        f"{sum(row.captions for row in statistics_):,} captions. In brackets: table 1 of Thapliyal et al. 2022, where it differs."
    ]
    columns = ["lang", "captions", "images with 1", "with 2", "with 3+", "words", "characters"]
    return Table(columns, rows, title=NAME, notes=notes)
