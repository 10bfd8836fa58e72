"""Distillation of a text tower into more languages (PR-MCS, section 3.1 and appendix A; Carlsson et al. 2022).

From translations, the student learns the vectors that the teacher's text tower has for the English sentences, by mean squared
error. No images are used, and the image tower stays the teacher's.
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

from caplens.backbones.hub import MANIFEST, MCLIP, find_model
from caplens.backbones.manifest import writing_model
from caplens.backbones.pretrained import library, open_pretrained
from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.errors import InputError, option, reason
from caplens.training.loop.fit import Validation
from caplens.training.loop.run import RUN
from caplens.training.loop.towers import copy_small, open_towers, write_weights
from caplens.training.recipes.pairs import Caption
from caplens.training.recipes.recipe import DataSettings, HeldOutSettings, TrainSettings, TuningRecipe
from caplens.training.recipes.tuning import Job, Tuning
from caplens.training.recipes.values import Count

SOURCE = "source"
"""The field of a record that holds the English sentence."""
SAME = "same"
"""A student that is a copy of the teacher's text tower."""


@dataclass(frozen=True, kw_only=True)
class DistillTrainSettings(TrainSettings):
    pairs: Count
    """Sentence pairs per step."""


@dataclass(frozen=True)
class DistillRecipe(TuningRecipe):
    """The settings of `train_distill`."""

    name = "distill"

    train: DistillTrainSettings
    validation: HeldOutSettings
    data: DataSettings


def train_distill(samples: Iterable[Sample], student: str, job: Job) -> Path:
    """Train a student to match the text tower of `job.model` on translations.

    Parameters
    ----------
    samples
        Each with the translation as its caption and the English sentence as its `source`.
    student
        `same` for a copy of the teacher's text tower, or a transformers encoder: its name on the hub, or its folder.
    job
        The teacher, the folder of the run, and the recipe (a `DistillRecipe`).

    Returns
    -------
    Path
        The folder of the trained model.
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
        model = f"mclip:{_create_student(student, dim, job)},image={job.model}"
    recipe = job.recipe
    assert isinstance(recipe, DistillRecipe)
    hashes = {"teacher": teacher.backbone.fingerprint, "pairs": digest, **({} if student == SAME else {"student": student})}
    tuning = Tuning(job._replace(model=model), hashes)
    settings = recipe.train
    if tuning.towers.changes_images:
        raise InputError(f"train.parts is {settings.parts!r}; distill trains the text tower only.")
    order = np.random.default_rng(job.seed).permutation(len(pairs))
    held_out_count = max(1, round(recipe.validation.share * len(pairs)))
    held_out, trained = order[:held_out_count], order[held_out_count:]
    if not len(trained):
        raise InputError("no pair of sentences is left to train on. Add more pairs, or lower validation.share.")

    def error(rows: Sequence[int]) -> Tensor:
        """Mean squared error of the student's vectors, which are not normalised."""
        batch = [pairs[row] for row in rows]
        with torch.no_grad():
            targets = teacher.forward_texts(teacher.tokenize([source for _, source in batch], ["en"] * len(batch))).float()
        ids = tuning.towers.tokenize([caption.text for caption, _ in batch], [caption.lang for caption, _ in batch])
        vectors = tuning.run.group.encode(lambda part: tuning.towers.forward_texts(part).float(), ids, settings.at_once)
        return F.mse_loss(vectors, targets)

    def loss_at(step: int, _: Generator) -> Tensor:
        rng = np.random.default_rng([job.seed, step])
        return error(rng.choice(trained, min(settings.pairs, len(trained)), replace=False).tolist())

    def measure() -> float:
        batches = [held_out[start : start + settings.pairs].tolist() for start in range(0, len(held_out), settings.pairs)]
        return -float(np.average([error(batch).item() for batch in batches], weights=list(map(len, batches))))

    return tuning.train(loss_at, Validation(measure, recipe.validation.every, recipe.validation.patience))


def _pairs(samples: Iterable[Sample]) -> list[tuple[Caption, str]]:
    """(translation, English sentence) of each sample that has both."""
    pairs = []
    for sample in samples:
        source = sample.source
        if isinstance(source, str) and source.strip() and sample.caption and sample.caption.strip():
            pairs.append((Caption(0, sample.caption, base_language(sample.lang or "en")), source))
    if len(pairs) < 2:
        raise InputError(f"at least two captions with the English sentence they translate ({SOURCE!r}) are needed.")
    return pairs


def _create_student(name: str, dim: int, job: Job) -> Path:
    """Write the encoder and a new linear layer to `dim` dimensions in the layout of M-CLIP's models; returns the folder."""
    folder = job.folder / "student"
    if (folder / "model.safetensors").is_file() and (job.folder / RUN).is_file():
        return folder
    if folder.exists() and not (folder / MANIFEST).is_file():
        raise InputError(
            f"{folder}: this is not a model that caplens wrote. Choose another folder with {option('out', 'FOLDER')}."
        )
    transformers = library(name)
    source = find_model(name, MCLIP)
    try:
        encoder = open_pretrained(transformers.AutoModel, source, local_files_only=True)
    except Exception as error:
        # Damaged files, wrong shapes and unsafe pickles raise errors of many types.
        raise InputError(f"{source}: this encoder cannot be loaded ({reason(error)}).") from None
    torch.manual_seed(job.seed)
    linear = torch.nn.Linear(encoder.config.hidden_size, dim)
    weights = {f"transformer.{key}": value for key, value in encoder.state_dict().items() if "pooler" not in key}
    weights |= {f"LinearTransformation.{key}": value for key, value in linear.state_dict().items()}
    with writing_model(folder) as target:
        copy_small(source, target)
        write_weights(target / "model.safetensors", weights)
    return folder
