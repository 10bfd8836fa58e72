"""Results that caplens 0.1.0 wrote, which name neither `kind` nor `schema`, are loaded, saved and shown as they were."""

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

import caplens as package
from caplens.results import (
    AgreementResult,
    Comparison,
    LanguageComparison,
    LeakageResult,
    RobustnessResult,
    ScoreResult,
    SuiteResult,
)

FOLDER = Path(__file__).parents[1] / "golden" / "results-0.1"
CLASSES = {
    "score": ScoreResult,
    "compare": Comparison,
    "robustness": RobustnessResult,
    "bench": AgreementResult,
    "suite": SuiteResult,
    "crossmodal": LanguageComparison,
    "leakage": LeakageResult,
}
"""In the order of the page; 0.1.0 had no section about leakage."""


def _without(content, *keys):
    return {key: value for key, value in content.items() if key not in keys}


def _differences(old, new, path=""):
    """Where `new` lacks something that `old` holds; keys that only `new` has do not count."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key not in new:
                yield f"{path}.{key} is missing"
            elif key != "caplens":
                yield from _differences(value, new[key], f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (old_item, new_item) in enumerate(zip(old, new, strict=True)):
            yield from _differences(old_item, new_item, f"{path}[{index}]")
    elif old != new:
        yield f"{path}: {old!r} became {new!r}"


@pytest.mark.parametrize("name", CLASSES)
def test_each_is_loaded_as_its_class_with_all_its_content(name):
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert not {"kind", "schema"} & content.keys()
    result = package.load_results(FOLDER / f"{name}.json")
    assert type(result) is CLASSES[name]
    assert list(_differences(_without(content, "inputs"), result.to_dict())) == []


@pytest.mark.parametrize("name", CLASSES)
def test_each_is_the_same_after_it_was_saved_and_loaded(name, tmp_path):
    result = package.load_results(FOLDER / f"{name}.json")
    result.save(tmp_path / "again.json")
    again = package.load_results(tmp_path / "again.json")
    assert type(again) is CLASSES[name]
    assert again.to_dict() == result.to_dict()


class Page(HTMLParser):
    """The sections of a report: the title, the text of each table's cells by row, and the number of plots.

    The golden file was made with this class, from the page that caplens 0.1.0 wrote.
    """

    def __init__(self, html):
        super().__init__()
        self.sections = []
        self._text = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag == "section":
            self.sections.append({"title": "", "tables": [], "plots": 0})
        elif tag == "table":
            self.sections[-1]["tables"].append([])
        elif tag == "tr":
            self.sections[-1]["tables"][-1].append([])
        elif tag == "figure" and ("class", "plot") in attrs:
            self.sections[-1]["plots"] += 1
        elif tag in {"h2", "th", "td"}:
            self._text = ""

    def handle_data(self, data):
        if self._text is not None:
            self._text += data

    def handle_endtag(self, tag):
        if tag == "h2":
            self.sections[-1]["title"] = self._text
        elif tag in {"th", "td"}:
            self.sections[-1]["tables"][-1][-1].append(self._text)
        if tag in {"h2", "th", "td"}:
            self._text = None


def test_the_page_has_the_tables_and_plots_that_it_had(caplens, tmp_path):
    """In a folder without the captions, so that neither page has galleries or plots about them."""
    for name in CLASSES:
        shutil.copy(FOLDER / f"{name}.json", tmp_path)
    run = caplens("report", *(tmp_path / f"{name}.json" for name in CLASSES), "-o", tmp_path / "report.html")
    assert run.status == 0
    *sections, leakage = Page((tmp_path / "report.html").read_text(encoding="utf-8")).sections
    old = json.loads((FOLDER / "page.json").read_text(encoding="utf-8"))["sections"]
    assert [section["title"] for section in sections] == [section["title"] for section in old]
    for section, old_section in zip(sections, old, strict=True):
        assert section == old_section, old_section["title"]
    assert leakage == {
        "title": "leakage: flickr8k-expert",
        "tables": [[["image", "same name", "same content"]]],
        "plots": 0,
    }
