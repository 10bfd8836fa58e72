"""Translators of transformers: M2M100, NLLB, mBART-50, Opus-MT and MADLAD, by beam search."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from caplens.backbones.hub import MCLIP as SEQUENCE_TO_SEQUENCE
from caplens.backbones.hub import Layout, ensure_unchanged, find_model, fingerprint, model_files, read_json
from caplens.backbones.load_options import DTYPES, LoadOptions
from caplens.backbones.pretrained import library, open_pretrained
from caplens.backbones.torch_backbone import choose_device
from caplens.errors import InputError, option, reason
from caplens.libraries import require
from caplens.translation.base import Hypothesis, Translations, unknown_language
from caplens.translation.language_codes import OPUS_THREE_LETTERS, TABLES, names_of

_TYPES = {"m2m_100": "m2m100", "mbart": "mbart", "marian": "opus", "t5": "madlad"}
"""The type of a model in its configuration -> its family."""
_BEAMS_AT_ONCE = {"cpu": 400, "cuda": 6400}
"""Type of device -> beams that are searched together: texts times beams. Fewer where its memory is too small."""
LONGEST_OUTPUT = 128
"""Tokens of a translation, whatever else is translated with it."""
LAYOUT = Layout((("config.json",), (*SEQUENCE_TO_SEQUENCE.required[1], "source.spm", "vocab.json")), SEQUENCE_TO_SEQUENCE.weights)


class TranslationPlan(NamedTuple):
    """How a model is told which languages to translate from and to."""

    prefix: str
    """Before each text."""
    forced: int | None = None
    """The first token of each translation."""


def too_long(tokens: int, limit: int) -> Translations | None:
    """Why a text is not translated, if it is longer than the model takes."""
    return Translations(error=f"it has {tokens:,} tokens, and the translator takes {limit:,}") if tokens > limit else None


class HuggingFaceTranslator:
    """A sequence-to-sequence model of transformers.

    Parameters
    ----------
    model
        Its name on the hub, or its folder.
    beams
        Beams of the search; at least as many as translations are asked for.
    options
        How it is loaded.
    """

    def __init__(self, model: str, beams: int = 5, options: LoadOptions | None = None) -> None:
        self.name, self._beams, self._options = f"hf:{model}", beams, options or LoadOptions()
        self._folder = find_model(model, LAYOUT, offline=self._options.offline)
        kind = read_json(self._folder / "config.json").get("model_type")
        if kind not in _TYPES:
            raise InputError(f"{self.name}: models of type {kind!r} do not translate here; there are: {', '.join(_TYPES)}.")
        self._family = _TYPES[str(kind)]
        facts = ("translator", 1, beams, self._options.dtype)
        self.fingerprint = fingerprint(model_files(self._folder, LAYOUT), *facts)
        self._loaded: tuple[Any, Any, Any, str] | None = None
        self._most_beams: int | None = None
        """Beams that the memory holds at once, where it was too small for more."""

    def _load(self) -> tuple[Any, Any, Any, str]:
        """PyTorch, the tokenizer, the network, and its device."""
        if self._loaded is None:
            transformers = library(self.name)
            torch = require("torch", "Translating", "hf")
            device = choose_device(self._options.device, torch)
            try:
                tokenizer = open_pretrained(transformers.AutoTokenizer, self._folder, local_files_only=True)
                network = open_pretrained(
                    transformers.AutoModelForSeq2SeqLM,
                    self._folder,
                    local_files_only=True,
                    dtype=getattr(torch, DTYPES[self._options.dtype]),
                )
            except Exception as error:
                # Damaged files raise errors of many types.
                raise InputError(f"{self.name}: transformers cannot load this model ({reason(error)}).") from None
            ensure_unchanged(self.fingerprint)
            self._loaded = torch, tokenizer, network.to(device).eval(), device
        return self._loaded

    def check_languages(self, source: str, target: str) -> None:
        self.plan(self._load()[1], source, target)

    def plan(self, tokenizer: Any, source: str, target: str) -> "TranslationPlan":
        """How the model is told the languages; an error if it does not know them."""
        if "Nllb" in type(tokenizer).__name__:
            self._family = "nllb"
        if self._family == "opus":
            # The languages of a model for one pair are in its name only, if anywhere.
            return TranslationPlan(self._opus_token(tokenizer, target) if self._opus_targets(tokenizer) else "")
        own, other = self._code(tokenizer, source), self._code(tokenizer, target)
        if self._family == "madlad":
            return TranslationPlan(f"<2{other}> ")
        tokenizer.src_lang = own
        token = tokenizer.get_lang_id(other) if self._family == "m2m100" else tokenizer.convert_tokens_to_ids(other)
        return TranslationPlan("", int(token))

    def _code(self, tokenizer: Any, lang: str) -> str:
        """The model's own code of a language."""
        table, known = TABLES.get(self._family), self._known(tokenizer)
        codes = names_of(lang) if table is None else [table[lang]] if lang in table else []
        for code in codes:
            if code in known:
                return code
        raise unknown_language(self.name, lang, list(known))

    def _known(self, tokenizer: Any) -> set[str]:
        if self._family == "madlad":
            return {token[2:-1] for token in tokenizer.get_vocab() if token.startswith("<2") and token.endswith(">")}
        if self._family == "m2m100":
            return set(tokenizer.lang_code_to_token)
        if self._family == "nllb":
            return {token for token in tokenizer.get_vocab() if token[3:4] == "_" and len(token) == 8}
        return set(tokenizer.lang_code_to_id)

    def _opus_targets(self, tokenizer: Any) -> list[str]:
        return [token[2:-2] for token in tokenizer.get_vocab() if token.startswith(">>") and token.endswith("<<")]

    def _opus_token(self, tokenizer: Any, target: str) -> str:
        targets = self._opus_targets(tokenizer)
        for code in (OPUS_THREE_LETTERS.get(target, target), *names_of(target)):
            if code in targets:
                return f">>{code}<< "
        raise unknown_language(self.name, target, targets)

    def translate(self, texts: Sequence[str], source: str, target: str, n: int) -> list[Translations]:
        torch, tokenizer, network, device = self._load()
        plan = self.plan(tokenizer, source, target)
        beams = max(self._beams, n)
        limit = self._limit(tokenizer, network)
        ids = [tokenizer(plan.prefix + text)["input_ids"] for text in texts]
        results = [too_long(len(row), limit) or Translations() for row in ids]
        forced = {} if plan.forced is None else {"forced_bos_token_id": plan.forced}
        order = sorted((place for place, row in enumerate(ids) if len(row) <= limit), key=lambda place: len(ids[place]))
        search = {**forced, "num_beams": beams, "num_return_sequences": n, "max_new_tokens": min(LONGEST_OUTPUT, limit - 1)}
        start = 0
        while start < len(order):
            places = order[start : start + max(1, self._beams_at_once(device) // beams)]
            batch = tokenizer.pad({"input_ids": [ids[place] for place in places]}, return_tensors="pt").to(device)
            try:
                with torch.inference_mode():
                    output = network.generate(
                        **batch, **search, do_sample=False, return_dict_in_generate=True, output_scores=True
                    )
            except torch.OutOfMemoryError:
                if len(places) == 1:
                    raise InputError(
                        f"{self.name}: the memory of {device} is too small for {beams} beams; use fewer ({option('beams')})."
                    ) from None
                self._most_beams = len(places) * beams // 2
                torch.cuda.empty_cache()
                continue
            except (IndexError, RuntimeError, TypeError, ValueError) as error:
                # A tokenizer, configuration and weights that do not belong together.
                raise InputError(
                    f"{self.name}: transformers cannot translate with this model ({reason(error)}). Get it again."
                ) from None
            start += len(places)
            decoded = tokenizer.batch_decode(output.sequences, skip_special_tokens=True)
            scores = output.sequences_scores.float().tolist() if beams > 1 else [None] * len(decoded)
            hypotheses = [Hypothesis(text.strip(), score) for text, score in zip(decoded, scores, strict=True)]
            for row, place in enumerate(places):
                results[place] = Translations(hypotheses[row * n : (row + 1) * n])
        return results

    def _beams_at_once(self, device: str) -> int:
        return self._most_beams or _BEAMS_AT_ONCE.get(device.partition(":")[0], _BEAMS_AT_ONCE["cpu"])

    def _limit(self, tokenizer: Any, network: Any) -> int:
        """The tokens of a text that the model takes."""
        limits = [tokenizer.model_max_length]
        with suppress(AttributeError):
            limits.append(network.config.max_position_embeddings)
        return int(min(limit for limit in limits if limit))
