"""Which language a text is in: by its writing system first, and then by a model among the languages that are plausible.

A caption has few words, and a model that may choose among a hundred languages often errs. py3langid, whose weights are inside its
package, is the default (extra `langid`); a file of fastText, such as GlotLID, is another.
"""

import threading
from collections.abc import Sequence
from functools import cache, lru_cache
from math import exp, log
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from caplens.data.languages import CROSSMODAL_3600, base_language, language_names
from caplens.errors import InputError, reason
from caplens.libraries import require
from caplens.text.fasttext_file import read_fasttext_labels
from caplens.text.scripts import script_of, scripts_of

_FEATURE, _EXTRA = "Identifying languages", "langid"
_opening = threading.Lock()
_PREFIX = "__label__"
_MOST_LABELS = 200
_ISO_639_3 = dict(
    pair.split(":")
    for pair in """
    ara:ar arb:ar ben:bn bod:bo bul:bg cat:ca ces:cs cmn:zh dan:da deu:de ell:el eng:en est:et eus:eu fas:fa pes:fa fin:fi
    fra:fr glg:gl guj:gu heb:he hin:hi hrv:hr hun:hu hye:hy ind:id isl:is ita:it jpn:ja kan:kn kat:ka khk:mn khm:km kor:ko
    lao:lo lav:lv lit:lt mal:ml mar:mr mon:mn mri:mi mya:my nep:ne nld:nl nob:no nor:no pan:pa pol:pl por:pt ron:ro rus:ru
    sin:si slk:sk slv:sl spa:es sqi:sq srp:sr swe:sv swh:sw tam:ta tel:te tgl:fil tha:th tur:tr uig:ug ukr:uk urd:ur vie:vi
    yue:yue zho:zh zsm:ms ekk:et lvs:lv npi:ne uzn:uz uzb:uz azj:az aze:az als:sq ory:or ori:or quy:quz quz:quz que:quz nno:no
    mlt:mt gle:ga cym:cy pbt:ps pus:ps ydd:yi yid:yi plt:mg mlg:mg kmr:ku kur:ku afr:af amh:am bel:be bos:bs kat:ka kaz:kk
    kir:ky mkd:mk tgk:tg tat:tt som:so yor:yo zul:zu xho:xh jav:jv sun:su ceb:ceb
    """.split()
)
"""Three letters, as in the labels of GlotLID -> the code of caplens."""


class Identified(NamedTuple):
    """The language of a text; None if it has no letters, or is in the writing system of none of the candidates."""

    lang: str | None
    probability: float
    """Among the candidates; 1 where the writing system alone decides."""


class LanguageModel(Protocol):
    """Scores languages for a text."""

    name: str

    def knows(self, lang: str) -> bool:
        """Whether it can identify a language."""
        ...

    def log_probabilities(self, text: str, candidates: Sequence[str]) -> dict[str, float]:
        """Candidate -> log-probability, up to a constant; without candidates that the model does not know."""
        ...


def identify_language(text: str, candidates: Sequence[str] | None = None, model: LanguageModel | None = None) -> Identified:
    """The language of a text among candidates.

    Parameters
    ----------
    text
        A caption, say.
    candidates
        Codes of plausible languages; by default the 36 of Crossmodal-3600.
    model
        What decides among languages of one writing system; by default py3langid.

    Returns
    -------
    Identified
        The language and its probability.

    Examples
    --------
    >>> identify_language("собака", ["ru", "de"])
    Identified(lang='ru', probability=1.0)
    """
    langs = list(dict.fromkeys(map(base_language, candidates or CROSSMODAL_3600)))
    script = script_of(text)
    fitting = [lang for lang in langs if script in scripts_of(lang)]
    if not fitting:
        return Identified(None, 0.0)
    if len(fitting) == 1:
        return Identified(fitting[0], 1.0)
    scores = (model or default_model()).log_probabilities(text, fitting)
    if not scores:
        # The model knows none of them, and the writing system cannot tell them apart.
        return Identified(None, 0.0)
    best = max(scores, key=lambda lang: scores[lang])
    return Identified(best, 1 / sum(exp(score - scores[best]) for score in scores.values()))


def default_model() -> LanguageModel:
    """py3langid, opened once however many threads ask for it."""
    with _opening:
        return _opened_py3langid()


@cache
def _opened_py3langid() -> LanguageModel:
    return _Py3LangId()


class _Py3LangId:
    name = "py3langid"

    def __init__(self) -> None:
        package = require("py3langid.langid", _FEATURE, _EXTRA)
        self._identifier = package.LanguageIdentifier.from_model_file(package.MODEL_FILE)
        self._known = {base_language(label): label for label in self._identifier.labels if _is_known(label)}
        # Scores of all languages are the same whatever the candidates.
        self._rank = lru_cache(4096)(self._identifier.rank)

    def knows(self, lang: str) -> bool:
        return lang in self._known

    def log_probabilities(self, text: str, candidates: Sequence[str]) -> dict[str, float]:
        ranked = dict(self._rank(text))
        return {lang: float(ranked[self._known[lang]]) for lang in candidates if lang in self._known}


class FastTextModel:
    """A model of fastText, such as GlotLID, whose labels are `__label__eng_Latn` or `__label__en`.

    Parameters
    ----------
    path
        Its file.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        fasttext = require("fasttext", _FEATURE, "fasttext")
        self._known = {_language_of(label.removeprefix(_PREFIX)) for label in read_fasttext_labels(path)}
        try:
            self._model: Any = fasttext.load_model(str(path))
        except Exception as error:
            # The library raises errors of many types for files that are not its own.
            raise InputError(f"{path}: fastText cannot read this file ({reason(error)}).") from None
        self.name = f"fasttext:{Path(path).name}"

    def knows(self, lang: str) -> bool:
        return lang in self._known

    def log_probabilities(self, text: str, candidates: Sequence[str]) -> dict[str, float]:
        try:
            labels, probabilities = self._model.predict(" ".join(text.split()), _MOST_LABELS)
        except (MemoryError, RuntimeError, ValueError) as error:
            raise InputError(f"{self.name}: this model of fastText is damaged ({reason(error)}).") from None
        scores: dict[str, float] = {}
        for label, probability in zip(labels, probabilities, strict=True):
            lang = _language_of(label.removeprefix(_PREFIX))
            if lang in candidates and probability > 0:
                scores.setdefault(lang, log(probability))
        return scores


def _language_of(label: str) -> str:
    """`eng_Latn` -> `en`"""
    code = label.partition("_")[0].lower()
    return _ISO_639_3.get(code, code)


def _is_known(label: str) -> bool:
    return label in language_names() or label in ("nb", "iw", "tl")


def load_language_model(name: str | PathLike[str] | None) -> LanguageModel:
    """py3langid without a name, else the file of fastText."""
    return default_model() if name is None or name == "py3langid" else FastTextModel(name)
