"""`caplens app` in a real browser, by mouse only: a folder of photos and a German sheet in, the corrected sheet out."""

import csv
import io
import shutil
import urllib.error
import urllib.request

import pytest
from extras import need

need("fastapi")
need("uvicorn")

from study_site import EXAMPLES

from caplens.errors import InputError
from caplens.human.workspace import NoteTexts, Workspace
from caplens.results.check import Verdict

GOOD = {
    "cat.jpg": "Eine getigerte Katze mit grünen Augen schaut zur Seite.",
    "rocket.jpg": "Eine Rakete steht am Abend zwischen Türmen auf der Startrampe.",
    "camera.jpg": "Ein Mann in einem dunklen Mantel schaut durch eine Kamera auf einem Stativ.",
    "astronaut.jpg": "Eine lächelnde Frau in einem orangefarbenen Raumanzug steht vor einer Fahne.",
}
FAULTS = {
    "officer.jpg": "IMG_2041.JPG",
    "cat2.jpg": "Alt-Text folgt",
    "rocket2.jpg": "Eine Rakete steht auf der",
    "camera2.jpg": "Ein Mann &amp; eine Kamera<br/>",
    "astronaut2.jpg": "Zwei Hunde laufen durch tiefen Schnee.",
}


@pytest.fixture
def museum(tmp_path):
    """Nine photos and a sheet of alt texts, of which five are bad."""
    openpyxl = need("openpyxl")
    photos = tmp_path / "Fotos"
    photos.mkdir()
    book = openpyxl.Workbook()
    book.active.title = "Objekte"
    book.create_sheet("Notizen").append(["gehört nicht dazu"])
    book.active.append(["Inventarnummer", "Bild", "Alt-Text", "Sprache", "Freigegeben"])
    for number, (name, text) in enumerate({**GOOD, **FAULTS}.items()):
        shutil.copy(EXAMPLES / name.replace("2", ""), photos / name)
        book.active.append([f"M{number}", name, text, "Deutsch", "ja"])
    book.active["C2"].font = openpyxl.styles.Font(bold=True)
    book.save(tmp_path / "alt.xlsx")
    return tmp_path


@pytest.fixture
def page(app, museum, browser):
    """The page after the check, in German; errors of its script fail the test."""
    context = browser.new_context(locale="de", accept_downloads=True)
    opened = context.new_page()
    errors = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto(app.address)
    assert opened.locator("#start").is_disabled()
    opened.locator("#photos").set_input_files(museum / "Fotos")
    opened.locator("#sheet").set_input_files(museum / "alt.xlsx")
    opened.get_by_role("button", name="Bildunterschriften prüfen").click()
    opened.locator("#counts").wait_for(timeout=60_000)
    yield opened
    assert errors == []
    context.close()


def card(page, name):
    return page.locator(".check", has_text=name)


def saved(page, button, path):
    with page.expect_download() as download:
        page.locator(button).click()
    download.value.save_as(path)
    return download.value.suggested_filename


def test_captions_are_found_and_fixed_by_mouse(page):
    cards = page.locator(".check")
    assert cards.count() == 9
    worst = [cards.nth(row).locator("textarea").input_value() for row in range(6)]
    assert set(FAULTS.values()) <= set(worst)
    before = page.locator("#counts").inner_text()
    fixed = card(page, "M5")
    assert "Platzhalter" in fixed.inner_text()
    fixed.locator("textarea").fill("Eine getigerte Katze sitzt im Zimmer.")
    fixed.locator("textarea").blur()
    fixed.get_by_text("Ihre Änderung ist übernommen.").wait_for()
    assert fixed.get_attribute("data-verdict") != "fix"
    assert page.locator("#counts").inner_text() != before
    # A field that is emptied on the way to another caption is no error of the page.
    card(page, "M6").locator("textarea").fill("")
    card(page, "M6").get_by_text("es gibt keine Bildunterschrift").wait_for()
    assert page.locator("#error").is_hidden()
    card(page, "M8").get_by_role("button", name="So lassen").click()
    card(page, "M8").get_by_text("Gut").wait_for()


def test_the_sheet_comes_back_in_its_own_shape(page, museum, tmp_path):
    openpyxl = need("openpyxl")
    card(page, "M8").get_by_role("button", name="So lassen").click()
    card(page, "M8").get_by_text("Gut").wait_for()
    card(page, "M6").locator("textarea").fill("")
    # Saved right after the last key: what is still to be judged is in the sheet.
    card(page, "M7").locator("textarea").fill("Ein Mann schaut durch eine Kamera.")
    assert saved(page, "#xlsx", tmp_path / "out.xlsx") == "alt - berichtigt.xlsx"
    page.get_by_text("Gespeichert als alt - berichtigt.xlsx, mit 2 geänderten").wait_for()
    book, original = (openpyxl.load_workbook(path) for path in (tmp_path / "out.xlsx", museum / "alt.xlsx"))
    assert book.sheetnames == ["Objekte", "Notizen"]
    assert book["Objekte"]["C2"].font.bold
    rows, before = (list(one["Objekte"].values) for one in (book, original))
    assert rows[0] == (*before[0], "Urteil", "Gründe", "Vorheriger Text")
    changed = {number: row[2] or "" for number, row in enumerate(rows) if row[:5] != before[number]}
    assert changed == {7: "", 8: "Ein Mann schaut durch eine Kamera."}
    assert rows[8][7] == before[8][2]
    assert rows[9][5] == "Gut"


def test_nobody_leaves_with_unsaved_corrections_unasked(page, tmp_path):
    card(page, "M0").locator("textarea").fill("Eine Katze.")
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    page.locator("#again").click()
    page.locator("#quit").click()
    assert len(asked) == 2
    assert "noch in keiner gespeicherten Tabelle" in asked[0]
    assert page.locator("#gone").is_hidden()
    saved(page, "#csv", tmp_path / "out.csv")
    page.get_by_text("mit 1 geänderten").wait_for()
    page.locator("#quit").click()
    page.get_by_text("Das Programm ist beendet").wait_for()


def test_a_csv_sheet_comes_back_in_its_own_shape(tmp_path):
    space = Workspace()
    text = 'Nr;Notiz;Alt-Text;Bild\r\n1;"zwei\nZeilen";Alt-Text folgt;x.jpg\r\n2;=1+1;Ein Hund läuft.;y.jpg\r\n'
    try:
        space.add("alt.csv", text.encode("utf-16"))
        space.start()
        space._running.join()
        row = next(row for row, caption in enumerate(space.captions()) if caption.caption == "Alt-Text folgt")
        space.correct(row, "Eine Katze; sie sitzt.", space.checks)
        texts = NoteTexts(["Urteil", "Gründe", "vorher"], {verdict: str(verdict) for verdict in Verdict}, str)
        written = space.export(".csv", texts, space.checks).decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(written, newline=""), delimiter=";"))
        assert rows[0] == ["Nr", "Notiz", "Alt-Text", "Bild", "Urteil", "Gründe", "vorher"]
        assert rows[1][:4] == ["1", "zwei\nZeilen", "Eine Katze; sie sitzt.", "x.jpg"]
        assert rows[1][6] == "Alt-Text folgt"
        assert rows[2][:4] == ["2", "'=1+1", "Ein Hund läuft.", "y.jpg"]
        table = need("openpyxl").load_workbook(io.BytesIO(space.export(".xlsx", texts, space.checks))).active
        assert table["B2"].value == "x.jpg"
        assert table["D2"].value == "Eine Katze; sie sitzt."
    finally:
        space.close()


def test_the_example_works_and_a_bad_sheet_is_said(app, browser, tmp_path):
    context = browser.new_context(locale="en")
    page = context.new_page()
    page.goto(app.address)
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    page.locator("#sheet").set_input_files(tmp_path / "bad.csv")
    page.get_by_role("button", name="Check the captions").click()
    page.locator("#error").wait_for()
    message = page.locator("#error").inner_text()
    assert "format is not recognised" in message
    assert "/tmp" not in message
    page.get_by_role("button", name="Try an example").click()
    page.locator("#counts").wait_for(timeout=60_000)
    card = page.locator(".check").first
    suggestion = card.locator("bdi").inner_text()
    card.get_by_role("button", name="Use this caption").click()
    card.locator(".kept").filter(has_text="taken over").wait_for()
    assert card.locator("textarea").input_value() == suggestion
    assert "to fix" in page.locator("#counts").inner_text()
    assert page.locator(".check img").first.evaluate("image => image.decode().then(() => image.naturalWidth > 50)")
    context.close()


def test_nobody_gets_in_without_the_address(app):
    base = app.address.partition("/open/")[0]

    def status(path, **options):
        try:
            with urllib.request.urlopen(urllib.request.Request(base + path, **options), timeout=20) as response:
                return response.status
        except urllib.error.HTTPError as error:
            return error.code

    assert status("/") == status("/captions") == status("/export/captions.csv") == status("/open/guess") == 403
    assert status("/upload?name=a.jpg", data=b"x", headers={"X-Caplens": "app"}) == 403
    assert status("/", headers={"Host": "evil.example"}) == 403


@pytest.mark.parametrize(
    "name", ["../x.jpg", "/etc/x.jpg", "a/../../x.jpg", "a\\..\\..\\x.jpg", "", "x" * 300 + ".jpg", "a\0.jpg"]
)
def test_files_stay_in_their_folder(name):
    space = Workspace()
    try:
        with pytest.raises(InputError, match="not the name of a file"):
            space.add(name, b"x")
        space.add("photos/deep/a.jpg", b"x")
        space.add("notes.pdf", b"x")
        assert [path.relative_to(space.folder).as_posix() for path in space.folder.rglob("*") if path.is_file()] == [
            "photos/deep/a.jpg"
        ]
    finally:
        space.close()
    assert not space.folder.exists()
