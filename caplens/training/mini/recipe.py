"""The recipe of caplens-mini as dataclasses; the values are in `mini.toml`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from caplens.errors import InputError
from caplens.training.recipes.recipe import DataSettings, Recipe
from caplens.training.recipes.values import (
    Average,
    Choice,
    Count,
    Layers,
    LearningRate,
    PartialShare,
    PixelSide,
    Range,
    Share,
    Temperature,
    Weight,
    WeightDecay,
    Width,
)

STAGE_KINDS = ("fused", "inverted", "plain")
_STAGE_FIELDS = 4
ACTIVATIONS = ("relu", "relu6")


@dataclass(frozen=True)
class MiniDataSettings(DataSettings):
    all_photos: bool
    """Whether to train on the dev photos too. They are needed to measure choices of the recipe."""
    stored: PixelSide
    """Height and width in pixels of the photos in memory during training."""
    repeats: Annotated[int, Range(1, 1000)]
    """How often a photo of Flickr8k, which has captions in many languages, comes while one of COCO comes once, in alignment."""


@dataclass(frozen=True)
class VocabularySettings:
    size: Annotated[int, Range(300, 1_000_000)]
    per_language: Count
    """Captions per language; languages with fewer repeat theirs."""


@dataclass(frozen=True)
class StageSettings:
    """Settings of all training stages."""

    rate: LearningRate
    """Learning rate."""
    decay: WeightDecay
    """Weight decay."""
    average: Average
    """Decay of the moving average of the weights."""


@dataclass(frozen=True)
class TextSettings(StageSettings):
    """The text tower and its training."""

    width: Width
    layers: Layers
    heads: Layers
    dim: Width
    max_tokens: Annotated[int, Range(2, 65_536)]
    dropout: PartialShare
    token_dropout: PartialShare
    """Share of the tokens that are hidden at a step."""
    captions: Annotated[int, Range(2, 1000)]
    """Captions per photo at a step."""
    english: Annotated[float, Range(0.001, 1000)]
    """How much more often English is drawn than any other language."""
    temperature: Temperature
    groups: Annotated[int, Range(2, 10_000_000)]
    """Groups of each collection per step."""
    photos: Weight
    """Weight of the contrastive loss between captions and the teacher's features of their photos."""
    worse: Weight
    """Weight of the loss that captions made worse are further from the others of their photo."""
    gap: Annotated[float, Range(0, 1)]
    """How much further."""
    steps: Count
    rounded: bool
    """Whether the exported tower computes in 8 bits."""


@dataclass(frozen=True)
class SentenceSettings:
    """The sentence space, which the text tower learns from USE-multilingual."""

    dim: Annotated[int, Range(0, 512)]
    """0: there is none."""
    share: PartialShare
    """Its weight in the score."""
    loss: Weight
    """Weight of the distance to the teacher's vectors."""


@dataclass(frozen=True)
class ImageSettings:
    """The image tower."""

    size: PixelSide
    """Height and width of photos in pixels."""
    stem: Width
    stages: Sequence[tuple[str, int, int, int]]
    """(kind, width, blocks, expansion) of each stage."""
    head: Width
    activation: Annotated[str, Choice(ACTIVATIONS)]
    rounded: bool
    """Whether the exported tower computes in 8 bits."""


@dataclass(frozen=True)
class ViewSettings(StageSettings):
    """Settings of stages that train on views of photos."""

    size: PixelSide
    """Height and width of views in pixels."""
    batch: Annotated[int, Range(2, 1_000_000)]
    smallest: Annotated[float, Range(0.001, 1)]
    """Smallest share of a photo's area in a view."""
    colour: Share
    """Strength of the colour changes."""


@dataclass(frozen=True)
class DistilSettings(ViewSettings):
    """Distillation of the teacher's features into the image tower."""

    apart: Share
    """Share of the steps, at the start, in which the tower's stages are trained separately."""
    steps: Count
    mixed: Share
    """Share of the views that are blended with another (mixup)."""


@dataclass(frozen=True)
class AlignSettings(ViewSettings):
    """Alignment of a network with the captions."""

    steps: Count
    frozen: Share
    """Share of the steps, at the start, in which only the projection is trained."""
    faster: Weight
    """Learning rate of the projection, relative to `rate`."""


@dataclass(frozen=True)
class TowerAlignSettings(AlignSettings):
    """Alignment of the image tower with the captions."""

    matching: Weight
    """Weight of the distillation loss."""
    vectors: Weight
    """Weight of the distance to the vectors of the teacher, which is aligned with the captions first; 0: it is not."""
    mixed: Share
    """Share of the views that are blended with another, and have no captions of their own; it needs `vectors`."""


@dataclass(frozen=True)
class CaptionLossSettings:
    """The loss between photos and their captions."""

    per_photo: Layers
    """Captions per photo at a step."""
    temperature: Temperature
    share: Share
    """Share of the soft targets that goes to photos with similar captions."""
    alike: Temperature
    """Temperature of the similarity of captions."""
    pull: Weight
    """Weight of the distance to the mean caption."""


@dataclass(frozen=True)
class MiniRecipe(Recipe):
    """The settings of `train_mini`."""

    name = "mini"
    package = "caplens.training.mini"

    data: MiniDataSettings
    vocabulary: VocabularySettings
    text: TextSettings
    sentence: SentenceSettings
    image: ImageSettings
    distil: DistilSettings
    teacher: AlignSettings
    align: TowerAlignSettings
    captions: CaptionLossSettings

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.text.width % self.text.heads:
            raise InputError(f"text.width ({self.text.width}) must be a multiple of text.heads ({self.text.heads}).")
        for stage in self.image.stages:
            if not _is_stage(stage):
                raise InputError(f"image.stages has {stage!r}; a stage is [kind, width, blocks, expansion], as in mini.toml.")


def _is_stage(stage: object) -> bool:
    if not isinstance(stage, Sequence) or len(stage) != _STAGE_FIELDS or stage[0] not in STAGE_KINDS:
        return False
    limits = (Range(1, 65_536), Range(1, 1000), Range(1, 1000))
    return all(isinstance(value, int) and limit.problem(value) is None for value, limit in zip(stage[1:], limits, strict=True))
