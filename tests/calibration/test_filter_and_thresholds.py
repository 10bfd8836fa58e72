"""Filters and thresholds keep, count and end as they say."""

import json

import numpy as np
import pytest
from extras import need

import caplens as package
from caplens.errors import InputError


def _rows(count=50):
    return [{"id": str(n), "caption": " ".join(["word"] * (n + 1)), "note": f"n{n}"} for n in range(count)]


def test_the_best_are_kept_in_their_order_with_their_scores(caplens, write, tmp_path):
    path = write("captions.jsonl", _rows()[::-1])
    said = caplens("filter", path, tmp_path / "kept.jsonl", "-m", "length", "--keep-top", "30%")
    assert said.status == 0
    assert "15 of 50 captions kept, the worst with length 36.000" in said.err
    kept = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in kept] == [str(n) for n in range(49, 34, -1)]
    assert kept[0]["length"] == 50
    assert kept[0]["note"] == "n49"


def test_rows_of_parquet_keep_all_columns_and_types(tmp_path):
    pyarrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    table = pyarrow.table(
        {"id": [str(n) for n in range(20)], "caption": ["word " * (n + 1) for n in range(20)],
         "tags": [[n, n] for n in range(20)], "blob": [bytes([n]) for n in range(20)], "length": list(range(20))}
    )  # fmt: skip
    parquet.write_table(table, tmp_path / "in.parquet", row_group_size=7)
    report = package.filter_captions(tmp_path / "in.parquet", tmp_path / "out.parquet", "length", above=15)
    out = parquet.read_table(tmp_path / "out.parquet")
    assert (report.rows, report.kept, report.threshold) == (20, 5, 16)
    assert out.column_names == ["id", "caption", "tags", "blob", "length (input)", "length"]
    assert out.drop_columns(["length", "length (input)"]).equals(table.drop_columns(["length"]).slice(15))
    assert out["length"].to_pylist() == [16, 17, 18, 19, 20]


def test_groups_of_rows_and_their_compression_are_those_of_the_input(tmp_path):
    pyarrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    count = 40_000
    table = pyarrow.table({"id": [f"{n}" for n in range(count)], "caption": [f"word {n} " * 40 for n in range(count)]})
    parquet.write_table(table, tmp_path / "in.parquet", row_group_size=count // 2, compression="zstd")
    package.filter_captions(tmp_path / "in.parquet", tmp_path / "out.parquet", "length", above=0)
    before, after = (parquet.ParquetFile(tmp_path / name).metadata for name in ("in.parquet", "out.parquet"))
    assert after.num_rows == count
    assert after.num_row_groups <= before.num_row_groups + 1
    assert after.row_group(0).column(0).compression == "ZSTD"


def test_captions_without_a_score_are_left_out_and_counted(caplens, write, tmp_path):
    path = write("captions.jsonl", [*_rows(5), {"id": "x", "caption": " "}])
    said = caplens("filter", path, tmp_path / "kept.jsonl", "-m", "length", "--keep-top", "100%", "--json")
    assert said.status == 3
    assert json.loads(said.out) | {"signature": ""} == {
        "output": str(tmp_path / "kept.jsonl"), "rows": 6, "kept": 5, "unscored": 1, "threshold": 1.0, "metric": "length",
        "signature": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "say which captions to keep"),
        (["--keep-top", "0"], "above 0%"),
        (["--keep-top", "150%"], "above 0%"),
        (["--keep-top", "many"], "takes a share"),
        (["--above", "nan"], "not a score"),
        (["--below-chance"], "level of chance of length is not known in en"),
    ],
)
def test_what_cannot_be_kept_is_one_sentence(caplens, write, tmp_path, options, words):
    path = write("captions.jsonl", _rows(5))
    said = caplens("filter", path, tmp_path / "kept.jsonl", "-m", "length", *options)
    assert said.status == 2
    assert words in said.err
    assert not (tmp_path / "kept.jsonl").exists()


def test_a_filter_writes_over_no_input(caplens, write):
    path = write("captions.jsonl", _rows(5))
    before = path.read_bytes()
    assert caplens("filter", path, path, "-m", "length", "--above", "2").status == 2
    assert path.read_bytes() == before


def test_better_than_chance_follows_the_calibration(tmp_path):
    rng = np.random.default_rng(0)
    good = [{"id": str(n), "caption": f"a {word} dog", "references": [f"the {word} dog"]} for n, word in enumerate(_words(60))]
    calibration = package.calibrate(good, ["bleu1"])
    mixed = [{**row, "caption": "something else" if rng.random() < 0.5 else row["caption"]} for row in good]
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mixed), encoding="utf-8")
    report = package.filter_captions(
        tmp_path / "mixed.jsonl", tmp_path / "kept.jsonl", "bleu1", above_chance=True, calibration=calibration
    )
    assert report.kept == sum(row["caption"] != "something else" for row in mixed)


def _words(count):
    return ["".join(chr(97 + (n // 26**place) % 26) for place in range(3)) for n in range(count)]


@pytest.mark.parametrize(
    ("threshold", "status", "words"),
    [
        ("length=3", 0, ""),
        ("length=4", 4, "length is 3.0000, below 4."),
        ("length=2@80%", 0, ""),
        ("length=2@90%", 4, "80.0% of captions reach length 2; 90% are required."),
        ("bleu4=0.3", 2, "names 'bleu4', which is not scored here (length)"),
        ("length", 2, "is not a threshold"),
        ("length=x", 2, "is not a threshold"),
        ("length=2@0%", 2, "above 0%"),
    ],
)
def test_a_missed_threshold_is_the_exit_status_4(caplens, write, threshold, status, words):
    said = caplens("score", write("captions.jsonl", _rows(5)), "-m", "length", "--fail-under", threshold)
    assert said.status == status
    assert words in said.err


def test_python_says_options_as_python_has_them(tmp_path, write):
    path = write("captions.jsonl", _rows(5))
    with pytest.raises(InputError, match="keep_top="):
        package.filter_captions(path, tmp_path / "kept.jsonl", "length")
