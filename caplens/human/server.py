"""The pages of a study: raters judge captions at `/task`, the owner watches at `/owner`."""

import hmac
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jinja2
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from caplens.data.languages import CROSSMODAL_3600, language_names
from caplens.embed.images import UnreadableError
from caplens.errors import CaplensError, InputError
from caplens.human import dashboard
from caplens.human.answering import WrongAnswerError, save_answer, take_back
from caplens.human.assignment import OpenItem, Rater, image_path, open_item, rater_of
from caplens.human.costly import Costly
from caplens.human.database import CLOSED, PAUSED, PILOT, STATES, StudyDatabase, hashed
from caplens.human.guard import Guard, Limits
from caplens.human.pages.texts import LANGUAGES, PageTexts, preferred_language
from caplens.human.settings import SCALE, StudyTask
from caplens.human.shown_image import as_jpeg
from caplens.text.identification import LanguageModel, default_model, identify_language

RATER, OWNER, LANGUAGE = "caplens_rater", "caplens_owner", "caplens_language"
"""Names of cookies."""
_LARGEST_SIDE = 1280
_IMAGES_KEPT = 300
_COOKIE_SECONDS = 90 * 24 * 3600
_MOST_FIELDS = 40
_STATIC = {"study.css": "text/css; charset=utf-8", "study.js": "text/javascript; charset=utf-8"}
_SURE = 0.95
"""Of another language, before a writer is asked."""


class _Visitor:
    """Who asks for a page, by the cookies and the form of the request."""

    def __init__(self, request: Request, form: Mapping[str, str]) -> None:
        self.rater_token = request.cookies.get(RATER, "")
        self.owner_token = request.cookies.get(OWNER, "")
        self.form = form
        chosen = request.cookies.get(LANGUAGE) or preferred_language(request.headers.get("accept-language", ""))
        self.say = PageTexts(chosen)


def create_app(database: StudyDatabase, *, secure: bool = False, limits: Limits | None = None) -> Guard:
    """The server of a study.

    Parameters
    ----------
    database
        The study.
    secure
        Whether it is reached by TLS only, so that cookies are sent by no other way.
    limits
        Of requests.

    Returns
    -------
    An ASGI application.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    pages = _Pages(database, secure)
    for path, method, handle in pages.routes():
        app.add_api_route(path, _endpoint(handle), methods=[method], include_in_schema=False)
    app.add_exception_handler(404, pages.not_found)
    app.add_exception_handler(CaplensError, _broken)
    return Guard(app, secure=secure, limits=limits)


def _endpoint(handle: Callable[..., Response]) -> Callable[..., Any]:
    async def endpoint(request: Request) -> Response:
        try:
            body = (await request.body()).decode("utf-8")
            fields = parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
            form = dict(fields)
            if len(form) < len(fields):
                raise ValueError("a field appears twice")
        except ValueError:
            return PlainTextResponse("This form cannot be read.", 400)
        return await run_in_threadpool(handle, _Visitor(request, form), **request.path_params)

    return endpoint


async def _broken(_: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), 503)


class _Pages:
    """Every page, one method each."""

    def __init__(self, database: StudyDatabase, secure: bool) -> None:
        self._database, self._secure = database, secure
        loader = jinja2.PackageLoader("caplens.human", "pages")
        self._templates = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
        self._images = lru_cache(_IMAGES_KEPT)(_rendered)
        self._overview = Costly(lambda: dashboard.overview(database))

    def routes(self) -> list[tuple[str, str, Callable[..., Response]]]:
        return [
            ("/", "GET", self.home),
            ("/favicon.ico", "GET", self.no_icon),
            ("/join/{token}", "GET", self.join),
            ("/language/{code}", "GET", self.choose_language),
            ("/task", "GET", self.task),
            ("/task", "POST", self.answer),
            ("/undo", "POST", self.undo),
            ("/image/{number}", "GET", self.image),
            ("/static/{name}", "GET", self.static),
            ("/owner/join/{token}", "GET", self.join_as_owner),
            ("/owner", "GET", self.dashboard),
            ("/owner/state", "POST", self.set_state),
            ("/owner/invite", "POST", self.invite),
            ("/owner/forget", "POST", self.forget),
            ("/owner/{name}", "GET", self.download),
        ]

    def home(self, visitor: _Visitor) -> Response:
        return self._message(visitor, "no link") if self._rater(visitor) is None else _to("/task")

    def no_icon(self, _: _Visitor) -> Response:
        return Response(status_code=204)

    def join(self, visitor: _Visitor, token: str) -> Response:
        with self._database.reading() as connection:
            rater = rater_of(connection, hashed(token))
        if rater is None:
            return self._message(visitor, "wrong link", 403)
        return self._with_cookie(_to("/task"), RATER, token)

    def choose_language(self, _: _Visitor, code: str) -> Response:
        return self._with_cookie(_to("/task"), LANGUAGE, code if code in LANGUAGES else "en")

    def task(self, visitor: _Visitor) -> Response:
        rater = self._rater(visitor)
        if rater is None:
            return self._message(visitor, "no link", 403)
        return self._task_page(visitor, rater, {}, "", 200)

    def _task_page(self, visitor: _Visitor, rater: Rater, form: Mapping[str, str], error: str, status: int) -> Response:
        item = open_item(self._database, rater)
        answered = dashboard.answered_by(self._database, rater.id)
        if item is None:
            state = self._database.state
            name = {PAUSED: "paused", CLOSED: "closed", PILOT: "pilot done"}.get(state, "done")
            return self._message(visitor, name, can_undo=bool(answered) and state not in (PAUSED, CLOSED))
        same = form.get("assignment") == str(item.assignment) and form.get("step") == item.step
        content = self._task_content(visitor, item, form if same else {})
        return self._page(visitor, "task.html", status, error=error, answered=answered, **content)

    def _task_content(self, visitor: _Visitor, item: OpenItem, form: Mapping[str, str]) -> dict[str, Any]:
        settings = self._database.settings
        texts = settings.guidelines
        fields = {"choice": "", "caption": "", "reason": "", **{f"choice-{n}": "" for n in range(len(settings.criteria))}}
        return {
            "item": item,
            "task": str(settings.task),
            "settings": settings,
            "rubric": SCALE,
            "form": {**fields, **{name: value for name, value in form.items() if name in fields}},
            "confirmed": form.get("confirm", ""),
            "guidelines": texts.get(item.lang) or texts.get(visitor.say.lang) or texts.get("en", ""),
            "language_name": language_names().get(item.lang, item.lang),
            "csrf": self._csrf(visitor.rater_token),
        }

    def answer(self, visitor: _Visitor) -> Response:
        rater = self._rater(visitor)
        if rater is None:
            return self._message(visitor, "no link", 403)
        form = visitor.form
        if not self._may_send(visitor, visitor.rater_token):
            return self._task_page(visitor, rater, form, visitor.say("not yours"), 403)
        try:
            assignment = _number(form.get("assignment", ""))
            if (asked := self._language_doubt(visitor, form)) is not None:
                return self._task_page(visitor, rater, {**form, "confirm": form["caption"]}, asked, 422)
            save_answer(self._database, rater, assignment, form.get("step", ""), form, _seconds(form.get("seconds", "")))
        except WrongAnswerError as error:
            return self._task_page(visitor, rater, form, visitor.say(error.message, **error.values), 422)
        return _to("/task")

    def _language_doubt(self, visitor: _Visitor, form: Mapping[str, str]) -> str | None:
        """A question, where a caption seems to be in another language than it should and the writer was not asked before."""
        caption = form.get("caption", "")
        if form.get("step") != StudyTask.write or not caption or form.get("confirmed") == caption:
            return None
        model = _language_model()
        lang = dashboard.language_of(self._database, _number(form.get("assignment", "")))
        if lang is None or model is None:
            return None
        identified = identify_language(caption, tuple(dict.fromkeys([*CROSSMODAL_3600, lang])), model)
        if identified.lang in (None, lang) or identified.probability < _SURE:
            return None
        return visitor.say("other language", language=language_names().get(lang, lang))

    def undo(self, visitor: _Visitor) -> Response:
        rater = self._rater(visitor)
        if rater is None or not self._may_send(visitor, visitor.rater_token):
            return self._message(visitor, "no link", 403)
        with suppress(WrongAnswerError):
            take_back(self._database, rater)
        return _to("/task")

    def image(self, visitor: _Visitor, number: str) -> Response:
        rater = self._rater(visitor)
        path = None if rater is None else image_path(self._database, rater, _number(number))
        if path is None:
            return self._message(visitor, "not yours", 404)
        try:
            content = self._images(path, Path(path).stat().st_mtime_ns)
        except (OSError, UnreadableError, InputError):
            return PlainTextResponse(visitor.say("no image"), 404)
        return Response(content, media_type="image/jpeg", headers={"cache-control": "private, max-age=86400"})

    def static(self, visitor: _Visitor, name: str) -> Response:
        if name not in _STATIC:
            return self._message(visitor, "wrong link", 404)
        content = files("caplens.human.pages").joinpath(name).read_bytes()
        return Response(content, media_type=_STATIC[name], headers={"cache-control": "public, max-age=3600"})

    def join_as_owner(self, visitor: _Visitor, token: str) -> Response:
        if not self._database.is_owner(token):
            return self._message(visitor, "wrong link", 403)
        return self._with_cookie(_to("/owner"), OWNER, token)

    def dashboard(self, visitor: _Visitor) -> Response:
        return self._dashboard(visitor) if self._is_owner(visitor) else self._message(visitor, "wrong link", 403)

    def _dashboard(self, visitor: _Visitor, status: int = 200, **more: Any) -> Response:
        content = {"error": "", "links": {}, **more}
        board = self._overview.value()
        csrf = self._csrf(visitor.owner_token)
        downloads = dashboard.DOWNLOADS
        return self._page(
            visitor, "dashboard.html", status, board=board, states=STATES, csrf=csrf, downloads=downloads, **content
        )

    def _as_owner(self, visitor: _Visitor, act: Callable[[], dict[str, str] | None]) -> Response:
        """Do something for the owner, and show the dashboard: with the links that were made, or what is wrong."""
        if not self._is_owner(visitor) or not self._may_send(visitor, visitor.owner_token):
            return self._message(visitor, "wrong link", 403)
        try:
            links = act()
        except InputError as error:
            return self._dashboard(visitor, 422, error=str(error))
        self._overview.forget()
        return _to("/owner") if links is None else self._dashboard(visitor, links=links)

    def set_state(self, visitor: _Visitor) -> Response:
        return self._as_owner(visitor, lambda: self._database.set_state(visitor.form.get("state", "")))

    def invite(self, visitor: _Visitor) -> Response:
        names, langs = (
            [part.strip() for part in visitor.form.get(field, "").split(",") if part.strip()] for field in ("names", "langs")
        )
        return self._as_owner(
            visitor, lambda: {name: f"/join/{token}" for name, token in self._database.invite(names, langs).items()}
        )

    def forget(self, visitor: _Visitor) -> Response:
        return self._as_owner(visitor, lambda: dashboard.forget_rater(self._database, visitor.form.get("name", "")))

    def download(self, visitor: _Visitor, name: str) -> Response:
        if not self._is_owner(visitor) or name not in dashboard.DOWNLOADS:
            return self._message(visitor, "wrong link", 403)
        text = dashboard.download(self._database, name)
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="text/plain; charset=utf-8", headers=headers)

    async def not_found(self, request: Request, _: Exception) -> Response:
        return self._message(_Visitor(request, {}), "wrong link", 404)

    def _rater(self, visitor: _Visitor) -> Rater | None:
        if not visitor.rater_token:
            return None
        with self._database.reading() as connection:
            return rater_of(connection, hashed(visitor.rater_token))

    def _is_owner(self, visitor: _Visitor) -> bool:
        return bool(visitor.owner_token) and self._database.is_owner(visitor.owner_token)

    def _csrf(self, token: str) -> str:
        return hmac.new(self._database.secret.encode(), token.encode(), "sha256").hexdigest()

    def _may_send(self, visitor: _Visitor, token: str) -> bool:
        """Whether the form came from a page of this visitor, and not from another site."""
        sent = visitor.form.get("csrf", "")
        return hmac.compare_digest(sent.encode("utf-8", "replace"), self._csrf(token).encode())

    def _with_cookie(self, response: Response, name: str, value: str) -> Response:
        response.set_cookie(name, value, max_age=_COOKIE_SECONDS, httponly=True, samesite="lax", secure=self._secure)
        return response

    def _message(self, visitor: _Visitor, name: str, status: int = 200, *, can_undo: bool = False) -> Response:
        csrf = self._csrf(visitor.rater_token) if can_undo else ""
        return self._page(visitor, "message.html", status, message=visitor.say(name), can_undo=can_undo, csrf=csrf)

    def _page(self, visitor: _Visitor, template: str, status: int, **content: Any) -> Response:
        languages = {} if template == "dashboard.html" else LANGUAGES
        common = {"_": visitor.say, "title": self._database.settings.title, "languages": languages}
        return Response(self._templates.get_template(template).render(**common, **content), status, media_type="text/html")


def _to(path: str) -> Response:
    return RedirectResponse(path, 303)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise WrongAnswerError("not yours")
    return int(text)


def _seconds(text: str) -> float | None:
    try:
        return float(text[:20])
    except ValueError:
        return None


def _rendered(path: str, _: int) -> bytes:
    """The image; the second argument is the time of its last change, so that a changed one is read anew."""
    return as_jpeg(path, _LARGEST_SIDE)


def _language_model() -> LanguageModel | None:
    try:
        return default_model()
    except CaplensError:
        return None
