"""Names of models: `FAMILY:NAME[,option=value…]`, e.g. `hf:openai/clip-vit-base-patch32,revision=3d74acf9`."""

import re
from typing import NamedTuple

from caplens.errors import InputError

_OPTION = re.compile(r",(\w+)=")


class ModelName(NamedTuple):
    """The parts of a model's name."""

    family: str
    model: str
    """A model on the hub (`ORG/NAME`) or a folder."""
    options: dict[str, str]
    full: str

    @classmethod
    def parse(cls, text: str, families: dict[str, tuple[str, ...]]) -> "ModelName":
        """Parse a name. `families` maps each family to the options that its names may have; `*` allows any."""
        family, colon, rest = text.partition(":")
        if not colon or family not in families or not rest:
            prefixes = ", ".join(f"{name}:" for name in families)
            raise InputError(
                f"{text!r} is not a model name: a name is caplens-mini, caplens-mini@1, caplens-mini-use, the folder of a trained"
                f" model, or starts with {prefixes}, as in hf:openai/clip-vit-base-patch32. 'caplens list models' lists models."
            )
        model, *pairs = _OPTION.split(rest)
        options = dict(zip(pairs[::2], pairs[1::2], strict=True))
        for option in options:
            if option not in families[family] and "*" not in families[family]:
                choice = ", ".join(families[family]) or "none"
                raise InputError(f"{text!r}: {family} models have no option {option!r}; choose from: {choice}.")
        return cls(family, model, options, text)

    def image_model(self, defaults: dict[str, str]) -> str:
        """The model that encodes the images: the option `image`, else the default for the end of this name."""
        model = self.model.rstrip("/").lower()
        default = next((image for suffix, image in defaults.items() if model.endswith(suffix)), None)
        image_model = self.options.get("image") or default
        if image_model is None:
            raise InputError(
                f"{self.full!r}: its name does not say which model encodes the images. Add that model to the name, as in"
                f" {self.full},image={next(iter(defaults.values()))}"
            )
        return image_model
