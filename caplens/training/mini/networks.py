"""The two towers of caplens-mini, and the ImageNet network that the image tower is distilled from.

The image tower is designed for CPUs: full 3x3 convolutions while there are few channels, depthwise ones later, ReLU throughout,
and square photos. Batch norm is folded into the convolutions before the tower is exported (`folded`).
"""

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from caplens.errors import InputError, reason


@dataclass(frozen=True)
class ImageShape:
    """The architecture of the image tower."""

    size: int
    """Height and width of photos in pixels."""
    stem: int
    stages: Sequence[tuple[str, int, int, int]]
    """(kind, width, blocks, expansion) of each stage; each halves the height and width of its input."""
    head: int
    dim: int


@dataclass(frozen=True)
class TextShape:
    """The architecture of the text tower."""

    pieces: int
    """The size of the vocabulary."""
    width: int
    layers: int
    heads: int
    dim: int
    max_tokens: int


class Convolution(nn.Module):
    """A convolution and its batch norm; folded, a convolution with a bias."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel: int = 1, stride: int = 1, groups: int = 1, folded: bool = False
    ) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(in_channels, out_channels, kernel, stride, kernel // 2, groups=groups, bias=folded)
        self.norm = nn.Identity() if folded else nn.BatchNorm2d(out_channels)

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.norm(self.convolution(x))
        return features


class Gate(nn.Module):
    """Squeeze and excitation (Hu et al. 2018): channels are weighted by a function of their means."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.squeeze, self.excite = nn.Conv2d(channels, hidden, 1), nn.Conv2d(hidden, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        weights: Tensor = self.excite(F.relu(self.squeeze(x.mean((2, 3), keepdim=True))))
        return x * torch.sigmoid(weights)


class Fused(nn.Module):
    """A 3x3 convolution to more channels and a 1x1 back (Tan and Le 2021, fused MBConv)."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, expansion: int, folded: bool) -> None:
        super().__init__()
        self.expand = Convolution(in_channels, in_channels * expansion, 3, stride, folded=folded)
        self.project = Convolution(in_channels * expansion, out_channels, folded=folded)
        self.residual = stride == 1 and in_channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.project(F.relu(self.expand(x)))
        return x + features if self.residual else features


class Inverted(nn.Module):
    """1x1 to more channels, a depthwise 3x3, a gate, and 1x1 back (Sandler et al. 2018, with the gate of Howard et al. 2019)."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, expansion: int, folded: bool) -> None:
        super().__init__()
        hidden = in_channels * expansion
        self.expand = Convolution(in_channels, hidden, folded=folded)
        self.depthwise = Convolution(hidden, hidden, 3, stride, groups=hidden, folded=folded)
        self.gate = Gate(hidden, max(8, in_channels // 4))
        self.project = Convolution(hidden, out_channels, folded=folded)
        self.residual = stride == 1 and in_channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.project(self.gate(F.relu(self.depthwise(F.relu(self.expand(x))))))
        return x + features if self.residual else features


_BLOCKS = {"fused": Fused, "inverted": Inverted}


class ImageTower(nn.Module):
    """Photos (n, 3, size, size), bytes scaled to -1…1, to vectors."""

    def __init__(self, shape: ImageShape, folded: bool = False) -> None:
        super().__init__()
        self.shape = shape
        self.stem = Convolution(3, shape.stem, 3, 2, folded=folded)
        self.stages = nn.ModuleList()
        channels = shape.stem
        for kind, width, count, expansion in shape.stages:
            in_channels = [channels, *[width] * (count - 1)]
            blocks = [
                _BLOCKS[kind](in_width, width, 1 if number else 2, expansion, folded)
                for number, in_width in enumerate(in_channels)
            ]
            self.stages.append(nn.Sequential(*blocks))
            channels = width
        self.head = Convolution(channels, shape.head, folded=folded)
        self.project = nn.Linear(shape.head, shape.dim)

    def maps(self, x: Tensor, inputs: Sequence[Tensor] | None = None) -> list[Tensor]:
        """The feature map after each stage, the last one through the head.

        With `inputs`, each stage but the first gets the map of that list in place of the output of the stage before it.
        """
        maps: list[Tensor] = []
        x = F.relu(self.stem(x))
        for number, stage in enumerate(self.stages):
            x = stage(inputs[number - 1] if inputs is not None and number else x)
            maps.append(x if number < len(self.stages) - 1 else F.relu(self.head(x)))
        return maps

    def pooled(self, last: Tensor) -> Tensor:
        """The vectors of photos from their last feature maps."""
        vectors: Tensor = self.project(last.mean((2, 3)))
        return vectors

    def forward(self, x: Tensor) -> Tensor:
        return self.pooled(self.maps(x)[-1])

    def fold(self) -> "ImageTower":
        """A copy of this tower with batch norm folded into the convolutions."""
        folded = ImageTower(self.shape, folded=True)
        weights = {name: value for name, value in self.state_dict().items() if ".norm." not in name}
        for name, module in self.named_modules():
            if isinstance(module, Convolution) and isinstance(module.norm, nn.BatchNorm2d):
                norm = module.norm
                assert norm.running_var is not None
                assert norm.running_mean is not None
                scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
                weights[f"{name}.convolution.weight"] = module.convolution.weight * scale[:, None, None, None]
                weights[f"{name}.convolution.bias"] = norm.bias - norm.running_mean * scale
        folded.load_state_dict({name: value.detach().float().cpu() for name, value in weights.items()})
        return folded.eval()


class Layer(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inwards, self.outwards = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """`mask` (n, 1, 1, length) is added to the attention logits: 0, or a large negative number for padding."""
        count, length, width = x.shape
        split = self.inwards(self.before_attention(x)).view(count, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value, mask).transpose(1, 2).reshape(count, length, width)
        x = x + F.dropout(self.outwards(mixed), self.dropout, self.training)
        return x + F.dropout(self.down(F.relu(self.up(self.before_network(x)))), self.dropout, self.training)


class TextTower(nn.Module):
    """Token ids (n, length), 0 for padding, to vectors: one per token, and their mean per text."""

    def __init__(self, shape: TextShape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.pieces = nn.Embedding(shape.pieces, shape.width, padding_idx=0)
        self.places = nn.Parameter(torch.zeros(shape.max_tokens, shape.width))
        self.layers = nn.ModuleList([Layer(shape.width, shape.heads, dropout) for _ in range(shape.layers)])
        self.norm = nn.LayerNorm(shape.width)
        self.project = nn.Linear(shape.width, shape.dim)
        nn.init.normal_(self.pieces.weight, std=0.02)
        nn.init.normal_(self.places, std=0.02)

    def states(self, ids: Tensor) -> Tensor:
        """Hidden states before the projection: (n, length, width)."""
        x = self.pieces(ids) + self.places[: ids.shape[1]]
        mask = ((ids == 0).to(x.dtype) * -1e4)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        states: Tensor = self.norm(x)
        return states

    def tokens(self, ids: Tensor) -> Tensor:
        """The vector of each token: (n, length, dim)."""
        vectors: Tensor = self.project(self.states(ids))
        return vectors

    def pooled(self, tokens: Tensor, ids: Tensor) -> Tensor:
        """The mean of token vectors, without padding."""
        present = (ids != 0).to(torch.float32)[:, :, None]
        return (tokens * present).sum(1) / present.sum(1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.pooled(self.tokens(ids), ids)


class Teacher(nn.Module):
    """MobileNetV2 (Sandler et al. 2018) without its classifier, from a file of its 52 convolutions."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        layers = _read_teacher(path)
        self.convolutions = nn.ModuleList()
        self.strides: list[int] = []
        for layer in layers:
            weight = layer["weight"].astype(np.float32) * layer["scale"].reshape(-1, 1, 1, 1)
            out_channels, group_channels, kernel, _ = weight.shape
            groups = out_channels if layer["depthwise"] else 1
            stride = int(layer["stride"])
            padding = kernel // 2 if stride == 1 else 0
            convolution = nn.Conv2d(group_channels * groups, out_channels, kernel, stride, padding, groups=groups)
            assert convolution.bias is not None
            convolution.weight.data, convolution.bias.data = torch.from_numpy(weight), torch.from_numpy(layer["bias"])
            self.convolutions.append(convolution)
            self.strides.append(stride)

    def forward(self, x: Tensor) -> list[Tensor]:
        """Feature maps of photos (-1…1) at 1/4, 1/8, 1/16 and 1/32 of their size: the last map of each size."""
        x = self._convolved(0, x, True)
        maps: list[Tensor] = []
        number, last = 1, len(self.convolutions) - 1
        while number < last:
            # The first block has no expansion, only a depthwise convolution and a projection.
            end = number + (2 if number == 1 else 3)
            before = x
            for inner in range(number, end):
                x = self._convolved(inner, x, inner < end - 1)
            if before.shape == x.shape:
                x = before + x
            elif before.shape[2:] != x.shape[2:]:
                maps.append(before)
            number = end
        return [*maps[1:], self._convolved(last, x, True)]

    def _convolved(self, number: int, x: Tensor, activate: bool) -> Tensor:
        # TensorFlow pads convolutions of stride 2 only on the right and at the bottom.
        x = self.convolutions[number](F.pad(x, (0, 1, 0, 1)) if self.strides[number] == 2 else x)
        return F.relu6(x, inplace=True) if activate else x


def _read_teacher(path: Path) -> list[dict[str, Any]]:
    """The arrays of each convolution, by name."""
    parts = ("weight", "scale", "bias", "stride", "depthwise")
    try:
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files}
        numbers = sorted({name.partition(".")[0] for name in arrays})
        return [{part: arrays[f"{number}.{part}"] for part in parts} for number in numbers]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: the teacher's weights cannot be read ({reason(error)}). Get them again.") from None
