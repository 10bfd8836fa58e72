"""A text tower for more languages (PR-MCS, section 3.1 and appendix A; Carlsson et al. 2022).

The student learns, from translations, the vectors that the teacher's text tower gives to the English sentences (mean squared
error). It sees no image, and the image tower stays the teacher's.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from caplens.backbones.hf import library
from caplens.backbones.hub import MCLIP, find_model
from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError, reason
from caplens.training.loop.fit import Validation
from caplens.training.loop.towers import copy_small, open_towers, write_weights
from caplens.training.recipes.pairs import Caption
from caplens.training.recipes.recipe import DataSettings, HeldOutSettings, TrainSettings, TuningRecipe
from caplens.training.recipes.tuning import Job, Tuning

SOURCE = "source"
"""The field of a record that holds the English sentence."""
SAME = "same"
"""A student that is a copy of the teacher's text tower."""


@dataclass(frozen=True, kw_only=True)
class DistillTrainSettings(TrainSettings):
    pairs: int
    """Sentences at a step."""


@dataclass(frozen=True)
class DistillRecipe(TuningRecipe):
    name = "distill"

    train: DistillTrainSettings
    validation: HeldOutSettings
    data: DataSettings


def train_distill(samples: Iterable[Sample], student: str, job: Job) -> Path:
    """Teach a student the text tower of `job.model`; returns the folder of the new model.

    Samples have the translation as their caption and the English sentence as `source`. The student is `same`, or a transformers
    encoder, by its name on the hub or its folder.
    """
    pairs = _pairs(samples)
    digest = hashlib.sha256(json.dumps(pairs, ensure_ascii=False).encode()).hexdigest()
    teacher = open_towers(job.model, job.device)
    for network in teacher.networks.values():
        network.requires_grad_(False).eval()
    model = job.model
    if student != SAME:
        with torch.no_grad():
            dim = teacher.forward_texts(teacher.tokenize(["a dog"], ["en"])).shape[1]
        model = f"mclip:{_student(student, dim, job)},image={job.model}"
    recipe = job.recipe
    assert isinstance(recipe, DistillRecipe)
    tuning = Tuning(job._replace(model=model), {"teacher": teacher.backbone.fingerprint, "pairs": digest})
    settings = recipe.train
    if tuning.towers.changes_images:
        raise InputError(f"train.parts is {settings.parts!r}; a student of texts trains the text tower only.")
    order = np.random.default_rng(job.seed).permutation(len(pairs))
    kept = max(1, round(recipe.validation.share * len(pairs)))
    apart, learned = order[:kept], order[kept:]
    if not len(learned):
        raise InputError("one pair of sentences is too little to learn from.")

    def error(places: Sequence[int]) -> Tensor:
        """How far the student's vectors are from the teacher's, which are of any length."""
        chosen = [pairs[place] for place in places]
        with torch.no_grad():
            wanted = teacher.forward_texts(teacher.tokenize([source for _, source in chosen], ["en"] * len(chosen))).float()
        ids = tuning.towers.tokenize([caption.text for caption, _ in chosen], [caption.lang for caption, _ in chosen])
        made = tuning.run.group.encode(lambda some: tuning.towers.forward_texts(some).float(), ids, settings.at_once)
        return F.mse_loss(made, wanted)

    def loss_at(step: int, rng: Generator) -> Tensor:
        draw = np.random.default_rng([job.seed, step])
        return error(draw.choice(learned, min(settings.pairs, len(learned)), replace=False).tolist())

    def measure() -> float:
        parts = [apart[start : start + settings.pairs].tolist() for start in range(0, len(apart), settings.pairs)]
        return -float(np.average([error(part).item() for part in parts], weights=list(map(len, parts))))

    return tuning.train(loss_at, Validation(measure, recipe.validation.every, recipe.validation.patience))


def _pairs(samples: Iterable[Sample]) -> list[tuple[Caption, str]]:
    made = []
    for sample in samples:
        source = sample.source
        if isinstance(source, str) and source.strip() and sample.caption and sample.caption.strip():
            made.append((Caption(0, sample.caption, base_language(sample.lang or "en")), source))
    if len(made) < 2:
        raise InputError(f"at least two captions with the English sentence they translate, {SOURCE!r}, are needed.")
    return made


def _student(name: str, dim: int, job: Job) -> Path:
    """A folder with the encoder and a new linear map to `dim` numbers, as M-CLIP's models are laid out."""
    folder = job.folder / "student"
    if (folder / "model.safetensors").is_file():
        return folder
    transformers = library(name)
    source = find_model(name, MCLIP)
    try:
        encoder = transformers.AutoModel.from_pretrained(source, local_files_only=True)
    except Exception as error:
        # Damaged files, wrong shapes and unsafe pickles all raise something else.
        raise InputError(f"{source}: this encoder cannot be loaded ({reason(error)}).") from None
    torch.manual_seed(job.seed)
    linear = torch.nn.Linear(encoder.config.hidden_size, dim)
    weights = {f"transformer.{key}": value for key, value in encoder.state_dict().items() if "pooler" not in key}
    weights |= {f"LinearTransformation.{key}": value for key, value in linear.state_dict().items()}
    folder.mkdir(parents=True, exist_ok=True)
    copy_small(source, folder)
    write_weights(folder / "model.safetensors", weights)
    return folder
