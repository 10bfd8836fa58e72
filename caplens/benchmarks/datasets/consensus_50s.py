"""Pascal-50S and Abstract-50S (Vedantam et al. 2015): of two captions of an image, which is more like its other captions?

For every pair 48 people each saw one of the image's captions and said which of the two is more like it. The majority decides;
where there is none, a seeded coin does. Reference-based metrics get five of the 48 captions, in five seeded draws whose
accuracies are averaged. Where a metric gives both captions the same score, the pair counts half: the papers do not say what
they do, but their values for length are reached so, and not by calling such pairs wrong. A file with one draw already made
(`pascal_50s.json`) is read too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from caplens.benchmarks.base import count_warning
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial, prefer
from caplens.data.records import find_file, read_json, text, texts
from caplens.data.sample import Sample
from caplens.errors import InputError

_VOTES, _REFERENCES, _DRAWS = 48, 5, 5
_WHERE = "They come with the CIDEr release of Vedantam et al. (pyCIDErConsensus)."


class Pair(NamedTuple):
    category: str
    image: str
    captions: tuple[str, str]
    preferred: int
    draws: list[tuple[str, ...]]


class Consensus50S(PreferenceBenchmark):
    """Subclasses name the files and the categories."""

    protocols = {"majority": "the caption that most of 48 people prefer; five references in five draws (what papers report)"}
    tie = 0.5
    pairs_file: ClassVar[str]
    votes_file: ClassVar[str]
    one_draw_file: ClassVar[str]
    categories: ClassVar[dict[int, str]]
    published_pairs: ClassVar[int]

    def is_in(self, folder: Path) -> bool:
        return any(True for name in (self.pairs_file, self.one_draw_file) for _ in folder.glob(f"{name}*"))

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        original = any(True for _ in data.glob(f"{self.pairs_file}*"))
        one_draw = None if original else next(iter(sorted(data.glob(f"{self.one_draw_file}*"))), None)
        pairs = list(_one_draw(one_draw) if one_draw else self._original(data))
        samples: list[Sample] = []
        trials: list[Trial] = []
        for number, pair in enumerate(pairs):
            for draw, references in enumerate(pair.draws):
                first = len(samples)
                samples += [
                    Sample(f"{number} {draw} {place}", caption, references, image=pair.image, lang="en")
                    for place, caption in enumerate(pair.captions)
                ]
                trials.append(prefer(pair.category, pair.image, first + pair.preferred, first + 1 - pair.preferred))
        order = list(self.categories.values())
        trials.sort(key=lambda trial: order.index(trial.measure) if trial.measure in order else len(order))
        warnings = count_warning(len(pairs), self.published_pairs, "pairs of captions")
        if one_draw:
            warnings.append(f"{one_draw.name} holds one draw of five references; papers average over five.")
        return PreferenceData(samples, trials, warnings=warnings)

    def _original(self, data: Path) -> Iterator[Pair]:
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError

        paths = [find_file(data, [name], f"the file {name}", _WHERE) for name in (self.pairs_file, self.votes_file)]
        try:
            pairs, votes = (loadmat(path) for path in paths)
            inputs, categories, triplets = pairs["new_input"][0], pairs["category"][0], votes["triplets"][0]
        except (KeyError, IndexError, ValueError, TypeError, NotImplementedError, MatReadError) as error:
            raise InputError(
                f"{data}: {paths[0].name} and {paths[1].name} are not the expected MATLAB files ({error})."
            ) from None
        if len(triplets) != _VOTES * len(inputs):
            raise InputError(f"{paths[1]}: {len(triplets)} votes where {_VOTES} for each of {len(inputs)} pairs are expected.")
        rng = np.random.default_rng(0)
        for number, (entry, category) in enumerate(zip(inputs, categories, strict=True)):
            image, *captions = (str(cell[0]).strip() for cell in entry)
            seen = [_vote(triplet) for triplet in triplets[_VOTES * number : _VOTES * (number + 1)]]
            for_first = sum(chosen == captions[0] for _, chosen in seen)
            if any(chosen not in captions for _, chosen in seen):
                raise InputError(f"{paths[1]}: votes of pair {number} are for captions that are not in {paths[0].name}.")
            even = 2 * for_first == _VOTES
            preferred = int(rng.integers(2)) if even else int(2 * for_first < _VOTES)
            references = [reference for reference, _ in seen]
            draws = [tuple(references[place] for place in rng.choice(_VOTES, _REFERENCES, replace=False)) for _ in range(_DRAWS)]
            yield Pair(self.categories[int(category)], image, (captions[0], captions[1]), preferred, draws)


def _vote(triplet: Any) -> tuple[str, str]:
    """The caption shown, and the one of the pair that was chosen."""
    shown, first, second, side = (cell[0][0] for cell in triplet)
    return str(shown[0]).strip(), str((first if side == 1 else second)[0]).strip()


def _one_draw(path: Path) -> Iterator[Pair]:
    for category, pairs in read_json(path).items():
        for number, pair in enumerate(pairs):
            try:
                first, second = (text(caption, path) for caption in pair["captions"])
                label = ("0", "1").index(str(pair["label"]))
                yield Pair(category, Path(pair["image"]).name, (first, second), label, [texts(pair["references"], path)])
            except (KeyError, TypeError, ValueError):
                raise InputError(f"{path}, {category} {number}: not a pair with image, captions, label and references.") from None
