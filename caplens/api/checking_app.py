"""`caplens app` as a program can start it."""

import socket
from collections.abc import Callable
from typing import Any

from caplens.libraries import require
from caplens.report.catalogue import LANGUAGES, PageLanguage


class CheckingApp:
    """The page on which people find and fix captions, served on this machine only.

    Parameters
    ----------
    port
        Where it listens; 0 takes any that is free.

    Attributes
    ----------
    address
        What a browser opens. It holds a secret: only who has it gets in.

    Examples
    --------
    >>> app = CheckingApp()  # doctest: +SKIP
    >>> app.run()  # until somebody closes the program  # doctest: +SKIP
    """

    def __init__(self, port: int = 0) -> None:
        require("fastapi", "The app", "human")
        uvicorn: Any = require("uvicorn", "The app", "human")
        from caplens.human.app import create_app_server
        from caplens.human.workspace import Workspace

        self._workspace = Workspace()
        application, path = create_app_server(self._workspace, _reasons_in, self.stop)
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}{path}"
        self._server = uvicorn.Server(uvicorn.Config(application, log_level="warning", access_log=False, server_header=False))

    @property
    def is_ready(self) -> bool:
        """Whether the page can be opened."""
        return bool(self._server.started)

    def run(self) -> None:
        """Serve until somebody closes the program, and remove what was put in."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._workspace.close()

    def stop(self) -> None:
        """End `run`."""
        self._server.should_exit = True


def _reasons_in(lang: str) -> Callable[[str], str]:
    return PageLanguage(lang if lang in LANGUAGES else "en")
