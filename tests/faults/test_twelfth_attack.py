"""What a twelfth attacker found: tables whose rows have different columns, sheets that replace each other, studies and stores."""

import csv
import json
import tarfile
import time

import pytest
from extras import need

from caplens.calibration.set_faults import duplicate_faults
from caplens.data import Sample
from caplens.errors import InputError
from caplens.results.base import ROW_WRITERS
from caplens.results.check import CheckedCaption, CheckResult, Verdict


def table(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".parquet"])
def test_values_never_stand_below_the_name_of_another_column(tmp_path, suffix):
    if suffix == ".xlsx":
        need("openpyxl")
    if suffix == ".parquet":
        need("pyarrow")
    for rows in ([{"a": 1, "b": 2}, {"a": 1}], [{"a": 1}, {"a": 1, "b": 2}], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]):
        with pytest.raises(InputError, match="row 2 has not the columns of the first"):
            ROW_WRITERS[suffix](rows, tmp_path / f"rows{suffix}")


def test_no_column_of_the_file_takes_the_place_of_another():
    columns = {"verdict": "by Ann", "verdict (input)": "by Bob", "id (input)": 1}
    (row,) = (CheckResult([CheckedCaption("1", "a dog", columns=columns), CheckedCaption("2", "a cat")]).to_rows().__next__(),)
    assert row["verdict"] == "fine"
    assert sorted(str(row[name]) for name in row if "(input)" in name) == ["1", "by Ann", "by Bob"]


def test_captions_that_two_images_share_take_linear_time():
    def seconds(count):
        samples = [Sample(str(n), "a dog runs in the snow", image="a.jpg" if n < count - 1 else "b.jpg") for n in range(count)]
        start = time.perf_counter()
        faults = duplicate_faults(samples, ["en"] * count)
        assert len(faults) == count
        return time.perf_counter() - start

    seconds(100)
    assert seconds(40_000) < 8


@pytest.fixture
def workspace():
    need("fastapi")
    from caplens.human.workspace import Workspace

    space = Workspace()
    yield space
    space.close()


def checked(space, *rows, name="sheet.jsonl"):
    space.add(name, "".join(json.dumps(row) + "\n" for row in rows).encode())
    space.start()
    while space.is_running:
        time.sleep(0.02)
    assert not space.error
    return space.checks


def texts():
    from caplens.human.workspace import NoteTexts

    return NoteTexts(["verdict", "reasons", "old"], {verdict: str(verdict) for verdict in Verdict}, str)


def test_what_was_found_in_one_sheet_is_not_written_beside_another(workspace):
    check = checked(workspace, {"id": "1", "caption": "DSC_9999.jpg"})
    workspace.export(".csv", texts(), check)
    workspace.add("other.csv", b"id,caption\n77,A rocket stands at night\n")
    with pytest.raises(InputError, match="other captions were checked since"):
        workspace.export(".csv", texts(), check)
    with pytest.raises(InputError, match="no captions were checked yet"):
        workspace.export(".csv", texts(), workspace.checks)
    assert workspace.captions() == []
    with pytest.raises(InputError, match="other captions were checked since"):
        workspace.image(0, check)


def test_a_saved_table_has_each_cell_below_its_name(workspace, tmp_path):
    rows = (
        {"id": "1", "caption": "A dog runs in the snow.", "photographer": "Ann", "license": "CC-BY"},
        {"id": "2", "caption": "A cat sleeps on a sofa.", "license": "CC0", "comment": "blurred", "system": "m"},
    )
    check = checked(workspace, *rows)
    (tmp_path / "out.csv").write_bytes(workspace.export(".csv", texts(), check))
    first, second = table(tmp_path / "out.csv")
    assert (first["photographer"], first["license"], first["comment"], first["system"]) == ("Ann", "CC-BY", "", "")
    assert (second["photographer"], second["license"], second["comment"], second["system"]) == ("", "CC0", "blurred", "m")


def test_a_line_break_from_word_can_be_saved_in_excel(workspace, tmp_path):
    openpyxl = need("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "caption"], ["1", "DSC_9999.jpg"], ["2", "A dog runs in the snow."]):
        book.active.append(row)
    # A cell in the last column that has a format only.
    book.active["XFD1"].font = openpyxl.styles.Font(bold=True)
    book.save(tmp_path / "sheet.xlsx")
    workspace.add("sheet.xlsx", (tmp_path / "sheet.xlsx").read_bytes())
    workspace.start()
    while workspace.is_running:
        time.sleep(0.02)
    worst = workspace.captions()[0]
    workspace.correct(0, "A brown dog\x0bruns.", workspace.checks)
    (tmp_path / "out.xlsx").write_bytes(workspace.export(".xlsx", texts(), workspace.checks))
    saved = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert worst.caption == "DSC_9999.jpg"
    assert [cell.value for cell in saved[2]][:2] == ["1", "A brown dog runs."]
    assert saved.max_column <= 16_384
    assert saved["C1"].value == "verdict"


@pytest.fixture
def rated(tmp_path, caplens):
    """A study of two captions, of which one names its system, with an answer to each."""
    need("fastapi")
    from study_site import EXAMPLES, rater

    from caplens.human.answering import save_answer
    from caplens.human.assignment import open_item
    from caplens.human.database import StudyDatabase

    rows = [{"id": "1", "caption": "a cat", "image": "cat.jpg"},
            {"id": "2", "caption": "a rocket", "image": "rocket.jpg", "system": "m"}]  # fmt: skip
    (tmp_path / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    study = tmp_path / "study.db"
    create = ("study", "create", tmp_path / "captions.jsonl", "--images", EXAMPLES, "-o", study, "--replication", "1")
    assert caplens(*create).status == 0
    database = StudyDatabase(study)
    person = rater(database, "Ada")
    for _ in rows:
        item = open_item(database, person)
        save_answer(database, person, item.assignment, item.step, {"choice-0": "3"}, 1.0)
    return study


def test_answers_and_events_stand_below_their_names(rated, tmp_path, caplens):
    assert caplens("study", "export", rated, "-o", tmp_path / "rated.csv").status == 0
    rows = {row["id"]: row for row in table(tmp_path / "rated.csv")}
    assert {name: row["system"] for name, row in rows.items()} == {"1": "", "2": "m"}
    assert all(json.loads(row["ratings"])[0]["value"] == 3 for row in rows.values())
    assert caplens("study", "export", rated, "--events", "-o", tmp_path / "events.csv").status == 0
    events = table(tmp_path / "events.csv")
    assert {event["rater"] for event in events if event["kind"] == "answer"} == {""}
    assert all(event["assignment"].isdecimal() for event in events if event["kind"] == "answer")


def test_images_inside_of_an_archive_make_no_study(tmp_path, caplens):
    need("fastapi")
    from study_site import EXAMPLES

    (tmp_path / "0.txt").write_text("a cat", encoding="utf-8")
    with tarfile.open(tmp_path / "data.tar", "w") as archive:
        archive.add(EXAMPLES / "cat.jpg", "0.jpg")
        archive.add(tmp_path / "0.txt", "0.txt")
    said = caplens("study", "create", tmp_path / "data.tar", "-o", tmp_path / "study.db")
    assert said.status == 2
    assert "its image is inside of the file" in said.err
    assert not (tmp_path / "study.db").exists()


def test_two_pairs_of_captions_of_one_image_are_two(tmp_path):
    need("fastapi")
    from caplens.human.analysis import Preference, side_by_sides, votes_of_pair

    entries = [Preference(image, "en", "a", "b", "r", value, caption)
               for image in ("cat", "dog") for caption, value in (("0", 1.0), ("1", -1.0))]  # fmt: skip
    (row,) = side_by_sides(entries, resamples=10)
    assert (row.images, row.judgements, row.wins, row.losses) == (2, 4, 50.0, 50.0)
    assert row.agreement.alpha != row.agreement.alpha
    assert votes_of_pair(entries, "a", "b").shape == (4, 1)


def test_what_a_killed_export_left_is_not_imported(tmp_path):
    need("pyarrow")
    import numpy as np

    from caplens.embed.store import Store
    from caplens.embed.vector_shards import export_vectors, import_vectors

    store = Store(tmp_path / "a")
    store.model_vectors("m", "0123456789abcdef" * 2).put([b"t" + bytes(16)], np.ones((1, 4), np.float32), [False])
    export_vectors(store, store.models()[0], tmp_path / "out")
    left = tmp_path / "out" / ".0123.host-1-2.tmp"
    left.mkdir()
    (left / "0.parquet").write_bytes(b"PAR1")
    assert [entry.taken for entry in import_vectors(tmp_path / "out", Store(tmp_path / "b"))] == [1]


def test_images_inside_of_tables_keep_their_names(tmp_path, caplens):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    from study_site import EXAMPLES

    images = [{"bytes": (EXAMPLES / name).read_bytes(), "path": name} for name in ("cat.jpg", "rocket.jpg")]
    columns = {"id": ["1", "2"], "caption": ["a cat", "a rocket"], "image": images}
    places = {"latitude": [52.5, 28.6], "longitude": [13.4, 77.2]}
    parquet.write_table(arrow.table(columns | places), tmp_path / "data.parquet")
    score = ("score", tmp_path / "data.parquet", "-m", "length", "--keep-columns", "image", "-o", tmp_path / "scores.csv")
    assert caplens(*score).status == 0
    assert [row["image"] for row in table(tmp_path / "scores.csv")] == ["cat.jpg", "rocket.jpg"]
    select = ("select-images", tmp_path / "data.parquet", tmp_path / "chosen.jsonl", "--per-language", "1", "--langs", "de,hi")
    assert caplens(*select).status == 0
    chosen = [json.loads(line) for line in (tmp_path / "chosen.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["image"] for row in chosen} == {"cat.jpg", "rocket.jpg"}


def test_no_rater_is_called_owner(rated, caplens):
    said = caplens("study", "invite", rated, "owner")
    assert said.status == 2
    assert "the audit calls you 'owner'" in said.err


def test_answers_to_gold_items_are_not_among_those_wanted(tmp_path):
    need("fastapi")
    from study_site import many, rater

    from caplens.api import create_study
    from caplens.human import dashboard
    from caplens.human.answering import save_answer
    from caplens.human.assignment import open_item
    from caplens.human.database import StudyDatabase
    from caplens.human.settings import StudySettings

    samples = [*many(1), *(Sample(f"g{n}", "gold", image=s.image, lang="en", meta={"gold": 4}) for n, s in enumerate(many(3)))]
    create_study(tmp_path / "s.db", StudySettings(replication=1, gold_share=0.5), {"x": samples})
    database = StudyDatabase(tmp_path / "s.db")
    person, answered = rater(database, "Ada"), 0
    while (item := open_item(database, person)) is not None:
        save_answer(database, person, item.assignment, item.step, {"choice-0": "3"}, 1.0)
        answered += 1
    board = dashboard.overview(database)
    assert answered > 1
    assert (board.answers, board.wanted) == (1, 1)


def test_points_of_a_scale_that_look_alike_are_refused():
    need("fastapi")
    from caplens.human.settings import Label, StudySettings

    with pytest.raises(InputError, match="different names and values"):
        StudySettings(scale=(Label(1000002, "best", ""), Label(1000001, "middle", ""), Label(1000000, "worst", "")))


def test_a_leaderboard_is_written_as_a_whole_or_not_at_all(tmp_path, caplens, monkeypatch):
    from caplens.results.leaderboard import Leaderboard

    empty = Leaderboard([], {}, {}, None)
    empty.save(tmp_path / "board.json")
    build = ("leaderboard", "build", tmp_path / "board.json", "-o", tmp_path / "page")
    assert caplens(*build).status == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "page").iterdir()}
    save = Leaderboard.save

    def failing(self, path, **keywords):
        if str(path).endswith(".csv"):
            raise InputError("the disk is full.")
        save(self, path, **keywords)

    monkeypatch.setattr(Leaderboard, "save", failing)
    assert caplens(*build, "--title", "another").status == 2
    assert {path.name: path.read_bytes() for path in (tmp_path / "page").iterdir()} == before


def test_the_guard_of_our_own_csv_is_taken_off_by_every_reader(tmp_path):
    from caplens.data.records import read_records

    (tmp_path / "x.csv").write_text("a,b\n'@home,'-5 degrees\n", encoding="utf-8")
    ((_, row),) = read_records(tmp_path / "x.csv")
    assert row == {"a": "@home", "b": "-5 degrees"}


def test_a_report_reads_the_columns_that_were_scored(tmp_path, caplens):
    rows = "id,caption,ALT\n1,WRONG one,a dog runs\n2,WRONG two,a cat sleeps\n"
    (tmp_path / "t.csv").write_text(rows, encoding="utf-8")
    score = ("score", tmp_path / "t.csv", "--columns", "caption=ALT", "-m", "length", "-o", tmp_path / "s.json", "--resamples", 0)
    assert caplens(*score).status == 0
    assert caplens("report", tmp_path / "s.json", "-o", tmp_path / "r.html").status == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "a cat sleeps" in page
    assert "WRONG" not in page
    assert "have changed" not in page


def test_a_result_behind_a_link_names_the_file_that_was_scored(tmp_path, caplens):
    (tmp_path / "proj").mkdir()
    (tmp_path / "data" / "run").mkdir(parents=True)
    (tmp_path / "proj" / "out").symlink_to(tmp_path / "data" / "run")
    for folder in ("proj", "data"):
        text = f'{{"id": "1", "caption": "a dog of {folder}"}}\n'
        (tmp_path / folder / "t.jsonl").write_text(text, encoding="utf-8")
    output = tmp_path / "proj" / "out" / "s.json"
    assert caplens("score", tmp_path / "proj" / "t.jsonl", "-m", "length", "-o", output, "--resamples", 0).status == 0
    assert caplens("report", output, "-o", tmp_path / "r.html").status == 0
    assert "a dog of proj" in (tmp_path / "r.html").read_text(encoding="utf-8")


def exported(folder, count, dim=4):
    """A store with some vectors, exported."""
    import numpy as np

    from caplens.embed.store import Store
    from caplens.embed.vector_shards import export_vectors

    store = Store(folder)
    vectors = store.model_vectors("m", "0123456789abcdef" * 2)
    vectors.put([b"t" + bytes([n]) * 16 for n in range(count)], np.ones((count, dim), np.float32), [False] * count)
    vectors.close()
    return store, lambda out: export_vectors(store, store.models()[0], out)


def test_an_export_keeps_what_another_one_wrote(tmp_path):
    need("pyarrow")
    from caplens.embed.store import Store
    from caplens.embed.vector_shards import import_vectors

    _, first = exported(tmp_path / "a", 50)
    _, second = exported(tmp_path / "b", 10)
    assert (first(tmp_path / "out"), second(tmp_path / "out")) == (50, 10)
    (taken,) = import_vectors(tmp_path / "out", Store(tmp_path / "c"))
    assert (taken.taken, taken.damaged) == (50, 0)


def test_a_small_file_of_vectors_does_not_fill_the_memory(tmp_path):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    import numpy as np

    from caplens.embed.store import Store
    from caplens.embed.vector_shards import import_vectors

    _, export = exported(tmp_path / "a", 1)
    export(tmp_path / "out")
    path = next(path for path in (tmp_path / "out").glob("*/*.parquet") if parquet.read_table(path).num_rows)
    table = parquet.read_table(path)
    zeros = arrow.ListArray.from_arrays(arrow.array([0, 20_000_000]), arrow.array(np.zeros(20_000_000, np.float32)))
    parquet.write_table(table.set_column(2, "numbers", zeros).cast(table.schema), path, write_page_checksum=True)
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match="20,000,000 numbers, which are no vectors"):
        import_vectors(tmp_path / "out", Store(tmp_path / "b"))


def test_vectors_of_another_length_are_damaged(tmp_path):
    need("pyarrow")
    from caplens.embed.store import Store
    from caplens.embed.vector_shards import import_vectors

    store, export = exported(tmp_path / "a", 20)
    vectors = store.model_vectors("m", "0123456789abcdef" * 2)
    vectors.add("vectors", [(b"t" + bytes([200 + n]) * 16, b"\0\0\x80\x3f", 0) for n in range(3)])
    export(tmp_path / "out")
    (taken,) = import_vectors(tmp_path / "out", Store(tmp_path / "b"))
    assert (taken.taken, taken.damaged) == (20, 3)


def test_a_file_that_changes_while_it_is_filtered_is_an_error(tmp_path, monkeypatch):
    from caplens import filter_captions
    from caplens.api import filtering

    path = tmp_path / "in.jsonl"
    rows = [json.dumps({"id": str(n), "caption": "a dog " * (n + 1)}) + "\n" for n in range(4)]
    path.write_text("".join(rows), encoding="utf-8")
    scored = filtering.run_metrics

    def replaced_meanwhile(samples, metrics):
        result = scored(samples, metrics)
        (tmp_path / "new").write_text("".join(reversed(rows)), encoding="utf-8")
        (tmp_path / "new").replace(path)
        return result

    monkeypatch.setattr(filtering, "run_metrics", replaced_meanwhile)
    with pytest.raises(InputError, match="changed while it was scored"):
        filter_captions(path, tmp_path / "out.jsonl", metric="length", keep_top=0.5)
    path.write_text("".join(rows), encoding="utf-8")
    monkeypatch.setattr(filtering, "file_version", lambda path: None)
    with pytest.raises(InputError, match="changed while it was read"):
        filter_captions(path, tmp_path / "out.jsonl", metric="length", keep_top=0.5)


def test_low_scores_that_are_good_are_not_kept_by_a_lower_bound(tmp_path):
    from caplens.calibration.filtering import FilterRule, is_lower_better, kept_rows
    from caplens.results.scores import ScoreResult

    assert is_lower_better("metricx24-qe")
    assert not is_lower_better("length")
    with pytest.raises(InputError, match="low scores are the good ones"):
        kept_rows(ScoreResult([], [], {"metricx24-qe": _scores()}), "metricx24-qe", FilterRule(above=5))


def _scores():
    import numpy as np

    from caplens.results.scores import Scores
    from caplens.stats.means import mean_pool, mean_statistics

    values = np.array([1.0, 5.0, 9.0])
    return Scores(values, 5.0, "s", mean_statistics(values), mean_pool)


def test_an_image_at_two_places_is_an_error(tmp_path, caplens):
    lines = "id,image,latitude,longitude\n1,a.jpg,52.5,13.4\n2,a.jpg,28.6,77.2\n3,b.jpg,28,77\n"
    (tmp_path / "x.csv").write_text(lines, encoding="utf-8")
    said = caplens("select-images", tmp_path / "x.csv", tmp_path / "o.jsonl", "--per-language", 1, "--langs", "de,hi")
    assert said.status == 2
    assert "taken at two places" in said.err


def test_an_address_that_is_none_is_a_sentence(rated, caplens):
    said = caplens("study", "serve", rated, "--public", "https://[x")
    assert said.status == 2
    assert "need https" in said.err
    assert "without line ends" in caplens("study", "invite", rated, "Eve\nMallory: http://x").err


@pytest.mark.parametrize("names", [("good", "too long", "too short"), ("right", "done"), ("good", "medium", "bad")])
def test_raters_see_the_points_of_a_scale_by_their_own_names(tmp_path, names):
    need("fastapi")
    from starlette.testclient import TestClient
    from study_site import many

    from caplens.api import create_study, open_study, study_server
    from caplens.human.settings import Label, StudySettings

    scale = tuple(Label(len(names) - place, name, name) for place, name in enumerate(names))
    create_study(tmp_path / "s.db", StudySettings(scale=scale), {"x": many(3)})
    token = open_study(tmp_path / "s.db").invite(["Ada"], [])["Ada"]
    with TestClient(study_server(tmp_path / "s.db"), base_url="http://127.0.0.1") as client:
        page = client.get(f"/join/{token}")
        assert page.status_code == 200
        for name in names:
            assert f"<span>{name}</span>" in page.text


def test_a_writer_who_goes_back_and_undoes_is_not_stuck(tmp_path):
    need("fastapi")
    from study_site import many, rater

    from caplens.api import create_study
    from caplens.human.answering import save_answer, take_back
    from caplens.human.assignment import open_item
    from caplens.human.database import StudyDatabase
    from caplens.human.settings import StudySettings, StudyTask

    settings = StudySettings(task=StudyTask.write, batch=1, shortest=1, replication=1)
    create_study(tmp_path / "s.db", settings, {"x": many(2)}, langs=["en"])
    database = StudyDatabase(tmp_path / "s.db")
    person = rater(database, "Ada")
    first = open_item(database, person)
    save_answer(database, person, first.assignment, "rate", {"choice-0": "3"}, 1.0)
    save_answer(database, person, first.assignment, "write", {"caption": "A cat looks to the side."}, 1.0)
    save_answer(database, person, first.assignment, "rate", {"choice-0": "2"}, 1.0)
    assert take_back(database, person)
    for _ in range(10):
        item = open_item(database, person)
        if item is None:
            break
        form = {"choice-0": "3"} if item.step == "rate" else {"caption": "A brown cat looks to the side."}
        assert save_answer(database, person, item.assignment, item.step, form, 1.0)
    assert item is None


def test_a_correction_is_not_held_against_a_guessed_language(workspace):
    need("py3langid")
    check = checked(workspace, {"id": "1", "caption": "dsc0001.jpg"})
    assert workspace.correct(0, "A rocket stands at night between two towers.", check).faults == ()


def test_better_images_have_their_folders(tmp_path):
    from caplens.calibration.image_faults import name_in

    assert name_in(tmp_path, str(tmp_path / "cat" / "1.jpg")) == "cat/1.jpg"


def test_numbers_of_a_sheet_stay_numbers(workspace, tmp_path):
    workspace.add("sheet.csv", b"id,caption,lat,sum\n1,DSC_9999.jpg,-33.9,=1+1\n2,A dog runs in the snow.,+2,x\n")
    workspace.start()
    while workspace.is_running:
        time.sleep(0.02)
    workspace.correct(0, "'-5 degrees' says a sign", workspace.checks)
    (tmp_path / "out.csv").write_bytes(workspace.export(".csv", texts(), workspace.checks))
    first, second = table(tmp_path / "out.csv")
    assert (first["lat"], first["sum"], second["lat"]) == ("-33.9", "'=1+1", "+2")
    assert first["caption"] == "''-5 degrees' says a sign"


@pytest.mark.parametrize("value", ['{"value": 1}', '["de"]'])
def test_a_language_that_is_no_text_is_a_sentence_without_an_id_too(tmp_path, value):
    from caplens.data import SampleFile

    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"image": "2.png", "caption": "a cat", "lang": {value}}}\n', encoding="utf-8")
    with pytest.raises(InputError, match="'lang'"):
        list(SampleFile(path))
