"""`mclip:` M-CLIP (Carlsson et al. 2022): XLM-R, mean pooling and a linear map, distilled from the text tower of a CLIP model.

Weights are read directly from the models' files, so the package `multilingual-clip` is not needed.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from caplens.arrays import Vectors
from caplens.backbones import hub
from caplens.backbones.base import Backbone, Tokens
from caplens.backbones.hf import load_tokenizer, read_texts
from caplens.backbones.hub import find_model, fingerprint, model_files, read_json
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.names import ModelName
from caplens.backbones.pretrained import from_configuration, library, open_pretrained
from caplens.backbones.torch_backbone import LoadedModel, PairedTextBackbone, read_weights
from caplens.errors import InputError, reason

_IMAGE_TOWERS = {
    "vit-b-32": "hf:openai/clip-vit-base-patch32",
    "vit-l-14": "hf:openai/clip-vit-large-patch14",
    "vit-b-16plus": "openclip:ViT-B-16-plus-240/laion400m_e32",
}
"""The end of the text model's name -> the image model."""
_HEAD_SIZE = 64
"""The size of an attention head in every XLM-R."""
_MAX_TOKENS = 512


class MCLIP(PairedTextBackbone):
    def __init__(self, name: ModelName, folder: Path, image: Backbone, options: LoadOptions) -> None:
        self.folder = folder
        digest = fingerprint(model_files(folder, hub.MCLIP), "mclip", 1, options.dtype, image.fingerprint)
        super().__init__(name.full, digest, image, options)

    def load(self) -> LoadedModel:
        transformers = library(self.name)
        weights = _load_weights(self.folder)
        linear, base = _select_prefix(weights, "LinearTransformation."), _select_prefix(weights, "transformer.")
        if set(linear) != {"weight", "bias"} or not base:
            raise InputError(f"{self.folder}: these are not the weights of an M-CLIP model. Get it again.")
        dim, width = linear["weight"].shape
        self.check_dimensions(dim)
        network = self.torch.nn.ModuleDict(
            {"transformer": self._transformer(transformers, base), "linear": self.torch.nn.Linear(width, dim)}
        )
        network["linear"].load_state_dict(linear)
        return LoadedModel(network, load_tokenizer(self.folder, self.options), dim, _MAX_TOKENS, None)

    def _transformer(self, transformers: Any, weights: dict[str, Any]) -> Any:
        """The base model with these weights.

        The shape of XLM-R is derived from its weights. That of another base model is looked up by name. A student that caplens
        trained has the configuration of its encoder.
        """
        settings = read_json(self.folder / "config.json")
        base = str(settings.get("modelBase", "xlm-roberta-large"))
        if "model_type" in settings and "modelBase" not in settings:
            network = _network_of(transformers, self.folder)
        elif "xlm-roberta" in base.lower():
            network = transformers.XLMRobertaModel(_xlm_roberta_config(transformers, weights), add_pooling_layer=False)
        else:
            folder = find_model(base, hub.CONFIGURATION, offline=self.options.offline)
            network = _network_of(transformers, folder)
        absent, _ = network.load_state_dict(weights, strict=False)
        missing_keys = [key for key in absent if not key.endswith(("position_ids", "token_type_ids")) and "pooler" not in key]
        if missing_keys:
            raise InputError(f"{self.folder}: {len(missing_keys)} weights are missing, such as {missing_keys[0]}. Get it again.")
        return network

    def read(self, texts: Sequence[str]) -> list[Tokens]:
        return read_texts(self.loaded.tokenizer, texts, self.max_tokens)

    def text_features(self, ids: Sequence[Sequence[int]]) -> Any:
        states, mask = self._token_states(ids)
        weight = mask.unsqueeze(2).to(states.dtype)
        return self.loaded.network["linear"]((states * weight).sum(1) / weight.sum(1))

    def _token_states(self, ids: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        padded, mask = self.padded(ids, self.loaded.tokenizer.pad_token_id)
        return self.loaded.network["transformer"](input_ids=padded, attention_mask=mask)[0], mask

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        tokens = [text_tokens.ids for text_tokens in self.tokenize(texts)]
        return self.token_vectors(tokens, lambda: self.loaded.network["linear"](self._token_states(tokens)[0]))


def load(name: ModelName, options: LoadOptions, load_image_model: Callable[[str], Backbone]) -> MCLIP:
    """The model of a name in the family `mclip`."""
    folder = find_model(name.model, hub.MCLIP, name.options.get("revision"), offline=options.offline)
    return MCLIP(name, folder, load_image_model(name.image_model(_IMAGE_TOWERS)), options)


def _load_weights(folder: Path) -> dict[str, Any]:
    for name in ("model.safetensors", "pytorch_model.bin"):
        if (folder / name).is_file():
            return read_weights(folder / name)
    raise InputError(f"{folder}: both model.safetensors and pytorch_model.bin are missing.")


def _select_prefix(weights: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)}


def _network_of(transformers: Any, folder: Path) -> Any:
    """A model of the folder's configuration, without weights."""
    try:
        config = open_pretrained(transformers.AutoConfig, folder, local_files_only=True)
        return from_configuration(transformers.AutoModel, config)
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: transformers cannot make this model ({reason(error)}).") from None


def _xlm_roberta_config(transformers: Any, weights: dict[str, Any]) -> Any:
    words = weights["embeddings.word_embeddings.weight"]
    layers = {key.split(".")[2] for key in weights if key.startswith("encoder.layer.")}
    return transformers.XLMRobertaConfig(
        vocab_size=words.shape[0],
        hidden_size=words.shape[1],
        num_hidden_layers=len(layers),
        num_attention_heads=max(1, words.shape[1] // _HEAD_SIZE),
        intermediate_size=weights["encoder.layer.0.intermediate.dense.weight"].shape[0],
        max_position_embeddings=weights["embeddings.position_embeddings.weight"].shape[0],
        type_vocab_size=weights["embeddings.token_type_embeddings.weight"].shape[0],
        layer_norm_eps=1e-5,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
    )
