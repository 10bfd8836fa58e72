"""How a model is loaded and run. With the model's name, these options let another process load the same model."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from caplens.errors import InputError

DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""Number formats, and their names in PyTorch."""
_DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?|mps")


@dataclass(frozen=True)
class LoadOptions:
    """How a model is loaded and run.

    Parameters
    ----------
    device
        auto, cpu, cuda, cuda:1 and so on, or mps; auto is a GPU if there is one.
    dtype
        fp32, bf16 or fp16.
    offline
        Whether nothing may be downloaded.
    trust_remote_code
        Whether code that comes with the model may be run.
    """

    device: str = "auto"
    dtype: str = "fp32"
    offline: bool = False
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if not _DEVICE.fullmatch(self.device):
            raise InputError(f"unknown device {self.device!r}; choose from: auto, cpu, cuda, cuda:1 and so on, mps.")
        if self.dtype not in DTYPES:
            raise InputError(f"unknown dtype {self.dtype!r}; choose from: {', '.join(DTYPES)}.")


class BackboneSpec(NamedTuple):
    """A model's name and load options: any process can load the model with `load_backbone(*spec)`."""

    name: str
    options: LoadOptions
