"""The recipe of caplens-mini, from captions and photos to a model that onnxruntime runs.

1. A vocabulary of sub-words is learned from the captions of all languages.
2. The text tower learns from text alone that captions of one photo, in any two languages, belong together. Then it is locked.
3. The image tower starts from nothing and learns to see what the teacher, an ImageNet network, sees in the same view. The teacher
   is not shipped.
4. The image tower learns where photos lie among their captions.
5. Both towers are written as small ONNX files.

Every stage leaves a file behind, and a run that finds it goes on with the next.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from caplens.backbones.mini import flatness
from caplens.backbones.torch_backbone import choose_device
from caplens.errors import InputError
from caplens.progress import logger
from caplens.text.subwords import Subwords
from caplens.training.loop.fit import Schedule, batches, shuffled
from caplens.training.loop.losses import contrastive, unlike
from caplens.training.loop.run import Run
from caplens.training.mini.captions import Captions, CaptionTargets, number_captions
from caplens.training.mini.collection import Group, read_groups, read_photos
from caplens.training.mini.export import save_model
from caplens.training.mini.networks import ImageShape, ImageTower, Teacher, TextShape, TextTower
from caplens.training.mini.recipe import MiniRecipe, StageSettings
from caplens.training.mini.views import Views, mixed
from caplens.training.mini.vocabulary import learn_vocabulary

LICENCE = "research and education only, not commercial (the terms of its training data, Flickr8k and Multi30k)"
WEIGHT = 1.0
"""CLIPScore's w: cosines of this model reach 0.9, where CLIP's end at about 0.4."""
_USUAL = 0.999
"""The share of training photos that count as such."""
_SEEN_AT_ONCE = 2048


@dataclass
class MiniRun(Run):
    """A run of this recipe."""

    recipe: MiniRecipe = field(kw_only=True)


def train_mini(data: Path, folder: Path, recipe: MiniRecipe, seed: int = 0, device: str = "auto") -> Path:
    """Train, or go on training; returns the folder of the finished model."""
    run = MiniRun(folder, recipe.to_dict(), seed, choose_device(device, torch), half=recipe.data.half, recipe=recipe)
    if run.group.size > 1:
        raise InputError("caplens train mini runs in one process; leave torchrun off.")
    run.begin()
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    groups = read_groups(data, "train", all_photos=recipe.data.all_photos)
    subwords = _vocabulary(run, groups)
    captions = number_captions(groups, subwords, recipe.text.max_tokens, recipe.text.english, run.device)
    with_photo = sum(group.photo is not None for group in groups)
    text = _text_tower(run, captions, with_photo, len(subwords))
    names = [group.photo for group in groups[:with_photo] if group.photo is not None]
    views = Views(torch.from_numpy(read_photos(data, names, recipe.data.stored)).to(run.device))
    teacher = data / "teacher" / "mobilenet_v2_int8.npz"
    tower = _distilled_tower(run, teacher, views, with_photo)
    tower = _aligned_tower(run, teacher, views, lambda: CaptionTargets(captions, with_photo, text), tower)
    seen = read_photos(data, names, recipe.image.size).transpose(0, 2, 3, 1)
    parts = [flatness(seen[part]) for part in batches(len(seen), _SEEN_AT_ONCE)]
    flat, rough = (np.concatenate(some) for some in zip(*parts, strict=True))
    about = {
        "languages": sorted({lang for group in groups for lang, _ in group.captions}),
        "licence": LICENCE,
        "weight": WEIGHT,
        "photos": {"flattest": float(np.quantile(flat, _USUAL)), "roughest": float(np.quantile(rough, _USUAL))},
        "recipe": recipe.to_dict(),
        "seed": seed,
    }
    save_model(folder / "model", tower, text, subwords, about)
    return folder / "model"


def _vocabulary(run: MiniRun, groups: Sequence[Group]) -> Subwords:
    path = run.folder / "vocabulary.tsv"
    if not path.is_file():
        logger.info("learning the vocabulary.")
        by_language: dict[str, list[str]] = {}
        for group in groups:
            for lang, caption in group.captions:
                by_language.setdefault(lang, []).append(caption)
        section = run.recipe.vocabulary
        learn_vocabulary(by_language, section.size, section.per_language, run.seed).save(path)
    return Subwords.load(path)


def text_shape(recipe: MiniRecipe, pieces: int) -> TextShape:
    text = recipe.text
    return TextShape(pieces, text.width, text.layers, text.heads, text.dim, text.max_tokens)


def image_shape(recipe: MiniRecipe) -> ImageShape:
    image = recipe.image
    stages = [(str(kind), int(width), int(count), int(expansion)) for kind, width, count, expansion in image.stages]
    return ImageShape(image.size, image.stem, stages, image.head, recipe.text.dim)


def _text_tower(run: MiniRun, captions: Captions, with_photo: int, pieces: int) -> TextTower:
    section = run.recipe.text
    torch.manual_seed(run.seed)
    tower = TextTower(text_shape(run.recipe, pieces), section.dropout)
    text_only = len(captions.table) - with_photo

    def train() -> Mapping[str, Tensor]:
        tower.to(run.device)
        first = shuffled(with_photo, min(section.with_photo, with_photo), run.seed, run.device)
        second = shuffled(text_only, min(section.text_only, text_only), run.seed + 1, run.device)
        count = section.captions

        def loss_at(step: int, rng: Generator) -> Tensor:
            chosen = torch.cat([first(step), second(step) + with_photo])
            ids = captions.ids[captions.draw(chosen, count, rng).T.reshape(-1)]
            hidden = torch.rand(ids.shape, generator=rng, device=ids.device) < section.token_dropout
            # A text may not lose all of its pieces; its end marker stays.
            ids = torch.where(hidden & (ids != Subwords.end), Subwords.padding, ids)
            vectors = F.normalize(tower(ids).float(), dim=-1).view(count, len(chosen), -1)
            pairs = [(a, b) for a in range(count) for b in range(a)]
            return torch.stack([contrastive(vectors[a], vectors[b], section.temperature) for a, b in pairs]).mean()

        schedule = _schedule(section, section.steps)
        return run.fit("text", {"text": tower}, loss_at, schedule)["text"].state_dict()

    run.stage("text", tower, train)
    return tower


def _distilled_tower(run: MiniRun, teacher: Path, views: Views, photos: int) -> ImageTower:
    """The image tower, taught by the teacher alone: at first each stage by itself, from what the teacher sees before it."""
    section = run.recipe.distil
    torch.manual_seed(run.seed)
    tower = ImageTower(image_shape(run.recipe))

    def train() -> Mapping[str, Tensor]:
        matching = Matching(run, teacher, tower)
        batch = min(section.batch, photos)
        at = shuffled(photos, batch, run.seed, run.device)
        apart = round(section.apart * section.steps)

        def loss_at(step: int, rng: Generator) -> Tensor:
            seen = views.draw(at(step), section.size, section.smallest, section.colour, rng)
            seen = mixed(seen, round(section.mixed * batch), rng).contiguous(memory_format=torch.channels_last)
            wanted = matching.wanted(seen)
            return matching.loss(tower.maps(seen, wanted if step < apart else None), wanted)

        return run.fit("distil", {"tower": tower}, loss_at, _schedule(section, section.steps))["tower"].state_dict()

    run.stage("distil", tower, train)
    return tower


class Matching:
    """How far the image tower's maps of features are from the teacher's, who looks at the same view."""

    def __init__(self, run: MiniRun, weights: Path, tower: ImageTower) -> None:
        teacher = Teacher(weights).requires_grad_(False)
        teacher = teacher.to(run.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        # Twice as fast on a GPU; elsewhere compiling does not pay.
        on_gpu = run.device.startswith("cuda")
        self._teacher: Callable[[Tensor], list[Tensor]] = torch.compile(teacher, dynamic=False) if on_gpu else teacher
        tower.to(run.device, memory_format=torch.channels_last)  # type: ignore[call-overload]

    @torch.no_grad()
    def wanted(self, seen: Tensor) -> list[Tensor]:
        return [some.float() for some in self._teacher(seen)]

    def loss(self, made: Sequence[Tensor], wanted: Sequence[Tensor]) -> Tensor:
        """Maps place by place, after every stage, and the means of the last, which vectors are made of."""
        shapes = [some.shape[1:] for some in made], [some.shape[1:] for some in wanted]
        if shapes[0] != shapes[1]:
            raise InputError(
                f"the image tower's stages give maps of {shapes[0]} where the teacher has {shapes[1]}; change [image]."
            )
        in_places = torch.stack([unlike(mine.float(), yours) for mine, yours in zip(made, wanted, strict=True)]).mean()
        return in_places + unlike(made[-1].float().mean((2, 3)), wanted[-1].mean((2, 3)))


def _aligned_tower(
    run: MiniRun, teacher: Path, views: Views, know: Callable[[], CaptionTargets], tower: ImageTower
) -> ImageTower:
    """The image tower, taught where photos lie among their captions; it goes on matching the teacher, so as not to forget."""
    section = run.recipe.align

    def train() -> Mapping[str, Tensor]:
        known, matching = know(), Matching(run, teacher, tower)
        batch = min(section.batch, known.count)
        at = shuffled(known.count, batch, run.seed, run.device)
        per_epoch = max(1, known.count // batch)

        def loss_at(step: int, rng: Generator) -> Tensor:
            photos = at(step)
            seen = views.draw(photos, section.size, section.smallest, section.colour, rng)
            seen = seen.contiguous(memory_format=torch.channels_last)
            # The new projection is brought into place before the rest may change.
            frozen = step < per_epoch * section.frozen_epochs
            with torch.set_grad_enabled(not frozen):
                maps = tower.maps(seen)
            loss = known.loss(F.normalize(tower.pooled(maps[-1]).float(), dim=-1), photos, run.recipe.captions, rng)
            if not section.matching:
                return loss
            return loss + section.matching * matching.loss(maps, matching.wanted(seen))

        parts = dict(tower.named_children())
        schedule = _schedule(section, per_epoch * section.epochs)
        trained = run.fit("align", parts, loss_at, schedule, ["project"], section.faster)
        return {f"{name}.{key}": value for name, part in trained.items() for key, value in part.state_dict().items()}

    run.stage("align", tower, train)
    return tower


def _schedule(section: StageSettings, steps: int) -> Schedule:
    return Schedule(steps, section.rate, section.decay, average=section.average)
