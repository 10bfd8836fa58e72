"""The report in a browser, as people see it: nothing is fetched, nothing complains, filters work, captions cannot do anything."""

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import caplens as package
from caplens.data import Sample, SampleFile, write_samples
from caplens.report.documents import Document
from caplens.report.page import write_page

EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
ARABIC = "قطة بنية ذات عينين خضراوين تنظر إلى الجانب"
CHINESE = "一只绿眼睛的棕色猫看着旁边。"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory, examples, scores, comparison, robustness):
    """A report about scores, systems and robustness; two captions of one system would do harm if they could."""
    folder = tmp_path_factory.mktemp("report")
    captions = [replace(sample, image=str(examples / str(sample.image))) for sample in SampleFile(examples / "good.jsonl")]
    captions[0] = replace(captions[0], caption=EVIL, references=(EVIL,))
    write_samples(captions, folder / "evil.jsonl")
    documents = [
        Document("scores", scores, {"captions": str(folder / "evil.jsonl")}),
        Document("<b>systems</b>", comparison, {"systems": {"good": "good.jsonl", "bad": "bad.jsonl"}, "images": "."}, examples),
        Document("robustness", robustness),
    ]
    write_page(documents, folder / "report.html")
    return folder / "report.html"


@pytest.fixture
def opened(browser, page_file):
    """Opens the report and watches: whatever the console says or the page asks for is an error."""
    trouble = []

    def watch(page):
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on(
            "request", lambda request: trouble.append(request.url) if not request.url.startswith(("file:", "data:")) else None
        )
        page.goto(page_file.as_uri())
        return page

    pages = []

    def new(**settings):
        pages.append(browser.new_page(**settings))
        return watch(pages[-1])

    yield new
    for page in pages:
        page.close()
    assert not trouble


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("desktop", {"viewport": {"width": 1100, "height": 900}}),
        ("phone", {"viewport": {"width": 390, "height": 800}, "is_mobile": True}),
        ("dark", {"viewport": {"width": 1100, "height": 900}, "color_scheme": "dark"}),
    ],
)
def test_it_is_drawn_on_every_screen(opened, tmp_path, name, settings):
    page = opened(**settings)
    page.screenshot(path=tmp_path / f"{name}.png")
    with Image.open(tmp_path / f"{name}.png") as image:
        corner = image.convert("L").getpixel((2, 2))
    assert (corner < 60) if name == "dark" else (corner > 200)
    # Nothing is wider than the screen but what can be scrolled by itself.
    assert page.evaluate("document.documentElement.scrollWidth") <= settings["viewport"]["width"]
    ink = page.evaluate("getComputedStyle(document.querySelector('.plot svg text')).fill")
    assert (ink == "rgb(237, 237, 234)") if name == "dark" else (ink == "rgb(22, 22, 26)")


@pytest.mark.parametrize(("lang", "caption", "direction"), [("ar", ARABIC, "rtl"), ("zh", CHINESE, "ltr")])
def test_filters_find_captions_of_a_language_and_it_is_set_as_it_is_read(opened, tmp_path, lang, caption, direction):
    page = opened()
    gallery = page.locator(".gallery").first
    gallery.locator("[data-filter=lang]").select_option(lang)
    cases = gallery.locator(".case:visible")
    assert cases.count() == 5
    assert set(cases.evaluate_all("all => all.map(one => one.dataset.lang)")) == {lang}
    assert gallery.locator("output").inner_text() == f"{cases.count()} of {gallery.locator('.case').count()}"
    shown = cases.locator(".caption", has_text=caption).first
    shown.scroll_into_view_if_needed()
    assert shown.evaluate("one => getComputedStyle(one).direction") == direction
    cases.first.screenshot(path=tmp_path / f"{lang}.png")
    gallery.locator("[data-filter=text]").fill("no caption has these words")
    assert cases.count() == 0


def test_filters_know_systems_and_reasons(opened):
    gallery = opened().locator("#section-2 .gallery")
    gallery.locator("[data-filter=system]").select_option("bad")
    gallery.locator("[data-filter=why]").select_option("worst by clipscore")
    cases = gallery.locator(".case:visible")
    assert cases.count() > 0
    # The captions of both systems about an image share a card.
    assert set(cases.evaluate_all("all => all.map(one => one.dataset.system)")) == {"bad\ngood"}


def test_what_captions_hold_is_text(opened):
    page = opened()
    gallery = page.locator(".gallery").first
    gallery.locator("[data-filter=text]").fill("onerror")
    shown = gallery.locator(".caption:visible", has_text="onerror").first
    shown.scroll_into_view_if_needed()
    assert shown.text_content() == EVIL
    assert page.title() == "caplens report"
    assert page.locator("img[src=x]").count() == 0
    assert page.locator("h2", has_text="<b>systems</b>").count() == 1


def test_plots_and_tables_can_be_taken_away(opened, tmp_path):
    page = opened()
    with page.expect_download() as download:
        page.locator("[data-svg]").first.click()
    svg = download.value.path().read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "clipscore" in svg
    with page.expect_download() as download:
        page.locator("a[download$='.csv']").first.click()
    assert download.value.path().read_text(encoding="utf-8").startswith("metric,score,")
    with page.expect_download() as download:
        page.locator("a[download$='.tex']").first.click()
    assert r"\begin{tabular}" in download.value.path().read_text(encoding="utf-8")


def test_a_large_result_shows_two_hundred_captions_at_most(browser, tmp_path):
    chance = np.random.default_rng(0)
    words = [f"word{n}" for n in range(30)]
    samples = [Sample(str(n), " ".join(chance.choice(words, 8)), (" ".join(chance.choice(words, 8)),)) for n in range(3000)]
    results = package.score(samples, ["bleu1", "bleu2", "rouge-l", "cider"], resamples=0)
    write_samples(samples, tmp_path / "captions.jsonl")
    write_page([Document("many", results, {"captions": str(tmp_path / "captions.jsonl")})], tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 5e6
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    count = page.locator(".case").count()
    assert 50 < count <= 200
    assert page.locator(".case:visible").count() == 24
    page.locator(".more").click()
    assert page.locator(".case:visible").count() == count
    page.locator("[data-filter=text]").fill("word7")
    assert 0 < page.locator(".case:visible").count() < count
    page.close()


def test_the_command_finds_captions_where_the_result_says(tmp_path, examples, caplens):
    (tmp_path / "photos").mkdir()
    for photo in examples.glob("*.jpg"):
        (tmp_path / "photos" / photo.name).write_bytes(photo.read_bytes())
    (tmp_path / "captions.jsonl").write_bytes((examples / "good.jsonl").read_bytes())
    scored = caplens(
        "score", tmp_path / "captions.jsonl", "--images", tmp_path / "photos", "-o", tmp_path / "scores.json", "--resamples", 20
    )
    assert scored.status == 0
    assert json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))["inputs"] == {
        "captions": "captions.jsonl",
        "images": "photos",
    }
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("photos", "captions.jsonl", "scores.json"):
        (tmp_path / name).rename(moved / name)
    made = caplens("report", moved / "scores.json", "-o", tmp_path / "report.html")
    assert made.status == 0
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert sum(sample.caption in html for sample in SampleFile(examples / "good.jsonl")) >= 20
    assert html.count("data:image/jpeg;base64,") == len(list(examples.glob("*.jpg")))
