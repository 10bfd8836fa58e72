"""`caplens app`: a page for people who do not type."""

import threading
import time
import webbrowser
from typing import Annotated

import typer

from caplens import api
from caplens.cli.command import command
from caplens.cli.output import info

EXAMPLES = """
caplens app
caplens app --no-browser --port 8080
"""
_PATIENCE = 30
"""Seconds until the server answers, before the browser is opened all the same."""


def app_(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    """Open a page to find and fix captions without typing commands: drop photos and a sheet, correct, save the sheet.

    Runs on this machine only, offline, with caplens-mini. What is put in is removed at the end.
    """
    app = api.CheckingApp(port)
    info(f"open {app.address} in a browser on this machine; Ctrl-C closes the program.")
    if browser:
        threading.Thread(target=_open_when_ready, args=(app,), daemon=True).start()
    app.run()


def _open_when_ready(app: api.CheckingApp) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not app.is_ready and time.monotonic() < deadline:
        time.sleep(0.1)
    webbrowser.open(app.address)


def register(app: typer.Typer) -> None:
    command(app, "app", examples=EXAMPLES)(app_)
