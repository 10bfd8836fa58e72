"""Raters in a real browser: by mouse, by keyboard, on a phone, in Arabic, with a connection that goes away."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from extras import need

need("fastapi")
need("uvicorn")

from study_site import EXAMPLES, captions, many

from caplens.human.export import answers_of, caption_ratings, exported_rows, preferences
from caplens.human.settings import StudySettings, StudyTask

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


@pytest.fixture
def visit(browser):
    """Open pages of a site as a rater: `visit(site, "Ada", locale="ar")`."""
    contexts = []

    def open_page(site, name, path=None, **settings):
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("console", lambda message: page.errors.append(message.text) if "Content Security" in message.text else None)
        page.goto(site.address + (path or f"/join/{site.database.invite([name], [])[name]}"))
        return page

    yield open_page
    for context in contexts:
        context.close()


def saved(page, count):
    """Wait until a page says that so many answers are kept."""
    page.wait_for_function(
        "count => { const p = document.querySelector('.progress, .message');"
        " return p && (p.className === 'message' || new RegExp('(^|\\\\D)' + count + '(\\\\D|$)').test(p.textContent)); }",
        arg=count,
    )


def test_a_rater_finishes_by_mouse_and_the_owner_sees_it(serve, visit):
    site = serve(StudySettings(replication=1))
    page = visit(site, "Ada")
    for count in range(1, 6):
        page.locator("#answer").get_by_text("Good", exact=True).click()
        page.get_by_role("button", name="Save and go on").click()
        saved(page, count)
    page.get_by_text("There is nothing left for you").wait_for()
    assert [rating.value for rating in caption_ratings(site.database)] == [3.0] * 5
    assert all(0 < answer.seconds < 60 for answer in answers_of(site.database))
    owner = visit(site, "", f"/owner/join/{site.owner_token}")
    owner.get_by_text("5 answers of 5").wait_for()
    assert page.errors == owner.errors == []


def test_a_rater_finishes_by_keyboard_and_undoes_an_answer(serve, visit):
    site = serve(StudySettings(replication=1))
    page = visit(site, "Ada")
    page.keyboard.press("4")
    page.keyboard.press("Enter")
    saved(page, 1)
    page.locator("#undo").focus()
    page.keyboard.press("Enter")
    saved(page, 0)
    for count in range(1, 6):
        page.keyboard.press("0" if count == 5 else "1")
        page.keyboard.press("Enter")
        saved(page, count)
    assert Counter(rating.value for rating in caption_ratings(site.database)) == {4.0: 4, None: 1}


def test_side_by_side_on_a_phone(serve, visit):
    site = serve(StudySettings(task=StudyTask.sidebyside, replication=1), {name: captions(name) for name in ("good", "bad")})
    page = visit(site, "Ada", **PHONE)
    good = {sample.caption for sample in captions()}
    for count in range(1, 6):
        left = page.locator(".sides .caption").first.inner_text()
        page.locator(f'input[name="choice"][value="{-3 if left in good else 3}"]').check(force=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name="Save and go on").tap()
        saved(page, count)
    assert [entry.value for entry in preferences(site.database)] == [3.0] * 5


def test_a_writer_works_in_arabic(serve, visit):
    settings = StudySettings(task=StudyTask.write, batch=2, replication=1)
    site = serve(settings, {"good": captions()[:2]}, langs=["ar"])
    page = visit(site, "Ada", locale="ar")
    assert page.locator("html").get_attribute("dir") == "rtl"
    for count in (1, 2):
        page.locator("#answer").get_by_text("جيد", exact=True).click()
        page.get_by_role("button", name="احفظ وتابع").click()
        saved(page, count)
    for count in (3, 4):
        page.locator("textarea").fill("رجل يقف أمام بيت كبير أبيض")
        page.get_by_role("button", name="احفظ وتابع").click()
        saved(page, count)
    assert len(list(exported_rows(site.database))) == 2
    assert page.errors == []


def test_two_raters_two_tabs_double_clicks_and_reloads_lose_nothing(serve, visit):
    site = serve(StudySettings(replication=2), {"x": many(3)})
    ada, grace = visit(site, "Ada"), visit(site, "Grace")
    tab = ada.context.new_page()
    tab.goto(f"{site.address}/task")
    assert tab.locator(".caption").inner_text() == ada.locator(".caption").inner_text()
    for page in (ada, tab):
        page.locator("#answer").get_by_text("Good", exact=True).click()
        page.get_by_role("button", name="Save and go on").dblclick()
        page.wait_for_load_state()
    ada.reload()
    for page in (ada, grace):
        while page.get_by_text("There is nothing left").count() == 0:
            page.locator("#answer").get_by_text("Good", exact=True).click()
            with page.expect_navigation():
                page.get_by_role("button", name="Save and go on").click()
    ratings = caption_ratings(site.database)
    assert len(ratings) == 6
    assert set(Counter((rating.caption, rating.rater) for rating in ratings).values()) == {1}


def test_an_answer_waits_for_the_connection(serve, visit):
    site = serve(StudySettings(replication=1))
    page = visit(site, "Ada")
    page.locator("#answer").get_by_text("Bad", exact=True).click()
    page.context.set_offline(True)
    page.get_by_role("button", name="Save and go on").click()
    page.get_by_text("No connection").wait_for()
    assert caption_ratings(site.database) == []
    page.context.set_offline(False)
    saved(page, 1)
    assert [rating.value for rating in caption_ratings(site.database)] == [1.0]


def test_it_works_without_scripts_too(serve, visit):
    site = serve(StudySettings(replication=1))
    page = visit(site, "Ada", java_script_enabled=False)
    page.locator('input[name="choice-0"][value="3"]').check()
    page.get_by_role("button", name="Save and go on").click()
    page.get_by_text("1 answered").wait_for()
    page.get_by_role("button", name="Undo my last answer").click()
    page.get_by_text("0 answered").wait_for()


def test_markup_in_a_caption_is_text_in_a_browser_too(serve, visit):
    from caplens.data import Sample

    text = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    site = serve(StudySettings(), {"x": [Sample("1", text, image=str(EXAMPLES / "cat.jpg"), lang="en")]})
    page = visit(site, "Ada")
    assert page.locator(".caption").inner_text() == text
    assert page.title() == "Captions of images"


def test_axe_finds_nothing(serve, visit):
    """$CAPLENS_AXE names axe.min.js of the npm package axe-core, which is not ours to bring."""
    script = Path(os.environ.get("CAPLENS_AXE", ""))
    if not script.is_file():
        pytest.skip("needs axe.min.js of axe-core, named by $CAPLENS_AXE")
    systems = {name: captions(name) for name in ("good", "bad")}
    site = serve(StudySettings(task=StudyTask.sidebyside), systems)
    other = serve(StudySettings(reasons=True))
    owner = f"/owner/join/{site.owner_token}"
    for page in (visit(site, "Ada"), visit(other, "Ada", locale="ar", color_scheme="dark"), visit(site, "", owner)):
        page.evaluate(script.read_text(encoding="utf-8"))
        violations = page.evaluate("axe.run().then(found => found.violations.map(one => [one.id, one.impact]))")
        assert violations == []


@pytest.mark.parametrize("task", list(StudyTask))
@pytest.mark.parametrize("lang", ["en", "ar"])
def test_pages_are_accessible(serve, visit, task, lang):
    systems = {name: captions(name) for name in (("good", "bad") if task is StudyTask.sidebyside else ("good",))}
    site = serve(StudySettings(task=task, reasons=True), systems, langs=["de"] if task is StudyTask.write else [])
    page = visit(site, "Ada", locale=lang)
    assert page.locator("html").get_attribute("lang") == lang
    unlabelled = page.evaluate(
        "[...document.querySelectorAll('input:not([type=hidden]), textarea, select, button')]"
        ".filter(e => !(e.labels?.length || e.textContent.trim() || e.getAttribute('aria-label'))).length"
    )
    assert unlabelled == 0
    assert page.evaluate("[...document.images].every(i => i.alt)")
    assert page.locator("fieldset legend").count() >= 1
    assert page.locator("h1").count() == 1
    assert not re.search("cat|rocket|officer|camera|astronaut", page.locator("img").first.get_attribute("alt"))
