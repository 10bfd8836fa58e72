"""The text that goes before captions, by language.

CLIP was trained on captions of the web, and scores of CLIPScore were published with the English prompt below; other languages
have none unless the user gives one.
"""

from collections.abc import Mapping, Sequence

from caplens.data.languages import base_language
from caplens.errors import InputError

CLIPSCORE_PROMPTS: Mapping[str, str] = {"en": "A photo depicts "}
"""Language -> prompt, of CLIPScore and PAC-S (Hessel et al. 2021, section 3)."""
Prompt = str | Mapping[str, str]
"""A prompt for all captions, or language -> prompt; languages that are not named have the metric's own."""


class Prompts:
    """The prompt of each language."""

    def __init__(self, prompt: Prompt | None, default: Mapping[str, str]) -> None:
        if prompt is not None and not isinstance(prompt, str | Mapping):
            raise InputError(f"a prompt is a text, or a text for each language, not {prompt!r}.")
        self._for_all = prompt if isinstance(prompt, str) else ""
        self._named = {} if isinstance(prompt, str) else dict(default)
        for lang, text in prompt.items() if isinstance(prompt, Mapping) else ():
            self._named[base_language(lang)] = text
        self.key = (self._for_all, *sorted(self._named.items()))

    def __call__(self, lang: str) -> str:
        return self._named.get(lang, self._for_all)

    def signature(self, langs: Sequence[str]) -> str:
        """`A photo depicts ` or, with several languages, `A photo depicts [en],none[de fr]`."""
        users: dict[str, list[str]] = {}
        for lang in sorted(langs):
            users.setdefault(self(lang).replace("|", r"\|") or "none", []).append(lang)
        return ",".join(text if len(users) == 1 else f"{text}[{' '.join(langs)}]" for text, langs in users.items())
