"""The recipe of caplens-mini as dataclasses; the values are in `mini.toml`."""

from collections.abc import Sequence
from dataclasses import dataclass

from caplens.training.recipes.recipe import DataSettings, Recipe


@dataclass(frozen=True)
class MiniDataSettings(DataSettings):
    all_photos: bool
    """Whether to train on the dev photos too. They are needed to measure choices of the recipe."""
    stored: int
    """Height and width in pixels of the photos in memory during training."""


@dataclass(frozen=True)
class VocabularySettings:
    size: int
    per_language: int
    """Captions per language; languages with fewer repeat theirs."""


@dataclass(frozen=True)
class StageSettings:
    """Settings of all training stages."""

    rate: float
    """Learning rate."""
    decay: float
    """Weight decay."""
    average: float
    """Decay of the moving average of the weights."""


@dataclass(frozen=True)
class TextSettings(StageSettings):
    """The text tower and its training."""

    width: int
    layers: int
    heads: int
    dim: int
    max_tokens: int
    dropout: float
    token_dropout: float
    """Share of the tokens that are hidden at a step."""
    captions: int
    """Captions per photo at a step."""
    english: float
    """How much more often English is drawn than any other language."""
    temperature: float
    with_photo: int
    """Groups with a photo per step."""
    text_only: int
    """Groups of Multi30k without a photo per step."""
    steps: int


@dataclass(frozen=True)
class ImageSettings:
    """The image tower."""

    size: int
    """Height and width of photos in pixels."""
    stem: int
    stages: Sequence[tuple[str, int, int, int]]
    """(kind, width, blocks, expansion) of each stage."""
    head: int


@dataclass(frozen=True)
class ViewSettings(StageSettings):
    """Settings of stages that train on views of photos."""

    size: int
    """Height and width of views in pixels."""
    batch: int
    smallest: float
    """Smallest share of a photo's area in a view."""
    colour: float
    """Strength of the colour changes."""


@dataclass(frozen=True)
class DistilSettings(ViewSettings):
    """Distillation of the teacher's features into the image tower."""

    apart: float
    """Share of the steps, at the start, in which the tower's stages are trained separately."""
    steps: int
    mixed: float
    """Share of the views that are blended with another (mixup)."""


@dataclass(frozen=True)
class AlignSettings(ViewSettings):
    """Alignment of the image tower with the captions."""

    epochs: int
    frozen_epochs: int
    """Epochs, at the start, in which only the projection is trained."""
    faster: float
    """Learning rate of the projection, relative to `rate`."""
    matching: float
    """Weight of the distillation loss."""


@dataclass(frozen=True)
class CaptionLossSettings:
    """The loss between photos and their captions."""

    per_photo: int
    """Captions per photo at a step."""
    temperature: float
    share: float
    """Share of the soft targets that goes to photos with similar captions."""
    alike: float
    """Temperature of the similarity of captions."""
    pull: float
    """Weight of the distance to the mean caption."""


@dataclass(frozen=True)
class MiniRecipe(Recipe):
    """The settings of `train_mini`."""

    name = "mini"
    package = "caplens.training.mini"

    data: MiniDataSettings
    vocabulary: VocabularySettings
    text: TextSettings
    image: ImageSettings
    distil: DistilSettings
    align: AlignSettings
    captions: CaptionLossSettings
