"""Choosing translations, keeping them, and the command."""

import json

import numpy as np
import pytest
from extras import need
from fasttext_models import fasttext_model
from hypothesis import given
from hypothesis import strategies as st

import caplens as package
from caplens.data import Sample
from caplens.errors import CaplensError, InputError
from caplens.text.identification import Identified, identify_language
from caplens.text.scripts import script_of
from caplens.translation import Hypothesis, TranslationOptions, Translations, translate_samples
from caplens.translation.chrf import chrf
from caplens.translation.selection import bayes_quality, distinct, select
from caplens.translation.store import HypothesisStore, translation_key


@given(st.text(max_size=30), st.text(max_size=30))
def test_chrf_is_sacrebleu_s(first, second):
    metrics = need("sacrebleu.metrics")
    expected = metrics.CHRF(eps_smoothing=False).sentence_score(first, [second]).score / 100
    assert chrf(first, second) == pytest.approx(expected, abs=1e-6)


def test_the_best_in_the_right_language_is_kept():
    hypotheses = distinct([Hypothesis("a dog", -0.1), Hypothesis("ein Hund", -0.5), Hypothesis("der Hund", -0.4)])
    found = select(hypotheses, [False, True, True], {"qe": np.array([0.9, 0.8, 0.7])})
    assert (found.text, found.rank, found.changed, found.wrong_language) == ("ein Hund", 1, True, 1)
    # Several estimates are combined by ranks, and log-probabilities break ties.
    found = select(hypotheses, [True] * 3, {"a": np.array([3.0, 1.0, 2.0]), "b": np.array([1.0, 2.0, 3.0])})
    assert found.text == "der Hund"
    found = select(hypotheses, [True] * 3, {"a": np.array([1.0, 1.0, 1.0])})
    assert found.text == "a dog"
    # None in the language: the best of all, marked.
    found = select(hypotheses, [False] * 3, {"qe": np.array([0.1, 0.2, 0.3])})
    assert (found.text, found.right_language) == ("der Hund", False)


def test_minimum_bayes_risk_takes_what_is_most_like_the_others():
    quality = bayes_quality(["ein Hund rennt", "ein Hund rennt schnell", "etwas ganz anderes"])
    assert quality.argmin() == 2
    assert bayes_quality(["x"]).tolist() == [0.0]


def test_texts_appear_once_and_empty_ones_not_at_all():
    assert distinct([Hypothesis(""), Hypothesis("a"), Hypothesis(" "), Hypothesis("a"), Hypothesis("b")]) == [
        (1, Hypothesis("a")),
        (4, Hypothesis("b")),
    ]


class Counting:
    """Translates by upper case, with a second try that is worse; counts what it is asked."""

    name, fingerprint = "counting", "0" * 64

    def __init__(self, most=999):
        self.asked, self.most = [], most

    def check_languages(self, source, target):
        if target == "quz":
            raise InputError("counting does not translate 'quz'")

    def translate(self, texts, source, target, n):
        if len(self.asked) + len(texts) > self.most:
            raise CaplensError("stopped")
        self.asked += texts
        return [
            Translations(error="it is too long") if len(text) > 50 else Translations([Hypothesis(text.upper(), -1.0)][:n])
            for text in texts
        ]


SAMPLES = [Sample(str(n), f"a dog {n}", (f"the dog {n}", "a dog"), lang="en") for n in range(100)]


def options(tmp_path, **more):
    return TranslationOptions(check_language=False, store=HypothesisStore(tmp_path), **more)


def test_nothing_is_translated_twice_and_a_stopped_run_goes_on(tmp_path):
    whole, report = translate_samples(SAMPLES, Counting(), "de", options=options(tmp_path / "whole"))
    assert (report.texts, report.translated) == (201, 201)
    assert whole[3].caption == "A DOG 3"
    assert whole[3].references == ("THE DOG 3", "A DOG")
    assert (whole[3].source, whole[3].lang) == ("a dog 3", "de")
    stopped = Counting(most=150)
    with pytest.raises(CaplensError, match="stopped"):
        translate_samples(SAMPLES, stopped, "de", options=options(tmp_path / "part"))
    again = Counting()
    resumed, _ = translate_samples(SAMPLES, again, "de", options=options(tmp_path / "part"))
    assert not set(stopped.asked) & set(again.asked)
    assert resumed == whole
    third = Counting()
    assert translate_samples(SAMPLES, third, "de", options=options(tmp_path / "part"))[0] == whole
    assert third.asked == []


def test_a_damaged_entry_is_made_again(tmp_path):
    import sqlite3

    store = HypothesisStore(tmp_path)
    key = translation_key("a", "en", "de", 1, "f")
    store.put({key: [Hypothesis("b", -1.0)]})
    assert store.get([key]) == {key: [Hypothesis("b", -1.0)]}
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE translations SET content = ?", ('[["c", 1]]',))
    connection.close()
    assert store.get([key]) == {}
    store.path.write_bytes(b"not a database" * 100)
    with pytest.raises(InputError, match="cannot be kept there"):
        store.put({key: []})


def test_rows_that_cannot_be_translated_are_kept(tmp_path):
    samples = [Sample("1", "a dog " * 20), Sample("2", "a cat"), Sample("3", " "), Sample("4", "a", ("b" * 60,))]
    found, report = translate_samples(samples, Counting(), "de", options=options(tmp_path))
    assert [sample.id for sample in found] == ["1", "2", "3", "4"]
    assert found[0].caption is None
    assert found[0].meta["translation_error"] == "it is too long"
    assert found[1].caption == "A CAT"
    assert found[3].references == ()
    assert report.failed == {"it is too long": 2}


@pytest.mark.parametrize(
    ("to", "source", "why"), [("en", "en", "already"), ("quz", "en", "does not translate"), ("de", "fr", "not in 'fr'")]
)
def test_language_pairs_that_cannot_be_are_told(tmp_path, to, source, why):
    with pytest.raises(InputError, match=why):
        translate_samples(SAMPLES, Counting(), to, source, options(tmp_path))


def test_translations_in_another_language_are_dropped(tmp_path):
    need("py3langid")
    rows = [
        {"source": "A dog runs across the green grass.", "lang": "de", "caption": text}
        for text in ("A dog runs across the green grass.", "Ein Hund läuft über das grüne Gras.", "Un chien court dans l'herbe.")
    ]
    path = tmp_path / "ready.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    samples = [Sample("1", "A dog runs across the green grass.")]
    (found,), report = package.translate(samples, "de", f"file:{path}", nbest=3, store=tmp_path / "s")
    assert found.caption == "Ein Hund läuft über das grüne Gras."
    assert (found.meta["rank"], found.meta["changed"], found.meta["wrong_language"]) == (1, True, 2)
    assert report.changed == 1
    more = {"check_language": False, "qe": "mini-qe", "store": tmp_path / "s"}
    (found,), _ = package.translate(samples, "de", f"file:{path}", nbest=3, **more)
    assert set(found.meta["qualities"]) == {"mini-qe"}
    assert found.meta["quality"] == found.meta["qualities"]["mini-qe"]
    with pytest.raises(InputError, match="needs references"):
        package.translate(samples, "de", f"file:{path}", qe="cider")


@pytest.mark.parametrize(
    ("text", "candidates", "lang"),
    [
        ("собака бежит", ["ru", "de"], "ru"),
        ("狗在草地上跑", None, "zh"),
        ("黒い犬が走る", None, "ja"),
        ("개가 달린다", None, "ko"),
        ("A dog runs across the green grass.", ["en", "de", "fr"], "en"),
        ("Ein Hund läuft über das grüne Gras.", None, "de"),
        ("12 34", None, None),
        ("собака", ["en", "de"], None),
    ],
)
def test_languages_are_identified_by_script_and_then_by_a_model(text, candidates, lang):
    need("py3langid")
    assert identify_language(text, candidates).lang == lang


def test_a_file_of_fasttext_knows_its_own_labels(tmp_path, monkeypatch):
    import sys
    import types

    from caplens.text.identification import FastTextModel

    class Model:
        def predict(self, text, k):
            return ("__label__deu_Latn", "__label__eng_Latn"), (0.9, 0.1)

    (tmp_path / "model.bin").write_bytes(fasttext_model())
    monkeypatch.setitem(sys.modules, "fasttext", types.SimpleNamespace(load_model=lambda path: Model()))
    model = FastTextModel(tmp_path / "model.bin")
    assert identify_language("ein Hund", ["de", "en"], model) == Identified("de", pytest.approx(0.9))
    with pytest.raises(InputError, match="no such file"):
        FastTextModel(tmp_path / "none.bin")


@given(st.text(max_size=20))
def test_any_text_has_a_script_or_none(text):
    assert script_of(text) is None or any(map(str.isalpha, text))


def test_the_command_writes_what_benchmarks_read(tmp_path, caplens):
    rows = [{"imgid": f"{n}.jpg", "caption": f"a dog {n}", "score": n, "refs": [f"the dog {n}"]} for n in range(1, 9)]
    (tmp_path / "vicr_test.json").write_text(json.dumps(rows), encoding="utf-8")
    ready = [
        {"source": text, "lang": lang, "caption": f"{text} {lang}"}
        for n in range(1, 9)
        for text in (f"a dog {n}", f"the dog {n}")
        for lang in ("de", "fr")
    ]
    (tmp_path / "ready.jsonl").write_text("\n".join(map(json.dumps, ready)), encoding="utf-8")
    command = ["translate", "--benchmark", "vicr", "--data", tmp_path, "--to", "de,fr", "--store", tmp_path / "s"]
    said = caplens(*command, "--translator", f"file:{tmp_path / 'ready.jsonl'}", "--no-language-check", "--qe", "mini-qe")
    assert said.status == 0, said.err
    german = [json.loads(line) for line in (tmp_path / "vicr.de.jsonl").read_text(encoding="utf-8").splitlines()]
    assert german[0]["caption"] == "a dog 1 de"
    assert german[0]["references"] == ["the dog 1 de"]
    assert "quality" in german[0]
    bench = ["bench", "vicr", "--data", tmp_path, "--lang", "en,de,fr", "-m", "length,bleu1"]
    said = caplens(*bench, "--resamples", 5, "-f", "json")
    document = json.loads(said.out)
    assert {result["lang"] for result in document["benchmarks"]} == {"en", "de", "fr"}
    # Translations are split by the quality that was kept.
    assert {"low", "high"} <= set(document["across_languages"][0]["correlations"]["bleu1"])


def test_a_file_is_translated_and_errors_of_use_are_told(tmp_path, caplens, write):
    captions = write("c.jsonl", [{"id": "1", "caption": "a dog"}, {"id": "2", "caption": "a cat"}])
    ready = write("ready.jsonl", [{"source": "a dog", "lang": "de", "caption": "ein Hund"}])
    target = tmp_path / "out.jsonl"
    command = ["translate", captions, target, "--to", "de", "--translator", f"file:{ready}", "--store", tmp_path / "s"]
    said = caplens(*command, "--no-language-check")
    assert said.status == 3
    assert "1 texts were not translated: the file has no translation of it." in said.err
    lines = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [line["caption"] for line in lines] == ["ein Hund", None]
    assert "unknown translator" in caplens("translate", captions, target, "--to", "de", "--translator", "x").err
    assert "give a file of captions" in caplens("translate", "--to", "de", "--translator", f"file:{ready}").err
    assert "give --data" in caplens("translate", captions, target, "--to", "de", "--translator", "x", "--benchmark", "vicr").err


def test_captions_are_scored_through_english(tmp_path, caplens, write):
    from PIL import Image

    Image.new("RGB", (64, 64), "red").save(tmp_path / "a.png")
    captions = write("c.jsonl", [{"id": "1", "caption": "ein Hund", "lang": "de", "image": "a.png"}])
    ready = write("ready.jsonl", [{"source": "ein Hund", "lang": "en", "caption": "a dog"}])
    said = caplens(
        "score", captions, "--images", tmp_path, "-m", "clipscore", "--via-english", f"file:{ready}", "--no-store", "-f", "json"
    )
    found = json.loads(said.out)
    direct = package.score([Sample("1", "a dog", image=str(tmp_path / "a.png"), lang="en")], ["clipscore"], keep_store=False)
    assert found["values"]["clipscore"] == pytest.approx(direct["clipscore"].values.tolist()) if "values" in found else True
    assert "|via:file:" in json.dumps(found)
    assert "takes no references" in caplens("score", captions, "-r", captions, "--via-english", f"file:{ready}").err


def test_a_text_is_chosen_for_each_of_its_images(tmp_path):
    from importlib.resources import files as resources

    examples = resources("caplens").joinpath("examples")
    rows = [
        {"source": "look at this", "lang": "de", "caption": text}
        for text in ("eine Katze liegt", "eine Rakete startet in den Himmel")
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    samples = [Sample(name, "look at this", image=f"{name}.jpg") for name in ("cat", "rocket")]
    found, _ = package.translate(
        samples, "de", f"file:{path}", nbest=2, qe="clipscore", images=str(examples), check_language=False, store=tmp_path / "s"
    )
    assert [sample.caption for sample in found] == ["eine Katze liegt", "eine Rakete startet in den Himmel"]


def test_without_an_estimate_the_first_is_kept_and_old_columns_go(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"source": "a dog", "lang": "de", "caption": text, "log_probability": p} for text, p in (("eins", -9), ("zwei", -1))]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    sample = Sample("1", "a dog", meta={"quality": 3, "mine": 4})
    (found,), _ = package.translate([sample], "de", f"file:{path}", nbest=5, check_language=False, store=tmp_path / "s")
    assert (found.caption, found.meta["rank"], found.meta["mine"]) == ("eins", 0, 4)
    assert "quality" not in found.meta


def test_variants_of_a_language_are_refused(tmp_path):
    rows = [{"source": "a", "lang": lang, "caption": lang} for lang in ("zh-Hans", "zh-Hant")]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(InputError, match="variants of one language"):
        package.translate([Sample("1", "a")], "zh", f"file:{path}")
    with pytest.raises(InputError, match="are not distinguished"):
        translate_samples([Sample("1", "a")], Counting(), "zh-Hant", options=options(tmp_path))
    path.write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="no translations in the file"):
        package.translate([Sample("1", "a")], "zh", f"file:{path}")


def test_all_languages_are_checked_before_the_first_is_translated(tmp_path, caplens, write):
    captions = write("c.jsonl", [{"id": "1", "caption": "a dog"}])
    ready = write("ready.jsonl", [{"source": "a dog", "lang": "de", "caption": "ein Hund"}])
    said = caplens("translate", captions, tmp_path / "o.jsonl", "--to", "de,fr", "--translator", f"file:{ready}")
    assert said.status == 2
    assert not list(tmp_path.glob("o.*"))


def test_a_store_that_is_damaged_inside_is_told(tmp_path):
    store = HypothesisStore(tmp_path)
    store.put({bytes([n, k]): [Hypothesis("x" * 200)] for n in range(100) for k in range(9)})
    content = bytearray(store.path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    store.path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be kept there"):
        store.get([bytes([1, 1])])


def test_a_missing_identifier_is_told_before_anything_is_translated(tmp_path, monkeypatch):
    from caplens.errors import MissingExtraError
    from caplens.translation import captions

    def missing():
        raise MissingExtraError("Identifying languages", "py3langid", "pip install 'caplens[langid]'")

    monkeypatch.setattr(captions, "default_model", missing)
    translator = Counting()
    with pytest.raises(MissingExtraError):
        translate_samples(SAMPLES, translator, "de", options=TranslationOptions(store=HypothesisStore(tmp_path)))
    assert translator.asked == []
