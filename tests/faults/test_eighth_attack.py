"""What an eighth attacker met: each test failed before."""

import json
import os
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest
from extras import need
from fasttext_models import fasttext_model
from PIL import Image

import caplens as package
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.pretrained import check_layers
from caplens.benchmarks.registry import get_benchmark
from caplens.benchmarks.translations import kept_qualities, load_translated
from caplens.comparison.crossmodal3600 import CrossmodalImage, released_tokenizers
from caplens.data import Sample
from caplens.data.references import References
from caplens.embed.videos import FrameChoice, VideoClip, read_frames
from caplens.errors import InputError
from caplens.metrics.external import ExternalScores
from caplens.metrics.mini_qe import MiniQe
from caplens.metrics.pair_statistics import PairStatistics
from caplens.metrics.quality_estimation import Estimates
from caplens.metrics.translation_models import find_files
from caplens.perturbation.datasets import load_captions
from caplens.text.fasttext_file import read_fasttext_labels
from caplens.text.identification import FastTextModel
from caplens.training.recipes.pairs import Photos
from caplens.translation import Hypothesis, load_translator
from caplens.translation.chrf import chrf
from caplens.translation.selection import bayes_quality, in_language
from caplens.translation.store import HypothesisStore, translation_key

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
    need("py3langid")
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
    said = caplens(
        "translate", captions, tmp_path / "de.jsonl", "--to", "de", "--translator", f"file:{ready}", "--no-language-check"
    )
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
    with pytest.raises(InputError, match="fitted with x, not with mine: vectors have 4,096 numbers, not 512"):
        PairStatistics.load(path, 512, "mine")


def test_a_complete_model_of_fasttext_passes(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(fasttext_model())
    assert read_fasttext_labels(path) == ["__label__deu_Latn", "__label__eng_Latn"]
    need("fasttext")
    assert set(FastTextModel(path).log_probabilities("der", ["de", "en"])) == {"de", "en"}


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.9, 0.99])
def test_a_model_of_fasttext_that_is_cut_short_is_refused(tmp_path, share):
    content = fasttext_model()
    path = tmp_path / "model.bin"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError, match="cut short"):
        read_fasttext_labels(path)


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
        read_fasttext_labels(path)


def source_pairs(translation="ein Hund"):
    return [Sample("1", translation, source="a dog", lang="de"), Sample("2", "eine Katze", source="a cat", lang="de")]


def test_texts_that_a_quality_estimate_cuts_are_counted():
    long = "a dog " + "and something totally different " * 200
    result = package.score([Sample("1", long, source="a dog"), Sample("2", "x", source="y")], ["mini-qe"], resamples=0)
    assert set(result["mini-qe"].truncated) == {0}
    assert "truncated:1" in result["mini-qe"].signature
    assert any("longer than the model takes" in warning for warning in result.warnings)


def test_an_estimate_that_is_not_a_number_is_an_error(monkeypatch):
    monkeypatch.setattr(
        MiniQe, "estimate", lambda self, pairs: Estimates(np.full(len(pairs), np.nan), np.zeros(len(pairs), bool))
    )
    with pytest.raises(InputError, match="gives values that are not numbers"):
        package.score(source_pairs(), ["mini-qe"], resamples=0)


def test_scores_of_one_file_belong_to_one_caption_in_all_that_is_run(translated, foil, caplens, write):
    ids = [row["id"] for row in rows_of(translated)]
    mine = write("mine.jsonl", "".join(json.dumps({"id": name, "score": place}) + "\n" for place, name in enumerate(ids)))
    command = ["bench", "foil", "--data", foil, "--scores", mine, "-m", "length", "--lang"]
    assert caplens(*command, "en").status == 0
    said = caplens(*command, "en,de")
    assert "is of captions in several languages" in said.err
    assert said.status != 0


def test_choosing_among_a_thousand_translations_takes_seconds():
    rng = np.random.default_rng(0)
    words = np.array([f"wort{number}" for number in range(300)])
    texts = [" ".join(rng.choice(words, 40)) for _ in range(400)]
    start = time.monotonic()
    quality = bayes_quality(texts)
    assert time.monotonic() - start < 30
    assert quality[7] == pytest.approx(np.mean([chrf(texts[7], text) for text in texts if text != texts[7]]))


def test_a_damaged_entry_of_translations_counts_as_missing(tmp_path):
    store = HypothesisStore(tmp_path)
    key = translation_key("a", "en", "de", 1, "f")
    for damage in (b"\xff\xfe", None, 7, "[]"):
        store.put({key: [Hypothesis("b", -1.0)]})
        with closing(sqlite3.connect(store.path)) as connection, connection:
            connection.execute("DROP TABLE translations")
            connection.execute("CREATE TABLE translations (key BLOB PRIMARY KEY, content, digest)")
            connection.execute("INSERT INTO translations VALUES (?, ?, ?)", (key, damage, b"x"))
        assert store.get([key]) == {}
        store.path.unlink()


@pytest.mark.parametrize("settings", [{"num_layers": 10**5}, {"text_config": {"num_hidden_layers": 10**9}}])
def test_a_configuration_of_too_many_layers_is_refused(settings):
    with pytest.raises(InputError, match="no model has more"):
        check_layers(settings, "config.json")


@pytest.mark.parametrize("langs", ["fr", "FR", "de,fr"])
def test_a_language_that_a_benchmark_has_is_not_translated(tmp_path, caplens, write, langs):
    rows = "".join(
        json.dumps({"gold_label": "entailment", "sentence1": "x", "sentence2": f"y {n}", "Flikr30kID": str(n)}) + "\n"
        for n in range(3)
    )
    for lang in ("en", "fr"):
        (tmp_path / f"{lang}.test.jsonl").write_text(rows)
    ready = write("ready.jsonl", '{"source": "y 0", "caption": "z", "lang": "fr"}\n')
    said = caplens("translate", "--benchmark", "xvnli", "--data", tmp_path, "--to", langs, "--translator", f"file:{ready}")
    assert said.status == 2
    assert "has its own captions in fr" in said.err


def test_an_output_without_a_format_is_refused_before_the_work(tmp_path, caplens, write):
    captions = write("en.jsonl", '{"id": "1", "caption": "a dog"}\n')
    said = caplens("translate", captions, tmp_path / "de.json", "--to", "de", "--translator", "file:nothing.jsonl")
    assert said.status == 2
    assert "the suffix names no format of captions; there are: .jsonl" in said.err


def test_lines_of_multi30k_belong_together(tmp_path):
    (tmp_path / "test_2016_flickr.en").write_text("a dog\n\na cat\na boat\n")
    (tmp_path / "test_2016_flickr.txt").write_text("1.jpg\n2.jpg\n\n3.jpg\n")
    with pytest.raises(InputError, match="line 2: it is blank"):
        load_captions("multi30k", tmp_path)


def test_captions_to_perturb_have_one_id_each(tmp_path):
    (tmp_path / "Flickr8k.token.txt").write_text("a.jpg#0\ta dog\na.jpg#0\ta cat\n")
    (tmp_path / "test.txt").write_text("a.jpg\n")
    with pytest.raises(InputError, match=r"another value for 'a\.jpg'"):
        load_captions("flickr8k", tmp_path)


def test_a_language_that_the_identifier_does_not_know_is_checked_by_script(tmp_path, caplens, write):
    need("py3langid")
    captions = write("en.jsonl", '{"id": "1", "caption": "a dog runs on the grass"}\n')
    rows = [
        {"source": "a dog runs on the grass", "caption": text, "lang": "mi"} for text in ("ორი კაცი", "kei te oma te kurī", "123")
    ]
    ready = write("ready.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    target = tmp_path / "mi.jsonl"
    said = caplens("translate", captions, target, "--to", "mi", "--translator", f"file:{ready}", "--nbest", 3)
    assert "does not know 'mi': only the writing system" in said.err
    assert rows_of(target)[0]["caption"] == "kei te oma te kurī"


def test_a_quality_is_a_number_in_a_table_too(translated, foil):
    rows = rows_of(translated)
    translated.unlink()
    lines = ["id,caption,quality", *(f"{row['id']},{row['caption']},0.5" for row in rows)]
    (foil / "foil.de.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert set(kept_qualities(get_benchmark("foil"), foil).values()) == {0.5}


def test_translations_made_by_others_are_not_replaced(translated, foil, caplens, write):
    ready = write("r.jsonl", '{"source": "a red dog", "caption": "x", "lang": "de"}\n')
    command = ["translate", "--benchmark", "foil", "--data", foil, "--to", "de", "--translator", f"file:{ready}"]
    rows = [{name: value for name, value in row.items() if name != "translator"} for row in rows_of(translated)]
    write_rows(translated, rows)
    assert "were not made by 'caplens translate'" in caplens(*command, "--no-language-check").err
    assert rows_of(translated) == rows
    translated.rename(foil / "foil.de.ndjson")
    assert "there are translations into 'de' already" in caplens(*command, "--no-language-check").err


def test_every_two_systems_are_about_the_same_images():
    def captions(image):
        return [Sample("1", "a dog", ("a dog",), image=image)]

    systems = {name: captions(f"{name}.jpg") for name in ("a_1", "b_1", "1")}
    with pytest.raises(InputError, match="about different images"):
        package.compare(systems, ["bleu1"])


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("a.mp4", "libx264", {"bf": "3", "g": "12"}),
        ("b.ts", "libx264", {"bf": "3", "g": "12"}),
        ("c.ts", "mpeg2video", {"bf": "2", "g": "10"}),
        ("d.avi", "libx264", {"bf": "3"}),
        ("e.mpg", "mpeg2video", {"bf": "2", "g": "9"}),
    ],
)
def test_frames_are_those_of_their_times_in_every_format(tmp_path, name, codec, options):
    av = need("av")
    path = tmp_path / name
    count = 50
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25, options=options)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for number in range(count):
            # The number in black and white blocks, which compression does not change.
            bits = np.array([number >> place & 1 for place in range(8)], np.uint8).reshape(2, 4) * 255
            picture = np.repeat(np.kron(bits, np.ones((32, 16), np.uint8))[..., None], 3, axis=2)
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)

    def number_of(image):
        blocks = np.asarray(image.convert("L"))[16::32, 8::16].ravel() > 128
        return sum(int(bit) << place for place, bit in enumerate(blocks))

    expected = np.linspace(0, count - 1, 10).astype(int).tolist()
    assert read_frames(VideoClip(str(path)), FrameChoice(10), number_of) == expected


def test_metrics_of_videos_say_of_which_language_they_know_nothing(tmp_path):
    folder = tmp_path / "video"
    folder.mkdir()
    Image.new("RGB", (16, 16), "red").save(folder / "0.png")
    result = package.score([Sample("1", "หมาวิ่ง", video=folder, lang="th")], ["emscore"], keep_store=False, resamples=0)
    assert set(result["emscore"].coverage_warnings) == {0}
    assert any("do not trust the scores" in warning for warning in result.warnings)


def test_captions_without_an_image_are_translated_and_images_keep_their_names(tmp_path, caplens, write):
    folder = tmp_path / "photos"
    folder.mkdir()
    Image.new("RGB", (32, 32), "red").save(folder / "1.jpg")
    captions = write("en.jsonl", '{"id": "1", "caption": "a dog", "image": "1.jpg"}\n{"id": "2", "caption": "a cat"}\n')
    pairs = [("a dog", "ein Hund"), ("a dog", "Hund"), ("a cat", "eine Katze"), ("a cat", "Katze")]
    ready = write("ready.jsonl", "".join(json.dumps({"source": a, "caption": b, "lang": "de"}) + "\n" for a, b in pairs))
    command = ["translate", captions, tmp_path / "de.jsonl", "--to", "de", "--translator", f"file:{ready}", "--nbest", 2]
    said = caplens(*command, "--no-language-check", "--qe", "clipscore", "--images", folder)
    assert said.status == 0, said.err
    assert "clipscore: 2 translations have no estimate" in said.err
    first, second = rows_of(tmp_path / "de.jsonl")
    assert first["image"] == "1.jpg"
    assert "image" not in second
    assert second["caption"] == "eine Katze"


def test_a_pipe_in_the_folder_of_a_model_is_refused(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"x")
    os.mkfifo(tmp_path / "extra.json")
    with pytest.raises(InputError, match="it is a pipe or a device"):
        find_files("cometkiwi", str(tmp_path), "fp32")


def test_compare_takes_scores_by_system():
    systems = {name: {"1": f"{name} dog", "2": f"{name} cat"} for name in ("a", "b")}
    scores = {(key, None, name): value for name, value in (("a", 0.5), ("b", 0.2)) for key in ("1", "2")}
    compared = package.compare(systems, [ExternalScores("mine", scores)])
    assert [compared.scores["mine"][name].value for name in systems] == [0.5, 0.2]
    with pytest.raises(InputError, match="of several systems"):
        package.compare(systems, [ExternalScores("mine", {"1": 0.5, "2": 0.2})])


@pytest.mark.parametrize("order", [1, -1])
def test_released_tokens_that_differ_do_not_count(order):
    images = [CrossmodalImage("k", "en", {"en": ("a dog",)}, {"en": (tokens,)}) for tokens in ("a dog", "a d og")][::order]
    assert released_tokenizers(images)("en")("a dog") == ["a", "dog"]


def test_one_caption_has_one_list_of_critical_objects():
    samples = [
        Sample(name, "a dog on a mat", image=f"{name}.jpg", meta={"objects": [thing]})
        for name, thing in (("1", "dog"), ("2", "mat"))
    ]
    with pytest.raises(InputError, match="appears with other critical 'objects'"):
        Photos(samples)


def test_two_keys_are_not_one_id():
    with pytest.raises(InputError, match="the same id once they are texts"):
        References.of({1: ["a"], "1": ["b"]})


def test_nothing_is_sent_offline():
    with pytest.raises(InputError, match="sends captions to a server"):
        load_translator("endpoint:http://127.0.0.1:9/v1,model=x", options=LoadOptions(offline=True))


@pytest.mark.parametrize("command", [["agreement", "x.jsonl"], ["bench", "foil", "--data", "."]])
def test_resamples_have_a_limit(caplens, command):
    said = caplens(*command, "--resamples", "1" + "0" * 400)
    assert said.status == 2
    assert "1000000" in said.err
