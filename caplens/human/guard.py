"""What stands between the network and the study's pages: limits on requests, and headers that leave browsers no choice."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

_PER_SECOND, _BURST = 20.0, 60.0
"""Requests of one visitor, by address and cookie."""
_MANY = 30
"""Times as many of one address: the raters of an institute may share one."""
_MOST_VISITORS = 10_000
_READ_ON = 4 << 20
"""Bytes over the limit that are read and dropped: who is still sending does not hear the answer."""
HEADERS = {
    "content-security-policy": "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Limits(NamedTuple):
    """Of a request's body in bytes and seconds, and whether visitors may ask only so often."""

    bytes: int = 64 << 10
    seconds: float = 15.0
    requests: bool = True


class Guard:
    """An ASGI application around another: large and slow bodies, floods and unknown methods end here."""

    def __init__(self, application: Application, *, secure: bool = False, limits: "Limits | None" = None) -> None:
        self._application = application
        self._visitors, self._addresses = _Buckets(_PER_SECOND, _BURST), _Buckets(_MANY * _PER_SECOND, _MANY * _BURST)
        self._limits = limits or Limits()
        headers = {**HEADERS, **({"strict-transport-security": "max-age=31536000"} if secure else {})}
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._application(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", []))
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*headers, *self._headers]}
            await send(message)

        if self._limits.requests and not self._may_ask(scope):
            await _refuse(send_guarded, 429, "Too many requests. Wait a moment, and load the page again.")
            return
        if scope["method"] not in ("GET", "HEAD", "POST"):
            await _refuse(send_guarded, 405, "There is nothing to do in this way.")
            return
        body = await _body(receive, self._limits) if scope["method"] == "POST" else b""
        if body is None:
            await _refuse(send_guarded, 413, "What was sent is too large, or came too slowly.")
            return
        await self._application(scope, _received(body), send_guarded)

    def _may_ask(self, scope: MutableMapping[str, Any]) -> bool:
        """Cookies can be made up, so that all visitors of one address have a limit too."""
        cookies = next((value for name, value in scope["headers"] if name == b"cookie"), b"")
        address = (scope.get("client") or ("",))[0].encode()
        return self._addresses.allow(address) and self._visitors.allow(address + b" " + bytes(cookies)[:300])


async def _body(receive: Receive, limits: Limits) -> bytes | None:
    """The body; None if it is too large or too slow."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.seconds):
            while True:
                message = await receive()
                size += len(message.get("body", b""))
                if size <= limits.bytes:
                    parts.append(bytes(message.get("body", b"")))
                if size > limits.bytes + _READ_ON or message["type"] == "http.disconnect":
                    return None
                if not message.get("more_body"):
                    return b"".join(parts) if size <= limits.bytes else None
    except TimeoutError:
        return None


def _received(body: bytes) -> Receive:
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _refuse(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})


class _Buckets:
    """A token bucket for each visitor."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second, self._burst = per_second, burst
        self._left: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def allow(self, visitor: bytes) -> bool:
        now = time.monotonic()
        left, last = self._left.pop(visitor, (self._burst, now))
        left = min(self._burst, left + (now - last) * self._per_second)
        self._left[visitor] = (max(0.0, left - 1), now)
        if len(self._left) > _MOST_VISITORS:
            self._left.popitem(last=False)
        return left >= 1
