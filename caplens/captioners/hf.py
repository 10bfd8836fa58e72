"""Captioners of transformers: image-to-text models on the hub, or in a folder."""

from collections.abc import Sequence
from typing import Any

from PIL.Image import Image

from caplens.backbones.pretrained import open_pretrained
from caplens.backbones.torch_backbone import choose_device
from caplens.captioners.registry import Captioner
from caplens.errors import InputError, reason
from caplens.libraries import require

_MOST_TOKENS = 40


def load(name: str, *, device: str = "auto") -> Captioner:
    """A captioner by its name on the hub, or by its folder."""
    torch = require("torch", "Describing images", "augment")
    transformers = require("transformers", "Describing images", "augment")
    where = choose_device(device, torch)
    try:
        processor = open_pretrained(transformers.AutoProcessor, name)
        model = open_pretrained(transformers.AutoModelForImageTextToText, name, use_safetensors=True)
        model = model.to(where).eval()
    except Exception as error:
        # A missing network, damaged files and unsafe pickles all raise something else.
        raise InputError(f"{name}: transformers cannot load this captioner ({reason(error)}).") from None

    def describe(images: Sequence[Image]) -> list[str]:
        inputs: Any = processor(images=list(images), return_tensors="pt").to(where)
        with torch.inference_mode():
            generated = model.generate(**inputs, max_new_tokens=_MOST_TOKENS, do_sample=False)
        captions: list[str] = processor.batch_decode(generated, skip_special_tokens=True)
        return captions

    return describe
