"""The whole journey of a museum in a real browser: 50 photos, a German sheet, ten planted faults, the corrected sheet."""

import io
import lzma
import random
import zipfile

import pytest
from extras import need
from PIL import Image

need("fastapi")
need("uvicorn")

COUNT = 50
PLANTED = {
    # Row -> another caption, or one made of its own.
    3: "DSC_0412.JPG",
    8: "Alt-Text folgt",
    13: "{cut} der",
    17: "A boy in a red shirt jumps into the water.",
    22: "{good} <br/>&nbsp;",
    27: "Ein gelber Bagger steht auf einer Baustelle neben einem Hochhaus.",
    31: "Eine Schüssel mit Tomatensuppe und Brot auf einem Holztisch.",
    36: "Mehrere Segelboote liegen bei Sonnenuntergang im Hafen.",
    41: "Bild",
    46: "Ein Ein Ein Hund Hund läuft läuft läuft",
}


@pytest.fixture
def museum(tmp_path, flickr8k):
    """Photos of Flickr8k's dev split with captions by people, ten of which are made wrong; and the right ones."""
    openpyxl = need("openpyxl")
    captions = {}
    with lzma.open(flickr8k / "captions" / "de.native.tsv.xz", "rt", encoding="utf-8") as lines:
        for image, number, caption in (line.rstrip("\n").split("\t") for line in lines):
            if number != "0":
                captions.setdefault(image.partition(".")[0], []).append(caption)
    names = [name.partition(".")[0] for name in (flickr8k / "dev.txt").read_text(encoding="utf-8").split()]
    chosen = random.Random(5).sample([name for name in names if name in captions], COUNT)
    good = [max(captions[name], key=len) for name in chosen]
    (tmp_path / "Fotos").mkdir()
    book = openpyxl.Workbook()
    book.active.append(["Inventarnummer", "Bild", "Alt-Text", "Sprache"])
    with zipfile.ZipFile(flickr8k / "images.zip") as archive:
        members = {name.rpartition("/")[2].partition(".")[0]: name for name in archive.namelist()}
        for row, name in enumerate(chosen):
            photo = Image.open(io.BytesIO(archive.read(members[name]))).convert("RGB")
            photo.save(tmp_path / "Fotos" / f"foto{row:02}.jpg", quality=92)
            cut = good[row][: len(good[row]) // 2].rpartition(" ")[0]
            text = PLANTED.get(row, "{good}").format(cut=cut, good=good[row])
            book.active.append([f"M-{row:03}", f"foto{row:02}.jpg", text, "Deutsch"])
    book.save(tmp_path / "alt-texte.xlsx")
    return tmp_path, good


@pytest.mark.data
@pytest.mark.slow
def test_ten_planted_faults_are_found_fixed_and_exported(app, museum, browser):
    folder, good = museum
    context = browser.new_context(locale="de", accept_downloads=True)
    page = context.new_page()
    page.goto(app.address)
    page.locator("#photos").set_input_files(folder / "Fotos")
    page.locator("#sheet").set_input_files(folder / "alt-texte.xlsx")
    page.locator("#start").click()
    page.locator("#counts").wait_for(timeout=60_000)
    cards = page.locator(".check")
    first = [int(cards.nth(place).locator(".note").last.inner_text()[2:5]) for place in range(len(PLANTED))]
    assert set(first) == set(PLANTED)
    for row in first:
        page.locator(".check", has_text=f"M-{row:03} ").locator("textarea").fill(good[row])
    with page.expect_download() as download:
        page.locator("#xlsx").click()
    page.get_by_text("mit 10 geänderten").wait_for(timeout=60_000)
    download.value.save_as(folder / "out.xlsx")
    rows = list(need("openpyxl").load_workbook(folder / "out.xlsx").active.values)[1:]
    assert [row[2] for row in rows] == good
    assert [row[0] for row in rows] == [f"M-{number:03}" for number in range(COUNT)]
    context.close()
