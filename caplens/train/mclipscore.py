"""Contrastive and Pearson losses (multilingual CLIPScore, section 3): a score that tells photos apart, and rates as people do.

Batches of captions of photos and batches of rated captions take turns, and are never mixed; the gradients of the two add up
before each step.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Generator, Tensor

from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.train.losses import contrastive, distance, pearson
from caplens.train.pairs import Photos, Ratings
from caplens.train.sight import encoded
from caplens.train.tuning import Job, Tuning

CHOICES = ("both", "contrastive", "pearson")


def train_mclipscore(samples: Iterable[Sample], rated: Iterable[Sample], job: Job, validate: Iterable[Sample] = ()) -> Path:
    """Tune a model on good captions (`samples`) and on captions with ratings; gives back the folder of the new one.

    With `validate`, other captions with ratings, the weights that agree best with these are kept.
    """
    photos, ratings = Photos(samples), Ratings.of(rated)
    held_out = list(validate)
    judged = Ratings.of(held_out) if held_out else None
    tuning = Tuning("mclipscore", job, {"captions": photos.fingerprint, "ratings": ratings.fingerprint})
    section, weights, choice = job.config["train"], job.config["losses"], job.config["losses"]["choice"]
    if choice not in CHOICES:
        raise InputError(f"losses.choice is {choice!r}; choose from: {', '.join(CHOICES)}.")
    if section["rated"] < 2:
        raise InputError("a batch of one rating has nothing to agree with; raise train.rated.")
    values = rankdata(ratings.values) if weights["ranks"] else ratings.values
    pictures = [*photos.pictures, *ratings.pictures]
    see, first = tuning.see(pictures), len(photos)
    stay: float = weights["stay"]
    were = None
    if stay and tuning.towers.changes_images:
        were = encoded(tuning.before.backbone, photos.pictures).to(tuning.towers.device)

    def loss_at(step: int, chance: Generator) -> Iterator[Tensor]:
        draw = np.random.default_rng([job.seed, step])
        if stay or choice != "pearson":
            captions = photos.draw(section["photos"], draw)
            rows = [caption.row for caption in captions]
            images, texts = see(rows), tuning.texts(captions)
            loss = torch.zeros((), device=texts.device)
            if choice != "pearson":
                loss = loss + weights["contrastive"] * contrastive(images, texts, tuning.temperature)
            if stay:
                loss = loss + stay * distance(texts, tuning.texts_before(captions))
            if were is not None:
                loss = loss + stay * distance(images, were[torch.tensor(rows, device=were.device)])
            yield loss
        if choice != "contrastive":
            chosen = draw.choice(len(ratings.captions), min(section["rated"], len(ratings.captions)), replace=False)
            captions = [ratings.captions[place] for place in chosen]
            scores = (see([first + caption.row for caption in captions]) * tuning.texts(captions)).sum(-1)
            yield weights["pearson"] * pearson(scores, torch.from_numpy(values[chosen]).to(scores))

    return tuning.train(loss_at, tuning.validation(judged))
