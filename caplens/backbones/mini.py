"""caplens-mini, the model inside the package, and models that `caplens train` saved in its format. onnxruntime runs them.

A model is a folder of four files. Most weights are stored in 8 bits.
"""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import Image, Resampling

from caplens.arrays import Flags, Vectors
from caplens.backbones.base import Backbone, Tokens, normalized
from caplens.backbones.hub import Layout, ensure_unchanged, find_model, fingerprint, read_json, recipe_of
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.names import ModelName
from caplens.backbones.photo_domain import PhotoDomain
from caplens.backbones.transform import ImageTransform, Pixels
from caplens.data.files import open_regular
from caplens.data.languages import base_language, language_names
from caplens.errors import InputError, option, reason
from caplens.libraries import require
from caplens.text.subwords import Subwords

DEFAULT = "caplens-mini"
VERSIONS = {DEFAULT: "caplens-mini", f"{DEFAULT}@2": "caplens-mini", f"{DEFAULT}@1": "caplens-mini-1"}
"""Names of the models inside the package -> their folders. With a number, a name always means the same model."""
IMAGE, TEXT, VOCABULARY, SETTINGS = FILES = "image.onnx", "text.onnx", "vocabulary.tsv", "model.json"
LAYOUT = Layout(tuple((name,) for name in FILES))
_MAP = "/tower/head/rounding/DequantizeLinear_output_0"
"""The last feature map in the graph of an image tower that computes in 8 bits."""
_VERSION = 1
"""Increase it when the same files give other vectors, e.g. after a change of text normalization or of resizing."""
_MOST = 65_536
_BLOCK = 4
_MAX_UNKNOWN_LETTERS = 0.3
"""A text with a larger share of letters outside the vocabulary is in a script that the model was not trained on."""


class MiniBackbone(Backbone):
    """A model of two ONNX files, a vocabulary and its settings."""

    prompted = False

    def __init__(self, name: str, folder: Path, options: LoadOptions) -> None:
        if options.dtype != "fp32":
            raise InputError(f"{name} runs in fp32 only; remove {option('dtype', options.dtype)}.")
        if options.device not in ("auto", "cpu"):
            raise InputError(f"{name} runs on the CPU only; remove {option('device', options.device)}.")
        self.name, self._folder = name, folder
        self._settings = read_json(folder / SETTINGS)
        self.fingerprint = fingerprint([folder / file for file in FILES], "mini", _VERSION)
        try:
            image, text = self._settings["image"], self._settings["text"]
            self._dim, self._max_tokens, size = int(text["dim"]), int(text["max_tokens"]), int(image["size"])
            self.trained = tuple(str(lang) for lang in self._settings["languages"])
            self._photos = PhotoDomain.from_dict(self._settings["photos"])
            self.licence, self.weight = str(self._settings["licence"]), float(self._settings["weight"])
            if not (0 < self._dim <= _MOST and 1 < self._max_tokens <= _MOST and 0 < self.weight <= _MOST):
                raise ValueError("a size or weight is out of range")
            self._transform = ImageTransform((size, size), "squash", resample=Resampling.BICUBIC)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"{folder / SETTINGS}: this does not describe a model of caplens ({error!r}). Get it again."
            ) from None
        self.languages = " ".join(self.trained)
        self.tuned = recipe_of(self._settings)

    @property
    def dim(self) -> int:
        return self._dim

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    @property
    def transform(self) -> ImageTransform:
        return self._transform

    @cached_property
    def _image(self) -> Any:
        return self._session(IMAGE)

    @cached_property
    def _text(self) -> Any:
        return self._session(TEXT)

    @cached_property
    def _maps(self) -> Any:
        return self._session(IMAGE, _MAP)

    @cached_property
    def subwords(self) -> Subwords:
        subwords = Subwords.load(self._folder / VOCABULARY)
        ensure_unchanged(self.fingerprint)
        return subwords

    def _session(self, file: str, further_output: str | None = None) -> Any:
        onnxruntime = require("onnxruntime", f"The model {self.name}", "all")
        options = onnxruntime.SessionOptions()
        # Threads that wait leave the cores to those that open images.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            # As bytes, so that it cannot bring weights in another file, which the fingerprint would not cover. onnxruntime prints
            # what it finds wrong.
            with open_regular(self._folder / file) as stream, redirect_stdout(sys.stderr):
                content = stream.read() + (b"" if further_output is None else _as_output(further_output))
                session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            # onnxruntime has an error type for each kind of damage, in a module that is not public.
            raise InputError(
                f"{self._folder / file}: onnxruntime cannot load this file ({reason(error)}). Get it again."
            ) from None
        ensure_unchanged(self.fingerprint)
        return session

    def pixels(self, image: Image) -> Pixels:
        return self._transform(image)

    def _run(self, session: Any, output: str, **inputs: Any) -> Any:
        try:
            return session.run([output], inputs)[0]
        except Exception as error:
            # As above: each kind of error has its own type.
            raise InputError(
                f"{self._folder}: onnxruntime cannot run this model ({reason(error)}). Its files do not fit; get it again."
            ) from None

    def feature_maps(self, batch: Any) -> Vectors:
        """The last feature map of each image, before it is averaged: (n, positions, channels)."""
        maps = self._run(self._maps, _MAP, pixels=batch)
        count, channels = maps.shape[:2]
        feature_maps: Vectors = maps.reshape(count, channels, -1).transpose(0, 2, 1)
        return feature_maps

    def encode_pixels(self, batch: Any) -> Vectors:
        return normalized(self._run(self._image, "vectors", pixels=batch))

    def tokenize(self, texts: Sequence[str], langs: Sequence[str] | None = None) -> list[Tokens]:
        limit = self._max_tokens - 1
        encoded = (self.subwords.encode(text) for text in texts)
        return [Tokens([*ids[:limit], self.subwords.end], len(ids) > limit) for ids in encoded]

    def encode_ids(self, batch: Sequence[Sequence[int]]) -> Vectors:
        return normalized(self._run(self._text, "vectors", ids=self._pad(batch)))[: len(batch)]

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        if not texts:
            return []
        batch = [tokens.ids for tokens in self.tokenize(texts)]
        states = self._run(self._text, "tokens", ids=self._pad(batch))
        return [normalized(text_states[: len(ids)]) for text_states, ids in zip(states[: len(batch)], batch, strict=True)]

    def _pad(self, batch: Sequence[Sequence[int]]) -> Any:
        """Token ids, padded so that a text has the same vector in every batch, to the bit.

        onnxruntime adds up in blocks of four, what is left over in another order, and a batch of one in another again.
        """
        rows = [*batch, *batch] if len(batch) == 1 else batch
        longest = max(map(len, rows))
        padded = np.full(
            (len(rows), min(self._max_tokens, -(-longest // _BLOCK) * _BLOCK)), self.subwords.padding, dtype=np.int64
        )
        for row, ids in enumerate(rows):
            padded[row, : len(ids)] = ids
        return padded

    def out_of_domain(self, batch: Any) -> Flags:
        return self._photos.outside(batch)

    def coverage_warning(self, text: str, lang: str | None) -> str | None:
        warning = self.language_warning(lang)
        if warning is None and self.subwords.unknown_letter_share(text) > _MAX_UNKNOWN_LETTERS:
            return f"{self.name} was not trained on this script"
        return warning

    def language_warning(self, lang: str | None) -> str | None:
        """Says so if the model was not trained on a language."""
        if lang is None or base_language(lang) in self.trained:
            return None
        return f"{self.name} was not trained on {language_names()[base_language(lang)]}"


def _as_output(tensor: str) -> bytes:
    """What makes a tensor inside an ONNX graph an output of it, if it is put after the file.

    Messages of Protocol Buffers that follow each other are merged. This one is a model (field 7: its graph) with a graph (field
    12: its outputs) with an output (field 1: its name).
    """
    message = tensor.encode()
    for number in (1, 12, 7):
        message = bytes([number << 3 | 2, len(message)]) + message
    return message


def mini_folder(name: str) -> Path:
    """The folder of a model inside the package if `name` is its name; else `name` is the folder itself."""
    return Path(str(files("caplens.backbones").joinpath(VERSIONS[name]))) if name in VERSIONS else Path(name)


def load(name: ModelName, options: LoadOptions) -> Backbone:
    """The model inside the package, or one from a folder."""
    if name.full in VERSIONS:
        return MiniBackbone(name.full, mini_folder(name.full), options)
    return MiniBackbone(name.full, find_model(name.model, LAYOUT, offline=True), options)
