"""`hf:` models of transformers with two towers: CLIP, SigLIP, SigLIP 2, AltCLIP, Chinese-CLIP, MetaCLIP 2."""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caplens.arrays import Vectors
from caplens.backbones import checkpoint
from caplens.backbones.base import Tokens
from caplens.backbones.hub import HF, find_model, fingerprint, model_files, read_json, watch
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.names import ModelName
from caplens.backbones.pretrained import library, open_pretrained
from caplens.backbones.torch_backbone import LoadedModel, TorchBackbone
from caplens.backbones.transform import ImageTransform, Pixels
from caplens.errors import InputError, option, reason
from caplens.libraries import require


class _Family(NamedTuple):
    """How models of a type process texts."""

    max_tokens: int | None = None
    """The length it was trained with, where its positions would allow more."""
    fixed_length: bool = False
    """Whether texts are padded to full length, and the model attends to the padding."""
    masked: bool = True
    lowercase: bool = False
    first_token: bool = False
    """Whether a text is pooled by its first token; `get_text_features` of transformers 4 pools the wrong one."""


_FAMILIES = {
    "clip": _Family(),
    "metaclip_2": _Family(),
    "altclip": _Family(max_tokens=77),
    "chinese_clip": _Family(max_tokens=52, first_token=True),
    "siglip": _Family(max_tokens=64, fixed_length=True, masked=False),
    "siglip2": _Family(max_tokens=64, fixed_length=True, masked=False, lowercase=True),
}
_LOAD_ERRORS = {
    "ignore_mismatched_sizes": "its weights have other shapes than its configuration says",
    "Weights only load failed": "its weights are in a file that holds more than weights, which might be code",
}
"""Words of a long error of transformers -> a short reason. Its own advice does not apply to users of caplens."""
_LOWERCASE_TOKENIZERS = ("Gemma", "Siglip2")
"""Tokenizers of SigLIP 2, which was trained on lower-case text. Its fixed-size models have the model type of SigLIP."""


class HuggingFace(TorchBackbone):
    def __init__(self, name: ModelName, folder: Path, options: LoadOptions) -> None:
        self.folder = folder
        self.checkpoint = checkpoint.find(name)
        files = model_files(self.folder, HF._replace(code=options.trust_remote_code))
        facts = ("hf", 1, options.dtype, checkpoint.fact(self.checkpoint))
        super().__init__(name.full, fingerprint(files, *facts), options)
        watch(self.fingerprint, self.checkpoint)

    def load(self) -> LoadedModel:
        transformers = library(self.name)
        config = self._configuration(transformers)
        self._family = _FAMILIES.get(config.model_type, _Family())
        network = _load_network(transformers, self.folder, config, self.options)
        if self.checkpoint is not None:
            checkpoint.apply(network, self.checkpoint, checkpoint.to_transformers, _lengthen)
        tokenizer = load_tokenizer(self.folder, self.options)
        siglip2_tokenizer = type(tokenizer).__name__.startswith(_LOWERCASE_TOKENIZERS)
        self._lowercase = self._family.lowercase or (config.model_type == "siglip" and siglip2_tokenizer)
        path = self.folder / "preprocessor_config.json"
        transform = ImageTransform.from_transformers(_image_settings(self.folder), str(path))
        _check_image_size(config, transform, path)
        text = getattr(config, "text_config", config)
        positions = getattr(getattr(network.config, "text_config", None), "max_position_embeddings", None)
        if positions and positions > text.max_position_embeddings:
            # A checkpoint for longer texts: the tokenizer knows only the old limit.
            tokenizer.model_max_length, text = positions, network.config.text_config
        limits = (getattr(text, "max_position_embeddings", None), self._family.max_tokens, tokenizer.model_max_length)
        max_tokens = min(limit for limit in limits if limit)
        dim = getattr(config, "projection_dim", None) or getattr(text, "projection_size", None) or text.hidden_size
        return LoadedModel(network, tokenizer, dim, max_tokens, transform)

    def _configuration(self, transformers: Any) -> Any:
        kind = read_json(self.folder / "config.json").get("model_type")
        if kind not in _FAMILIES and not self.options.trust_remote_code:
            raise InputError(
                f"{self.name}: models of type {kind!r} are not supported; caplens supports {', '.join(_FAMILIES)}. If the model"
                " comes with a class of its own that has get_image_features and get_text_features,"
                f" {option('trust_remote_code', 'True')} runs it."
            )
        try:
            return open_pretrained(
                transformers.AutoConfig, self.folder, trust_remote_code=self.options.trust_remote_code, local_files_only=True
            )
        except Exception as error:
            # Each configuration class validates itself and raises errors of its own types.
            raise InputError(
                f"{self.name}: transformers {transformers.__version__} cannot read the configuration ({reason(error)}). It is"
                " damaged, or needs a newer version of transformers."
            ) from None

    def read(self, texts: Sequence[str]) -> list[Tokens]:
        if self._lowercase:
            texts = [text.lower() for text in texts]
        return read_texts(self.loaded.tokenizer, texts, self.loaded.max_tokens)

    def image_features(self, pixels: Any, raw: Any) -> Any:
        return pooled(self.loaded.network.get_image_features(pixel_values=pixels))

    def text_features(self, ids: Sequence[Sequence[int]]) -> Any:
        network, inputs = self.loaded.network, self._text_inputs(ids)
        if self._family.first_token:
            return network.text_projection(network.text_model(**inputs).last_hidden_state[:, 0])
        return pooled(network.get_text_features(**inputs))

    def _text_inputs(self, ids: Sequence[Sequence[int]]) -> dict[str, Any]:
        length = self.loaded.max_tokens if self._family.fixed_length else None
        pad = self.loaded.tokenizer.pad_token_id
        side = self.loaded.tokenizer.padding_side if self._family.fixed_length else "right"
        padded, mask = self.padded(ids, 0 if pad is None else pad, length, side)
        return {"input_ids": padded, "attention_mask": mask} if self._family.masked else {"input_ids": padded}

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        tokens = [text_tokens.ids for text_tokens in self.tokenize(texts)]
        network = self.loaded.network
        project = getattr(network, "text_projection", None) or network.text_model.head
        return self.token_vectors(tokens, lambda: project(network.text_model(**self._text_inputs(tokens)).last_hidden_state))


class NaFlex(HuggingFace):
    """SigLIP 2 that keeps the aspect ratio of images: each image is a sequence of patches, padded to the maximum."""

    def stack(self, images: Sequence[Pixels]) -> list[Pixels]:
        return [np.array(image) for image in images]

    def _normalize(self, batch: Any) -> None:
        """Nothing: images of different shapes are normalized one by one, in `image_features`."""

    def image_features(self, pixels: Any, raw: Any) -> Any:
        transform = self.loaded.transform
        assert transform is not None
        side, length = transform.patch, transform.most_patches
        patches = self.torch.zeros((len(raw), length, side * side * 3), device=self.device, dtype=self._shift.dtype)
        mask = np.zeros((len(raw), length), dtype=np.int64)
        shapes = []
        for row, image in enumerate(raw):
            normal = super()._normalize(image[None])[0]
            rows, columns = normal.shape[1] // side, normal.shape[2] // side
            image_patches = normal.reshape(3, rows, side, columns, side).permute(1, 3, 2, 4, 0).reshape(rows * columns, -1)
            patches[row, : rows * columns] = image_patches
            mask[row, : rows * columns] = 1
            shapes.append((rows, columns))
        return pooled(
            self.loaded.network.get_image_features(
                pixel_values=patches.to(self.loaded.network.dtype),
                pixel_attention_mask=self._on_device(mask),
                spatial_shapes=self._on_device(np.array(shapes)),
            )
        )


def load(name: ModelName, options: LoadOptions) -> HuggingFace:
    """The model of a name in the family `hf`."""
    layout = HF._replace(code=options.trust_remote_code)
    folder = find_model(name.model, layout, name.options.get("revision"), offline=options.offline)
    kind = read_json(folder / "config.json").get("model_type")
    return (NaFlex if kind == "siglip2" else HuggingFace)(name, folder, options)


def _check_image_size(config: Any, transform: ImageTransform, path: Path) -> None:
    """Refuse images of a size that the model does not take: its forward pass would fail in the middle of a run."""
    side = getattr(getattr(config, "vision_config", None), "image_size", None)
    if isinstance(side, int) and transform.fit != "patches" and transform.size != (side, side):
        raise InputError(
            f"{path}: images are resized to {transform.size} pixels, but the model takes {(side, side)}. Get it again."
        )


def pooled(features: Any) -> Any:
    """The tensor of pooled features: transformers 4 returns it, 5 an object that holds it."""
    return getattr(features, "pooler_output", features)


def _lengthen(network: Any, positions: int) -> None:
    """Make room for more positions of text in a CLIP; their weights are loaded next."""
    embeddings = network.text_model.embeddings
    table = embeddings.position_embedding
    if positions <= table.num_embeddings:
        return
    embeddings.position_embedding = type(table)(positions, table.embedding_dim, dtype=table.weight.dtype)
    embeddings.position_ids = embeddings.position_ids.new_tensor(range(positions)).unsqueeze(0)
    network.config = deepcopy(network.config)
    network.config.text_config.max_position_embeddings = positions


def _load_network(transformers: Any, folder: Path, config: Any, options: LoadOptions) -> Any:
    """The network with its weights. Missing weights are an error: transformers would fill them with random numbers."""
    try:
        network, report = open_pretrained(
            transformers.AutoModel,
            folder,
            trust_remote_code=options.trust_remote_code,
            config=config,
            output_loading_info=True,
            local_files_only=True,
        )
    except Exception as error:
        # Damaged files, wrong shapes and unsafe pickles all raise different errors.
        cause = next((cause for words, cause in _LOAD_ERRORS.items() if words in str(error)), reason(error))
        raise InputError(f"{folder}: the model cannot be loaded ({cause}). Get it again.") from None
    missing_keys = [key for key in report["missing_keys"] if not key.endswith("position_ids")]
    if missing_keys:
        raise InputError(
            f"{folder}: {len(missing_keys)} weights of the model are missing, such as {missing_keys[0]}. Get it again."
        )
    return network.float()


def load_tokenizer(folder: Path, options: LoadOptions) -> Any:
    transformers = require("transformers", "Its tokenizer", "hf")
    try:
        return open_pretrained(
            transformers.AutoTokenizer, folder, trust_remote_code=options.trust_remote_code, local_files_only=True
        )
    except Exception as error:
        # The tokenizer may come from one of many libraries, each with its own errors.
        kind = type(error).__name__
        raise InputError(f"{folder}: its tokenizer cannot be loaded ({kind}: {reason(error)}). Get the model again.") from None


def read_texts(tokenizer: Any, texts: Sequence[str], max_tokens: int) -> list[Tokens]:
    """Token ids with the tokenizer's own markers; a longer text is truncated by the tokenizer, which keeps the end marker."""
    full_ids = _token_ids(tokenizer, list(texts))
    overlong = [row for row, ids in enumerate(full_ids) if len(ids) > max_tokens]
    tokens = [Tokens(ids, False) for ids in full_ids]
    if overlong:
        truncated = tokenizer([texts[row] for row in overlong], truncation=True, max_length=max_tokens)["input_ids"]
        for row, ids in zip(overlong, truncated, strict=True):
            tokens[row] = Tokens(ids, True)
    return tokens


def _token_ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        ids: list[list[int]] = tokenizer(texts, truncation=False, padding=False, verbose=False)["input_ids"]
        return ids
    # The wrapper of transformers takes more time than the tokenizer itself.
    backend.no_truncation()
    backend.no_padding()
    return [encoding.ids for encoding in backend.encode_batch(texts)]


def _image_settings(folder: Path) -> dict[str, Any]:
    """The settings of the image processor. transformers 5 keeps them inside `processor_config.json`."""
    path = folder / "preprocessor_config.json"
    if not path.is_file() and (folder / "processor_config.json").is_file():
        settings = read_json(folder / "processor_config.json").get("image_processor")
        if isinstance(settings, dict):
            return settings
    return read_json(path)
