"""What training makes small. Vectors are of length one unless said otherwise."""

import torch
from torch import Tensor
from torch.nn import functional as F


def contrastive(first: Tensor, second: Tensor, temperature: float, targets: Tensor | None = None) -> Tensor:
    """InfoNCE in both directions: row i of one belongs to row i of the other, or to several by `targets` (rows sum to 1)."""
    logits = first @ second.T / temperature
    aim = torch.arange(len(logits), device=logits.device) if targets is None else targets
    return (F.cross_entropy(logits, aim) + F.cross_entropy(logits.T, aim)) / 2


def shared_targets(vectors: Tensor, share: float, temperature: float) -> Tensor:
    """A photo's own captions, and by `share` those of photos that are described alike: no two photos of dogs are strangers."""
    alike = torch.softmax(vectors @ vectors.T / temperature, -1)
    return (1 - share) * torch.eye(len(vectors), device=vectors.device) + share * alike


def distance(made: Tensor, wanted: Tensor) -> Tensor:
    """1 - cosine."""
    return (1 - (made * wanted).sum(-1)).mean()


def unlike(made: Tensor, wanted: Tensor) -> Tensor:
    """The squared error of features, of any length, relative to their size."""
    return F.mse_loss(made, wanted) / wanted.square().mean().clamp(min=1e-6)
