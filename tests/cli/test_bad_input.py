"""Bad input gets one clear sentence with the place and the cure, status 2 (or null rows and 3), and leaves no file behind."""

import json

import pytest
from extras import need

GOOD = {"id": "1", "caption": "a dog runs", "references": ["a dog is running", "the dog runs"]}
OTHER = {"id": "2", "caption": "a cat sleeps", "references": ["a cat is sleeping", "one cat sleeps"]}


def _lines(*rows):
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["captions.jsonl", "empty"]),
        ("\n\n", ["captions.jsonl", "empty"]),
        (_lines(GOOD).encode() + b'{"id": "2", "caption": "caf\xe9"}\n', ["line 2", "not UTF-8", "iconv"]),
        (_lines(GOOD, '{"id": "2", "caption": "a'), ["line 2", "broken JSON"]),
        (_lines('{"id": "2", "caption": "a', GOOD), ["line 1", "broken JSON"]),
        (_lines(GOOD, "[1, 2]"), ["line 2", "object"]),
        (_lines(GOOD, {"id": "2", "words": "a cat"}), ["line 2", "no 'caption'", "'words'"]),
        (_lines(GOOD, {"caption": "a cat"}), ["line 2", "no 'id'"]),
        (_lines({"id": "2", "words": "a cat"}), ["line 1", "no 'caption'"]),
        (_lines(GOOD, {**OTHER, "lang": "xx"}), ["line 2", "unknown language code 'xx'", "caplens list languages"]),
        (_lines(GOOD, {**OTHER, "ratings": ["good"]}), ["line 2", "'ratings' must be numbers", "'good'"]),
        (_lines(GOOD, {**OTHER, "ratings": True}), ["line 2", "'ratings' must be numbers"]),
        (_lines(GOOD, {**OTHER, "references": [1]}), ["line 2", "'references'", "1"]),
        (_lines(GOOD, {**OTHER, "caption": 5}), ["line 2", "'caption' must be text"]),
        (_lines(GOOD, {**OTHER, "id": None}), ["line 2", "no 'id'"]),
        ("just some text\nand more\n", ["line 1", "format is not recognised", "'id' and 'caption'"]),
        ("id,caption\n1,a dog, really\n", ["line 2", "3 cells", "header has 2"]),
        ('id,caption\n1,"a dog\n', ["line 2", "broken table"]),
        ("id,caption,caption\n1,a,b\n", ["line 1", "'caption'", "twice"]),
        ('{"a": "x",\n "a": "y"}', ["'a'", "twice"]),
        ('{"a":' * 100_000, ["nested too deeply"]),
        (_lines(GOOD, '{"id": "2", "caption": "x \\ud800"}'), ["line 2", r"'\ud800' is half of a surrogate pair"]),
        ('{"1": "x \\uDC00"}', [r"'\udc00' is half of a surrogate pair"]),
        (b"PAR1" + b"\0" * 50, ["not a readable Parquet file"]),
        (b"\x1f\x8b\x08\x00broken", ["damaged or cut short"]),
        (_lines({"id": "1", "references": ["a", "b"]}), ["no 'caption'", "--references"]),
    ],
)
def test_a_file_that_cannot_be_read(caplens, write, tmp_path, content, words):
    if isinstance(content, bytes) and content.startswith(b"PAR1"):
        need("pyarrow")
    output = tmp_path / "scores.json"
    said = caplens("score", write("captions.jsonl", content), "-o", output)
    assert said.status == 2
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    for word in ("caplens:", *words):
        assert word in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["captions.jsonl"]


def test_a_missing_file(caplens, tmp_path):
    said = caplens("score", tmp_path / "nothing.jsonl")
    assert said.status == 2
    assert "nothing.jsonl: there is no such file" in said.err


def test_an_empty_name(caplens, write):
    said = caplens("score", write("a.jsonl", [GOOD]), "-m", "")
    assert said.status == 2
    assert "was given an empty one" in said.err


def test_a_folder_in_the_place_of_a_file(caplens, tmp_path):
    said = caplens("score", tmp_path)
    assert said.status == 2
    assert "the folder has no photos" in said.err


def test_no_file_at_all(caplens):
    said = caplens("score")
    assert said.status == 2
    assert "name a file of captions, or use --example" in said.err


@pytest.mark.parametrize(
    ("row", "reason"), [({"caption": " \t"}, "the caption is empty"), ({"references": []}, "there are no references")]
)
def test_a_caption_that_cannot_be_scored_gets_null_and_a_reason(caplens, write, tmp_path, row, reason):
    output = tmp_path / "scores.json"
    said = caplens("score", write("captions.jsonl", [GOOD, {**OTHER, **row}]), "-m", "cider", "-m", "bleu1", "-o", output)
    assert said.status == 3
    assert f"1 of 2 captions have no score: {reason} (2)." in said.err
    found = json.loads(output.read_text())
    assert found["errors"] == {"2": reason}
    assert found["counts"] == {"samples": 2, "failed": 1, "truncated": 0, "doubtful": 0}
    assert found["metrics"]["cider"]["values"][1] is None
    assert found["metrics"]["bleu1"]["values"][0] == pytest.approx(1.0)


def test_strict_stops_at_the_first_such_caption(caplens, write, tmp_path):
    output = tmp_path / "scores.json"
    said = caplens("score", write("captions.jsonl", [GOOD, {**OTHER, "caption": ""}]), "--strict", "-o", output)
    assert said.status == 2
    assert "sample '2': the caption is empty" in said.err
    assert not output.exists()


def test_a_length_needs_no_references_where_cider_does(caplens, write, tmp_path):
    output = tmp_path / "scores.json"
    said = caplens("score", write("a.jsonl", [GOOD, {**OTHER, "references": []}]), "-m", "cider,length", "-o", output)
    assert said.status == 0, "every caption has a score, and nothing that was given is unusable"
    assert "cider: 1 of 2 captions have no score: there are no references (2)" in said.err
    metrics = json.loads(output.read_text())["metrics"]
    assert metrics["length"]["values"] == [3, 3]
    assert metrics["cider"]["values"][1] is None
    assert metrics["cider"]["errors"] == {"2": "there are no references"}
    assert metrics["length"]["errors"] == {}


def test_a_repeated_id_is_a_row_error_with_both_places(caplens, write, tmp_path):
    output = tmp_path / "scores.json"
    path = write("captions.jsonl", [GOOD, OTHER, GOOD])
    said = caplens("score", path, "-o", output)
    assert said.status == 3
    assert "the id '1' appears twice, on line 1 and line 3" in said.err
    document = json.loads(output.read_text())
    assert [value is None for value in document["metrics"]["bleu1"]["values"]] == [False, False, True]
    assert document["counts"]["failed"] == 1
    assert caplens("convert", path, tmp_path / "captions.csv").status == 2


def test_no_references_anywhere(caplens, write):
    said = caplens("score", write("captions.json", {"1": "a dog", "2": "a cat"}))
    assert said.status == 2
    assert "none of the 2 samples can be scored" in said.err
    assert "--references" in said.err


def test_a_reference_file_with_other_ids(caplens, write):
    captions, references = write("captions.json", {"1": "a dog"}), write("references.json", {"x": ["a dog"]})
    said = caplens("score", captions, "--references", references)
    assert said.status == 2
    assert "none of its ids is an id of the captions (references: 'x'; captions: '1')" in said.err


def test_a_reference_file_that_lacks_some_ids_gives_null_rows(caplens, write):
    captions = write("captions.json", {"1": "a dog", "2": "a cat"})
    said = caplens("score", captions, "--references", write("references.json", {"1": ["a dog"]}), "-m", "bleu1", "-f", "json")
    assert said.status == 3
    assert json.loads(said.out)["errors"] == {"2": "there are no references"}


def test_references_in_the_place_of_captions(caplens, write):
    said = caplens("score", write("captions.json", {"1": ["a dog", "one dog"]}))
    assert said.status == 2
    assert "Pass it with --references" in said.err


@pytest.mark.parametrize("character", ["\r", "\u2028", "\x0b", "\x0c", "\x85", "\n", "\x00"])
def test_a_line_end_inside_a_caption_changes_no_other_score(caplens, write, character):
    odd = {**GOOD, "id": "0", "caption": f"a dog{character}runs", "references": [f"a dog is{character}running", "the dog runs"]}
    said = caplens("score", write("a.jsonl", [odd, GOOD, OTHER]), "-m", "bleu1,rouge-l,cider", "-f", "json")
    plain = caplens("score", write("b.jsonl", [{**GOOD, "id": "0"}, GOOD, OTHER]), "-m", "bleu1,rouge-l,cider", "-f", "json")
    assert said.status == plain.status == 0
    # A NUL parts no words, neither here nor in the Java tokeniser, so only the captions around it must stay the same.
    skip = 1 if character == "\x00" else 0
    for name in ("bleu1", "rouge-l"):
        assert json.loads(said.out)["metrics"][name]["values"][skip:] == json.loads(plain.out)["metrics"][name]["values"][skip:]


def test_a_caption_of_100000_characters(caplens, write):
    long = {"id": "3", "caption": "a dog runs " * 9_100, "references": ["a dog runs", "x" * 100_000]}
    said = caplens("score", write("captions.jsonl", [GOOD, OTHER, long]), "-m", "bleu4,rouge-l,cider,length", "-f", "json")
    assert said.status == 0
    assert json.loads(said.out)["metrics"]["length"]["values"][2] == 27_300


@pytest.mark.parametrize("place", ["missing/scores.json", "captions.jsonl/scores.json", "."])
def test_an_output_that_cannot_be_written_is_refused_before_the_work(caplens, write, tmp_path, place):
    said = caplens("score", write("captions.jsonl", [GOOD]), "-o", tmp_path / place)
    assert said.status == 2
    assert "cannot be written" in said.err or "this is a folder" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["captions.jsonl"]


def test_a_failure_leaves_the_old_output_as_it_was(caplens, write, tmp_path):
    output = tmp_path / "scores.json"
    output.write_text("old")
    assert caplens("score", write("captions.jsonl", _lines(GOOD, "{")), "-o", output).status == 2
    assert output.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["captions.jsonl", "scores.json"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lang", "xx"], "unknown language code 'xx'"),
        (["--metric", "cidre"], "unknown metric 'cidre'"),
        (["--tokenizer", "nope"], "unknown tokenizer 'nope'"),
        (["--images", "nowhere"], "no such folder of images"),
        (["--df", "nowhere"], "there is no such file"),
        (["--output", "scores.xyz"], "names no format"),
    ],
)
def test_an_option_that_cannot_be(caplens, write, arguments, words):
    said = caplens("score", write("captions.jsonl", [GOOD]), *arguments)
    assert said.status == 2
    assert words in said.err


def test_a_pickle_of_document_frequencies_is_not_opened(caplens, write):
    df = write("coco-df.p", b"\x80\x03cos\nsystem\nX\x04\x00\x00\x00exit\x85R.")
    said = caplens("score", write("captions.jsonl", [GOOD]), "-m", "cider", "--df", df)
    assert said.status == 2
    assert "pickle" in said.err


def test_a_benchmark_says_which_files_are_missing(caplens, tmp_path):
    said = caplens("bench", "flickr8k-expert", "--data", tmp_path)
    assert said.status == 2
    assert "Flickr8k.token.txt" in said.err
    said = caplens("bench", "flickr8k-expert", "--data", tmp_path / "nowhere")
    assert said.status == 2
    assert "no such folder" in said.err
    assert "unknown benchmark" in caplens("bench", "nope", "--data", tmp_path).err


def test_captions_in_another_script_without_a_language_are_warned_about(caplens, write):
    rows = [{"id": str(i), "caption": "一只狗在奔跑", "references": ["一只狗在跑"]} for i in range(3)]
    assert "not in Latin script" in caplens("score", write("a.jsonl", rows), "-m", "bleu1").err
    assert "not in Latin script" not in caplens("score", write("a.jsonl", rows), "-m", "bleu1", "--lang", "zh").err
