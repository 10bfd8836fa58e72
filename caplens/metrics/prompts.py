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
"""A prompt for all captions, or language -> prompt; languages that are not named have the metric's default."""


class Prompts:
    """The prompt of each language."""

    def __init__(self, prompt: Prompt | None, default: Mapping[str, str]) -> None:
        if prompt is not None and not isinstance(prompt, str | Mapping):
            raise InputError(f"a prompt must be a text, or a mapping from language to text, not {prompt!r}.")
        self._fallback = prompt if isinstance(prompt, str) else ""
        self._by_language = {} if isinstance(prompt, str) else dict(default)
        for lang, text in prompt.items() if isinstance(prompt, Mapping) else ():
            self._by_language[base_language(lang)] = text
        # Metrics with equal keys encode the same texts.
        self.key = (self._fallback, *sorted(self._by_language.items()))
        self.label = self._fallback or ", ".join(f"{lang}: {text}" for lang, text in sorted(self._by_language.items()))

    def __call__(self, lang: str) -> str:
        return self._by_language.get(lang, self._fallback)

    def signature(self, langs: Sequence[str]) -> str:
        """The prompts in a metric's signature: `A photo depicts `, or `none[de fr],A photo depicts [en]` with several."""
        langs_by_prompt: dict[str, list[str]] = {}
        for lang in sorted(langs):
            langs_by_prompt.setdefault(self(lang).replace("|", r"\|") or "none", []).append(lang)
        return ",".join(
            text if len(langs_by_prompt) == 1 else f"{text}[{' '.join(group)}]" for text, group in langs_by_prompt.items()
        )
