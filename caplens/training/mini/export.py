"""Writing both towers as small ONNX files, and reading their weights back for further training.

The text tower is stored in 8 bits, with one scale per row of a weight; the image tower in 16 bits, because rounding errors add up
over its many layers. Only the storage is quantised: onnxruntime converts the weights to float32 once, when it loads the file. The
weights in the file have the names of the networks' parameters.
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

from caplens.backbones.manifest import writing_model
from caplens.backbones.mini import IMAGE, SETTINGS, TEXT, VOCABULARY
from caplens.data.replacing import replacing
from caplens.errors import InputError
from caplens.libraries import require
from caplens.text.subwords import Subwords
from caplens.training.mini.networks import ImageShape, ImageTower, TextShape, TextTower, joined

_OPSET = 17
_INT8, _SCALE, _HALF = ".int8", ".scale", ".half"
"""Suffixes of the names of quantised weights."""
_MIN_SIZE = 1024
"""Weights with fewer elements stay in float32."""


class _ImageGraph(nn.Module):
    """Bytes (n, height, width, 3) to vectors: the graph includes the preprocessing."""

    def __init__(self, tower: ImageTower) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, pixels: Tensor) -> Tensor:
        vectors: Tensor = self.tower(pixels.permute(0, 3, 1, 2).to(torch.float32) / 127.5 - 1)
        return vectors


class _TextGraph(nn.Module):
    """Token ids to the vector of each text, and of each token."""

    def __init__(self, tower: TextTower) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        tokens, spaces = self.tower.tokens(ids), self.tower.shape.spaces
        return joined(self.tower.mean(tokens, ids), spaces), joined(tokens, spaces)


def save_model(folder: Path, image: ImageTower, text: TextTower, subwords: Subwords, about: Mapping[str, Any]) -> None:
    """Write a model to a folder that `load_backbone` loads. `about` is added to its settings, beside the towers' shapes."""
    settings = {
        **about,
        "image": vars(image.shape),
        "text": vars(text.shape),
    }
    with writing_model(folder) as target:
        save_image(target, image)
        save_text(target, text)
        subwords.save(target / VOCABULARY)
        (target / SETTINGS).write_text(json.dumps(settings, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def save_image(folder: Path, image: ImageTower) -> None:
    """Write the image tower, with batch norm folded in, in 16 bits."""
    image = image.fold()
    size = image.shape.size
    pixels = torch.zeros(2, size, size, 3, dtype=torch.uint8)
    content = _onnx(_ImageGraph(image), pixels, {"pixels": {0: "n"}}, ["vectors"], bits=16)
    with replacing(folder / IMAGE) as temporary:
        temporary.write_bytes(content)


def save_text(folder: Path, text: TextTower) -> None:
    """Write the text tower in 8 bits."""
    ids = torch.tensor([[300, 301, Subwords.end], [300, Subwords.end, Subwords.padding]])
    content = _onnx(_TextGraph(text.cpu().eval()), ids, {"ids": {0: "n", 1: "length"}}, ["vectors", "tokens"], bits=8)
    with replacing(folder / TEXT) as temporary:
        temporary.write_bytes(content)


def _onnx(network: nn.Module, example: Tensor, axes: dict[str, dict[int, str]], outputs: Sequence[str], bits: int) -> bytes:
    """Export a network to ONNX with quantised weights; returns the bytes of the file."""
    onnx = require("onnx", "Writing a model", "train")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), torch.no_grad():
        path = str(Path(folder) / "tower.onnx")
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(),
            (example,),
            path,
            input_names=list(axes),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=_OPSET,
            # Constant folding would rename the weights.
            do_constant_folding=False,
            dynamo=False,
        )
        model = onnx.load_model(path)
    _quantize_weights(model.graph, onnx, bits)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _quantize_weights(graph: Any, onnx: Any, bits: int) -> None:
    """Replace every large weight of a graph with its quantised form and the nodes that convert it back."""
    helper, arrays = onnx.helper, onnx.numpy_helper
    nodes = []
    for stored in list(graph.initializer):
        weight, name = arrays.to_array(stored), stored.name
        if weight.ndim < 2 or weight.size < _MIN_SIZE or weight.dtype != np.float32:
            continue
        graph.initializer.remove(stored)
        if bits == 16:
            graph.initializer.append(arrays.from_array(weight.astype(np.float16), name + _HALF))
            nodes.append(helper.make_node("Cast", [name + _HALF], [name], to=onnx.TensorProto.FLOAT))
            continue
        rounded, scale = _round_to_int8(weight)
        graph.initializer.extend([arrays.from_array(rounded, name + _INT8), arrays.from_array(scale, name + _SCALE)])
        nodes.append(helper.make_node("Cast", [name + _INT8], [f"{name}.plain"], to=onnx.TensorProto.FLOAT))
        nodes.append(helper.make_node("Mul", [f"{name}.plain", name + _SCALE], [name]))
    for node in reversed(nodes):
        graph.node.insert(0, node)


def _round_to_int8(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Each row as integers from -127 to 127, and the scale of each row."""
    rows = weight.reshape(len(weight), -1)
    scale = np.maximum(np.abs(rows).max(1), np.finfo(np.float32).tiny) / 127
    shape = (-1, *[1] * (weight.ndim - 1))
    scale = scale.reshape(shape).astype(np.float32)
    return np.round(weight / scale).astype(np.int8), scale


def load_model(folder: Path) -> tuple[ImageTower, TextTower, Subwords]:
    """Load the towers and the vocabulary of a written model, for further training."""
    try:
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        image = ImageTower(ImageShape(**settings["image"]), folded=True)
        text = TextTower(TextShape(**settings["text"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / SETTINGS}: this file does not describe a model like caplens-mini ({error}).") from None
    for network, name in ((image, IMAGE), (text, TEXT)):
        network.load_state_dict(_read_weights(folder / name))
    return image, text, Subwords.load(folder / VOCABULARY)


def _read_weights(path: Path) -> dict[str, Tensor]:
    """The weights in an ONNX file, in float32, by the names of the network's parameters."""
    onnx = require("onnx", "Reading a model's weights", "train")
    arrays = {stored.name: onnx.numpy_helper.to_array(stored) for stored in onnx.load_model(path).graph.initializer}
    weights = {name: value for name, value in arrays.items() if not name.endswith((_INT8, _SCALE, _HALF))}
    weights |= {name.removesuffix(_HALF): value.astype(np.float32) for name, value in arrays.items() if name.endswith(_HALF)}
    rounded = {name.removesuffix(_INT8): value for name, value in arrays.items() if name.endswith(_INT8)}
    weights |= {name: value * arrays[name + _SCALE] for name, value in rounded.items()}
    return {
        name.removeprefix("tower."): torch.from_numpy(np.array(value))
        for name, value in weights.items()
        if name.startswith("tower.")
    }
