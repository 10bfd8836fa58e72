"""`st:` models of sentence-transformers: a text model whose images another model encodes, or a CLIP for both."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from caplens.arrays import Vectors
from caplens.backbones.base import Backbone, Tokens
from caplens.backbones.hf import HuggingFace, read_texts
from caplens.backbones.hub import ST, Layout, find_model, fingerprint, model_files, read_json
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.names import ModelName
from caplens.backbones.pretrained import library, open_sentence_transformer
from caplens.backbones.torch_backbone import LoadedModel, PairedTextBackbone
from caplens.data.files import Source
from caplens.data.formats.json_document import read_document
from caplens.data.replacing import is_special
from caplens.errors import CaplensError, InputError, option, reason

_OPENING = ("_args", "_kwargs")
"""The end of settings that are passed on to what opens files."""
_IMAGE_MODELS = {"clip-vit-b-32-multilingual-v1": "st:sentence-transformers/clip-ViT-B-32"}
"""The end of the text model's name -> the image model."""


class SentenceTransformer(PairedTextBackbone):
    def __init__(self, name: ModelName, folder: Path, image: Backbone, options: LoadOptions) -> None:
        self.folder = folder
        digest = fingerprint(model_files(folder, _layout(options)), "st", 1, options.dtype, image.fingerprint)
        super().__init__(name.full, digest, image, options)

    def load(self) -> LoadedModel:
        library(self.name, "st")
        for path in self.folder.rglob("*"):
            if is_special(path):
                raise InputError(f"{path}: this is no file, but a device or a pipe. Get the model again.")
        if not self.options.trust_remote_code:
            _refuse_code(self.folder)
        try:
            network = open_sentence_transformer(self.folder, trust_remote_code=self.options.trust_remote_code)
        except CaplensError:
            raise
        except Exception as error:
            # Each module type has its own loader and errors.
            raise InputError(f"{self.name}: sentence-transformers cannot load it ({reason(error)}).") from None
        network.float()
        # Newer versions have this name for get_sentence_embedding_dimension.
        get_dimension = getattr(network, "get_embedding_dimension", None) or network.get_sentence_embedding_dimension
        dim = int(get_dimension())
        self.check_dimensions(dim)
        return LoadedModel(network, network.tokenizer, dim, int(network.max_seq_length), None)

    def read(self, texts: Sequence[str]) -> list[Tokens]:
        return read_texts(self.loaded.tokenizer, [text.strip() for text in texts], self.max_tokens)

    def _outputs(self, ids: Sequence[Sequence[int]]) -> Any:
        padded, mask = self.padded(ids, self.loaded.tokenizer.pad_token_id)
        return self.loaded.network({"input_ids": padded, "attention_mask": mask})

    def text_features(self, ids: Sequence[Sequence[int]]) -> Any:
        return self._outputs(ids)["sentence_embedding"]

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """Token states passed through the layers after the pooling, as the sentence's mean is."""
        tokens = [text_tokens.ids for text_tokens in self.tokenize(texts)]

        def forward() -> Any:
            states = self._outputs(tokens)["token_embeddings"]
            for module in list(self.loaded.network)[2:]:
                states = module({"sentence_embedding": states})["sentence_embedding"]
            return states

        return self.token_vectors(tokens, forward)


def load(name: ModelName, options: LoadOptions, load_image_model: Callable[[str], Backbone]) -> Backbone:
    """The model of a name in the family `st`."""
    folder = find_model(name.model, _layout(options), name.options.get("revision"), offline=options.offline)
    first = _read_modules(folder)[0]
    if str(first.get("type", "")).rpartition(".")[2] == "CLIPModel":
        part = folder / str(first.get("path", ""))
        if not part.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{folder / 'modules.json'}: {str(first.get('path'))!r} is outside the model's folder.")
        return HuggingFace(name, part, options)
    return SentenceTransformer(name, folder, load_image_model(name.image_model(_IMAGE_MODELS)), options)


def _layout(options: LoadOptions) -> Layout:
    return ST._replace(code=options.trust_remote_code)


def _refuse_code(folder: Path) -> None:
    """Raise an error if the model names classes outside its library, or says how files are opened.

    Versions before 6 run classes of a local folder unasked, and pass options on to what unpickles.
    """
    for path in folder.rglob("*config*.json"):
        settings = read_json(path)
        opening = next((name for name in settings if name.endswith(_OPENING) and settings[name]), None)
        if opening is not None:
            raise InputError(
                f"{path}: {opening!r} says how the model's files are opened, which only a trusted model may."
                f" {option('trust_remote_code', 'True')} allows it."
            )
    classes = {str(module.get("type", "")): "sentence_transformers." for module in _read_modules(folder)}
    for path in folder.rglob("config.json"):
        function = read_json(path).get("activation_function")
        if function is not None:
            classes[str(function)] = "torch.nn."
    for path in folder.rglob("router_config.json"):
        types = read_json(path).get("types")
        classes |= {str(name): "sentence_transformers." for name in (types.values() if isinstance(types, dict) else [types])}
    foreign = next((name for name, package in classes.items() if not name.startswith(package)), None)
    if foreign is not None:
        raise InputError(
            f"{folder}: the model uses {foreign!r}, which is code of another package or of its own."
            f" {option('trust_remote_code', 'True')} runs it."
        )


def _read_modules(folder: Path) -> list[dict[str, Any]]:
    path = folder / "modules.json"
    try:
        with Source(path) as source:
            modules = read_document(source)
    except InputError:
        raise InputError(f"{path}: the file is missing or not JSON, so this is not a sentence-transformers model.") from None
    if not isinstance(modules, list) or not modules or not isinstance(modules[0], dict):
        raise InputError(f"{path}: a list of modules is expected. Get the model again.")
    return modules
