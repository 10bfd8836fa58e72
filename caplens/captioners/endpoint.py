"""Captions by a model that looks at images, behind a server that speaks OpenAI's protocol."""

import base64
import hashlib
import io
import json
from collections.abc import Sequence

from PIL.Image import Image

from caplens.captioners.base import ImageCaptions, SearchOptions
from caplens.captioners.prompts import NUMBERED, prompt_for
from caplens.data.languages import base_language
from caplens.translation.base import Hypothesis
from caplens.translation.chat_endpoint import ChatEndpoint, Usage, unquoted

_LONGEST_SIDE = 1024
"""Pixels of images that are sent; larger ones are reduced."""


class EndpointCaptioner:
    """A model behind an OpenAI-compatible endpoint. Several captions are asked for at once, in JSON.

    Parameters
    ----------
    url
        The address of the server, up to `/v1`.
    model
        The name of the model there.
    search
        The question, the seed, and how many tokens a caption has at most.
    per_second
        Requests a second, at most.
    timeout
        Seconds that a request may take.
    """

    batch = 1
    """Each answer is kept before the next is asked for."""

    def __init__(self, url: str, model: str, search: SearchOptions, per_second: float = 5.0, timeout: float = 120.0) -> None:
        self._endpoint, self._search = ChatEndpoint(url, model, per_second, timeout), search
        self.name, self.licence = self._endpoint.name, "that of the server's model"
        facts = (url, model, search.question, search.seed, search.longest, NUMBERED, _LONGEST_SIDE)
        self.fingerprint = hashlib.sha256(repr(facts).encode()).hexdigest()

    @property
    def usage(self) -> Usage:
        """What was asked of the server."""
        return self._endpoint.usage

    def check_language(self, lang: str) -> None:
        # Which languages a model writes is not known before it is asked.
        base_language(lang)

    def caption(self, images: Sequence[Image], lang: str, n: int) -> list[ImageCaptions]:
        return [self._caption(image, lang, n) for image in images]

    def _caption(self, image: Image, lang: str, n: int) -> ImageCaptions:
        prompt = prompt_for(lang, self._search.question)
        if n > 1:
            prompt += NUMBERED.format(count=n)
        content = [{"type": "text", "text": prompt}, {"type": "image_url", "image_url": {"url": _as_url(image)}}]
        more = {"response_format": {"type": "json_object"}} if n > 1 else {}
        tokens = self._search.longest * n + (32 if n > 1 else 0)
        answer = self._endpoint.ask([{"role": "user", "content": content}], 0.0, self._search.seed, max_tokens=tokens, **more)
        if answer.error is not None:
            return ImageCaptions(error=answer.error)
        texts = _listed(answer.text)[:n] if n > 1 else [unquoted(answer.text)]
        hypotheses = [Hypothesis(text) for text in dict.fromkeys(" ".join(text.split()) for text in texts) if text]
        return ImageCaptions(hypotheses) if hypotheses else ImageCaptions(error="the endpoint answered with no caption")

    def report_cost(self, per_million: tuple[float, float] | None = None) -> None:
        """Say how many requests and tokens there were and, with the prices of a million tokens in and out, what they cost."""
        self._endpoint.report_cost(per_million)


def _listed(text: str) -> list[str]:
    """The captions of an answer in JSON; none of one that is something else."""
    start, end = text.find("{"), text.rfind("}")
    try:
        captions = json.loads(text[start : end + 1])["captions"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return [unquoted(caption) for caption in captions if isinstance(caption, str)] if isinstance(captions, list) else []


def _as_url(image: Image) -> str:
    reduced = image.copy()
    reduced.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
    out = io.BytesIO()
    reduced.save(out, format="JPEG", quality=90)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}"
