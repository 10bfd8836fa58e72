"""Raters of a study, simulated: `python benchmarks/study_load.py --raters 300 --answers 100000 --kills 50 [--study URL]`.

Every rater waits between answers as people do. The server is killed with SIGKILL at random moments and started again; at the end
every answer that it acknowledged has to be in the database, once. Prints the latencies of pages and answers, those of requests
that met a killed server apart.
"""

import argparse
import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from caplens.api import create_study, open_study
from caplens.data import Sample
from caplens.human.export import Answer, answers_of
from caplens.human.settings import StudySettings

PORT = 8765
Spans = list[tuple[float, float]]
"""When requests were sent, and answered."""
_HIDDEN = re.compile(r'type="hidden" name="(\w+)" value="([^"]*)"')


class Visitor:
    """A rater on one connection that is kept open; a request that fails is sent again."""

    def __init__(self, cookie: str) -> None:
        self.cookie, self.streams = cookie, None

    async def request(self, path: str, form: dict[str, str] | None, latencies: Spans) -> tuple[int, str]:
        body = urlencode(form).encode() if form is not None else b""
        head = f"{'POST' if form is not None else 'GET'} {path} HTTP/1.1\r\nHost: study\r\nCookie: {self.cookie}\r\n"
        if form is not None:
            head += f"Content-Length: {len(body)}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        while True:
            start = time.perf_counter()
            try:
                if self.streams is None:
                    self.streams = await asyncio.open_connection("127.0.0.1", PORT)
                reader, writer = self.streams
                writer.write(head.encode() + b"\r\n" + body)
                status, text = await asyncio.wait_for(_response(reader), 60)
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                self.streams = None
                await asyncio.sleep(0.2)
                continue
            latencies.append((start, time.perf_counter()))
            return status, text


async def _response(reader: asyncio.StreamReader) -> tuple[int, str]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(re.search(r"content-length: (\d+)", head)[1])
    return int(head.split(" ", 2)[1]), (await reader.readexactly(length)).decode()


class Load:
    """All raters together."""

    def __init__(self, wanted: int, think: float) -> None:
        self.wanted, self.think = wanted, think
        self.acknowledged: dict[int, str] = {}
        self.pages: Spans = []
        self.saved: Spans = []
        self.boards: Spans = []
        self.odd: Counter[int] = Counter()
        self.outages: list[tuple[float, float]] = []
        """When the server was killed, and when it answered again."""

    async def rate(self, token: str, seed: int) -> None:
        rng, visitor = random.Random(seed), Visitor(f"caplens_rater={token}")
        await asyncio.sleep(rng.random() * self.think)
        while len(self.acknowledged) < self.wanted:
            status, page = await visitor.request("/task", None, self.pages)
            form = dict(_HIDDEN.findall(page))
            if "assignment" not in form:
                if status != 200:
                    self.odd[status] += 1
                return
            await asyncio.sleep(rng.expovariate(1 / self.think))
            choice = rng.choice("1234")
            status, _ = await visitor.request("/task", {**form, "choice-0": choice, "seconds": "1"}, self.saved)
            if status == 303:
                self.acknowledged[int(form["assignment"])] = choice
            else:
                self.odd[status] += 1

    async def watch(self, token: str) -> None:
        """The owner, who looks at the study every ten seconds."""
        visitor = Visitor(f"caplens_owner={token}")
        while len(self.acknowledged) < self.wanted:
            status, page = await visitor.request("/owner", None, self.boards)
            self.odd[status] += status != 200 or "answers" not in page
            await asyncio.sleep(10)


def serve(study: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "caplens", "study", "serve", study, "--port", str(PORT), "-q"])


async def run(load: Load, owner: str, tokens: list[str], study: str, kills: int) -> int:
    server = serve(study)
    # Raters come when it is open, not while it starts.
    await Visitor("").request("/static/study.css", None, [])
    watching = asyncio.create_task(load.watch(owner))
    tasks = [asyncio.create_task(load.rate(token, number)) for number, token in enumerate(tokens)]
    done = 0
    rng = random.Random(0)
    while not all(task.done() for task in tasks):
        await asyncio.sleep(1)
        if done < kills and len(load.acknowledged) > (done + 0.5) * load.wanted / kills:
            await asyncio.sleep(rng.random())
            killed = time.perf_counter()
            server.send_signal(signal.SIGKILL)
            server.wait()
            server, done = serve(study), done + 1
            await Visitor("").request("/static/study.css", None, [])
            load.outages.append((killed, time.perf_counter()))
    watching.cancel()
    server.terminate()
    server.wait()
    return done


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--raters", type=int, default=300)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--think", type=float, default=4.0, help="Seconds between answers of a rater, in the mean.")
    parser.add_argument("--study", help="The URL of an empty PostgreSQL database, instead of a file.")
    options = parser.parse_args()
    image = str(files("caplens").joinpath("examples", "cat.jpg"))
    samples = [Sample(str(n), f"caption {n}", image=image, lang="en") for n in range(-(-options.answers // 3) + options.raters)]
    with tempfile.TemporaryDirectory() as folder:
        study = options.study or str(Path(folder) / "study.db")
        owner = create_study(study, StudySettings(gold_share=0), {"x": samples}).owner_token
        tokens = list(open_study(study).invite([f"r{number}" for number in range(options.raters)], []).values())
        load = Load(options.answers, options.think)
        start = time.monotonic()
        kills = asyncio.run(run(load, owner, tokens, study, options.kills))
        took = time.monotonic() - start
        kept = {answer.assignment: answer for answer in answers_of(open_study(study))}
    report(load, kept, took, kills)


def report(load: Load, kept: dict[int, Answer], took: float, kills: int) -> None:
    """Print the latencies and what was lost or kept twice; end with the status 1 if anything was."""
    for name, latencies in (("pages", load.pages), ("answers", load.saved), ("owner", load.boards)):
        waited = [span for span in latencies if any(span[0] < back and span[1] > killed for killed, back in load.outages)]
        answered = set(latencies) - set(waited)
        median, high, top = np.quantile([end - start for start, end in answered], [0.5, 0.95, 0.99]) * 1000
        numbers = f"median {median:.0f} ms, p95 {high:.0f} ms, p99 {top:.0f} ms"
        print(f"{name}: {len(answered):,} requests, {numbers}; {len(waited):,} more waited for a server that had been killed")
    count = len(load.acknowledged)
    print(f"{count:,} answers acknowledged in {took:.0f} s ({count / took:.0f}/s), {kills} kills")
    wrong = wrong_answers(load, kept)
    print(f"{', '.join(f'{name} {number}' for name, number in wrong.items())}; other statuses: {dict(load.odd)}")
    os._exit(1 if any(wrong.values()) else 0)


def wrong_answers(load: Load, kept: dict[int, Answer]) -> dict[str, int]:
    """How many acknowledged answers are lost or changed, and how often a rater has an item twice or an item a fourth rater."""
    ratings = {number: answer.value["ratings"]["quality"] for number, answer in kept.items()}
    of_items = Counter(answer.item for answer in kept.values())
    return {
        "lost": sum(number not in kept for number in load.acknowledged),
        "changed": sum(ratings.get(number, float(choice)) != float(choice) for number, choice in load.acknowledged.items()),
        "twice": len(kept) - len({(answer.rater, answer.item) for answer in kept.values()}),
        "judged too often": sum(times > 3 for times in of_items.values()),
    }


if __name__ == "__main__":
    main()
