"""Pascal-50S and Abstract-50S (Vedantam et al. 2015): which of two captions of an image is more like its other captions?

For each pair, each of 48 people saw another caption of the image and chose which of the two is more like it. The majority
decides; ties are broken at random with a fixed seed. Reference-based metrics get five of the 48 captions, in five random draws
whose accuracies are averaged. A pair counts half if a metric scores both captions the same: papers do not say how they count it,
but this reproduces their values for length, and counting it as wrong does not. A file with a single draw (`pascal_50s.json`) is
read too.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from caplens.benchmarks.base import count_warning
from caplens.benchmarks.matlab import read_matlab
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial, prefer
from caplens.data.records import find_file, read_json, text, texts
from caplens.data.sample import Sample
from caplens.errors import InputError

_VOTES, _REFERENCES, _DRAWS = 48, 5, 5
_OWN_OR_OTHER = "own-or-other"
_WHERE = "They come with the CIDEr release of Vedantam et al. (pyCIDErConsensus)."


class Pair(NamedTuple):
    """Two captions of an image, the index of the preferred one, and the references of each draw."""

    category: str
    image: str
    captions: tuple[str, str]
    preferred: int
    draws: list[tuple[str, ...]]


class Consensus50S(PreferenceBenchmark):
    """Subclasses set the names of the files and the categories."""

    protocols = {
        "majority": "the caption that most of 48 people prefer; five references in five draws (what papers report)",
        "own-or-other": "from the file of sentences alone: a sentence of the image against one of another image",
    }
    tie = 0.5
    pairs_file: ClassVar[str]
    votes_file: ClassVar[str]
    one_draw_file: ClassVar[str]
    sentences_file: ClassVar[str]
    """The public file of an image's 48 or 50 sentences."""
    sentences_variable: ClassVar[str]
    sentences_first: ClassVar[bool]
    """Whether its records have the sentences before the image."""
    categories: ClassVar[dict[int, str]]
    published_pairs: ClassVar[int]

    def is_in(self, folder: Path) -> bool:
        names = (self.pairs_file, self.one_draw_file, self.sentences_file)
        return any(True for name in names for _ in folder.glob(f"{name}*"))

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        if protocol == _OWN_OR_OTHER:
            return self._preferences(list(self._read_sentences(data)), [])
        has_votes = any(True for _ in data.glob(f"{self.pairs_file}*"))
        single_draw = None if has_votes else next(iter(sorted(data.glob(f"{self.one_draw_file}*"))), None)
        pairs = list(_read_single_draw(single_draw) if single_draw else self._read_votes(data))
        warnings = count_warning(len(pairs), self.published_pairs, "pairs of captions")
        if single_draw:
            warnings.append(f"{single_draw.name} has one draw of five references; papers average over five draws.")
        return self._preferences(pairs, warnings)

    def _preferences(self, pairs: list[Pair], warnings: list[str]) -> PreferenceData:
        samples: list[Sample] = []
        trials: list[Trial] = []
        for number, pair in enumerate(pairs):
            for draw, references in enumerate(pair.draws):
                first = len(samples)
                samples += [
                    Sample(f"{number} {draw} {index}", caption, references, image=pair.image, lang="en")
                    for index, caption in enumerate(pair.captions)
                ]
                trials.append(prefer(pair.category, pair.image, first + pair.preferred, first + 1 - pair.preferred))
        order = list(self.categories.values())
        trials.sort(key=lambda trial: order.index(trial.measure) if trial.measure in order else len(order))
        return PreferenceData(samples, trials, warnings=warnings)

    def _read_sentences(self, data: Path) -> Iterator[Pair]:
        """A random sentence of each image against one of another image, with five others of its own in five draws."""
        path = find_file(data, [self.sentences_file], f"the file {self.sentences_file}", _WHERE)
        (records,) = read_matlab(path, [self.sentences_variable])
        rng = np.random.default_rng(0)
        try:
            images = [_image_sentences(record, sentences_first=self.sentences_first) for row in records for record in row]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise InputError(f"{path}: this is not the expected MATLAB file ({error!r}).") from None
        if len(images) < 2 or min(len(sentences) for _, sentences in images) <= _REFERENCES:
            raise InputError(f"{path}: at least two images with more than {_REFERENCES} sentences each are needed.")
        for row, (image, sentences) in enumerate(images):
            own = int(rng.integers(len(sentences)))
            other = images[(row + 1 + int(rng.integers(len(images) - 1))) % len(images)][1]
            rest = [sentence for place, sentence in enumerate(sentences) if place != own]
            draws = [tuple(rest[place] for place in rng.choice(len(rest), _REFERENCES, replace=False)) for _ in range(_DRAWS)]
            yield Pair(_OWN_OR_OTHER, image, (sentences[own], other[int(rng.integers(len(other)))]), 0, draws)

    def _read_votes(self, data: Path) -> Iterator[Pair]:
        """Read the pairs and the votes from the original MATLAB files."""
        paths = [find_file(data, [name], f"the file {name}", _WHERE) for name in (self.pairs_file, self.votes_file)]
        all_inputs, all_categories = read_matlab(paths[0], ["new_input", "category"])
        (all_triplets,) = read_matlab(paths[1], ["triplets"])
        try:
            yield from self._pairs(paths, all_inputs[0], all_categories[0], all_triplets[0])
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise InputError(
                f"{data}: {paths[0].name} and {paths[1].name} are not the expected MATLAB files ({error!r})."
            ) from None

    def _pairs(self, paths: Sequence[Path], inputs: list[Any], categories: list[Any], triplets: list[Any]) -> Iterator[Pair]:
        if len(triplets) != _VOTES * len(inputs):
            raise InputError(f"{paths[1]}: {len(triplets)} votes where {_VOTES} for each of {len(inputs)} pairs are expected.")
        rng = np.random.default_rng(0)
        for number, (entry, category) in enumerate(zip(inputs, categories, strict=True)):
            image, *captions = (str(cell[0]).strip() for cell in entry)
            votes = [_parse_vote(triplet) for triplet in triplets[_VOTES * number : _VOTES * (number + 1)]]
            votes_for_first = sum(choice == captions[0] for _, choice in votes)
            if any(choice not in captions for _, choice in votes):
                raise InputError(f"{paths[1]}: votes of pair {number} are for captions that are not in {paths[0].name}.")
            tied = 2 * votes_for_first == _VOTES
            preferred = int(rng.integers(2)) if tied else int(2 * votes_for_first < _VOTES)
            references = [reference for reference, _ in votes]
            draws = [tuple(references[index] for index in rng.choice(_VOTES, _REFERENCES, replace=False)) for _ in range(_DRAWS)]
            yield Pair(self.categories[int(category)], image, (captions[0], captions[1]), preferred, draws)


def _parse_vote(triplet: Any) -> tuple[str, str]:
    """(the caption shown, the caption of the pair that was chosen)"""
    shown, first, second, side = (cell[0][0] for cell in triplet)
    return str(shown[0]).strip(), str((first if side == 1 else second)[0]).strip()


def _read_single_draw(path: Path) -> Iterator[Pair]:
    for category, pairs in read_json(path).items():
        for number, pair in enumerate(pairs):
            try:
                first, second = (text(caption, path) for caption in pair["captions"])
                label = ("0", "1").index(str(pair["label"]))
                yield Pair(category, Path(pair["image"]).name, (first, second), label, [texts(pair["references"], path)])
            except (KeyError, TypeError, ValueError):
                raise InputError(f"{path}, {category} {number}: not a pair with image, captions, label and references.") from None


def _image_sentences(record: Any, *, sentences_first: bool) -> tuple[str, list[str]]:
    """An image and its sentences. Texts are arrays of one text, in cells."""
    sentences, image = record if sentences_first else record[::-1]
    return Path(_first_text(image)).name, [_first_text(sentence) for sentence in sentences]


def _first_text(cell: Any) -> str:
    while isinstance(cell, list):
        cell = cell[0]
    if not isinstance(cell, str):
        raise TypeError("a text is expected")
    return cell.strip()
