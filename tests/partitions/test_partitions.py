"""Captions scored partition by partition: the scores of one file, whatever the parts, and however often the job was stopped."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from extras import need
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

arrow, parquet = need("pyarrow"), need("pyarrow.parquet")

from caplens import load_results, score, score_partitions
from caplens.errors import InputError
from caplens.metrics.options import ScoringOptions
from caplens.partitions import inputs
from caplens.partitions.inputs import list_partitions, partition_samples
from caplens.partitions.signatures import merged_signature
from caplens.stats import bootstrap_pooled
from caplens.stats.exact import exact_sum, nearest_float
from caplens.stats.means import mean_pool, mean_statistics
from caplens.stats.poisson import group_keys, resampled_sums

WORDS = "a dog cat runs sits red blue man woman child on the in snow street with ball bike under tree".split()
METRICS = ["clipscore", "refclipscore", "cider", "bleu4", "rouge-l", "length"]
LOCAL = ScoringOptions(keep_store=False)


def captions(count, langs=("en", "de")):
    rng = np.random.default_rng(0)
    return [
        {"id": str(row), "caption": " ".join(rng.choice(WORDS, 8)), "image": f"{row % 20}.png", "lang": langs[row % len(langs)],
         "references": [" ".join(rng.choice(WORDS, 8)) for _ in range(1 + row % 3)]}
        for row in range(count)
    ]  # fmt: skip


@pytest.fixture
def parts(tmp_path):
    """900 captions of twenty photos: two files of Parquet, one of JSON Lines and one of CSV; and all of them in one file."""
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for number in range(20):
        pixels = rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((96, 72)).save(tmp_path / "photos" / f"{number}.png")
    rows = captions(900)
    (tmp_path / "parts").mkdir()
    for number in range(2):
        table = arrow.Table.from_pylist(rows[number * 300 : (number + 1) * 300])
        parquet.write_table(table, tmp_path / "parts" / f"{number}.parquet", row_group_size=70)
    write_lines(tmp_path / "parts" / "2.jsonl", rows[600:850])
    lines = ["id,caption,image,lang,references"]
    lines += [
        ",".join([r["id"], r["caption"], r["image"], r["lang"], '"' + json.dumps(r["references"]).replace('"', '""') + '"'])
        for r in rows[850:]
    ]
    (tmp_path / "parts" / "3.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_lines(tmp_path / "all.jsonl", rows)
    return tmp_path


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def scores_in(folder):
    """Id -> row, over all files of scores; no id may be there twice."""
    rows = [row for path in sorted((folder / "scores").glob("*.parquet")) for row in parquet.read_table(path).to_pylist()]
    by_id = {row["id"]: row for row in rows}
    assert len(by_id) == len(rows)
    return by_id


def run(parts, **more):
    return score_partitions(
        parts / "parts", parts / "out", METRICS, images=parts / "photos", options=LOCAL, **({"resamples": 50} | more)
    )


def test_scores_and_corpus_values_are_those_of_one_file(parts, monkeypatch):
    monkeypatch.setattr(inputs, "_ROWS", 150)
    monkeypatch.setattr(inputs, "_STRETCH", 5000)
    whole = score(parts / "all.jsonl", METRICS, images=parts / "photos", options=LOCAL, resamples=300)
    result = run(parts, resamples=300)
    assert result.partitions > 10
    rows = scores_in(parts / "out")
    assert set(rows) == set(whole.ids)
    for name in METRICS:
        values = np.array([rows[identifier][name] for identifier in whole.ids])
        if name == "cider":
            # The order of n-grams, in which numbers are added, is that of a partition's words.
            np.testing.assert_allclose(values, whole[name].values, rtol=1e-12)
            assert math.isnan(result[name].total.value)
        else:
            np.testing.assert_array_equal(values, whole[name].values)
            assert result[name].total.value == whole[name].corpus
            low, high = whole.intervals[name]
            assert result[name].total.low == pytest.approx(low, abs=(high - low) / 4)
            assert result[name].total.high == pytest.approx(high, abs=(high - low) / 4)
        for lang, value in whole[name].by_language.items():
            assert result[name].languages[lang].value == pytest.approx(value, rel=1e-14)
        assert result[name].signature == whole[name].signature


def test_a_job_goes_on_where_it_stopped_and_makes_damaged_parts_again(parts):
    first = run(parts)
    out = parts / "out"
    files = {path: path.read_bytes() for path in (out / "scores").iterdir()}
    assert run(parts).reused == first.partitions == 4
    one, two, three, _ = sorted(files)
    one.write_bytes(files[one][:-7])
    two.unlink()
    (out / "manifests" / f"{three.stem}.json").write_text('{"job": ', encoding="utf-8")
    again = run(parts)
    assert again.reused == 1
    assert {path: path.read_bytes() for path in (out / "scores").iterdir()} == files
    assert again.to_dict()["metrics"] == first.to_dict()["metrics"]
    assert load_results(out / "result.json").to_dict() == again.to_dict() | {"folder": "."}


@pytest.mark.parametrize("content", ["[]", '{"job": 1}', "", "{" * 5000, '{"metrics": {"length": 3}}'])
def test_files_of_a_job_that_somebody_edited_are_made_again_or_refused(parts, content):
    once = {"options": LOCAL, "resamples": 5}
    first = score_partitions(parts / "parts", parts / "out", ["length", "cider"], **once)
    manifest, other, *_ = sorted((parts / "out" / "manifests").glob("*.json"))
    manifest.write_text(content, encoding="utf-8")
    edited = json.loads(other.read_text(encoding="utf-8"))
    edited["metrics"]["length"]["languages"] = {"en": {"sums": [1], "scored": "x"}}
    other.write_text(json.dumps(edited), encoding="utf-8")
    again = score_partitions(parts / "parts", parts / "out", ["length", "cider"], **once)
    assert again.reused == first.partitions - 2
    assert again.to_dict() == first.to_dict()
    counts = min((parts / "out" / "frequencies").glob("[0-9]*.npz"))
    counts.write_bytes(content.encode())
    with pytest.raises(InputError, match="this file is damaged"):
        score_partitions(parts / "parts", parts / "out", ["length", "cider"], **once)
    (parts / "out" / "job.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="another job"):
        score_partitions(parts / "parts", parts / "out", ["length"], **once)


def test_files_that_are_added_or_changed_are_scored_and_others_kept(parts):
    run(parts)
    write_lines(parts / "parts" / "4.jsonl", captions(5))
    names = ["clipscore", "length"]
    few = {"images": parts / "photos", "options": LOCAL, "resamples": 0}
    assert score_partitions(parts / "parts", parts / "few", names, **few).reused == 0
    write_lines(parts / "parts" / "2.jsonl", captions(3))
    result = score_partitions(parts / "parts", parts / "few", names, **few)
    assert (result.reused, result.partitions, result.captions) == (4, 5, 658)
    # Document frequencies are of all captions: with others, every score of CIDEr is another.
    assert run(parts).reused == 0


def test_captions_without_a_score_are_in_a_table_beside(parts):
    rows = [{"id": "x", "caption": "", "image": "0.png"}, {"id": "y", "caption": "a dog", "image": "none.png"}]
    write_lines(parts / "bad.jsonl", rows)
    result = score_partitions(parts / "bad.jsonl", parts / "out", ["clipscore", "length"], images=parts / "photos", options=LOCAL)
    assert (result.captions, result.failed) == (2, 2)
    (path,) = (parts / "out" / "errors").iterdir()
    errors = {(row["id"], row["metric"]): row["reason"] for row in parquet.read_table(path).to_pylist()}
    assert errors.keys() == {("x", "clipscore"), ("x", "length"), ("y", "clipscore")}
    assert "the caption is empty" in errors["x", "length"]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from(["", " ", "x" * 30, "y" * 300, "é" * 90]), min_size=1, max_size=40),
    st.integers(1, 200),
    st.booleans(),
)
def test_every_line_is_in_one_stretch(tmp_path_factory, texts, stretch, ends):
    path = tmp_path_factory.mktemp("lines") / "lines.jsonl"
    rows = [{"id": str(number), "caption": text} for number, text in enumerate(texts)]
    content = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(content + ("\n" if ends else ""), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "_STRETCH", stretch)
        partitions = list_partitions(path)
    found = []
    for partition in partitions:
        with partition_samples(partition, {}) as samples:
            found += [(sample.id, sample.caption) for sample in samples]
    assert found == [(row["id"], row["caption"]) for row in rows]


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_input_without_captions_is_a_sentence(tmp_path, caplens, content):
    (tmp_path / "empty.jsonl").write_text(content, encoding="utf-8")
    said = caplens("score", tmp_path / "empty.jsonl", "-m", "length,cider", "-o", tmp_path / "out")
    assert said.status == 2
    assert "there are no captions in the input" in said.err
    assert not (tmp_path / "out" / "result.json").exists()


def test_another_job_and_wrong_input_are_sentences(parts, caplens):
    out = parts / "out"
    score_partitions(parts / "parts" / "2.jsonl", out, ["length"], options=LOCAL)
    with pytest.raises(InputError, match="another job, which differs in metrics"):
        score_partitions(parts / "parts", out, ["bleu1"], options=LOCAL)
    with pytest.raises(InputError, match="mid needs all captions at once"):
        score_partitions(parts / "parts", parts / "x", ["mid"], options=LOCAL)
    for place in (parts / "none", parts / "parts" / "*.tsv", parts / "*" / "x.csv"):
        with pytest.raises(InputError, match=r"no files of this name|wildcards are allowed"):
            list_partitions(place)
    (parts / "parts" / "5.jsonl").write_text('{"id": "1", "caption": 7}\n', encoding="utf-8")
    (parts / "parts" / "6.parquet").write_bytes(b"PAR1 nothing")
    said = caplens("score", parts / "parts" / "5.jsonl", "-m", "length", "-o", parts / "y")
    assert said.status == 2
    assert f"{parts / 'parts' / '5.jsonl'}" in said.err
    assert "'caption' must be text" in said.err
    assert "not a readable Parquet file" in caplens("score", parts / "parts" / "6.parquet", "-m", "length", "-o", parts / "z").err
    said = caplens("score", parts / "parts", "-r", parts / "all.jsonl", "-o", parts / "w")
    assert "--references cannot be used where the output is a folder" in said.err


def test_the_command_says_where_scores_are_and_a_report_shows_them(parts, caplens):
    command = ("score", parts / "parts" / "*.parquet", "-m", "length", "--keep-columns", "caption", "-o", f"{parts / 'out'}/")
    said = caplens(*command)
    assert said.status == 0
    assert "600 captions in 2 partitions, 0 of them without" in said.out
    assert scores_in(parts / "out")["0"]["caption"] == captions(1)[0]["caption"]
    assert caplens("report", parts / "out" / "result.json", "-o", parts / "page.html").status == 0
    assert "600" in (parts / "page.html").read_text(encoding="utf-8")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), max_size=50), st.integers(0, 50))
def test_a_sum_does_not_depend_on_its_parts(numbers, cut):
    values = np.array(numbers)
    exact = sum(map(Fraction, numbers), Fraction(0))
    total = exact_sum(values[:cut]) + exact_sum(values[cut:])
    assert Fraction(total, 2**1126) == exact
    if abs(exact) < 1e300:
        assert nearest_float(total) == math.fsum(numbers)


def test_the_poisson_bootstrap_has_the_intervals_of_the_usual_one():
    rng = np.random.default_rng(3)
    groups = [str(number // 3) for number in range(1500)]
    statistics = mean_statistics(rng.normal(size=1500) + np.repeat(rng.normal(size=500), 3))
    usual = bootstrap_pooled(statistics, mean_pool, groups, 4000, 1)
    keys = group_keys(groups)
    parts = [resampled_sums(statistics[rows], keys[rows], 4000, 1) for rows in (slice(0, 700), slice(700, 1500))]
    poisson = mean_pool(parts[0] + parts[1])
    assert poisson.mean() == pytest.approx(usual.mean(), abs=0.005)
    assert poisson.std() == pytest.approx(usual.std(), rel=0.08)


def test_signatures_of_parts_become_one():
    parts = ["cider-d|tok:ptb|df:corpus|refs:1-3|v:1", "cider-d|tok:13a[de],ptb|df:corpus|refs:5|v:1"]
    assert merged_signature(parts) == "cider-d|tok:13a[de],ptb|df:corpus|refs:1-5|v:1"
    assert merged_signature(["c|truncated:2|v:1", "c|truncated:3|v:1"]) == "c|truncated:5|v:1"
