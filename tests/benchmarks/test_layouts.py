"""Each benchmark on a few records in the original layout, with the expected number worked out by hand.

The metric is `length`, the number of words, or BLEU-1, which counts words that are in the references."""

import csv
import json

import numpy as np
import pytest
from scipy.io import savemat

import caplens as package
from caplens.benchmarks import BENCHMARKS, get_benchmark, matlab
from caplens.benchmarks.rating import RatedSamples
from caplens.errors import InputError


def measured(name, folder, metric="length", **more):
    return package.bench(name, folder, [metric], resamples=5, **more).results[metric]


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if not name.startswith("flickr8k")])
def test_what_is_missing_and_where_it_comes_from_is_said(name, tmp_path):
    with pytest.raises(package.InputError, match=r"is missing. Put .* there\. \S+"):
        package.bench(name, tmp_path, ["length"], lang="en" if get_benchmark(name).in_english else "id")


def test_published_values_are_those_of_the_papers(golden):
    """All of them were read from the papers twice, by different people."""
    found = [
        {"benchmark": name, "source": one.source, "protocol": one.protocol, "lang": one.lang, "values": one.values}
        for name, benchmark in BENCHMARKS.items()
        for one in benchmark.published
    ]
    assert found == golden("benchmarks")


def write_csv(path, rows, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out, delimiter=delimiter).writerows(rows)


@pytest.mark.parametrize(
    ("name", "file", "columns"),
    [
        ("polaris", "polaris_test.csv", ["imgid", "mt", "refs", "score"]),
        ("nebula", "nebula_test.csv", ["imgid", "cand", "refs", "score"]),
        ("vicr", "vicr_test.csv", ["image", "caption", "references", "rating"]),
        ("capeval1k", "capeval1k.csv", ["image", "caption", "references", "score"]),
        ("m-capeval1k", "m-capeval1k.en.csv", ["image", "caption", "references", "score"]),
    ],
)
def test_tables_of_ratings(name, file, columns, tmp_path):
    rows = [
        ["1.jpg", "a dog", "['a dog, running', \"a dog's toy\"]", 1],
        ["1.jpg", "a dog in the snow", '["a dog"]', 3],
        ["2.jpg", "two men", "[]", 2],
        ["2.jpg", "two men at sea", "['men']", 4],
    ]
    write_csv(tmp_path / file, [columns, *rows])
    loaded = get_benchmark(name).load(tmp_path, "mean")
    assert loaded.samples[0].references == ("a dog, running", "a dog's toy")
    assert loaded.human.tolist() == [1, 3, 2, 4]
    # Lengths 2, 5, 2, 4 against 1, 3, 2, 4: of the five pairs that are no ties four agree, so that tau-b is 3 / sqrt(5 * 6).
    found = measured(name, tmp_path)
    assert found["tau-b"].value == pytest.approx(100 * 3 / np.sqrt(30))
    assert found["pearson"].value == pytest.approx(100 * np.corrcoef([2, 5, 2, 4], [1, 3, 2, 4])[0, 1])


def test_ratings_of_several_people_are_aggregated(tmp_path):
    rows = [{"image": "1.jpg", "caption": "a dog", "ratings": [1, 2, 6]}, {"image": "2.jpg", "caption": "a cat", "ratings": [4]}]
    (tmp_path / "vicr_test.json").write_text(json.dumps(rows), encoding="utf-8")
    load = get_benchmark("vicr").load
    assert load(tmp_path, "mean").human.tolist() == [3, 4]
    assert load(tmp_path, "median").human.tolist() == [2, 4]
    assert load(tmp_path, "expanded").human.tolist() == [1, 2, 6, 4]
    nameless, wordy = {"image": "1.jpg", "rating": 1}, {"image": "1.jpg", "caption": "a dog", "score": "x"}
    for broken, words in (([nameless], "entry 1: there is no 'mt' or"), ([wordy], "entry 1: 'x' is not a rating")):
        (tmp_path / "vicr_test.json").write_text(json.dumps(broken), encoding="utf-8")
        with pytest.raises(package.InputError, match=words):
            load(tmp_path, "mean")


def test_thumb(tmp_path):
    rows = [
        {"seg_id": 1, "image": "COCO_val2014_000000000001.jpg", "hyp": "a dog", "human_score": 2.0},
        {"seg_id": 1, "image": "COCO_val2014_000000000001.jpg", "hyp": "a brown dog runs", "human_score": 5.0},
        {"seg_id": 2, "image": "COCO_val2014_000000000002.jpg", "hyp": "two men talk", "human_score": 3.0},
    ]
    (tmp_path / "mscoco_THumB-1.0.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    references = [{"seg_id": 1, "refs": ["a brown dog runs", "a dog running"]}, {"seg_id": 2, "refs": ["men talking"]}]
    (tmp_path / "mscoco_references.json").write_text("\n".join(map(json.dumps, references)), encoding="utf-8")
    loaded = get_benchmark("thumb").load(tmp_path, "with humans")
    assert loaded.samples[1].references == ("a dog running",)
    assert measured("thumb", tmp_path)["tau-c"].value == pytest.approx(100 * 3 / 9 * 2 * 3 / 2)
    assert len(get_benchmark("thumb").load(tmp_path, "machine").samples) == 2


def test_composite(tmp_path):
    for part, count in (("8k", 3), ("30k", 4), ("coco", 4)):
        for kind, shift in (("correctness", 0), ("throughness", 1)):
            head = [f"column {place}" for place in range(28 + 2 * count)]
            line = [""] * 27 + [f"http://images/{part}.jpg", *("dog " * (n + 1) for n in range(count))]
            line += [str(5 - n - (shift if n == 2 else 0)) for n in range(count)]
            write_csv(tmp_path / f"{part}_{kind}.csv", [head, line], ";")
    (tmp_path / "Flickr8k.token.txt").write_text("8k.jpg#0\tdog\n8k.jpg#1\ta dog\n", encoding="utf-8")
    loaded = get_benchmark("composite").load(tmp_path, "correctness")
    assert len(loaded.samples) == 9
    assert loaded.human.tolist() == [5, 4, 3] * 3
    # The caption that was rated is no reference of its photo.
    assert loaded.samples[0].references == ("a dog",)
    assert get_benchmark("composite").load(tmp_path, "both").human.tolist() == [5, 4, 2.5] * 3
    assert measured("composite", tmp_path)["spearman"].value == pytest.approx(-100)


def fifty(folder, pairs_file, votes_file, pairs):
    """MATLAB files as CIDEr's release has them: pairs are (image, first, second, category, votes for the first)."""
    inputs = np.zeros((1, len(pairs)), dtype=[(name, object) for name in ("image", "first", "second")])
    triplets = np.zeros((1, 48 * len(pairs)), dtype=[(name, object) for name in ("shown", "first", "second", "side")])
    for number, (image, first, second, _, votes) in enumerate(pairs):
        inputs[0, number] = (image, first, second)
        for vote in range(48):
            cells = [np.array([[text]], dtype=object) for text in (f"{image} reference {vote}", first, second)]
            triplets[0, 48 * number + vote] = (*cells, 1 if vote < votes else -1)
    savemat(folder / pairs_file, {"new_input": inputs, "category": np.array([[pair[3] for pair in pairs]])})
    savemat(folder / votes_file, {"triplets": triplets})


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("pascal-50s", ("pair_pascal.mat", "consensus_pascal.mat")),
        ("abstract-50s", ("pair_abstract.mat", "consensus_abstract.mat")),
    ],
)
def test_the_majority_of_48_people_decides(name, files, tmp_path):
    pairs = [
        ("1.jpg", "a big dog runs", "a dog", 1, 30),
        ("2.jpg", "two men talk", "a man", 1, 10),
        ("3.jpg", "one cat", "two cats", 2, 40),
    ]
    fifty(tmp_path, *files, pairs)
    loaded = get_benchmark(name).load(tmp_path, "majority")
    assert len(loaded.trials) == 3 * 5
    assert len({sample.references for sample in loaded.samples}) == 3 * 5
    assert all(len(set(sample.references)) == 5 for sample in loaded.samples)
    assert loaded.samples[0].references[0].startswith("1.jpg reference")
    found = measured(name, tmp_path)
    # The longer caption is right in the first pair and wrong in the second; the third is a tie, which counts half.
    assert (found["HC"].value, found["HI"].value, found["mean"].value) == (50, 50, 50)
    assert (found["HC"].ties, found["HI"].ties) == (0, 100)


def test_a_coin_decides_where_votes_are_even(tmp_path):
    pairs = [(f"{n}.jpg", "a dog", "a cat", 1, 24) for n in range(20)]
    fifty(tmp_path, "pair_pascal.mat", "consensus_pascal.mat", pairs)
    trials = get_benchmark("pascal-50s").load(tmp_path, "majority").trials
    preferred = {trial.constraints[0][0][0] % 2 for trial in trials}
    assert preferred == {0, 1}
    assert trials == get_benchmark("pascal-50s").load(tmp_path, "majority").trials


def test_a_damaged_matlab_file_ends_no_process(tmp_path):
    fifty(tmp_path, "pair_pascal.mat", "consensus_pascal.mat", [("1.jpg", "a dog", "a cat", 1, 30)])
    content = (tmp_path / "consensus_pascal.mat").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(4):
        broken = bytearray(content)
        for place in rng.integers(len(broken), size=200):
            broken[place] = rng.integers(256)
        (tmp_path / "consensus_pascal.mat").write_bytes(bytes(broken))
        with pytest.raises(package.InputError, match=r"MATLAB|votes"):
            get_benchmark("pascal-50s").load(tmp_path, "majority")


def test_a_matlab_file_that_crashes_its_reader_is_told(tmp_path, monkeypatch):
    (tmp_path / "x.mat").write_bytes(b"MATLAB 5.0")
    monkeypatch.setattr(matlab.sys, "executable", "/bin/false")
    with pytest.raises(package.InputError, match="reading it crashes"):
        matlab.read_matlab(tmp_path / "x.mat", ["a"])


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("pascal-50s", "pascal_50s.json", {"HC": [{"image": "1.jpg", "captions": ["a", "b"], "label": 5, "references": ["c"]}]}),
        ("pascal-50s", "pascal_50s.json", {"HC": [{"image": "1.jpg", "captions": [1, "b"], "label": 1, "references": ["c"]}]}),
        ("pascal-50s", "pascal_50s.json", {"HC": 3}),
        ("pascal-50s", "pair_pascal.mat", ""),
        ("valse", "existence.json", {"a": {"caption": ["x"], "foil": "y", "image_file": "1", "mturk": {"caption": 3}}}),
        ("valse", "existence.json", {"a": {"caption": "x", "foil": "y", "image_file": "1", "mturk": {"caption": "many"}}}),
        ("valse", "existence.json", {"a": None}),
        ("valse", "existence.json", []),
        ("xvnli", "en.test.jsonl", {"gold_label": "neutral"}),
        ("winoground", "examples.jsonl", {"id": 1, "caption_0": None}),
        ("thumb", "mscoco_THumB-1.0.jsonl", {"hyp": "x"}),
        ("polaris", "polaris_test.csv", "imgid,mt,score\n1.jpg,a dog,high\n"),
        ("foil", "foilv1.0_test_2017.json", {"images": 1}),
        ("composite", "8k_correctness.csv", "a;b\n" + ";" * 27 + "x.jpg;one\n"),
        ("crossmodal", "captions.jsonl", {"image/key": "k", "en": []}),
        ("crossmodal", "captions.jsonl", ""),
    ],
)
def test_files_of_another_layout_are_told(name, file, content, tmp_path, caplens):
    (tmp_path / file).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    for other in (
        "captions_val2014.json",
        "consensus_pascal.mat",
        "mscoco_references.json",
        "30k_correctness.csv",
        "coco_correctness.csv",
    ):
        (tmp_path / other).write_text("{}" if "json" in other else "", encoding="utf-8")
    command = [name] if name == "crossmodal" else ["bench", name, "-m", "length", "--resamples", 5]
    said = caplens(*command, "--data", tmp_path)
    assert said.status == 2
    assert len(said.err.splitlines()) == 1
    assert str(tmp_path) in said.err


def test_foil(tmp_path):
    images = [{"id": 1, "file_name": "COCO_val2014_000000000001.jpg"}]
    annotations = [
        {"id": 7, "image_id": 1, "caption": "a dog on a sofa", "foil": False, "foil_word": "ORIG"},
        {"id": 7, "image_id": 1, "caption": "a cat on a sofa", "foil": True, "foil_word": "cat"},
        {"id": 7, "image_id": 1, "caption": "a dog on a train", "foil": True, "foil_word": "train"},
    ]
    (tmp_path / "foilv1.0_test_2017.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    texts = ["a dog on a sofa", "the dog sleeps", "a sofa with a dog"]
    (tmp_path / "captions_val2014.json").write_text(json.dumps({"annotations": [{"image_id": 1, "caption": t} for t in texts]}))
    loaded = get_benchmark("foil").load(tmp_path, "4-refs")
    assert loaded.samples[0].references == ("the dog sleeps", "a sofa with a dog")
    assert get_benchmark("foil").load(tmp_path, "1-ref").samples[0].references == ("the dog sleeps",)
    assert measured("foil", tmp_path, "bleu1")["accuracy"].value == 100
    # With "the dog sleeps" alone, "train" instead of "sofa" changes nothing: a tie, which is not right.
    found = measured("foil", tmp_path, "bleu1", protocol="1-ref")["accuracy"]
    assert (found.value, found.ties) == (50, 50)


def test_valse_counts_accepted_captions(tmp_path):
    def entry(caption, foil, accepted):
        return {"caption": caption, "foil": foil, "image_file": "1.jpg", "mturk": {"caption": accepted, "foil": 0, "other": 0}}

    rows = {"a": entry("two big dogs", "a dog", 3), "b": entry("a dog", "two big dogs", 2), "c": entry("a", "b c", 1)}
    (tmp_path / "existence.json").write_text(json.dumps(rows), encoding="utf-8")
    (tmp_path / "plurals.json").write_text(json.dumps({"a": entry("two dogs", "a dog", 3)}), encoding="utf-8")
    found = package.bench("valse", tmp_path, ["length"], resamples=5)
    values = found.results["length"]
    assert (values["existence"].value, values["existence"].points) == (50, 2)
    assert (values["plurals"].value, values["plurals"].ties, values["mean"].value) == (0, 100, 25)
    assert measured("valse", tmp_path, protocol="unfiltered")["existence"].points == 3
    assert "2 valid pairs of existence where the published data set has 505." in found.warnings


def test_sugarcrepe(tmp_path):
    for part in ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj"):
        rows = {"0": {"filename": "000000000001.jpg", "caption": "a dog", "negative_caption": "a red dog"}}
        if part == "swap_obj":
            rows["1"] = {"filename": "000000000002.jpg", "caption": "a dog and a cat", "negative_caption": "dogs"}
        (tmp_path / f"{part}.json").write_text(json.dumps(rows), encoding="utf-8")
    found = measured("sugarcrepe", tmp_path)
    assert (found["add_att"].value, found["swap_obj"].value) == (0, 50)
    assert found["mean"].value == pytest.approx(50 / 7)


def test_winoground(tmp_path):
    row = {
        "id": 0,
        "image_0": "ex_0_img_0",
        "image_1": "ex_0_img_1",
        "caption_0": "a dog bites a man",
        "caption_1": "a man bites a dog",
    }
    (tmp_path / "examples.jsonl").write_text(json.dumps(row), encoding="utf-8")
    benchmark = get_benchmark("winoground")
    loaded = benchmark.load(tmp_path, "scores")
    assert [(sample.image, sample.caption[:5]) for sample in loaded.samples] == [
        ("ex_0_img_0.png", "a dog"), ("ex_0_img_0.png", "a man"), ("ex_0_img_1.png", "a dog"), ("ex_0_img_1.png", "a man"),
    ]  # fmt: skip
    # Each image prefers its own caption (0.9 > 0.5, 0.8 > 0.7), and each caption its image (0.9 > 0.7, 0.8 > 0.5).
    for scores, expected in (
        ([0.9, 0.5, 0.7, 0.8], (1, 1, 1)),
        ([0.6, 0.5, 0.7, 0.8], (1, 0, 0)),
        ([0.8, 0.9, 0.7, 1.0], (0, 1, 0)),
    ):
        found = benchmark.judge(loaded, np.array(scores), np.ones(4, dtype=bool), 5, 0)
        assert tuple(found[name].value for name in ("text", "image", "group")) == expected


def test_xvnli_compares_statements_about_one_photo(tmp_path, caplens):
    def row(label, statement, photo="11"):
        return {
            "gold_label": label,
            "sentence1": "a dog",
            "sentence2": statement,
            "Flikr30kID": photo,
            "pairID": f"{photo}{label}",
        }

    rows = [
        row("entailment", "a b c d"),
        row("neutral", "a b"),
        row("neutral", "a b c d e"),
        row("contradiction", "a"),
        row("-", "not judged"),
        row("contradiction", "of another photo", "12"),
    ]
    (tmp_path / "en.test.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (tmp_path / "fr").mkdir()
    (tmp_path / "fr" / "test.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert get_benchmark("xvnli").languages(tmp_path) == ["en", "fr"]
    found = measured("xvnli", tmp_path)
    # Extremes: 4 > 1. All labels: 4 > 1, 4 > 2, 4 > 5 is wrong, 2 > 1, 5 > 1. Triples: 4 > 2 > 1, and 4 > 5 > 1 is wrong.
    assert [(one.value, one.points) for one in found.values()] == [(100, 1), (80, 5), (50, 2)]
    said = caplens("bench", "xvnli", "--data", tmp_path, "--lang", "all", "-m", "length", "--resamples", 5)
    assert "overall" in said.out
    assert "across languages" in said.out


def test_marvl_takes_the_best_photo_of_a_true_statement(tmp_path):
    def row(number, label, left, right):
        about = {"concept": "39-Panci", "caption": "dua anjing", "left_img": left, "right_img": right}
        return {**about, "id": f"id-{number}", "label": label}

    photos = [(True, "a.jpg", "b.jpg"), (False, "c.jpg", "d.jpg"), (True, "e.jpg", "f.jpg"), (False, "a.jpg", "e.jpg")]
    rows = [row(number, *about) for number, about in enumerate(photos)]
    (tmp_path / "marvl-id.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    benchmark = get_benchmark("marvl")
    loaded = benchmark.load(tmp_path, "best against least", "id")
    assert loaded.samples[0].image == "id/images/39-Panci/a.jpg"
    scores = np.array([0.1, 0.5, 0.4, 0.9, 0.3, 0.2, 0.1, 0.3])
    found = benchmark.judge(loaded, scores, np.ones(8, dtype=bool), 5, 0)
    # True: 0.5 and 0.3. False: 0.4 and 0.1. Of the four comparisons 0.5 > 0.4, 0.5 > 0.1, 0.3 > 0.1 are right.
    assert (found["accuracy 1"].value, found["accuracy 1"].points) == (0.75, 4)
    assert (found["accuracy 2"].value, found["accuracy 2"].points) == (0, 1)


def test_vatex_eval_averages_over_annotators(tmp_path, caplens):
    files = {
        "candidates_list": ["a", "a b", "a b c"],
        "gts_list": [[f"reference {n}" for n in range(10)]] * 3,
        "video_ids": ["v1", "v2", "v3"],
        "human_scores": [[1, 2, 3], [1, 2, 3], [3, 2, 1]],
    }
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    loaded = {protocol: get_benchmark("vatex-eval").load(tmp_path, protocol) for protocol in ("9-refs", "1-ref", "no-refs")}
    assert [len(some.samples[0].references) for some in loaded.values()] == [9, 1, 0]
    # Two annotators agree with the lengths, one is the other way round: (1 + 1 - 1) / 3.
    assert measured("vatex-eval", tmp_path)["tau-b"].value == pytest.approx(100 / 3)
    # Rounded to four digits, 1.00001 and 1.00002 are a tie.
    benchmark, ratings = get_benchmark("vatex-eval"), np.array([[1.0] * 3, [2.0] * 3])
    for digits, expected in ((4, np.nan), (None, 1)):
        rated = RatedSamples(loaded["9-refs"].samples[:2], ratings, digits=digits)
        value = benchmark.judge(rated, np.array([1.00001, 1.00002]), np.array([True, True]), 5, 0)["tau-b"].value
        assert value == pytest.approx(expected, nan_ok=True)
    assert benchmark.load(tmp_path, "no-refs-rounded").digits == 4
    # Without references only `length` can be used, which is no reason to stop.
    said = caplens("bench", "vatex-eval", "--data", tmp_path, "-m", "length,bleu1", "--protocol", "all", "--resamples", 5)
    assert said.status == 0, said.err
    lines = [line.split() for line in said.out.splitlines() if line.strip().startswith(("length", "bleu1"))]
    assert [len(line) for line in lines] == [27, 25]
    assert lines[1].count("–") == 2
    (tmp_path / "human_scores.json").write_text("[1, 2]", encoding="utf-8")
    with pytest.raises(package.InputError, match="the ratings of three people"):
        measured("vatex-eval", tmp_path)
    (tmp_path / "human_scores.json").write_text(json.dumps(files["human_scores"]), encoding="utf-8")
    (tmp_path / "video_ids.json").write_text('["v1"]', encoding="utf-8")
    with pytest.raises(package.InputError, match="they belong to different data"):
        measured("vatex-eval", tmp_path)


def test_msvd_eval_has_a_data_point_for_each_person(tmp_path):
    content = {
        f"vid{number}": {
            "vname": f"{number}.avi",
            "ref": ["a dog runs", "the dog"],
            "candidate": "dog " * (number + 1),
            "human_score": [[number, 1, 1, 5 - number, 2.0], [number, 1, 2, 5 - number, 2.25 + number]],
        }
        for number in range(3)
    }
    (tmp_path / "MSVD-Eval.json").write_text(json.dumps(content), encoding="utf-8")
    loaded = get_benchmark("msvd-eval").load(tmp_path, "average")
    assert loaded.human.tolist() == [2, 2.25, 2, 3.25, 2, 4.25]
    assert [sample.video for sample in loaded.samples] == ["0.avi", "0.avi", "1.avi", "1.avi", "2.avi", "2.avi"]
    assert measured("msvd-eval", tmp_path, protocol="accuracy")["tau-b"].value == pytest.approx(100)
    assert measured("msvd-eval", tmp_path, protocol="relevance")["tau-b"].value == pytest.approx(-100)
    content["vid0"]["human_score"] = [[1, 2]]
    (tmp_path / "MSVD-Eval.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(package.InputError, match="are 5 numbers, not 2"):
        measured("msvd-eval", tmp_path)


def test_activitynet_foil_scores_paragraphs(tmp_path):
    def paragraph(*sentences):
        return [{"sentence": text, "timestamp": [0, 1]} for text in sentences]

    right = {"v1": paragraph("a man runs fast", "he"), "v2": paragraph("a dog")}
    foil = {"v1": paragraph("a dog runs"), "v2": paragraph("a big dog")}
    for kind, results in (("right", right), ("foil", foil)):
        (tmp_path / f"final_{kind}_video_sentences.json").write_text(json.dumps({"results": results}), encoding="utf-8")
    times = {"v1": {"timestamps": [[0, 9], [10, 20]]}, "v2": {"timestamps": [[0, 5]]}}
    other = {"v1": {"sentences": ["at the start", "in the middle", "at the end"], "timestamps": [[0, 9], [5, 14], [10, 20]]}}
    for number, content in ((1, times), (2, other)):
        (tmp_path / f"anet_entities_test_{number}.json").write_text(json.dumps(content), encoding="utf-8")
    found = measured("activitynet-foil", tmp_path)["accuracy"]
    # Means of words in a sentence, not sums: 2.5 > 3 is wrong, 2 > 3 is wrong.
    assert (found.value, found.points) == (0, 2)
    samples = {sample.id: sample for sample in get_benchmark("activitynet-foil").load(tmp_path, "accuracy").samples}
    # Half of the second sentence's ten seconds lie in the first 9, and half in those from 10 on.
    assert samples["v1 right 0"].references == ("at the start", "in the middle")
    assert samples["v1 right 1"].references == ("in the middle", "at the end")
    assert samples["v2 foil 0"].references == ()


def test_crossmodal_3600(tmp_path, caplens):
    lines = [
        {"image/key": "k1", "image/locale": "de", "en": {"caption": ["a dog", "the dog"]}, "iw": {"caption": ["כלב"]}},
        {
            "image/key": "k2",
            "image/locale": "en",
            "en": {"caption": ["two men talk"]},
            "iw": {"caption": ["איש", "שני אנשים", "גבר"]},
        },
    ]
    (tmp_path / "captions.jsonl").write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    said = caplens("crossmodal", "--data", tmp_path, "-f", "json")
    english, hebrew = json.loads(said.out)["statistics"]
    assert english == {"lang": "en", "captions": 3, "once": 1, "twice": 1, "more": 0, "words": 7 / 3, "characters": 24 / 3}
    assert (hebrew["lang"], hebrew["captions"], hebrew["more"]) == ("iw", 4, 1)
    assert "7,200" in caplens("crossmodal", "--data", tmp_path).out

    good = [{"id": "k1", "caption": "a dog", "lang": "en"}, {"id": "k2", "caption": "two men talk", "lang": "en"}]
    good += [{"id": "k1", "caption": "כלב", "lang": "he"}]
    bad = [{**row, "caption": "nothing of this"} for row in good]
    for name, rows in (("good", good), ("bad", bad)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    files = [tmp_path / "good.jsonl", tmp_path / "bad.jsonl"]
    said = caplens("crossmodal", "--data", tmp_path, *files, "-m", "bleu1", "-f", "json", "--resamples", 10)
    found = json.loads(said.out)["languages"]
    assert set(found) == {"en", "he"}
    assert found["en"]["scores"]["bleu1"]["good"]["value"] == pytest.approx(1)
    assert found["he"]["scores"]["bleu1"]["bad"]["value"] == pytest.approx(0, abs=1e-9)
    (tmp_path / "gap.jsonl").write_text(
        json.dumps({"id": "k1", "caption": "", "lang": "en"}) + "\n" + json.dumps(good[1]), encoding="utf-8"
    )
    said = caplens("crossmodal", "--data", tmp_path, tmp_path / "gap.jsonl", "-m", "bleu1", "-f", "json", "--resamples", 10)
    assert (said.status, json.loads(said.out)["languages"]["en"]["counts"]) == (3, {"samples": 1, "failed": 1, "images": 1})
    assert "p, bleu1" in caplens("crossmodal", "--data", tmp_path, *files, "-m", "bleu1", "--resamples", 10).out


@pytest.fixture
def crossmodal(tmp_path):
    """Four images of two regions, with and without the tokens of the release, and the captions of a system."""
    folder = tmp_path / "xm3600"
    folder.mkdir()
    texts = ["A dog running", "Two men talk", "A red car", "The old house"]
    lines = [
        {
            "image/key": f"k{number}",
            "image/locale": "de" if number < 2 else "sw",
            "en": {"caption": [text], "caption/tokenized/lowercase": [f"released {text.lower()} ."]},
            "sw": {"caption": [f"gari {number}"]},
        }
        for number, text in enumerate(texts)
    ]
    (folder / "captions.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows = [{"id": f"k{number}", "lang": "en", "caption": f"{text}!"} for number, text in enumerate(texts)]
    rows += [{"id": f"k{number}", "lang": "sw", "caption": f"gari {number}"} for number in range(4)]
    (tmp_path / "ours.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder, tmp_path / "ours.jsonl"


def test_crossmodal_takes_the_paper_s_cider_and_the_release_s_tokens(crossmodal):
    folder, ours = crossmodal
    result = package.crossmodal({"ours": ours}, folder, resamples=5)
    english, swahili = result["en"], result["sw"]
    assert list(english.scores) == ["cider-original", "cider"]
    assert "tok:xm3600+ptb" in english.signatures["cider-original"]
    assert "tok:unicode[sw]" in swahili.signatures["cider-original"]
    # The references have one more token in the release, which the captions, tokenized here, do not have.
    assert 0 < english.scores["cider-original"]["ours"].value < 7.5
    # Two words have n-grams of orders 1 and 2 of 4.
    assert swahili.scores["cider-original"]["ours"].value == pytest.approx(5)
    plain = package.crossmodal({"ours": ours}, folder, tokenizer="unicode", resamples=5)
    assert plain["en"].scores["cider-original"]["ours"].value == pytest.approx(7.5)


def test_crossmodal_by_region_and_in_a_subset(crossmodal, caplens, tmp_path):
    folder, ours = crossmodal
    result = package.crossmodal({"ours": ours}, folder, ["length"], resamples=5)
    by_region = {score.region: (score.captions, score.value) for score in result.regions["en"]}
    assert by_region == {"de": (2, 3.0), "sw": (2, 3.0)}
    assert package.crossmodal({"ours": ours}, folder, ["length"], regions=["de"], resamples=5)["sw"].ids == ["k0", "k1"]
    results = [package.crossmodal({"ours": ours}, folder, ["length"], subset=2, seed=seed, resamples=5) for seed in range(9)]
    drawn = [result["en"].ids for result in results]
    assert all(len(ids) == 2 for ids in drawn)
    assert len(set(map(tuple, drawn))) > 1
    command = ["crossmodal", ours, "--data", folder, "--resamples", 5]
    assert caplens(*command, "--region", "sw", "--by-region", "-o", tmp_path / "r.json").status == 0
    again = package.load_results(tmp_path / "r.json")
    assert {score.region for score in again.regions["en"]} == {"sw"}
    assert caplens("report", tmp_path / "r.json", "-o", tmp_path / "r.html").status == 0
    assert "by region" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "no image is of the region ja" in caplens("crossmodal", ours, "--data", folder, "--region", "ja").err
    assert "between 1 and 4 images" in caplens("crossmodal", ours, "--data", folder, "--subset", 5).err
    assert "language and region" in caplens(*command, "--by-region").out


def test_crossmodal_captions_are_input_like_others(crossmodal, caplens, tmp_path):
    folder, ours = crossmodal
    samples = list(package.SampleFile(folder / "captions.jsonl"))
    assert (len(samples), samples[0].id, samples[0].group, samples[0].lang) == (8, "k0 en 0", "k0.jpg", "en")
    assert caplens("convert", folder / "captions.jsonl", tmp_path / "all.csv").status == 0
    assert "gari 3" in (tmp_path / "all.csv").read_text(encoding="utf-8")
    result = package.score(ours, ["bleu1"], references=folder / "captions.jsonl", tokenizer="unicode")
    assert result["bleu1"].corpus == pytest.approx(1)
    assert caplens("count-df", folder / "captions.jsonl", tmp_path / "df.json", "--lang", "sw").status == 0


def test_foil_on_the_images_that_pac_s_was_not_trained_on(tmp_path):
    images = [{"id": number, "file_name": f"COCO_val2014_{number:012}.jpg"} for number in (1, 2)]
    annotations = [
        {"id": number, "image_id": number, "caption": text, "foil": foil}
        for number in (1, 2)
        for text, foil in (("a dog", False), ("a cat", True))
    ]
    (tmp_path / "foilv1.0_test_2017.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    (tmp_path / "captions_val2014.json").write_text(json.dumps({"annotations": []}))
    foil = get_benchmark("foil")
    assert len(foil.load(tmp_path, "4-refs").trials) == 2
    with pytest.raises(InputError, match=r"dataset_coco\.json is missing"):
        foil.load(tmp_path, "4-refs-8k")
    split = {"images": [{"cocoid": 1, "split": "restval"}, {"cocoid": 2, "split": "test"}]}
    (tmp_path / "dataset_coco.json").write_text(json.dumps(split))
    assert [trial.group for trial in foil.load(tmp_path, "1-ref-8k").trials] == ["COCO_val2014_000000000002.jpg"]


def test_marvl_in_english_has_the_photos_of_each_language(tmp_path):
    folder = tmp_path / "zero_shot" / "annotations_machine-translate"
    folder.mkdir(parents=True)
    for lang in ("id", "tr"):
        rows = [
            {"id": f"{lang}-{n}", "language": lang, "concept": "1-X", "caption": "two cats", "left_img": f"{n}.jpg",
             "right_img": f"{n}b.jpg", "label": n == 0}
            for n in range(2)
        ]  # fmt: skip
        (folder / f"marvl-{lang}_gmt.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    marvl = get_benchmark("marvl")
    assert marvl.languages(tmp_path) == ["en"]
    loaded = marvl.load(tmp_path, "best against least", "en")
    assert {sample.image for sample in loaded.samples if sample.id.startswith("tr-0")} == {
        "tr/images/1-X/0.jpg",
        "tr/images/1-X/0b.jpg",
    }
    # The same statement about photos of two languages is two statements.
    assert [trial.measure for trial in loaded.trials] == ["accuracy 1"] * 2 + ["accuracy 2"] * 2


@pytest.fixture
def translated_vicr(tmp_path):
    rows = [{"imgid": f"{n}.jpg", "caption": f"a dog {n}", "score": n, "refs": [f"dog {n}", "a dog runs"]} for n in range(1, 5)]
    (tmp_path / "vicr_test.json").write_text(json.dumps(rows), encoding="utf-8")
    items = tmp_path / "items.jsonl"
    return tmp_path, items


def test_a_benchmark_is_run_in_other_languages_from_translations_by_id(translated_vicr, caplens):
    folder, items = translated_vicr
    assert caplens("bench", "vicr", "--data", folder, "--export-items", items).status == 0
    exported = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines()]
    german = [
        {**row, "lang": "de", "caption": row["caption"].replace("a dog", "Hund"), "references": ["Hund"]} for row in exported[:3]
    ]
    (folder / "vicr.de.jsonl").write_text("\n".join(map(json.dumps, german)), encoding="utf-8")
    said = caplens("bench", "vicr", "--data", folder, "--lang", "all", "-m", "bleu1,length", "--resamples", 5, "-f", "json")
    by_lang = {result["lang"]: result for result in json.loads(said.out)["benchmarks"]}
    assert set(by_lang) == {"en", "de"}
    assert by_lang["de"]["counts"]["rows"] == 3
    assert "1 captions have no translation and are left out." in by_lang["de"]["warnings"]
    assert any("es, fr, it, ko, nl, pt, ru, zh too, which are not here" in text for text in by_lang["de"]["warnings"])
    assert by_lang["de"]["results"]["bleu1"]["tau-c"]["points"] == 3
    said = caplens("bench", "vicr", "--data", folder, "--lang", "fr", "-m", "length")
    assert "Translations are read from vicr.fr.jsonl" in said.err


def test_translations_of_another_language_or_benchmark_are_told(translated_vicr, caplens):
    folder, _ = translated_vicr
    (folder / "vicr.de.jsonl").write_text(json.dumps({"id": "1", "caption": "Hund", "lang": "nl"}), encoding="utf-8")
    assert "is in 'nl', not in 'de'" in caplens("bench", "vicr", "--data", folder, "--lang", "de", "-m", "length").err
    (folder / "vicr.de.jsonl").write_text(json.dumps({"id": "1", "caption": "Hund"}), encoding="utf-8")
    assert "none of its ids is one of vicr" in caplens("bench", "vicr", "--data", folder, "--lang", "de", "-m", "length").err


@pytest.mark.parametrize("name", ["pascal-50s", "abstract-50s"])
def test_sentences_of_an_image_against_those_of_others(name, tmp_path):
    """From the public file of sentences alone, whose records are (image, sentences) for Pascal and reversed for Abstract."""
    benchmark = get_benchmark(name)
    records = np.zeros((1, 3), dtype=[("a", object), ("b", object)])
    for number in range(3):
        sentences = np.array([[f"image {number} sentence {n}"] for n in range(8)], dtype=object)
        image = f"http://x/{number}.jpg"
        records[0, number] = (sentences, image) if benchmark.sentences_first else (image, sentences)
    savemat(tmp_path / benchmark.sentences_file, {benchmark.sentences_variable: records})
    loaded = benchmark.load(tmp_path, "own-or-other")
    assert len(loaded.trials) == 3 * 5
    for trial in loaded.trials:
        (((better,), (worse,)),) = trial.constraints
        right, wrong = loaded.samples[better], loaded.samples[worse]
        own = f"image {trial.group[0]} "
        assert right.caption.startswith(own)
        assert not wrong.caption.startswith(own)
        assert right.caption not in right.references
        assert all(text.startswith(own) for text in right.references)
    result = package.bench(name, tmp_path, ["rouge-l"], protocol="own-or-other", resamples=5)
    assert result.results["rouge-l"]["own-or-other"].points == 15


def test_crisscrossed_captions_are_named_by_coco_s_ids(tmp_path):
    (tmp_path / "sits_test.csv").write_text(
        "caption,image,agg_score,sampling_method\n"
        "COCO_val2014:sentid:7,COCO_val2014_000000000001.jpg,4.5,c2i_original\n"
        "COCO_val2014:sentid:7,COCO_val2014_000000000002.jpg,1.5,c2i_intrasim\n",
        encoding="utf-8",
    )
    annotations = [(7, 1, "a dog"), (8, 1, "the dog"), (9, 2, "a cat")]
    document = {"annotations": [{"id": a, "image_id": b, "caption": text} for a, b, text in annotations]}
    (tmp_path / "captions_val2014.json").write_text(json.dumps(document), encoding="utf-8")
    benchmark = get_benchmark("crisscrossed")
    loaded = benchmark.load(tmp_path, "test")
    assert [(sample.caption, sample.references) for sample in loaded.samples] == [("a dog", ("the dog",)), ("a dog", ("a cat",))]
    assert loaded.human.tolist() == [4.5, 1.5]
    assert len(benchmark.load(tmp_path, "other-images").samples) == 1
    (tmp_path / "sits_test.csv").write_text("caption,image,agg_score\nx,y,1\n", encoding="utf-8")
    with pytest.raises(InputError, match="are not a caption and an image"):
        benchmark.load(tmp_path, "test")


@pytest.mark.parametrize("header", ["", "image_id\tcaption\trating\n"])
def test_caption_quality_with_and_without_names_of_columns(tmp_path, header):
    (tmp_path / "oid.rated-image-captions.v1.test.tsv").write_text(
        f"{header}abc\ta dog\t0.75\nabd\ta cat\t0.125\n", encoding="utf-8"
    )
    loaded = get_benchmark("caption-quality").load(tmp_path, "test")
    assert [sample.image for sample in loaded.samples] == ["abc.jpg", "abd.jpg"]
    assert loaded.human.tolist() == [0.75, 0.125]
    assert "2 rated captions where the published data set has 4,593." in loaded.warnings
