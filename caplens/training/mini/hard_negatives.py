"""Captions made worse, as token ids: what the text tower must tell from the original.

These are the perturbations of `caplens.perturbation`, on sub-words instead of words, so that a batch is made in a few operations
on the training device. Each caption gets one of them.
"""

import torch
from torch import Generator, Tensor

from caplens.text.subwords import Subwords

_REMOVED, _SWAPPED, _REPLACED = 0.4, 0.35, 0.2
"""The chance of a sub-word to be removed, to change places with others, and to be replaced by one of another caption."""


def made_worse(ids: Tensor, rng: Generator) -> Tensor:
    """Captions (n, length) with their sub-words in another order, some removed, some swapped, or some of another caption.

    Markers and padding stay. A caption may stay as it is, by chance.
    """
    kinds = torch.randint(0, 4, (len(ids), 1), generator=rng, device=ids.device)
    worse = ids
    for kind, change in enumerate((_jumbled, _with_some_removed, _with_some_swapped, _with_some_replaced)):
        worse = torch.where(kinds == kind, change(ids, rng), worse)
    return worse


def _chance(ids: Tensor, share: float, rng: Generator) -> Tensor:
    """Sub-words chosen at random, without markers and padding."""
    return (ids > Subwords.end) & (torch.rand(ids.shape, generator=rng, device=ids.device) < share)


def _places(ids: Tensor) -> Tensor:
    return torch.arange(ids.shape[1], device=ids.device).expand_as(ids)


def _jumbled(ids: Tensor, rng: Generator) -> Tensor:
    return _swapped_among(ids, ids > Subwords.end, rng)


def _with_some_swapped(ids: Tensor, rng: Generator) -> Tensor:
    return _swapped_among(ids, _chance(ids, _SWAPPED, rng), rng)


def _swapped_among(ids: Tensor, chosen: Tensor, rng: Generator) -> Tensor:
    """The chosen sub-words in random order, in the places that they had."""
    last = ids.shape[1]
    # Both lists begin with the chosen sub-words: once in their order, once in a random one.
    places = torch.where(chosen, _places(ids), last).sort(1).values
    random = torch.where(chosen, torch.rand(ids.shape, generator=rng, device=ids.device), 2.0).argsort(1)
    sources = torch.cat([_places(ids), _places(ids)[:, :1]], 1).clone()
    sources.scatter_(1, places, random)
    return ids.gather(1, sources[:, :last])


def _with_some_removed(ids: Tensor, rng: Generator) -> Tensor:
    kept = ~_chance(ids, _REMOVED, rng)
    order = torch.where(kept, _places(ids), _places(ids) + ids.shape[1]).argsort(1)
    return torch.where(_places(ids) < kept.sum(1, keepdim=True), ids.gather(1, order), Subwords.padding)


def _with_some_replaced(ids: Tensor, rng: Generator) -> Tensor:
    others = ids[torch.randperm(len(ids), generator=rng, device=ids.device)]
    return torch.where(_chance(ids, _REPLACED, rng) & (others > Subwords.end), others, ids)
