"""`st:` models of sentence-transformers that share a space with images: a text model and its image twin, or a CLIP for both."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from caplens.arrays import Vectors
from caplens.backbones.base import Backbone, Tokens
from caplens.backbones.hf import HuggingFace, library, read_texts
from caplens.backbones.hub import ST, Layout, find_model, fingerprint, model_files
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.names import ModelName
from caplens.backbones.torch_backbone import LoadedModel, PairedTextBackbone
from caplens.errors import InputError, reason
from caplens.libraries import require

_TWINS = {"clip-vit-b-32-multilingual-v1": "st:sentence-transformers/clip-ViT-B-32"}
"""The image model of each text model, by the end of its name."""


class SentenceTransformer(PairedTextBackbone):
    def __init__(self, name: ModelName, folder: Path, image: Backbone, options: LoadOptions) -> None:
        self.folder = folder
        made = fingerprint(model_files(folder, _layout(options)), "st", 1, options.dtype, image.fingerprint)
        super().__init__(name.full, made, image, options)

    def load(self) -> LoadedModel:
        library(self.name, "st")
        sentence_transformers = require("sentence_transformers", f"The model {self.name}", "st")
        try:
            network = sentence_transformers.SentenceTransformer(
                str(self.folder), device="cpu", local_files_only=True, trust_remote_code=self.options.trust_remote_code
            )
        except Exception as error:
            # Each of its modules loads in its own way.
            raise InputError(f"{self.name}: sentence-transformers cannot load it ({reason(error)}).") from None
        network.float()
        renamed = getattr(network, "get_embedding_dimension", None)
        dim = int((renamed or network.get_sentence_embedding_dimension)())
        self.check_dimensions(dim)
        return LoadedModel(network, network.tokenizer, dim, int(network.max_seq_length), None)

    def read(self, texts: Sequence[str]) -> list[Tokens]:
        return read_texts(self.loaded.tokenizer, [text.strip() for text in texts], self.max_tokens)

    def _outputs(self, ids: Sequence[Sequence[int]]) -> Any:
        filled, mask = self.padded(ids, self.loaded.tokenizer.pad_token_id)
        return self.loaded.network({"input_ids": filled, "attention_mask": mask})

    def text_features(self, ids: Sequence[Sequence[int]]) -> Any:
        return self._outputs(ids)["sentence_embedding"]

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """Each token goes where a sentence of it alone would: through the layers behind the pooling."""
        tokens = [found.ids for found in self.tokenize(texts)]

        def states() -> Any:
            found = self._outputs(tokens)["token_embeddings"]
            for module in list(self.loaded.network)[2:]:
                found = module({"sentence_embedding": found})["sentence_embedding"]
            return found

        return self.token_vectors(tokens, states)


def load(name: ModelName, options: LoadOptions, other: Callable[[str], Backbone]) -> Backbone:
    """`other` loads the image twin by its name."""
    folder = find_model(name.model, _layout(options), name.options.get("revision"), offline=options.offline)
    first = _modules(folder)[0]
    if str(first.get("type", "")).rpartition(".")[2] == "CLIPModel":
        return HuggingFace(name, folder / str(first.get("path", "")), options)
    return SentenceTransformer(name, folder, other(name.image_model(_TWINS)), options)


def _layout(options: LoadOptions) -> Layout:
    return ST._replace(code=options.trust_remote_code)


def _modules(folder: Path) -> list[dict[str, Any]]:
    place = folder / "modules.json"
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{place}: the file is missing or no JSON, so this is no model of sentence-transformers.") from None
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        raise InputError(f"{place}: a list of modules is expected. Get the model again.")
    return found
