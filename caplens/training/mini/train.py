"""Training of caplens-mini, from captions and photos to a model that onnxruntime runs.

1. A sub-word vocabulary is learned from the captions of all languages.
2. The text tower learns two spaces: that of captions, in which captions of one photo, in any two languages, are near each other
   and near the photo, and that of sentences, which it learns from USE-multilingual. Then it is frozen.
3. The image tower is initialised randomly and distilled from the features of a teacher, an ImageNet network, on the same views.
   The teachers are not part of the model.
4. The image tower is aligned with the captions, in both spaces, and with the vectors of the teacher, which is aligned first.
5. Both towers are written as small ONNX files.

Every stage writes a file. A run that finds the file of a stage skips it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from caplens.backbones.hub import file_hash
from caplens.backbones.photo_domain import PhotoDomain, flatness, photo_statistics
from caplens.backbones.torch_backbone import choose_device
from caplens.data.replacing import replacing
from caplens.errors import InputError
from caplens.progress import logger
from caplens.text.subwords import Subwords
from caplens.training.loop.fit import batches
from caplens.training.mini.captions import CaptionTargets, TokenizedCaptions, number_captions
from caplens.training.mini.collection import Group, photo_versions, read_groups, read_photos
from caplens.training.mini.export import exported_image, exported_text, save_model
from caplens.training.mini.image_training import aligned_tower, distilled_tower
from caplens.training.mini.networks import TextTower
from caplens.training.mini.recipe import MiniRecipe
from caplens.training.mini.run import MiniRun, text_shape
from caplens.training.mini.teacher import FILE, Teacher
from caplens.training.mini.text_training import photo_features, sentence_vectors, train_text
from caplens.training.mini.views import Views
from caplens.training.mini.vocabulary import learn_vocabulary
from caplens.training.recipes.pairs import content_hash

_AXES = "sentence_axes.safetensors"
"""The axes of the sentence space in that of USE-multilingual, in the folder of a run."""
LICENCE = "research and education only, not commercial (the terms of its training data: Flickr8k, Multi30k, and photos of COCO)"
WEIGHT = 1.0
"""CLIPScore's w. Cosines of this model reach 0.85; those of CLIP only about 0.4, hence its w of 2.5."""
_PHOTOS_MEASURED = 8000
_CALIBRATION_PHOTOS, _CALIBRATION_CAPTIONS = 256, 2048
"""On which the limits of the rounded activations are measured."""
_BATCH_SIZE = 2048


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
    names = [group.photo for group in groups if group.photo is not None]
    teacher = data / "teacher" / FILE
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
    views = Views(torch.from_numpy(read_photos(data, names, recipe.data.stored)).to(run.device))
    text = _text_tower(run, groups, captions, len(subwords), teacher, views)
    tower = distilled_tower(run, teacher, views)
    epoch = torch.cat([torch.arange(len(names)), torch.arange(_counts(groups)[0]).repeat(recipe.data.repeats - 1)])
    tower = aligned_tower(run, teacher, views, lambda: CaptionTargets(captions, len(names), text, epoch), tower)
    pixels = read_photos(data, _spread(names, _CALIBRATION_PHOTOS), recipe.image.size).transpose(0, 2, 3, 1)
    tower = exported_image(tower.cpu(), np.ascontiguousarray(pixels))
    text = exported_text(text, captions.ids[:: max(1, len(captions.ids) // _CALIBRATION_CAPTIONS)].cpu())
    about = {
        "languages": sorted({lang for group in groups for lang, _ in group.captions}),
        "licence": LICENCE,
        "weight": WEIGHT,
        "photos": _domain(data, names, recipe.image.size).to_dict(),
        "recipe": recipe.to_dict(),
        "seed": seed,
    }
    axes = load_file(folder / _AXES)["axes"] if recipe.sentence.dim else None
    save_model(folder / "model", tower, text, subwords, about, axes)
    return folder / "model"


def _domain(data: Path, names: Sequence[str], size: int) -> PhotoDomain:
    """What photos of the training data are like, so that drawings and noise are told from them."""
    pixels = read_photos(data, _spread(names, _PHOTOS_MEASURED), size).transpose(0, 2, 3, 1)
    parts = []
    for batch in batches(len(pixels), _BATCH_SIZE):
        flat, rough = flatness(pixels[batch])
        parts.append((flat, rough, photo_statistics(pixels[batch], flat, rough)))
    return PhotoDomain.fit(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _spread(names: Sequence[str], count: int) -> Sequence[str]:
    """About `count` names, evenly spaced."""
    return names[:: max(1, len(names) // count)]


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


def _text_tower(
    run: MiniRun, groups: Sequence[Group], captions: TokenizedCaptions, pieces: int, teacher: Path, views: Views
) -> TextTower:
    torch.manual_seed(run.seed)
    tower = TextTower(text_shape(run.recipe, pieces), run.recipe.text.dropout)

    def train() -> Mapping[str, Tensor]:
        network = Teacher(teacher).requires_grad_(False).to(run.device)
        features = photo_features(network, views, run)
        sentences = None
        if run.recipe.sentence.dim:
            sentences, axes = sentence_vectors(groups, run.recipe.sentence.dim, run.device)
            with replacing(run.folder / _AXES) as temporary:
                save_file({"axes": axes.contiguous()}, temporary)
        return train_text(run, tower, captions, _counts(groups), features, sentences)

    run.stage("text", tower, train)
    return tower


def _counts(groups: Sequence[Group]) -> list[int]:
    """How many groups each collection has: Flickr8k, whose photos have names of their own, COCO, and text without photos."""
    numbered = [group.photo is not None and group.photo.isdecimal() for group in groups]
    without = sum(group.photo is None for group in groups)
    return [len(groups) - sum(numbered) - without, sum(numbered), without]
