"""Tuning a text tower to detect perturbed captions (PR-MCS, sections 3.4 and 5.2; appendix B).

A caption should score high with its photo, and its perturbed forms (repetition, removal, masking, jumble, substitution) lower.
New perturbations are drawn at every step, in the language of the caption. The image tower stays frozen.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from torch import Generator, Tensor

from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.perturbation import PERTURBATIONS, PROTOCOLS, check_protocol
from caplens.perturbation.base import Protocol
from caplens.training.loop.losses import contrastive, distance, ordered, perturbation_aware
from caplens.training.loop.prefetch import Prefetcher
from caplens.training.recipes.pairs import Caption, Photos, RatedCaptions, content_hash
from caplens.training.recipes.recipe import DataSettings, HeldOutSettings, ScoreTrainSettings, TuningRecipe
from caplens.training.recipes.tuning import Job, Tuning
from caplens.training.recipes.values import Choice, Cosine, Count, CountOrNone, Layers, Range, Weight


@dataclass(frozen=True, kw_only=True)
class PrmcsTrainSettings(ScoreTrainSettings):
    photos: Count
    """Photos per step, with one caption each."""
    sentences: CountOrNone
    """Captions without photos per step, where these are given."""
    epochs: CountOrNone
    """How often each caption is seen, instead of `steps`; 0: by steps."""
    forms: Layers
    """Perturbed forms per caption."""


@dataclass(frozen=True)
class PrmcsLosses:
    """Weights of the losses, and two thresholds (`margin`, `gap`)."""

    contrastive: Weight
    near: Weight
    """Pulls captions to their photos."""
    from_image: Weight
    """Pushes perturbed captions away from photos, down to a cosine of `margin`."""
    from_text: Weight
    """Pushes perturbed captions away from their originals, down to a cosine of `margin`."""
    margin: Cosine
    below: Weight
    """Ranks perturbed captions below their originals, by a difference of `gap` in cosine."""
    gap: Cosine
    stay: Weight
    """Keeps captions near their vectors before tuning."""


@dataclass(frozen=True)
class PerturbationSettings:
    protocol: Annotated[str, Choice(tuple(PROTOCOLS))]
    """How captions are perturbed: gentle or paper."""


@dataclass(frozen=True)
class PerturbationShares:
    """How often each perturbation is drawn, relative to the others."""

    repetition: Weight
    removal: Weight
    masking: Weight
    jumble: Weight
    substitution: Weight


@dataclass(frozen=True)
class PrmcsDataSettings(DataSettings):
    workers: Annotated[int, Range(0, 1024)]
    """Worker processes that perturb captions ahead of the training step."""


@dataclass(frozen=True)
class PrmcsRecipe(TuningRecipe):
    """The settings of `train_prmcs`."""

    name = "prmcs"

    train: PrmcsTrainSettings
    losses: PrmcsLosses
    perturbation: PerturbationSettings
    kinds: PerturbationShares
    validation: HeldOutSettings
    data: PrmcsDataSettings


def train_prmcs(
    samples: Iterable[Sample], job: Job, validate: Iterable[Sample] = (), sentences: Iterable[Sample] | None = None
) -> Path:
    """Tune the text tower of a model to detect perturbed captions.

    Parameters
    ----------
    samples
        Good captions with images.
    job
        The model, the folder of the run, and the recipe (a `PrmcsRecipe`).
    validate
        Captions with images and ratings. If given, the weights with the highest agreement are kept.
    sentences
        More good captions, without photos. Each is used with the photo whose vector is nearest before tuning.

    Returns
    -------
    Path
        The folder of the tuned model.
    """
    photos, extra_captions = Photos(samples), _captions(sentences) if sentences is not None else []
    validation_samples = list(validate)
    ratings = RatedCaptions.of(validation_samples) if validation_samples else None
    hashes = {
        "captions": photos.fingerprint,
        **({"sentences": content_hash(extra_captions)} if extra_captions else {}),
        **({"validation": ratings.fingerprint} if ratings else {}),
    }
    recipe = job.recipe
    assert isinstance(recipe, PrmcsRecipe)
    tuning = Tuning(job, hashes)
    settings, weights, shares = recipe.train, recipe.losses, asdict(recipe.kinds)
    if not any(share > 0 for share in shares.values()):
        raise InputError("no kind of perturbation has a share above 0; change the section [kinds] of the recipe.")
    if tuning.towers.changes_images:
        raise InputError(f"train.parts is {settings.parts!r}; prmcs trains the text tower only.")
    held_out, photos = _held_out(photos, 0.0 if ratings else recipe.validation.share, job.seed)
    steps = tuning.train_epochs(settings.epochs, len(photos.all_captions), settings.photos) if settings.epochs else settings.steps
    protocol = check_protocol(recipe.perturbation.protocol)
    image_vectors = tuning.see(photos.images)
    all_vectors = image_vectors(range(len(photos)))
    perturbation_weights = (weights.near, weights.from_image, weights.from_text)

    def draw(step: int) -> tuple[list[int], list[list[int]], list[int], list[list[int]]]:
        """Rows of photos, token ids of captions, and for each perturbed form the index of its caption and its token ids."""
        rng = np.random.default_rng([job.seed, step])
        captions = photos.draw(settings.photos, rng)
        rows = [caption.row for caption in captions]
        if extra_captions:
            captions += [extra_captions[index] for index in rng.integers(len(extra_captions), size=(settings.sentences,))]
        forms = [list(islice(_perturbed(caption, shares, protocol, rng, photos.objects), settings.forms)) for caption in captions]
        originals = [index for index, caption_forms in enumerate(forms) for _ in caption_forms]
        form_ids = tuning.tokenize([form for caption_forms in forms for form in caption_forms])
        return rows, tuning.tokenize(captions), originals, form_ids

    prefetched = Prefetcher(draw, steps, recipe.data.workers)

    def loss_at(step: int, _: Generator) -> Tensor:
        rows, ids, originals, form_ids = prefetched(step)
        if not originals:
            raise InputError("none of the captions of a batch can be perturbed.")
        before, texts, forms = tuning.read_before(ids), tuning.read(ids), tuning.read(form_ids)
        count = len(rows)
        # A caption without a photo is used with the photo that the model before tuning finds for it.
        images = torch.cat([image_vectors(rows), all_vectors[(before[count:] @ all_vectors.T).argmax(-1)]])
        form_images, form_texts = images[originals], texts[originals]
        return (
            weights.contrastive * contrastive(images[:count], texts[:count], tuning.temperature)
            + perturbation_aware(form_images, form_texts, forms, perturbation_weights, weights.margin)
            + weights.below * ordered(form_images, form_texts, forms, weights.gap)
            + weights.stay * distance(texts, before)
        )

    return tuning.train(loss_at, tuning.validation(ratings, held_out))


def _held_out(photos: Photos, share: float, seed: int) -> tuple[Photos | None, Photos]:
    """The photos that are held out, if any, and the others."""
    count = round(share * len(photos))
    if not count:
        return None, photos
    if min(count, len(photos) - count) < 2:
        raise InputError("fewer than two photos are held out, or left to train on. Add photos, or change validation.share.")
    order = np.random.default_rng(seed).permutation(len(photos)).tolist()
    return photos.some(order[:count]), photos.some(order[count:])


def _captions(sentences: Iterable[Sample]) -> list[Caption]:
    """The captions of samples without photos."""
    captions = [
        Caption(-1, sample.caption, base_language(sample.lang or "en"))
        for sample in sentences
        if sample.caption and sample.caption.strip()
    ]
    if not captions:
        raise InputError("the sentences contain no caption.")
    return captions


def _perturbed(
    caption: Caption,
    shares: Mapping[str, float],
    protocol: Protocol,
    rng: np.random.Generator,
    objects: Mapping[str, tuple[str, ...]],
) -> Iterator[Caption]:
    """The caption perturbed in each possible way, in random order; kinds with a larger share tend to come first.

    A caption that comes out as it was is no perturbed form, also by the protocol `paper`: it would push captions away from
    their own photos.
    """
    kinds = [kind for kind, share in shares.items() if share > 0]
    weights = np.array([shares[kind] for kind in kinds])
    for kind in rng.choice(kinds, len(kinds), replace=False, p=weights / weights.sum()):
        text = PERTURBATIONS[str(kind)](
            caption.text, caption.lang, int(rng.integers(1 << 31)), objects=objects.get(caption.text), protocol=protocol
        )
        if text is not None and text != " ".join(caption.text.split()):
            yield caption._replace(text=text)
