"""Low-rank adapters (Hu et al. 2022): a weight W is used as W + B A with small B and A, which alone are trained."""

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

_WEIGHTS = {nn.Linear: "weight", nn.Conv2d: "weight", nn.MultiheadAttention: "in_proj_weight"}


class LowRank(nn.Module):
    """The weight with its adapter; a convolution's is taken as a matrix with a row for each channel it makes."""

    def __init__(self, weight: Tensor, rank: int) -> None:
        super().__init__()
        rows, columns = len(weight), weight[0].numel()
        self.down = nn.Parameter(torch.randn(rank, columns, device=weight.device) / columns**0.5)
        # At first nothing is added.
        self.up = nn.Parameter(torch.zeros(rows, rank, device=weight.device))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + (self.up @ self.down).view_as(weight)


def adapt(network: nn.Module, rank: int) -> None:
    """Put an adapter on every layer of the network that has a matrix; the adapters want gradients."""
    for module in list(network.modules()):
        for kind, name in _WEIGHTS.items():
            weight = getattr(module, name, None) if isinstance(module, kind) else None
            # Depthwise convolutions have too few numbers to save any.
            if isinstance(weight, Tensor) and rank * (len(weight) + weight[0].numel()) < weight.numel():
                parametrize.register_parametrization(module, name, LowRank(weight, rank))


def merge(network: nn.Module) -> None:
    """Make the adapters part of the weights."""
    for module in list(network.modules()):
        if parametrize.is_parametrized(module):
            for name in list(module.parametrizations):  # type: ignore[arg-type]
                parametrize.remove_parametrizations(module, name, leave_parametrized=True)
