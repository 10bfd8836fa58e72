"""The one place that opens anything of transformers, diffusers, sentence-transformers or open_clip.

Such a model may bring Python code. It is run only if the user says so: `trust_remote_code` is always passed, nobody is asked, and
while a model is opened the libraries' own function that imports such code refuses to, whatever a configuration file says.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from caplens.backbones.hub import read_json
from caplens.errors import InputError
from caplens.libraries import require

_IMPORTERS = (
    ("transformers.dynamic_module_utils", "get_class_in_module"),
    ("transformers.integrations.hub_kernels", "get_kernel"),
    ("diffusers.utils.dynamic_modules_utils", "get_class_in_module"),
)
"""The functions, by module and name, that import the code of models, and that of kernels which a configuration names."""
_MOST_LAYERS = 1000
_WEIGHTS_ONLY = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""The environment variable by which PyTorch reads tensors only, whatever it is asked for."""
_allowed: ContextVar[bool | None] = ContextVar("caplens_code", default=None)
"""Whether models may bring code; None where it is not caplens that opens one."""


def library(model: str, extra: str = "hf") -> Any:
    """The transformers package, silenced: caplens reports errors and progress itself."""
    # An incompatible torchvision breaks this module only, and transformers imports it lazily.
    require("transformers.modeling_utils", f"The model {model}", extra)
    transformers = require("transformers", f"The model {model}", extra)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


@contextmanager
def code_of_models(allowed: bool) -> Iterator[None]:
    """While the block runs, code that a model brings is run only if `allowed`."""
    for module, function in _IMPORTERS:
        # Older versions have no kernels.
        if module.partition(".")[0] in sys.modules and find_spec(module) is not None:
            _guard(import_module(module), function)
    token = _allowed.set(allowed)
    before = os.environ.get(_WEIGHTS_ONLY)
    # Whatever a model's settings say, PyTorch unpickles nothing but tensors.
    os.environ[_WEIGHTS_ONLY] = "1"
    try:
        yield
    finally:
        _allowed.reset(token)
        if before is None:
            del os.environ[_WEIGHTS_ONLY]
        else:
            os.environ[_WEIGHTS_ONLY] = before


def _guard(module: Any, function: str) -> None:
    """Make the function that imports code ask `_allowed` first; and never a person, on standard input."""
    if hasattr(module, "TIME_OUT_REMOTE_CODE"):
        module.TIME_OUT_REMOTE_CODE = 0
    import_code: Callable[..., Any] | None = getattr(module, function, None)
    if import_code is None or hasattr(import_code, "guarded"):
        return

    def guarded(*arguments: Any, **options: Any) -> Any:
        if _allowed.get() is False:
            raise ValueError("it brings code of its own, which is not run")
        return import_code(*arguments, **options)

    guarded.guarded = True  # type: ignore[attr-defined]
    setattr(module, function, guarded)


def check_layers(settings: Mapping[Any, Any], name: str) -> None:
    """Raise an error for a configuration of more layers than any model has: building them takes minutes."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            check_layers(value, name)
        elif "layers" in str(key) and isinstance(value, int | float) and value > _MOST_LAYERS:
            raise InputError(f"{name}: {key} is {value}, and no model has more than {_MOST_LAYERS} layers. Get the model again.")


def open_pretrained(kind: Any, source: str | Path, *, trust_remote_code: bool = False, **options: Any) -> Any:
    """What `kind.from_pretrained` loads; `kind` is a class of transformers or diffusers."""
    config = Path(source) / "config.json"
    if config.is_file():
        check_layers(read_json(config), str(config))
    with code_of_models(trust_remote_code):
        return kind.from_pretrained(source, trust_remote_code=trust_remote_code, **options)


def from_configuration(kind: Any, config: Any) -> Any:
    """A model of a configuration, without weights; never one of a class that the configuration brings."""
    check_layers(config.to_dict(), "the model's configuration")
    with code_of_models(False):
        return kind.from_config(config, trust_remote_code=False)


def open_sentence_transformer(folder: Path, *, trust_remote_code: bool) -> Any:
    """A model of sentence-transformers."""
    package = require("sentence_transformers", f"The model {folder}", "st")
    with code_of_models(trust_remote_code):
        return package.SentenceTransformer(str(folder), device="cpu", local_files_only=True, trust_remote_code=trust_remote_code)
