"""`openclip:` models of open_clip: `ARCH/PRETRAINED`, models on the hub (`hf-hub:ORG/NAME`), or a folder in the hub's layout."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from caplens.arrays import Vectors
from caplens.backbones import checkpoint
from caplens.backbones.base import Tokens
from caplens.backbones.hf import read_texts
from caplens.backbones.hub import CONFIGURATION, OPEN_CLIP, VOCABULARY, find_model, fingerprint, model_files, read_json, watch
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.names import ModelName
from caplens.backbones.nllb import nllb_code
from caplens.backbones.pretrained import code_of_models, library
from caplens.backbones.torch_backbone import LoadedModel, TorchBackbone
from caplens.backbones.transform import ImageTransform
from caplens.errors import CaplensError, InputError, reason
from caplens.libraries import require
from caplens.progress import logger

_HUB_PREFIX = "hf-hub:"
_FOLDER_PREFIX = "local-dir:"
_NO_LIMIT = 1 << 30


class OpenCLIP(TorchBackbone):
    """An open_clip model. `model` and `pretrained` are arguments of `open_clip.create_model`, `files` those that it reads."""

    def __init__(self, name: ModelName, model: str, pretrained: str | None, files: list[Path], options: LoadOptions) -> None:
        self.checkpoint = checkpoint.find(name)
        self._model, self._pretrained = model, pretrained
        facts = ("openclip", 1, options.dtype, None if pretrained is None else model, checkpoint.fact(self.checkpoint))
        super().__init__(name.full, fingerprint(files, *facts), options)
        watch(self.fingerprint, self.checkpoint)
        self.reads_language = "nllb" in str(self._configuration.get("text_cfg", {}).get("hf_model_name", "")).lower()

    @property
    def folder(self) -> Path | None:
        """The folder of its files, if they are all in one."""
        return Path(self._model.removeprefix(_FOLDER_PREFIX)) if self._model.startswith(_FOLDER_PREFIX) else None

    def settings(self) -> dict[str, Any]:
        """The content of the `open_clip_config.json` that describes it in a folder of its own."""
        if self.folder is not None:
            return read_json(self.folder / "open_clip_config.json")
        gelu = {"quick_gelu": True} if self._quick_gelu() else {}
        images = _library(self.name).get_model_preprocess_cfg(self.loaded.network)
        return {"model_cfg": {**self._configuration, **gelu}, "preprocess_cfg": images}

    def load(self) -> LoadedModel:
        open_clip = _library(self.name)
        library(self.name, "openclip")
        try:
            with _hub_access(self.options), code_of_models(self.options.trust_remote_code):
                network = open_clip.create_model(
                    self._model,
                    self._pretrained,
                    require_pretrained=True,
                    force_quick_gelu=self._quick_gelu(),
                    **self._base_configuration(),
                )
                tokenizer = self._tokenizer(open_clip)
            transform = ImageTransform.from_open_clip(open_clip.get_model_preprocess_cfg(network))
        except CaplensError:
            raise
        except Exception as error:
            # Damaged files, wrong shapes, unsafe pickles and a missing network all raise different errors.
            raise InputError(f"{self.name}: open_clip cannot load it ({reason(error)}).") from None
        if self.checkpoint is not None:
            checkpoint.apply(network, self.checkpoint)
        self._text_tower = getattr(network, "text", network)
        self._causal = _is_causal(self._text_tower)
        return LoadedModel(network, tokenizer, _dim(network), tokenizer.context_length, transform)

    @cached_property
    def _configuration(self) -> dict[str, Any]:
        """The `model_cfg` of open_clip."""
        if self.folder is None:
            return _library(self.name).get_model_config(self._model) or {}
        configuration = read_json(self.folder / "open_clip_config.json").get("model_cfg")
        if not isinstance(configuration, dict):
            raise InputError(f"{self.name}: its open_clip_config.json has no 'model_cfg'. Get the model again.")
        return configuration

    def _quick_gelu(self) -> bool:
        """Whether the weights were trained with QuickGELU, even if the architecture's name does not say so, as with OpenAI's."""
        if self._pretrained is None:
            return False
        tag = _library(self.name).get_pretrained_cfg(self._model, self._pretrained)
        trained, built = bool(tag.get("quick_gelu")), bool(self._configuration.get("quick_gelu"))
        if tag and built and not trained:
            plain = self._model.removesuffix("-quickgelu")
            raise InputError(
                f"{self.name}: its weights were trained without QuickGELU; the right name is openclip:{plain}/{self._pretrained}"
            )
        return trained

    def _base_configuration(self) -> dict[str, Any]:
        """The text tower's configuration with a local folder for its base model, of which only the shape is needed."""
        if self.folder is None:
            return {}
        text = self._configuration.get("text_cfg", {})
        base = text.get("hf_model_name")
        if not base:
            return {}
        subfolder = self.folder / base
        folder = subfolder if subfolder.is_dir() else find_model(base, CONFIGURATION, offline=self.options.offline)
        return {"text_cfg": {**text, "hf_model_name": str(folder), "hf_model_pretrained": False}}

    def _tokenizer(self, open_clip: Any) -> Any:
        """The model's tokenizer; if it is not in the model's folder, it is looked up by its name."""
        text = self._configuration.get("text_cfg", {})
        name = text.get("hf_tokenizer_name")
        if self.folder is None or not name or VOCABULARY.missing(self.folder) is None:
            return open_clip.get_tokenizer(self._model)
        folder = find_model(name, VOCABULARY, offline=self.options.offline)
        length = text.get("context_length", open_clip.tokenizer.DEFAULT_CONTEXT_LENGTH)
        # Whether code is trusted is not for the model to say.
        kwargs = {key: value for key, value in text.get("tokenizer_kwargs", {}).items() if key != "trust_remote_code"}
        return open_clip.tokenizer.HFTokenizer(
            str(folder), context_length=length, tokenizer_mode=text.get("tokenizer_mode"), **kwargs
        )

    def tokenize(self, texts: Sequence[str], langs: Sequence[str] | None = None) -> list[Tokens]:
        if not self.reads_language:
            return super().tokenize(texts)
        codes = [nllb_code(lang) for lang in langs or ["en"] * len(texts)]
        tokens: dict[int, Tokens] = {}
        for code in dict.fromkeys(codes):
            # The language set by open_clip's own method is reset by transformers 5 before the next text.
            self.loaded.tokenizer.tokenizer.src_lang = code
            rows = [row for row, row_code in enumerate(codes) if row_code == code]
            tokens |= zip(rows, super().tokenize([texts[row] for row in rows]), strict=True)
        return [tokens[row] for row in range(len(texts))]

    def read(self, texts: Sequence[str]) -> list[Tokens]:
        tokenizer = self.loaded.tokenizer
        if hasattr(tokenizer, "tokenizer") and not (tokenizer.tokenizer_mode or tokenizer.strip_sep_token):
            cleaned = [tokenizer.clean_fn(text) for text in texts]
            return read_texts(tokenizer.tokenizer, cleaned, self.loaded.max_tokens)
        rows = tokenizer(list(texts)).tolist()
        if not hasattr(tokenizer, "encode"):
            lengths = [len(tokens.ids) for tokens in read_texts(tokenizer.tokenizer, texts, _NO_LIMIT)]
            return [Tokens(row, length > len(row)) for row, length in zip(rows, lengths, strict=True)]
        lengths = [len(tokenizer.encode(text)) + 2 for text in texts]
        return [Tokens(row[:length], length > len(row)) for row, length in zip(rows, lengths, strict=True)]

    def image_features(self, pixels: Any, raw: Any) -> Any:
        return self.loaded.network.encode_image(pixels)

    def text_features(self, ids: Sequence[Sequence[int]]) -> Any:
        if not self._causal:
            hf_tokenizer = getattr(self.loaded.tokenizer, "tokenizer", None)
            pad = getattr(hf_tokenizer, "pad_token_id", None) or 0
            length = None if hasattr(self._text_tower, "pooler") else self.loaded.max_tokens
            return self.loaded.network.encode_text(self.padded(ids, pad, length)[0])
        padded, states = self._token_states(ids)
        open_clip = _library(self.name)
        pool_type = getattr(self._text_tower, "pool_type", None) or self._text_tower.text_pool_type
        end_marker = getattr(self._text_tower, "eos_id", getattr(self._text_tower, "text_eos_id", None))
        pooled = open_clip.transformer.text_global_pool(states, padded, pool_type, eos_token_id=end_marker)
        return self._project(pooled)

    def _token_states(self, ids: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        """The padded ids and the last states of open_clip's causal text tower.

        It runs on no more positions than the longest text has, because nothing attends to what follows the end marker.
        """
        padded = self.padded(ids, 0)[0]
        length, tower = padded.shape[1], self._text_tower
        dtype = tower.transformer.get_cast_dtype()
        states = tower.token_embedding(padded).to(dtype) + tower.positional_embedding[:length].to(dtype)
        states = tower.transformer(states, attn_mask=tower.attn_mask[:length, :length])
        return padded, tower.ln_final(states)

    def _project(self, states: Any) -> Any:
        projection = self._text_tower.text_projection
        if projection is None:
            return states
        return projection(states) if callable(projection) else states @ projection

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        tokens = [text_tokens.ids for text_tokens in self.tokenize(texts)]
        tower = self._text_tower
        if self._causal:
            return self.token_vectors(tokens, lambda: self._project(self._token_states(tokens)[1]))
        if not hasattr(tower, "pooler"):
            raise CaplensError(f"{self.name}: this text tower of open_clip has no token vectors.")
        padded, mask = self.padded(tokens, tower.config.pad_token_id)
        return self.token_vectors(
            tokens, lambda: tower.proj(tower.transformer(input_ids=padded, attention_mask=mask).last_hidden_state)
        )


def load(name: ModelName, options: LoadOptions) -> OpenCLIP:
    """The model of a name in the family `openclip`."""
    model = name.model
    if model.startswith(_HUB_PREFIX) or Path(model).expanduser().is_dir():
        folder = find_model(model.removeprefix(_HUB_PREFIX), OPEN_CLIP, name.options.get("revision"), offline=options.offline)
        return OpenCLIP(name, f"{_FOLDER_PREFIX}{folder}", None, model_files(folder, OPEN_CLIP), options)
    architecture, slash, pretrained = model.partition("/")
    if not slash:
        raise InputError(
            f"{name.full!r}: name the architecture and its weights, as in openclip:ViT-B-32/laion2b_s34b_b79k, or a model on the"
            " hub, as in openclip:hf-hub:laion/CLIP-ViT-B-32-xlm-roberta-base-laion5B-s13B-b90k."
        )
    return OpenCLIP(name, architecture, *_find_weights(name.full, architecture, pretrained, options), options)


def _find_weights(name: str, architecture: str, pretrained: str, options: LoadOptions) -> tuple[str, list[Path]]:
    """`pretrained` for `open_clip.create_model` (a tag or a file), and the files of the weights, downloaded if needed."""
    open_clip = _library(name)
    if architecture not in open_clip.list_models():
        raise InputError(f"{name}: open_clip has no architecture {architecture!r}.")
    if Path(pretrained).is_file():
        return pretrained, [Path(pretrained)]
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    if pretrained not in tags:
        choice = ", ".join(tags) or "none"
        raise InputError(f"{name}: {pretrained!r} is neither a file nor weights that open_clip lists for it ({choice}).")
    tag = open_clip.get_pretrained_cfg(architecture, pretrained)
    advice = f"Get the file elsewhere and pass it instead of the tag: openclip:{architecture}/FILE"
    if options.offline and not tag.get("hf_hub"):
        raise InputError(f"{name}: these weights are not on the hub, and nothing may be downloaded. {advice}")
    logger.info(f"{name}: looking for the weights in the cache" + ("" if options.offline else ", downloading them if needed"))
    try:
        with _hub_access(options):
            return pretrained, [Path(open_clip.download_pretrained(tag))]
    except Exception as error:
        # The error that a missing network raises depends on the versions of several libraries.
        raise CaplensError(
            f"{name}: its weights are not on this machine and cannot be downloaded ({reason(error)}). {advice}"
        ) from None


@contextmanager
def _hub_access(options: LoadOptions) -> Iterator[None]:
    """While the block runs, open_clip may download files from the hub; with `offline`, it gets cached files only."""
    constants = require("huggingface_hub.constants", "A model from the hub", "openclip")
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or options.offline
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _library(name: str) -> Any:
    return require("open_clip", f"The model {name}", "openclip")


def _is_causal(text: Any) -> bool:
    """Whether tokens after a text's end marker cannot change its vector."""
    pool_type = getattr(text, "pool_type", None) or getattr(text, "text_pool_type", None)
    plain = getattr(text, "cls_emb", None) is None and not getattr(text, "use_pad_mask", False)
    return pool_type in ("argmax", "eos") and plain and getattr(text, "attn_mask", None) is not None


def _dim(network: Any) -> int:
    dim = getattr(network.visual, "output_dim", None) or getattr(getattr(network, "text", None), "output_dim", None)
    return int(dim) if dim else int(network.text_projection.shape[1])
