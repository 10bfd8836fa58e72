"""Two towers in training, whatever model they belong to: photos and captions to vectors of length one, with gradients.

A trained model is a folder that `--model FOLDER` loads. One like caplens-mini has files like its own; all others have those of
their family's layout, and `caplens.json`, which says whose they are and how they were trained.
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
from caplens.backbones.mclip import MCLIP
from caplens.backbones.mini import SETTINGS, MiniBackbone, mini_folder
from caplens.backbones.openclip import OpenCLIP
from caplens.backbones.registry import TRAINED, is_mini, load_backbone
from caplens.backbones.torch_backbone import TorchBackbone, choose_device
from caplens.backbones.transform import Pixels
from caplens.data.files import replacing
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
_RANK = 4
"""Of the adapters, as in PAC-S++ (Sarto et al. 2025)."""
_USUAL = 0.07
"""A temperature, where a model does not say which it was trained with."""


class Towers(ABC):
    """`backbone` is the model as it was before; it opens photos and reads texts."""

    backbone: Backbone
    networks: dict[str, nn.Module]
    device: str
    temperature: float
    """That the model was trained with."""
    changes_images: bool = False
    """Whether the image tower is trained."""
    changes_texts: bool = False
    image_names: ClassVar[tuple[str, ...]]
    """How the names of the image tower's parameters begin."""
    projections: ClassVar[tuple[str, ...]]
    """How the names of the last layers' parameters begin."""

    @abstractmethod
    def forward_images(self, batch: Any) -> Tensor:
        """Vectors of any length of photos that the backbone has stacked."""

    @abstractmethod
    def forward_texts(self, ids: Sequence[Sequence[int]]) -> Tensor: ...

    @abstractmethod
    def save(self, folder: Path, about: Mapping[str, Any]) -> None:
        """Write the model as it is now; `about` says how it was trained."""

    has_trunks: ClassVar[bool] = False
    """Whether what comes before the last layer of each tower can be had by itself."""

    def image_trunk(self, batch: Any) -> Tensor:
        """What the last layer of the image tower gets."""
        raise NotImplementedError

    def image_head(self, features: Tensor) -> Tensor:
        """The last layer of the image tower."""
        raise NotImplementedError

    def text_trunk(self, ids: Sequence[Sequence[int]]) -> Tensor:
        raise NotImplementedError

    def text_head(self, features: Tensor) -> Tensor:
        raise NotImplementedError

    def encode_images(self, pixels: Sequence[Pixels]) -> Tensor:
        return F.normalize(self.forward_images(self.backbone.stack(pixels)).float(), dim=-1)

    def encode_texts(self, ids: Sequence[Sequence[int]]) -> Tensor:
        return F.normalize(self.forward_texts(ids).float(), dim=-1)

    def tokenize(self, texts: Sequence[str], langs: Sequence[str] | None = None) -> list[list[int]]:
        return [tokens.ids for tokens in self.backbone.tokenize(texts, langs)]

    def parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        for key, network in self.networks.items():
            for name, parameter in network.named_parameters():
                yield f"{key}.{name}", parameter

    def learn(self, parts: str) -> None:
        """Choose what is trained, one of PARTS; all else is frozen."""
        if parts not in PARTS:
            raise InputError(f"{parts!r} is no part of a model that can be trained; choose from: {', '.join(PARTS)}.")
        wanted: Callable[[str], bool] = {
            "all": lambda name: not name.endswith(("logit_scale", "logit_bias")),
            "text": lambda name: not name.startswith(self.image_names) and not name.endswith(("logit_scale", "logit_bias")),
            "projections": lambda name: name.startswith(self.projections),
            "lora": lambda name: False,
        }[parts]
        for name, parameter in self.parameters():
            parameter.requires_grad_(wanted(name))
        if parts == "lora":
            for network in self.networks.values():
                adapt(network, _RANK)
        learning = [name.startswith(self.image_names) for name, parameter in self.parameters() if parameter.requires_grad]
        self.changes_images, self.changes_texts = any(learning), not all(learning)
        if not self.changes_texts or (parts != "text" and not self.changes_images):
            tower = "image" if self.changes_texts else "text"
            raise InputError(f"{self.backbone.name}: its {tower} tower has nothing of what is to be trained ({PARTS[parts]}).")

    def finish(self) -> None:
        """Make adapters part of the weights that they adapt."""
        for network in self.networks.values():
            merge(network)

    @property
    def heads_only(self) -> bool:
        """Whether nothing learns but last layers that can be had by themselves."""
        return self.has_trunks and all(
            name.startswith(self.projections) for name, parameter in self.parameters() if parameter.requires_grad
        )


class MiniTowers(Towers):
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
        self.temperature = settings.get("recipe", {}).get("captions", {}).get("temperature", _USUAL)

    def image_trunk(self, batch: Any) -> Tensor:
        pixels = torch.from_numpy(np.asarray(batch)).to(self.device).permute(0, 3, 1, 2)
        return self.image.maps(pixels.float() / 127.5 - 1)[-1].mean((2, 3))

    def image_head(self, features: Tensor) -> Tensor:
        made: Tensor = self.image.project(features)
        return made

    def forward_images(self, batch: Any) -> Tensor:
        return self.image_head(self.image_trunk(batch))

    def text_trunk(self, ids: Sequence[Sequence[int]]) -> Tensor:
        return self.text.pooled(*self._states(ids))

    def text_head(self, features: Tensor) -> Tensor:
        """The mean over pieces may come before the last layer, which is linear."""
        made: Tensor = self.text.project(features)
        return made

    def forward_texts(self, ids: Sequence[Sequence[int]]) -> Tensor:
        states, rows = self._states(ids)
        return self.text.pooled(self.text.project(states), rows)

    def _states(self, ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        rows = padded([list(numbers[:-1]) for numbers in ids], self._subwords, max(map(len, ids)))
        numbers = torch.from_numpy(rows).to(self.device)
        return self.text.states(numbers), numbers

    def save(self, folder: Path, about: Mapping[str, Any]) -> None:
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        if self.changes_images:
            save_image(folder, self.image)
        if self.changes_texts:
            save_text(folder, self.text)
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        _write_json(folder / SETTINGS, {**settings, "tuned": dict(about)})


class TorchTowers(Towers):
    """A model that runs on PyTorch, with both towers in one network."""

    family: ClassVar[str]

    def __init__(self, backbone: TorchBackbone) -> None:
        self.backbone, self.device = backbone, backbone.device
        self._torch_backbone = backbone
        self.networks = {"model": backbone.loaded.network}
        scale = getattr(backbone.loaded.network, "logit_scale", None)
        self.temperature = float(1 / scale.exp()) if isinstance(scale, Tensor) and scale.numel() == 1 else _USUAL

    def forward_images(self, batch: Any) -> Tensor:
        made: Tensor = self._torch_backbone.forward_pixels(batch)
        return made

    def forward_texts(self, ids: Sequence[Sequence[int]]) -> Tensor:
        made: Tensor = self._torch_backbone.text_features(ids)
        return made

    def save(self, folder: Path, about: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.write(folder)
        _write_json(folder / TRAINED, {"family": self.family, **self.more(folder, about), "tuned": dict(about)})

    @abstractmethod
    def write(self, folder: Path) -> None:
        """The files of the family's layout."""

    def more(self, folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
        """What else caplens.json says."""
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
    """A text tower, and the whole of the model that sees the images."""

    family = "mclip"
    image_names = ("image.",)
    projections = (
        "model.linear.",
        *(name.replace("model.", "image.", 1) for name in HuggingFaceTowers.projections + OpenClipTowers.projections),
    )

    def __init__(self, backbone: MCLIP) -> None:
        super().__init__(backbone)
        self._sees = _of_network(backbone.image) if isinstance(backbone.image, TorchBackbone) else None
        if self._sees is not None:
            self.networks["image"] = self._sees.networks["model"]
            self.temperature = self._sees.temperature

    def write(self, folder: Path) -> None:
        assert isinstance(self.backbone, MCLIP)
        copy_small(self.backbone.folder, folder)
        names = {"transformer.": "transformer.", "linear.": "LinearTransformation."}
        weights = {
            new + key.removeprefix(old): value
            for key, value in self.networks["model"].state_dict().items()
            for old, new in names.items()
            if key.startswith(old)
        }
        write_weights(folder / "model.safetensors", weights)

    def more(self, folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
        assert isinstance(self.backbone, MCLIP)
        if not self.changes_images or self._sees is None:
            return {"image": self.backbone.image.name}
        self._sees.save(folder / "image", about)
        return {"image": "image"}


def open_towers(name: str, device: str = "auto") -> Towers:
    """The towers of the model of this name, to be trained."""
    device = own_device(device)
    if is_mini(name):
        return MiniTowers(name, choose_device(device, torch))
    return _of_network(load_backbone(name, device=device))


def _of_network(backbone: Backbone) -> TorchTowers:
    for kind, towers in ((MCLIP, MclipTowers), (OpenCLIP, OpenClipTowers), (HuggingFace, HuggingFaceTowers)):
        if isinstance(backbone, kind):
            return towers(backbone)  # type: ignore[arg-type]
    raise InputError(
        f"{backbone.name}: only caplens-mini, models that caplens trained, and hf:, openclip: and mclip: models can be trained."
    )


def copy_small(source: Path, folder: Path) -> None:
    """What a model's folder holds beside its weights."""
    for path in source.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".txt", ".model", ".jinja") and not path.name.endswith(".index.json"):
            place = folder / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def write_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    with replacing(path) as temporary:
        save_file(
            {name: value.detach().cpu().clone().contiguous() for name, value in weights.items()}, temporary, {"format": "pt"}
        )


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
