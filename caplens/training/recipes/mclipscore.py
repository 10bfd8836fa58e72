"""Contrastive and Pearson losses (multilingual CLIPScore, section 3): a score that tells photos apart, and rates as people do.

Batches of captions of photos and batches of rated captions take turns, and are never mixed; the gradients of the two add up
before each step.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Generator, Tensor

from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.training.loop.image_features import encoded
from caplens.training.loop.losses import contrastive, distance, pearson
from caplens.training.recipes.pairs import Photos, RatedCaptions
from caplens.training.recipes.recipe import DataSettings, ScoreTrainSettings, TuningRecipe, ValidationSettings
from caplens.training.recipes.tuning import Job, Tuning

CHOICES = ("both", "contrastive", "pearson")


@dataclass(frozen=True, kw_only=True)
class MclipscoreTrainSettings(ScoreTrainSettings):
    photos: int
    """At a step, with a caption of each."""
    rated: int
    """Rated captions at a step."""
    noise: float
    """On the features that projections get, relative to their length."""


@dataclass(frozen=True)
class MclipscoreLosses:
    choice: str
    """both, contrastive or pearson."""
    contrastive: float
    pearson: float
    ranks: bool
    """Whether ratings count as their ranks."""
    stay: float
    """The weight that keeps photos and captions where the model had them before."""


@dataclass(frozen=True)
class MclipscoreRecipe(TuningRecipe):
    name = "mclipscore"

    train: MclipscoreTrainSettings
    losses: MclipscoreLosses
    validation: ValidationSettings
    data: DataSettings


def train_mclipscore(samples: Iterable[Sample], rated: Iterable[Sample], job: Job, validate: Iterable[Sample] = ()) -> Path:
    """Tune a model on good captions (`samples`) and on captions with ratings; returns the folder of the new one.

    With `validate`, other captions with ratings, the weights that agree best with these are kept.
    """
    photos, ratings = Photos(samples), RatedCaptions.of(rated)
    held_out = list(validate)
    judged = RatedCaptions.of(held_out) if held_out else None
    recipe = job.recipe
    assert isinstance(recipe, MclipscoreRecipe)
    settings, weights, choice = recipe.train, recipe.losses, recipe.losses.choice
    hashes = {"captions": photos.fingerprint, "ratings": ratings.fingerprint}
    tuning = Tuning(job, hashes, settings.noise)
    if choice not in CHOICES:
        raise InputError(f"losses.choice is {choice!r}; choose from: {', '.join(CHOICES)}.")
    if settings.rated < 2:
        raise InputError("a batch of one rating has nothing to agree with; raise train.rated.")
    values = rankdata(ratings.values) if weights.ranks else ratings.values
    images = [*photos.images, *ratings.images]
    see, first = tuning.see(images), len(photos)
    stay = weights.stay
    were = None
    if stay and tuning.towers.changes_images:
        were = encoded(tuning.before.backbone, photos.images).to(tuning.towers.device)

    def loss_at(step: int, rng: Generator) -> Iterator[Tensor]:
        draw = np.random.default_rng([job.seed, step])
        if stay or choice != "pearson":
            captions = photos.draw(settings.photos, draw)
            rows = [caption.row for caption in captions]
            images, texts = see(rows), tuning.texts(captions)
            loss = torch.zeros((), device=texts.device)
            if choice != "pearson":
                loss = loss + weights.contrastive * contrastive(images, texts, tuning.temperature)
            if stay:
                loss = loss + stay * distance(texts, tuning.texts_before(captions))
            if were is not None:
                loss = loss + stay * distance(images, were[torch.tensor(rows, device=were.device)])
            yield loss
        if choice != "contrastive":
            chosen = draw.choice(len(ratings.captions), min(settings.rated, len(ratings.captions)), replace=False)
            captions = [ratings.captions[place] for place in chosen]
            scores = (see([first + caption.row for caption in captions]) * tuning.texts(captions)).sum(-1)
            yield weights.pearson * pearson(scores, torch.from_numpy(values[chosen]).to(scores))

    return tuning.train(loss_at, tuning.validation(judged))
