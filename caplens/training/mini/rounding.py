"""Rounding of activations to 8 bits, as onnxruntime computes the exported towers: PyTorch computes the same numbers, or nearly.

Limits are fixed, measured once on data: with limits of each batch a vector would depend on the others in its batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_STEPS = 255


class Rounding(nn.Module):
    """Rounds values to 256 steps between two limits. Gradients pass as if it did not."""

    step: Tensor
    zero: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("step", torch.tensor(1.0))
        self.register_buffer("zero", torch.tensor(0, dtype=torch.int32))
        self.measures = False
        self._low = self._high = 0.0

    def forward(self, x: Tensor) -> Tensor:
        if self.measures:
            low, high = torch.aminmax(x.detach())
            self._low, self._high = min(self._low, float(low)), max(self._high, float(high))
            return x
        rounded: Tensor = torch.fake_quantize_per_tensor_affine(x, self.step, self.zero, 0, _STEPS)
        return rounded

    def set_limits(self) -> None:
        """Round between the smallest and the largest value that were measured, and zero to zero."""
        self.measures = False
        step = max(self._high - self._low, 1e-6) / _STEPS
        self.step.fill_(step)
        self.zero.fill_(round(-self._low / step))


def rounding(rounded: bool) -> nn.Module:
    return Rounding() if rounded else nn.Identity()


class RoundedLinear(nn.Linear):
    """A linear layer that rounds its input."""

    def __init__(self, in_features: int, out_features: int, rounded: bool = False) -> None:
        super().__init__(in_features, out_features)
        self.rounding = rounding(rounded)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.rounding(x), self.weight, self.bias)


@contextmanager
def measuring(network: nn.Module) -> Iterator[None]:
    """Measure the limits of all roundings of a network on what it computes in the block."""
    roundings = [module for module in network.modules() if isinstance(module, Rounding)]
    for module in roundings:
        module.measures = True
    with torch.no_grad():
        yield
    for module in roundings:
        module.set_limits()
