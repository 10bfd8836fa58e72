"""Names of models: `FAMILY:NAME[,option=value…]`, e.g. `hf:openai/clip-vit-base-patch32,revision=3d74acf9`."""

import re
from typing import NamedTuple

from caplens.errors import InputError

_OPTION = re.compile(r",(\w+)=")


class ModelName(NamedTuple):
    family: str
    model: str
    """A model on the hub (`ORG/NAME`) or a folder."""
    options: dict[str, str]
    full: str

    @classmethod
    def parse(cls, text: str, families: dict[str, tuple[str, ...]]) -> "ModelName":
        """`families` says which options each family knows."""
        family, colon, rest = text.partition(":")
        if not colon or family not in families or not rest:
            known = ", ".join(f"{name}:" for name in families)
            raise InputError(
                f"{text!r} is no name of a model: a name is caplens-mini, the folder of a trained model, or begins with {known},"
                " as in hf:openai/clip-vit-base-patch32. 'caplens list models' shows some."
            )
        model, *pairs = _OPTION.split(rest)
        options = dict(zip(pairs[::2], pairs[1::2], strict=True))
        for option in options:
            if option not in families[family] and "*" not in families[family]:
                choice = ", ".join(families[family]) or "none"
                raise InputError(f"{text!r}: models of {family}: have no option {option!r}; choose from: {choice}.")
        return cls(family, model, options, text)

    def image_model(self, known: dict[str, str]) -> str:
        """Which model encodes the images: the one of the option `image`, else the one known for the end of this name."""
        ending = self.model.rstrip("/").lower()
        found = self.options.get("image") or next((model for end, model in known.items() if ending.endswith(end)), None)
        if found is None:
            raise InputError(
                f"{self.full!r}: its name does not tell which model encodes the images. Name it, as in"
                f" {self.full},image={next(iter(known.values()))}"
            )
        return found
