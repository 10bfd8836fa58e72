"""Writing both towers as small ONNX files, and reading their weights back for further training.

Weights are stored in 8 bits, with one scale per row. Convolutions and linear layers whose input is rounded compute in 8 bits; the
others are converted to float32 once, when onnxruntime loads the file. The weights in the file have the names of the networks'
parameters.
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
from caplens.backbones.mini_use import AXES
from caplens.data.replacing import replacing
from caplens.errors import InputError
from caplens.libraries import require
from caplens.text.subwords import Subwords
from caplens.training.loop.fit import batches
from caplens.training.mini.networks import ImageShape, ImageTower, TextShape, TextTower, factors
from caplens.training.mini.rounding import measuring

_OPSET = 17
_INT8, _COLUMNS, _INT32, _SCALE, _HALF = ".int8", ".columns", ".int32", ".scale", ".half"
"""Suffixes of the names of quantised weights: by row, transposed and by column, biases, their scales, and in 16 bits."""
_LARGEST = 127
_MIN_SIZE = 1024
"""Weights with fewer elements stay in float32."""
_CALIBRATION_BATCH = 32
Rows = tuple[NDArray[np.int8], NDArray[np.float32]]
"""The rows of a weight as integers, and their scales."""
Stored = Mapping[str, Rows]


class _ImageGraph(nn.Module):
    """Bytes (n, height, width, 3) to vectors: the graph includes the preprocessing."""

    def __init__(self, tower: ImageTower) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, pixels: Tensor) -> Tensor:
        vectors: Tensor = self.tower(pixels.permute(0, 3, 1, 2).to(torch.float32) / 127.5 - 1)
        return vectors


class _TextGraph(nn.Module):
    """Token ids to the vector of each text, and of each token; the first is the mean of the second."""

    def __init__(self, tower: TextTower) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        tokens, spaces = self.tower.tokens(ids), self.tower.shape.spaces
        mean = self.tower.mean(tokens, ids)
        if not spaces:
            return mean, tokens
        scale = factors(mean, spaces)
        return mean * scale, tokens * scale[:, None]


def save_model(
    folder: Path,
    image: ImageTower,
    text: TextTower,
    subwords: Subwords,
    about: Mapping[str, Any],
    axes: Tensor | None = None,
) -> None:
    """Write a model to a folder that `load_backbone` loads.

    `about` is added to its settings, beside the shapes. `axes` are those of its sentence space in that of USE-multilingual.
    """
    settings = {
        **about,
        "image": vars(image.shape),
        "text": vars(text.shape),
    }
    with writing_model(folder) as target:
        save_image(target, image)
        save_text(target, text)
        subwords.save(target / VOCABULARY)
        if axes is not None:
            np.save(target / AXES, axes.half().numpy())
        (target / SETTINGS).write_text(json.dumps(settings, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def exported_image(image: ImageTower, pixels: NDArray[np.uint8]) -> ImageTower:
    """The image tower as it is exported: batch norm folded in, limits of roundings measured on photos (n, height, width, 3)."""
    image = image.fold()
    with measuring(image):
        for batch in batches(len(pixels), _CALIBRATION_BATCH):
            _ImageGraph(image)(torch.from_numpy(pixels[batch]))
    return image


def exported_text(text: TextTower, ids: Tensor) -> TextTower:
    """The text tower as it is exported: limits of roundings measured on token ids (n, length)."""
    exported = TextTower(text.shape, rounded=text.shape.rounded)
    exported.load_state_dict({**exported.state_dict(), **{name: value.cpu() for name, value in text.state_dict().items()}})
    exported.eval()
    with measuring(exported):
        for batch in batches(len(ids), _CALIBRATION_BATCH):
            exported(ids[batch].long())
    return exported


def save_image(folder: Path, image: ImageTower) -> None:
    """Write the image tower. Weights that are those of the file in its place are written as they are there."""
    image = image.fold()
    size = image.shape.size
    pixels = torch.zeros(2, size, size, 3, dtype=torch.uint8)
    rows = _stored_rows(folder / IMAGE)
    content = _onnx(_ImageGraph(image), pixels, {"pixels": {0: "n"}}, ["vectors"], 16, rows)
    with replacing(folder / IMAGE) as temporary:
        temporary.write_bytes(content)


def save_text(folder: Path, text: TextTower) -> None:
    """Write the text tower. Weights that are those of the file in its place are written as they are there."""
    ids = torch.tensor([[300, 301, Subwords.end], [300, Subwords.end, Subwords.padding]])
    rows = _stored_rows(folder / TEXT)
    content = _onnx(_TextGraph(text.cpu().eval()), ids, {"ids": {0: "n", 1: "length"}}, ["vectors", "tokens"], 8, rows)
    with replacing(folder / TEXT) as temporary:
        temporary.write_bytes(content)


def _onnx(
    network: nn.Module, example: Tensor, axes: dict[str, dict[int, str]], outputs: Sequence[str], bits: int, stored: Stored
) -> bytes:
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
    _undo_sharing(model.graph)
    _compute_in_8_bits(model.graph, onnx, stored)
    _quantize_weights(model.graph, onnx, bits, stored)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _undo_sharing(graph: Any) -> None:
    """PyTorch writes equal weights once; here each is written under its name."""
    stored = {initializer.name: initializer for initializer in graph.initializer}
    for node in [node for node in graph.node if node.op_type == "Identity" and node.input[0] in stored]:
        copy = graph.initializer.add()
        copy.CopyFrom(stored[node.input[0]])
        copy.name = node.output[0]
        graph.node.remove(node)


def _compute_in_8_bits(graph: Any, onnx: Any, rows: Stored) -> None:
    """Replace the weights of convolutions and linear layers whose input is rounded with integers, as onnxruntime expects them."""
    arrays = onnx.numpy_helper
    stored = {initializer.name: initializer for initializer in graph.initializer}
    producers = {output: node for node in graph.node for output in node.output}
    converted: list[Any] = []

    def replace(name: str, suffix: str, output: str, integers: NDArray[Any], scale: NDArray[np.float32], axis: int) -> None:
        tensors = {name + suffix: integers, name + _SCALE: scale, f"{name}{suffix}.zero": np.zeros(len(scale), integers.dtype)}
        graph.initializer.extend([arrays.from_array(value, key) for key, value in tensors.items()])
        graph.initializer.remove(stored[name])
        converted.append(onnx.helper.make_node("DequantizeLinear", list(tensors), [output], axis=axis))

    for node in list(graph.node):
        source = producers.get(node.input[0]) if node.op_type in ("Conv", "MatMul") else None
        if source is None or source.op_type != "DequantizeLinear":
            continue
        name = node.input[1]
        if node.op_type == "MatMul":
            transposed = producers[name]
            name = transposed.input[0]
            integers, scale = _round_rows(arrays.to_array(stored[name]), rows.get(name))
            replace(name, _COLUMNS, node.input[1], np.ascontiguousarray(integers.T), scale, 1)
            graph.node.remove(transposed)
            continue
        integers, scale = _round_rows(arrays.to_array(stored[name]), rows.get(name))
        replace(name, _INT8, name, integers, scale, 0)
        bias, steps = node.input[2], scale * arrays.to_array(stored[source.input[1]])
        replace(bias, _INT32, bias, np.round(arrays.to_array(stored[bias]) / steps).astype(np.int32), steps, 0)
    for node in reversed(converted):
        graph.node.insert(0, node)


def _quantize_weights(graph: Any, onnx: Any, bits: int, rows: Stored) -> None:
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
        integers, scale = _round_rows(weight, rows.get(name))
        scale = _along_rows(scale, weight)
        graph.initializer.extend([arrays.from_array(integers, name + _INT8), arrays.from_array(scale, name + _SCALE)])
        nodes.append(helper.make_node("Cast", [name + _INT8], [f"{name}.plain"], to=onnx.TensorProto.FLOAT))
        nodes.append(helper.make_node("Mul", [f"{name}.plain", name + _SCALE], [name]))
    for node in reversed(nodes):
        graph.node.insert(0, node)


def _round_rows(weight: NDArray[np.float32], stored: Rows | None) -> Rows:
    """Each row as integers from -127 to 127, and the scale of each row; as stored, where a row is still that of the file.

    Processors without VNNI instructions add two neighbouring products, of 8 bits each, in 16 bits. The scale is such that two
    neighbours never exceed them, so that all processors compute the same vectors.
    """
    sizes = np.abs(np.moveaxis(weight, 1, -1)).reshape(len(weight), -1)
    pairs = np.pad(sizes, ((0, 0), (0, sizes.shape[1] % 2))).reshape(len(weight), -1, 2).sum(-1)
    scale = (np.maximum(pairs.max(1), np.finfo(np.float32).tiny) / _LARGEST).astype(np.float32)
    integers = np.round(weight / _along_rows(scale, weight)).astype(np.int8)
    if stored is not None and stored[0].shape == weight.shape:
        same = (stored[0] * _along_rows(stored[1], weight) == weight).reshape(len(weight), -1).all(1)
        integers[same], scale[same] = stored[0][same], stored[1][same]
    return integers, scale


def _along_rows(scale: NDArray[np.float32], weight: NDArray[Any]) -> NDArray[np.float32]:
    return scale.reshape(-1, *[1] * (weight.ndim - 1))


def load_model(folder: Path) -> tuple[ImageTower, TextTower, Subwords]:
    """Load the towers and the vocabulary of a written model, for further training."""
    try:
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        image = ImageTower(ImageShape(**settings["image"]), folded=True)
        shape = TextShape(**settings["text"])
        text = TextTower(shape, rounded=shape.rounded)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / SETTINGS}: this file does not describe a model like caplens-mini ({error}).") from None
    for network, name in ((image, IMAGE), (text, TEXT)):
        network.load_state_dict(_read_weights(folder / name))
    return image, text, Subwords.load(folder / VOCABULARY)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    onnx = require("onnx", "Reading a model's weights", "train")
    return {stored.name: onnx.numpy_helper.to_array(stored) for stored in onnx.load_model(path).graph.initializer}


def _stored_rows(path: Path) -> Stored:
    """The weights in 8 bits of an ONNX file, if there is one, with their scales."""
    arrays = _arrays(path) if path.is_file() else {}
    rows: dict[str, Rows] = {}
    for key, value in arrays.items():
        for suffix, integers in ((_INT8, value), (_COLUMNS, value.T)):
            if key.endswith(suffix):
                name = key.removesuffix(suffix)
                rows[name] = integers, arrays[name + _SCALE].reshape(-1)
    return rows


def _read_weights(path: Path) -> dict[str, Tensor]:
    """The weights in an ONNX file, in float32, by the names of the network's parameters."""
    arrays = _arrays(path)
    weights: dict[str, Any] = {}
    for key, value in arrays.items():
        name, _, suffix = key.rpartition(".")
        if f".{suffix}" == _HALF:
            weights[name] = value.astype(np.float32)
        elif f".{suffix}" == _COLUMNS:
            weights[name] = (value * arrays[name + _SCALE]).T
        elif f".{suffix}" in (_INT8, _INT32):
            weights[name] = value * _along_rows(arrays[name + _SCALE], value)
        elif f".{suffix}" != _SCALE and not name.endswith((_INT8, _COLUMNS, _INT32)):
            weights[key] = value
    return {
        name.removeprefix("tower."): torch.from_numpy(np.array(value, order="C"))
        for name, value in weights.items()
        if name.startswith("tower.")
    }
