"""The recipe of caplens-mini: `mini.toml` beside this file, as dataclasses."""

from collections.abc import Sequence
from dataclasses import dataclass

from caplens.training.recipes.recipe import DataSettings, Recipe


@dataclass(frozen=True)
class MiniDataSettings(DataSettings):
    all_photos: bool
    """Whether the dev photos are trained on too; without them choices can be measured."""
    stored: int
    """Pixels; photos are kept squashed to this size while training."""


@dataclass(frozen=True)
class VocabularySettings:
    size: int
    per_language: int
    """Captions; short lists are repeated."""


@dataclass(frozen=True)
class StageSettings:
    """What every stage has."""

    rate: float
    decay: float
    average: float


@dataclass(frozen=True)
class TextSettings(StageSettings):
    width: int
    layers: int
    heads: int
    dim: int
    max_tokens: int
    dropout: float
    token_dropout: float
    """Pieces that are hidden at a step."""
    captions: int
    """Of each photo at a step."""
    english: float
    """How much more often English is drawn than any other language."""
    temperature: float
    with_photo: int
    """Groups at a step whose photo is at hand."""
    text_only: int
    """Groups of Multi30k at a step."""
    steps: int


@dataclass(frozen=True)
class ImageSettings:
    size: int
    stem: int
    stages: Sequence[tuple[str, int, int, int]]
    head: int


@dataclass(frozen=True)
class ViewSettings(StageSettings):
    """Of stages that look at photos."""

    size: int
    batch: int
    smallest: float
    """Of a photo's area."""
    colour: float


@dataclass(frozen=True)
class DistilSettings(ViewSettings):
    """The teacher's features."""

    apart: float
    """Of the steps: every stage is taught by itself."""
    steps: int
    mixed: float
    """Views that are blended with another."""


@dataclass(frozen=True)
class AlignSettings(ViewSettings):
    """The captions."""

    epochs: int
    frozen_epochs: int
    faster: float
    """Times the rate for the projection."""
    matching: float
    """How much the teacher's features still weigh."""


@dataclass(frozen=True)
class CaptionLossSettings:
    """The loss of photos against their captions."""

    per_photo: int
    temperature: float
    share: float
    alike: float
    pull: float


@dataclass(frozen=True)
class MiniRecipe(Recipe):
    name = "mini"
    package = "caplens.training.mini"

    data: MiniDataSettings
    vocabulary: VocabularySettings
    text: TextSettings
    image: ImageSettings
    distil: DistilSettings
    align: AlignSettings
    captions: CaptionLossSettings
