"""`hf:` models of transformers with two towers: CLIP, SigLIP, SigLIP 2, AltCLIP, Chinese-CLIP, MetaCLIP 2."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caplens.arrays import Vectors
from caplens.backbones import checkpoint
from caplens.backbones.base import Tokens
from caplens.backbones.hub import HF, find_model, fingerprint, model_files, read_json
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.names import ModelName
from caplens.backbones.torch_backbone import LoadedModel, TorchBackbone
from caplens.backbones.transform import ImageTransform, Pixels
from caplens.errors import InputError, reason
from caplens.libraries import require


class _Family(NamedTuple):
    """How a kind of model reads texts."""

    most_tokens: int | None = None
    """The length it was trained with, where its positions would allow more."""
    fixed_length: bool = False
    """Whether texts are padded to full length, and the padding read as text."""
    masked: bool = True
    lower: bool = False
    first_token: bool = False
    """Whether the first token stands for the text; `get_text_features` of transformers 4 looks for it in the wrong place."""


_FAMILIES = {
    "clip": _Family(),
    "metaclip_2": _Family(),
    "altclip": _Family(most_tokens=77),
    "chinese_clip": _Family(most_tokens=52, first_token=True),
    "siglip": _Family(most_tokens=64, fixed_length=True, masked=False),
    "siglip2": _Family(most_tokens=64, fixed_length=True, masked=False, lower=True),
}
_TOLD = {
    "ignore_mismatched_sizes": "its weights have other shapes than its configuration says",
    "Weights only load failed": "its weights are in a file that holds more than weights, which might be code",
}
"""What transformers says at length, and with advice that is not for the users of caplens."""
_LOWERED = ("Gemma", "Siglip2")
"""Tokenizers that come with SigLIP 2, which was trained on lower-case text; its fixed-size models call themselves SigLIP."""


class HuggingFace(TorchBackbone):
    def __init__(self, name: ModelName, folder: Path, options: LoadOptions) -> None:
        self.folder = folder
        self.checkpoint = checkpoint.find(name)
        files = model_files(self.folder, HF._replace(code=options.trust_remote_code))
        facts = ("hf", 1, options.dtype, checkpoint.fact(self.checkpoint))
        super().__init__(name.full, fingerprint(files, *facts), options)

    def load(self) -> LoadedModel:
        transformers = library(self.name)
        config = self._configuration(transformers)
        self._family = _FAMILIES.get(config.model_type, _Family())
        network = _load_network(transformers, self.folder, config, self.options)
        if self.checkpoint is not None:
            checkpoint.apply(network, self.checkpoint, checkpoint.to_transformers)
        tokenizer = load_tokenizer(self.folder, self.options)
        self._lower = self._family.lower or (config.model_type == "siglip" and type(tokenizer).__name__.startswith(_LOWERED))
        place = self.folder / "preprocessor_config.json"
        transform = ImageTransform.from_transformers(_image_settings(self.folder), str(place))
        _check_size(config, transform, place)
        text = getattr(config, "text_config", config)
        limits = (getattr(text, "max_position_embeddings", None), self._family.most_tokens, tokenizer.model_max_length)
        longest = min(limit for limit in limits if limit)
        dim = getattr(config, "projection_dim", None) or getattr(text, "projection_size", None) or text.hidden_size
        return LoadedModel(network, tokenizer, dim, longest, transform)

    def _configuration(self, transformers: Any) -> Any:
        kind = read_json(self.folder / "config.json").get("model_type")
        if kind not in _FAMILIES and not self.options.trust_remote_code:
            raise InputError(
                f"{self.name}: models of type {kind!r} are not known to caplens; it knows {', '.join(_FAMILIES)}. If its"
                " class has get_image_features and get_text_features, and comes with the model, --trust-remote-code runs it."
            )
        try:
            return transformers.AutoConfig.from_pretrained(
                self.folder, trust_remote_code=self.options.trust_remote_code, local_files_only=True
            )
        except Exception as error:
            # Configurations are checked by classes of their own, which raise what they like.
            raise InputError(
                f"{self.name}: transformers {transformers.__version__} cannot read the configuration ({reason(error)}). It is"
                " damaged, or a newer version is needed."
            ) from None

    def read(self, texts: Sequence[str]) -> list[Tokens]:
        if self._lower:
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
        filled, mask = self.padded(ids, 0 if pad is None else pad, length, side)
        return {"input_ids": filled, "attention_mask": mask} if self._family.masked else {"input_ids": filled}

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        tokens = [found.ids for found in self.tokenize(texts)]
        network = self.loaded.network
        project = getattr(network, "text_projection", None) or network.text_model.head
        return self.token_vectors(tokens, lambda: project(network.text_model(**self._text_inputs(tokens)).last_hidden_state))


class NaFlex(HuggingFace):
    """SigLIP 2 that keeps the shape of images: patches in a row, their number as the image's shape wants it."""

    def stack(self, images: Sequence[Pixels]) -> list[Pixels]:
        return [np.array(image) for image in images]

    def _normalised(self, batch: Any) -> None:
        """Images of different shapes are normalised one by one, in `image_features`."""

    def image_features(self, pixels: Any, raw: Any) -> Any:
        transform = self.loaded.transform
        assert transform is not None
        side, most = transform.patch, transform.most_patches
        rows = self.torch.zeros((len(raw), most, side * side * 3), device=self.device, dtype=self._shift.dtype)
        mask = np.zeros((len(raw), most), dtype=np.int64)
        shapes = []
        for number, image in enumerate(raw):
            one = super()._normalised(image[None])[0]
            tall, wide = one.shape[1] // side, one.shape[2] // side
            patches = one.reshape(3, tall, side, wide, side).permute(1, 3, 2, 4, 0).reshape(tall * wide, -1)
            rows[number, : tall * wide] = patches
            mask[number, : tall * wide] = 1
            shapes.append((tall, wide))
        return pooled(
            self.loaded.network.get_image_features(
                pixel_values=rows.to(self.loaded.network.dtype),
                pixel_attention_mask=self._on_device(mask),
                spatial_shapes=self._on_device(np.array(shapes)),
            )
        )


def load(name: ModelName, options: LoadOptions) -> HuggingFace:
    layout = HF._replace(code=options.trust_remote_code)
    folder = find_model(name.model, layout, name.options.get("revision"), offline=options.offline)
    kind = read_json(folder / "config.json").get("model_type")
    return (NaFlex if kind == "siglip2" else HuggingFace)(name, folder, options)


def _check_size(config: Any, transform: ImageTransform, place: Path) -> None:
    """Pixels of another size than the model's would be an error of tensors in the middle of a run."""
    side = getattr(getattr(config, "vision_config", None), "image_size", None)
    if isinstance(side, int) and transform.fit != "patches" and transform.size != (side, side):
        raise InputError(f"{place}: images become {transform.size} pixels, but the model takes {(side, side)}. Get it again.")


def pooled(features: Any) -> Any:
    """transformers 4 returns the tensor, 5 an object that holds it."""
    return getattr(features, "pooler_output", features)


def library(model: str, extra: str = "hf") -> Any:
    """transformers, quiet: caplens says itself what is wrong with a model, and has bars of its own."""
    # A torchvision that does not fit breaks this part of transformers only, and shows when it is used.
    require("transformers.modeling_utils", f"The model {model}", extra)
    transformers = require("transformers", f"The model {model}", extra)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def _load_network(transformers: Any, folder: Path, config: Any, options: LoadOptions) -> Any:
    """The network with all its weights; one that lacks some would score with random numbers."""
    try:
        network, report = transformers.AutoModel.from_pretrained(
            folder, config=config, output_loading_info=True, local_files_only=True, trust_remote_code=options.trust_remote_code
        )
    except Exception as error:
        # Damaged files, wrong shapes and unsafe pickles all raise something else.
        told = next((sentence for words, sentence in _TOLD.items() if words in str(error)), reason(error))
        raise InputError(f"{folder}: the model cannot be loaded ({told}). Get it again.") from None
    missing = [key for key in report["missing_keys"] if not key.endswith("position_ids")]
    if missing:
        raise InputError(f"{folder}: {len(missing)} weights of the model are missing, {missing[0]} among them. Get it again.")
    return network.float()


def load_tokenizer(folder: Path, options: LoadOptions) -> Any:
    transformers = require("transformers", "Its tokenizer", "hf")
    try:
        return transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=options.trust_remote_code
        )
    except Exception as error:
        # Tokenizers of many libraries are behind this.
        kind = type(error).__name__
        raise InputError(f"{folder}: its tokenizer cannot be loaded ({kind}: {reason(error)}). Get the model again.") from None


def read_texts(tokenizer: Any, texts: Sequence[str], most: int) -> list[Tokens]:
    """Token numbers with the tokenizer's own markers; a longer text is cut by the tokenizer, which keeps the end marker."""
    whole = _token_numbers(tokenizer, list(texts))
    long = [index for index, ids in enumerate(whole) if len(ids) > most]
    made = [Tokens(ids, False) for ids in whole]
    if long:
        cut = tokenizer([texts[index] for index in long], truncation=True, max_length=most)["input_ids"]
        for index, ids in zip(long, cut, strict=True):
            made[index] = Tokens(ids, True)
    return made


def _token_numbers(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        numbers: list[list[int]] = tokenizer(texts, truncation=False, padding=False, verbose=False)["input_ids"]
        return numbers
    # What transformers adds to its own tokenizer's answer takes more time than the answer.
    backend.no_truncation()
    backend.no_padding()
    return [encoding.ids for encoding in backend.encode_batch(texts)]


def _image_settings(folder: Path) -> dict[str, Any]:
    """How the model wants images. transformers 5 keeps it inside `processor_config.json`."""
    place = folder / "preprocessor_config.json"
    if not place.is_file() and (folder / "processor_config.json").is_file():
        inside = read_json(folder / "processor_config.json").get("image_processor")
        if isinstance(inside, dict):
            return inside
    return read_json(place)
