"""`caplens app` as a program can start it."""

from collections.abc import Callable

from caplens.errors import InputError
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
        from caplens.human.app import create_app_server
        from caplens.human.serving import PageServer
        from caplens.human.workspace import Workspace

        self._workspace = Workspace()
        application, path = create_app_server(self._workspace, _reasons_in, self.stop)
        try:
            self._server = PageServer(application, "127.0.0.1", port)
        except InputError:
            self._workspace.close()
            raise
        self.address = self._server.address + path

    @property
    def is_ready(self) -> bool:
        """Whether the page can be opened."""
        return self._server.is_ready

    def run(self) -> None:
        """Serve until somebody closes the program, and remove what was put in."""
        try:
            self._server.run()
        finally:
            self._workspace.close()

    def stop(self) -> None:
        """End `run`."""
        self._server.stop()


def _reasons_in(lang: str) -> Callable[[str], str]:
    return PageLanguage(lang if lang in LANGUAGES else "en")
