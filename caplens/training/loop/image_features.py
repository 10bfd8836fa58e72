"""Photos as vectors, by number, while the image tower learns, learns only in its last layer, or does not.

What cannot change is made once: all of it where the tower is frozen, all but the last layer where only that learns.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor
from torch.nn import functional as F

from caplens.backbones.base import Backbone
from caplens.backbones.transform import Pixels
from caplens.data.media import ImageSource, media_name
from caplens.embed import Engine
from caplens.embed.images import UnreadableError, decode, read
from caplens.errors import InputError
from caplens.progress import track
from caplens.training.loop.process_group import ProcessGroup
from caplens.training.loop.towers import Towers

_AT_ONCE = 64
_MOST_BYTES = 4 << 30
"""PixelCache photos that are kept in memory."""


class ImageFeatures:
    """`noise` is added to what the last layer gets, where only that learns."""

    def __init__(
        self, towers: Towers, images: Sequence[ImageSource], group: ProcessGroup, at_once: int, noise: float = 0.0
    ) -> None:
        self._towers, self._group, self._at_once, self._noise = towers, group, at_once, noise
        self._pixels = PixelCache(images, towers.backbone)
        self._known: Tensor | None = None
        self._head = False
        if not towers.changes_images:
            self._known = encoded(towers.backbone, images).to(towers.device)
        elif towers.heads_only:
            self._known, self._head = self._features(len(images)), True

    @torch.no_grad()
    def _features(self, count: int) -> Tensor:
        starts = range(0, count, _AT_ONCE)
        made = [
            self._towers.image_trunk(self._towers.backbone.stack(self._pixels(range(start, min(start + _AT_ONCE, count)))))
            for start in track(starts, "looking at photos", len(starts))
        ]
        return torch.cat(made)

    def __call__(self, rows: Sequence[int]) -> Tensor:
        """Vectors of length one, with gradients if the image tower learns."""
        if self._known is None:
            return self._group.encode(lambda some: self._towers.encode_images(self._pixels(some)), rows, self._at_once)
        known = self._known
        if not self._head:
            return known[torch.tensor(rows, device=known.device)]
        features = with_noise(known[torch.tensor(rows, device=known.device)], self._noise)
        return self._group.encode(lambda some: F.normalize(self._towers.image_head(some).float(), dim=-1), features)


def with_noise(features: Tensor, noise: float) -> Tensor:
    """Features disturbed by `noise` times their length, so that those of few photos or captions are not learned by heart."""
    if not noise or not torch.is_grad_enabled():
        return features
    size = features.norm(dim=-1, keepdim=True) / features.shape[-1] ** 0.5
    return torch.addcmul(features, size * noise, torch.randn_like(features))


def encoded(backbone: Backbone, images: Sequence[ImageSource]) -> Tensor:
    """What a model makes of images, row by row."""
    embeddings = Engine(backbone).images(list(images))
    if embeddings.errors:
        raise InputError(f"{next(iter(embeddings.errors.values()))}.")
    return torch.from_numpy(embeddings.vectors[embeddings.index])


class PixelCache:
    """Photos as a model takes them, opened when they are first wanted and kept while there is room."""

    def __init__(self, images: Sequence[ImageSource], backbone: Backbone) -> None:
        self._images, self._backbone = images, backbone
        self._kept: dict[int, Pixels] = {}
        self._bytes = 0
        self._pool = ThreadPoolExecutor()

    def __call__(self, rows: Sequence[int]) -> list[Pixels]:
        return list(self._pool.map(self._open, rows))

    def _open(self, row: int) -> Pixels:
        found = self._kept.get(row)
        if found is not None:
            return found
        image = self._images[row]
        try:
            made = self._backbone.pixels(decode(read(image), media_name(image)))
        except UnreadableError as error:
            raise InputError(f"{error}.") from None
        if self._bytes + made.nbytes <= _MOST_BYTES:
            self._kept[row] = made
            self._bytes += made.nbytes
        return made
