"""Captions for training: as token ids, sampled by language, and as target vectors of photos."""

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
from caplens.training.mini.networks import TextTower, in_spaces
from caplens.training.mini.recipe import CaptionLossSettings

_BATCH_SIZE = 2048


@dataclass(frozen=True)
class TokenizedCaptions:
    """Token ids of the captions of all groups, and how likely each caption of a group is drawn."""

    ids: Tensor
    """(captions, max_tokens)"""
    table: Tensor
    """(groups, largest number of captions): rows of `ids`; a group with fewer captions repeats some."""
    chances: Tensor
    """(groups, largest number of captions): sampling weights; 0 for repeated captions."""

    def draw(self, groups: Tensor, count: int, rng: Generator) -> Tensor:
        """Draw `count` captions of each group without replacement; returns their rows of `ids`, (groups, count).

        The weights of a group's captions make its languages equally likely, however many captions each has.
        """
        weights = self.chances[groups]
        # Efraimidis and Spirakis (2006): the largest u^(1/w) are a weighted sample without replacement. torch.multinomial would
        # make a GPU wait.
        keys = torch.rand(weights.shape, generator=rng, device=weights.device).log() / weights
        return self.table[groups].gather(1, keys.topk(count).indices)


def number_captions(
    groups: Sequence[Group], subwords: Subwords, max_tokens: int, english: float, device: str
) -> TokenizedCaptions:
    """Tokenise the captions of groups. English is `english` times as likely to be drawn as any other language."""
    texts = [caption for group in groups for _, caption in group.captions]
    ids = torch.from_numpy(padded([subwords.encode(text) for text in texts], subwords, max_tokens)).to(device)
    longest = max(len(group.captions) for group in groups)
    table, weights = np.zeros((len(groups), longest), dtype=np.int64), np.zeros((len(groups), longest), dtype=np.float32)
    first = 0
    for row, group in enumerate(groups):
        langs = [lang for lang, _ in group.captions]
        table[row] = first + np.arange(longest) % len(langs)
        weights[row, : len(langs)] = [(english if lang == "en" else 1.0) / langs.count(lang) for lang in langs]
        first += len(langs)
    return TokenizedCaptions(ids, torch.from_numpy(table).to(device), torch.from_numpy(weights).to(device))


def padded(texts: Sequence[list[int]], subwords: Subwords, max_tokens: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Token ids with end markers, truncated and padded to `max_tokens`."""
    ids = np.full((len(texts), max_tokens), subwords.padding, dtype=np.int32)
    for row, tokens in enumerate(texts):
        truncated = [*tokens[: max_tokens - 1], subwords.end]
        ids[row, : len(truncated)] = truncated
    return ids


@torch.no_grad()
def encode_rows(tower: TextTower, ids: Tensor) -> Tensor:
    """L2-normalised vectors of padded token ids."""
    return torch.cat([F.normalize(tower(ids[batch].long()).float(), dim=-1) for batch in batches(len(ids), _BATCH_SIZE)])


class CaptionTargets:
    """Vectors of the photos' captions by the frozen text tower, as targets of the image tower; in each space of their own."""

    def __init__(self, captions: TokenizedCaptions, with_photo: int, text: TextTower, epoch: Tensor) -> None:
        """The first `with_photo` groups have photos, and their captions come first in `captions.ids`.

        `epoch` are the photos of an epoch, of which some may come more than once.
        """
        self.captions, self.epoch = captions, epoch
        self._spaces = text.shape.spaces
        self.vectors = in_spaces(encode_rows(text, captions.ids[: int(captions.table[:with_photo].max()) + 1]), self._spaces)
        weights = captions.chances[:with_photo] / captions.chances[:with_photo].sum(1, keepdim=True)
        table = captions.table[:with_photo]
        self.centroids = [F.normalize(torch.einsum("pc,pcd->pd", weights, vectors[table]), dim=-1) for vectors in self.vectors]
        """The mean caption vector of each photo, normalised."""

    def loss(self, images: Tensor, photos: Tensor, settings: CaptionLossSettings, rng: Generator) -> Tensor:
        """Contrastive loss against several captions and the centroid of each photo, and the distance to the centroid."""
        rows = self.captions.draw(photos, settings.per_photo, rng)
        losses = [
            _loss_in_space(parts, vectors, rows, centroids[photos], settings)
            for parts, vectors, centroids in zip(in_spaces(images, self._spaces), self.vectors, self.centroids, strict=True)
        ]
        return torch.stack(losses).sum()


def _loss_in_space(images: Tensor, vectors: Tensor, rows: Tensor, centroids: Tensor, settings: CaptionLossSettings) -> Tensor:
    targets = shared_targets(centroids, settings.share, settings.alike)
    to_captions = [
        contrastive(images, vectors[rows[:, column]], settings.temperature, targets) for column in range(rows.shape[1])
    ]
    to_centroids = contrastive(images, centroids, settings.temperature, targets)
    return torch.stack(to_captions).mean() + to_centroids + settings.pull * distance(images, centroids)
