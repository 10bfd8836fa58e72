"""Training a captioner like caplens-mini-captioner: a small decoder on the feature maps of a frozen caplens-mini.

First by the likelihood of people's captions, then, where the recipe says so, with a metric as reward.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from caplens.backbones.manifest import writing_model
from caplens.backbones.mini import MiniBackbone
from caplens.backbones.registry import load_backbone
from caplens.backbones.torch_backbone import choose_device
from caplens.captioners import mini
from caplens.captioners.base import SearchOptions
from caplens.captioners.detokenize import written
from caplens.captioners.mini import DECODER, SETTINGS
from caplens.captioners.mini_decoder import DecoderShape, quantized
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.progress import logger
from caplens.training.captioner.data import CaptionTable, feature_maps, split_photos
from caplens.training.captioner.networks import CaptionDecoder
from caplens.training.captioner.recipe import CaptionerRecipe
from caplens.training.captioner.rewards import CaptionReward, reward_metric, self_critical
from caplens.training.loop.fit import Schedule, Validation
from caplens.training.loop.run import Run
from caplens.training.recipes.pairs import Photos

_MEASURED_AT_ONCE = 512


@dataclass(frozen=True)
class CaptionerJob:
    """What to train, with which recipe, and where."""

    model: str
    """The model whose feature maps the decoder reads: caplens-mini, or one that caplens trained from it."""
    folder: Path
    """The folder of the run."""
    recipe: CaptionerRecipe
    seed: int = 0
    device: str = "auto"
    tensorboard: bool = False
    start: str | None = None
    """A captioner to go on from, in place of one with random weights: by reward where the recipe has steps of that, else by
    likelihood."""


def train_captioner(samples: Iterable[Sample], job: CaptionerJob) -> Path:
    """Train a captioner on captions of photos; a stopped run goes on.

    Parameters
    ----------
    samples
        Captions with their images, in one language or several.
    job
        The model, the folder of the run, and the recipe.

    Returns
    -------
    Path
        The folder of the captioner, which `load_captioner` opens.

    Raises
    ------
    InputError
        If no caption can be used, or the model has no feature maps.
    """
    recipe = job.recipe
    backbone = load_backbone(job.model)
    if not isinstance(backbone, MiniBackbone):
        raise InputError(f"{job.model}: a captioner is trained on caplens-mini, or on a model that caplens trained from it.")
    photos = Photos(samples)
    languages = tuple(sorted({lang for captions in photos.captions for lang in captions}))
    if recipe.reward.steps:
        # Now, and not after hours of training.
        reward_metric(recipe.reward.metric, backbone)
    start = None if job.start is None else _opened(job.start, backbone, languages)
    device = choose_device(job.device, torch)
    hashes = {
        "model": backbone.fingerprint,
        "photos": photos.fingerprint,
        **({} if start is None else {"start": start.fingerprint}),
    }
    half = recipe.data.half and device.startswith("cuda")
    run = Run(job.folder, recipe.to_dict(), job.seed, device, hashes, job.tensorboard, half)
    run.check()
    rows, held_out = split_photos(len(photos), recipe.validation.share, job.seed)
    maps = torch.from_numpy(feature_maps(backbone, photos.images))
    shape = start.shape if start is not None else DecoderShape(
        languages, len(backbone.subwords), maps.shape[2], maps.shape[1], recipe.decoder.width, recipe.decoder.layers,
        recipe.decoder.heads, recipe.decoder.longest,
    )  # fmt: skip
    run.begin()
    training = _Training(job, run, backbone, shape, maps.to(device))
    trained, decoder = photos.some(rows), training.first_decoder(start)
    if start is None or not recipe.reward.steps:
        training.by_likelihood(decoder, trained, rows, photos.some(held_out), held_out)
    if recipe.reward.steps:
        decoder = training.by_reward(decoder, trained, rows)
    return _save(job, backbone, decoder)


def _opened(name: str, backbone: MiniBackbone, languages: Sequence[str]) -> mini.MiniCaptioner:
    """The captioner to go on from; an error if it reads feature maps of another model, or does not write a language."""
    start = mini.load(name, SearchOptions())
    if start.backbone.fingerprint != backbone.fingerprint:
        raise InputError(f"{name}: this captioner reads feature maps of {start.backbone.name}, not of {backbone.name}.")
    for lang in languages:
        start.check_language(lang)
    return start


class _Training:
    """Both stages, which share the photos."""

    def __init__(self, job: CaptionerJob, run: Run, backbone: MiniBackbone, shape: DecoderShape, maps: Tensor) -> None:
        self._job, self._run, self._backbone, self._shape, self._maps = job, run, backbone, shape, maps
        self._recipe, self._device = job.recipe, run.device

    def _table(self, photos: Photos) -> CaptionTable:
        table = CaptionTable(photos, self._backbone.subwords, self._shape.languages, self._shape.longest, self._device)
        if not len(table):
            raise InputError("no caption has between one token and decoder.longest. Raise that, or add captions.")
        if table.left_out:
            logger.info(f"{table.left_out:,} captions are longer than {self._shape.longest} tokens, and were left out.")
        return table

    def first_decoder(self, start: mini.MiniCaptioner | None) -> CaptionDecoder:
        """The decoder before training: random, or that of a captioner."""
        torch.manual_seed(self._job.seed)
        decoder = CaptionDecoder(self._shape, self._recipe.decoder.dropout)
        if start is not None:
            decoder.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in start.weights().items()})
        return decoder.to(self._device)

    def by_likelihood(
        self, decoder: CaptionDecoder, trained: Photos, rows: Sequence[int], validated: Photos, held_out: Sequence[int]
    ) -> None:
        """Train a decoder on people's captions."""
        settings, table = self._recipe.train, self._table(trained)
        maps, row_of = self._maps, torch.tensor(rows, device=self._device)

        def loss_at(_: int, rng: Generator) -> Tensor:
            batch = table.draw(settings.captions, settings.balance, rng)
            logits = decoder(maps[row_of[batch.photos]], batch.langs, batch.ids[:, :-1])
            return _cross_entropy(logits, batch.ids, self._backbone.subwords.padding, settings.smoothing)

        def train() -> dict[str, Tensor]:
            validation = Validation(
                partial(self._likelihood, decoder, self._table(validated), held_out),
                self._recipe.validation.every,
                self._recipe.validation.patience,
            )
            schedule = Schedule(settings.steps, settings.rate, settings.decay, settings.warmup, settings.average, settings.clip)
            networks = self._run.fit("likelihood", {"decoder": decoder}, loss_at, schedule, validation=validation)
            return networks["decoder"].state_dict()

        self._run.stage("likelihood", decoder, train)

    def _likelihood(self, decoder: CaptionDecoder, table: CaptionTable, rows: Sequence[int]) -> float:
        """The mean log-probability of the tokens of people's captions, each language counting the same."""
        row_of = torch.tensor(rows, device=self._device)
        sums: dict[int, list[float]] = {}
        for batch in table.batches(_MEASURED_AT_ONCE):
            logits = decoder(self._maps[row_of[batch.photos]], batch.langs, batch.ids[:, :-1])
            loss = _cross_entropy(logits, batch.ids, self._backbone.subwords.padding, 0.0)
            tokens = int((batch.ids != self._backbone.subwords.padding).sum())
            total = sums.setdefault(int(batch.langs[0]), [0.0, 0])
            total[0] -= loss.item() * tokens
            total[1] += tokens
        return float(np.mean([total / tokens for total, tokens in sums.values()]))

    def by_reward(self, decoder: CaptionDecoder, trained: Photos, rows: Sequence[int]) -> CaptionDecoder:
        """The decoder after self-critical training."""
        settings, table, subwords = self._recipe.reward, self._table(trained), self._backbone.subwords
        reward, languages = CaptionReward(settings, trained, self._backbone), self._shape.languages
        maps, row_of, likelihood = self._maps, torch.tensor(rows, device=self._device), self._recipe.train

        def loss_at(_: int, rng: Generator) -> Tensor:
            people = table.draw(settings.photos, likelihood.balance, rng)
            photos, langs = (column.repeat_interleave(settings.samples) for column in (people.photos, people.langs))
            features = maps[row_of[photos]]
            # Without dropout: these are the probabilities with which the captions are drawn.
            decoder.eval()
            ids = decoder.sample(features, langs, subwords.end, subwords.padding)
            logits = decoder(features, langs, ids[:, :-1])
            decoder.train()
            tokens = [row[: row.index(subwords.end)] if subwords.end in row else row for row in ids.tolist()]
            codes = [languages[lang] for lang in langs.tolist()]
            texts = [written(subwords.decode(caption), lang) for caption, lang in zip(tokens, codes, strict=True)]
            rewards = reward(photos.tolist(), codes, texts, tokens)
            loss = self_critical(rewards, logits, ids, subwords.padding, settings.samples)
            if settings.likelihood:
                logits = decoder(maps[row_of[people.photos]], people.langs, people.ids[:, :-1])
                loss = loss + settings.likelihood * _cross_entropy(logits, people.ids, subwords.padding, 0.0)
            return loss

        def train() -> dict[str, Tensor]:
            schedule = Schedule(settings.steps, settings.rate, 0.0, 0.02, likelihood.average, likelihood.clip, constant=True)
            networks = self._run.fit("reward", {"decoder": decoder}, loss_at, schedule)
            return networks["decoder"].state_dict()

        self._run.stage("reward", decoder, train)
        return decoder


def _cross_entropy(logits: Tensor, ids: Tensor, padding: int, smoothing: float) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1).float(), ids.flatten(), ignore_index=padding, label_smoothing=smoothing)


def _save(job: CaptionerJob, backbone: MiniBackbone, decoder: CaptionDecoder) -> Path:
    folder = job.folder / "model"
    about = {
        "captioner": "mini",
        "image": backbone.name if backbone.name.startswith("caplens-mini") else str(Path(backbone.name).absolute()),
        "image_fingerprint": backbone.fingerprint,
        "licence": backbone.licence,
        "decoder": decoder.settings(),
        "recipe": job.recipe.to_dict(),
        "seed": job.seed,
    }
    stored: Any = quantized({name: value.detach().float().cpu().numpy() for name, value in decoder.state_dict().items()})
    with writing_model(folder) as target:
        np.savez_compressed(target / DECODER, **stored)
        (target / SETTINGS).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return folder
