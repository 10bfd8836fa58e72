"""Positive-augmented contrastive training (PAC-S, sections 3 and 4.1).

Beside each photo V and caption T there are a generated image V' of the caption and a generated caption T' of the photo, as
further positives: L(V, T) + a L(V', T) + b L(V, T'). Only the last projections learn, or low-rank adapters on all layers
(PAC-S++).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from torch import Generator, Tensor

from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.training.loop.losses import positive_augmented
from caplens.training.recipes.pairs import Caption, ImageIndex, Photos, RatedCaptions, content_hash
from caplens.training.recipes.recipe import DataSettings, HeldOutSettings, ScoreTrainSettings, TuningRecipe
from caplens.training.recipes.tuning import Job, Tuning

MADE_IMAGE, MADE_CAPTION = "made_image", "made_caption"
"""Fields of a caption's record, as `caplens augment` writes them."""


@dataclass(frozen=True, kw_only=True)
class PacsTrainSettings(ScoreTrainSettings):
    photos: int
    """At a step."""


@dataclass(frozen=True)
class PacsLosses:
    made_images: float
    made_texts: float


@dataclass(frozen=True)
class PacsRecipe(TuningRecipe):
    name = "pacs"

    train: PacsTrainSettings
    losses: PacsLosses
    validation: HeldOutSettings
    data: DataSettings


class Tuples:
    """(V, T, V', T') of photos: of each photo, the captions that have a generated image, and the generated captions."""

    def __init__(self, samples: Sequence[Sample], folder: Path) -> None:
        """Generated images are named relative to `folder`."""
        complete = []
        for sample in samples:
            made_image, made_caption = (sample.meta.get(name) for name in (MADE_IMAGE, MADE_CAPTION))
            if isinstance(made_image, str) and isinstance(made_caption, str) and made_caption.strip():
                complete.append(replace(sample, meta={MADE_IMAGE: str(folder / made_image), MADE_CAPTION: made_caption}))
        if not complete:
            raise InputError(
                f"no caption has both {MADE_IMAGE!r} and {MADE_CAPTION!r}; 'caplens augment' makes them, or bring your own."
            )
        self.photos, numbered = Photos(complete), ImageIndex()
        self.captions: list[list[tuple[Caption, str, str]]] = [[] for _ in self.photos.images]
        for sample in complete:
            caption = numbered.caption(sample)
            if caption is not None:
                self.captions[caption.row].append((caption, sample.meta[MADE_IMAGE], sample.meta[MADE_CAPTION]))
        self.made = list(dict.fromkeys(image for some in self.captions for _, image, _ in some))
        self._rows = {image: row for row, image in enumerate(self.made)}

    @property
    def fingerprint(self) -> str:
        said = [[(Path(image).name, text) for _, image, text in some] for some in self.captions]
        return content_hash([self.photos.fingerprint, said])

    def draw(self, rows: Sequence[int], rng: np.random.Generator) -> tuple[list[Caption], list[int], list[Caption]]:
        """Of each photo a caption, the number of its image in `made`, and a generated caption."""
        chosen = [self.captions[row][rng.integers(len(self.captions[row]))] for row in rows]
        return (
            [caption for caption, _, _ in chosen],
            [self._rows[image] for _, image, _ in chosen],
            [caption._replace(text=text) for caption, _, text in chosen],
        )


def train_pacs(samples: Sequence[Sample], folder: Path, job: Job, validate: Iterable[Sample] = ()) -> Path:
    """Tune a model on tuples; returns the folder of the new one. Generated images are named relative to `folder`.

    With `validate`, captions with ratings, the weights that agree best with these are kept; without, those with the least
    contrastive loss on a share of the photos that is not trained on.
    """
    held_out = list(validate)
    judged = RatedCaptions.of(held_out) if held_out else None
    tuples = Tuples(samples, folder)
    recipe = job.recipe
    assert isinstance(recipe, PacsRecipe)
    photos, settings, weights = tuples.photos, recipe.train, recipe.losses
    tuning = Tuning(job, {"tuples": tuples.fingerprint})
    order = np.random.default_rng(job.seed).permutation(len(photos))
    kept = 0 if judged else max(2, round(recipe.validation.share * len(photos)))
    learned = order[kept:]
    if len(learned) < 2 or settings.photos < 2:
        raise InputError("a batch of one photo has nothing to tell it from; bring more photos, or take larger batches.")
    see, see_made = tuning.see(photos.images), tuning.see(tuples.made)

    def loss_at(step: int, rng: Generator) -> Tensor:
        draw = np.random.default_rng([job.seed, step])
        rows = draw.choice(learned, min(settings.photos, len(learned)), replace=False).tolist()
        captions, images, texts = tuples.draw(rows, draw)
        vectors = see(rows), tuning.texts(captions), see_made(images), tuning.texts(texts)
        return positive_augmented(*vectors, tuning.temperature, weights.made_images, weights.made_texts)

    apart = photos.some(order[:kept].tolist()) if kept else None
    return tuning.train(loss_at, tuning.validation(judged, apart))
