"""What all recipes that tune a model share: loading it, choosing what is trained, running the loop, and writing the new model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from caplens.data.media import ImageSource
from caplens.progress import logger
from caplens.stats import get_coefficient
from caplens.training.loop.fit import Losses, Schedule, Validation
from caplens.training.loop.image_features import ImageFeatures, with_noise
from caplens.training.loop.losses import contrastive
from caplens.training.loop.run import Run
from caplens.training.loop.towers import Towers, open_towers
from caplens.training.recipes.pairs import Caption, Photos, RatedCaptions
from caplens.training.recipes.recipe import ScoreTrainSettings, TuningRecipe

_BATCH_SIZE = 256
"""Captions that are encoded together without gradients."""


class Job(NamedTuple):
    """What to tune, with which recipe, and where."""

    model: str
    folder: Path
    """The folder of the run."""
    recipe: TuningRecipe
    seed: int = 0
    device: str = "auto"
    tensorboard: bool = False


class Tuning:
    """One run of a recipe.

    `data_hashes` are hashes of the training data, by name. `noise` is added to the input of the projections, where only these are
    trained.
    """

    def __init__(self, job: Job, data_hashes: Mapping[str, str], noise: float = 0.0) -> None:
        self.job, self.recipe, self.settings = job, job.recipe, job.recipe.train
        self.towers: Towers = open_towers(job.model, job.device)
        hashes = {"model": self.towers.backbone.fingerprint, **data_hashes}
        settings, half = job.recipe.to_dict(), job.recipe.data.half
        self.run = Run(job.folder, settings, job.seed, self.towers.device, hashes, job.tensorboard, half)
        self.run.check()
        torch.manual_seed(job.seed)
        self.towers.learn(self.settings.parts)
        self._at_once = self.settings.at_once
        self._known: dict[Caption, None] = {}
        self._noise = noise
        self._steps: int | None = None
        if noise and not self.towers.heads_only:
            logger.info(
                "train.noise is ignored: it applies only where just the projections of a model like caplens-mini are trained."
            )

    def train_epochs(self, epochs: int, items: int, batch: int) -> int:
        """Train for so many epochs instead of `train.steps`; returns the steps that these are."""
        self._steps = max(1, -(-epochs * items // batch))
        return self._steps

    def know(self, captions: Iterable[Caption]) -> None:
        """Name captions whose vectors will be asked for; all are named before the first is."""
        self._known |= dict.fromkeys(caption._replace(row=0) for caption in captions)

    @property
    def temperature(self) -> float:
        """The temperature of contrastive losses."""
        temperature = self.settings.temperature if isinstance(self.settings, ScoreTrainSettings) else 0.0
        return temperature or self.towers.temperature

    @cached_property
    def before(self) -> Towers:
        """The model before tuning, frozen."""
        towers = open_towers(self.job.model, self.job.device)
        for network in towers.networks.values():
            network.requires_grad_(False).eval()
        return towers

    def see(self, images: Sequence[ImageSource]) -> ImageFeatures:
        """The vectors of images, by row."""
        return ImageFeatures(self.towers, images, self.run.group, self._at_once, self._noise)

    def tokenize(self, captions: Sequence[Caption]) -> list[list[int]]:
        """Token ids of captions, with the prompt before each."""
        prompt = self.settings.prompt if isinstance(self.settings, ScoreTrainSettings) else ""
        return self.towers.tokenize([prompt + caption.text for caption in captions], [caption.lang for caption in captions])

    def read(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Vectors of token ids, with gradients."""
        return self.run.group.encode(self.towers.encode_texts, ids, self._at_once)

    @torch.no_grad()
    def read_before(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Vectors of token ids by the model before tuning."""
        return self.run.group.encode(self.before.encode_texts, ids, self._at_once)

    def texts(self, captions: Sequence[Caption]) -> Tensor:
        """Vectors of captions, with gradients. Where only the last layer is trained, its input is computed once per caption."""
        if self.towers.heads_only:
            return self._text_features.texts(captions, self.towers, self._noise)
        return self.read(self.tokenize(captions))

    @torch.no_grad()
    def texts_before(self, captions: Sequence[Caption]) -> Tensor:
        """Vectors of captions by the model before tuning."""
        if self.towers.heads_only:
            return self._text_features.texts(captions, self.before)
        return self.read_before(self.tokenize(captions))

    @torch.no_grad()
    def _mix_with_old_weights(self, share: float) -> None:
        """Interpolate all weights towards those before tuning, by `share` (Wortsman et al. 2022)."""
        if share:
            for (_, new), (_, old) in zip(self.towers.parameters(), self.before.parameters(), strict=True):
                new.lerp_(old, share)

    @cached_property
    def _text_features(self) -> "TextFeatures":
        return TextFeatures(self, list(self._known))

    def by_ratings(self, ratings: RatedCaptions) -> Callable[[], float]:
        """A function that measures Kendall's tau-b, times 100, between cosines and ratings."""
        image_vectors = self.see(ratings.images)
        self.know(ratings.captions)
        tau = get_coefficient("tau-b")

        def measure() -> float:
            scores = [
                (image_vectors([caption.row for caption in batch]) * self.texts(batch)).sum(-1).cpu().numpy()
                for batch in _batches(ratings.captions)
            ]
            return 100 * float(tau(np.concatenate(scores).astype(np.float64), ratings.values))

        return measure

    def by_photos(self, photos: Photos) -> Callable[[], float]:
        """A function that measures minus the contrastive loss on held-out photos, with one caption each."""
        image_vectors = self.see(photos.images)
        batches = _batches(photos.draw(len(photos), np.random.default_rng(self.job.seed)))
        batches = [batch for batch in batches if len(batch) > 1]

        def measure() -> float:
            losses = [
                contrastive(image_vectors([caption.row for caption in batch]), self.texts(batch), self.temperature)
                for batch in batches
            ]
            return -float(torch.stack(losses).mean())

        return measure

    def validation(self, ratings: RatedCaptions | None, photos: Photos | None = None) -> Validation | None:
        """Validation by ratings if there are any, else by held-out photos if there are any."""
        settings = self.recipe.validation
        if ratings is not None:
            return Validation(self.by_ratings(ratings), settings.every, settings.patience)
        if photos is not None:
            return Validation(self.by_photos(photos), settings.every, settings.patience)
        return None

    def train(self, loss_at: Callable[[int, Generator], Losses], validation: Validation | None = None) -> Path:
        """Train and write the model; returns its folder."""
        # Only now, so that a command that was refused for another reason can be corrected.
        self.run.begin()
        networks, settings = self.towers.networks, self.settings
        steps = self.settings.steps if self._steps is None else self._steps
        constant = settings.schedule == "constant"
        schedule = Schedule(steps, settings.rate, settings.decay, settings.warmup, settings.average, settings.clip, constant)

        def weights() -> Mapping[str, Tensor]:
            trained = self.run.fit("tune", networks, loss_at, schedule, validation=validation)
            return nn.ModuleDict(trained).state_dict()

        self.run.stage("tune", nn.ModuleDict(networks), weights)
        folder = self.run.folder / "model"
        self.towers.finish()
        self._mix_with_old_weights(settings.keep if isinstance(settings, ScoreTrainSettings) else 0.0)
        about: dict[str, Any] = {
            "recipe": self.recipe.name,
            "settings": self.recipe.to_dict(),
            "seed": self.run.seed,
            "given": dict(self.run.data_hashes),
        }
        if validation is not None:
            with torch.no_grad():
                about["validation"] = validation.measure()
        if self.run.group.is_main:
            self.towers.save(folder, about)
        self.run.group.wait()
        return folder


class TextFeatures:
    """The input of the text tower's last layer, computed once per caption.

    Numbers depend, in their last bits, on what else is in a batch. So a caption is always computed with its neighbours among the
    known captions, at whatever step it is first needed: a run that was killed and resumed has the same features.
    """

    def __init__(self, tuning: Tuning, known: Sequence[Caption]) -> None:
        self._tuning = tuning
        self._batches = _batches(known)
        self._batch_of = {caption: number for number, batch in enumerate(self._batches) for caption in batch}
        self._features: dict[Caption, Tensor] = {}

    def texts(self, captions: Sequence[Caption], towers: Towers, noise: float = 0.0) -> Tensor:
        """The vectors of captions by the last layer of `towers`."""
        keys = [caption._replace(row=0) for caption in captions]
        missing = sorted({self._batch_of[key] for key in keys if key not in self._features})
        with torch.no_grad():
            for batch in (self._batches[number] for number in missing):
                self._features |= zip(batch, self._tuning.towers.text_trunk(self._tuning.tokenize(batch)), strict=True)
        features = with_noise(torch.stack([self._features[key] for key in keys]), noise)
        return self._tuning.run.group.encode(lambda part: F.normalize(towers.text_head(part).float(), dim=-1), features)


def _batches(captions: Sequence[Caption]) -> list[Sequence[Caption]]:
    return [captions[start : start + _BATCH_SIZE] for start in range(0, len(captions), _BATCH_SIZE)]
