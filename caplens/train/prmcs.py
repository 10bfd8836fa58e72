"""A score that notices perturbed captions (PR-MCS, sections 3.4 and 5.2; appendix B).

The text tower learns that a caption belongs to its photo, and its repeated, shortened, masked, jumbled and swapped forms do not.
Perturbed captions are made anew at every step, in the language of the caption. The image tower is not touched.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn import functional as F

from caplens.backbones.mini import IMAGE
from caplens.backbones.network import choose_device
from caplens.data.languages import base_language
from caplens.data.sample import Sample
from caplens.embed import Engine
from caplens.errors import InputError
from caplens.perturb import PERTURBATIONS
from caplens.text.subwords import Subwords
from caplens.train.captions import padded
from caplens.train.export import load_model, replace_text
from caplens.train.loop import Schedule
from caplens.train.losses import contrastive, distance, perturbation_aware
from caplens.train.networks import TextTower
from caplens.train.recipe import Config
from caplens.train.run import Run


class Photo(NamedTuple):
    """What is said about one photo, by language."""

    captions: dict[str, list[str]]
    row: int
    """Of its vector."""


def train_prmcs(
    samples: Sequence[Sample], engine: Engine, model: Path, folder: Path, config: Config, seed: int = 0, device: str = "auto"
) -> Path:
    """Tune the text tower of the model in the folder `model`; gives back the folder of the new one.

    `engine` runs the same model: its image tower stays as it is, so that every photo is encoded once.
    """
    photos, vectors = _photos(samples, engine)
    said = json.dumps([photo.captions for photo in photos], ensure_ascii=False).encode()
    given = {"model": engine.backbone.fingerprint, "captions": hashlib.sha256(said).hexdigest()}
    run = Run(model, folder, config, seed, choose_device(device, torch), given)
    run.begin()
    _, text, subwords = load_model(model)
    run.stage("text", text, lambda: _tuned(run, text, subwords, photos, torch.from_numpy(vectors).to(run.device)))
    made = folder / "model"
    shutil.copytree(model, made, dirs_exist_ok=True)
    replace_text(made, text, {"tuned": {"recipe": "prmcs", "settings": config, "seed": seed, "given": given}})
    assert (made / IMAGE).read_bytes() == (model / IMAGE).read_bytes()
    return made


def _photos(samples: Sequence[Sample], engine: Engine) -> tuple[list[Photo], NDArray[np.float32]]:
    by_image: dict[str, dict[str, list[str]]] = {}
    for sample in samples:
        if sample.image is not None and sample.caption and sample.caption.strip():
            lang = base_language(sample.lang or "en")
            by_image.setdefault(str(sample.image), {}).setdefault(lang, []).append(sample.caption)
    if not by_image:
        raise InputError("no caption has an image; give the folder of the images with --images.")
    found = engine.images(list(by_image))
    if found.problems:
        raise InputError(f"{next(iter(found.problems.values()))}.")
    photos = [Photo(captions, int(found.index[place])) for place, captions in enumerate(by_image.values())]
    return photos, found.vectors


def _tuned(run: Run, text: TextTower, subwords: Subwords, photos: list[Photo], vectors: Tensor) -> Mapping[str, Tensor]:
    section, weights = run.config["train"], run.config["losses"]
    if len(photos) < 2:
        raise InputError("captions of at least two photos are needed to tell them apart.")
    _, before, _ = load_model(run.data)
    text.to(run.device)
    before.to(run.device).eval()

    def encode(tower: TextTower, captions: list[str]) -> Tensor:
        numbers = [subwords.encode(caption) for caption in captions]
        # No longer than needed: attention over padding is half of the work otherwise.
        longest = min(tower.shape.max_tokens, 1 + max(map(len, numbers)))
        ids = torch.from_numpy(padded(numbers, subwords, longest))
        return F.normalize(tower(ids.to(run.device)).float(), dim=-1)

    def loss_at(step: int, chance: Generator) -> Tensor:
        draw = np.random.default_rng([run.seed, step])
        rows, captions, worse = [], [], []
        for place in draw.choice(len(photos), min(section["batch"], len(photos)), replace=False):
            lang = list(photos[place].captions)[draw.integers(len(photos[place].captions))]
            caption = photos[place].captions[lang][draw.integers(len(photos[place].captions[lang]))]
            made = _worse(caption, lang, draw)
            if made is not None:
                rows.append(photos[place].row)
                captions.append(caption)
                worse.append(made)
        images, texts = vectors[rows], encode(text, captions)
        with torch.no_grad():
            were = encode(before, captions)
        balance = (weights["near"], weights["from_image"], weights["from_text"])
        noticed = perturbation_aware(images, texts, encode(text, worse), balance, weights["margin"])
        stay: float = weights["stay"]
        return contrastive(images, texts, section["temperature"]) + noticed + stay * distance(texts, were)

    schedule = Schedule(section["steps"], section["rate"], section["decay"], average=section["average"])
    return run.fit("text", {"text": text}, loss_at, schedule)["text"].state_dict()


def _worse(caption: str, lang: str, draw: np.random.Generator) -> str | None:
    """The caption perturbed in one of the ways that are possible."""
    for kind in draw.permutation(list(PERTURBATIONS)):
        made = PERTURBATIONS[str(kind)](caption, lang, int(draw.integers(1 << 31)))
        if made is not None:
            return made
    return None
