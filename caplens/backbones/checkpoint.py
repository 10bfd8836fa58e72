"""Weights that replace those of a CLIP model: PAC-S checkpoints, and others that hold a full CLIP state dict.

Their keys follow OpenAI's naming, under `state_dict`. Loading such a file with `strict=False` into a model with other keys
changes nothing, and scores are then silently plain CLIPScore. So keys must match, and at least one weight must change.

Low-rank adapters, which those of PAC-S++ have, are merged into their weights. A checkpoint may have positions for longer texts
than the model has (Long-CLIP); the model then takes these.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from caplens.backbones.hub import file_hash
from caplens.backbones.names import ModelName
from caplens.backbones.torch_backbone import read_weights, renamed_once
from caplens.data.files import expanded
from caplens.errors import InputError

Names = Callable[[dict[str, Any]], dict[str, Any]]
Lengthen = Callable[[Any, int], None]
_DOWN, _UP = _ADAPTERS = "lora_A", "lora_B"
_MATRIX, _KERNEL_DIMENSIONS = 2, 4
_POSITIONS, _LATER_POSITIONS, _FIRST_POSITIONS = "positional_embedding", "positional_embedding_res", 20
_MOST_POSITIONS = 1 << 16

_BUFFERS = {"input_resolution", "context_length", "vocab_size"}
"""Numbers that OpenAI's files store beside the weights."""
_NOT_EMBEDDING = {"logit_scale", "logit_bias"}
"""Weights that no embedding depends on."""
_COMPUTED = ("attn_mask", "position_ids")
"""Buffers that some versions of the libraries store and others compute."""

_TOWERS = {
    "token_embedding.weight": "text_model.embeddings.token_embedding.weight",
    "positional_embedding": "text_model.embeddings.position_embedding.weight",
    "ln_final.weight": "text_model.final_layer_norm.weight",
    "ln_final.bias": "text_model.final_layer_norm.bias",
    "visual.class_embedding": "vision_model.embeddings.class_embedding",
    "visual.positional_embedding": "vision_model.embeddings.position_embedding.weight",
    "visual.conv1.weight": "vision_model.embeddings.patch_embedding.weight",
    "visual.ln_pre.weight": "vision_model.pre_layrnorm.weight",
    "visual.ln_pre.bias": "vision_model.pre_layrnorm.bias",
    "visual.ln_post.weight": "vision_model.post_layernorm.weight",
    "visual.ln_post.bias": "vision_model.post_layernorm.bias",
    "logit_scale": "logit_scale",
}
_BLOCKS = {
    "attn.out_proj": "self_attn.out_proj",
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
}


def find(name: ModelName) -> Path | None:
    """The checkpoint that the option `weights` of a model's name refers to, if any."""
    path = name.options.get("weights")
    if path is None:
        return None
    if not path or not expanded(path).is_file():
        raise InputError(f"{name.full}: there is no weights file {path!r}.")
    return expanded(path)


def fact(path: Path | None) -> str | None:
    """The part of a model's fingerprint that identifies its checkpoint."""
    return None if path is None else file_hash(path)


def to_transformers(state: dict[str, Any]) -> dict[str, Any]:
    """Rename the keys of a CLIP with a ViT from OpenAI's naming to that of transformers."""
    renamed: dict[str, Any] = {}
    for key, value in state.items():
        if key in _TOWERS:
            renamed[_TOWERS[key]] = value
        elif key == "text_projection":
            renamed["text_projection.weight"] = value.T
        elif key == "visual.proj":
            renamed["visual_projection.weight"] = value.T
        elif "transformer.resblocks." in key:
            tower = "vision_model" if key.startswith("visual.") else "text_model"
            number, _, rest = key.partition("resblocks.")[2].partition(".")
            layer = f"{tower}.encoder.layers.{number}"
            module, _, kind = rest.rpartition(".")
            if rest.startswith("attn.in_proj_"):
                for name, chunk in zip("qkv", value.chunk(3), strict=True):
                    renamed[f"{layer}.self_attn.{name}_proj.{rest.removeprefix('attn.in_proj_')}"] = chunk
            elif module in _BLOCKS:
                renamed[f"{layer}.{_BLOCKS[module]}.{kind}"] = value
            else:
                renamed[key] = value
        else:
            renamed[key] = value
    return renamed


def apply(network: Any, path: Path, rename: Names = lambda state: state, lengthen: Lengthen | None = None) -> None:
    """Replace the weights of a network by those of a checkpoint.

    `rename` converts the checkpoint's keys, if the network has other ones; `lengthen` gives it positions for longer texts.
    """
    state = {key: value for key, value in read_weights(path).items() if key not in _BUFFERS}
    state = _one_table_of_positions(_with_adapters(state, path))
    positions = state.get(_POSITIONS)
    if positions is not None and len(positions) > _MOST_POSITIONS:
        raise InputError(f"{path}: {_POSITIONS} has {len(positions):,} rows, more than {_MOST_POSITIONS:,}. The file is damaged.")
    if lengthen is not None and positions is not None:
        lengthen(network, len(positions))
    current = network.state_dict()
    if not state.keys() <= current.keys():
        state = rename(state)
    _check_no_unknown_keys(state, current, path)
    weights = {key: value.to(current[key].dtype) for key, value in state.items() if key in current}
    _check_shapes(weights, current, path)
    _check_no_missing_keys(weights, current, path)
    _check_weights_change(weights, current, path)
    network.load_state_dict(weights, strict=False)


def _with_adapters(state: dict[str, Any], path: Path) -> dict[str, Any]:
    """The weights W + B A / rank. The adapter of a convolution has `rank` rows for each row of its kernel."""
    merged = renamed_once({key: key.replace(".conv.", ".") for key in state if not key.endswith(_ADAPTERS)}, state, path)
    alone = next((key for key in state if key.endswith(_UP) and key.removesuffix(_UP) + _DOWN not in state), None)
    if alone is not None:
        raise InputError(f"{path}: the adapter {alone!r} has no {_DOWN}. The file is damaged.")
    for key in (key for key in state if key.endswith(_DOWN)):
        name = key.removesuffix(_DOWN)
        target = name.removesuffix("_") if name.endswith("_") else f"{name}weight"
        down, up, weight = state[key], state.get(name + _UP), merged.get(target)
        if up is None or weight is None or not _fit(up, down, weight):
            raise InputError(f"{path}: the adapter {key!r} fits no weight. The file is damaged, or of another kind.")
        rank = len(down) // (weight.shape[-1] if weight.ndim == _KERNEL_DIMENSIONS else 1)
        merged[target] = weight + (up.float() @ down.float()).view_as(weight).to(weight.dtype) / rank
    return merged


def _fit(up: Any, down: Any, weight: Any) -> bool:
    """Whether the product of an adapter's two matrices has the size of a weight."""
    if up.ndim != _MATRIX or down.ndim != _MATRIX or up.shape[1] != down.shape[0]:
        return False
    return bool(len(up) * down.shape[1] == weight.numel())


def _one_table_of_positions(state: dict[str, Any]) -> dict[str, Any]:
    """Long-CLIP has two tables, of which the first holds for the first 20 positions and the other for the rest."""
    rest = state.pop(_LATER_POSITIONS, None)
    if rest is None or _POSITIONS not in state:
        return state
    positions = rest.clone()
    positions[:_FIRST_POSITIONS] = state[_POSITIONS][:_FIRST_POSITIONS]
    return {**state, _POSITIONS: positions}


def _check_no_unknown_keys(state: dict[str, Any], current: dict[str, Any], path: Path) -> None:
    unknown_keys = [key for key in state if key not in current and not key.endswith(_COMPUTED)]
    if unknown_keys:
        raise InputError(
            f"{path}: {len(unknown_keys)} of its weights, such as {unknown_keys[0]!r}, do not exist in the model. It is a"
            " checkpoint of another model."
        )


def _check_shapes(weights: dict[str, Any], current: dict[str, Any], path: Path) -> None:
    for key, value in weights.items():
        if value.shape != current[key].shape:
            raise InputError(
                f"{path}: {key} has the shape {tuple(value.shape)}, but the model has {tuple(current[key].shape)}."
                " It is for a model of another size."
            )


def _check_no_missing_keys(weights: dict[str, Any], current: dict[str, Any], path: Path) -> None:
    optional = _NOT_EMBEDDING | weights.keys()
    missing_keys = [key for key in current if key not in optional and not key.endswith(_COMPUTED)]
    if missing_keys:
        raise InputError(
            f"{path}: {len(missing_keys)} weights of the model, such as {missing_keys[0]!r}, are missing. It is not a full"
            " checkpoint."
        )


def _check_weights_change(weights: dict[str, Any], current: dict[str, Any], path: Path) -> None:
    if all(value.equal(current[key]) for key, value in weights.items() if key not in _NOT_EMBEDDING):
        raise InputError(
            f"{path}: loading it changes no weight that scores depend on, so scores would be those of the model without it. Check"
            " that it is the fine-tuned file."
        )
