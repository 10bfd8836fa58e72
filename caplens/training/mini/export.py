"""Writing both towers as small ONNX files, and reading their weights back to train further.

The text tower is stored in 8 bits, with a scale for every row of a weight; the image tower in 16, because its many layers add up
small errors. Only storage is: onnxruntime makes plain numbers of them once, when it loads the file. The names inside are those of
the networks' own parameters.
"""

import json
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from caplens.backbones.mini import IMAGE, SETTINGS, TEXT, VOCABULARY
from caplens.data.files import replacing
from caplens.errors import InputError
from caplens.libraries import require
from caplens.text.subwords import Subwords
from caplens.training.mini.networks import ImageShape, ImageTower, TextShape, TextTower

_OPSET = 17
_WHOLE, _SCALE, _HALF = ".int8", ".scale", ".half"
_SMALLEST = 1024
"""Weights with fewer numbers are kept as they are."""


class _ImageGraph(nn.Module):
    """Bytes (n, height, width, 3) to vectors, so that nothing is left to do outside."""

    def __init__(self, tower: ImageTower) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, pixels: Tensor) -> Tensor:
        vectors: Tensor = self.tower(pixels.permute(0, 3, 1, 2).to(torch.float32) / 127.5 - 1)
        return vectors


class _TextGraph(nn.Module):
    """Numbers of pieces to the vector of each text, and of each piece."""

    def __init__(self, tower: TextTower) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        tokens = self.tower.tokens(ids)
        return self.tower.pooled(tokens, ids), tokens


def save_model(folder: Path, image: ImageTower, text: TextTower, subwords: Subwords, about: Mapping[str, Any]) -> None:
    """Write a model that caplens can use by the name of its folder. `about` is what its settings say beyond the shapes."""
    folder.mkdir(parents=True, exist_ok=True)
    save_image(folder, image)
    save_text(folder, text)
    subwords.save(folder / VOCABULARY)
    settings = {
        **about,
        "image": {**vars(image.shape), "stages": [list(stage) for stage in image.shape.stages]},
        "text": vars(text.shape),
    }
    with replacing(folder / SETTINGS) as temporary:
        temporary.write_text(json.dumps(settings, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def save_image(folder: Path, image: ImageTower) -> None:
    image = image.fold()
    size = image.shape.size
    pixels = torch.zeros(2, size, size, 3, dtype=torch.uint8)
    content = _onnx(_ImageGraph(image), pixels, {"pixels": {0: "n"}}, ["vectors"], bits=16)
    with replacing(folder / IMAGE) as temporary:
        temporary.write_bytes(content)


def save_text(folder: Path, text: TextTower) -> None:
    ids = torch.tensor([[300, 301, Subwords.end], [300, Subwords.end, Subwords.padding]])
    content = _onnx(_TextGraph(text.cpu().eval()), ids, {"ids": {0: "n", 1: "length"}}, ["vectors", "tokens"], bits=8)
    with replacing(folder / TEXT) as temporary:
        temporary.write_bytes(content)


def _onnx(network: nn.Module, example: Tensor, axes: dict[str, dict[int, str]], outputs: Sequence[str], bits: int) -> bytes:
    onnx = require("onnx", "Writing a model", "train")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), torch.no_grad():
        written = str(Path(folder) / "tower.onnx")
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(),
            (example,),
            written,
            input_names=list(axes),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=_OPSET,
            # Folding would rename the weights.
            do_constant_folding=False,
            dynamo=False,
        )
        model = onnx.load_model(written)
    _pack(model.graph, onnx, bits)
    onnx.checker.check_model(model)
    made: bytes = model.SerializeToString()
    return made


def _pack(graph: Any, onnx: Any, bits: int) -> None:
    """Put a smaller form of every large weight, and how it becomes the weight, in its place."""
    helper, arrays = onnx.helper, onnx.numpy_helper
    made = []
    for stored in list(graph.initializer):
        weight, name = arrays.to_array(stored), stored.name
        if weight.ndim < 2 or weight.size < _SMALLEST or weight.dtype != np.float32:
            continue
        graph.initializer.remove(stored)
        if bits == 16:
            graph.initializer.append(arrays.from_array(weight.astype(np.float16), name + _HALF))
            made.append(helper.make_node("Cast", [name + _HALF], [name], to=onnx.TensorProto.FLOAT))
            continue
        whole, scale = _rounded(weight)
        graph.initializer.extend([arrays.from_array(whole, name + _WHOLE), arrays.from_array(scale, name + _SCALE)])
        made.append(helper.make_node("Cast", [name + _WHOLE], [f"{name}.plain"], to=onnx.TensorProto.FLOAT))
        made.append(helper.make_node("Mul", [f"{name}.plain", name + _SCALE], [name]))
    for node in reversed(made):
        graph.node.insert(0, node)


def _rounded(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Each row as whole numbers from -127 to 127, and what they are to be multiplied with."""
    rows = weight.reshape(len(weight), -1)
    scale = np.maximum(np.abs(rows).max(1), np.finfo(np.float32).tiny) / 127
    shape = (-1, *[1] * (weight.ndim - 1))
    scale = scale.reshape(shape).astype(np.float32)
    return np.round(weight / scale).astype(np.int8), scale


def load_model(folder: Path) -> tuple[ImageTower, TextTower, Subwords]:
    """The towers of a written model, with the weights that were written, to be trained further."""
    try:
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        image = ImageTower(ImageShape(**settings["image"]), folded=True)
        text = TextTower(TextShape(**settings["text"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / SETTINGS}: this does not describe a model of caplens ({error}).") from None
    for network, name in ((image, IMAGE), (text, TEXT)):
        network.load_state_dict(_weights(folder / name))
    return image, text, Subwords.load(folder / VOCABULARY)


def _weights(path: Path) -> dict[str, Tensor]:
    onnx = require("onnx", "Reading a model's weights", "train")
    arrays = {stored.name: onnx.numpy_helper.to_array(stored) for stored in onnx.load_model(path).graph.initializer}
    plain = {name: value for name, value in arrays.items() if not name.endswith((_WHOLE, _SCALE, _HALF))}
    plain |= {name.removesuffix(_HALF): value.astype(np.float32) for name, value in arrays.items() if name.endswith(_HALF)}
    wholes = {name.removesuffix(_WHOLE): value for name, value in arrays.items() if name.endswith(_WHOLE)}
    plain |= {name: value * arrays[name + _SCALE] for name, value in wholes.items()}
    return {
        name.removeprefix("tower."): torch.from_numpy(np.array(value))
        for name, value in plain.items()
        if name.startswith("tower.")
    }
