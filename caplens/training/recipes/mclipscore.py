"""Tuning on human ratings with contrastive and Pearson losses (multilingual CLIPScore, section 3).

Each step has a batch of photos with captions and a batch of rated captions. They are never mixed; their gradients add up.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

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
from caplens.training.recipes.values import Choice, Count, Weight

CHOICES = ("both", "contrastive", "pearson")


@dataclass(frozen=True, kw_only=True)
class MclipscoreTrainSettings(ScoreTrainSettings):
    photos: Count
    """Photos per step, with one caption each."""
    rated: Count
    """Rated captions per step."""
    noise: Weight
    """Noise on the input of the projections, relative to its norm."""


@dataclass(frozen=True)
class MclipscoreLosses:
    choice: Annotated[str, Choice(CHOICES)]
    """both, contrastive or pearson."""
    contrastive: Weight
    """Weight of the contrastive loss."""
    pearson: Weight
    """Weight of the Pearson loss."""
    clamp: bool
    """Whether negative cosines count as 0, as in CLIPScore."""
    ranks: bool
    """Whether ratings are replaced by their ranks."""
    stay: Weight
    """Weight of the distance of photos and captions from their vectors before tuning."""


@dataclass(frozen=True)
class MclipscoreRecipe(TuningRecipe):
    """The settings of `train_mclipscore`."""

    name = "mclipscore"

    train: MclipscoreTrainSettings
    losses: MclipscoreLosses
    validation: ValidationSettings
    data: DataSettings


def train_mclipscore(samples: Iterable[Sample], rated: Iterable[Sample], job: Job, validate: Iterable[Sample] = ()) -> Path:
    """Tune a model on captions with human ratings.

    Parameters
    ----------
    samples
        Good captions with images, for the contrastive loss.
    rated
        Captions with images and ratings, for the Pearson loss.
    job
        The model, the folder of the run, and the recipe (a `MclipscoreRecipe`).
    validate
        Held-out captions with images and ratings. If given, the weights with the highest agreement are kept.

    Returns
    -------
    Path
        The folder of the tuned model.
    """
    photos, ratings = Photos(samples), RatedCaptions.of(rated)
    validation_samples = list(validate)
    validation_ratings = RatedCaptions.of(validation_samples) if validation_samples else None
    recipe = job.recipe
    assert isinstance(recipe, MclipscoreRecipe)
    settings, weights, choice = recipe.train, recipe.losses, recipe.losses.choice
    hashes = {
        "captions": photos.fingerprint,
        "ratings": ratings.fingerprint,
        **({"validation": validation_ratings.fingerprint} if validation_ratings else {}),
    }
    tuning = Tuning(job, hashes, settings.noise)
    if settings.rated < 2:
        raise InputError("a batch of one rating has no correlation; raise train.rated.")
    tuning.know([*photos.all_captions, *ratings.captions])
    values = rankdata(ratings.values) if weights.ranks else ratings.values
    images = [*photos.images, *ratings.images]
    image_vectors, first_rated = tuning.see(images), len(photos)
    stay = weights.stay
    vectors_before = None
    if stay and tuning.towers.changes_images:
        vectors_before = encoded(tuning.before.backbone, photos.images).to(tuning.towers.device)

    def loss_at(step: int, _: Generator) -> Iterator[Tensor]:
        rng = np.random.default_rng([job.seed, step])
        if stay or choice != "pearson":
            captions = photos.draw(settings.photos, rng)
            rows = [caption.row for caption in captions]
            images, texts = image_vectors(rows), tuning.texts(captions)
            loss = torch.zeros((), device=texts.device)
            if choice != "pearson":
                loss = loss + weights.contrastive * contrastive(images, texts, tuning.temperature)
            if stay:
                loss = loss + stay * distance(texts, tuning.texts_before(captions))
            if vectors_before is not None:
                loss = loss + stay * distance(images, vectors_before[torch.tensor(rows, device=vectors_before.device)])
            yield loss
        if choice != "contrastive":
            indices = rng.choice(len(ratings.captions), min(settings.rated, len(ratings.captions)), replace=False)
            captions = [ratings.captions[index] for index in indices]
            images = image_vectors([first_rated + caption.row for caption in captions])
            scores = (images * tuning.texts(captions)).sum(-1)
            if weights.clamp:
                scores = scores.clamp(min=0)
            yield weights.pearson * pearson(scores, torch.from_numpy(values[indices]).to(scores))

    return tuning.train(loss_at, tuning.validation(validation_ratings))
