"""Captions that were edited after they were scored are not shown beside their old scores without a word."""

import json

import pytest

import caplens

ROWS = [{"id": str(n), "caption": f"a dog {n}", "references": ["a dog"]} for n in range(4)]
CHANGED = "have changed since they were scored"


def _write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("key", ["caption", "references"])
def test_scores(tmp_path, key):
    captions = _write(tmp_path / "captions.jsonl", ROWS)
    result = caplens.score(captions, ["bleu1"], resamples=0)
    result.save(tmp_path / "scores.json")
    page = caplens.write_report(tmp_path / "scores.json", tmp_path / "page.html", captions=captions)
    assert CHANGED not in page.read_text(encoding="utf-8")
    edited = [{**row, key: "a cat" if key == "caption" else ["a cat"]} for row in ROWS]
    caplens.write_report(tmp_path / "scores.json", page, captions=_write(captions, edited))
    assert f"The {key if key == 'references' else 'captions'} {CHANGED}" in page.read_text(encoding="utf-8")


def test_comparisons(tmp_path):
    files = {name: _write(tmp_path / f"{name}.jsonl", ROWS) for name in ("one", "two")}
    caplens.compare(files, ["bleu1"], resamples=1).save(tmp_path / "compared.json")
    page = caplens.write_report(tmp_path / "compared.json", tmp_path / "page.html", captions=list(files.values()))
    assert CHANGED not in page.read_text(encoding="utf-8")
    _write(files["two"], [{**row, "caption": "a cat"} for row in ROWS])
    caplens.write_report(tmp_path / "compared.json", page, captions=list(files.values()))
    assert f"The captions of two {CHANGED}" in page.read_text(encoding="utf-8")
