"""The image and text towers of any trainable model: photos and captions to L2-normalised vectors, with gradients.

A trained model is written as a folder that `load_backbone` and `--model FOLDER` load. A model like caplens-mini has the files of
caplens-mini. All others have the files of their family's layout, and `caplens.json` with the family and the training settings.
"""

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from caplens.backbones.base import Backbone
from caplens.backbones.hf import HuggingFace
from caplens.backbones.hub import MANIFEST
from caplens.backbones.manifest import writing_model
from caplens.backbones.mclip import MCLIP
from caplens.backbones.mini import FILES, SETTINGS, MiniBackbone, mini_folder
from caplens.backbones.openclip import OpenCLIP
from caplens.backbones.registry import TRAINED, is_mini, load_backbone
from caplens.backbones.torch_backbone import TorchBackbone, choose_device
from caplens.backbones.transform import Pixels
from caplens.data.replacing import replacing
from caplens.errors import InputError
from caplens.training.loop.lora import adapt, merge
from caplens.training.loop.process_group import own_device
from caplens.training.mini.captions import padded
from caplens.training.mini.export import load_model, save_image, save_text

PARTS = {
    "all": "both towers",
    "text": "the text tower",
    "projections": "the last projection of each tower, or its attention pooling",
    "lora": "low-rank adapters on all layers of both towers",
}
_SMALL = (".json", ".txt", ".model", ".jinja")
_NOT_COPIED = (".index.json", MANIFEST)
"""What describes weights, which are written anew."""
_RANK = 4
"""Rank of the adapters, as in PAC-S++ (Sarto et al. 2025)."""
_DEFAULT_TEMPERATURE = 0.07
"""For models that do not store the temperature they were trained with."""


class Towers(ABC):
    """The networks of a model to be trained."""

    backbone: Backbone
    """The model before training; it preprocesses photos and tokenises texts."""
    networks: dict[str, nn.Module]
    device: str
    temperature: float
    """The contrastive temperature that the model was trained with."""
    changes_images: bool = False
    """Whether the image tower is trained."""
    changes_texts: bool = False
    """Whether the text tower is trained."""
    image_names: ClassVar[tuple[str, ...]]
    """Prefixes of the image tower's parameter names."""
    projections: ClassVar[tuple[str, ...]]
    """Prefixes of the last layers' parameter names."""

    @abstractmethod
    def forward_images(self, batch: Any) -> Tensor:
        """Vectors, not normalised, of photos that the backbone has stacked."""

    @abstractmethod
    def forward_texts(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Vectors, not normalised, of token ids."""

    @abstractmethod
    def save(self, folder: Path, about: Mapping[str, Any]) -> None:
        """Write the model with its current weights; `about` describes the training."""

    has_trunks: ClassVar[bool] = False
    """Whether each tower can be run without its last layer."""

    def image_trunk(self, batch: Any) -> Tensor:
        """The input of the image tower's last layer."""
        raise NotImplementedError

    def image_head(self, features: Tensor) -> Tensor:
        """The last layer of the image tower."""
        raise NotImplementedError

    def text_trunk(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """The input of the text tower's last layer."""
        raise NotImplementedError

    def text_head(self, features: Tensor) -> Tensor:
        """The last layer of the text tower."""
        raise NotImplementedError

    def encode_images(self, pixels: Sequence[Pixels]) -> Tensor:
        return F.normalize(self.forward_images(self.backbone.stack(pixels)).float(), dim=-1)

    def encode_texts(self, ids: Sequence[Sequence[int]]) -> Tensor:
        return F.normalize(self.forward_texts(ids).float(), dim=-1)

    def tokenize(self, texts: Sequence[str], langs: Sequence[str] | None = None) -> list[list[int]]:
        return [tokens.ids for tokens in self.backbone.tokenize(texts, langs)]

    def parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """All parameters, with names that begin with the network's."""
        for key, network in self.networks.items():
            for name, parameter in network.named_parameters():
                yield f"{key}.{name}", parameter

    def learn(self, parts: str) -> None:
        """Choose what is trained, one of PARTS; the rest is frozen."""
        if parts not in PARTS:
            raise InputError(f"{parts!r} is not a part of a model that can be trained; choose from: {', '.join(PARTS)}.")
        is_trained: Callable[[str], bool] = {
            "all": lambda name: not name.endswith(("logit_scale", "logit_bias")),
            "text": lambda name: not name.startswith(self.image_names) and not name.endswith(("logit_scale", "logit_bias")),
            "projections": lambda name: name.startswith(self.projections),
            "lora": lambda name: False,
        }[parts]
        for name, parameter in self.parameters():
            parameter.requires_grad_(is_trained(name))
        if parts == "lora":
            for network in self.networks.values():
                adapt(network, _RANK)
        in_image_tower = [name.startswith(self.image_names) for name, parameter in self.parameters() if parameter.requires_grad]
        self.changes_images, self.changes_texts = any(in_image_tower), not all(in_image_tower)
        if not self.changes_texts or (parts != "text" and not self.changes_images):
            tower = "image" if self.changes_texts else "text"
            raise InputError(f"{self.backbone.name}: its {tower} tower has nothing to train (train.parts: {PARTS[parts]}).")

    def finish(self) -> None:
        """Merge adapters into the weights."""
        for network in self.networks.values():
            merge(network)

    @property
    def heads_only(self) -> bool:
        """Whether only the last layers are trained, and can be run by themselves."""
        return self.has_trunks and all(
            name.startswith(self.projections) for name, parameter in self.parameters() if parameter.requires_grad
        )


class MiniTowers(Towers):
    """caplens-mini, or a model like it."""

    has_trunks = True
    image_names = ("image.",)
    projections = ("image.project.", "text.project.")

    def __init__(self, name: str, device: str) -> None:
        backbone = load_backbone(name)
        assert isinstance(backbone, MiniBackbone)
        self.backbone, self._subwords, self.device = backbone, backbone.subwords, device
        self.folder = mini_folder(name)
        image, text, _ = load_model(self.folder)
        self.image, self.text = image.to(device), text.to(device)
        self.networks = {"image": self.image, "text": self.text}
        settings = json.loads((self.folder / SETTINGS).read_text(encoding="utf-8"))
        self.temperature = settings.get("recipe", {}).get("captions", {}).get("temperature", _DEFAULT_TEMPERATURE)

    def image_trunk(self, batch: Any) -> Tensor:
        pixels = torch.from_numpy(np.asarray(batch)).to(self.device).permute(0, 3, 1, 2)
        return self.image.maps(pixels.float() / 127.5 - 1)[-1].mean((2, 3))

    def image_head(self, features: Tensor) -> Tensor:
        return self.image.projected(features)

    def forward_images(self, batch: Any) -> Tensor:
        return self.image_head(self.image_trunk(batch))

    def text_trunk(self, ids: Sequence[Sequence[int]]) -> Tensor:
        return self.text.mean(*self._states(ids))

    def text_head(self, features: Tensor) -> Tensor:
        """The last layer, of features that are averaged over tokens; it is linear, so that the order does not matter."""
        return self.text.projected(features)

    def forward_texts(self, ids: Sequence[Sequence[int]]) -> Tensor:
        return self.text_head(self.text_trunk(ids))

    def _states(self, ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Hidden states, and the padded ids that they belong to."""
        rows = padded([list(tokens[:-1]) for tokens in ids], self._subwords, max(map(len, ids)))
        padded_ids = torch.from_numpy(rows).to(self.device)
        return self.text.states(padded_ids), padded_ids

    def save(self, folder: Path, about: Mapping[str, Any]) -> None:
        with writing_model(folder) as target:
            for name in FILES:
                shutil.copyfile(self.folder / name, target / name)
            if self.changes_images:
                save_image(target, self.image)
            if self.changes_texts:
                save_text(target, self.text)
            settings = json.loads((target / SETTINGS).read_text(encoding="utf-8"))
            _write_json(target / SETTINGS, {**settings, "tuned": dict(about)})


class TorchTowers(Towers):
    """A model that runs on PyTorch, with both towers in one network."""

    family: ClassVar[str]

    def __init__(self, backbone: TorchBackbone) -> None:
        self.backbone, self.device = backbone, backbone.device
        self._torch_backbone = backbone
        self.networks = {"model": backbone.loaded.network}
        scale = getattr(backbone.loaded.network, "logit_scale", None)
        self.temperature = float(1 / scale.exp()) if isinstance(scale, Tensor) and scale.numel() == 1 else _DEFAULT_TEMPERATURE

    def forward_images(self, batch: Any) -> Tensor:
        vectors: Tensor = self._torch_backbone.forward_pixels(batch)
        return vectors

    def forward_texts(self, ids: Sequence[Sequence[int]]) -> Tensor:
        vectors: Tensor = self._torch_backbone.text_features(ids)
        return vectors

    def save(self, folder: Path, about: Mapping[str, Any]) -> None:
        with writing_model(folder) as target:
            self.write(target)
            _write_json(target / TRAINED, {"family": self.family, **self.more(target, about), "tuned": dict(about)})

    @abstractmethod
    def write(self, folder: Path) -> None:
        """Write the files of the family's layout."""

    def more(self, folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
        """Further fields of caplens.json."""
        return {}


class HuggingFaceTowers(TorchTowers):
    family = "hf"
    image_names = ("model.vision_model.", "model.visual_projection.")
    projections = ("model.visual_projection.", "model.text_projection.", "model.vision_model.head.", "model.text_model.head.")

    def write(self, folder: Path) -> None:
        assert isinstance(self.backbone, HuggingFace)
        copy_small(self.backbone.folder, folder)
        network: Any = self.networks["model"]
        network.save_pretrained(folder, safe_serialization=True)


class OpenClipTowers(TorchTowers):
    family = "openclip"
    image_names = ("model.visual.",)
    projections = (
        "model.visual.proj", "model.visual.attnpool.", "model.visual.attn_pool.", "model.visual.head.",
        "model.text_projection", "model.text.text_projection", "model.text.proj",
    )  # fmt: skip

    def write(self, folder: Path) -> None:
        assert isinstance(self.backbone, OpenCLIP)
        if self.backbone.folder is not None:
            copy_small(self.backbone.folder, folder)
        _write_json(folder / "open_clip_config.json", self.backbone.settings())
        write_weights(folder / "open_clip_model.safetensors", self.networks["model"].state_dict())


class MclipTowers(TorchTowers):
    """A text tower, and the complete model that its image tower belongs to."""

    family = "mclip"
    image_names = ("image.",)
    projections = (
        "model.linear.",
        *(name.replace("model.", "image.", 1) for name in HuggingFaceTowers.projections + OpenClipTowers.projections),
    )

    def __init__(self, backbone: MCLIP) -> None:
        super().__init__(backbone)
        self._image_towers = _torch_towers(backbone.image) if isinstance(backbone.image, TorchBackbone) else None
        if self._image_towers is not None:
            self.networks["image"] = self._image_towers.networks["model"]
            self.temperature = self._image_towers.temperature

    def write(self, folder: Path) -> None:
        assert isinstance(self.backbone, MCLIP)
        copy_small(self.backbone.folder, folder)
        prefixes = {"transformer.": "transformer.", "linear.": "LinearTransformation."}
        weights = {
            new + key.removeprefix(old): value
            for key, value in self.networks["model"].state_dict().items()
            for old, new in prefixes.items()
            if key.startswith(old)
        }
        write_weights(folder / "model.safetensors", weights)

    def more(self, folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
        assert isinstance(self.backbone, MCLIP)
        if not self.changes_images or self._image_towers is None:
            return {"image": self.backbone.image.name}
        self._image_towers.save(folder / "image", about)
        return {"image": "image"}


def open_towers(name: str, device: str = "auto") -> Towers:
    """Load the towers of a model by its name, for training."""
    device = own_device(device)
    if is_mini(name):
        return MiniTowers(name, choose_device(device, torch))
    return _torch_towers(load_backbone(name, device=device))


def _torch_towers(backbone: Backbone) -> TorchTowers:
    for backbone_class, towers in ((MCLIP, MclipTowers), (OpenCLIP, OpenClipTowers), (HuggingFace, HuggingFaceTowers)):
        if isinstance(backbone, backbone_class):
            return towers(backbone)  # type: ignore[arg-type]
    raise InputError(
        f"{backbone.name}: only caplens-mini, models that caplens trained, and hf:, openclip: and mclip: models can be trained."
    )


def copy_small(source: Path, folder: Path) -> None:
    """Copy the files of a model's folder other than its weights: settings, vocabulary and tokenizer."""
    # The hub's cache links to files of its own; a link that leads elsewhere is not part of the model.
    root = source.resolve().parents[1] if source.resolve().parent.name == "snapshots" else source.resolve()
    for path in source.rglob("*"):
        own = path.resolve().is_relative_to(root)
        if own and path.suffix in _SMALL and path.is_file() and not path.name.endswith(_NOT_COPIED):
            target = folder / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def write_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write weights as safetensors."""
    with replacing(path) as temporary:
        save_file(
            {name: value.detach().cpu().clone().contiguous() for name, value in weights.items()}, temporary, {"format": "pt"}
        )


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
