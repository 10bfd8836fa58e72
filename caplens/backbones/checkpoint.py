"""Weights that replace those of a CLIP model: PAC-S checkpoints, and others that hold a full CLIP state dict.

They are in OpenAI's naming, under `state_dict`. Loading such a file into a model whose names differ changes nothing if mismatches
are let pass, and scores are then plain CLIPScore without anyone noticing. So names must fit, and something must change.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from caplens.backbones.hub import file_hash
from caplens.backbones.names import ModelName
from caplens.backbones.torch_backbone import read_weights
from caplens.errors import InputError

Names = Callable[[dict[str, Any]], dict[str, Any]]

_BUFFERS = {"input_resolution", "context_length", "vocab_size"}
"""Numbers that OpenAI's files carry beside the weights."""

_BESIDE = {"logit_scale", "logit_bias"}
"""Weights that no embedding depends on."""
_MADE_ANEW = ("attn_mask", "position_ids")
"""What some versions of the libraries store and others make."""

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
    """The file of the option `weights`."""
    path = name.options.get("weights")
    if path is None:
        return None
    if not path or not Path(path).expanduser().is_file():
        raise InputError(f"{name.full}: there is no such file of weights as {path!r}.")
    return Path(path).expanduser()


def fact(path: Path | None) -> str | None:
    """What a checkpoint adds to a model's fingerprint."""
    return None if path is None else file_hash(path)


def to_transformers(state: dict[str, Any]) -> dict[str, Any]:
    """OpenAI's names of a CLIP with a ViT as transformers has them."""
    made: dict[str, Any] = {}
    for key, value in state.items():
        if key in _TOWERS:
            made[_TOWERS[key]] = value
        elif key == "text_projection":
            made["text_projection.weight"] = value.T
        elif key == "visual.proj":
            made["visual_projection.weight"] = value.T
        elif "transformer.resblocks." in key:
            tower = "vision_model" if key.startswith("visual.") else "text_model"
            number, _, rest = key.partition("resblocks.")[2].partition(".")
            layer = f"{tower}.encoder.layers.{number}"
            part, _, kind = rest.rpartition(".")
            if rest.startswith("attn.in_proj_"):
                for name, third in zip("qkv", value.chunk(3), strict=True):
                    made[f"{layer}.self_attn.{name}_proj.{rest.removeprefix('attn.in_proj_')}"] = third
            elif part in _BLOCKS:
                made[f"{layer}.{_BLOCKS[part]}.{kind}"] = value
            else:
                made[key] = value
        else:
            made[key] = value
    return made


def apply(network: Any, path: Path, rename: Names = lambda state: state) -> None:
    """Put the weights of the file in place of the network's."""
    state = {key: value for key, value in read_weights(path).items() if key not in _BUFFERS}
    own = network.state_dict()
    if not state.keys() <= own.keys():
        state = rename(state)
    unknown = [key for key in state if key not in own and not key.endswith(_MADE_ANEW)]
    if unknown:
        raise InputError(
            f"{path}: {len(unknown)} of its weights, {unknown[0]!r} among them, have no place in the model. It is for another."
        )
    fitting = {key: value.to(own[key].dtype) for key, value in state.items() if key in own}
    for key, value in fitting.items():
        if value.shape != own[key].shape:
            raise InputError(
                f"{path}: {key} has the shape {tuple(value.shape)} where the model has {tuple(own[key].shape)}."
                " It is for a model of another size."
            )
    lacking = [key for key in own if key not in fitting and key not in _BESIDE and not key.endswith(_MADE_ANEW)]
    if lacking:
        raise InputError(
            f"{path}: {len(lacking)} weights of the model, {lacking[0]!r} among them, are not in it. It is no full checkpoint."
        )
    if all(value.equal(own[key]) for key, value in fitting.items() if key not in _BESIDE):
        raise InputError(
            f"{path}: loading it changes no weight that scores depend on, so they would be those of the model without it. Check"
            " that it is the fine-tuned file."
        )
    network.load_state_dict(fitting, strict=False)
