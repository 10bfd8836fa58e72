"""A score that notices perturbed captions (PR-MCS, sections 3.4 and 5.2; appendix B).

The text tower learns that a caption belongs to its photo, and its repeated, shortened, masked, jumbled and swapped forms do not.
Perturbed captions are made anew at every step, in the language of the caption. The image tower is not touched.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor

from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.perturbation import PERTURBATIONS
from caplens.training.loop.losses import contrastive, distance, ordered, perturbation_aware
from caplens.training.loop.prefetch import Prefetcher
from caplens.training.recipes.pairs import Caption, Photos, RatedCaptions, content_hash
from caplens.training.recipes.recipe import DataSettings, ScoreTrainSettings, TuningRecipe, ValidationSettings
from caplens.training.recipes.tuning import Job, Tuning


@dataclass(frozen=True, kw_only=True)
class PrmcsTrainSettings(ScoreTrainSettings):
    photos: int
    """At a step, with a caption of each."""
    sentences: int
    """At a step, where sentences are given."""
    forms: int
    """Perturbed forms of each caption."""


@dataclass(frozen=True)
class PrmcsLosses:
    contrastive: float
    near: float
    """Captions to their photos."""
    from_image: float
    """Perturbed captions from photos."""
    from_text: float
    """Perturbed captions from their originals."""
    margin: float
    below: float
    """Perturbed captions under their originals, by `gap`."""
    gap: float
    stay: float
    """Captions to where the model had them before."""


@dataclass(frozen=True)
class PerturbationShares:
    """How often each perturbation is made, relative to the others."""

    repetition: float
    removal: float
    masking: float
    jumble: float
    substitution: float


@dataclass(frozen=True)
class PrmcsDataSettings(DataSettings):
    workers: int
    """Processes that perturb captions while the GPU is busy."""


@dataclass(frozen=True)
class PrmcsRecipe(TuningRecipe):
    name = "prmcs"

    train: PrmcsTrainSettings
    losses: PrmcsLosses
    kinds: PerturbationShares
    validation: ValidationSettings
    data: PrmcsDataSettings


def train_prmcs(
    samples: Iterable[Sample], job: Job, validate: Iterable[Sample] = (), sentences: Iterable[Sample] | None = None
) -> Path:
    """Tune a model's text tower on good captions; returns the folder of the new model.

    `sentences` are captions whose photos are not at hand; each stands with the photo that the model finds for it.
    With `validate`, captions with ratings, the weights that agree best with these are kept.
    """
    photos, spare, held_out = Photos(samples), _captions(sentences) if sentences is not None else [], list(validate)
    judged = RatedCaptions.of(held_out) if held_out else None
    hashes = {"captions": photos.fingerprint, **({"sentences": content_hash(spare)} if spare else {})}
    recipe = job.recipe
    assert isinstance(recipe, PrmcsRecipe)
    tuning = Tuning(job, hashes)
    settings, weights, shares = recipe.train, recipe.losses, asdict(recipe.kinds)
    if not any(share > 0 for share in shares.values()):
        raise InputError("no kind of perturbation has a share above 0; change [kinds].")
    if tuning.towers.changes_images:
        raise InputError(f"train.parts is {settings.parts!r}; prmcs trains the text tower only.")
    see = tuning.see(photos.images)
    everything = see(range(len(photos)))
    balance = (weights.near, weights.from_image, weights.from_text)

    def draw(step: int) -> tuple[list[int], list[list[int]], list[int], list[list[int]]]:
        """Photos and captions as numbers; of each perturbed form, the place of its caption, and its numbers."""
        rng = np.random.default_rng([job.seed, step])
        drawn = photos.draw(settings.photos, rng)
        rows = [caption.row for caption in drawn]
        if spare:
            drawn += [spare[place] for place in rng.integers(len(spare), size=(settings.sentences,))]
        worse = [list(islice(_worse(caption, shares, rng), settings.forms)) for caption in drawn]
        places = [place for place, forms in enumerate(worse) for _ in forms]
        forms = tuning.tokenize([form for some in worse for form in some])
        return rows, tuning.tokenize(drawn), places, forms

    prefetched = Prefetcher(draw, settings.steps, recipe.data.workers)

    def loss_at(step: int, _: Generator) -> Tensor:
        rows, ids, places, worse = prefetched(step)
        if not places:
            raise InputError("none of the captions of a batch can be perturbed.")
        before, texts, forms = tuning.read_before(ids), tuning.read(ids), tuning.read(worse)
        own = len(rows)
        images = torch.cat([see(rows), everything[(before[own:] @ everything.T).argmax(-1)]])
        noticed = perturbation_aware(images[places], texts[places], forms, balance, weights.margin)
        return (
            weights.contrastive * contrastive(images[:own], texts[:own], tuning.temperature)
            + noticed
            + weights.below * ordered(images[places], texts[places], forms, weights.gap)
            + weights.stay * distance(texts, before)
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
