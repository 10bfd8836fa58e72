"""Captions, raters and visitors of studies, for their tests."""

import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from http.cookiejar import CookieJar
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from caplens.data import Sample, SampleFile, with_images
from caplens.human.answering import save_answer
from caplens.human.assignment import Rater, open_item, rater_of
from caplens.human.database import StudyDatabase, hashed
from caplens.human.export import caption_ratings

EXAMPLES = Path(str(files("caplens").joinpath("examples")))


def captions(name="good", langs=("en",)):
    """Captions of the examples in some languages."""
    samples = with_images(SampleFile(EXAMPLES / f"{name}.jsonl"), EXAMPLES)
    return [sample for sample in samples if sample.lang in langs]


def many(count, **fields):
    """Captions of one image file, as if of many images."""
    return [Sample(str(n), f"caption {n}", image=str(EXAMPLES / "cat.jpg"), lang="en", **fields) for n in range(count)]


class Page(NamedTuple):
    status: int
    text: str
    headers: dict[str, str]

    @property
    def fields(self) -> dict[str, str]:
        """The hidden fields of the first form."""
        form = self.text.partition("<form")[2].partition("</form>")[0]
        return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))

    @property
    def caption(self) -> str:
        return re.search(r'class="caption"[^>]*>([^<]*)<', self.text)[1]


class Client:
    """A visitor with cookies of their own."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def get(self, path: str, data: bytes | None = None, method: str | None = None) -> Page:
        request = urllib.request.Request(self.address + path, data=data, method=method)
        try:
            with self._opener.open(request, timeout=30) as response:
                return Page(response.status, response.read().decode("utf-8", "replace"), dict(response.headers))
        except urllib.error.HTTPError as error:
            return Page(error.code, error.read().decode("utf-8", "replace"), dict(error.headers))

    def post(self, path: str, **fields: object) -> Page:
        return self.get(path, urllib.parse.urlencode(fields).encode())

    def answer(self, page: Page, **fields: object) -> Page:
        return self.post("/task", **{**page.fields, **{name.replace("_", "-"): value for name, value in fields.items()}})


class Site(NamedTuple):
    address: str
    database: StudyDatabase
    owner_token: str

    def rater(self, name: str, langs=()) -> Client:
        client = Client(self.address)
        assert client.get(f"/join/{self.database.invite([name], langs)[name]}").status == 200
        return client

    def owner(self) -> Client:
        client = Client(self.address)
        assert client.get(f"/owner/join/{self.owner_token}").status == 200
        return client


def rater(database, name="Ada", langs=()) -> Rater:
    token = database.invite([name], langs)[name]
    with database.reading() as connection:
        return rater_of(connection, hashed(token))


def answer_all(database, who, choose=lambda item: {"choice-0": "3"}, most=10_000):
    """Answer everything that a rater gets, and say what that was."""
    given_items = []
    while len(given_items) < most and (item := open_item(database, who)) is not None:
        save_answer(database, who, item.assignment, item.step, choose(item), 1.5)
        given_items.append(item)
    return given_items


def answer_all_at_once(place, people, replication):
    """Let everybody answer everything at the same time, through databases of their own; each item is then judged by as many."""
    threads = [threading.Thread(target=answer_all, args=(StudyDatabase(place), who)) for who in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    ratings = caption_ratings(StudyDatabase(place))
    assert set(Counter(rating.caption for rating in ratings).values()) == {replication}
    assert max(Counter((rating.caption, rating.rater) for rating in ratings).values()) == 1
