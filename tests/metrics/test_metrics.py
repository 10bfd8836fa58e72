"""Metrics against published numbers and worked examples."""

import json
import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from extras import need
from fake_backbone import FakeBackbone
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import caplens as package
from caplens.data import Sample, SampleFile, read_references
from caplens.embed import Engine
from caplens.errors import InputError, MissingExtraError
from caplens.metrics import METRICS, get_metric
from caplens.metrics.cider import cider
from caplens.metrics.document_frequency import DocumentFrequency
from caplens.metrics.rouge import lcs_length
from caplens.text import get_tokenizer


def _coco_samples(folder):
    references = read_references(folder / "en_captions_val2014.json.gz")
    return references.joined(SampleFile(folder / "en_captions_val2014_fakecap_results.json.gz"))


def test_the_coco_example_gets_its_published_scores(coco_example, golden):
    published = golden("coco_fakecap")
    names = ["bleu1", "bleu2", "bleu3", "bleu4", "rouge-l", "cider"]
    results = package.score(_coco_samples(coco_example), names, resamples=0)
    assert {name: round(results[name].corpus, 3) for name in names} == {name: published["scores"][name] for name in names}
    assert results["cider"].signature == f"cider-d|tok:ptb|df:corpus|sigma:6|refs:5-6|v:{package.__version__}"


def test_meteor_gets_its_published_score(coco_example, golden, needs_java):
    need("pycocoevalcap")
    results = package.score(_coco_samples(coco_example), ["meteor"], resamples=0)
    assert round(results["meteor"].corpus, 3) == golden("coco_fakecap")["scores"]["meteor"]


def test_meteor_without_java_says_how_to_get_it(monkeypatch):
    monkeypatch.setenv("PATH", "")
    for name in ("meteor", "spice"):
        with pytest.raises(MissingExtraError, match=r"needs a Java runtime.*apt-get install"):
            get_metric(name)


def test_meteor_is_for_english_only(needs_java):
    need("pycocoevalcap")
    with pytest.raises(InputError, match=r"English captions only.*de"):
        package.score([Sample("1", "ein Hund", ("ein Hund",), lang="de")], ["meteor"])
    samples = [Sample("1", "a dog", ("a dog",), lang="en"), Sample("2", "ein Hund", ("ein Hund",), lang="de")]
    result = package.score(samples, ["meteor", "bleu1"], resamples=0)
    assert np.isnan(result["meteor"].values).tolist() == [False, True]
    assert (
        "meteor: 1 of 2 captions have no score: meteor is for English captions only (all of the languages de)." in result.warnings
    )


@pytest.mark.slow
def test_meteor_equals_pycocoevalcap_on_odd_captions(needs_java):
    peer = need("pycocoevalcap.meteor.meteor").Meteor()
    texts = ["a dog ||| runs", "a man 's dog", "-lrb- x -rrb-", "naïve café", "a"]
    samples = [Sample(str(i), text, ("a dog runs", f"the {text}")) for i, text in enumerate(texts)]
    tokens = get_tokenizer("ptb")
    corpus, values = peer.compute_score(
        {i: [" ".join(tokens(text)).replace("|||", " ") for text in s.references] for i, s in enumerate(samples)},
        {i: [" ".join(tokens(s.caption)).replace("|||", " ")] for i, s in enumerate(samples)},
    )
    found = package.score(samples, ["meteor"], resamples=0)["meteor"]
    assert found.values == pytest.approx(values)
    assert found.corpus == pytest.approx(corpus)


def test_meteor_of_text_that_cannot_be_sent_is_an_error_and_no_hang(needs_java):
    need("pycocoevalcap")
    with pytest.raises(package.CaplensError, match="METEOR's Java program stopped"):
        get_metric("meteor", tokenizer="13a")([Sample("1", "a \ud83d dog", ("a dog",))])


def test_a_java_program_that_dies_is_one_sentence(needs_java, monkeypatch):
    need("pycocoevalcap")
    metric = get_metric("meteor")
    monkeypatch.setattr(metric, "folder", metric.folder / "nowhere")
    with pytest.raises(package.CaplensError, match=r"METEOR's Java program stopped \(.*jar"):
        metric([Sample("1", "a dog", ("a dog",))])


def test_spice_without_its_models_says_what_to_copy_where(needs_java, monkeypatch):
    module = need("pycocoevalcap.spice.get_stanford_models")

    def offline():
        raise OSError("no connection")

    monkeypatch.setattr(module, "get_stanford_models", offline)
    with pytest.raises(package.CaplensError, match=r"SPICE could not run \(no connection\).*copy stanford-corenlp"):
        get_metric("spice")


def _brute_cider(candidates, references, clip, sigma, corpus=None):
    """The equations of Vedantam et al. (2015), word for word, with length counted in bigrams."""
    corpus = corpus or references

    def grams(text, n):
        words = text.split()
        return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]

    scores = []
    for candidate, texts in zip(candidates, references, strict=True):
        total = 0.0
        for n in (1, 2, 3, 4):

            def idf(gram, n=n):
                df = sum(any(gram in grams(text, n) for text in of_image) for of_image in corpus)
                return math.log(len(corpus)) - math.log(max(1, df))

            def vector(text, n=n, idf=idf):
                return {gram: grams(text, n).count(gram) * idf(gram) for gram in grams(text, n)}

            mine = vector(candidate)
            for text in texts:
                theirs = vector(text)
                norm = math.hypot(*mine.values()) * math.hypot(*theirs.values())
                dot = sum((min(mine[g], theirs[g]) if clip else mine[g]) * theirs[g] for g in mine.keys() & theirs.keys())
                penalty = math.exp(-((len(grams(candidate, 2)) - len(grams(text, 2))) ** 2) / (2 * sigma**2)) if sigma else 1
                total += penalty * dot / norm / len(texts) / 4 if norm else 0
        scores.append(10 * total)
    return scores


def test_cider_is_what_its_equations_say(entries_of):
    candidates = ["a dog runs on the grass", "a a a dog", "the cat"]
    references = [["a dog runs over grass", "the dog is running"], ["a dog", "one dog in a park"], ["a cat sleeps", "the cat"]]
    for clip, sigma in ((True, 6.0), (False, None)):
        found = cider(entries_of(candidates, references), sigma=sigma, clip=clip)
        assert found == pytest.approx(_brute_cider(candidates, references, clip, sigma), abs=1e-12)


def test_cider_with_document_frequencies_from_elsewhere_is_what_its_equations_say(entries_of):
    candidates = ["a dog runs on the grass", "the dog runs on a red mat"]
    references = [["a dog runs over the grass", "the dog runs on the grass"], ["a dog runs on a red mat"]]
    corpus = [["a dog runs on the mat", "a cat"], ["the dog runs on a mat"], ["a dog runs on the grass"], ["a man"], ["the sea"]]
    frequency = DocumentFrequency.count(corpus, get_tokenizer("ptb"))
    for clip, sigma in ((True, 6.0), (False, None)):
        found = cider(entries_of(candidates, references), frequency, sigma, clip)
        assert found == pytest.approx(_brute_cider(candidates, references, clip, sigma, corpus), abs=1e-12)


def test_document_frequencies_of_the_corpus_itself_change_nothing_and_survive_a_file(tmp_path, entries_of):
    references = [["a dog runs", "the dog"], ["a cat"], ["a man and a dog", "one man"]]
    samples = [Sample(str(i), "a dog and a man", tuple(texts)) for i, texts in enumerate(references)]
    frequency = DocumentFrequency.count(references, get_tokenizer("ptb"))
    assert frequency.counts["a"] == 3
    assert frequency.counts["a dog"] == 2
    frequency.save(tmp_path / "df.json")
    alone = package.score(samples, ["cider", "cider-original"], resamples=0)
    given = package.score(samples, ["cider", "cider-original"], df=tmp_path / "df.json", resamples=0)
    for name in ("cider", "cider-original"):
        assert given[name].values == pytest.approx(alone[name].values, abs=1e-12)
        assert f"|df:3@{frequency.label.split('@')[1]}|" in given[name].signature


def test_document_frequencies_may_be_given_as_a_file_of_references(write):
    references = write("references.json", {"1": ["a dog"], "2": ["a cat"], "3": ["a man"]})
    found = package.score([Sample("x", "a dog", ("a dog",))], ["cider"], df=references, resamples=0)
    assert found["cider"].corpus == pytest.approx(5.0)


def test_document_frequencies_of_another_tokenizer_are_refused(tmp_path):
    DocumentFrequency.count([["a dog"]], get_tokenizer("char")).save(tmp_path / "df.json")
    with pytest.raises(InputError, match="by the tokenizer 'char', but captions are in 'en' by 'ptb'"):
        package.score([Sample("x", "a dog", ("a dog",))], ["cider"], df=tmp_path / "df.json")


def _brute_lcs(a, b):
    return max(
        sum(choice)
        for choice in product([0, 1], repeat=len(a))
        if _is_subsequence([token for token, taken in zip(a, choice, strict=True) if taken], b)
    )


def _is_subsequence(part, whole):
    rest = iter(whole)
    return all(token in rest for token in part)


@given(st.lists(st.integers(0, 3), max_size=7), st.lists(st.integers(0, 3), max_size=7))
def test_the_longest_common_subsequence_is_that_of_trying_all(a, b):
    assert lcs_length(a, b) == _brute_lcs(a, b)


def test_cider_of_a_single_caption_is_warned_about():
    found = package.score([Sample("x", "a dog", ("a dog",))], ["cider"], resamples=0)
    assert found["cider"].corpus == 0
    assert "one caption in 'en'" in found.warnings[0]


def test_document_frequencies_of_one_language_do_not_serve_two(write):
    references = write("references.json", {"1": ["a dog"], "2": ["a cat"]})
    samples = [Sample("x", "a dog", ("a dog",)), Sample("y", "ein Hund", ("ein Hund",), lang="de")]
    with pytest.raises(InputError, match="but captions are in 'de' by 'unicode'"):
        package.score(samples, ["cider"], df=references)


def test_languages_are_scored_apart_and_listed():
    english = [Sample(f"e{i}", "a dog runs", ("a dog runs", "the dog")) for i in range(2)]
    chinese = [Sample("z1", "一只狗", ("一只狗",), lang="zh"), Sample("z2", "两只猫", ("三只猫",), lang="zh")]
    together = package.score([english[0], *chinese, english[1]], ["cider", "bleu1"], resamples=0)
    apart = package.score(chinese, ["cider", "bleu1"], resamples=0)
    for name in ("cider", "bleu1"):
        assert together[name].values[1:3] == pytest.approx(apart[name].values)
        assert together[name].by_language["zh"] == pytest.approx(apart[name].corpus)
    assert "tok:ptb,unicode[zh]" in together["cider"].signature


def test_a_signature_names_language_and_library_where_they_matter():
    def of(lang, tokenizer=None):
        return package.score([Sample("1", "x", ("x",), lang=lang)], ["bleu1"], tokenizer=tokenizer, resamples=0)[
            "bleu1"
        ].signature

    assert "|tok:unicode[fr]|" in of("fr")
    assert "|tok:ptb|" in of("en")
    need("jieba")
    assert "|tok:jieba@0" in of("zh", "jieba")


def test_two_metrics_of_one_name_are_refused():
    with pytest.raises(InputError, match=r"two metrics are called 'length'.*caplens.metric\(f, name=…\)"):
        package.score([Sample("1", "a")], [get_metric("length"), get_metric("length", tokenizer="char")])


def test_a_tokenizer_for_all_is_one_flag():
    found = package.score([Sample("1", "a dog", ("a dog",))], ["length"], tokenizer="char", resamples=0)
    assert found["length"].values.tolist() == [4]
    assert "tok:char" in found["length"].signature


def test_a_captions_own_text_as_reference_gets_full_marks():
    samples = [Sample(str(i), text, (text,)) for i, text in enumerate(["a dog runs on grass", "two cats sleep in a box"])]
    found = package.score(samples, resamples=0)
    assert [found[f"bleu{n}"].corpus for n in (1, 2, 3, 4)] == pytest.approx([1] * 4)
    assert found["rouge-l"].corpus == pytest.approx(1)
    assert found["cider"].corpus == pytest.approx(10)


def test_intervals_hold_the_corpus_score_and_are_the_same_for_the_same_seed():
    generator = np.random.default_rng(0)
    words = "a dog cat man runs sits red blue grass".split()
    texts = [" ".join(generator.choice(words, 6)) for _ in range(80)]
    samples = [Sample(str(i), texts[i], (texts[40 + i], texts[79 - i])) for i in range(40)]
    first, second = package.score(samples, seed=3), package.score(samples, seed=3)
    for name, (low, high) in first.intervals.items():
        assert low < first[name].corpus < high
    assert first.intervals == second.intervals
    assert first.intervals != package.score(samples, seed=4).intervals


def test_the_json_is_the_contract(write):
    samples = [Sample("1", "a dog", ("a dog",)), Sample("2", "", ("a cat",))]
    found = package.score(samples, ["cider"], resamples=0).to_dict()
    assert found["caplens"] == package.__version__
    assert found["ids"] == ["1", "2"]
    assert (found["kind"], found["schema"]) == ("score", 2)
    assert set(found["metrics"]["cider"]) == {"corpus", "values", "signature", "errors", "counts"}
    assert found["metrics"]["cider"]["errors"] == {"2": "the caption is empty"}
    assert found["metrics"]["cider"]["counts"] == {"scored": 1, "failed": 1, "unusable": 0}
    assert found["metrics"]["cider"]["values"][1] is None
    assert found["counts"] == {"samples": 2, "failed": 1, "truncated": 0, "doubtful": 0}
    assert found["errors"] == {"2": "the caption is empty"}
    json.dumps(found, allow_nan=False)


def test_document_frequencies_are_of_the_language_that_rows_name(write):
    rows = [{"id": str(i), "caption": text, "references": [text], "lang": "zh"} for i, text in enumerate(["一只狗", "两只猫"])]
    path = write("zh.jsonl", rows)
    frequency = DocumentFrequency.load(path)
    assert (frequency.lang, frequency.tokenizer, frequency.counts["只"]) == ("zh", "unicode", 2)
    alone, given = (package.score(path, ["cider"], df=df, resamples=0) for df in (None, path))
    assert given["cider"].values == pytest.approx(alone["cider"].values)
    both = write("both.jsonl", [*rows, {"id": "9", "caption": "a dog", "references": ["a dog"], "lang": "en"}])
    with pytest.raises(InputError, match="in several languages \\(en, zh\\)"):
        DocumentFrequency.load(both)
    assert DocumentFrequency.load(both, lang="en").documents == 1


def test_intervals_are_of_scored_captions_only():
    samples = [Sample(str(i), "a dog" if i < 2 else "", ("a dog",)) for i in range(30)]
    assert package.score(samples, ["bleu1"]).intervals["bleu1"] == pytest.approx((1, 1))


def test_an_error_stands_in_the_row_it_is_about():
    samples = [Sample("1", "", ("x",), lang="en"), Sample("1", "ein Hund", ("ein Hund",), lang="de")]
    results = package.score(samples, ["bleu1"], resamples=0)
    rows = list(results.to_rows())
    assert [row["error"] for row in rows] == ["the caption is empty", None]
    assert [row["lang"] for row in rows] == ["en", "de"]
    assert results.errors == {"1 en": "the caption is empty"}


def test_empty_references_are_left_out_and_counted():
    results = package.score([Sample("1", "a", ("", "a dog runs")), Sample("2", "a", ("a cat",))], ["bleu1"], resamples=0)
    assert results["bleu1"].values[0] == pytest.approx(np.exp(-2))
    assert results.warnings == ["1 empty references were left out."]


def test_a_text_is_no_list_of_letters():
    one = package.score([Sample("1", "a dog", references="a dog")], "bleu1", resamples=0)
    joined = package.score([Sample("1", "a dog")], ["bleu1"], references={"1": "a dog"}, resamples=0)
    row = package.score([{"id": 1, "caption": "a dog", "references": ["a dog"]}], ["bleu1"], resamples=0)
    assert one["bleu1"].corpus == joined["bleu1"].corpus == row["bleu1"].corpus == pytest.approx(1)


@pytest.mark.parametrize("samples", [None, [5], [Sample("1", 5)], [Sample("1", "a", (5,))], [{"caption": "a"}]])
def test_what_is_no_sample_is_said(samples):
    with pytest.raises(InputError):
        package.score(samples, ["length"])


def test_captions_of_several_systems_scored_together_are_warned_about():
    samples = [Sample("1", "a dog", ("a dog",), system=name) for name in "ab"]
    assert "2 systems were scored together" in package.score(samples, ["bleu1"]).warnings[0]


def test_a_metric_is_a_function_of_samples():
    samples = [Sample("1", "a dog runs", ("a dog",)), Sample("2", "", ("a cat",)), Sample("3", "a cat", ("one cat",))]
    alone, together = get_metric("cider")(samples), package.score(samples, ["cider"], resamples=0)["cider"]
    assert np.array_equal(alone.values, together.values, equal_nan=True)
    assert (alone.corpus, alone.signature) == (together.corpus, together.signature)


def test_every_metric_that_is_listed_can_be_made(needs_java):
    need("pycocoevalcap")
    for name, entry in METRICS.items():
        if "--qe-model" in entry.needs:
            with pytest.raises(InputError, match="needs its model"):
                get_metric(name)
        elif name != "spice":
            assert get_metric(name, model=Engine(FakeBackbone())).name == name


@pytest.mark.parametrize(
    ("given", "name"), [("CIDEr", "cider"), ("Bleu_4", "bleu4"), ("ROUGE_L", "rouge-l"), ("rouge", "rouge-l")]
)
def test_names_are_taken_as_other_tools_write_them(given, name):
    rows = {"1": "a dog runs", "2": "a cat"}
    results = package.score(rows, given, references={"1": ["a dog"], "2": ["a cat"]}, resamples=0)
    assert list(results) == [name]
    assert f"{name} {results[name].corpus:.3f}" in " ".join(str(results).split())
    assert "2 of 2 captions scored." in str(results)


def test_images_may_be_given_by_id():
    picture = Image.new("RGB", (32, 32), "red")
    assert package.score({"1": "red", "2": "red"}, "clipscore", images={"1": picture, "2": picture}, resamples=0).failed == 0


def plain_cider(candidates, references):
    """CIDEr by equations 1 to 3 of Vedantam et al. (2015), with term frequencies as the paper writes them, times ten."""

    def grams(text, n):
        words = text.split()
        return Counter(tuple(words[place : place + n]) for place in range(len(words) - n + 1))

    def vector(text, n, df):
        counts = grams(text, n)
        total = sum(counts.values())
        return {gram: count / total * math.log(len(references) / max(1, df[gram])) for gram, count in counts.items()}

    scores = []
    for candidate, own in zip(candidates, references, strict=True):
        by_order = []
        for n in range(1, 5):
            df = Counter(gram for texts in references for gram in set().union(*(grams(text, n) for text in texts)))
            c = vector(candidate, n, df)
            cosines = []
            for reference in own:
                r = vector(reference, n, df)
                norm = math.sqrt(sum(v * v for v in c.values()) * sum(v * v for v in r.values()))
                cosines.append(sum(c[gram] * r.get(gram, 0) for gram in c) / norm if norm else 0.0)
            by_order.append(sum(cosines) / len(cosines))
        scores.append(10 * sum(by_order) / 4)
    return scores


def test_the_original_cider_is_that_of_the_paper_s_equations():
    rng = np.random.default_rng(4)
    words = "a the dog cat runs sleeps red blue on grass".split()
    texts = [[" ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(4)] for _ in range(12)]
    candidates, references = [row[0] for row in texts], [row[1:] for row in texts]
    found = package.score(candidates, ["cider-original"], references=references, tokenizer="space", resamples=0)
    np.testing.assert_allclose(found["cider-original"].values, plain_cider(candidates, references), atol=1e-9)
