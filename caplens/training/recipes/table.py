"""The recipes that tune a model, for the command line. A recipe's module is imported on first use."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from caplens.training.recipes.recipe import TuningRecipe


class RecipeEntry(NamedTuple):
    """A recipe by name: its module, its dataclass, and the function that trains with it."""

    name: str
    recipe_class: str
    function: str

    def load(self) -> tuple[type[TuningRecipe], Callable[..., Path]]:
        module: Any = import_module(f"caplens.training.recipes.{self.name}")
        recipe: type[TuningRecipe] = getattr(module, self.recipe_class)
        train: Callable[..., Path] = getattr(module, self.function)
        return recipe, train


RECIPES = {
    entry.name: entry
    for entry in (
        RecipeEntry("mclipscore", "MclipscoreRecipe", "train_mclipscore"),
        RecipeEntry("pacs", "PacsRecipe", "train_pacs"),
        RecipeEntry("distill", "DistillRecipe", "train_distill"),
        RecipeEntry("prmcs", "PrmcsRecipe", "train_prmcs"),
    )
}
