"""What the families that run on PyTorch share: the device, the number format, batches, and reading weights safely."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import Image

from caplens.arrays import Vectors
from caplens.backbones.base import Backbone, Tokens, normalized
from caplens.backbones.load_options import DTYPES, LoadOptions
from caplens.backbones.transform import ImageTransform, Pixels
from caplens.errors import CaplensError, InputError
from caplens.libraries import require
from caplens.progress import logger

_WIDTHS = 8


@dataclass
class LoadedModel:
    """A model in memory. `network` is a torch module, for those who train it."""

    network: Any
    tokenizer: Any
    dim: int
    max_tokens: int
    transform: ImageTransform | None
    """None where images go to another model."""


class TorchBackbone(Backbone):
    """A model that runs on PyTorch. Families say how to load it, read texts and run both towers."""

    def __init__(self, name: str, fingerprint: str, options: LoadOptions) -> None:
        self.name, self.fingerprint, self.options = name, fingerprint, options
        self.dtype = options.dtype

    @abstractmethod
    def load(self) -> LoadedModel: ...

    @abstractmethod
    def image_features(self, pixels: Any, raw: Any) -> Any:
        """The image tower on normalised pixels (n, 3, height, width); `raw` is the batch as it was stacked."""

    @abstractmethod
    def text_features(self, ids: Sequence[Sequence[int]]) -> Any:
        """The text tower."""

    @abstractmethod
    def read(self, texts: Sequence[str]) -> list[Tokens]:
        """Texts of one language as numbers."""

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
        """The image tower on stacked images; with gradients, where its weights want them."""
        return self.image_features(self._normalised(batch), batch)

    def encode_ids(self, batch: Sequence[Sequence[int]]) -> Vectors:
        return self._run(self.text_features, batch)

    def _run(self, forward: Callable[[Any], Any], batch: Any) -> Vectors:
        """A forward pass without gradients; a batch that does not fit in the device's memory is halved."""
        _ = self.loaded
        try:
            with self.torch.inference_mode():
                return normalized(forward(batch).float().cpu().numpy())
        except self.torch.OutOfMemoryError:
            if len(batch) == 1:
                raise CaplensError(
                    f"{self.name} does not fit in the memory of {self.device}. Try --dtype bf16, or --device cpu."
                ) from None
        self.torch.cuda.empty_cache()
        middle = len(batch) // 2
        return np.concatenate([self._run(forward, batch[:middle]), self._run(forward, batch[middle:])])

    def token_vectors(self, ids: Sequence[Sequence[int]], forward: Callable[[], Any]) -> list[Vectors]:
        """The vectors of each text's tokens, without those of the padding behind them."""
        with self.torch.inference_mode():
            states = forward().float().cpu().numpy()
        return [normalized(row[: len(numbers)]) for row, numbers in zip(states, ids, strict=True)]

    def _normalised(self, batch: Any) -> Any:
        """Bytes (n, height, width, 3) as normalised numbers in the model's format."""
        pixels = self._on_device(batch).permute(0, 3, 1, 2)
        made = (pixels.float() - self._shift) / self._scale
        return made.to(getattr(self.torch, DTYPES[self.dtype]))

    def _on_device(self, array: Any) -> Any:
        tensor = array if isinstance(array, self.torch.Tensor) else self.torch.from_numpy(np.ascontiguousarray(array))
        return tensor.to(self.device, non_blocking=True)

    def stack(self, images: Sequence[Pixels]) -> Any:
        """One block of bytes; pinned, so that a GPU can fetch it while it computes."""
        if self.device == "cpu":
            return np.stack(images)
        block = self.torch.empty(
            (len(images), *images[0].shape), dtype=self.torch.uint8, pin_memory=self.device.startswith("cuda")
        )
        np.stack(images, out=block.numpy())
        return block

    def padded(self, ids: Sequence[Sequence[int]], pad: int, length: int | None = None, side: str = "right") -> tuple[Any, Any]:
        """Token numbers in a rectangle, and which of them are no padding.

        A GPU gets few different widths, because it plans its work anew for each.
        """
        width = length or max(map(len, ids))
        if length is None and self.device != "cpu":
            width = min(-(-width // _WIDTHS) * _WIDTHS, self.max_tokens)
        filled = np.full((len(ids), width), pad, dtype=np.int64)
        mask = np.zeros((len(ids), width), dtype=np.int64)
        for row, numbers in enumerate(ids):
            place = slice(len(numbers)) if side == "right" else slice(width - len(numbers), width)
            filled[row, place], mask[row, place] = numbers, 1
        return self._on_device(filled), self._on_device(mask)


class PairedTextBackbone(TorchBackbone):
    """A text tower that was taught to speak to the image tower of another model."""

    def __init__(self, name: str, fingerprint: str, image: Backbone, options: LoadOptions) -> None:
        super().__init__(name, fingerprint, options)
        self.image = image

    def check_dimensions(self, dim: int) -> None:
        if self.image.dim != dim:
            raise InputError(
                f"{self.name}: the text tower has {dim} dimensions and the image tower {self.image.name} has {self.image.dim}."
                " Name the tower that it was taught by with ,image=MODEL."
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


def choose_device(wanted: str, torch: Any) -> str:
    """`auto` is the first GPU if there is one."""
    if wanted == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    kind = wanted.partition(":")[0]
    if kind == "cuda" and not torch.cuda.is_available():
        raise InputError("PyTorch finds no CUDA GPU on this machine. Use --device cpu.")
    try:
        torch.empty(1, device=wanted)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"the device {wanted!r} cannot be used ({str(error).splitlines()[0]}).") from None
    return wanted


def read_weights(path: Path) -> dict[str, Any]:
    """Tensors by name. Safetensors, or PyTorch's format with everything but tensors refused."""
    torch = require("torch", "Reading weights", "torch")
    try:
        if path.suffix == ".safetensors":
            tensors: dict[str, Any] = require("safetensors.torch", "Reading weights", "torch").load_file(path)
            return tensors
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file of weights.") from None
    except Exception as error:
        # Depending on the damage, PyTorch raises RuntimeError, EOFError, KeyError, UnpicklingError and others.
        kind = type(error).__name__
        raise InputError(f"{path}: these weights are damaged, or hold more than weights ({kind}). Get the file again.") from None
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]
    if not isinstance(found, Mapping) or not any(isinstance(value, torch.Tensor) for value in found.values()):
        raise InputError(f"{path}: there are no weights in this file.")
    return {str(key).removeprefix("module."): value for key, value in found.items() if isinstance(value, torch.Tensor)}
