"""Translators by name: `hf:ORG/NAME`, `ct2:ORG/NAME`, `endpoint:URL,model=NAME`, `file:PATH`."""

from caplens.backbones.load_options import LoadOptions
from caplens.errors import InputError, option
from caplens.translation.base import Translator

FAMILIES = {
    "hf": "a model of transformers: M2M100, NLLB, mBART-50, Opus-MT, MADLAD (hf:facebook/m2m100_1.2B)",
    "ct2": "the same, run by CTranslate2",
    "endpoint": "a language model behind an OpenAI-compatible server (endpoint:http://localhost:8000/v1,model=NAME)",
    "file": "translations that were made elsewhere, with source, caption and lang (file:translations.jsonl)",
}


def load_translator(name: str, beams: int = 5, options: LoadOptions | None = None) -> Translator:
    """The translator of a name.

    Parameters
    ----------
    name
        `FAMILY:NAME`, with one of `FAMILIES`.
    beams
        Beams of the search, for models that search.
    options
        How a model is loaded.

    Returns
    -------
    Translator
        Which is opened when it is first used.

    Raises
    ------
    InputError
        If there is no such family, or its model cannot be found.
    """
    family, colon, rest = name.partition(":")
    if not colon or family not in FAMILIES or not rest:
        raise InputError(f"unknown translator {name!r}; write FAMILY:NAME, where the family is one of: {', '.join(FAMILIES)}.")
    if family == "endpoint":
        from caplens.translation.endpoint import EndpointTranslator

        if options is not None and options.offline:
            raise InputError(f"{name} sends captions to a server; leave {option('offline')} out to allow that.")
        url, comma, model = rest.partition(",model=")
        if not comma or not model:
            raise InputError(f"{name}: name the model of the endpoint, as in endpoint:{url},model=NAME.")
        return EndpointTranslator(url, model)
    if family == "file":
        from caplens.translation.ready import ReadyTranslations

        return ReadyTranslations(rest)
    if family == "ct2":
        from caplens.translation.ct2 import CTranslate2Translator

        return CTranslate2Translator(rest, beams, options)
    from caplens.translation.hf import HuggingFaceTranslator

    return HuggingFaceTranslator(rest, beams, options)
