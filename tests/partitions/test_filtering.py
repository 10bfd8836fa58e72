"""Filtering partition by partition keeps what filtering one file keeps."""

import json

import numpy as np
import pytest
from extras import need

arrow, parquet = need("pyarrow"), need("pyarrow.parquet")

from caplens import filter_captions, filter_partitions
from caplens.errors import InputError
from caplens.metrics.options import ScoringOptions
from caplens.partitions import inputs

LOCAL = ScoringOptions(keep_store=False)


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """700 captions in Parquet and JSON Lines; some have no text, and many have equal scores."""
    rng = np.random.default_rng(0)
    rows = [{"id": str(n), "caption": " ".join(["word"] * int(rng.integers(0, 12))), "extra": f"e{n}"} for n in range(700)]
    (tmp_path / "parts").mkdir()
    parquet.write_table(arrow.Table.from_pylist(rows[:400]), tmp_path / "parts" / "0.parquet", row_group_size=70)
    lines = ["".join(json.dumps(row) + "\n" for row in part) for part in (rows[400:], rows)]
    (tmp_path / "parts" / "1.jsonl").write_text(lines[0], encoding="utf-8")
    (tmp_path / "all.jsonl").write_text(lines[1], encoding="utf-8")
    monkeypatch.setattr(inputs, "_ROWS", 150)
    monkeypatch.setattr(inputs, "_STRETCH", 5000)
    return tmp_path


def _kept(folder):
    rows = [row for path in (folder / "kept").glob("*.parquet") for row in parquet.read_table(path).to_pylist()]
    rows += [json.loads(line) for path in (folder / "kept").glob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
    return {row["id"]: row for row in rows}


@pytest.mark.parametrize("rule", [{"keep_top": 0.3}, {"above": 7.0}, {"keep_top": 0.9, "above": 3.0}])
def test_the_same_captions_are_kept_as_of_one_file(parts, rule):
    whole = filter_captions(parts / "all.jsonl", parts / "good.jsonl", "length", options=LOCAL, **rule)
    report = filter_partitions(parts / "parts", parts / "out", "length", options=LOCAL, **rule)
    expected = {row["id"]: row for row in map(json.loads, (parts / "good.jsonl").read_text("utf-8").splitlines())}
    kept = _kept(parts / "out")
    assert kept.keys() == expected.keys()
    assert all(kept[key]["extra"] == row["extra"] and kept[key]["length"] == row["length"] for key, row in expected.items())
    assert (report.rows, report.kept, report.unscored, report.threshold) == (
        whole.rows, whole.kept, whole.unscored, whole.threshold
    )  # fmt: skip


def test_another_rule_uses_the_scores_that_there_are(parts, monkeypatch, caplens):
    filter_partitions(parts / "parts", parts / "out", "length", keep_top=0.5, options=LOCAL)
    run = caplens("filter", parts / "parts", parts / "out", "-m", "length", "--above", "7", "--json")
    assert run.status == 3
    assert json.loads(run.out)["kept"] == len(_kept(parts / "out"))
    assert all(row["length"] > 7 for row in _kept(parts / "out").values())


def test_wrong_rules_and_options_are_one_sentence(parts, caplens):
    with pytest.raises(InputError, match="say which captions to keep"):
        filter_partitions(parts / "parts", parts / "out", "length", options=LOCAL)
    assert (
        "--below-chance cannot be used" in caplens("filter", parts / "parts", parts / "o", "-m", "length", "--below-chance").err
    )
    assert "by one metric" in caplens("filter", parts / "parts", parts / "o", "-m", "length,cider", "--above", "1").err
