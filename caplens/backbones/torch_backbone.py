"""The base of the families that run on PyTorch: device, number format, batches, and safe reading of weights."""

import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import Image

from caplens.arrays import Vectors
from caplens.backbones.base import Backbone, Tokens, normalized
from caplens.backbones.hub import ensure_unchanged
from caplens.backbones.load_options import DTYPES, LoadOptions
from caplens.backbones.transform import ImageTransform, Pixels
from caplens.errors import CaplensError, InputError, option
from caplens.libraries import require
from caplens.progress import logger

_WIDTH_STEP = 8
"""On a GPU, batches of texts are padded to a multiple of this."""


@dataclass
class LoadedModel:
    """A model in memory. `network` is a torch module, which training changes."""

    network: Any
    tokenizer: Any
    dim: int
    max_tokens: int
    transform: ImageTransform | None
    """None if another model encodes the images."""


class TorchBackbone(Backbone):
    """A model that runs on PyTorch. Families implement loading, tokenizing and both towers."""

    def __init__(self, name: str, fingerprint: str, options: LoadOptions) -> None:
        self.name, self.fingerprint, self.options = name, fingerprint, options
        self.dtype = options.dtype

    @abstractmethod
    def load(self) -> LoadedModel:
        """The model with its weights, on the CPU in fp32."""

    @abstractmethod
    def image_features(self, pixels: Any, raw: Any) -> Any:
        """Run the image tower on normalized pixels (n, 3, height, width). `raw` is the batch that `stack` returned."""

    @abstractmethod
    def text_features(self, ids: Sequence[Sequence[int]]) -> Any:
        """Run the text tower on token ids."""

    @abstractmethod
    def read(self, texts: Sequence[str]) -> list[Tokens]:
        """The token ids of texts of one language."""

    @cached_property
    def torch(self) -> Any:
        return require("torch", f"The model {self.name}", "hf")

    @cached_property
    def device(self) -> str:  # type: ignore[override]
        return choose_device(self.options.device, self.torch)

    @cached_property
    def loaded(self) -> LoadedModel:
        logger.info(f"{self.name}: loading on {self.device} in {self.dtype}")
        loaded = self.load()
        ensure_unchanged(self.fingerprint)
        loaded.network.to(device=self.device, dtype=getattr(self.torch, DTYPES[self.dtype])).eval().requires_grad_(False)
        if loaded.transform is not None:
            self._shift, self._scale = (
                self.torch.tensor(values, device=self.device).view(1, 3, 1, 1) * 255
                for values in (loaded.transform.mean, loaded.transform.std)
            )
        return loaded

    @property
    def transform(self) -> ImageTransform | None:
        return self.loaded.transform

    @property
    def dim(self) -> int:
        return self.loaded.dim

    @property
    def max_tokens(self) -> int:
        return self.loaded.max_tokens

    def pixels(self, image: Image) -> Pixels:
        assert self.loaded.transform is not None
        return self.loaded.transform(image)

    def tokenize(self, texts: Sequence[str], langs: Sequence[str] | None = None) -> list[Tokens]:
        _ = self.loaded
        return self.read(texts)

    def encode_pixels(self, batch: Any) -> Vectors:
        return self._run(self.forward_pixels, batch)

    def forward_pixels(self, batch: Any) -> Any:
        """Run the image tower on stacked images, with gradients if its weights require them."""
        return self.image_features(self._normalize(batch), batch)

    def encode_ids(self, batch: Sequence[Sequence[int]]) -> Vectors:
        return self._run(self.text_features, batch)

    def _run(self, forward: Callable[[Any], Any], batch: Any) -> Vectors:
        """Run a forward pass without gradients; a batch that does not fit in the device's memory is halved."""
        _ = self.loaded
        try:
            with self.torch.inference_mode():
                return normalized(forward(batch).float().cpu().numpy())
        except self.torch.OutOfMemoryError:
            if len(batch) == 1:
                raise CaplensError(
                    f"{self.name} does not fit in the memory of {self.device}."
                    f" Try {option('dtype', 'bf16')}, or {option('device', 'cpu')}."
                ) from None
        self.torch.cuda.empty_cache()
        middle = len(batch) // 2
        return np.concatenate([self._run(forward, batch[:middle]), self._run(forward, batch[middle:])])

    def token_vectors(self, ids: Sequence[Sequence[int]], forward: Callable[[], Any]) -> list[Vectors]:
        """The vectors of each text's tokens, without those of the padding."""
        with self.torch.inference_mode():
            states = forward().float().cpu().numpy()
        return [normalized(text_states[: len(text_ids)]) for text_states, text_ids in zip(states, ids, strict=True)]

    def _normalize(self, batch: Any) -> Any:
        """Bytes (n, height, width, 3) as normalized numbers (n, 3, height, width) in the model's number format."""
        pixels = self._on_device(batch).permute(0, 3, 1, 2)
        normal = (pixels.float() - self._shift) / self._scale
        return normal.to(getattr(self.torch, DTYPES[self.dtype]))

    def _on_device(self, array: Any) -> Any:
        tensor = array if isinstance(array, self.torch.Tensor) else self.torch.from_numpy(np.ascontiguousarray(array))
        return tensor.to(self.device, non_blocking=True)

    def stack(self, images: Sequence[Pixels]) -> Any:
        """The images as one array of bytes; pinned, so that a GPU can copy it while it computes."""
        if self.device == "cpu":
            return np.stack(images)
        block = self.torch.empty(
            (len(images), *images[0].shape), dtype=self.torch.uint8, pin_memory=self.device.startswith("cuda")
        )
        np.stack(images, out=block.numpy())
        return block

    def padded(self, ids: Sequence[Sequence[int]], pad: int, length: int | None = None, side: str = "right") -> tuple[Any, Any]:
        """The token ids padded to a rectangle, and the mask that is 1 where they are not padding.

        On a GPU there are few different widths, because it plans its work again for each new one.
        """
        lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
        width = length or int(lengths.max())
        if length is None and self.device != "cpu":
            width = min(-(-width // _WIDTH_STEP) * _WIDTH_STEP, self.max_tokens)
        columns = np.arange(width)
        filled = columns < lengths[:, None] if side == "right" else columns >= width - lengths[:, None]
        padded = np.full((len(ids), width), pad, dtype=np.int64)
        padded[filled] = np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=int(lengths.sum()))
        return self._on_device(padded), self._on_device(filled.astype(np.int64))


class PairedTextBackbone(TorchBackbone):
    """A text tower that was distilled into the space of another model, which encodes the images."""

    def __init__(self, name: str, fingerprint: str, image: Backbone, options: LoadOptions) -> None:
        super().__init__(name, fingerprint, options)
        self.image = image

    def check_dimensions(self, dim: int) -> None:
        """Raise an error unless vectors of texts and images have the same dimensions."""
        if self.image.dim != dim:
            raise InputError(
                f"{self.name}: the text tower has {dim} dimensions and the image tower {self.image.name} has {self.image.dim}."
                " Add the image model that it was trained with to the name: ,image=MODEL."
            )

    @property
    def transform(self) -> ImageTransform | None:
        return self.image.transform

    def pixels(self, image: Image) -> Pixels:
        return self.image.pixels(image)

    def stack(self, images: Sequence[Pixels]) -> Any:
        return self.image.stack(images)

    def encode_pixels(self, batch: Any) -> Vectors:
        return self.image.encode_pixels(batch)

    def forward_pixels(self, batch: Any) -> Any:
        assert isinstance(self.image, TorchBackbone)
        return self.image.forward_pixels(batch)

    def image_features(self, pixels: Any, raw: Any) -> Any:
        raise NotImplementedError


def choose_device(device: str, torch: Any) -> str:
    """Resolve `auto` to the first GPU or the CPU, and check that any other device can be used."""
    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    if device.partition(":")[0] == "cuda" and not torch.cuda.is_available():
        raise InputError(f"PyTorch finds no CUDA GPU on this machine. Use {option('device', 'cpu')}.")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"the device {device!r} cannot be used ({str(error).splitlines()[0]}).") from None
    return device


def read_weights(path: Path) -> dict[str, Any]:
    """The tensors of a file by name. Reads safetensors, and PyTorch's format without running code."""
    torch = require("torch", "Reading weights", "torch")
    try:
        if path.suffix == ".safetensors":
            tensors: dict[str, Any] = require("safetensors.torch", "Reading weights", "torch").load_file(path)
            return tensors
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such weights file.") from None
    except Exception as error:
        # Depending on the damage, PyTorch raises RuntimeError, EOFError, KeyError, UnpicklingError and others.
        kind = type(error).__name__
        raise InputError(f"{path}: these weights are damaged, or hold more than weights ({kind}). Get the file again.") from None
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if not isinstance(content, Mapping) or not any(isinstance(value, torch.Tensor) for value in content.values()):
        raise InputError(f"{path}: there are no weights in this file.")
    tensors = {key: value for key, value in content.items() if isinstance(value, torch.Tensor)}
    return renamed_once({key: str(key).removeprefix("module.") for key in tensors}, tensors, path)


def renamed_once(names: Mapping[Any, str], tensors: Mapping[Any, Any], path: Path) -> dict[str, Any]:
    """The tensors under other names; an error if two would have one name."""
    renamed = {name: tensors[key] for key, name in names.items()}
    if len(renamed) < len(names):
        twice = next(name for name, count in Counter(names.values()).items() if count > 1)
        raise InputError(f"{path}: the weight {twice!r} is there twice, under two names. The file is damaged.")
    return renamed
