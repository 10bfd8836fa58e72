"""The one place that opens anything of transformers, diffusers or sentence-transformers.

Such a model may bring Python code. It is run only if the user says so: `trust_remote_code` is always passed, and nobody is asked.
"""

from pathlib import Path
from typing import Any

from caplens.libraries import require


def library(model: str, extra: str = "hf") -> Any:
    """The transformers package, silenced: caplens reports errors and progress itself."""
    # An incompatible torchvision breaks this module only, and transformers imports it lazily.
    require("transformers.modeling_utils", f"The model {model}", extra)
    transformers = require("transformers", f"The model {model}", extra)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    _never_ask()
    return transformers


def _never_ask() -> None:
    """Where another library opens a model for us, transformers would ask on standard input whether to run its code."""
    dynamic = require("transformers.dynamic_module_utils", "A model of transformers", "hf")
    dynamic.TIME_OUT_REMOTE_CODE = 0


def open_pretrained(kind: Any, source: str | Path, *, trust_remote_code: bool = False, **options: Any) -> Any:
    """What `kind.from_pretrained` loads; `kind` is a class of transformers or diffusers."""
    _never_ask()
    return kind.from_pretrained(source, trust_remote_code=trust_remote_code, **options)


def from_configuration(kind: Any, config: Any) -> Any:
    """A model of a configuration, without weights; never one of a class that the configuration brings."""
    return kind.from_config(config, trust_remote_code=False)


def open_sentence_transformer(folder: Path, *, trust_remote_code: bool) -> Any:
    """A model of sentence-transformers."""
    _never_ask()
    package = require("sentence_transformers", f"The model {folder}", "st")
    return package.SentenceTransformer(str(folder), device="cpu", local_files_only=True, trust_remote_code=trust_remote_code)
