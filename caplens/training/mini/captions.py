"""Captions as networks read them: numbered, drawn language by language, and as vectors that photos are held against."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from caplens.text.subwords import Subwords
from caplens.training.loop.fit import batches
from caplens.training.loop.losses import contrastive, distance, shared_targets
from caplens.training.mini.collection import Group
from caplens.training.mini.networks import TextTower
from caplens.training.mini.recipe import CaptionLossSettings

_ENCODED_AT_ONCE = 2048


@dataclass(frozen=True)
class Captions:
    """The captions of groups as numbers, and how each group's are drawn."""

    ids: Tensor
    """(captions, max_tokens)"""
    table: Tensor
    """(groups, most captions): rows of `ids`; where there are fewer, some come again."""
    chances: Tensor
    """(groups, most captions): 0 where there are fewer."""

    def draw(self, groups: Tensor, count: int, rng: Generator) -> Tensor:
        """Rows of `count` captions of each group: (groups, count). Languages are drawn first, so that none is heard only because
        it has many captions."""
        chances = self.chances[groups]
        # Efraimidis and Spirakis (2006): the largest u^(1/w) are a draw without replacement. torch.multinomial makes a GPU wait.
        keys = torch.rand(chances.shape, generator=rng, device=chances.device).log() / chances
        return self.table[groups].gather(1, keys.topk(count).indices)


def number_captions(groups: Sequence[Group], subwords: Subwords, max_tokens: int, english: float, device: str) -> Captions:
    texts = [caption for group in groups for _, caption in group.captions]
    ids = torch.from_numpy(padded([subwords.encode(text) for text in texts], subwords, max_tokens)).to(device)
    most = max(len(group.captions) for group in groups)
    table, chances = np.zeros((len(groups), most), dtype=np.int64), np.zeros((len(groups), most), dtype=np.float32)
    first = 0
    for row, group in enumerate(groups):
        langs = [lang for lang, _ in group.captions]
        table[row] = first + np.arange(most) % len(langs)
        chances[row, : len(langs)] = [(english if lang == "en" else 1.0) / langs.count(lang) for lang in langs]
        first += len(langs)
    return Captions(ids, torch.from_numpy(table).to(device), torch.from_numpy(chances).to(device))


def padded(texts: Sequence[list[int]], subwords: Subwords, max_tokens: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Numbers with their end markers, in a rectangle."""
    made = np.full((len(texts), max_tokens), subwords.padding, dtype=np.int32)
    for row, numbers in enumerate(texts):
        kept = [*numbers[: max_tokens - 1], subwords.end]
        made[row, : len(kept)] = kept
    return made


@torch.no_grad()
def encode_rows(tower: TextTower, ids: Tensor) -> Tensor:
    """Vectors of texts, of length one."""
    return torch.cat([F.normalize(tower(ids[part]).float(), dim=-1) for part in batches(len(ids), _ENCODED_AT_ONCE)])


class CaptionTargets:
    """What the locked text tower says of the photos' captions, and the loss of image vectors against it."""

    def __init__(self, captions: Captions, with_photo: int, text: TextTower) -> None:
        """The first `with_photo` groups of captions have photos, and their captions come first too."""
        self.captions, self.count = captions, with_photo
        self.vectors = vectors = encode_rows(text, captions.ids[: int(captions.table[:with_photo].max()) + 1])
        weights = captions.chances[:with_photo] / captions.chances[:with_photo].sum(1, keepdim=True)
        middle = torch.einsum("pc,pcd->pd", weights, vectors[captions.table[:with_photo]])
        self.centroids = F.normalize(middle, dim=-1)
        """Each photo's mean caption."""

    def loss(self, images: Tensor, photos: Tensor, settings: CaptionLossSettings, rng: Generator) -> Tensor:
        """Photos against several of their captions, and against their mean caption, which they are also pulled to."""
        centroids = self.centroids[photos]
        targets = shared_targets(centroids, settings.share, settings.alike)
        rows = self.captions.draw(photos, settings.per_photo, rng)
        to_captions = [
            contrastive(images, self.vectors[rows[:, place]], settings.temperature, targets) for place in range(rows.shape[1])
        ]
        to_centroids = contrastive(images, centroids, settings.temperature, targets)
        return torch.stack(to_captions).mean() + to_centroids + settings.pull * distance(images, centroids)
