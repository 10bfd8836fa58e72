"""Vectors of photos for training, by row.

What cannot change is computed once: the vectors where the image tower is frozen, the input of the last layer where only that is
trained.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor
from torch.nn import functional as F

from caplens.backbones.base import Backbone
from caplens.backbones.transform import Pixels
from caplens.data.media import ImageSource
from caplens.embed import Engine
from caplens.embed.images import UnreadableError, opened
from caplens.errors import InputError
from caplens.progress import track
from caplens.training.loop.process_group import ProcessGroup
from caplens.training.loop.towers import Towers

_BATCH_SIZE = 64
_CACHE_BYTES = 4 << 30
"""Decoded photos that are kept in memory."""


class ImageFeatures:
    """The vectors of `images`, with gradients if the image tower is trained.

    Where only the last layer is trained, `noise` is added to its input.
    """

    def __init__(
        self, towers: Towers, images: Sequence[ImageSource], group: ProcessGroup, at_once: int, noise: float = 0.0
    ) -> None:
        self._towers, self._group, self._at_once, self._noise = towers, group, at_once, noise
        self._pixels = PixelCache(images, towers.backbone)
        self._fixed: Tensor | None = None
        """What does not change in training: vectors, or the input of the last layer."""
        self._trains_head = False
        if not towers.changes_images:
            self._fixed = encoded(towers.backbone, images).to(towers.device)
        elif towers.heads_only:
            self._fixed, self._trains_head = self._trunk_features(len(images)), True

    @torch.no_grad()
    def _trunk_features(self, count: int) -> Tensor:
        starts = range(0, count, _BATCH_SIZE)
        features = [
            self._towers.image_trunk(self._towers.backbone.stack(self._pixels(range(start, min(start + _BATCH_SIZE, count)))))
            for start in track(starts, "encoding photos", len(starts))
        ]
        return torch.cat(features)

    def __call__(self, rows: Sequence[int]) -> Tensor:
        """L2-normalised vectors of these rows."""
        if self._fixed is None:
            return self._group.encode(lambda part: self._towers.encode_images(self._pixels(part)), rows, self._at_once)
        fixed = self._fixed[torch.tensor(rows, device=self._fixed.device)]
        if not self._trains_head:
            return fixed
        features = with_noise(fixed, self._noise)
        return self._group.encode(lambda part: F.normalize(self._towers.image_head(part).float(), dim=-1), features)


def with_noise(features: Tensor, noise: float) -> Tensor:
    """Add Gaussian noise of `noise` times the features' norm, so that few photos or captions are not overfitted.

    Nothing is added where gradients are off.
    """
    if not noise or not torch.is_grad_enabled():
        return features
    scale = features.norm(dim=-1, keepdim=True) / features.shape[-1] ** 0.5
    return torch.addcmul(features, scale * noise, torch.randn_like(features))


def encoded(backbone: Backbone, images: Sequence[ImageSource]) -> Tensor:
    """The vectors of images by a frozen model, through the engine and its store."""
    embeddings = Engine(backbone).images(list(images))
    if embeddings.errors:
        raise InputError(f"{next(iter(embeddings.errors.values()))}.")
    return torch.from_numpy(embeddings.vectors[embeddings.index])


class PixelCache:
    """Preprocessed photos, decoded on first use and kept while there is room."""

    def __init__(self, images: Sequence[ImageSource], backbone: Backbone) -> None:
        self._images, self._backbone = images, backbone
        self._cache: dict[int, Pixels] = {}
        self._bytes = 0
        self._pool = ThreadPoolExecutor()

    def __call__(self, rows: Sequence[int]) -> list[Pixels]:
        return list(self._pool.map(self._open, rows))

    def forget(self, rows: Sequence[int]) -> None:
        """Keep these no longer."""
        for row in rows:
            pixels = self._cache.pop(row, None)
            self._bytes -= 0 if pixels is None else pixels.nbytes

    def _open(self, row: int) -> Pixels:
        cached = self._cache.get(row)
        if cached is not None:
            return cached
        image = self._images[row]
        try:
            with opened(image) as photo:
                pixels = self._backbone.pixels(photo)
        except UnreadableError as error:
            raise InputError(f"{error}.") from None
        if self._bytes + pixels.nbytes <= _CACHE_BYTES:
            self._cache[row] = pixels
            self._bytes += pixels.nbytes
        return pixels
