"""`ChatEndpoint`: a server that speaks OpenAI's protocol, such as llama.cpp, vLLM or Ollama on this machine."""

import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from typing import Any, NamedTuple
from urllib.parse import urlparse

from caplens.errors import CaplensError, InputError
from caplens.progress import logger

_KEY = "CAPLENS_API_KEY"
_TRIES, _FIRST_WAIT, _LONGEST_WAIT = 5, 1.0, 60.0
_MOST_BYTES = 1 << 22
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_NO_TEXT = "the endpoint answered with something else than a text"
_THOUGHTS = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)
"""What models that think aloud write before their answer."""
ChatMessage = dict[str, Any]


class Usage(NamedTuple):
    """What was asked of a server."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ChatAnswer(NamedTuple):
    """What a model answered, or why it did not."""

    text: str
    error: str | None = None


class ChatEndpoint:
    """A language model behind an OpenAI-compatible server.

    Parameters
    ----------
    url
        The address of the server, up to `/v1`.
    model
        The name of the model there.
    per_second
        Requests a second, at most.
    timeout
        Seconds that a request may take.
    """

    def __init__(self, url: str, model: str, per_second: float = 5.0, timeout: float = 60.0) -> None:
        if urlparse(url).scheme not in ("http", "https"):
            raise InputError(f"{url}: an endpoint is an address that begins with http:// or https://.")
        self.name, self._url, self._model = f"endpoint:{url},model={model}", url.rstrip("/"), model
        self._pause, self._timeout = 1 / per_second, timeout
        self._next = 0.0
        self.usage = Usage()

    def ask(self, messages: list[ChatMessage], temperature: float, seed: int, **more: Any) -> ChatAnswer:
        """The answer to messages; an error where the server is not there at all."""
        body = {"model": self._model, "messages": messages, "temperature": temperature, "seed": seed, **more}
        content = self._post(body)
        try:
            choice = content["choices"][0]
            answer, ended = choice["message"]["content"], choice.get("finish_reason")
        except (KeyError, IndexError, TypeError, AttributeError):
            return ChatAnswer("", _NO_TEXT)
        usage = content.get("usage")
        tokens = [_count(usage.get(name)) if isinstance(usage, dict) else 0 for name in ("prompt_tokens", "completion_tokens")]
        self.usage = Usage(
            self.usage.requests + 1, self.usage.prompt_tokens + tokens[0], self.usage.completion_tokens + tokens[1]
        )
        if not isinstance(answer, str):
            return ChatAnswer("", _NO_TEXT)
        if ended == "length":
            return ChatAnswer("", "the endpoint's answer was cut off: it is longer than asked for")
        return ChatAnswer(_THOUGHTS.sub("", answer))

    def _post(self, body: dict[str, Any]) -> Any:
        """The JSON that the server answers; tried again where it is busy, with longer and longer waits."""
        headers = {"Content-Type": "application/json"}
        if os.environ.get(_KEY):
            headers["Authorization"] = f"Bearer {os.environ[_KEY]}"
        request = urllib.request.Request(f"{self._url}/chat/completions", json.dumps(body).encode(), headers)
        why = ""
        for attempt in range(_TRIES):
            self._wait(attempt)
            try:
                with _OPENER.open(request, timeout=self._timeout) as answer:
                    return json.loads(self._read(answer))
            except urllib.error.HTTPError as error:
                why = f"it answers with status {error.code}"
                if error.code not in _RETRIED:
                    break
            except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
                # No connection, a timeout, an address or answer that is none, or one that is not JSON.
                why = str(getattr(error, "reason", None) or error) or type(error).__name__
        raise CaplensError(
            f"{self.name}: the server does not answer ({why}), after {attempt + 1} tries. What it answered before is kept, and"
            " the same command goes on."
        )

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        """The body of an answer, in the time and size that an answer may take."""
        content, deadline = b"", time.monotonic() + self._timeout
        while part := answer.read1(_MOST_BYTES):
            content += part
            if len(content) > _MOST_BYTES:
                raise CaplensError(f"{self.name}: the answer is longer than {_MOST_BYTES:,} bytes.")
            if time.monotonic() > deadline:
                raise TimeoutError(f"its answer takes longer than {self._timeout:g} s")
        return content

    def _wait(self, attempt: int) -> None:
        """Keep to the rate; before a further attempt, wait longer each time."""
        pause = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (attempt - 1)) if attempt else 0.0
        delay = max(pause, self._next - time.monotonic())
        if delay > 0:
            time.sleep(delay)
        self._next = time.monotonic() + self._pause

    def report_cost(self, per_million: tuple[float, float] | None = None) -> None:
        """Say how many requests and tokens there were and, with the prices of a million tokens in and out, what they cost."""
        usage = self.usage
        if not usage.requests:
            return
        cost = ""
        if per_million is not None:
            total = (usage.prompt_tokens * per_million[0] + usage.completion_tokens * per_million[1]) / 1e6
            cost = f", {total:.4f} at these prices"
        logger.info(
            f"{self.name}: {usage.requests:,} requests, {usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens{cost}"
        )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: it would carry the key of one server to another."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def unquoted(answer: str) -> str:
    """The answer without quotes around all of it, and without halves of characters."""
    text = answer.encode("utf-8", "replace").decode("utf-8").strip()
    for left, right in ('""', "“”", "„“", "«»", "「」"):
        inside = text[1:-1]
        if len(text) > 1 and text[0] == left and text[-1] == right and left not in inside and right not in inside:
            return inside.strip()
    return text


def _count(value: Any) -> int:
    """A number of tokens; 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else 0
