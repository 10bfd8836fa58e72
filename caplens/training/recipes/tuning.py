"""What the recipes that tune a model share: opening it, choosing what learns, the run, and writing the new model."""

from collections.abc import Callable, Mapping, Sequence
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

_JUDGED_AT_ONCE = 256


class Job(NamedTuple):
    """What every recipe is asked to do."""

    model: str
    folder: Path
    recipe: TuningRecipe
    seed: int = 0
    device: str = "auto"
    tensorboard: bool = False


class Tuning:
    """One run of a recipe.

    `data_hashes` are hashes of its data; `noise` is added to the features that projections get, where only those are trained.
    """

    def __init__(self, job: Job, data_hashes: Mapping[str, str], noise: float = 0.0) -> None:
        self.job, self.recipe, self.settings = job, job.recipe, job.recipe.train
        self.towers: Towers = open_towers(job.model, job.device)
        hashes = {"model": self.towers.backbone.fingerprint, **data_hashes}
        settings, half = job.recipe.to_dict(), job.recipe.data.half
        self.run = Run(job.folder, settings, job.seed, self.towers.device, hashes, job.tensorboard, half)
        self.run.begin()
        torch.manual_seed(job.seed)
        self.towers.learn(self.settings.parts)
        self._at_once = self.settings.at_once
        self._noise = noise
        if noise and not self.towers.heads_only:
            logger.info("train.noise is not used: it is for models like caplens-mini whose projections alone are trained.")

    @property
    def temperature(self) -> float:
        """Of contrastive losses."""
        own = self.settings.temperature if isinstance(self.settings, ScoreTrainSettings) else 0.0
        return own or self.towers.temperature

    @cached_property
    def before(self) -> Towers:
        """The model as it was."""
        made = open_towers(self.job.model, self.job.device)
        for network in made.networks.values():
            network.requires_grad_(False).eval()
        return made

    def see(self, images: Sequence[ImageSource]) -> ImageFeatures:
        return ImageFeatures(self.towers, images, self.run.group, self._at_once, self._noise)

    def tokenize(self, captions: Sequence[Caption]) -> list[list[int]]:
        prompt = self.settings.prompt if isinstance(self.settings, ScoreTrainSettings) else ""
        return self.towers.tokenize([prompt + caption.text for caption in captions], [caption.lang for caption in captions])

    def read(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Vectors of texts, with gradients."""
        return self.run.group.encode(self.towers.encode_texts, ids, self._at_once)

    @torch.no_grad()
    def read_before(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Vectors as the model made them before."""
        return self.run.group.encode(self.before.encode_texts, ids, self._at_once)

    def texts(self, captions: Sequence[Caption]) -> Tensor:
        """Vectors of captions. Where only the last layer learns, what it gets is made once for each caption."""
        if self.towers.heads_only:
            return self._text_features.texts(captions, self.towers, self._noise)
        return self.read(self.tokenize(captions))

    @torch.no_grad()
    def texts_before(self, captions: Sequence[Caption]) -> Tensor:
        if self.towers.heads_only:
            return self._text_features.texts(captions, self.before)
        return self.read_before(self.tokenize(captions))

    @torch.no_grad()
    def _keep(self, share: float) -> None:
        """Bring all weights back by a share of the way they have come (Wortsman et al. 2022)."""
        if share:
            for (_, new), (_, old) in zip(self.towers.parameters(), self.before.parameters(), strict=True):
                new.lerp_(old, share)

    @cached_property
    def _text_features(self) -> "TextFeatures":
        return TextFeatures(self)

    def by_ratings(self, ratings: RatedCaptions) -> Callable[[], float]:
        """Kendall's tau-b, times 100, of scores and ratings."""
        see = self.see(ratings.images)
        tau = get_coefficient("tau-b")

        def measure() -> float:
            scores = [
                (see([one.row for one in some]) * self.texts(some)).sum(-1).cpu().numpy() for some in _in_parts(ratings.captions)
            ]
            return 100 * float(tau(np.concatenate(scores).astype(np.float64), ratings.values))

        return measure

    def by_photos(self, photos: Photos) -> Callable[[], float]:
        """Minus the contrastive loss on photos that are not trained on, each with one caption."""
        see = self.see(photos.images)
        parts = _in_parts(photos.draw(len(photos), np.random.default_rng(self.job.seed)))
        parts = [part for part in parts if len(part) > 1]

        def measure() -> float:
            losses = [contrastive(see([one.row for one in some]), self.texts(some), self.temperature) for some in parts]
            return -float(torch.stack(losses).mean())

        return measure

    def validation(self, ratings: RatedCaptions | None, photos: Photos | None = None) -> Validation | None:
        settings = self.recipe.validation
        if ratings is not None:
            return Validation(self.by_ratings(ratings), settings.every, settings.patience)
        if photos is not None:
            return Validation(self.by_photos(photos), settings.every, settings.patience)
        return None

    def train(self, loss_at: Callable[[int, Generator], Losses], validation: Validation | None = None) -> Path:
        """Train, and write the model; returns its folder."""
        networks, settings = self.towers.networks, self.settings
        schedule = Schedule(settings.steps, settings.rate, settings.decay, settings.warmup, settings.average)

        def weights() -> Mapping[str, Tensor]:
            trained = self.run.fit("tune", networks, loss_at, schedule, validation=validation)
            return nn.ModuleDict(trained).state_dict()

        self.run.stage("tune", nn.ModuleDict(networks), weights)
        folder = self.run.folder / "model"
        self.towers.finish()
        self._keep(settings.keep if isinstance(settings, ScoreTrainSettings) else 0.0)
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
    """What the last layer of the text tower gets, for each caption that was asked for."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._features: dict[Caption, Tensor] = {}

    def texts(self, captions: Sequence[Caption], towers: Towers, noise: float = 0.0) -> Tensor:
        """Their vectors by the last layer of `towers`."""
        bare = [caption._replace(row=0) for caption in captions]
        new = [caption for caption in dict.fromkeys(bare) if caption not in self._features]
        with torch.no_grad():
            for some in _in_parts(new):
                self._features |= zip(some, self._tuning.towers.text_trunk(self._tuning.tokenize(some)), strict=True)
        features = with_noise(torch.stack([self._features[caption] for caption in bare]), noise)
        return self._tuning.run.group.encode(lambda some: F.normalize(towers.text_head(some).float(), dim=-1), features)


def _in_parts(captions: Sequence[Caption]) -> list[Sequence[Caption]]:
    return [captions[start : start + _JUDGED_AT_ONCE] for start in range(0, len(captions), _JUDGED_AT_ONCE)]
