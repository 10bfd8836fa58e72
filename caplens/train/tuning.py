"""What the recipes that tune a model share: opening it, choosing what learns, the run, and writing the new model."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from caplens.data.sample import Picture
from caplens.progress import note
from caplens.stats import get_coefficient
from caplens.train.loop import Losses, Schedule, Validation
from caplens.train.losses import contrastive
from caplens.train.pairs import Caption, Photos, Ratings
from caplens.train.recipe import Config
from caplens.train.run import Run
from caplens.train.sight import Sight, with_noise
from caplens.train.towers import Towers, open_towers

_JUDGED_AT_ONCE = 256


class Job(NamedTuple):
    """What is asked of a recipe, whichever it is."""

    model: str
    folder: Path
    config: Config
    seed: int = 0
    device: str = "auto"
    tensorboard: bool = False


class Tuning:
    """One run of a recipe: `given` are hashes of its data."""

    def __init__(self, recipe: str, job: Job, given: Mapping[str, str]) -> None:
        self.recipe, self.job, self.config = recipe, job, job.config
        self.towers: Towers = open_towers(job.model, job.device)
        given = {"model": self.towers.backbone.fingerprint, **given}
        self.run = Run(job.folder, job.config, job.seed, self.towers.device, given, job.tensorboard)
        self.run.begin()
        torch.manual_seed(job.seed)
        self.towers.learn(self.config["train"]["parts"])
        self._at_once: int = self.config["train"]["at_once"]
        self._noise: float = self.config["train"].get("noise", 0.0)
        if self._noise and not self.towers.heads_only:
            note("train.noise is left off: it is for models like caplens-mini whose projections alone are trained.")

    @property
    def temperature(self) -> float:
        """Of contrastive losses."""
        return self.config["train"]["temperature"] or self.towers.temperature

    @cached_property
    def before(self) -> Towers:
        """The model as it was."""
        made = open_towers(self.job.model, self.job.device)
        for network in made.networks.values():
            network.requires_grad_(False).eval()
        return made

    def see(self, pictures: Sequence[Picture]) -> Sight:
        return Sight(self.towers, pictures, self.run.team, self._at_once, self._noise)

    def tokenize(self, captions: Sequence[Caption]) -> list[list[int]]:
        prompt: str = self.config["train"]["prompt"]
        return self.towers.tokenize([prompt + caption.text for caption in captions], [caption.lang for caption in captions])

    def read(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Vectors of texts, with gradients."""
        return self.run.team.encode(self.towers.encode_texts, ids, self._at_once)

    @torch.no_grad()
    def read_before(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Vectors as the model made them before."""
        return self.run.team.encode(self.before.encode_texts, ids, self._at_once)

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

    def by_ratings(self, ratings: Ratings) -> Callable[[], float]:
        """Kendall's tau-b, times 100, of scores and ratings."""
        see = self.see(ratings.pictures)
        tau = get_coefficient("tau-b")

        def measure() -> float:
            scores = [
                (see([one.row for one in some]) * self.texts(some)).sum(-1).cpu().numpy() for some in _in_parts(ratings.captions)
            ]
            return 100 * float(tau(np.concatenate(scores).astype(np.float64), ratings.values))

        return measure

    def by_photos(self, photos: Photos) -> Callable[[], float]:
        """Minus the contrastive loss on photos that are not trained on, each with one caption."""
        see = self.see(photos.pictures)
        parts = _in_parts(photos.draw(len(photos), np.random.default_rng(self.job.seed)))
        parts = [part for part in parts if len(part) > 1]

        def measure() -> float:
            losses = [contrastive(see([one.row for one in some]), self.texts(some), self.temperature) for some in parts]
            return -float(torch.stack(losses).mean())

        return measure

    def validation(self, ratings: Ratings | None, photos: Photos | None = None) -> Validation | None:
        section = self.config["validation"]
        if ratings is not None:
            return Validation(self.by_ratings(ratings), section["every"], section["patience"])
        if photos is not None:
            return Validation(self.by_photos(photos), section["every"], section["patience"])
        return None

    def train(self, loss_at: Callable[[int, Generator], Losses], validation: Validation | None = None) -> Path:
        """Train, and write the model; gives back its folder."""
        networks, section = self.towers.networks, self.config["train"]
        schedule = Schedule(section["steps"], section["rate"], section["decay"], section["warmup"], section["average"])

        def weights() -> Mapping[str, Tensor]:
            made = self.run.fit("tune", networks, loss_at, schedule, validation=validation)
            return nn.ModuleDict(made).state_dict()

        self.run.stage("tune", nn.ModuleDict(networks), weights)
        made = self.run.folder / "model"
        self.towers.finish()
        self._keep(section.get("keep", 0.0))
        about: dict[str, Any] = {
            "recipe": self.recipe,
            "settings": self.config,
            "seed": self.run.seed,
            "given": dict(self.run.given),
        }
        if validation is not None:
            with torch.no_grad():
                about["validation"] = validation.measure()
        if self.run.team.leads:
            self.towers.save(made, about)
        self.run.team.wait()
        return made


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
        return self._tuning.run.team.encode(lambda some: F.normalize(towers.text_head(some).float(), dim=-1), features)


def _in_parts(captions: Sequence[Caption]) -> list[Sequence[Caption]]:
    return [captions[start : start + _JUDGED_AT_ONCE] for start in range(0, len(captions), _JUDGED_AT_ONCE)]
