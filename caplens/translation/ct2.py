"""CTranslate2: the same models, converted once, several times as fast on a processor."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from caplens.backbones.hub import MANIFEST, find_model, fingerprint, model_files, read_json
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.manifest import check_manifest, write_manifest
from caplens.backbones.pretrained import library, open_pretrained
from caplens.data.cache import cache_folder
from caplens.data.replacing import replacing_folder
from caplens.errors import InputError, reason
from caplens.libraries import require
from caplens.progress import logger
from caplens.translation.base import Hypothesis, Translations
from caplens.translation.hf import LAYOUT, LONGEST_OUTPUT, HuggingFaceTranslator, too_long

_TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_AT_ONCE = 2048
"""Tokens that are translated together."""


class CTranslate2Translator:
    """A model of transformers, run by CTranslate2.

    Parameters
    ----------
    model
        Its name on the hub, or its folder; it is converted once, into the cache of caplens.
    beams
        Beams of the search.
    options
        How it is loaded; `dtype` is the number format of the weights.
    """

    def __init__(self, model: str, beams: int = 5, options: LoadOptions | None = None) -> None:
        self._package = require("ctranslate2", "Translating with CTranslate2", "ctranslate2")
        self._options = options or LoadOptions()
        # Languages and tokens are those of the original model.
        self._original = HuggingFaceTranslator(model, beams, self._options)
        self.name, self._beams = f"ct2:{model}", beams
        self._source = find_model(model, LAYOUT, offline=self._options.offline)
        facts = ("ctranslate2", self._package.__version__, beams, self._options.dtype)
        self.fingerprint = fingerprint(model_files(self._source, LAYOUT), *facts)
        self._loaded: tuple[Any, Any] | None = None

    def check_languages(self, source: str, target: str) -> None:
        self._original.plan(self._load()[0], source, target)

    def _load(self) -> tuple[Any, Any]:
        """The tokenizer and the converted model."""
        if self._loaded is None:
            transformers = library(self.name)
            try:
                tokenizer = open_pretrained(transformers.AutoTokenizer, self._source, local_files_only=True)
                device = "cuda" if self._options.device.startswith("cuda") else "cpu"
                translator = self._package.Translator(str(self._converted()), device=device)
            except InputError:
                raise
            except Exception as error:
                # Both libraries raise errors of many types for damaged files.
                raise InputError(f"{self.name}: CTranslate2 cannot load this model ({reason(error)}).") from None
            self._loaded = tokenizer, translator
        return self._loaded

    def _converted(self) -> Path:
        """The folder of the converted model."""
        folder = cache_folder() / "ctranslate2" / self.fingerprint[:32]
        if _is_whole(folder):
            return folder
        logger.info(f"{self.name}: converting the model, once")
        read_json(self._source / "config.json")
        converter = _converter(self._package, str(self._source))
        folder.parent.mkdir(parents=True, exist_ok=True)
        with replacing_folder(folder) as temporary:
            shutil.rmtree(temporary, ignore_errors=True)
            converter.convert(str(temporary), quantization=_TYPES[self._options.dtype])
            write_manifest(temporary)
        return folder

    def translate(self, texts: Sequence[str], source: str, target: str, n: int) -> list[Translations]:
        tokenizer, translator = self._load()
        plan = self._original.plan(tokenizer, source, target)
        limit = int(tokenizer.model_max_length)
        ids = [tokenizer(plan.prefix + text)["input_ids"] for text in texts]
        results = [too_long(len(row), limit) or Translations() for row in ids]
        places = [place for place, row in enumerate(ids) if len(row) <= limit]
        tokens = [tokenizer.convert_ids_to_tokens(ids[place]) for place in places]
        first = None if plan.forced is None else [[tokenizer.convert_ids_to_tokens(plan.forced)]] * len(tokens)
        outputs = translator.translate_batch(
            tokens,
            target_prefix=first,
            beam_size=max(self._beams, n),
            num_hypotheses=n,
            return_scores=True,
            max_batch_size=_AT_ONCE,
            batch_type="tokens",
            max_decoding_length=min(LONGEST_OUTPUT, limit - 1),
        )
        for place, output in zip(places, outputs, strict=True):
            texts_ = [
                tokenizer.decode(tokenizer.convert_tokens_to_ids(row), skip_special_tokens=True) for row in output.hypotheses
            ]
            results[place] = Translations(
                [Hypothesis(text.strip(), float(score)) for text, score in zip(texts_, output.scores, strict=True)]
            )
        return results


def _is_whole(folder: Path) -> bool:
    """Whether a converted model is there as it was written; a damaged one is converted again."""
    if not (folder / MANIFEST).is_file():
        return False
    try:
        check_manifest(folder)
    except InputError as error:
        logger.warning(str(error))
        return False
    return True


def _converter(package: Any, folder: str) -> Any:
    """CTranslate2's converter, which looks for the languages of M2M100 where transformers 5 does not list them any more."""

    class Converter(package.converters.TransformersConverter):  # type: ignore[misc]
        def load_tokenizer(self, kind: Any, name: str, **options: Any) -> Any:
            tokenizer = super().load_tokenizer(kind, name, **options)
            return _WithLanguages(tokenizer) if hasattr(tokenizer, "lang_code_to_token") else tokenizer

    return Converter(folder, trust_remote_code=False)


class _WithLanguages:
    """A tokenizer of M2M100 that names its languages among its special tokens, by their ids."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    @property
    def special_tokens_map(self) -> dict[str, Any]:
        tokenizer = self._tokenizer
        codes = sorted(tokenizer.lang_code_to_token, key=tokenizer.get_lang_id)
        languages = [tokenizer.lang_code_to_token[code] for code in codes]
        return {**tokenizer.special_tokens_map, "additional_special_tokens": languages}
