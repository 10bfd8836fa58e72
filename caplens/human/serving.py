"""`PageServer`: serves pages at an address of this machine until it is told to stop."""

import socket
import sys
from typing import Any

from caplens.errors import InputError, option, reason
from caplens.libraries import require

_BACKLOG = 2048
_SWITCH = 0.0005
"""Seconds after which Python lets another thread run."""
_KEEP_ALIVE = 75
"""Seconds for which a connection without requests stays open; proxies expect a minute."""


class PageServer:
    """A server that has its port from the start, so that its address is known before anybody asks.

    Parameters
    ----------
    application
        An ASGI application.
    host, port
        Where to listen; port 0 takes any that is free.

    Attributes
    ----------
    address
        The URL of the server.
    """

    def __init__(self, application: Any, host: str, port: int) -> None:
        uvicorn: Any = require("uvicorn", "Serving pages", "human")
        self._socket = _listening(host, port)
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self._socket.getsockname()[1]}"
        # Links hold secrets, which a log of requests would keep.
        settings = {"log_level": "warning", "access_log": False, "server_header": False, "timeout_keep_alive": _KEEP_ALIVE}
        self._server = uvicorn.Server(uvicorn.Config(application, **settings))

    @property
    def is_ready(self) -> bool:
        """Whether pages can be opened."""
        return bool(self._server.started)

    def run(self) -> None:
        """Serve until `stop` or Ctrl-C."""
        # What computes for long, such as the overview of a large study, lets those who wait for a page through.
        sys.setswitchinterval(_SWITCH)
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """End `run`."""
        self._server.should_exit = True


def _listening(host: str, port: int) -> socket.socket:
    # With the protocol named, asyncio sends small packets at once; without, each page waits 40 ms for an acknowledgement.
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
        return listening
    except OSError as error:
        listening.close()
        why = (error.strerror or reason(error)).partition(" (")[0]
        raise InputError(f"port {port} of {host} cannot be used ({why}). Choose another with {option('port')}.") from None
