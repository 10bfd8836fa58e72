"""caplens-mini-captioner, and captioners that `caplens train captioner` wrote: a small decoder on feature maps of caplens-mini.

numpy and onnxruntime run them. A captioner is a folder of two files; its image tower and vocabulary are those of its model.
"""

from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import Image

from caplens.backbones.hub import Layout, ensure_unchanged, find_model, fingerprint, read_json
from caplens.backbones.manifest import check_manifest
from caplens.backbones.mini import MiniBackbone
from caplens.backbones.registry import is_mini, load_backbone
from caplens.captioners.base import ImageCaptions, SearchOptions, language_not_written
from caplens.captioners.beam_search import beam_search
from caplens.captioners.detokenize import written
from caplens.captioners.mini_decoder import DecoderShape, MiniDecoder, Weights, read_weights
from caplens.data.languages import base_language
from caplens.errors import InputError
from caplens.translation.base import Hypothesis

DEFAULT = "caplens-mini-captioner"
DECODER, SETTINGS = FILES = "decoder.npz", "captioner.json"
LAYOUT = Layout(tuple((name,) for name in FILES))
_VERSION = 1
"""Increase it when the same files give other captions."""
_AT_ONCE = 32
_MOST = 1 << 20


class MiniCaptioner:
    """A captioner from its folder.

    Parameters
    ----------
    name
        As the user named it.
    folder
        Its folder.
    search
        How captions are searched.
    """

    def __init__(self, name: str, folder: Path, search: SearchOptions) -> None:
        self.name, self._folder, self._search = name, folder, search
        settings = read_json(folder / SETTINGS)
        try:
            shape = dict(settings["decoder"])
            if not isinstance(shape["languages"], list):
                raise TypeError("languages are a list")
            sizes = {key: int(value) for key, value in shape.items() if key != "languages"}
            self.shape = DecoderShape(languages=tuple(str(lang) for lang in shape["languages"]), **sizes)
            image, image_fingerprint = str(settings["image"]), str(settings["image_fingerprint"])
            self.licence = str(settings["licence"])
            if not all(0 < size <= _MOST for size in sizes.values()) or self.shape.width % self.shape.heads:
                raise ValueError("a size is out of range")
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise InputError(
                f"{folder / SETTINGS}: this does not describe a captioner of caplens ({error!r}). Get it again."
            ) from None
        if not is_mini(image):
            raise InputError(f"{folder}: {image!r} is not caplens-mini or the folder of such a model. Get the captioner again.")
        backbone = load_backbone(image)
        if not isinstance(backbone, MiniBackbone) or backbone.fingerprint != image_fingerprint:
            raise InputError(f"{folder}: this captioner reads feature maps of another version of {image}. Train it again.")
        self.backbone = backbone
        facts = ("captioner", _VERSION, backbone.fingerprint, search.beams, search.longest)
        self.fingerprint = fingerprint([folder / name for name in FILES], *facts)
        self._decoder: MiniDecoder | None = None

    @property
    def languages(self) -> tuple[str, ...]:
        return self.shape.languages

    def weights(self) -> Weights:
        """The weights of the decoder."""
        weights = read_weights(self._folder / DECODER, self.shape)
        ensure_unchanged(self.fingerprint)
        return weights

    def _opened(self) -> MiniDecoder:
        if self._decoder is None:
            self._decoder = MiniDecoder(self.shape, self.weights())
        return self._decoder

    def check_language(self, lang: str) -> None:
        if base_language(lang) not in self.languages:
            raise language_not_written(self.name, lang, self.languages)

    def caption(self, images: Sequence[Image], lang: str, n: int) -> list[ImageCaptions]:
        self.check_language(lang)
        captions: list[ImageCaptions] = []
        for start in range(0, len(images), _AT_ONCE):
            batch = self.backbone.stack([self.backbone.pixels(image) for image in images[start : start + _AT_ONCE]])
            captions += self._search_captions(self.backbone.feature_maps(batch), base_language(lang), n)
        return captions

    def _search_captions(self, maps: Any, lang: str, n: int) -> list[ImageCaptions]:
        decoder, beams, subwords = self._opened(), max(n, self._search.beams), self.backbone.subwords
        state = decoder.begin(maps, beams)
        first = np.full(len(maps), self.languages.index(lang))
        longest = min(self._search.longest, self.shape.longest)
        sequences = beam_search(partial(decoder.step, state), first, beams, n, longest, subwords.end)
        return [
            ImageCaptions.of([Hypothesis(written(subwords.decode(tokens), lang), score) for tokens, score in of_image])
            for of_image in sequences
        ]


def load(name: str, search: SearchOptions) -> MiniCaptioner:
    """The captioner inside the package, or one from a folder."""
    if name == DEFAULT:
        return MiniCaptioner(name, Path(str(files("caplens.captioners").joinpath(DEFAULT))), search)
    folder = find_model(name, LAYOUT, offline=True)
    check_manifest(folder)
    return MiniCaptioner(name, folder, search)
