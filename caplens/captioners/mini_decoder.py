"""The decoder of caplens-mini-captioner with numpy: feature maps of photos in, log-probabilities of the next token out.

Its weights are stored in 8 bits, with one scale per row, in an .npz file. `training/captioner/networks.py` has the same network
in PyTorch.
"""

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.arrays import Ints
from caplens.captioners.beam_search import LogProbabilities
from caplens.data.files import open_regular
from caplens.errors import InputError, reason

INT8, SCALE = ".int8", ".scale"
"""Suffixes of the names of weights in 8 bits, and of their scales."""
_LINEAR = {"inwards": 3, "outwards": 1, "query": 1, "photo": 2, "joined": 1, "up": 4}
"""Linear layers of a layer, and how many times its width their outputs are."""
_EPSILON = 1e-5
_MOST_BYTES = 1 << 28
Array = NDArray[np.float32]
Weights = Mapping[str, Array]


@dataclass(frozen=True)
class DecoderShape:
    """The architecture of the decoder."""

    languages: tuple[str, ...]
    pieces: int
    """The size of the vocabulary."""
    features: int
    """The channels of a feature map."""
    positions: int
    """Its height times its width."""
    width: int
    layers: int
    heads: int
    longest: int
    """Tokens of a caption, at most."""


class MiniDecoder:
    """The decoder, for inference.

    Parameters
    ----------
    shape
        Its architecture.
    weights
        Name of a parameter -> its values.
    """

    def __init__(self, shape: DecoderShape, weights: Weights) -> None:
        self.shape, self._weights = shape, weights

    def begin(self, maps: Array, beams: int) -> "DecodingState":
        """The state before the first token of `beams` captions of each photo, of whose feature maps (n, positions, features)."""
        weights, shape = self._weights, self.shape
        photo = self._norm(self._linear(maps, "features"), "features_norm") + weights["positions"]
        photos = [self._split(self._linear(photo, f"layers.{layer}.photo"), 2) for layer in range(shape.layers)]
        rows = len(maps) * beams
        past = np.zeros((shape.layers, 2, rows, shape.heads, shape.longest + 1, shape.width // shape.heads), dtype=np.float32)
        return DecodingState(photos, past, beams)

    def step(self, state: "DecodingState", tokens: Ints, order: Ints) -> LogProbabilities:
        """Log-probabilities of the token after `tokens`, which go on from the rows `order` of the step before.

        The first tokens are languages: their places in the list of them.
        """
        shape, weights = self.shape, self._weights
        x = weights["pieces.weight" if state.length else "langs.weight"][tokens] + weights["places"][state.length]
        if state.length:
            state.past[:, :, :, :, : state.length] = state.past[:, :, order, :, : state.length]
        for layer in range(shape.layers):
            x = self._layer(f"layers.{layer}.", x[:, None], state, layer)[:, 0]
        state.length += 1
        logits = self._norm(x, "norm") @ weights["pieces.weight"].T + weights["bias"]
        logits -= logits.max(1, keepdims=True)
        log_probabilities: LogProbabilities = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        return log_probabilities

    def _layer(self, name: str, x: Array, state: "DecodingState", layer: int) -> Array:
        """One layer for the newest token of each row: (rows, 1, width)."""
        query, key, value = self._split(self._linear(self._norm(x, f"{name}before_tokens"), f"{name}inwards"), 3)
        state.past[layer, 0, :, :, state.length], state.past[layer, 1, :, :, state.length] = key[:, :, 0], value[:, :, 0]
        keys, values = state.past[layer, :, :, :, : state.length + 1]
        x = x + self._linear(_attention(query, keys, values), f"{name}outwards")
        (query,) = self._split(self._linear(self._norm(x, f"{name}before_photo"), f"{name}query"), 1)
        keys, values = state.photos[layer]
        # The captions of a photo, side by side, are queries of one attention.
        beams = state.beams
        together = (
            query.reshape(-1, beams, *query.shape[1:]).transpose(0, 2, 1, 3, 4).reshape(len(keys), self.shape.heads, beams, -1)
        )
        x = x + self._linear(_attention(together, keys, values).reshape(x.shape), f"{name}joined")
        hidden = np.maximum(self._linear(self._norm(x, f"{name}before_network"), f"{name}up"), 0)
        return x + self._linear(hidden, f"{name}down")

    def _linear(self, x: Array, name: str) -> Array:
        return x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scaled: Array = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + _EPSILON)
        return scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _split(self, x: Array, parts: int) -> Array:
        """Parts of the last dimension, each as (n, heads, length, width of a head)."""
        count, length, width = x.shape
        return x.reshape(count, length, parts, self.shape.heads, width // parts // self.shape.heads).transpose(2, 0, 3, 1, 4)


@dataclass
class DecodingState:
    """What the decoder keeps between two steps: keys and values of photos by layer, and those of the tokens so far."""

    photos: list[Array]
    past: Array
    """(layers, 2, rows, heads, longest + 1, width of a head)"""
    beams: int
    length: int = 0


def _attention(query: Array, keys: Array, values: Array) -> Array:
    """(n, heads, length, width of a head) three times -> (n, length, width)"""
    logits = query @ keys.swapaxes(2, 3) / np.float32(query.shape[-1] ** 0.5)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    mixed = (weights / weights.sum(-1, keepdims=True)) @ values
    merged: Array = mixed.transpose(0, 2, 1, 3).reshape(len(query), query.shape[2], -1)
    return merged


def quantized(weights: Weights) -> dict[str, NDArray[Any]]:
    """Weights as they are stored: matrices in 8 bits with one scale per row, the rest in 32."""
    stored: dict[str, NDArray[Any]] = {}
    for name, weight in weights.items():
        if weight.ndim < 2:
            stored[name] = weight.astype(np.float32)
            continue
        scale = np.maximum(np.abs(weight).max(1, keepdims=True), np.finfo(np.float32).tiny) / np.float32(127)
        stored[name + INT8] = np.round(weight / scale).astype(np.int8)
        stored[name + SCALE] = scale.astype(np.float32)
    return stored


def read_weights(path: Path, shape: DecoderShape) -> dict[str, Array]:
    """The weights that `quantized` made, in 32 bits; an error if they are not those of a decoder of this shape."""
    try:
        with open_regular(path) as file, np.load(file) as arrays:
            if sum(info.file_size for info in arrays.zip.infolist()) > _MOST_BYTES:
                raise ValueError("it is too large")
            stored = {name: arrays[name] for name in arrays.files}
        weights = {name: value for name, value in stored.items() if not name.endswith((INT8, SCALE))}
        for name in stored:
            if name.endswith(INT8):
                plain = name.removesuffix(INT8)
                weights[plain] = stored[name].astype(np.float32) * stored[plain + SCALE]
        _check(weights, shape)
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        AttributeError,
        TypeError,
        MemoryError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise InputError(f"{path}: this file does not hold the weights of a captioner ({reason(error)}). Get it again.") from None
    return weights


def _check(weights: Weights, shape: DecoderShape) -> None:
    expected = _expected_sizes(shape)
    if weights.keys() != expected.keys():
        raise ValueError("it has other weights than its settings say")
    for name, size in expected.items():
        weight = weights[name]
        if weight.shape != size or weight.dtype != np.float32 or not np.isfinite(weight).all():
            raise ValueError(f"{name} is not {'x'.join(map(str, size))} numbers")


def _expected_sizes(shape: DecoderShape) -> dict[str, tuple[int, ...]]:
    """The size of each weight."""
    width = shape.width
    linear = {"features": (width, shape.features)}
    norms = ["features_norm", "norm"]
    for layer in range(shape.layers):
        name = f"layers.{layer}."
        linear |= {f"{name}{part}": (times * width, width) for part, times in _LINEAR.items()}
        linear[f"{name}down"] = (width, 4 * width)
        norms += [f"{name}{part}" for part in ("before_tokens", "before_photo", "before_network")]
    sizes: dict[str, tuple[int, ...]] = {
        "pieces.weight": (shape.pieces, width), "langs.weight": (len(shape.languages), width),
        "places": (shape.longest + 1, width), "positions": (shape.positions, width), "bias": (shape.pieces,),
    }  # fmt: skip
    for name, size in linear.items():
        sizes |= {f"{name}.weight": size, f"{name}.bias": size[:1]}
    for name in norms:
        sizes |= {f"{name}.weight": (width,), f"{name}.bias": (width,)}
    return sizes
