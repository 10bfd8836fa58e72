"""Low-rank adapters (Hu et al. 2022): a weight W becomes W + B A, and only the small matrices A and B are trained."""

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

_WEIGHTS = {nn.Linear: "weight", nn.Conv2d: "weight", nn.MultiheadAttention: "in_proj_weight"}


class LowRank(nn.Module):
    """Adds its low-rank matrix to a weight. The weight of a convolution is a matrix with one row per output channel."""

    def __init__(self, weight: Tensor, rank: int) -> None:
        super().__init__()
        rows, columns = len(weight), weight[0].numel()
        self.down = nn.Parameter(torch.randn(rank, columns, device=weight.device) / columns**0.5)
        # Zero, so that the network is unchanged at the start.
        self.up = nn.Parameter(torch.zeros(rows, rank, device=weight.device))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + (self.up @ self.down).view_as(weight)


def adapt(network: nn.Module, rank: int) -> None:
    """Put a trainable adapter on every linear, convolution and attention layer that is large enough."""
    for module in list(network.modules()):
        for kind, name in _WEIGHTS.items():
            weight = getattr(module, name, None) if isinstance(module, kind) else None
            # An adapter of a depthwise convolution would be larger than its weight.
            if isinstance(weight, Tensor) and rank * (len(weight) + weight[0].numel()) < weight.numel():
                parametrize.register_parametrization(module, name, LowRank(weight, rank))


def merge(network: nn.Module) -> None:
    """Merge the adapters into the weights."""
    for module in list(network.modules()):
        if parametrize.is_parametrized(module):
            for name in list(module.parametrizations):  # type: ignore[arg-type]
                parametrize.remove_parametrizations(module, name, leave_parametrized=True)
