"""A score that notices perturbed captions (PR-MCS, sections 3.4 and 5.2; appendix B).

The text tower learns that a caption belongs to its photo, and its repeated, shortened, masked, jumbled and swapped forms do not.
Perturbed captions are made anew at every step, in the language of the caption. The image tower is not touched.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor

from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.perturb import PERTURBATIONS
from caplens.train.ahead import Ahead
from caplens.train.losses import contrastive, distance, ordered, perturbation_aware
from caplens.train.pairs import Caption, Photos, Ratings, content_hash
from caplens.train.tuning import Job, Tuning


def train_prmcs(
    samples: Iterable[Sample], job: Job, validate: Iterable[Sample] = (), sentences: Iterable[Sample] | None = None
) -> Path:
    """Tune a model's text tower on good captions; gives back the folder of the new model.

    `sentences` are captions whose photos are not at hand; each stands with the photo that the model finds for it.
    With `validate`, captions with ratings, the weights that agree best with these are kept.
    """
    photos, spare, held_out = Photos(samples), _captions(sentences) if sentences is not None else [], list(validate)
    judged = Ratings.of(held_out) if held_out else None
    given = {"captions": photos.fingerprint, **({"sentences": content_hash(spare)} if spare else {})}
    tuning = Tuning("prmcs", job, given)
    section, weights, shares = job.config["train"], job.config["losses"], job.config["kinds"]
    if not any(share > 0 for share in shares.values()):
        raise InputError("no kind of perturbation has a share above 0; change [kinds].")
    if tuning.towers.changes_images:
        raise InputError(f"train.parts is {section['parts']!r}; prmcs trains the text tower only.")
    see = tuning.see(photos.pictures)
    everything = see(range(len(photos)))
    balance = (weights["near"], weights["from_image"], weights["from_text"])

    def draw(step: int) -> tuple[list[int], list[list[int]], list[int], list[list[int]]]:
        """Photos and captions as numbers; of each perturbed form, the place of its caption, and its numbers."""
        chance = np.random.default_rng([job.seed, step])
        drawn = photos.draw(section["photos"], chance)
        rows = [caption.row for caption in drawn]
        if spare:
            drawn += [spare[place] for place in chance.integers(len(spare), size=(section["sentences"],))]
        worse = [list(islice(_worse(caption, shares, chance), section["forms"])) for caption in drawn]
        places = [place for place, forms in enumerate(worse) for _ in forms]
        forms = tuning.tokenize([form for some in worse for form in some])
        return rows, tuning.tokenize(drawn), places, forms

    ahead = Ahead(draw, section["steps"], job.config["data"]["workers"])

    def loss_at(step: int, _: Generator) -> Tensor:
        rows, ids, places, worse = ahead(step)
        if not places:
            raise InputError("none of the captions of a batch can be perturbed.")
        before, texts, forms = tuning.read_before(ids), tuning.read(ids), tuning.read(worse)
        own = len(rows)
        images = torch.cat([see(rows), everything[(before[own:] @ everything.T).argmax(-1)]])
        noticed = perturbation_aware(images[places], texts[places], forms, balance, weights["margin"])
        below: float = weights["below"]
        stay: float = weights["stay"]
        belongs: float = weights["contrastive"]
        return (
            belongs * contrastive(images[:own], texts[:own], tuning.temperature)
            + noticed
            + below * ordered(images[places], texts[places], forms, weights["gap"])
            + stay * distance(texts, before)
        )

    return tuning.train(loss_at, tuning.validation(judged))


def _captions(sentences: Iterable[Sample]) -> list[Caption]:
    """Captions of no photo in particular."""
    said = [
        Caption(-1, sample.caption, base_language(sample.lang or "en"))
        for sample in sentences
        if sample.caption and sample.caption.strip()
    ]
    if not said:
        raise InputError("the sentences hold no caption.")
    return said


def _worse(caption: Caption, shares: Mapping[str, float], draw: np.random.Generator) -> Iterator[Caption]:
    """The caption perturbed in those ways that are possible, in any order; those with a larger share come early more often."""
    kinds = [kind for kind, share in shares.items() if share > 0]
    chances = np.array([shares[kind] for kind in kinds])
    for kind in draw.choice(kinds, len(kinds), replace=False, p=chances / chances.sum()):
        made = PERTURBATIONS[str(kind)](caption.text, caption.lang, int(draw.integers(1 << 31)))
        if made is not None:
            yield caption._replace(text=made)
