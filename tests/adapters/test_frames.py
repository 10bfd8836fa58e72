"""Tables of pandas and polars in, and out again."""

import pytest
from extras import need

import caplens as package
from caplens.errors import InputError

ROWS = {
    "id": ["1", "2"],
    "caption": ["a dog runs", "a cat"],
    "references": [["a dog is running", "the dog"], ["a cat sleeps"]],
    "lang": ["en", "en"],
}


@pytest.fixture(params=["pandas", "polars"])
def library(request):
    return need(request.param)


def test_a_table_is_scored_as_its_rows_are(library):
    rows = [dict(zip(ROWS, values, strict=True)) for values in zip(*ROWS.values(), strict=True)]
    found = package.score(library.DataFrame(ROWS), ["cider", "bleu1"], resamples=0)
    assert found.to_dict() == package.score(rows, ["cider", "bleu1"], resamples=0).to_dict()


def test_rows_without_ids_are_numbered_and_gaps_are_gaps(library):
    table = library.DataFrame({"caption": ["a dog", None], "references": ["a dog", "a cat"]})
    found = package.score(table, ["bleu1"], resamples=0)
    assert found.ids == ["0", "1"]
    assert found.errors == {"1": "the caption is empty"}


def test_image_ids_are_ids_and_a_missing_column_is_told(library):
    table = library.DataFrame({"image_id": [7, 8], "caption": ["a dog", "a cat"]})
    assert package.score(table, ["bleu1"], references={"7": "a dog", "8": "a cat"}, resamples=0).ids == ["7", "8"]
    with pytest.raises(InputError, match="Text"):
        package.score(library.DataFrame({"Text": ["a dog"]}), ["length"])


def test_pandas_own_gaps_are_gaps():
    pandas = need("pandas")
    table = pandas.DataFrame({"caption": ["a dog", None], "references": ["a dog", "a cat"]}).convert_dtypes()
    assert package.score(table, ["bleu1"], resamples=0).errors == {"1": "the caption is empty"}


def test_results_become_a_table(library):
    results = package.score(library.DataFrame(ROWS), ["cider", "bleu1"], resamples=0)
    table = results.to_pandas() if library.__name__ == "pandas" else results.to_polars()
    assert list(table.columns) == ["id", "lang", "cider", "bleu1", "error"]
    assert list(table["bleu1"]) == pytest.approx(results["bleu1"].values.tolist())


def test_what_is_wrong_in_a_table_is_told_with_its_row(library):
    with pytest.raises(InputError, match="data frame, row 1: 'caption' must be text"):
        package.score(library.DataFrame({"id": ["1"], "caption": [3]}), ["length"])
