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
from caplens.data.sample import Picture
from caplens.embed import Engine
from caplens.embed.pictures import UnreadableError, decode, name_of, read
from caplens.errors import InputError
from caplens.progress import track
from caplens.train.team import Team
from caplens.train.towers import Towers

_AT_ONCE = 64
_MOST_BYTES = 4 << 30
"""Opened photos that are kept in memory."""


class Sight:
    """`noise` is added to what the last layer gets, where only that learns."""

    def __init__(self, towers: Towers, pictures: Sequence[Picture], team: Team, at_once: int, noise: float = 0.0) -> None:
        self._towers, self._team, self._at_once, self._noise = towers, team, at_once, noise
        self._pixels = Opened(pictures, towers.backbone)
        self._known: Tensor | None = None
        self._head = False
        if not towers.changes_images:
            self._known = encoded(towers.backbone, pictures).to(towers.device)
        elif towers.heads_only:
            self._known, self._head = self._features(len(pictures)), True

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
            return self._team.encode(lambda some: self._towers.encode_images(self._pixels(some)), rows, self._at_once)
        known = self._known
        if not self._head:
            return known[torch.tensor(rows, device=known.device)]
        features = with_noise(known[torch.tensor(rows, device=known.device)], self._noise)
        return self._team.encode(lambda some: F.normalize(self._towers.image_head(some).float(), dim=-1), features)


def with_noise(features: Tensor, noise: float) -> Tensor:
    """Features disturbed by `noise` times their length, so that those of few photos or captions are not learned by heart."""
    if not noise or not torch.is_grad_enabled():
        return features
    size = features.norm(dim=-1, keepdim=True) / features.shape[-1] ** 0.5
    return torch.addcmul(features, size * noise, torch.randn_like(features))


def encoded(backbone: Backbone, pictures: Sequence[Picture]) -> Tensor:
    """What a model makes of pictures, row by row."""
    found = Engine(backbone).images(list(pictures))
    if found.problems:
        raise InputError(f"{next(iter(found.problems.values()))}.")
    return torch.from_numpy(found.vectors[found.index])


class Opened:
    """Photos as a model takes them, opened when they are first wanted and kept while there is room."""

    def __init__(self, pictures: Sequence[Picture], backbone: Backbone) -> None:
        self._pictures, self._backbone = pictures, backbone
        self._kept: dict[int, Pixels] = {}
        self._bytes = 0
        self._pool = ThreadPoolExecutor()

    def __call__(self, rows: Sequence[int]) -> list[Pixels]:
        return list(self._pool.map(self._open, rows))

    def _open(self, row: int) -> Pixels:
        found = self._kept.get(row)
        if found is not None:
            return found
        picture = self._pictures[row]
        try:
            made = self._backbone.pixels(decode(read(picture), name_of(picture)))
        except UnreadableError as error:
            raise InputError(f"{error}.") from None
        if self._bytes + made.nbytes <= _MOST_BYTES:
            self._kept[row] = made
            self._bytes += made.nbytes
        return made
