"""A study in PostgreSQL does what one in a file does. CAPLENS_POSTGRESQL is the URL of an empty database."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from extras import need

need("sqlalchemy")
need("psycopg")

from study_site import EXAMPLES, answer_all_at_once, many, rater

from caplens.api import create_study
from caplens.errors import CaplensError
from caplens.human import dashboard
from caplens.human.database import StudyDatabase
from caplens.human.export import event_rows
from caplens.human.settings import StudySettings


@pytest.fixture
def url():
    place = os.environ.get("CAPLENS_POSTGRESQL")
    if not place:
        pytest.skip("needs PostgreSQL, and the URL of an empty database in $CAPLENS_POSTGRESQL")
    from sqlalchemy import MetaData, create_engine

    def clear():
        engine = create_engine(place.replace("postgresql://", "postgresql+psycopg://", 1))
        metadata = MetaData()
        metadata.reflect(engine)
        metadata.drop_all(engine)
        engine.dispose()

    clear()
    yield place
    clear()


def test_raters_who_answer_at_once_do_nothing_twice(url):
    settings = StudySettings(replication=2, repeat_share=0.1)
    assert create_study(url, settings, {"x": many(60)}).items == 60
    database = StudyDatabase(url)
    people = [rater(database, f"r{number}") for number in range(6)]
    answer_all_at_once(url, people, 2)
    assert dashboard.overview(database).answers == 120
    dashboard.forget_rater(database, "r0")
    assert "r0" not in {event["actor"] for event in event_rows(database)}


def test_postgresql_knows_how_many_items_there_are(url):
    """So that its planner takes the next item from the index: without, it sorted all items for each rater."""
    create_study(url, StudySettings(), {"x": many(300)})
    with StudyDatabase(url).reading() as connection:
        rows = connection.exec_driver_sql("SELECT reltuples FROM pg_class WHERE relname = 'items'").scalar_one()
    assert rows == 300


def test_a_study_is_not_written_over_and_a_wrong_password_is_one_sentence(url, caplens):
    create = ("study", "create", EXAMPLES / "good.jsonl", "--images", EXAMPLES, "-o", url)
    assert caplens(*create).status == 0
    said = caplens(*create)
    assert said.status == 2
    assert "a study already" in said.err
    with pytest.raises(CaplensError, match="cannot be used"):
        StudyDatabase("postgresql://nobody:wrong@127.0.0.1:1/none")


@pytest.mark.slow
def test_kills_under_load_lose_no_answer(url):
    """The benchmark in small: it ends with the status 1 if an acknowledged answer is lost, changed or there twice."""
    arguments = ("--raters", "30", "--answers", "1500", "--kills", "3", "--think", "0.5", "--study", url)
    program = Path(__file__).parents[2] / "benchmarks" / "study_load.py"
    done = subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "3 kills" in done.stdout
    assert "lost 0, changed 0, twice 0" in done.stdout
