"""The two towers of caplens-mini.

The image tower is designed for CPUs: full 3x3 convolutions while there are few channels, depthwise ones later, ReLU throughout,
and square photos. Batch norm is folded into the convolutions before the tower is exported (`folded`).

Both towers may lead into several spaces, which learn different things: a vector is then one vector of each space, one after the
other, and the cosine of two vectors is the weighted mean of the cosines in the spaces.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from caplens.training.mini.rounding import RoundedLinear, rounding

Spaces = Sequence[tuple[int, float]]
"""(dimensions, weight) of each space; none where there is only one. Weights sum to 1."""
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "relu6": F.relu6}


def joined(vectors: Tensor, spaces: Spaces) -> Tensor:
    """The vectors of all spaces, each of the length that its weight gives it."""
    return vectors.float() * factors(vectors, spaces) if spaces else vectors


def factors(vectors: Tensor, spaces: Spaces) -> Tensor:
    """What each number of a vector is multiplied by, so that its part in each space has the length that its weight gives it."""
    parts = torch.split(vectors.float(), [dim for dim, _ in spaces], -1)
    lengths = [part.norm(dim=-1, keepdim=True).clamp(min=1e-12) for part in parts]
    return torch.cat(
        [(weight**0.5 / length).expand_as(part) for part, length, (_, weight) in zip(parts, lengths, spaces, strict=True)], -1
    )


def in_spaces(vectors: Tensor, spaces: Spaces) -> list[Tensor]:
    """The L2-normalised vectors in each space."""
    dims = [dim for dim, _ in spaces] or [vectors.shape[-1]]
    return [F.normalize(part.float(), dim=-1) for part in torch.split(vectors, dims, -1)]


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
    activation: str = "relu"
    spaces: Spaces = ()
    rounded: bool = False
    """Whether the exported tower computes in 8 bits."""


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
    spaces: Spaces = ()
    rounded: bool = False
    """Whether the exported tower computes in 8 bits."""


@dataclass(frozen=True)
class Form:
    """What all convolutions of a tower have in common."""

    activation: str
    folded: bool
    rounded: bool


class Convolution(nn.Module):
    """A convolution, its batch norm and the activation; folded, a convolution with a bias."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        form: Form,
        kernel: int = 1,
        stride: int = 1,
        groups: int = 1,
        activates: bool = True,
    ) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(in_channels, out_channels, kernel, stride, kernel // 2, groups=groups, bias=form.folded)
        self.norm = nn.Identity() if form.folded else nn.BatchNorm2d(out_channels)
        self._activate = _ACTIVATIONS[form.activation] if activates else None
        self.rounding = rounding(form.rounded)

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.norm(self.convolution(x))
        rounded: Tensor = self.rounding(features if self._activate is None else self._activate(features))
        return rounded


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

    def __init__(self, in_channels: int, out_channels: int, stride: int, expansion: int, form: Form) -> None:
        super().__init__()
        self.expand = Convolution(in_channels, in_channels * expansion, form, 3, stride)
        self.project = Convolution(in_channels * expansion, out_channels, form, activates=False)
        self.residual = stride == 1 and in_channels == out_channels
        self.rounding = rounding(form.rounded and self.residual)

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.project(self.expand(x))
        return self.rounding(x + features) if self.residual else features


class Inverted(nn.Module):
    """1x1 to more channels, a depthwise 3x3, and 1x1 back (Sandler et al. 2018)."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, expansion: int, form: Form) -> None:
        super().__init__()
        hidden = in_channels * expansion
        self.expand = Convolution(in_channels, hidden, form)
        self.depthwise = Convolution(hidden, hidden, form, 3, stride, groups=hidden)
        self.gate = self.make_gate(hidden, in_channels)
        self.project = Convolution(hidden, out_channels, form, activates=False)
        self.residual = stride == 1 and in_channels == out_channels
        self.rounding = rounding(form.rounded and self.residual)

    def make_gate(self, hidden: int, in_channels: int) -> nn.Module:
        return nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.project(self.gate(self.depthwise(self.expand(x))))
        return self.rounding(x + features) if self.residual else features


class Gated(Inverted):
    """The same with a gate before the way back (Howard et al. 2019), which caplens-mini 1 has."""

    def make_gate(self, hidden: int, in_channels: int) -> nn.Module:
        return Gate(hidden, max(8, in_channels // 4))


BLOCKS = {"fused": Fused, "inverted": Gated, "plain": Inverted}


class ImageTower(nn.Module):
    """Photos (n, 3, size, size), bytes scaled to -1…1, to vectors."""

    def __init__(self, shape: ImageShape, folded: bool = False) -> None:
        super().__init__()
        self.shape = shape
        form = Form(shape.activation, folded, folded and shape.rounded)
        self.rounding = rounding(form.rounded)
        self.stem = Convolution(3, shape.stem, form, 3, 2)
        self.stages = nn.ModuleList()
        channels = shape.stem
        for kind, width, count, expansion in shape.stages:
            in_channels = [channels, *[width] * (count - 1)]
            blocks = [
                BLOCKS[kind](in_width, width, 1 if number else 2, expansion, form) for number, in_width in enumerate(in_channels)
            ]
            self.stages.append(nn.Sequential(*blocks))
            channels = width
        self.head = Convolution(channels, shape.head, form)
        self.project = nn.Linear(shape.head, shape.dim)

    def maps(self, x: Tensor, inputs: Sequence[Tensor] | None = None) -> list[Tensor]:
        """The feature map after each stage, the last one through the head.

        With `inputs`, each stage but the first gets the map of that list in place of the output of the stage before it.
        """
        maps: list[Tensor] = []
        x = self.stem(self.rounding(x))
        for number, stage in enumerate(self.stages):
            x = stage(inputs[number - 1] if inputs is not None and number else x)
            maps.append(x if number < len(self.stages) - 1 else self.head(x))
        return maps

    def pooled(self, last: Tensor) -> Tensor:
        """The vectors of photos from their last feature maps."""
        return self.projected(last.mean((2, 3)))

    def projected(self, features: Tensor) -> Tensor:
        """The vectors of photos from the means of their last feature maps."""
        return joined(self.project(features), self.shape.spaces)

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
        learned = {name: value.detach().to("cpu", folded.state_dict()[name].dtype) for name, value in weights.items()}
        folded.load_state_dict({**folded.state_dict(), **learned})
        return folded.eval()


class Layer(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self, width: int, heads: int, dropout: float, rounded: bool) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inwards, self.outwards = RoundedLinear(width, 3 * width, rounded), RoundedLinear(width, width, rounded)
        self.up, self.down = RoundedLinear(width, 4 * width, rounded), RoundedLinear(4 * width, width, rounded)

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

    def __init__(self, shape: TextShape, dropout: float = 0.0, rounded: bool = False) -> None:
        super().__init__()
        self.shape = shape
        self.pieces = nn.Embedding(shape.pieces, shape.width, padding_idx=0)
        self.places = nn.Parameter(torch.zeros(shape.max_tokens, shape.width))
        self.layers = nn.ModuleList([Layer(shape.width, shape.heads, dropout, rounded) for _ in range(shape.layers)])
        self.norm = nn.LayerNorm(shape.width)
        self.project = RoundedLinear(shape.width, shape.dim, rounded)
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

    def mean(self, tokens: Tensor, ids: Tensor) -> Tensor:
        """The mean of token vectors or states, without padding."""
        present = (ids != 0).to(torch.float32)[:, :, None]
        return (tokens * present).sum(1) / present.sum(1)

    def projected(self, features: Tensor) -> Tensor:
        """The vectors of texts from the means of their states."""
        return joined(self.project(features), self.shape.spaces)

    def forward(self, ids: Tensor) -> Tensor:
        return joined(self.mean(self.tokens(ids), ids), self.shape.spaces)
