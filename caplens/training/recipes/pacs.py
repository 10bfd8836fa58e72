"""Positive-augmented contrastive training (PAC-S, sections 3 and 4.1).

For each photo V and caption T, a generated image V' of the caption and a generated caption T' of the photo are further positives:
L(V, T) + a L(V', T) + b L(V, T'). Only the last projections are trained, or low-rank adapters on all layers (PAC-S++).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from torch import Generator, Tensor

from caplens.data.image_folder import with_images
from caplens.data.media import MissingImage
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.training.loop.losses import positive_augmented
from caplens.training.recipes.pairs import Caption, ImageIndex, Photos, RatedCaptions, content_hash, named_contents
from caplens.training.recipes.recipe import DataSettings, HeldOutSettings, ScoreTrainSettings, TuningRecipe
from caplens.training.recipes.tuning import Job, Tuning
from caplens.training.recipes.values import Count, Weight

MADE_IMAGE, MADE_CAPTION = "made_image", "made_caption"
"""Columns that `caplens augment` adds to a file of captions."""


@dataclass(frozen=True, kw_only=True)
class PacsTrainSettings(ScoreTrainSettings):
    photos: Count
    """Photos per step."""


@dataclass(frozen=True)
class PacsLosses:
    made_images: Weight
    """Weight of generated images."""
    made_texts: Weight
    """Weight of generated captions."""


@dataclass(frozen=True)
class PacsRecipe(TuningRecipe):
    """The settings of `train_pacs`."""

    name = "pacs"

    train: PacsTrainSettings
    losses: PacsLosses
    validation: HeldOutSettings
    data: DataSettings


class Tuples:
    """(V, T, V', T') of each photo: captions with their generated images, and generated captions.

    The names of generated images are relative to `folder`.
    """

    def __init__(self, samples: Sequence[Sample], folder: Path) -> None:
        complete = []
        for sample in samples:
            made_image, made_caption = (sample.meta.get(name) for name in (MADE_IMAGE, MADE_CAPTION))
            if isinstance(made_image, str) and made_image and isinstance(made_caption, str) and made_caption.strip():
                path = _generated_image(folder, made_image)
                complete.append(replace(sample, meta={MADE_IMAGE: path, MADE_CAPTION: made_caption}))
        if not complete:
            raise InputError(
                f"no caption has both {MADE_IMAGE!r} and {MADE_CAPTION!r}; add these columns, or generate them with"
                " 'caplens augment'."
            )
        self.photos, index = Photos(complete), ImageIndex()
        self.captions: list[list[tuple[Caption, str, str]]] = [[] for _ in self.photos.images]
        for sample in complete:
            caption = index.caption(sample)
            if caption is not None:
                self.captions[caption.row].append((caption, sample.meta[MADE_IMAGE], sample.meta[MADE_CAPTION]))
        self.generated_images = list(dict.fromkeys(image for captions in self.captions for _, image, _ in captions))
        """Paths of the generated images."""
        self._rows = {image: row for row, image in enumerate(self.generated_images)}

    @property
    def fingerprint(self) -> str:
        generated = [[(*named_contents([image]), text) for _, image, text in captions] for captions in self.captions]
        return content_hash([self.photos.fingerprint, generated])

    @property
    def all_captions(self) -> list[Caption]:
        """The captions of photos, and the generated ones."""
        drawn = [entry for captions in self.captions for entry in captions]
        return [*(caption for caption, _, _ in drawn), *(caption._replace(text=text) for caption, _, text in drawn)]

    def draw(self, rows: Sequence[int], rng: np.random.Generator) -> tuple[list[Caption], list[int], list[Caption]]:
        """For each photo a caption, the row of its image in `made`, and a generated caption."""
        drawn = [self.captions[row][rng.integers(len(self.captions[row]))] for row in rows]
        return (
            [caption for caption, _, _ in drawn],
            [self._rows[image] for _, image, _ in drawn],
            [caption._replace(text=text) for caption, _, text in drawn],
        )


def _generated_image(folder: Path, name: str) -> str:
    """The file of a generated image, which lies inside the folder."""
    (sample,) = with_images([Sample(name, image=name)], folder)
    if not isinstance(sample.image, str):
        raise InputError(f"{sample.image.reason if isinstance(sample.image, MissingImage) else name}.")
    return sample.image


def train_pacs(samples: Sequence[Sample], folder: Path, job: Job, validate: Iterable[Sample] = ()) -> Path:
    """Tune a model with generated images and captions as further positives.

    Parameters
    ----------
    samples
        Good captions with images, each with `made_image` and `made_caption` in its `meta`.
    folder
        The folder that the names of generated images are relative to.
    job
        The model, the folder of the run, and the recipe (a `PacsRecipe`).
    validate
        Captions with images and ratings: the weights with the highest agreement are kept. Or captions with images alone, such as
        those of Karpathy's validation part: those with the lowest contrastive loss on them. Without, a share of the photos.

    Returns
    -------
    Path
        The folder of the tuned model.
    """
    validation_samples = list(validate)
    rated = any(sample.ratings for sample in validation_samples)
    ratings = RatedCaptions.of(validation_samples) if rated else None
    own = Photos(validation_samples) if validation_samples and not rated else None
    tuples = Tuples(samples, folder)
    recipe = job.recipe
    assert isinstance(recipe, PacsRecipe)
    photos, settings, weights = tuples.photos, recipe.train, recipe.losses
    measured = ratings or own
    tuning = Tuning(job, {"tuples": tuples.fingerprint, **({"validation": measured.fingerprint} if measured else {})})
    tuning.know([*tuples.all_captions, *(own.all_captions if own else [])])
    order = np.random.default_rng(job.seed).permutation(len(photos))
    held_out_count = 0 if measured else max(2, round(recipe.validation.share * len(photos)))
    trained = order[held_out_count:]
    if len(trained) < 2 or settings.photos < 2:
        raise InputError("a batch of one photo has no negatives; add photos, or raise train.photos.")
    photo_vectors, generated_vectors = tuning.see(photos.images), tuning.see(tuples.generated_images)

    def loss_at(step: int, _: Generator) -> Tensor:
        rng = np.random.default_rng([job.seed, step])
        rows = rng.choice(trained, min(settings.photos, len(trained)), replace=False).tolist()
        captions, image_rows, generated_captions = tuples.draw(rows, rng)
        vectors = (
            photo_vectors(rows),
            tuning.texts(captions),
            generated_vectors(image_rows),
            tuning.texts(generated_captions),
        )
        return positive_augmented(*vectors, tuning.temperature, weights.made_images, weights.made_texts)

    held_out = photos.some(order[:held_out_count].tolist()) if held_out_count else own
    return tuning.train(loss_at, tuning.validation(ratings, held_out))
