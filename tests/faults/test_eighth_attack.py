"""What an eighth attacker met: each test failed before."""

import json
import struct

import numpy as np
import pytest
from extras import need

import caplens as package
from caplens.benchmarks.registry import get_benchmark
from caplens.benchmarks.translations import kept_qualities, load_translated
from caplens.errors import InputError
from caplens.metrics.pair_statistics import PairStatistics
from caplens.text.fasttext_file import check_fasttext_file
from caplens.text.identification import FastTextModel
from caplens.translation.selection import in_language

COLOURS = ("red", "blue")


@pytest.fixture
def foil(tmp_path):
    """Two images of FOIL, and what translates all its texts."""
    images = [{"id": number, "file_name": f"COCO_val2014_{number:012}.jpg"} for number in (1, 2)]
    annotations = []
    for number, colour in zip((1, 2), COLOURS, strict=True):
        annotations += [
            {"id": number, "image_id": number, "caption": f"a {colour} dog", "foil": False, "foil_word": "ORIG"},
            {"id": number, "image_id": number, "caption": f"a {colour} cat", "foil": True, "foil_word": "cat"},
        ]
    (tmp_path / "foilv1.0_test_2017.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    coco = [
        {"id": 10 * number + place, "image_id": number, "caption": f"reference {place} of {number}"}
        for number in (1, 2)
        for place in range(4)
    ]
    (tmp_path / "captions_val2014.json").write_text(json.dumps({"images": images, "annotations": coco}))
    return tmp_path


@pytest.fixture
def translated(foil, caplens, write):
    samples = get_benchmark("foil").load(foil, "4-refs").samples
    texts = dict.fromkeys(text for sample in samples for text in (sample.caption, *sample.references))
    ready = write("ready.jsonl", "".join(json.dumps({"source": t, "caption": f"DE {t}", "lang": "de"}) + "\n" for t in texts))
    command = ["translate", "--benchmark", "foil", "--data", foil, "--to", "de", "--translator", f"file:{ready}"]
    assert caplens(*command, "--no-language-check").status == 0
    return foil / "foil.de.jsonl"


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_translated_references_are_those_of_the_protocol(translated, foil):
    for protocol in ("4-refs", "1-ref"):
        english = get_benchmark("foil").load(foil, protocol).samples
        german = load_translated(get_benchmark("foil"), foil, protocol, "de").samples
        for old, new in zip(english, german, strict=True):
            assert new.references == tuple(f"DE {text}" for text in old.references)


def test_a_file_without_the_english_references_fits_protocols_of_as_many(translated, foil):
    rows = rows_of(translated)
    for row in rows:
        del row["source_references"]
    write_rows(translated, rows)
    assert len(load_translated(get_benchmark("foil"), foil, "4-refs", "de").samples) == 4
    with pytest.raises(InputError, match="has 4 references, and 1 in English"):
        load_translated(get_benchmark("foil"), foil, "1-ref", "de")


def test_a_translation_of_another_caption_is_an_error(translated, foil):
    rows = rows_of(translated)
    rows[0]["source"], rows[2]["source"] = rows[2]["source"], rows[0]["source"]
    write_rows(translated, rows)
    with pytest.raises(InputError, match="is the translation of 'a blue dog'"):
        load_translated(get_benchmark("foil"), foil, "4-refs", "de")


@pytest.mark.parametrize("more", [{"lang": "de-AT"}, {"system": "b"}])
def test_an_id_that_is_translated_twice_is_an_error(translated, foil, more):
    rows = rows_of(translated)
    write_rows(translated, [*rows, {**rows[0], "caption": "nonsense", **more}])
    with pytest.raises(InputError, match="appears twice"):
        load_translated(get_benchmark("foil"), foil, "4-refs", "de")


def test_each_row_keeps_its_own_quality(translated, foil):
    rows = rows_of(translated)
    write_rows(translated, [{**row, "caption": "the same", "quality": place / 10} for place, row in enumerate(rows)])
    qualities = kept_qualities(get_benchmark("foil"), foil)
    assert [qualities["de", row["id"]] for row in rows] == [0.0, 0.1, 0.2, 0.3]


@pytest.mark.parametrize("text", ["ძაღლი დარბის", "நாய் ஓடுகிறது", "ᎩᏟ ᎠᏗᏔᏍᎬ"])
def test_a_writing_system_of_no_candidate_is_another_language(text):
    assert in_language([text, "12:30", "?"], "de", ["en"]) == [False, True, False]


def test_scores_through_english_follow_the_options_of_score(tmp_path, caplens, write):
    captions = write(
        "de.jsonl",
        '{"id": "1", "caption": "ein Hund", "references": ["der Hund", "ein Tier"], "lang": "de", "by": "Anna"}\n'
        '{"id": "2", "caption": "ein Vogel", "references": ["der Hund"], "lang": "de", "by": "Ben"}\n',
    )
    pairs = [("ein Hund", "a dog"), ("der Hund", "the dog")]
    ready = write("ready.jsonl", "".join(json.dumps({"source": a, "caption": b, "lang": "en"}) + "\n" for a, b in pairs))
    command = ["score", captions, "--via-english", f"file:{ready}", "-m", "bleu1"]
    said = caplens(*command, "--keep-columns", "by", "--resamples", 0, "--store", tmp_path / "kept", "-o", tmp_path / "o.json")
    assert said.status == 3
    assert "2 texts could not be translated into English, so 1 captions have fewer references" in said.err
    result = package.load_results(tmp_path / "o.json")
    assert result.columns["by"] == ["Anna", "Ben"]
    assert not result.intervals
    assert (tmp_path / "kept" / "translations.sqlite").is_file()
    said = caplens(*command, "--strict")
    assert said.status == 2
    assert "could not be translated" in said.err


def test_columns_that_are_replaced_are_said(tmp_path, caplens, write):
    captions = write("en.jsonl", '{"id": "1", "caption": "a dog", "rank": 7, "translation_error": "old"}\n')
    ready = write("ready.jsonl", '{"source": "a dog", "caption": "ein Hund", "lang": "de"}\n')
    said = caplens("translate", captions, tmp_path / "de.jsonl", "--to", "de", "--translator", f"file:{ready}")
    assert "the columns rank, translation_error of the input are replaced" in said.err
    (row,) = rows_of(tmp_path / "de.jsonl")
    assert (row["rank"], row.get("translation_error")) == (0, None)


def test_an_english_caption_is_scored_whatever_its_columns_say(caplens, write):
    captions = write("mixed.jsonl", '{"id": "1", "caption": "a dog", "lang": "en", "translation_error": false}\n')
    ready = write("ready.jsonl", '{"source": "ein Hund", "caption": "a dog", "lang": "en"}\n')
    said = caplens("score", captions, "--via-english", f"file:{ready}", "-m", "length")
    assert said.status == 0, said.err


def test_one_id_in_two_languages_cannot_become_english(caplens, write):
    captions = write(
        "two.jsonl", '{"id": "1", "caption": "ein Hund", "lang": "de"}\n{"id": "1", "caption": "un chien", "lang": "fr"}\n'
    )
    ready = write("ready.jsonl", '{"source": "ein Hund", "caption": "a dog", "lang": "en"}\n')
    said = caplens("score", captions, "--via-english", f"file:{ready}", "-m", "length")
    assert said.status == 2
    assert "is of captions in several languages" in said.err


def test_statistics_of_another_size_are_refused_before_they_are_read(tmp_path):
    large = 4096
    path = tmp_path / "large.npz"
    text = {name: np.array("x") for name in ("model", "fingerprint", "prompt")}
    # Without a matrix: what is read beyond the size would be another error.
    np.savez_compressed(path, mean=np.zeros(2 * large), count=np.array(5), **text)
    with pytest.raises(InputError, match=r"whose vectors have 4,096 numbers, not 512"):
        PairStatistics.load(path, 512)


def fasttext_model(labels=("__label__deu_Latn", "__label__eng_Latn"), words=("der", "the", "</s>"), dim=4, **changes):
    """A model of fastText, byte by byte."""
    settings = {"bucket": 0, "word_ngrams": 1, "loss": 3, "maxn": 0} | changes
    numbers = [dim, 5, 5, 1, 5, settings["word_ngrams"], settings["loss"], 3, settings["bucket"], 0, settings["maxn"], 100]
    head = struct.pack("<ii12id", 793712314, 12, *numbers, 1e-4)
    dictionary = struct.pack("<iiiqq", len(words) + len(labels), len(words), len(labels), 100, -1)
    for kind, entries in enumerate((words, labels)):
        dictionary += b"".join(entry.encode() + b"\0" + struct.pack("<qb", 10, kind) for entry in entries)
    rng = np.random.default_rng(0)
    matrices = b"".join(
        b"\0" + struct.pack("<qq", rows, dim) + rng.normal(size=(rows, dim)).astype("<f4").tobytes()
        for rows in (len(words) + settings["bucket"], len(labels))
    )
    return head + dictionary + matrices


def test_a_complete_model_of_fasttext_passes(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(fasttext_model())
    check_fasttext_file(path)
    need("fasttext")
    assert set(FastTextModel(path).log_probabilities("der", ["de", "en"])) == {"de", "en"}


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.9, 0.99])
def test_a_model_of_fasttext_that_is_cut_short_is_refused(tmp_path, share):
    content = fasttext_model()
    path = tmp_path / "model.bin"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError, match="cut short"):
        check_fasttext_file(path)


@pytest.mark.parametrize(
    "content",
    [
        fasttext_model() + b"x",
        fasttext_model(word_ngrams=2),
        fasttext_model(maxn=3),
        fasttext_model(maxn=-1),
        fasttext_model(loss=9),
        fasttext_model(labels=()),
        fasttext_model(dim=0),
    ],
)
def test_a_damaged_model_of_fasttext_is_refused(tmp_path, content):
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a model of fastText"):
        check_fasttext_file(path)
