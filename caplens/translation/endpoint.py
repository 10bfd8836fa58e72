"""Translation by a language model behind a server that speaks OpenAI's protocol."""

import hashlib
from collections.abc import Sequence

from caplens.data.languages import language_names
from caplens.translation.base import Hypothesis, Translations, unknown_language
from caplens.translation.chat_endpoint import ChatEndpoint, Usage, unquoted

_PROMPT = (
    "Translate the following image caption from {source} into {target}. Answer with the translation alone, without quotes and"
    " without explanations.\n\n{text}"
)


class EndpointTranslator:
    """A language model behind an OpenAI-compatible endpoint.

    Parameters
    ----------
    url
        The address of the server, up to `/v1`.
    model
        The name of the model there.
    temperature
        Of the sampling, where several translations are asked for; the first is always without.
    per_second
        Requests a second, at most.
    timeout
        Seconds that a request may take.
    """

    batch = 1
    """Each answer is kept before the next is asked for."""

    def __init__(self, url: str, model: str, temperature: float = 0.7, per_second: float = 5.0, timeout: float = 60.0) -> None:
        self._endpoint, self._temperature = ChatEndpoint(url, model, per_second, timeout), temperature
        self.name = self._endpoint.name
        self.fingerprint = hashlib.sha256(repr((url, model, temperature, _PROMPT)).encode()).hexdigest()

    @property
    def usage(self) -> Usage:
        """What was asked of the server."""
        return self._endpoint.usage

    def check_languages(self, source: str, target: str) -> None:
        names = language_names()
        for lang in (source, target):
            if lang not in names:
                raise unknown_language(self.name, lang, list(names))

    def translate(self, texts: Sequence[str], source: str, target: str, n: int) -> list[Translations]:
        names = language_names()
        return [self._translate(text, names[source], names[target], n) for text in texts]

    def _translate(self, text: str, source: str, target: str, n: int) -> Translations:
        prompt = _PROMPT.format(source=source, target=target, text=text)
        hypotheses: dict[str, None] = {}
        for number in range(n):
            messages = [{"role": "user", "content": prompt}]
            answer = self._endpoint.ask(messages, 0.0 if number == 0 else self._temperature, seed=number)
            if answer.error is not None:
                return Translations([Hypothesis(text) for text in hypotheses], answer.error if not hypotheses else None, False)
            hypotheses.setdefault(unquoted(answer.text))
        hypotheses.pop("", None)
        if not hypotheses:
            return Translations(error="the endpoint answered with nothing")
        return Translations([Hypothesis(text) for text in hypotheses])

    def report_cost(self, per_million: tuple[float, float] | None = None) -> None:
        """Say how many requests and tokens there were and, with the prices of a million tokens in and out, what they cost."""
        self._endpoint.report_cost(per_million)
