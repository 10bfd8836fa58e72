"""`caplens app`: a page for people who do not type: photos and a sheet in, captions to fix, the corrected sheet out."""

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, quote

import jinja2
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from caplens.embed.images import UnreadableError
from caplens.errors import CaplensError
from caplens.human.guard import Guard, Limits
from caplens.human.pages.texts import PageTexts, direction, preferred_language
from caplens.human.shown_image import as_jpeg
from caplens.human.workspace import NoteTexts, Workspace
from caplens.results.check import CheckedCaption, Verdict

SESSION = "caplens_app"
LARGEST_FILE = 200 << 20
_LARGEST_SIDE = 640
_PAGE = 60
"""Captions that are sent at once."""
_STATIC = {"study.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8"}
_EXPORTS = {
    "captions.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "captions.csv": "text/csv; charset=utf-8",
}
Say = Callable[[str], str]


def create_app_server(workspace: Workspace, say_in: Callable[[str], Say], stop: Callable[[], None]) -> tuple[Guard, str]:
    """The application, and the path by which a browser is let in.

    Parameters
    ----------
    workspace
        Where files are kept.
    say_in
        Language -> what says reasons in it.
    stop
        Ends the server.

    Returns
    -------
    The ASGI application and a path with a secret.
    """
    token = secrets.token_urlsafe(24)
    desk = _Desk(workspace, say_in, stop, token)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    for path, method, handle in desk.routes():
        app.add_api_route(path, desk.endpoint(handle), methods=[method], include_in_schema=False)
    return Guard(app, limits=Limits(LARGEST_FILE, 300.0, requests=False)), f"/open/{token}"


class _Visit:
    """A request of the page."""

    def __init__(self, request: Request, body: bytes) -> None:
        self.query, self.body = dict(request.query_params), body
        self.lang = preferred_language(request.headers.get("accept-language", ""))

    def check(self) -> int:
        """Of which check the page shows the captions."""
        return _row(self.query.get("check", ""))

    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20))


class _Desk:
    """Every address, one method each."""

    def __init__(self, workspace: Workspace, say_in: Callable[[str], Say], stop: Callable[[], None], token: str) -> None:
        self._workspace, self._say_in, self._stop, self._token = workspace, say_in, stop, token
        loader = jinja2.PackageLoader("caplens.human", "pages")
        self._templates = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)

    def routes(self) -> list[tuple[str, str, Callable[..., Response]]]:
        return [
            ("/open/{token}", "GET", self.let_in),
            ("/", "GET", self.page),
            ("/static/{name}", "GET", self.static),
            ("/clear", "POST", self.clear),
            ("/upload", "POST", self.upload),
            ("/example", "POST", self.example),
            ("/check", "POST", self.check),
            ("/status", "GET", self.status),
            ("/captions", "GET", self.captions),
            ("/image/{row}", "GET", self.image),
            ("/correct", "POST", self.correct),
            ("/export/{name}", "GET", self.export),
            ("/quit", "POST", self.quit),
        ]

    def endpoint(self, handle: Callable[..., Response]) -> Callable[..., Any]:
        async def endpoint(request: Request) -> Response:
            # A page of another site could name this machine's address by a name of its own.
            if request.url.hostname not in ("127.0.0.1", "localhost", "::1"):
                return PlainTextResponse("Open the address that caplens printed.", 403)
            open_to_all = handle in (self.let_in, self.static)
            if not open_to_all and not hmac.compare_digest(request.cookies.get(SESSION, "").encode(), self._token.encode()):
                return PlainTextResponse("Open the address that caplens printed.", 403)
            if request.method == "POST" and request.headers.get("x-caplens") != "app":
                # Other sites cannot send this header.
                return PlainTextResponse("This was not sent by the page.", 403)
            try:
                return await run_in_threadpool(handle, _Visit(request, await request.body()), **request.path_params)
            except CaplensError as error:
                return _json({"error": str(error)}, 422)

        return endpoint

    def let_in(self, _: _Visit, token: str) -> Response:
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return PlainTextResponse("Open the address that caplens printed.", 403)
        response = RedirectResponse("/", 303)
        response.set_cookie(SESSION, token, httponly=True, samesite="strict")
        return response

    def page(self, visit: _Visit) -> Response:
        lang = visit.query.get("lang", visit.lang)
        texts = PageTexts(lang)
        page = self._templates.get_template("app.html").render(_=texts, title="caplens", languages={})
        return Response(page, media_type="text/html")

    def static(self, _: _Visit, name: str) -> Response:
        if name not in _STATIC:
            return PlainTextResponse("There is no such file.", 404)
        return Response(files("caplens.human.pages").joinpath(name).read_bytes(), media_type=_STATIC[name])

    def clear(self, _: _Visit) -> Response:
        self._workspace.clear()
        return _json({})

    def upload(self, visit: _Visit) -> Response:
        self._workspace.add(visit.query.get("name", ""), visit.body)
        return _json({"sheet": self._workspace.sheet is not None})

    def example(self, _: _Visit) -> Response:
        self._workspace.take_example()
        return _json({"sheet": True})

    def check(self, _: _Visit) -> Response:
        self._workspace.start()
        return _json({})

    def status(self, _: _Visit) -> Response:
        space = self._workspace
        what, share = space.progress
        counts = {} if space.result is None else self._counts()
        return _json({"running": space.is_running, "what": what, "share": share, "error": space.error, "counts": counts})

    def _counts(self) -> dict[str, int]:
        return {str(verdict): count for verdict, count in self._workspace.counts().items()}

    def captions(self, visit: _Visit) -> Response:
        start = _row(visit.query.get("start", "0"))
        if start:
            self._workspace.ensure_current(visit.check())
        say = self._say_in(visit.query.get("lang", visit.lang))
        captions = self._workspace.captions()
        cards = [_card(start + number, caption, say) for number, caption in enumerate(captions[start : start + _PAGE])]
        return _json({"cards": cards, "total": len(captions), "check": self._workspace.checks})

    def image(self, visit: _Visit, row: str) -> Response:
        path = self._workspace.image(_row(row), visit.check())
        if path is None:
            return PlainTextResponse("There is no such image.", 404)
        try:
            return Response(as_jpeg(path, _LARGEST_SIDE), media_type="image/jpeg")
        except UnreadableError as error:
            return PlainTextResponse(str(error), 404)

    def correct(self, visit: _Visit) -> Response:
        form = visit.form()
        row = _row(form.get("row", ""))
        check = _row(form.get("check", ""))
        if "accept" in form:
            checked = self._workspace.accept(row, check)
        else:
            checked = self._workspace.correct(row, form.get("caption", ""), check)
        card = _card(row, checked, self._say_in(visit.query.get("lang", visit.lang)))
        return _json({**card, "counts": self._counts()})

    def export(self, visit: _Visit, name: str) -> Response:
        if name not in _EXPORTS:
            return PlainTextResponse("There is no such file.", 404)
        lang = visit.query.get("lang", visit.lang)
        say = PageTexts(lang)
        titles = [say(f"app {title}") for title in ("verdict", "reasons", "old caption")]
        verdicts = {verdict: say(f"app {verdict}") for verdict in Verdict}
        suffix = name[name.rindex(".") :]
        content = self._workspace.export(suffix, NoteTexts(titles, verdicts, self._say_in(lang)), visit.check())
        stem = self._workspace.sheet_name or "captions"
        headers = {"x-name": quote(f"{stem} - {say('app corrected')}{suffix}"), "x-changed": str(self._workspace.changed)}
        return Response(content, media_type=_EXPORTS[name], headers=headers)

    def quit(self, _: _Visit) -> Response:
        self._stop()
        return _json({})


def _card(row: int, caption: CheckedCaption, say: Say) -> dict[str, Any]:
    return {
        "row": row,
        "id": caption.id,
        "caption": caption.caption,
        "lang": caption.lang or "",
        "dir": direction(caption.lang or "en"),
        "verdict": str(caption.verdict),
        "reasons": [say(fault.reason) for fault in caption.faults],
        "suggestion": caption.suggestion or "",
        "image": caption.path is not None,
        "name": caption.image or "",
    }


def _row(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 9):
        raise CaplensError("there is no such caption.")
    return int(text)


def _json(content: Mapping[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(content), status, media_type="application/json")
