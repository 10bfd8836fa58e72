"""Studies of the examples in the package, served on a port of this machine."""

import threading
import time

import pytest
from extras import need


@pytest.fixture
def make(tmp_path):
    """Make a study: `make(StudySettings(…), {"good": captions()})` -> its database, and the token of its owner."""
    need("sqlalchemy")
    from study_site import captions

    from caplens.api import create_study
    from caplens.human.database import StudyDatabase
    from caplens.human.settings import StudySettings

    numbers = iter(range(100))

    def make_study(settings=None, systems=None, **options):
        place = tmp_path / f"study{next(numbers)}.db"
        made = create_study(place, settings or StudySettings(), systems or {"good": captions()}, **options)
        return StudyDatabase(place), made.owner_token

    return make_study


@pytest.fixture
def serve(make):
    """Serve a study on a free port: `serve(StudySettings(…), systems)` -> `Site`."""
    need("uvicorn")
    need("fastapi")
    from study_site import Site

    from caplens.api import study_server
    from caplens.human.serving import PageServer

    running = []

    def start(*arguments, **options):
        database, token = make(*arguments, **options)
        server = PageServer(study_server(database.place), "127.0.0.1", 0)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        deadline = time.monotonic() + 30
        while not server.is_ready:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.append((server, thread))
        return Site(server.address, database, token)

    yield start
    for server, thread in running:
        server.stop()
        thread.join(10)


@pytest.fixture
def app():
    """The page to find and fix captions."""
    need("uvicorn")
    need("fastapi")
    from caplens.api import CheckingApp

    started = CheckingApp()
    thread = threading.Thread(target=started.run, daemon=True)
    thread.start()
    while not started.is_ready:
        thread.join(0.05)
    yield started
    started.stop()
    thread.join(20)
