"""Quality-estimation models: where their files are, and their weights checked key by key, without the packages they came with."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from caplens.backbones.hub import fingerprint, folder_of
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.pretrained import library, open_pretrained
from caplens.backbones.torch_backbone import choose_device, read_weights
from caplens.errors import InputError, option, reason
from caplens.libraries import require
from caplens.metrics.options import ScoringOptions
from caplens.metrics.quality_estimation import Estimates, QualityEstimate, SourcePair

_WEIGHTS = ("model.safetensors", "checkpoints/model.ckpt", "model.ckpt", "pytorch_model.bin")
_SHOWN = 5


class CheckpointEstimate(QualityEstimate):
    """A quality estimate by a model that the user names; subclasses open it, and estimate pairs with it."""

    def __init__(self, model: str | None, options: LoadOptions | None = None, lang: str | None = None) -> None:
        super().__init__(lang)
        self._options = options or LoadOptions()
        self._files = find_files(self.name, model, self._options.dtype)
        self._loaded: tuple[Any, Any, Any, str] | None = None

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Self:
        return cls(options.qe_model, LoadOptions(options.device, "fp32", options.offline), options.lang)

    @abstractmethod
    def run(self, pairs: Sequence[SourcePair]) -> Estimates:
        """The estimates of the network, which is opened first; it and the tokenizer may raise errors of many types."""

    def estimate(self, pairs: Sequence[SourcePair]) -> Estimates:
        try:
            return self.run(pairs)
        except InputError:
            raise
        except Exception as error:
            # A tokenizer, configuration and weights that do not belong together.
            raise InputError(
                f"{self._files.folder}: {self.name} cannot use this model ({reason(error)}). Get all of its files again."
            ) from None

    def signature_fields(self) -> dict[str, object]:
        return {"model": f"{self._files.folder.name}@{self._files.fingerprint[:8]}"}


class ModelFiles(NamedTuple):
    """The folder of a model, its weights, and the hash of both."""

    folder: Path
    weights: Path
    fingerprint: str


def find_files(metric: str, name: str | None, dtype: str) -> ModelFiles:
    """The files of a quality-estimation model, in a folder as `hf download` lays it out."""
    if name is None:
        raise InputError(f"{metric} needs its model: name the folder of it with {option('qe_model', 'FOLDER')}.")
    folder = folder_of(name)
    if folder is None:
        raise InputError(
            f"{name}: there is no such folder. Get the model of {metric} with: hf download ORG/NAME --local-dir FOLDER"
        )
    weights = next((folder / file for file in _WEIGHTS if (folder / file).is_file()), None)
    if weights is None:
        raise InputError(f"{folder}: {' or '.join(_WEIGHTS)} is missing, so this is not a model of {metric}.")
    settings = sorted(path for pattern in ("*.json", "*.yaml", "*.model") for path in folder.glob(pattern) if not path.is_dir())
    return ModelFiles(folder, weights, fingerprint([weights, *settings], metric, 1, dtype))


def encoder_of(files: ModelFiles, encoder: str | None, options: LoadOptions) -> tuple[Any, Any, Any, str]:
    """PyTorch, the tokenizer, the configuration of the encoder, and the device.

    COMET's checkpoints have the weights of the encoder, and neither its tokenizer nor its configuration: these are in the same
    folder, or in that of the encoder.
    """
    transformers, torch = library(str(files.folder)), require("torch", "Estimating quality", "hf")
    folder = files.folder if encoder is None else folder_of(encoder)
    if folder is None or not (folder / "config.json").is_file():
        raise InputError(
            f"{files.folder}: the encoder's config.json and tokenizer are needed beside the checkpoint. Put those of its encoder"
            " there (hf download microsoft/infoxlm-large config.json tokenizer.json sentencepiece.bpe.model)."
        )
    try:
        tokenizer = open_pretrained(transformers.AutoTokenizer, folder, local_files_only=True)
        config = open_pretrained(transformers.AutoConfig, folder, local_files_only=True)
    except Exception as error:
        # Each class of tokenizer and configuration raises errors of its own.
        raise InputError(f"{folder}: transformers cannot read the encoder ({reason(error)}).") from None
    return torch, tokenizer, config, choose_device(options.device, torch)


def weights_of(files: ModelFiles) -> dict[str, Any]:
    """The tensors of the checkpoint by name."""
    return read_weights(files.weights)


def load_strictly(build: Callable[[], Any], weights: Mapping[str, Any], files: ModelFiles, ignored: Sequence[str] = ()) -> Any:
    """The module that `build` makes, with weights; an error that names the keys if they are not those of the module."""
    weights = {key: value for key, value in weights.items() if not key.startswith(tuple(ignored))}
    # Without memory for its numbers at first: a configuration of another model may ask for any amount.
    with require("torch", "Estimating quality", "hf").device("meta"):
        _check_keys(build().state_dict(), weights, files)
    module = build()
    module.load_state_dict(weights)
    return module


def _check_keys(expected: Mapping[str, Any], given: Mapping[str, Any], files: ModelFiles) -> None:
    missing = [key for key in expected if key not in given]
    surplus = [key for key in given if key not in expected]
    shaped = [key for key in expected if key in given and given[key].shape != expected[key].shape]
    problems = {"missing": missing, "unknown": surplus, "of another shape": shaped}
    wrong = {kind: keys for kind, keys in problems.items() if keys}
    if wrong:
        described = "; ".join(
            f"{kind}: {', '.join(keys[:_SHOWN])}{' …' if len(keys) > _SHOWN else ''}" for kind, keys in wrong.items()
        )
        raise InputError(f"{files.weights}: these are not the weights of this model ({described}).")
