from caplens.report import delimited, latex, markdown
from caplens.results.table import Table

TABLE = Table(["a|b", "score"], [["x & y_1", 0.12345], ["none", None], ["gap", float("nan")]], title="T", notes=["n|1"])


def test_markdown_rounds_and_escapes():
    assert markdown(TABLE).splitlines() == [
        "**T**", "", r"| a\|b | score |", "| --- | ---: |", r"| x & y_1 | 0.123 |", "| none | – |", "| gap | – |", "", "`n|1`",
    ]  # fmt: skip


def test_latex_compiles_special_characters_away():
    text = latex(TABLE)
    assert r"x \& y\_1 & 0.123 \\" in text
    assert r"\begin{tabular}{lr}" in text
    assert r"a\textbar{}b & score \\" in text


def test_csv_keeps_every_digit():
    assert delimited(TABLE).splitlines() == ["a|b,score", "x & y_1,0.12345", "none,", "gap,"]
