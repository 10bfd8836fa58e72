"""Training the text tower: on captions of one photo, on the teacher's features of photos, and on vectors of USE-multilingual."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from caplens.backbones.mini_use import LANGUAGES
from caplens.text.subwords import Subwords
from caplens.training.loop.fit import batches, shuffled
from caplens.training.loop.losses import contrastive, distance, ordered
from caplens.training.mini.captions import TokenizedCaptions
from caplens.training.mini.collection import Group
from caplens.training.mini.hard_negatives import made_worse
from caplens.training.mini.networks import TextTower, in_spaces
from caplens.training.mini.recipe import MiniRecipe
from caplens.training.mini.run import MiniRun, schedule_of
from caplens.training.mini.sentences import SentenceTeacher, principal_axes
from caplens.training.mini.teacher import Teacher
from caplens.training.mini.views import Views

_BATCH_SIZE = 512
_PHOTO_TEMPERATURE = 0.07
_HIDDEN = 1024


def train_text(
    run: MiniRun,
    tower: TextTower,
    captions: TokenizedCaptions,
    counts: Sequence[int],
    features: Tensor,
    sentences: Tensor | None,
) -> Mapping[str, Tensor]:
    """Train the text tower; returns its weights.

    Parameters
    ----------
    run, tower, captions
        The run, the tower, and the captions of all groups.
    counts
        How many groups each collection has, in order; those with photos come first.
    features
        The teacher's features of the photos: (photos, views, channels).
    sentences
        The vectors of all captions in the sentence space, if there is one.
    """
    settings = run.recipe.text
    tower.to(run.device)
    torch.manual_seed(run.seed)
    projection = _PhotoProjection(features.shape[-1], settings.dim).to(run.device)
    draws = _draws(counts, settings.groups, run)

    def loss_at(step: int, rng: Generator) -> Tensor:
        groups = torch.cat([first + draw(step) for first, draw in draws])
        rows = captions.draw(groups, settings.captions, rng).T.reshape(-1)
        return _Step(run.recipe, tower, captions.ids[rows].long(), len(groups), rng).loss(
            projection, groups, features, None if sentences is None else sentences[rows].float()
        )

    networks = {"text": tower, "photos": projection}
    return run.fit("text", networks, loss_at, schedule_of(settings, settings.steps))["text"].state_dict()


class _Step:
    """One step: the captions of several photos, with some tokens hidden, and the first of each photo made worse."""

    def __init__(self, recipe: MiniRecipe, tower: TextTower, ids: Tensor, count: int, rng: Generator) -> None:
        """`ids` are the captions of `count` groups, the first of each before the second of each."""
        self._recipe, self._rng = recipe, rng
        hidden = torch.rand(ids.shape, generator=rng, device=ids.device) < recipe.text.token_dropout
        # The end marker is never hidden, so that no text is empty.
        seen = torch.where(hidden & (ids != Subwords.end), Subwords.padding, ids)
        worse = made_worse(ids[:count], rng)
        self._changed = (worse != ids[:count]).any(1)
        length = int((ids != Subwords.padding).sum(1).max())
        vectors = in_spaces(tower(torch.cat([seen, worse])[:, :length]), tower.shape.spaces)
        self._captions = [part[: len(ids)].view(-1, count, part.shape[-1]) for part in vectors]
        self._worse = [part[len(ids) :] for part in vectors]

    def loss(self, projection: nn.Module, groups: Tensor, features: Tensor, sentences: Tensor | None) -> Tensor:
        settings, weights = self._recipe.text, self._recipe.sentence
        captions = self._captions[0]
        pairs = [(first, second) for first in range(len(captions)) for second in range(first)]
        losses = [torch.stack([contrastive(captions[a], captions[b], settings.temperature) for a, b in pairs]).mean()]
        if settings.photos:
            losses.append(settings.photos * self._to_photos(projection, groups, features))
        if sentences is not None:
            losses.append(weights.loss * distance(self._captions[1].flatten(0, 1), sentences))
        if settings.worse:
            targets = [captions, *([] if sentences is None else [sentences.view_as(self._captions[1])])]
            losses.append(settings.worse * self._to_worse(targets))
        return torch.stack(losses).sum()

    def _to_photos(self, projection: nn.Module, groups: Tensor, features: Tensor) -> Tensor:
        photos = groups[groups < len(features)]
        view = torch.randint(features.shape[1], (len(photos),), generator=self._rng, device=photos.device)
        images = F.normalize(projection(features[photos, view].float()).float(), dim=-1)
        return torch.stack(
            [contrastive(images, captions[: len(photos)], _PHOTO_TEMPERATURE) for captions in self._captions[0][:2]]
        ).sum()

    def _to_worse(self, targets: Sequence[Tensor]) -> Tensor:
        """In each space, a caption made worse is further from the mean of the photo's other captions than the caption is."""
        losses = []
        for captions, worse, others in zip(self._captions, self._worse, targets, strict=False):
            anchor = F.normalize(others[1:].sum(0), dim=-1).detach()
            rows = self._changed
            losses.append(ordered(anchor[rows], captions[0][rows], worse[rows], self._recipe.text.gap))
        return torch.stack(losses).sum()


class _PhotoProjection(nn.Sequential):
    """From the teacher's features of a photo to the caption space; used in training only."""

    def __init__(self, channels: int, dim: int) -> None:
        super().__init__(
            nn.LayerNorm(channels), nn.Linear(channels, _HIDDEN), nn.GELU(), nn.Dropout(0.2), nn.Linear(_HIDDEN, dim)
        )


def _draws(counts: Sequence[int], size: int, run: MiniRun) -> list[tuple[int, Callable[[int], Tensor]]]:
    """For each collection its first group, and the function from the step to the groups of its batch."""
    draws, first = [], 0
    for number, count in enumerate(counts):
        if count:
            draws.append((first, shuffled(count, min(size, count), run.seed + number, run.device)))
        first += count
    return draws


@torch.no_grad()
def photo_features(teacher: Teacher, views: Views, run: MiniRun) -> Tensor:
    """The teacher's features of each photo: as it is, mirrored, and its four corners, (photos, 6, channels)."""
    parts = []
    precision = torch.autocast(run.device.partition(":")[0], torch.bfloat16, enabled=run.half)
    for batch in batches(len(views.photos), _BATCH_SIZE):
        photos = views.photos[batch].float() / 127.5 - 1
        side = photos.shape[-1]
        corner = side - side // 6
        seen = [photos, photos.flip(3)]
        seen += [photos[:, :, top : top + corner, left : left + corner] for top, left in product((0, side - corner), repeat=2)]
        with precision:
            parts.append(torch.stack([teacher(view)[-1].float().mean((2, 3)).half() for view in seen], 1))
    return torch.cat(parts)


def sentence_vectors(groups: Sequence[Group], dim: int, device: str) -> tuple[Tensor, Tensor]:
    """The vectors of all captions in the sentence space, and the axes of this space in that of the teacher.

    A caption in a language that the teacher does not know has the mean vector of the photo's other captions.
    """
    captions = [(number, lang, caption) for number, group in enumerate(groups) for lang, caption in group.captions]
    taught = torch.tensor([lang in LANGUAGES for _, lang, _ in captions])
    vectors = torch.zeros(len(captions), 512, dtype=torch.float16)
    vectors[taught] = SentenceTeacher(device).encode([caption for _, lang, caption in captions if lang in LANGUAGES])
    rows = torch.tensor([number for number, _, _ in captions])
    means = torch.zeros(len(groups), 512).index_add_(0, rows[taught], vectors[taught].float())
    vectors[~taught] = F.normalize(means, dim=-1)[rows[~taught]].half()
    english = torch.tensor([lang == "en" for _, lang, _ in captions])
    axes = principal_axes(vectors[english], dim)
    return F.normalize(vectors.float() @ axes, dim=-1).half().to(device), axes
