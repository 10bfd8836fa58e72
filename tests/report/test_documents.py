"""Results are read back as they were written, and a file that is not a result is reported as such."""

import json

import numpy as np
import pytest

import caplens as package
from caplens.data import Sample
from caplens.errors import InputError
from caplens.report.cases import Case, choose, find_cases
from caplens.report.documents import Document, InputPaths, read_documents
from caplens.report.sections import make_sections
from caplens.report.sections.comparison import clusters
from caplens.results.agreement import AgreementResult, Estimate
from caplens.results.comparison import Comparison, SystemContrast, SystemScore
from caplens.results.suite import SuiteResult


@pytest.mark.parametrize("fixture", ["scores", "comparison", "robustness"])
def test_results_are_read_back_as_they_were(fixture, request, tmp_path):
    result = request.getfixturevalue(fixture)
    result.save(tmp_path / "result.json")
    (document,) = read_documents(tmp_path / "result.json")
    assert type(document.result) is type(result)
    assert document.result.tables() == result.tables()
    assert document.result.to_dict() == result.to_dict()


@pytest.mark.slow
def test_benchmarks_are_read_back_as_they_were(flickr8k, caplens, tmp_path):
    run = caplens(
        "bench", "flickr8k-cf", "--data", flickr8k, "-m", "length", "--resamples", 5, "-o", tmp_path / "bench.json", "-q"
    )
    assert run.status == 0
    (document,) = read_documents(tmp_path / "bench.json")
    written = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert {**document.result.to_dict(), "inputs": written["inputs"]} == written
    cases = find_cases(document, InputPaths())
    assert len(cases) == len(written["ids"])
    assert cases[0].human == pytest.approx(np.mean(written["human"][0]))
    (section,) = make_sections([document], InputPaths())
    assert {"Human ratings and scores", "How well metrics agree with people"} <= {plot.title for plot in section.plots}


def test_training_logs_become_curves(tmp_path):
    lines = [{"stage": "tune", "step": step, "loss": 1 / step, "seconds": 2.0 * step} for step in (25, 50, 75)]
    lines[1]["validation"] = 31.5
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (section,) = make_sections(read_documents(tmp_path / "log.jsonl"), InputPaths())
    assert [plot.title for plot in section.plots] == ["Loss", "Validation"]
    assert section.tables[0].rows == [["tune", 75, 1 / 75, 31.5]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '{"ids": ["1"], "caption": "a dog"}', "not a result"),
        (
            "a.json",
            '{"metrics": {"cider": {"values": [1], "corpus": 1, "signature": ""}}, "ids": [], "warnings": []}',
            "1 values for 0",
        ),
        ("a.json", "[1, 2]", "not the JSON of a result"),
        ("a.json", '{"metrics": ', "line 1"),
        ("scores.csv", "id,cider\n1,0.5\n", "scores.json"),
        ("a.json", "", "not the JSON of a result"),
        ("log.jsonl", '{"id": "1", "caption": "a dog"}\n', "a stage and numbers"),
        ("log.jsonl", '{"stage": "tune", "step": 1, "loss": "small"}\n', "a stage and numbers"),
    ],
)
def test_a_file_that_is_not_a_result_is_an_error(caplens, write, tmp_path, name, content, message):
    run = caplens("report", write(name, content), "-o", tmp_path / "report.html")
    assert run.status == 2
    assert message in run.err
    assert name in run.err
    assert not (tmp_path / "report.html").exists()


def test_reports_are_html_files_apart_from_results(caplens, write, tmp_path, robustness):
    path = write("robustness.json", json.dumps(robustness.to_dict()))
    assert "name it something.html" in caplens("report", path, "-o", tmp_path / "report.pdf").err
    assert "the folder does not exist" in caplens("report", path, "-o", tmp_path / "nowhere" / "report.html").err
    assert "is a folder" in caplens("report", tmp_path, "-o", tmp_path / "report.html").err
    assert caplens("report", path, "-o", tmp_path / "report.html", "--json").out == (
        json.dumps({"report": str(tmp_path / "report.html"), "results": 1}) + "\n"
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_changed_file_is_an_error_or_shown_and_never_a_traceback(caplens, scores, comparison, robustness, tmp_path, seed):
    """One value somewhere in a result becomes something else."""
    rng = np.random.default_rng(seed)
    content = json.loads(json.dumps([scores, comparison, robustness][seed % 3].to_dict()))
    at = content
    for _ in range(int(rng.integers(1, 5))):
        keys = list(at) if isinstance(at, dict) else range(len(at))
        key = keys[int(rng.integers(len(keys)))]
        if not isinstance(at[key], dict | list) or not at[key]:
            break
        parent, at = at, at[key]
    else:
        at = parent
    at[key] = [None, [], {}, "text", 10**400, -1, [[1]]][int(rng.integers(7))]
    (tmp_path / "changed.json").write_text(json.dumps(content), encoding="utf-8")
    run = caplens("report", tmp_path / "changed.json", "-o", tmp_path / "report.html")
    assert run.status in {0, 2}
    assert (tmp_path / "report.html").exists() == (run.status == 0)
    assert "changed.json" in run.err or run.status == 0


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [("lang", ["text"] * 45, "unknown language code 'text'"), ("schema", 1000, "newer than this one")],
)
def test_an_error_about_the_content_of_a_file_names_the_file(caplens, scores, write, tmp_path, key, value, message):
    path = write("changed.json", {**scores.to_dict(), key: value})
    run = caplens("report", path, "-o", tmp_path / "report.html")
    assert run.status == 2
    assert f"{path}: " in run.err
    assert message in run.err


def test_captions_in_another_order_are_not_shown_with_others_scores(examples, tmp_path):
    """Ids repeat across languages; their order is then all that differs."""
    rows = [{"id": "1", "lang": lang, "caption": text} for lang, text in (("en", "a dog"), ("fr", "un chien"))]
    results = package.score(rows, ["length"], resamples=0)
    (tmp_path / "swapped.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[::-1]), encoding="utf-8")
    (section,) = make_sections([Document("swapped", results)], InputPaths([tmp_path / "swapped.jsonl"]))
    assert "not those that were scored" in section.without_cases


def test_people_are_averaged_over_their_ratings_of_a_caption(flickr8k):
    results = package.bench("flickr8k-expert", flickr8k, ["length"], resamples=2)
    cases = find_cases(Document("expert", results), InputPaths(data=flickr8k))
    assert len(cases) == 5664
    assert any(case.human != round(case.human) for case in cases)


def test_systems_in_files_of_one_name_find_their_captions(caplens, examples, tmp_path):
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "out.jsonl").write_bytes((examples / f"{name}.jsonl").read_bytes())
    files = [tmp_path / name / "out.jsonl" for name in ("good", "bad")]
    assert caplens("compare", *files, "-m", "cider", "-o", tmp_path / "c.json", "--resamples", 20).status == 0
    (section,) = make_sections(read_documents(tmp_path / "c.json"), InputPaths())
    assert len({case.sample.system for case in section.cases}) == 2


def test_a_report_from_python(scores, examples, tmp_path):
    page = package.write_report({"<mine>": scores}, tmp_path / "r.html", captions=examples / "good.jsonl", images=examples)
    assert "&lt;mine&gt;" in page.read_text(encoding="utf-8")
    (tmp_path / "s.json").write_text(json.dumps(scores.to_dict()), encoding="utf-8")
    assert "Called so" in package.write_report({"Called so": tmp_path / "s.json"}, page).read_text(encoding="utf-8")
    with pytest.raises(InputError):
        package.write_report(tmp_path / "s.json", tmp_path / "s.json")
    with pytest.raises(InputError, match=r"nothing.jsonl: there is no such file"):
        package.write_report(scores, page, captions=tmp_path / "nothing.jsonl")
    with pytest.raises(InputError, match="not of list"):
        package.write_report([scores], page)


def test_a_log_that_was_cut_off_is_shown_up_to_there(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"stage": "tune", "step": 1, "loss": 2.0}\n{"stage": "tu', encoding="utf-8")
    (document,) = read_documents(tmp_path / "log.jsonl")
    assert document.result.stages == {"tune": [{"step": 1.0, "loss": 2.0}]}


def test_a_report_without_its_captions_says_so(scores, examples, tmp_path):
    documents = [
        Document("unnamed", scores),
        Document("gone", scores, {"captions": "gone.jsonl"}, tmp_path),
        Document("others", scores, {"captions": "good.jsonl", "references": "nothing.json"}, examples),
    ]
    _, unnamed, gone, others = make_sections(documents, InputPaths())
    assert "captions=FILE" in unnamed.without_cases
    assert "gone.jsonl" in gone.without_cases
    assert "nothing.json" in others.without_cases
    (section,) = make_sections(documents[:1], InputPaths(captions=[examples / "good.jsonl"], images=examples))
    assert section.cases


def test_the_command_spells_options_as_the_command_line_does(caplens, scores, write, tmp_path):
    path = write("scores.json", scores.to_dict())
    assert caplens("report", path, "-o", tmp_path / "report.html").status == 0
    assert "pass it with --captions FILE." in (tmp_path / "report.html").read_text(encoding="utf-8")


def _suite(count):
    estimate = Estimate(10.0, 5.0, 15.0, None, 3, None)
    results = [
        AgreementResult(
            "flickr8k-expert", "expanded", lang, "", {"m": {"tau-c": estimate}}, [], {"m": "m|v:0"}, 3, 3, 0, 0, 10, 0,
            ["few rows"], ["a", "b", "c"], ["a", "b", "c"], {"m": np.array([0.1, 0.2, 0.3])}, np.array([[1.0], [2.0], [3.0]]),
        )
        for lang in ("en", "de")[:count]
    ]  # fmt: skip
    return SuiteResult(results, {"composite": "a file is damaged"})


def test_a_suite_warns_once_of_what_was_not_run_and_stays_as_it_was():
    suite = _suite(2)
    before = suite.to_dict()
    for _ in range(2):
        first, second = Document.of("suite", suite)
        assert first.result.warnings == ["few rows", "composite was not run: a file is damaged"]
        assert second.result.warnings == ["few rows"]
    assert suite.to_dict() == before


def test_a_suite_without_results_has_no_sections(tmp_path):
    _suite(0).save(tmp_path / "suite.json")
    assert read_documents(tmp_path / "suite.json") == []


def test_only_captions_that_failed_are_listed_as_not_scored():
    """Captions without references have no CIDEr, but a length; they fail only if CIDEr is the only metric."""
    rows = [{"id": str(n), "caption": "a dog runs"} for n in range(15)] + [{"id": "full", "caption": "a", "references": ["a"]}]
    (section,) = make_sections([Document("partly", package.score(rows, ["cider", "length"], resamples=0))], InputPaths())
    assert section.counts["not scored"] == "0"
    assert not [warning for warning in section.warnings if "not scored" in warning]
    (section,) = make_sections([Document("none", package.score(rows, ["cider"], resamples=0))], InputPaths())
    assert section.counts["not scored"] == "15"
    listed = [warning for warning in section.warnings if "not scored" in warning]
    assert len(listed) == 11
    assert listed[-1] == "… and 5 more that were not scored."


def _comparison(values, sure):
    names = "abcdef"[: len(values)]
    scores = {name: SystemScore(value, value - 1, value + 1) for name, value in zip(names, values, strict=True)}
    contrasts = [
        SystemContrast("m", one, other, scores[one].value - scores[other].value, 0, 0, 0, 0.01 if one + other in sure else 0.5)
        for place, one in enumerate(names)
        for other in names[place + 1 :]
    ]
    return Comparison(list(names), {"m": scores}, contrasts, {}, 1, "holm")


def test_clusters_part_only_where_every_system_is_surely_better_than_every_later_one():
    """Worked by hand: a and b differ surely from c and d, but a from b only by luck; c from d surely."""
    assert clusters(_comparison([4, 3, 2, 1], {"ac", "ad", "bc", "bd", "cd"}), "m") == {"a": 0, "b": 0, "c": 1, "d": 2}
    # b is not surely better than c: there is no line between them, nor, though a is better than c, before.
    assert clusters(_comparison([4, 3, 2], {"ac"}), "m") == {"a": 0, "b": 0, "c": 0}
    assert clusters(_comparison([1, 3], {"ab"}), "m") == {"b": 0, "a": 1}


def test_the_gallery_has_the_extremes_and_the_disagreements():
    """Scores rise with the number, people's ratings but for two captions as well."""
    ratings = [*range(50)]
    ratings[3], ratings[40] = 60, -5
    cases = [Case(Sample(str(n), f"caption {n}"), {"m": float(n)}, float(ratings[n])) for n in range(50)]
    by_reason = {}
    for case in choose(cases):
        for reason in case.reasons:
            by_reason.setdefault(reason, []).append(case.sample.id)
    assert "3" in by_reason["lower by m than by people"]
    assert "40" in by_reason["higher by m than by people"]
    assert set(by_reason["best by m"]) == {str(n) for n in range(38, 50)}
    assert set(by_reason["worst by m"]) == {str(n) for n in range(12)}


def test_captions_without_a_score_are_in_no_order():
    cases = [Case(Sample(str(n), "a"), {"m": float("nan") if n else 1.0}) for n in range(4)]
    assert [(case.sample.id, case.reasons) for case in choose(cases)][1:] == [("1", ()), ("2", ()), ("3", ())]


@pytest.mark.parametrize("count", [1, 3, 5, 30])
def test_no_caption_is_both_best_and_worst(count):
    cases = [Case(Sample(str(n), f"caption {n}"), {"m": float(n), "o": -float(n)}) for n in range(count)]
    for case in choose(cases):
        assert not {"best by m", "worst by m"} <= set(case.reasons)
        assert not {"higher by m than by o", "higher by o than by m"} <= set(case.reasons)


def test_systems_in_several_languages_become_one_section(tmp_path, comparison):
    (tmp_path / "xm.json").write_text(
        json.dumps({"languages": {"en": comparison.to_dict(), "de": comparison.to_dict()}}), encoding="utf-8"
    )
    (section,) = make_sections(read_documents(tmp_path / "xm.json"), InputPaths())
    assert [plot.title for plot in section.plots] == [f"{metric} by language and system" for metric in comparison.scores]
    assert {row[0] for row in section.tables[0].rows} == {"en", "de"}


def test_names_are_drawn_as_they_are(comparison):
    """Not as mathematics, and not as markup."""
    odd = r"$\frac{a}{b}$ <b>&_x^2"
    comparison = _comparison([2, 1], set())
    comparison.systems[0] = odd
    comparison.scores["m"][odd] = comparison.scores["m"].pop("a")
    comparison.contrasts.clear()
    (section,) = make_sections([Document("odd", comparison)], InputPaths())
    svg = section.plots[0].svg
    assert r"$\frac{a}{b}$ &lt;b&gt;&amp;_x^2" in svg
    assert "<b>" not in svg
