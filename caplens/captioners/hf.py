"""Captioners of transformers: BLIP, BLIP-2, GIT and encoder-decoder models, and models that are asked in words.

Those are chat models (LLaVA, Qwen-VL, Idefics, …), by their own template, and PaliGemma and Florence-2, by their task words.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from PIL.Image import Image

from caplens.backbones.hub import MCLIP as SEQUENCE_TO_SEQUENCE
from caplens.backbones.hub import Layout, ensure_unchanged, find_model, fingerprint, model_files, read_json
from caplens.backbones.load_options import DTYPES, LoadOptions
from caplens.backbones.pretrained import library, open_pretrained
from caplens.backbones.torch_backbone import choose_device
from caplens.captioners.base import ImageCaptions, SearchOptions, language_not_written
from caplens.captioners.prompts import prompt_for
from caplens.data.languages import base_language
from caplens.errors import InputError, option, reason
from caplens.libraries import require
from caplens.translation.base import Hypothesis

_ENGLISH_ONLY = frozenset({"blip", "blip-2", "git", "instructblip", "florence2"})
"""Types of models, in their configuration, that write English only."""
_TASK_WORDS = {"florence2": "<CAPTION>", "paligemma": "caption {code}"}
"""Type of a model -> what it is asked; `{code}` is the code of the language."""
LAYOUT = Layout(
    (("config.json",), ("preprocessor_config.json", "processor_config.json", "image_processor_config.json")),
    SEQUENCE_TO_SEQUENCE.weights,
)


class _Loaded(NamedTuple):
    """PyTorch, what prepares images and words, what turns tokens into text, the network, and its device."""

    torch: Any
    processor: Any
    tokenizer: Any
    network: Any
    device: str


class HuggingFaceCaptioner:
    """An image-to-text model of transformers.

    Parameters
    ----------
    model
        Its name on the hub, or its folder.
    search
        How captions are searched.
    options
        How it is loaded.
    """

    def __init__(self, model: str, search: SearchOptions, options: LoadOptions | None = None) -> None:
        self.name, self._search, self._options = f"hf:{model}", search, options or LoadOptions()
        self.licence = "that of the model"
        self._folder = find_model(model, LAYOUT, offline=self._options.offline)
        self._kind = str(read_json(self._folder / "config.json").get("model_type"))
        facts = ("captioner", 1, search.beams, search.longest, search.question, self._options.dtype)
        self.fingerprint = fingerprint(model_files(self._folder, LAYOUT), *facts)
        self._loaded: _Loaded | None = None

    def check_language(self, lang: str) -> None:
        if self._kind in _ENGLISH_ONLY and base_language(lang) != "en":
            raise language_not_written(self.name, lang, ["en"])

    def load(self) -> "_Loaded":
        """Open the model, if it is not open yet."""
        if self._loaded is None:
            transformers = library(self.name)
            torch = require("torch", "Describing images", "hf")
            device = choose_device(self._options.device, torch)
            how = {"trust_remote_code": self._options.trust_remote_code, "local_files_only": True}
            try:
                processor = tokenizer = open_pretrained(transformers.AutoProcessor, self._folder, **how)
                if not hasattr(processor, "image_processor"):
                    # Encoder-decoder models have two of their own in place of one processor.
                    processor = open_pretrained(transformers.AutoImageProcessor, self._folder, **how)
                    tokenizer = open_pretrained(transformers.AutoTokenizer, self._folder, **how)
                network = open_pretrained(
                    transformers.AutoModelForImageTextToText, self._folder, use_safetensors=True,
                    dtype=getattr(torch, DTYPES[self._options.dtype]), **how,
                )  # fmt: skip
            except Exception as error:
                # Damaged files and unsafe pickles raise errors of many types.
                raise InputError(f"{self.name}: transformers cannot load this captioner ({reason(error)}).") from None
            ensure_unchanged(self.fingerprint)
            self._loaded = _Loaded(torch, processor, tokenizer, network.to(device).eval(), device)
        return self._loaded

    def caption(self, images: Sequence[Image], lang: str, n: int) -> list[ImageCaptions]:
        self.check_language(lang)
        torch, processor, tokenizer, network, device = self.load()
        beams = max(n, self._search.beams)
        search = {"num_beams": beams, "num_return_sequences": n, "max_new_tokens": self._search.longest, "do_sample": False}
        try:
            inputs = self._inputs(processor, images, lang).to(device, network.dtype)
            with torch.inference_mode():
                output = network.generate(**inputs, **search, return_dict_in_generate=True, output_scores=True)
        except torch.OutOfMemoryError:
            raise InputError(
                f"{self.name}: the memory of {device} is too small; use fewer images at a time ({option('batch')}) or beams"
                f" ({option('beams')})."
            ) from None
        except (IndexError, KeyError, RuntimeError, TypeError, ValueError, AttributeError) as error:
            # A processor, configuration and weights that do not belong together.
            raise InputError(
                f"{self.name}: transformers cannot caption with this model ({reason(error)}). Get it again."
            ) from None
        asked = inputs["input_ids"].shape[1] if "input_ids" in inputs and not network.config.is_encoder_decoder else 0
        texts = tokenizer.batch_decode(output.sequences[:, asked:], skip_special_tokens=True)
        scores = output.sequences_scores.float().tolist() if beams > 1 else [None] * len(texts)
        hypotheses = [Hypothesis(" ".join(text.split()), score) for text, score in zip(texts, scores, strict=True)]
        return [ImageCaptions.of(hypotheses[place * n : (place + 1) * n]) for place in range(len(images))]

    def _inputs(self, processor: Any, images: Sequence[Image], lang: str) -> Any:
        """What the network gets: the images and, of models that are asked in words, the words."""
        if getattr(processor, "chat_template", None):
            prompt = prompt_for(lang, self._search.question)
            content = [{"type": "image"}, {"type": "text", "text": prompt}]
            text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
            return processor(images=list(images), text=[text] * len(images), return_tensors="pt", padding=True)
        words = self._search.question or _TASK_WORDS.get(self._kind)
        if words is None:
            return processor(images=list(images), return_tensors="pt")
        text = words.replace("{code}", base_language(lang))
        return processor(images=list(images), text=[prompt_for(lang, text)] * len(images), return_tensors="pt", padding=True)
