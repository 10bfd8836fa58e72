"""A run of `train_mini`, and the shapes of its towers."""

from dataclasses import dataclass, field

from caplens.training.loop.fit import Schedule
from caplens.training.loop.run import Run
from caplens.training.mini.networks import ImageShape, Spaces, TextShape
from caplens.training.mini.recipe import MiniRecipe, StageSettings


@dataclass
class MiniRun(Run):
    """A run of `train_mini`."""

    recipe: MiniRecipe = field(kw_only=True)


def spaces_of(recipe: MiniRecipe) -> Spaces:
    """The caption space and the sentence space; none where there is only the first."""
    text, sentence = recipe.text, recipe.sentence
    return ((text.dim, 1 - sentence.share), (sentence.dim, sentence.share)) if sentence.dim else ()


def text_shape(recipe: MiniRecipe, pieces: int) -> TextShape:
    text, dim = recipe.text, recipe.text.dim + recipe.sentence.dim
    return TextShape(pieces, text.width, text.layers, text.heads, dim, text.max_tokens, spaces_of(recipe), text.rounded)


def image_shape(recipe: MiniRecipe) -> ImageShape:
    image, dim = recipe.image, recipe.text.dim + recipe.sentence.dim
    stages = [(str(kind), int(width), int(count), int(expansion)) for kind, width, count, expansion in image.stages]
    return ImageShape(image.size, image.stem, stages, image.head, dim, image.activation, spaces_of(recipe), image.rounded)


def schedule_of(settings: StageSettings, steps: int) -> Schedule:
    return Schedule(steps, settings.rate, settings.decay, average=settings.average)
