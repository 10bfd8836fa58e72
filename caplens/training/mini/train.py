"""Training of caplens-mini, from captions and photos to a model that onnxruntime runs.

1. A sub-word vocabulary is learned from the captions of all languages.
2. The text tower is trained on text alone: captions of one photo, in any two languages, are positives. Then it is frozen.
3. The image tower is initialised randomly and distilled from the features of a teacher, an ImageNet network, on the same views.
   The teacher is not part of the model.
4. The image tower is aligned with the captions.
5. Both towers are written as small ONNX files.

Every stage writes a file. A run that finds the file of a stage skips it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from caplens.backbones.hub import file_hash
from caplens.backbones.mini import flatness
from caplens.backbones.torch_backbone import choose_device
from caplens.errors import InputError
from caplens.progress import logger
from caplens.text.subwords import Subwords
from caplens.training.loop.fit import Schedule, batches, shuffled
from caplens.training.loop.losses import contrastive, unlike
from caplens.training.loop.run import Run
from caplens.training.mini.captions import CaptionTargets, TokenizedCaptions, number_captions
from caplens.training.mini.collection import Group, photo_versions, read_groups, read_photos
from caplens.training.mini.export import save_model
from caplens.training.mini.networks import ImageShape, ImageTower, Teacher, TextShape, TextTower
from caplens.training.mini.recipe import MiniRecipe, StageSettings
from caplens.training.mini.views import Views, mixed
from caplens.training.mini.vocabulary import learn_vocabulary
from caplens.training.recipes.pairs import content_hash

LICENCE = "research and education only, not commercial (the terms of its training data, Flickr8k and Multi30k)"
WEIGHT = 1.0
"""CLIPScore's w. Cosines of this model reach 0.9; those of CLIP only about 0.4, hence its w of 2.5."""
_IN_DOMAIN = 0.999
"""The share of training photos that are in domain by their flatness, and by their roughness."""
_BATCH_SIZE = 2048


@dataclass
class MiniRun(Run):
    """A run of `train_mini`."""

    recipe: MiniRecipe = field(kw_only=True)


def train_mini(data: Path, folder: Path, recipe: MiniRecipe, seed: int = 0, device: str = "auto") -> Path:
    """Train a model like caplens-mini; a stopped run is resumed.

    Parameters
    ----------
    data
        The folder of the training data, as docs/mini.md describes it.
    folder
        The folder of the run.
    recipe
        The settings.
    seed, device
        The random seed, and the device to train on.

    Returns
    -------
    Path
        The folder of the trained model.
    """
    groups = read_groups(data, "train", all_photos=recipe.data.all_photos)
    with_photo = sum(group.photo is not None for group in groups)
    names = [group.photo for group in groups[:with_photo] if group.photo is not None]
    teacher = data / "teacher" / "mobilenet_v2_int8.npz"
    hashes = {
        "captions": content_hash([group.captions for group in groups]),
        "photos": content_hash(photo_versions(data, names)),
        "teacher": file_hash(teacher),
    }
    run = MiniRun(folder, recipe.to_dict(), seed, choose_device(device, torch), hashes, half=recipe.data.half, recipe=recipe)
    if run.group.size > 1:
        raise InputError("caplens train mini runs in one process; start it without torchrun.")
    run.begin()
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    subwords = _vocabulary(run, groups)
    captions = number_captions(groups, subwords, recipe.text.max_tokens, recipe.text.english, run.device)
    text = _text_tower(run, captions, with_photo, len(subwords))
    views = Views(torch.from_numpy(read_photos(data, names, recipe.data.stored)).to(run.device))
    tower = _distilled_tower(run, teacher, views, with_photo)
    tower = _aligned_tower(run, teacher, views, lambda: CaptionTargets(captions, with_photo, text), tower)
    pixels = read_photos(data, names, recipe.image.size).transpose(0, 2, 3, 1)
    parts = [flatness(pixels[batch]) for batch in batches(len(pixels), _BATCH_SIZE)]
    flat, rough = (np.concatenate(values) for values in zip(*parts, strict=True))
    about = {
        "languages": sorted({lang for group in groups for lang, _ in group.captions}),
        "licence": LICENCE,
        "weight": WEIGHT,
        "photos": {"flattest": float(np.quantile(flat, _IN_DOMAIN)), "roughest": float(np.quantile(rough, _IN_DOMAIN))},
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
        settings = run.recipe.vocabulary
        learn_vocabulary(by_language, settings.size, settings.per_language, run.seed).save(path)
    return Subwords.load(path)


def text_shape(recipe: MiniRecipe, pieces: int) -> TextShape:
    text = recipe.text
    return TextShape(pieces, text.width, text.layers, text.heads, text.dim, text.max_tokens)


def image_shape(recipe: MiniRecipe) -> ImageShape:
    image = recipe.image
    stages = [(str(kind), int(width), int(count), int(expansion)) for kind, width, count, expansion in image.stages]
    return ImageShape(image.size, image.stem, stages, image.head, recipe.text.dim)


def _text_tower(run: MiniRun, captions: TokenizedCaptions, with_photo: int, pieces: int) -> TextTower:
    settings = run.recipe.text
    torch.manual_seed(run.seed)
    tower = TextTower(text_shape(run.recipe, pieces), settings.dropout)
    text_only = len(captions.table) - with_photo

    def train() -> Mapping[str, Tensor]:
        tower.to(run.device)
        photo_batch = shuffled(with_photo, min(settings.with_photo, with_photo), run.seed, run.device)
        text_batch = shuffled(text_only, min(settings.text_only, text_only), run.seed + 1, run.device)
        count = settings.captions

        def loss_at(step: int, rng: Generator) -> Tensor:
            groups = torch.cat([photo_batch(step), text_batch(step) + with_photo])
            ids = captions.ids[captions.draw(groups, count, rng).T.reshape(-1)]
            hidden = torch.rand(ids.shape, generator=rng, device=ids.device) < settings.token_dropout
            # The end marker is never hidden, so that no text is empty.
            ids = torch.where(hidden & (ids != Subwords.end), Subwords.padding, ids)
            vectors = F.normalize(tower(ids).float(), dim=-1).view(count, len(groups), -1)
            pairs = [(a, b) for a in range(count) for b in range(a)]
            return torch.stack([contrastive(vectors[a], vectors[b], settings.temperature) for a, b in pairs]).mean()

        schedule = _schedule(settings, settings.steps)
        return run.fit("text", {"text": tower}, loss_at, schedule)["text"].state_dict()

    run.stage("text", tower, train)
    return tower


def _distilled_tower(run: MiniRun, teacher: Path, views: Views, photos: int) -> ImageTower:
    """The image tower, distilled from the teacher; at the start each stage separately, with the teacher's maps as its input."""
    settings = run.recipe.distil
    torch.manual_seed(run.seed)
    tower = ImageTower(image_shape(run.recipe))

    def train() -> Mapping[str, Tensor]:
        matching = Matching(run, teacher, tower)
        batch = min(settings.batch, photos)
        photo_batch = shuffled(photos, batch, run.seed, run.device)
        separate_steps = round(settings.apart * settings.steps)

        def loss_at(step: int, rng: Generator) -> Tensor:
            pixels = views.draw(photo_batch(step), settings.size, settings.smallest, settings.colour, rng)
            pixels = mixed(pixels, round(settings.mixed * batch), rng).contiguous(memory_format=torch.channels_last)
            targets = matching.wanted(pixels)
            return matching.loss(tower.maps(pixels, targets if step < separate_steps else None), targets)

        return run.fit("distil", {"tower": tower}, loss_at, _schedule(settings, settings.steps))["tower"].state_dict()

    run.stage("distil", tower, train)
    return tower


class Matching:
    """The distillation loss: the distance between the feature maps of the image tower and the teacher on the same views."""

    def __init__(self, run: MiniRun, weights: Path, tower: ImageTower) -> None:
        teacher = Teacher(weights).requires_grad_(False)
        teacher = teacher.to(run.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        # Compiled, the teacher is twice as fast on a GPU; on a CPU compilation costs more than it saves.
        on_gpu = run.device.startswith("cuda")
        self._teacher: Callable[[Tensor], list[Tensor]] = torch.compile(teacher, dynamic=False) if on_gpu else teacher
        tower.to(run.device, memory_format=torch.channels_last)  # type: ignore[call-overload]

    @torch.no_grad()
    def wanted(self, pixels: Tensor) -> list[Tensor]:
        """The teacher's maps."""
        return [feature_map.float() for feature_map in self._teacher(pixels)]

    def loss(self, maps: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
        """The error of the maps after every stage, and of the means of the last map, from which vectors are computed."""
        shapes, target_shapes = ([feature_map.shape[1:] for feature_map in feature_maps] for feature_maps in (maps, targets))
        if shapes != target_shapes:
            raise InputError(
                f"the image tower's stages return maps of {shapes}, but those of the teacher are {target_shapes}. Change the"
                " section [image] of the recipe."
            )
        map_errors = [unlike(feature_map.float(), target) for feature_map, target in zip(maps, targets, strict=True)]
        return torch.stack(map_errors).mean() + unlike(maps[-1].float().mean((2, 3)), targets[-1].mean((2, 3)))


def _aligned_tower(
    run: MiniRun, teacher: Path, views: Views, encode_targets: Callable[[], CaptionTargets], tower: ImageTower
) -> ImageTower:
    """The image tower, aligned with the captions; the distillation loss stays on, so that it does not forget."""
    settings = run.recipe.align

    def train() -> Mapping[str, Tensor]:
        targets, matching = encode_targets(), Matching(run, teacher, tower)
        batch = min(settings.batch, targets.count)
        photo_batch = shuffled(targets.count, batch, run.seed, run.device)
        per_epoch = max(1, targets.count // batch)

        def loss_at(step: int, rng: Generator) -> Tensor:
            photos = photo_batch(step)
            pixels = views.draw(photos, settings.size, settings.smallest, settings.colour, rng)
            pixels = pixels.contiguous(memory_format=torch.channels_last)
            # The new projection is random; training it first keeps its gradients from damaging the rest.
            frozen = step < per_epoch * settings.frozen_epochs
            with torch.set_grad_enabled(not frozen):
                maps = tower.maps(pixels)
            loss = targets.loss(F.normalize(tower.pooled(maps[-1]).float(), dim=-1), photos, run.recipe.captions, rng)
            if not settings.matching:
                return loss
            return loss + settings.matching * matching.loss(maps, matching.wanted(pixels))

        parts = dict(tower.named_children())
        schedule = _schedule(settings, per_epoch * settings.epochs)
        trained = run.fit("align", parts, loss_at, schedule, ["project"], settings.faster)
        return {f"{name}.{key}": value for name, part in trained.items() for key, value in part.state_dict().items()}

    run.stage("align", tower, train)
    return tower


def _schedule(settings: StageSettings, steps: int) -> Schedule:
    return Schedule(steps, settings.rate, settings.decay, average=settings.average)
