"""Training the image tower: distilled from the teacher's feature maps, then aligned with the captions."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Generator, Tensor

from caplens.errors import InputError
from caplens.training.loop.fit import shuffled
from caplens.training.loop.losses import distance, unlike
from caplens.training.mini.captions import CaptionTargets
from caplens.training.mini.networks import ImageTower, in_spaces
from caplens.training.mini.recipe import AlignSettings
from caplens.training.mini.run import MiniRun, image_shape, schedule_of
from caplens.training.mini.teacher import CaptionTeacher, Teacher
from caplens.training.mini.views import Views, mixed


def distilled_tower(run: MiniRun, teacher: Path, views: Views) -> ImageTower:
    """The image tower, distilled from the teacher; at the start each stage separately, with the teacher's maps as its input."""
    settings = run.recipe.distil
    torch.manual_seed(run.seed)
    tower = ImageTower(image_shape(run.recipe))

    def train() -> Mapping[str, Tensor]:
        matching = Matching(run, Teacher(teacher), tower)
        photos = len(views.photos)
        batch = min(settings.batch, photos)
        photo_batch = shuffled(photos, batch, run.seed, run.device)
        separate_steps = round(settings.apart * settings.steps)

        def loss_at(step: int, rng: Generator) -> Tensor:
            pixels = views.draw(photo_batch(step), settings.size, settings.smallest, settings.colour, rng)
            pixels = mixed(pixels, round(settings.mixed * batch), rng).contiguous(memory_format=torch.channels_last)
            targets = matching.wanted(pixels)
            return matching.loss(tower.maps(pixels, targets if step < separate_steps else None), targets)

        return run.fit("distil", {"tower": tower}, loss_at, schedule_of(settings, settings.steps))["tower"].state_dict()

    run.stage("distil", tower, train)
    return tower


class Matching:
    """The distillation loss: the distance between the feature maps of the image tower and the teacher on the same views."""

    def __init__(self, run: MiniRun, teacher: Teacher, tower: ImageTower) -> None:
        teacher = teacher.eval().requires_grad_(False)
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


def aligned_tower(
    run: MiniRun, teacher: Path, views: Views, encode_targets: Callable[[], CaptionTargets], tower: ImageTower
) -> ImageTower:
    """The image tower, aligned with the captions and with the vectors of a teacher that was aligned with them first.

    The distillation loss stays on, so that the tower does not forget.
    """
    settings, spaces = run.recipe.align, tower.shape.spaces

    def train() -> Mapping[str, Tensor]:
        targets = encode_targets()
        network = _aligned_teacher(run, teacher, views, targets) if settings.vectors else Teacher(teacher)
        matching = Matching(run, network, tower)

        def teacher_loss(maps: Sequence[Tensor], vectors: Tensor, pixels: Tensor) -> Tensor:
            wanted = matching.wanted(pixels)
            loss = settings.matching * matching.loss(maps, wanted)
            if not isinstance(network, CaptionTeacher):
                return loss
            with torch.no_grad():
                teacher_vectors = network.pooled(wanted[-1])
            pairs = zip(in_spaces(vectors, spaces), in_spaces(teacher_vectors, spaces), strict=True)
            return loss + settings.vectors * torch.stack([distance(own, target) for own, target in pairs]).sum()

        blended = settings.mixed if settings.vectors else 0.0
        return _align(run, "align", settings, tower, views, targets, teacher_loss, blended)

    run.stage("align", tower, train)
    return tower


def _aligned_teacher(run: MiniRun, weights: Path, views: Views, targets: CaptionTargets) -> CaptionTeacher:
    torch.manual_seed(run.seed)
    shape = image_shape(run.recipe)
    network = CaptionTeacher(weights, shape.dim, shape.spaces)

    def train() -> Mapping[str, Tensor]:
        network.to(run.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        return _align(run, "teacher", run.recipe.teacher, network, views, targets)

    run.stage("teacher", network, train)
    return network


def _align(
    run: MiniRun,
    name: str,
    settings: AlignSettings,
    network: ImageTower | CaptionTeacher,
    views: Views,
    targets: CaptionTargets,
    further_loss: Callable[[Sequence[Tensor], Tensor, Tensor], Tensor] | None = None,
    blended: float = 0.0,
) -> Mapping[str, Tensor]:
    """Align a network with the captions, and by a loss of its maps, vectors and views. Returns its weights.

    This share of the views is blended with another; they have no captions, only the further loss.
    """
    epoch = targets.epoch.to(run.device)
    batch = min(settings.batch, len(epoch))
    rows = shuffled(len(epoch), batch, run.seed, run.device)
    first = round(blended * batch)

    def loss_at(step: int, rng: Generator) -> Tensor:
        photos = epoch[rows(step)]
        pixels = views.draw(photos, settings.size, settings.smallest, settings.colour, rng)
        pixels = (mixed(pixels, first, rng) if first else pixels).contiguous(memory_format=torch.channels_last)
        # The new projection is random; training it first keeps its gradients from damaging the rest.
        frozen = step < settings.frozen * settings.steps
        with torch.set_grad_enabled(not frozen):
            maps = network.maps(pixels)
        vectors = network.pooled(maps[-1]).float()
        loss = targets.loss(vectors[first:], photos[first:], run.recipe.captions, rng)
        return loss if further_loss is None else loss + further_loss(maps, vectors, pixels)

    schedule = schedule_of(settings, settings.steps)
    trained = run.fit(name, dict(network.named_children()), loss_at, schedule, ["project"], settings.faster)
    return {f"{part}.{key}": value for part, child in trained.items() for key, value in child.state_dict().items()}
