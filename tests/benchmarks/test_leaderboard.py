"""The leaderboard: ours beside published values, contributions, and the page."""

import csv
import json
import random
from importlib.resources import files

import pytest

import caplens as package
from caplens.benchmarks.leaderboard import build_leaderboard, complete_leaderboard, merge_leaderboards, published_entries
from caplens.benchmarks.registry import list_benchmarks
from caplens.errors import InputError
from caplens.results.leaderboard import HUMANS, Leaderboard, LeaderboardColumn, LeaderboardEntry


@pytest.fixture(scope="module")
def vicr(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vicr")
    rows = [
        {"imgid": f"{n}.jpg", "caption": f"a dog {'runs ' * (n % 4)}{n}", "score": 1 + n % 4, "refs": [f"a dog runs runs {n}"]}
        for n in range(1, 25)
    ]
    (folder / "vicr_test.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def result(vicr):
    return package.bench("vicr", vicr, ["bleu1", "length", "cider"], resamples=500)


def test_thirty_published_values_have_their_source_and_value():
    """Drawn at random from the files of the package, found again on the leaderboard."""
    with files("caplens.benchmarks").joinpath("published_by_model.tsv").open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream, delimiter="\t") if row["benchmark"] in list_benchmarks()]
    rng = random.Random(7)
    for row in rng.sample(rows, 20):
        column = LeaderboardColumn(row["benchmark"], row["protocol"], row["lang"], row["measure"])
        matches = [
            entry
            for entry in published_entries(column)
            if (entry.metric, entry.model, entry.value) == (row["metric"], row["model"], float(row["value"]))
        ]
        assert matches, row
        assert all(entry.published and entry.source for entry in matches)
    papers = [(benchmark, paper) for benchmark in list_benchmarks().values() for paper in benchmark.published]
    for benchmark, paper in rng.sample(papers, 10):
        measure = rng.choice(list(paper.values))
        metric, value = rng.choice(list(paper.values[measure].items()))
        entries = published_entries(LeaderboardColumn(benchmark.name, paper.protocol, paper.lang, measure))
        assert any((entry.metric, entry.value) == (metric, value) and entry.source for entry in entries)


def test_values_of_a_run_stand_beside_published_ones(result):
    board = build_leaderboard([result], "length")
    column = LeaderboardColumn("vicr", "mean", "en", "tau-c")
    by_row = board.cells()
    ours, published = by_row["CIDEr"][column][:2]
    assert (ours.published, ours.value) == (False, result.results["cider"]["tau-c"].value)
    assert (published.published, bool(published.source)) == (True, True)
    assert board.tables()[0].columns == ["metric", "vicr"]
    assert "flickr8k-expert" in board.absent
    assert "Flickr8k text archive" in board.absent["flickr8k-expert"]
    assert any(entry.metric == "polos" and entry.benchmark == "composite" for entry in board.entries)


def test_tests_are_against_the_metric_that_was_chosen(result):
    from caplens.stats import holm

    board = build_leaderboard([result], "length")
    raw = {
        (contrast.second if contrast.first == "length" else contrast.first): contrast.p_raw
        for contrast in result.contrasts
        if contrast.measure == "tau-c" and "length" in (contrast.first, contrast.second)
    }
    expected = dict(zip(raw, holm(list(raw.values())), strict=True))
    found = {entry.metric: entry.p for entry in board.entries if not entry.published and entry.metric != "length"}
    assert found == pytest.approx(expected)
    with pytest.raises(InputError, match="none of the metrics that were run: bleu1, length, cider"):
        build_leaderboard([result], "clipscore")


def test_contributions_become_one_page(result, caplens, tmp_path):
    run, folder, site = tmp_path / "run.json", tmp_path / "contributions", tmp_path / "site"
    result.save(run)
    for name in ("Our group", "<script>alert(1)</script>"):
        said = caplens("leaderboard", "add", run, "--to", folder, "--name", name, "--against", "length")
        assert said.status == 0, said.err
    assert "a contribution of this name already" in caplens("leaderboard", "add", run, "--to", folder, "--name", "our group").err
    said = caplens("leaderboard", "build", folder, run, "-o", site)
    assert said.status == 0, said.err
    page = (site / "index.html").read_text(encoding="utf-8")
    assert "CIDEr, Our group" in page
    assert "alert(1)" not in page.replace("&lt;script&gt;alert(1)&lt;/script&gt;", "")
    assert "Content-Security-Policy" in page
    board = package.load_results(site / "leaderboard.json")
    for source in {entry.source for entry in board.entries if entry.published}:
        assert source.replace("&", "&amp;").replace("'", "&#39;") in page
    assert len({entry.row for entry in board.entries if entry.metric == "cider" and not entry.published}) == 3
    rows = list(csv.DictReader((site / "leaderboard.csv").open(encoding="utf-8")))
    assert len(rows) == len(board.entries)


def test_what_is_no_contribution_is_said(caplens, tmp_path, write, result):
    scores = write("scores.json", json.dumps(package.score(["a"], ["length"]).to_dict()))
    assert "not a result of 'caplens bench'" in caplens("leaderboard", "add", scores, "--to", tmp_path, "--name", "x").err
    (tmp_path / "nothing").mkdir()
    assert "there is no JSON file" in caplens("leaderboard", "build", tmp_path / "nothing", "-o", tmp_path / "s").err
    one = LeaderboardEntry("vicr", "mean", "en", "tau-b", "cider", 10.0, False, "x")
    with pytest.raises(InputError, match=r"b: cider has 20\.00 on vicr, and 10\.00 in another file"):
        merge_leaderboards([("a", Leaderboard([one])), ("b", Leaderboard([one._replace(value=20.0)]))])
    merged = merge_leaderboards([("a", Leaderboard([one], against="x")), ("b", Leaderboard([one._replace(p=0.5)]))])
    assert merged.against is None
    assert complete_leaderboard(merged).absent


@pytest.mark.data
def test_experts_agree_with_each_other_up_to_a_ceiling(flickr8k):
    from scipy.stats import kendalltau

    result = package.bench("flickr8k-expert", flickr8k, ["length"], resamples=2)
    assert result.raters.raters == 3
    board = build_leaderboard([result])
    column = LeaderboardColumn("flickr8k-expert", "expanded", "en", "tau-c")
    # By scipy, from the ratings of the three experts.
    human = result.human.reshape(-1, 3)
    taus = [kendalltau(human[:, k], human[:, [j for j in range(3) if j != k]].mean(1), variant="c")[0] for k in range(3)]
    assert board.ceilings[column] == pytest.approx(100 * sum(taus) / 3)
    assert board.tables()[0].rows[0][:2] == [HUMANS, f"{board.ceilings[column]:.1f}"]
    assert board.ceilings[column] > 56.1, "a metric of references and images is below people"


@pytest.mark.data
def test_a_distinct_caption_is_exported_once_and_its_score_counts_for_all_ratings(flickr8k, caplens, tmp_path):
    items, mine = tmp_path / "items.jsonl", tmp_path / "mine.jsonl"
    assert caplens("bench", "flickr8k-expert", "--data", flickr8k, "--export-items", items).status == 0
    rows = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == len({(row["image"], row["caption"]) for row in rows}) < 5700
    assert sum(len(row["ratings"]) for row in rows) == 16992
    mine.write_text(
        "".join(json.dumps({"id": row["id"], "score": len(row["caption"].split())}) + "\n" for row in rows), encoding="utf-8"
    )
    command = ["bench", "flickr8k-expert", "--data", flickr8k, "--scores", mine, "--resamples", 2]
    found = json.loads(caplens(*command, "-f", "json").out)["results"]
    assert {"mine", "cider", "length"} <= set(found)
    ours = package.bench("flickr8k-expert", flickr8k, [words], resamples=2).results["words"]["tau-c"].value
    assert found["mine"]["tau-c"]["value"] == pytest.approx(ours)


def words(caption: str) -> float:
    return len(caption.split())
