"""Training captioners of the shape that Crossmodal-3600 used: any vision transformer and any mT5, from their folders."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from torch import Generator, Tensor

from caplens.backbones.hub import CONFIGURATION, MCLIP, find_model, model_files
from caplens.backbones.hub import fingerprint as fingerprint_of
from caplens.backbones.manifest import writing_model
from caplens.backbones.mini import DEFAULT
from caplens.backbones.torch_backbone import choose_device
from caplens.captioners.vit_mt5 import MT5, PROJECTION, SETTINGS, VIT, Parts, language_tokens, open_parts
from caplens.data.sample import Sample
from caplens.embed.images import UnreadableError, decode
from caplens.errors import InputError
from caplens.training.captioner.data import split_photos
from caplens.training.captioner.recipe import RewardSettings
from caplens.training.captioner.rewards import CaptionReward, reward_metric, self_critical
from caplens.training.loop.fit import Schedule, Validation
from caplens.training.loop.run import Run
from caplens.training.loop.towers import write_weights
from caplens.training.recipes.pairs import Caption, Photos
from caplens.training.recipes.recipe import DataSettings, HeldOutSettings, Recipe
from caplens.training.recipes.values import Average, Count, LearningRate, Range, Share, Weight

_IGNORED = -100
"""Of labels that count for nothing."""


@dataclass(frozen=True)
class VitMt5Settings:
    steps: Count
    captions: Count
    """Captions per step."""
    rate: LearningRate
    constant: Count
    """Steps after which the rate falls with the root of the step."""
    clip: Weight
    average: Average
    longest: Annotated[int, Range(2, 512)]
    """Tokens of a caption, at most."""
    balance: Share
    """How much of the differences in the number of photos remains between languages."""
    frozen: bool
    """Whether the vision transformer stays as it is."""


@dataclass(frozen=True)
class VitMt5Recipe(Recipe):
    """The settings of `train_vit_mt5`."""

    name = "vit_mt5"
    package = "caplens.training.captioner"

    train: VitMt5Settings
    reward: RewardSettings
    validation: HeldOutSettings
    data: DataSettings


@dataclass(frozen=True)
class VitMt5Job:
    """What to train, with which recipe, and where."""

    vit: str
    """A vision transformer: a name on the hub, or a folder."""
    mt5: str
    folder: Path
    recipe: VitMt5Recipe
    seed: int = 0
    device: str = "auto"
    tensorboard: bool = False


def train_vit_mt5(samples: Iterable[Sample], job: VitMt5Job) -> Path:
    """Train a captioner of a vision transformer and mT5 on captions of photos; a stopped run goes on.

    Parameters
    ----------
    samples
        Captions with their images, in one language or several.
    job
        The two models, the folder of the run, and the recipe.

    Returns
    -------
    Path
        The folder of the captioner, which `open_captioner("vit-mt5:FOLDER")` opens.

    Raises
    ------
    InputError
        If the models cannot be joined, or there are too few photos.
    """
    recipe, photos = job.recipe, Photos(samples)
    folders = find_model(job.vit, CONFIGURATION), find_model(job.mt5, MCLIP)
    device = choose_device(job.device, torch)
    files = [path for folder in folders for path in model_files(folder, MCLIP)]
    hashes = {"models": fingerprint_of(files), "photos": photos.fingerprint}
    half = recipe.data.half and device.startswith("cuda")
    run = Run(job.folder, recipe.to_dict(), job.seed, device, hashes, job.tensorboard, half)
    run.check()
    torch.manual_seed(job.seed)
    if recipe.reward.steps:
        # Now, and not after hours of training.
        reward_metric(recipe.reward.metric, DEFAULT)
    parts = open_parts(*folders)
    parts.network.vit.requires_grad_(not recipe.train.frozen)
    network = parts.network.to(device)
    rows, held_out = split_photos(len(photos), recipe.validation.share, job.seed)
    run.begin()
    batches = _Batches(parts, photos, recipe.train, device)
    trained = batches.by_language(rows)

    def loss_at(step: int, _: Generator) -> Tensor:
        captions = batches.draw(trained, np.random.default_rng([job.seed, step]), recipe.train.captions)
        loss: Tensor = network(*batches.tensors(captions))
        return loss

    def measure() -> float:
        captions = [caption for of_language in batches.by_language(held_out).values() for caption in of_language]
        parted = [captions[start : start + recipe.train.captions] for start in range(0, len(captions), recipe.train.captions)]
        return -float(np.average([network(*batches.tensors(part)).item() for part in parted], weights=list(map(len, parted))))

    settings = recipe.train
    schedule = Schedule(
        settings.steps, settings.rate, 0.0, 0.0, settings.average, settings.clip, root_after=settings.constant, adafactor=True
    )

    def train() -> dict[str, Tensor]:
        validation = Validation(measure, recipe.validation.every, recipe.validation.patience)
        return run.fit("vit-mt5", {"network": network}, loss_at, schedule, validation=validation)["network"].state_dict()

    run.stage("vit-mt5", network, train)
    if recipe.reward.steps:
        _train_by_reward(run, recipe, parts, batches, trained, photos)
    return _save(job, parts, sorted(batches.languages))


def _train_by_reward(
    run: Run, recipe: VitMt5Recipe, parts: Parts, batches: "_Batches", trained: dict[str, list[Caption]], photos: Photos
) -> None:
    """Self-critical training."""
    settings, network, tokenizer = recipe.reward, parts.network, parts.tokenizer
    reward = CaptionReward(settings, photos, DEFAULT)

    def loss_at(step: int, _: Generator) -> Tensor:
        people = batches.draw(trained, np.random.default_rng([run.seed, step, 1]), settings.photos)
        pixels, langs, mask, labels = batches.tensors(people)
        repeated = [column.repeat_interleave(settings.samples, 0) for column in (pixels, langs, mask)]
        network.eval()
        with torch.no_grad():
            drawn = network.mt5.generate(
                **network.inputs(*repeated), do_sample=True, top_k=0, max_new_tokens=recipe.train.longest
            )  # fmt: skip
        # The first token begins every caption; what follows the end marker is padding.
        ids = drawn[:, 1:].masked_fill(drawn[:, 1:] == tokenizer.pad_token_id, _IGNORED)
        logits = network.mt5(**network.inputs(*repeated), labels=ids).logits
        network.train()
        captions = [caption for caption in people for _ in range(settings.samples)]
        tokens = [[token for token in row if token not in (_IGNORED, tokenizer.eos_token_id)] for row in ids.tolist()]
        texts = tokenizer.batch_decode(drawn, skip_special_tokens=True)
        rows, codes = [caption.row for caption in captions], [caption.lang for caption in captions]
        loss = self_critical(reward(rows, codes, texts, tokens), logits, ids, _IGNORED, settings.samples)
        return loss + settings.likelihood * network(pixels, langs, mask, labels) if settings.likelihood else loss

    def train() -> dict[str, Tensor]:
        schedule = Schedule(
            settings.steps, settings.rate, 0.0, 0.02, recipe.train.average, recipe.train.clip, constant=True, adafactor=True
        )
        return run.fit("reward", {"network": network}, loss_at, schedule)["network"].state_dict()

    run.stage("reward", network, train)


class _Batches:
    """Photos and their captions as tensors."""

    def __init__(self, parts: Parts, photos: Photos, settings: VitMt5Settings, device: str) -> None:
        self._parts, self._photos, self._settings, self._device = parts, photos, settings, device
        self.languages = {lang for captions in photos.captions for lang in captions}

    def by_language(self, rows: Sequence[int]) -> dict[str, list[Caption]]:
        """The captions of photos, by language."""
        captions: dict[str, list[Caption]] = {}
        for row in rows:
            for lang, texts in self._photos.captions[row].items():
                captions.setdefault(lang, []).extend(Caption(row, text, lang) for text in texts)
        return captions

    def draw(self, captions: dict[str, list[Caption]], rng: np.random.Generator, count: int) -> list[Caption]:
        """Captions at random: a language by its number of captions to the power of `balance`, then a caption of it."""
        langs = sorted(captions)
        chances = np.array([len(captions[lang]) for lang in langs], dtype=np.float64) ** self._settings.balance
        chosen = rng.choice(len(langs), count, p=chances / chances.sum())
        return [captions[langs[lang]][rng.integers(len(captions[langs[lang]]))] for lang in chosen]

    def tensors(self, captions: Sequence[Caption]) -> tuple[Tensor, ...]:
        """Pixels, tokens of languages with their mask, and labels."""
        try:
            images = [decode(self._photos.images[caption.row]) for caption in captions]
        except UnreadableError as error:
            raise InputError(f"{error}.") from None
        pixels = self._parts.images(images=images, return_tensors="pt")["pixel_values"]
        langs = language_tokens(self._parts.tokenizer, [caption.lang for caption in captions])
        texts = self._parts.tokenizer(
            [caption.text for caption in captions], return_tensors="pt", padding=True, truncation=True,
            max_length=self._settings.longest,
        )  # fmt: skip
        labels = texts["input_ids"].masked_fill(texts["attention_mask"] == 0, _IGNORED)
        return tuple(tensor.to(self._device) for tensor in (pixels, langs["input_ids"], langs["attention_mask"], labels))


def _save(job: VitMt5Job, parts: Parts, languages: Sequence[str]) -> Path:
    folder = job.folder / "model"
    about = {"captioner": "vit-mt5", "languages": list(languages), "vit": job.vit, "mt5": job.mt5, "seed": job.seed}
    with writing_model(folder) as target:
        parts.network.vit.save_pretrained(target / VIT, safe_serialization=True)
        parts.images.save_pretrained(target / VIT)
        parts.network.mt5.save_pretrained(target / MT5, safe_serialization=True)
        parts.tokenizer.save_pretrained(target / MT5)
        write_weights(target / PROJECTION, parts.network.project.state_dict())
        content = {**about, "recipe": job.recipe.to_dict()}
        (target / SETTINGS).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return folder
