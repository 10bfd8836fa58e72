"""The server of a study over HTTP: what raters and the owner may do, and that nobody else can do it."""

import json
import re
import socket
import time
from itertools import product
from urllib.parse import quote

import pytest
from extras import need

need("fastapi")
need("uvicorn")

from study_site import EXAMPLES, Client, captions, many

from caplens.data import Sample
from caplens.human.costly import Costly
from caplens.human.export import caption_ratings, event_rows, exported_rows
from caplens.human.settings import StudySettings, StudyTask

HOSTILE = [
    "'", '"', "' OR 1=1 --", "1; DROP TABLE answers", "<script>alert(1)</script>", "{{ 7 * 7 }}", "{% raw %}", "${jndi:x}",
    "../../etc/passwd", "%00",
    "\x00", "\u202e", "\U0001f600", "-1", "99999999999999999999", "1e999", "NaN", "null", "[]", "{}", "true", "a" * 5000,
    "\r\nSet-Cookie: a=b", "file:///etc/passwd", "http://127.0.0.1", "&amp;", "\\", "`id`", "$(id)", "|id", "٣", " ", "",
]  # fmt: skip


def test_a_rater_judges_and_the_owner_sees_it(serve):
    site = serve(StudySettings(replication=1, cost_per_answer=0.5))
    ada, owner = site.rater("Ada"), site.owner()
    page = ada.get("/task")
    assert "How well does this caption describe the image?" in page.text
    for _ in range(5):
        page = ada.answer(page, choice_0="3", seconds="2.5")
    assert "nothing left" in page.text
    board = owner.get("/owner").text
    assert "5 answers of 5" in board
    assert "2.50 of about 2.50 EUR" in board
    assert "Ada" in board
    rows = [json.loads(line) for line in owner.get("/owner/answers.jsonl").text.splitlines()]
    assert [row["ratings"][0]["value"] for row in rows] == [3.0] * 5
    assert owner.get("/owner/answers.csv").text.startswith("id,image,caption,lang,ratings")
    assert "answer" in owner.get("/owner/events.jsonl").text


def test_the_owner_invites_pauses_and_deletes(serve):
    site = serve(StudySettings())
    owner = site.owner()
    form = owner.get("/owner").fields
    page = owner.post("/owner/invite", csrf=form["csrf"], names="Ada, Grace", langs="")
    links = re.findall(r"<code>(/join/[\w-]+)</code>", page.text)
    assert len(links) == 2
    ada = Client(site.address)
    assert ada.get(links[0]).status == 200
    ada.answer(ada.get("/task"), choice_0="4")
    assert "already" in owner.post("/owner/invite", csrf=form["csrf"], names="Ada", langs="").text
    owner.post("/owner/state", csrf=form["csrf"], state="paused")
    assert "paused" in ada.get("/task").text
    owner.post("/owner/state", csrf=form["csrf"], state="open")
    owner.post("/owner/forget", csrf=form["csrf"], name="Ada")
    assert ada.get("/task").status == 403
    assert caption_ratings(site.database) == []


def test_double_clicks_reloads_and_the_back_button_change_nothing_twice(serve):
    site = serve(StudySettings(replication=3))
    ada = site.rater("Ada")
    first = ada.get("/task")
    assert ada.get("/task").fields["assignment"] == first.fields["assignment"]
    for _ in range(3):
        ada.answer(first, choice_0="4")
    assert len(caption_ratings(site.database)) == 1
    # Back, and another answer: the newer one counts.
    ada.answer(first, choice_0="1")
    assert [rating.value for rating in caption_ratings(site.database)] == [1.0]
    ada.post("/undo", csrf=first.fields["csrf"])
    assert ada.get("/task").fields["assignment"] == first.fields["assignment"]


def test_captions_are_text_and_pages_allow_no_foreign_script(serve):
    text = '<script>alert("x")</script><img src=x onerror=alert(1)> {{ 7*7 }}'
    site = serve(StudySettings(), {"x": [Sample("1", text, image=str(EXAMPLES / "cat.jpg"), lang="en")]})
    page = site.rater("Ada").get("/task")
    assert "&lt;script&gt;" in page.text
    assert "<script>alert" not in page.text
    assert "49" not in page.caption
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_what_raters_see_gives_nothing_away(serve):
    systems = {name: many(3) for name in ("secret-system", "other-system")}
    site = serve(StudySettings(task=StudyTask.sidebyside), systems)
    page = site.rater("Ada").get("/task")
    assert page.status == 200
    assert "secret-system" not in page.text
    assert "cat.jpg" not in page.text
    image = re.search(r'src="(/image/\d+)"', page.text)[1]
    assert Client(site.address).get(image).status == 404


def test_answers_that_are_none_are_said_in_the_language_of_the_page(serve):
    ada = serve(StudySettings()).rater("Ada")
    page = ada.get("/task")
    ada.get("/language/de")
    wrong = ada.answer(page)
    assert wrong.status == 422
    assert "Wählen Sie zuerst eine Antwort." in wrong.text
    assert 'lang="de"' in wrong.text
    assert 'dir="rtl"' in ada.get("/language/ar").text


def test_writers_are_asked_about_another_language_once(serve):
    need("py3langid")
    site = serve(StudySettings(task=StudyTask.write, replication=1), {"good": captions()}, langs=["de"])
    ada = site.rater("Ada")
    page = ada.get("/task")
    while page.fields["step"] == "rate":
        page = ada.answer(page, choice_0="3")
    text = "A man with a helmet stands in front of a large American flag."
    asked = ada.answer(page, caption=text)
    assert "German" in asked.text
    assert not list(exported_rows(site.database))
    assert ada.answer(asked, caption=text).status == 200
    assert [row["caption"] for row in exported_rows(site.database)] == [text]


def _raw(site, content, wait=3.0):
    """Send bytes as they are, and return what comes back until the connection ends or the time is over."""
    host, port = site.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=wait) as connection:
        connection.sendall(content)
        received = b""
        try:
            while part := connection.recv(65_536):
                received += part
        except TimeoutError:
            pass
    return received


class Attack:
    """Requests that have to be refused, and their number."""

    def __init__(self, site) -> None:
        self.tried, self.site = 0, site
        self.ada, self.grace, self.owner = site.rater("Ada"), site.rater("Grace"), site.owner()
        self.stranger = Client(site.address)
        self.good = {**self.ada.get("/task").fields, "choice-0": "3"}
        self.theirs = self.grace.get("/task").fields

    def refused(self, page) -> None:
        self.tried += 1
        assert page.status in (400, 403, 404, 405, 413, 422, 429), page
        assert "Traceback" not in page.text
        assert "sqlalchemy" not in page.text.lower()

    def hostile_fields(self) -> None:
        for name, value in product(("assignment", "step", "choice-0", "csrf"), HOSTILE):
            self.refused(self.ada.post("/task", **{**self.good, name: value}))
        csrf = self.owner.get("/owner").fields["csrf"]
        for name, value in product(("csrf", "state"), HOSTILE):
            self.refused(self.owner.post("/owner/state", **{"csrf": csrf, "state": "open", name: value}))
        for value in HOSTILE:
            self.refused(self.owner.post("/owner/forget", csrf=csrf, name=value))

    def forged_tokens_and_paths(self) -> None:
        for path, value in product(("/join/", "/owner/join/", "/static/", "/image/", "/owner/"), filter(str.strip, HOSTILE)):
            self.refused(self.stranger.get(path + quote(value.encode("utf-8", "replace"), safe="")))
        for path in ("/static/../server.py", "/static/..%2f..%2fserver.py", "/static/%2e%2e/texts.json", "/.env"):
            self.refused(self.stranger.get(path))

    def what_is_not_theirs(self) -> None:
        for page in ("/owner", "/owner/answers.jsonl", "/owner/events.jsonl", "/task"):
            self.refused(self.stranger.get(page))
        for page in ("/owner", "/owner/answers.jsonl"):
            self.refused(self.ada.get(page))
        self.refused(self.ada.post("/task", **{**self.good, "assignment": self.theirs["assignment"]}))
        self.refused(self.ada.post("/task", **{**self.good, "csrf": self.theirs["csrf"]}))
        self.refused(self.ada.post("/undo", csrf=self.theirs["csrf"]))
        for form in ("/owner/state", "/owner/invite", "/owner/forget"):
            self.refused(self.ada.post(form, csrf=self.good["csrf"], state="closed", names="Eve", langs="", name="Grace"))

    def odd_requests(self) -> None:
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            self.refused(self.ada.get("/task", method=method))
        for body in (b"a" * (1 << 20), b"\xff\xfe" * 10, b"&".join(b"a%d=1" % number for number in range(1000))):
            self.refused(self.ada.get("/task", data=body))
        start = time.monotonic()
        slow = _raw(self.site, b"POST /task HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\na")
        assert b" 413 " in slow.split(b"\r\n")[0]
        assert time.monotonic() - start < 5
        negative = b"GET /task HTTP/1.1\r\nContent-Length: -1\r\n\r\n"
        for broken in (b"GET /task HTTP/9.9\r\n\r\n", b"\x16\x03\x01" * 20, negative):
            assert b" 200 " not in _raw(self.site, broken, 1.0).split(b"\r\n")[0]
        self.tried += 4


@pytest.mark.slow
def test_nothing_that_an_attacker_sends_gets_through(serve, monkeypatch, capsys):
    monkeypatch.setattr("caplens.human.guard.Limits.__new__.__defaults__", (64 << 10, 0.5, False))
    site = serve(StudySettings(reasons=True), {"x": many(4)})
    attack = Attack(site)
    for step in (attack.hostile_fields, attack.forged_tokens_and_paths, attack.what_is_not_theirs, attack.odd_requests):
        step()
    assert caption_ratings(site.database) == []
    assert site.database.state == "open"
    assert {event["kind"] for event in event_rows(site.database)} == {"invite"}
    # And the study goes on.
    assert attack.ada.answer(attack.ada.get("/task"), choice_0="3").status == 200
    assert len(caption_ratings(site.database)) == 1
    with capsys.disabled():
        print(f"\n{attack.tried} hostile requests, none got through")


def test_floods_are_slowed_down(serve):
    stranger = Client(serve(StudySettings()).address)
    assert 429 in {stranger.get("/").status for _ in range(80)}


def test_tokens_are_kept_as_hashes_only(serve, tmp_path):
    site = serve(StudySettings())
    token = site.database.invite(["Ada"], [])["Ada"]
    with site.database.reading() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    content = b"".join(path.read_bytes() for path in tmp_path.glob("study*"))
    assert token.encode() not in content
    assert site.owner_token.encode() not in content


def test_a_port_that_is_taken_is_one_sentence(make, caplens):
    database, _ = make(StudySettings())
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for arguments in (("study", "serve", database.place), ("app", "--no-browser")):
            said = caplens(*arguments, "--port", port)
            assert (said.status, said.err.count("\n")) == (2, 1)
            assert f"port {port} of 127.0.0.1 cannot be used (Address already in use). Choose another with --port." in said.err
    said = caplens("study", "serve", database.place, "--host", "203.0.113.7", "--public", "https://example.org")
    assert (said.status, "cannot be used" in said.err) == (2, True)


def test_what_takes_long_is_computed_now_and_then():
    times = iter([0.0, 0.3, 0.0, 0.0])
    costly = Costly(lambda: time.sleep(next(times)) or time.monotonic())
    assert Costly(time.monotonic).value() < time.monotonic()
    quick = costly.value()
    slow = costly.value()
    assert quick < slow == costly.value()
    costly.forget()
    assert costly.value() > slow
