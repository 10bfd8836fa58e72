"""Random views of photos, computed on the training device: crops, mirror images, and colour changes."""

import math

import torch
from torch import Generator, Tensor
from torch.nn import functional as F


class Views:
    """Photos (n, 3, size, size) in bytes, on one device."""

    def __init__(self, photos: Tensor) -> None:
        self.photos = photos

    def draw(self, index: Tensor, size: int, smallest: float, colour: float, rng: Generator) -> Tensor:
        """Draw one view per photo: at least `smallest` of its area, half of them mirrored, colours changed by up to `colour`."""
        count, device = len(index), self.photos.device

        def uniform(low: float, high: float) -> Tensor:
            return torch.rand(count, generator=rng, device=device) * (high - low) + low

        side, aspect = uniform(smallest, 1).sqrt(), (uniform(-1, 1) * math.log(4 / 3) / 2).exp()
        width, height = (side * aspect).clamp(max=1), (side / aspect).clamp(max=1)
        mirrored = torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
        zero = torch.zeros_like(width)
        horizontal = torch.stack([width * mirrored, zero, (1 - width) * uniform(-1, 1)], 1)
        vertical = torch.stack([zero, height, (1 - height) * uniform(-1, 1)], 1)
        grid = F.affine_grid(torch.stack([horizontal, vertical], 1), [count, 3, size, size], align_corners=False)
        views = F.grid_sample(_scaled(self.photos[index]), grid, padding_mode="reflection", align_corners=False)
        return _recoloured(views, *(uniform(-colour, colour)[:, None, None, None] for _ in range(3)))


def _scaled(photos: Tensor) -> Tensor:
    return photos.float() / 127.5 - 1


def _recoloured(photos: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor) -> Tensor:
    grey = photos.mean(1, keepdim=True)
    photos = grey + (photos - grey) * (1 + saturation)
    mean = photos.mean((1, 2, 3), keepdim=True)
    return (mean + (photos - mean) * (1 + contrast) + brightness).clamp(-1, 1)


def mixed(views: Tensor, count: int, rng: Generator) -> Tensor:
    """Blend the first `count` views with another view each, by at most half (mixup, Zhang et al. 2018)."""
    device = views.device
    weight = torch.rand(count, generator=rng, device=device)[:, None, None, None] / 2
    other = views[torch.randperm(len(views), generator=rng, device=device)[:count]]
    return torch.cat([views[:count] * (1 - weight) + other * weight, views[count:]])
