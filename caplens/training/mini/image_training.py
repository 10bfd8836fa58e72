"""Training the image tower: distilled from the teacher's feature maps, then aligned with the captions."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Generator, Tensor

from caplens.errors import InputError
from caplens.training.loop.fit import shuffled
from caplens.training.loop.losses import unlike
from caplens.training.mini.captions import CaptionTargets
from caplens.training.mini.networks import ImageTower
from caplens.training.mini.run import MiniRun, image_shape, schedule_of
from caplens.training.mini.teacher import Teacher
from caplens.training.mini.views import Views, mixed


def distilled_tower(run: MiniRun, teacher: Path, views: Views) -> ImageTower:
    """The image tower, distilled from the teacher; at the start each stage separately, with the teacher's maps as its input."""
    settings = run.recipe.distil
    torch.manual_seed(run.seed)
    tower = ImageTower(image_shape(run.recipe))

    def train() -> Mapping[str, Tensor]:
        matching = Matching(run, teacher, tower)
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


def aligned_tower(
    run: MiniRun, teacher: Path, views: Views, encode_targets: Callable[[], CaptionTargets], tower: ImageTower
) -> ImageTower:
    """The image tower, aligned with the captions; the distillation loss stays on, so that it does not forget."""
    settings = run.recipe.align

    def train() -> Mapping[str, Tensor]:
        targets, matching = encode_targets(), Matching(run, teacher, tower)
        batch = min(settings.batch, targets.count)
        photo_batch = shuffled(targets.count, batch, run.seed, run.device)

        def loss_at(step: int, rng: Generator) -> Tensor:
            photos = photo_batch(step)
            pixels = views.draw(photos, settings.size, settings.smallest, settings.colour, rng)
            pixels = pixels.contiguous(memory_format=torch.channels_last)
            # The new projection is random; training it first keeps its gradients from damaging the rest.
            frozen = step < settings.frozen * settings.steps
            with torch.set_grad_enabled(not frozen):
                maps = tower.maps(pixels)
            loss = targets.loss(tower.pooled(maps[-1]).float(), photos, run.recipe.captions, rng)
            if not settings.matching:
                return loss
            return loss + settings.matching * matching.loss(maps, matching.wanted(pixels))

        parts = dict(tower.named_children())
        schedule = schedule_of(settings, settings.steps)
        trained = run.fit("align", parts, loss_at, schedule, ["project"], settings.faster)
        return {f"{name}.{key}": value for name, part in trained.items() for key, value in part.state_dict().items()}

    run.stage("align", tower, train)
    return tower
