"""Training data of captioners: feature maps of photos, and their captions as token ids, drawn language by language."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from caplens.backbones.mini import MiniBackbone
from caplens.data.media import ImageSource
from caplens.errors import InputError
from caplens.progress import track
from caplens.text.subwords import Subwords
from caplens.training.loop.image_features import PixelCache
from caplens.training.mini.captions import padded
from caplens.training.recipes.pairs import Photos

_PHOTOS_AT_ONCE = 64


@dataclass(frozen=True)
class CaptionBatch:
    """Captions of photos: the row of each photo, its language, and its token ids with end marker and padding."""

    photos: Tensor
    langs: Tensor
    ids: Tensor


class CaptionTable:
    """The captions of photos as token ids, by language.

    Parameters
    ----------
    photos
        Their captions.
    subwords
        The vocabulary.
    languages
        The languages, in the order of their numbers.
    longest
        Tokens of a caption without its end marker; longer ones are left out.
    device
        Where the tables are.
    """

    def __init__(self, photos: Photos, subwords: Subwords, languages: Sequence[str], longest: int, device: str) -> None:
        numbers = {lang: number for number, lang in enumerate(languages)}
        captions = [(numbers[caption.lang], caption.row, subwords.spell(caption.text)) for caption in photos.all_captions]
        usable = sorted((caption for caption in captions if 0 < len(caption[2]) <= longest), key=lambda caption: caption[:2])
        self.left_out = len(captions) - len(usable)
        self._ids = torch.from_numpy(padded([ids for _, _, ids in usable], subwords, longest + 1)).to(device)
        self._of_language = [_captions_by_photo(usable, number, device) for number in numbers.values()]
        self.sizes = [len(of_language.photos) for of_language in self._of_language]
        """Photos with captions, by language."""

    def __len__(self) -> int:
        return len(self._ids)

    def draw(self, count: int, balance: float, rng: Generator) -> CaptionBatch:
        """Draw captions: a language by its number of photos to the power of `balance`, a photo of it, and one of its captions."""
        device = self._ids.device
        chances = torch.tensor([float(size) ** balance if size else 0.0 for size in self.sizes], device=device)
        langs = torch.multinomial(chances, count, replacement=True, generator=rng)
        sizes = torch.tensor(self.sizes, device=device)
        picks = (torch.rand(count, generator=rng, device=device) * sizes[langs]).long()
        within = torch.rand(count, generator=rng, device=device)
        photos, places = torch.zeros_like(langs), torch.zeros_like(langs)
        for lang, of_language in enumerate(self._of_language):
            chosen = langs == lang
            if self.sizes[lang]:
                pick = picks[chosen]
                photos[chosen] = of_language.photos[pick]
                places[chosen] = of_language.firsts[pick] + (within[chosen] * of_language.counts[pick]).long()
        return CaptionBatch(photos, langs, self._ids[places].long())

    def batches(self, count: int) -> list[CaptionBatch]:
        """All captions, `count` at a time."""
        batches = []
        for lang, of_language in enumerate(self._of_language):
            if not self.sizes[lang]:
                continue
            rows = of_language.photos.repeat_interleave(of_language.counts)
            first = int(of_language.firsts[0])
            for start in range(0, len(rows), count):
                photos = rows[start : start + count]
                ids = self._ids[first + start : first + start + len(photos)].long()
                batches.append(CaptionBatch(photos, torch.full_like(photos, lang), ids))
        return batches


class _CaptionsByPhoto(NamedTuple):
    """The photos that have captions in a language, and where those of each are."""

    photos: Tensor
    firsts: Tensor
    counts: Tensor


def _captions_by_photo(captions: Sequence[tuple[int, int, list[int]]], lang: int, device: str) -> _CaptionsByPhoto:
    """Of captions that are sorted by language and photo."""
    first = bisect_left(captions, lang, key=itemgetter(0))
    rows = torch.tensor([row for number, row, _ in captions if number == lang], dtype=torch.long, device=device)
    photos, counts = torch.unique_consecutive(rows, return_counts=True)
    return _CaptionsByPhoto(photos, first + torch.cumsum(counts, 0) - counts, counts)


def feature_maps(backbone: MiniBackbone, images: Sequence[ImageSource]) -> NDArray[np.float16]:
    """The feature maps of images: (n, positions, channels)."""
    pixels = PixelCache(images, backbone)
    starts = range(0, len(images), _PHOTOS_AT_ONCE)
    maps: NDArray[np.float16] | None = None
    for start in track(starts, "reading photos", len(starts)):
        rows = range(start, min(start + _PHOTOS_AT_ONCE, len(images)))
        part = backbone.feature_maps(backbone.stack(pixels(rows)))
        pixels.forget(rows)
        if maps is None:
            maps = np.empty((len(images), *part.shape[1:]), dtype=np.float16)
        maps[start : start + len(part)] = part
    assert maps is not None
    return maps


def split_photos(count: int, share: float, seed: int) -> tuple[list[int], list[int]]:
    """The rows of photos to train on, and those that are held out, at random; an error if none is left."""
    order = np.random.default_rng(seed).permutation(count).tolist()
    held_out = max(1, round(share * count))
    if held_out >= count:
        raise InputError("no photo is left to train on. Add more photos, or lower validation.share.")
    return order[held_out:], order[:held_out]
