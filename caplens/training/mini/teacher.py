"""The teacher of the image tower: EfficientNet-Lite4 (Tan and Le 2019), without its classifier, from a file of its convolutions.

It is not part of the model: the image tower learns its feature maps on the same views.
"""

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from caplens.data.files import open_regular
from caplens.errors import InputError, reason
from caplens.training.mini.networks import Spaces, joined

FILE = "efficientnet_lite4_fp16.npz"
_BLOCKS = ((1, 1, 1), (2, 6, 4), (2, 6, 4), (2, 6, 6), (1, 6, 6), (2, 6, 8), (1, 6, 1))
"""Stride of the first block, expansion, repeats."""
_CENTRE, _SCALE = 127.0, 128.0
"""The teacher takes (byte - 127) / 128; views are (byte - 127.5) / 127.5."""


class Teacher(nn.Module):
    """EfficientNet-Lite4 with batch norm folded in; ReLU6 throughout."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        arrays = _read(path)
        try:
            self.stem = _Convolution(arrays, "stem", 2, activate=True)
            self.blocks = nn.ModuleList(_blocks(arrays))
            self.head = _Convolution(arrays, "head", 1, activate=True)
        except (KeyError, ValueError, IndexError) as error:
            raise InputError(
                f"{path}: these are not the weights of EfficientNet-Lite4 ({reason(error)}). Get them again."
            ) from None

    def forward(self, views: Tensor) -> list[Tensor]:
        """Feature maps of views (-1…1) at 1/4, 1/8, 1/16 and (through the head) 1/32 of their size: the last of each size."""
        x = self.stem(views * (127.5 / _SCALE) + (127.5 - _CENTRE) / _SCALE)
        maps: list[Tensor] = []
        for block in self.blocks:
            before, x = x, block(x)
            if before.shape[2:] != x.shape[2:]:
                maps.append(before)
        # The first map is that of the stem, at half the size.
        return [*maps[1:], self.head(x)]


class CaptionTeacher(Teacher):
    """The teacher with a projection into the spaces of captions, which it learns before it teaches them."""

    def __init__(self, path: Path, dim: int, spaces: Spaces) -> None:
        super().__init__(path)
        self._spaces = spaces
        self.project = nn.Linear(self.head.convolution.out_channels, dim)

    def maps(self, views: Tensor) -> list[Tensor]:
        """The feature maps of views."""
        maps: list[Tensor] = self(views)
        return maps

    def pooled(self, last: Tensor) -> Tensor:
        """The vectors of photos from their last feature maps."""
        return joined(self.project(last.mean((2, 3))), self._spaces)


class _Block(nn.Module):
    """Expansion (but in the first), a depthwise convolution, and a projection."""

    def __init__(self, arrays: Mapping[str, Any], name: str, stride: int, *, expands: bool) -> None:
        super().__init__()
        parts = [*(["expand"] if expands else []), "depthwise", "project"]
        self.convolutions = nn.Sequential(
            *(
                _Convolution(arrays, f"{name}.{part}", stride if part == "depthwise" else 1, activate=part != "project")
                for part in parts
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.convolutions(x)
        return x + features if x.shape == features.shape else features


class _Convolution(nn.Module):
    def __init__(self, arrays: Mapping[str, Any], name: str, stride: int, *, activate: bool) -> None:
        super().__init__()
        weight, bias = (torch.from_numpy(arrays[f"{name}.{part}"].astype(np.float32)) for part in ("weight", "bias"))
        out_channels, group_channels, self._kernel, _ = weight.shape
        groups = out_channels if name.endswith(".depthwise") else 1
        self._stride, self._activate = stride, activate
        padding = self._kernel // 2 if stride == 1 else 0
        self.convolution = nn.Conv2d(group_channels * groups, out_channels, self._kernel, stride, padding, groups=groups)
        self.convolution.load_state_dict({"weight": weight, "bias": bias})

    def forward(self, x: Tensor) -> Tensor:
        if self._stride > 1:
            x = F.pad(x, _same_padding(x.shape[2:], self._kernel, self._stride))
        x = self.convolution(x)
        return F.relu6(x) if self._activate else x


def _same_padding(size: torch.Size, kernel: int, stride: int) -> list[int]:
    """Left, right, top, bottom, as TensorFlow pads: the odd pixel is on the right and at the bottom."""
    padding: list[int] = []
    for side in reversed(size):
        total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
        padding += [total // 2, total - total // 2]
    return padding


def _blocks(arrays: Mapping[str, Any]) -> list[_Block]:
    blocks: list[_Block] = []
    for stride, expansion, repeats in _BLOCKS:
        for number in range(repeats):
            blocks.append(_Block(arrays, f"b{len(blocks):02}", 1 if number else stride, expands=expansion > 1))
    return blocks


def _read(path: Path) -> dict[str, Any]:
    try:
        with open_regular(path) as file, np.load(file) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: the teacher's weights cannot be read ({reason(error)}). Get them again.") from None
