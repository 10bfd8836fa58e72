"""Studies in their database: who gets what, what is kept, and what comes out."""

import json
from collections import Counter

import pytest
from extras import need
from hypothesis import given, settings
from hypothesis import strategies as st

need("sqlalchemy")

from study_site import EXAMPLES, answer_all, answer_all_at_once, captions, many, rater

from caplens.data import Sample, SampleFile
from caplens.errors import InputError
from caplens.human import dashboard
from caplens.human.answering import WrongAnswerError, read_answer, save_answer, take_back
from caplens.human.assignment import open_item, rater_of
from caplens.human.database import StudyDatabase, hashed
from caplens.human.export import caption_ratings, event_rows, exported_rows, preferences
from caplens.human.settings import StudySettings, StudyTask

CREATE = ("study", "create", EXAMPLES / "good.jsonl", "--images", EXAMPLES)


def test_every_item_is_judged_as_often_as_it_should_and_by_nobody_twice(make):
    database, _ = make(StudySettings(replication=2), {"x": many(20)})
    raters = [rater(database, name) for name in ("Ada", "Grace", "Linus")]
    seen = Counter()
    for turn in range(60):
        who = raters[turn % 3]
        item = open_item(database, who)
        if item is not None:
            save_answer(database, who, item.assignment, "rate", {"choice-0": "3"}, None)
            seen[who.name, item.captions[0]["id"]] += 1
    assert max(seen.values()) == 1
    assert set(Counter(caption for _, caption in seen).values()) == {2}
    counts = Counter(name for name, _ in seen)
    assert max(counts.values()) - min(counts.values()) <= 2


def test_captions_of_one_image_are_kept_apart(make):
    rows = [
        Sample(f"{image}-{number}", f"caption {image} {number}", image=str(EXAMPLES / image), lang="en")
        for image in ("cat.jpg", "rocket.jpg", "camera.jpg", "officer.jpg")
        for number in range(3)
    ]
    database, _ = make(StudySettings(replication=1), {"x": rows})
    images = [item.image for item in answer_all(database, rater(database))]
    assert len(images) == 12
    assert len(set(images[:4])) == 4


def test_raters_get_only_their_languages(make):
    database, _ = make(StudySettings(), {"good": captions(langs=("en", "de"))})
    assert {item.lang for item in answer_all(database, rater(database, langs=["de"]))} == {"de"}
    with pytest.raises(InputError, match="nothing in fr"):
        database.invite(["Grace"], ["fr"])
    with pytest.raises(InputError, match="already"):
        database.invite(["Ada"], [])


def test_what_is_open_stays_open_and_expires(make, monkeypatch):
    database, _ = make(StudySettings(replication=1, lease_minutes=1), {"x": many(1)})
    ada, grace = rater(database), rater(database, "Grace")
    item = open_item(database, ada)
    assert open_item(database, ada) == item
    assert open_item(database, grace) is None
    later = dashboard_time(monkeypatch, 120)
    assert open_item(database, grace).captions == item.captions
    # Who comes too late is heard all the same.
    assert save_answer(database, ada, item.assignment, "rate", {"choice-0": "1"}, later)
    assert len(caption_ratings(database)) == 1


def dashboard_time(monkeypatch, seconds):
    import time

    now = time.time()
    monkeypatch.setattr("caplens.human.assignment.time.time", lambda: now + seconds)
    return 5.0


def test_an_answer_is_kept_once_changed_and_taken_back(make):
    database, _ = make(StudySettings(), {"x": many(3)})
    ada = rater(database)
    first = open_item(database, ada)
    assert save_answer(database, ada, first.assignment, "rate", {"choice-0": "4"}, 2.0)
    assert not save_answer(database, ada, first.assignment, "rate", {"choice-0": "4"}, 9.0)
    assert save_answer(database, ada, first.assignment, "rate", {"choice-0": "2"}, 9.0)
    assert [rating.value for rating in caption_ratings(database)] == [2]
    assert take_back(database, ada)
    assert open_item(database, ada).captions == first.captions
    assert caption_ratings(database) == []
    assert not take_back(database, ada)
    assert [event["kind"] for event in event_rows(database)] == ["invite", "answer", "change", "undo"]


def test_nobody_answers_for_another(make):
    database, _ = make(StudySettings(), {"x": many(3)})
    ada, grace = rater(database), rater(database, "Grace")
    item = open_item(database, ada)
    for assignment in (item.assignment, 999):
        with pytest.raises(WrongAnswerError):
            save_answer(database, grace, assignment, "rate", {"choice-0": "4"}, None)
    with pytest.raises(WrongAnswerError):
        save_answer(database, ada, item.assignment, "write", {"caption": "a caption of mine"}, None)


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from(["rate", "sidebyside", "write"]),
    st.dictionaries(st.sampled_from(["choice", "choice-0", "caption", "reason"]), st.text(max_size=40)),
    st.booleans(),
)
def test_any_form_is_an_answer_or_an_error(step, form, swapped):
    try:
        value = read_answer(StudySettings(reasons=True), step, "en", form, swapped=swapped)
    except WrongAnswerError:
        return
    assert json.loads(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("swapped", "choice", "preference"), [(False, "-3", 3), (True, "-3", -3), (False, "2", -2), (True, "0", 0)]
)
def test_a_preference_is_for_the_system_whichever_side_it_was_on(swapped, choice, preference):
    value = read_answer(StudySettings(task=StudyTask.sidebyside), "sidebyside", "en", {"choice": choice}, swapped=swapped)
    assert value["preference"] == preference


def test_side_by_side_shows_both_orders_and_no_names(make):
    rows = {name: many(40) for name in ("ours", "base")}
    rows["ours"] = [Sample(s.id, f"better {s.caption}", image=s.image, lang="en") for s in rows["ours"]]
    database, _ = make(StudySettings(task=StudyTask.sidebyside, replication=1), rows)
    shown = answer_all(database, rater(database), lambda item: {"choice": "-3" if item.captions[0]["system"] == "ours" else "3"})
    assert 8 < sum(item.swapped for item in shown) < 32
    assert {entry.value for entry in preferences(database)} == {3.0}
    assert {(entry.system, entry.baseline) for entry in preferences(database)} == {("ours", "base")}


def test_writers_rate_a_batch_first_and_then_write_without_the_captions(make):
    content = StudySettings(task=StudyTask.write, batch=3, replication=1)
    database, _ = make(content, {"good": captions()}, langs=["de"])
    texts = {"rate": {"choice-0": "3"}, "write": {"caption": "Ein Mann steht vor einem Haus."}}
    shown = answer_all(database, rater(database), lambda item: texts[item.step])
    assert [item.step for item in shown] == ["rate"] * 3 + ["write"] * 3 + ["rate"] * 2 + ["write"] * 2
    assert [item.place for item in shown] == [1, 2, 3, 1, 2, 3, 1, 2, 1, 2]
    assert all(bool(item.captions) == (item.step == "rate") for item in shown)
    rows = list(exported_rows(database))
    assert {row["lang"] for row in rows} == {"de"}
    assert {row["caption"] for row in rows} == {texts["write"]["caption"]}


@pytest.mark.parametrize(
    ("lang", "text", "message"),
    [
        ("de", "Hund", "too short"),
        ("zh", "一只", "too short"),
        ("de", "wort " * 61, "too long"),
        ("de", "123 !", "write a caption"),
    ],
)
def test_captions_have_a_length(lang, text, message):
    with pytest.raises(WrongAnswerError, match=message):
        read_answer(StudySettings(task=StudyTask.write), "write", lang, {"caption": text}, swapped=False)


def test_gold_items_and_repetitions_check_attention(make):
    rows = many(40) + [
        Sample(f"gold{n}", f"gold {n}", image=str(EXAMPLES / "cat.jpg"), lang="en", meta={"gold": "BAD"}) for n in range(10)
    ]
    database, _ = make(StudySettings(replication=2, gold_share=0.2, repeat_share=0.2), {"x": rows})
    careful, careless = rater(database, "Careful"), rater(database, "Careless")
    turn = iter(range(1000))
    answer_all(database, careful, lambda item: {"choice-0": "1" if item.captions[0]["id"].startswith("gold") else "3"})
    answer_all(database, careless, lambda item: {"choice-0": "41"[next(turn) % 2]})
    table = next(table for table in dashboard.overview(database).tables if table.title == "By rater")
    by_name = {row[0]: row for row in table.rows}
    right, of = by_name["Careful"][4].split(" of ")
    assert right == of
    assert int(of) >= 5
    assert by_name["Careful"][6] == ""
    assert "careless?" in by_name["Careless"][6]
    assert not any(rating.caption.startswith("gold") for rating in caption_ratings(database))
    counts = Counter((rating.caption, rating.rater) for rating in caption_ratings(database))
    assert max(counts.values()) == 1


def test_a_pilot_ends_and_the_study_is_paused_and_closed(make):
    database, _ = make(StudySettings(pilot=2, replication=1), {"x": many(6)})
    ada = rater(database)
    assert len(answer_all(database, ada)) == 2
    database.set_state("open")
    assert len(answer_all(database, ada, most=2)) == 2
    for state in ("paused", "closed"):
        database.set_state(state)
        assert open_item(database, ada) is None
    with pytest.raises(InputError, match="not 'gone'"):
        database.set_state("gone")


def test_all_that_a_rater_did_can_be_deleted(make):
    database, _ = make(StudySettings(replication=1), {"x": many(4)})
    token = database.invite(["Ada"], [])["Ada"]
    with database.reading() as connection:
        ada = rater_of(connection, hashed(token))
    answer_all(database, ada)
    dashboard.forget_rater(database, "Ada")
    assert caption_ratings(database) == []
    assert "Ada" not in json.dumps(list(event_rows(database)))
    with database.reading() as connection:
        assert rater_of(connection, hashed(token)) is None
    assert len(answer_all(database, rater(database, "Grace"))) == 4


def test_ratings_flow_into_agreement(make, tmp_path, caplens):
    database, _ = make(StudySettings(replication=2), {"good": captions(langs=("en", "de"))})
    for name in ("Ada", "Grace"):
        turn = iter(range(100))
        answer_all(database, rater(database, name), lambda item, turn=turn: {"choice-0": str(1 + next(turn) % 4)})
    said = caplens("study", "export", database.place, "-o", tmp_path / "rated.jsonl")
    assert said.status == 0
    samples = list(SampleFile(tmp_path / "rated.jsonl"))
    assert len(samples) == 10
    assert all(len(sample.ratings) == 2 and sample.ratings[0].rater == "Ada" for sample in samples)
    assert caplens("agreement", tmp_path / "rated.jsonl", "-m", "length", "--resamples", "20").status == 0


def test_two_programs_at_once_lose_nothing_and_do_nothing_twice(make):
    database, _ = make(StudySettings(replication=2), {"x": many(60)})
    people = [rater(database, f"r{n}") for n in range(6)]
    answer_all_at_once(database.place, people, 2)


def create_with(settings, folder, caplens):
    (folder / "study.toml").write_text(settings, encoding="utf-8")
    return caplens(*CREATE, "--settings", folder / "study.toml", "-o", folder / "s.db")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("replication = 0", "from 1 to 100"),
        ("replication = true", "a whole number"),
        ("task = 'guess'", "rate, sidebyside, write"),
        ("scale = 3", "a list of points"),
        ("[[scale]]\nvalue = 1\nname = 'a'", "2 to 11 points"),
        ("[[scale]]\nvalue = 1\nname = 'a'\n[[scale]]\nvalue = 2\nname = 'b'", "the best first"),
        ("criteria = ['a', 'a']", "each once"),
        ("colour = 'red'", "there is no setting 'colour'"),
        ("shortest = 70", "more than longest"),
        ("title = ''", "1 to 200"),
        ("title", "cannot be read"),
    ],
)
def test_settings_that_make_no_sense_are_one_sentence(tmp_path, caplens, text, words):
    said = create_with(text, tmp_path, caplens)
    assert said.status == 2
    assert words in said.err
    assert not (tmp_path / "s.db").exists()


def test_settings_of_a_file_are_those_of_the_study(tmp_path, caplens):
    text = """
title = "Alt texts"
replication = 5
criteria = ["fluency", "adequacy"]
guidelines = { en = "Be kind." }
[[scale]]
value = 1
name = "yes"
[[scale]]
value = 0
name = "no"
"""
    said = create_with(text, tmp_path, caplens)
    assert said.status == 0, said.err
    kept = StudyDatabase(tmp_path / "s.db").settings
    assert (kept.title, kept.replication, kept.criteria, kept.values) == (
        "Alt texts",
        5,
        ("fluency", "adequacy"),
        {"yes": 1, "no": 0},
    )


def test_what_cannot_be_a_study_is_said(tmp_path, caplens, write):
    lost = write("lost.jsonl", [{"id": "1", "caption": "a dog", "image": "nowhere.jpg"}])
    create = ("study", "create")
    for arguments, words in (
        ((*create, lost, "-o", tmp_path / "a.db"), "would be empty"),
        ((*create, EXAMPLES / "good.jsonl", "--task", "sidebyside", "-o", tmp_path / "a.db"), "two or more"),
        (
            (*create, EXAMPLES / "good.jsonl", "--task", "write", "--images", EXAMPLES, "-o", tmp_path / "a.db"),
            "in which languages",
        ),
        ((*create, EXAMPLES / "good.jsonl", "--images", EXAMPLES, "-o", "mysql://x/y"), "PostgreSQL"),
        (("study", "status", tmp_path / "none.db"), "no such study"),
        (("study", "status", EXAMPLES / "cat.jpg"), "cannot be used"),
        (("study", "serve", tmp_path / "none.db", "--host", "0.0.0.0"), "without TLS"),
        (("study", "serve", tmp_path / "none.db", "--public", "http://x"), "need https"),
    ):
        said = caplens(*arguments)
        assert said.status == 2, arguments
        assert words in said.err
    assert not (tmp_path / "a.db").exists()


def test_a_study_is_never_written_over(tmp_path, caplens):
    arguments = (*CREATE, "-o", tmp_path / "s.db")
    assert caplens(*arguments).status == 0
    before = (tmp_path / "s.db").read_bytes()
    said = caplens(*arguments)
    assert said.status == 2
    assert "exists already" in said.err
    assert (tmp_path / "s.db").read_bytes() == before


def test_a_study_of_a_newer_version_is_not_touched(make):
    database, _ = make()
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(InputError, match="newer caplens"):
        StudyDatabase(database.place)


def test_a_plan_is_drawn_from_a_pilot_and_a_metric_beside_people(tmp_path, caplens):
    systems = [f"{name}={EXAMPLES / name}.jsonl" for name in ("good", "bad")]
    said = caplens(
        "study", "create", *systems, "--images", EXAMPLES, "--task", "sidebyside", "-o", tmp_path / "s.db", "--replication", 1
    )
    assert said.status == 0, said.err
    database = StudyDatabase(tmp_path / "s.db")
    said = caplens("study", "plan", tmp_path / "s.db", "--system", "good", "--baseline", "bad")
    assert "answers to a pilot" in said.err
    answer_all(database, rater(database), lambda item: {"choice": "-2" if item.captions[0]["system"] == "good" else "2"})
    said = caplens("study", "plan", tmp_path / "s.db", "--system", "good", "--baseline", "bad", "--images", "20", "--json")
    assert json.loads(said.out)["plan"][0]["power"] > 0.9
    said = caplens(
        "study", "analyze", tmp_path / "s.db", *systems, "-m", "clipscore", "--images", EXAMPLES, "--resamples", 20, "--json"
    )
    assert said.status == 0, said.err
    result = json.loads(said.out)
    assert {row["delta"][0] for row in result["side_by_sides"]} == {100.0}
    assert all(pair["metrics"]["clipscore"] > 0 for pair in result["pairs"])
    assert len(result["pairs"]) == 9
