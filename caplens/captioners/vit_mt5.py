"""Captioners of an image tower and mT5, from the folder that `caplens train vit-mt5` writes.

The folder has `vit` and `mt5`, each as transformers saves it, the projection between them, and `captioner.json`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from PIL.Image import Image

from caplens.backbones.hub import Layout, ensure_unchanged, find_model, fingerprint, read_json
from caplens.backbones.load_options import DTYPES, LoadOptions
from caplens.backbones.manifest import check_manifest
from caplens.backbones.pretrained import library, open_pretrained
from caplens.backbones.torch_backbone import choose_device
from caplens.captioners.base import ImageCaptions, SearchOptions, language_not_written
from caplens.data.languages import base_language
from caplens.errors import InputError, reason
from caplens.libraries import require
from caplens.translation.base import Hypothesis

VIT, MT5, PROJECTION, SETTINGS = "vit", "mt5", "projection.safetensors", "captioner.json"
LAYOUT = Layout(((PROJECTION,), (SETTINGS,)))


class Parts(NamedTuple):
    """The network, what prepares images, and the tokenizer."""

    network: Any
    images: Any
    tokenizer: Any


def open_parts(vit: Path, mt5: Path, dtype: str = "fp32") -> Parts:
    """The network of a vision transformer and an mT5, by their folders, with a random projection between them."""
    transformers, torch = library(str(vit)), require("torch", "Captioning with mT5", "hf")
    from caplens.captioners.vit_mt5_network import VitMt5

    how = {"local_files_only": True, "dtype": getattr(torch, DTYPES[dtype])}
    try:
        towers = (
            open_pretrained(transformers.AutoModel, vit, use_safetensors=True, **how),
            open_pretrained(transformers.AutoModelForSeq2SeqLM, mt5, use_safetensors=True, **how),
        )
        network = VitMt5(*(getattr(tower, "vision_model", tower) for tower in towers))
        return Parts(
            network.to(how["dtype"]),
            open_pretrained(transformers.AutoImageProcessor, vit, local_files_only=True),
            open_pretrained(transformers.AutoTokenizer, mt5, local_files_only=True),
        )
    except Exception as error:
        # Damaged files, other models, and unsafe pickles raise errors of many types.
        raise InputError(f"{vit}, {mt5}: these are not a vision transformer and an mT5 ({reason(error)}).") from None


class VitMt5Captioner:
    """A captioner of an image tower and mT5.

    Parameters
    ----------
    folder
        Its folder.
    search
        How captions are searched.
    options
        How it is loaded.
    """

    def __init__(self, folder: str, search: SearchOptions, options: LoadOptions | None = None) -> None:
        self.name, self._search, self._options = f"vit-mt5:{folder}", search, options or LoadOptions()
        self._folder = find_model(folder, LAYOUT, offline=True)
        check_manifest(self._folder)
        settings = read_json(self._folder / SETTINGS)
        self.languages = tuple(str(lang) for lang in settings.get("languages", ()))
        self.licence = str(settings.get("licence", "that of its parts"))
        parts = [path for path in sorted(self._folder.rglob("*")) if path.is_file()]
        self.fingerprint = fingerprint(parts, "vit-mt5", 1, search.beams, search.longest, self._options.dtype)
        self._loaded: Parts | None = None

    def check_language(self, lang: str) -> None:
        if base_language(lang) not in self.languages:
            raise language_not_written(self.name, lang, self.languages)

    def load(self) -> Parts:
        """Open the model, if it is not open yet."""
        if self._loaded is None:
            torch = require("torch", "Captioning with mT5", "hf")
            load_file = require("safetensors.torch", "Captioning with mT5", "hf").load_file
            parts = open_parts(self._folder / VIT, self._folder / MT5, self._options.dtype)
            try:
                parts.network.project.load_state_dict(load_file(self._folder / PROJECTION))
            except Exception as error:
                # safetensors and PyTorch have errors of their own for damage and for other shapes.
                raise InputError(
                    f"{self._folder / PROJECTION}: it does not fit ({reason(error)}). Get the model again."
                ) from None
            ensure_unchanged(self.fingerprint)
            self._loaded = parts._replace(network=parts.network.to(choose_device(self._options.device, torch)).eval())
        return self._loaded

    def caption(self, images: Sequence[Image], lang: str, n: int) -> list[ImageCaptions]:
        self.check_language(lang)
        network, processor, tokenizer = self.load()
        torch = require("torch", "Captioning with mT5", "hf")
        beams, weight = max(n, self._search.beams), network.project.weight
        with torch.inference_mode():
            pixels = processor(images=list(images), return_tensors="pt")["pixel_values"].to(weight.device, weight.dtype)
            langs = language_tokens(tokenizer, [base_language(lang)] * len(images)).to(weight.device)
            output = network.mt5.generate(
                **network.inputs(pixels, langs["input_ids"], langs["attention_mask"]), num_beams=beams, num_return_sequences=n,
                max_new_tokens=self._search.longest, do_sample=False, return_dict_in_generate=True, output_scores=True,
            )  # fmt: skip
        texts = tokenizer.batch_decode(output.sequences, skip_special_tokens=True)
        scores = output.sequences_scores.float().tolist() if beams > 1 else [None] * len(texts)
        hypotheses = [Hypothesis(" ".join(text.split()), score) for text, score in zip(texts, scores, strict=True)]
        return [ImageCaptions.of(hypotheses[place * n : (place + 1) * n]) for place in range(len(images))]


def language_tokens(tokenizer: Any, langs: Sequence[str]) -> Any:
    """The codes of languages as token ids, padded."""
    return tokenizer(list(langs), return_tensors="pt", padding=True, add_special_tokens=False)
