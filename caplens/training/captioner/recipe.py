"""The recipe of captioners as dataclasses; the values are in `captioner.toml`."""

from dataclasses import dataclass
from typing import Annotated

from caplens.errors import InputError
from caplens.training.recipes.recipe import DataSettings, HeldOutSettings, Recipe
from caplens.training.recipes.values import (
    Average,
    Count,
    CountOrNone,
    Layers,
    LearningRate,
    PartialShare,
    Range,
    Share,
    Weight,
    WeightDecay,
    Width,
)


@dataclass(frozen=True)
class DecoderSettings:
    """The architecture of the decoder."""

    width: Width
    layers: Layers
    heads: Layers
    longest: Annotated[int, Range(2, 512)]
    """Tokens of a caption, at most."""
    dropout: PartialShare


@dataclass(frozen=True)
class LikelihoodSettings:
    """Training on people's captions by cross-entropy."""

    steps: Count
    captions: Count
    """Captions per step."""
    rate: LearningRate
    decay: WeightDecay
    warmup: Share
    clip: Weight
    average: Average
    smoothing: PartialShare
    """Share of the target that is spread over all tokens."""
    balance: Share
    """How much of the differences in the number of photos remains between languages."""


@dataclass(frozen=True)
class RewardSettings:
    """Self-critical training (Rennie et al. 2017) after that: the reward of a caption is the score of a metric."""

    steps: CountOrNone
    metric: str
    photos: Count
    """Photos per step."""
    samples: Annotated[int, Range(2, 1000)]
    """Captions drawn for each photo; the mean reward of the others is the baseline of one."""
    rate: LearningRate
    likelihood: Weight
    """Weight of the likelihood of people's captions."""
    repetition: Weight
    """What is taken off the reward for a caption all of whose words are repetitions."""


@dataclass(frozen=True)
class CaptionerRecipe(Recipe):
    """The settings of `train_captioner`."""

    name = "captioner"
    package = "caplens.training.captioner"

    decoder: DecoderSettings
    train: LikelihoodSettings
    reward: RewardSettings
    validation: HeldOutSettings
    data: DataSettings

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decoder.width % self.decoder.heads:
            raise InputError(f"decoder.width ({self.decoder.width}) must be a multiple of decoder.heads ({self.decoder.heads}).")
