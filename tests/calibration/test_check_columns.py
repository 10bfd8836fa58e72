"""Columns that Parquet has and tables for people cannot hold: `check` leaves bytes out, and writers say what they cannot take."""

import datetime
import decimal

import pytest
from extras import need

from caplens.errors import InputError
from caplens.results.base import ROW_WRITERS


@pytest.fixture
def rich(tmp_path):
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    table = arrow.table({
        "id": ["1", "2"], "caption": ["A dog runs through the snow.", "IMG_1.jpg"], "lang": ["en", "en"],
        "blob": [b"\x00\xff", b"x"], "when": [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)] * 2,
        "price": [decimal.Decimal("1.5")] * 2, "tags": [[{"a": 1}], []], "n": [float("nan"), 1.0],
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "rich.parquet")
    return tmp_path / "rich.parquet"


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv", ".xlsx", ".parquet"])
def test_columns_of_any_type_do_not_stop_a_check(rich, caplens, tmp_path, suffix):
    need("openpyxl")
    output = tmp_path / f"fix{suffix}"
    said = caplens("check", rich, "-o", output)
    assert said.status == 0, said.err
    assert "left out of tables: blob" in said.err
    if suffix == ".parquet":
        columns = need("pyarrow.parquet").read_table(output).to_pydict()
        assert columns["tags"] == ["[]", '[{"a": 1}]']
        assert "blob" not in columns


@pytest.mark.parametrize(("suffix", "words"), [(".xlsx", "a cell of Excel holds text or numbers"), (".parquet", "Write JSONL")])
def test_what_a_writer_cannot_hold_is_one_sentence(tmp_path, capsys, suffix, words):
    need("openpyxl")
    need("pyarrow")
    rows = [{"a": b"x"}, {"a": 1}]
    with pytest.raises(InputError, match=words):
        ROW_WRITERS[suffix](iter(rows), tmp_path / f"out{suffix}")
    assert "Exception ignored" not in capsys.readouterr().err
