import json
from itertools import groupby

import numpy as np
import pytest
from extras import need
from hypothesis import given
from hypothesis import strategies as st

import caplens as package
from caplens.data import Sample
from caplens.perturbation import PERTURBATIONS, get_perturbation
from caplens.perturbation.datasets import load_captions
from caplens.perturbation.nouns import find_nouns
from caplens.text.words import join, split

CAPTIONS = {
    "en": "A man, wearing a white shirt, is playing golf on a green field.",
    "de": "Ein Hund mit einem roten Ball läuft über die Wiese.",
    "ja": "黒い犬が、緑の芝生の上で赤いボールを追いかけています。",
    "zh": "一只黄色的狗在草地上追逐红色的球。",
    "th": "หมาสีน้ำตาลวิ่งบนหญ้า",
    "ar": "كلب بني يجري عبر العشب الأخضر",
}


@pytest.mark.parametrize("lang", CAPTIONS)
def test_words_come_together_again(lang):
    words = split(CAPTIONS[lang], lang)
    assert len(words) > 4
    assert join(words) == CAPTIONS[lang]


@given(st.text(max_size=40))
def test_any_text_comes_together_again_but_for_its_spaces(text):
    assert join(split(text, "ja")) == " ".join(text.split())


def test_punctuation_that_stands_apart_goes_with_the_word_before_it():
    """As in the captions of Flickr8k: without its full stop a caption is as good as with it."""
    assert [word.text for word in split("A dog , a cat .")] == ["A", "dog ,", "a", "cat ."]
    removal = get_perturbation("removal")
    assert all(removal("A dog .", "en", seed, protocol="gentle") in {"A", "dog ."} for seed in range(20))


def test_scripts_without_spaces_get_none():
    assert " " not in get_perturbation("jumble")(CAPTIONS["zh"], "zh")
    assert " " not in get_perturbation("repetition")(CAPTIONS["th"], "th", protocol="gentle")
    assert len(get_perturbation("jumble")(CAPTIONS["de"], "de").split()) == 10


@pytest.mark.parametrize("lang", CAPTIONS)
@pytest.mark.parametrize("kind", PERTURBATIONS)
def test_a_perturbed_caption_differs_and_is_the_same_for_the_same_seed(kind, lang):
    perturb, caption = PERTURBATIONS[kind], CAPTIONS[lang]
    made = [perturb(caption, lang, seed=seed, key="7", protocol="gentle") for seed in range(20)]
    assert all(text is not None and text != caption for text in made)
    assert made == [perturb(caption, lang, seed=seed, key="7", protocol="gentle") for seed in range(20)]
    assert len(set(made)) > 1


captions = st.lists(st.sampled_from(["dog", "cat", "the", "a", "boy,", "runs", "on", "grass."]), min_size=1, max_size=12)


@given(captions, st.integers(0, 5))
def test_repetition_and_masking_keep_the_order_of_the_words(words, seed):
    repeated, masked = (
        PERTURBATIONS[kind](" ".join(words), "en", seed, protocol="gentle").split() for kind in ("repetition", "masking")
    )
    assert [word for word, _ in groupby(repeated)] == [word for word, _ in groupby(words)]
    assert len(words) < len(repeated) <= 2 * len(words)
    assert len(masked) == len(words)
    assert all(new in (old, "[MASK]") for old, new in zip(words, masked, strict=True))


@given(captions, st.integers(0, 5))
def test_removal_jumble_and_substitution_add_no_word(words, seed):
    removed, jumbled, substituted = (
        PERTURBATIONS[kind](" ".join(words), "en", seed, protocol="gentle") for kind in ("removal", "jumble", "substitution")
    )
    if removed is None:
        assert len(words) == 1
    else:
        remaining = iter(words)
        assert all(word in remaining for word in removed.split())
        assert 0 < len(removed.split()) < len(words)
    if jumbled is None:
        assert len(set(words)) == 1
    else:
        assert sorted(jumbled.split()) == sorted(words)
    if substituted is not None:
        before, after = (sorted(word.strip(".,") for word in text) for text in (words, substituted.split()))
        assert before == after
        assert substituted.split() != words


def test_words_are_hit_four_times_in_ten():
    words = " ".join(f"word{n}" for n in range(2000))
    assert get_perturbation("masking")(words).count("[MASK]") / 2000 == pytest.approx(0.4, abs=0.04)
    assert len(get_perturbation("removal")(words, protocol="gentle").split()) / 2000 == pytest.approx(0.6, abs=0.04)
    assert len(get_perturbation("repetition")(words).split()) / 2000 == pytest.approx(1.4, abs=0.04)


@given(captions, st.integers(0, 50))
def test_the_paper_draws_once_for_repetition_masking_and_removal(words, seed):
    """Algorithm 1: the words that are drawn are repeated, masked, and all that removal leaves."""
    caption = " ".join(words)
    repeated, masked, removed = (PERTURBATIONS[kind](caption, "en", seed) for kind in ("repetition", "masking", "removal"))
    drawn = [new == "[MASK]" for new in masked.split()]
    assert repeated == " ".join(copy for word, hit in zip(words, drawn, strict=True) for copy in [word] * (1 + hit))
    kept = " ".join(word for word, hit in zip(words, drawn, strict=True) if hit)
    assert (removed or "") == kept


def test_the_paper_keeps_four_words_of_ten():
    words = " ".join(f"word{n}" for n in range(2000))
    assert len(get_perturbation("removal")(words).split()) / 2000 == pytest.approx(0.4, abs=0.04)


def test_the_paper_leaves_captions_of_fewer_than_two_objects_as_they_are():
    substitution = get_perturbation("substitution")
    assert substitution("a dog runs", "en", objects=("dog",)) == "a dog runs"
    assert substitution("dog", "en") == "dog"
    assert substitution("a dog and a cat", "en", objects=()) == "a dog and a cat"
    assert substitution("a dog and a cat", "en", objects=("dog", "cat")) == "a cat and a dog"
    # The second replacement hits what the first has put there.
    assert substitution("a cat and a dog", "en", objects=("dog", "cat")) == "a cat and a dog"


def test_unchanged_captions_are_counted_and_the_mean_is_over_kinds_then_languages():
    samples = [
        package.Sample("1", "one two three four five six", ("one two three four five six",), lang="en"),
        package.Sample("2", "sieben acht", ("sieben acht",), lang="de"),
        package.Sample("3", "neun", ("neun",), lang="de"),
    ]
    result = package.robustness(samples, ["bleu1"], ["jumble", "masking"], resamples=5, tokenizer="unicode")
    found = {(one.lang, one.perturbation): one for one in result.effects}
    assert result.protocol == "paper"
    assert result.unchanged["jumble"] >= 1
    for lang in ("en", "de"):
        both = found[lang, "jumble"].perturbed + found[lang, "masking"].perturbed
        assert found[lang, "all"].perturbed == pytest.approx(both / 2)
    assert found["all", "all"].perturbed == pytest.approx((found["en", "all"].perturbed + found["de", "all"].perturbed) / 2)
    assert found["all", "all"].drop == pytest.approx((found["en", "all"].drop + found["de", "all"].drop) / 2)


def test_an_unknown_protocol_is_told(write, caplens, tmp_path):
    said = caplens("perturb", write("c.jsonl", [{"id": "1", "caption": "a dog"}]), tmp_path / "o.jsonl", "--protocol", "kind")
    assert "unknown protocol 'kind'" in said.err


def test_critical_objects_are_swapped_whole():
    objects = ("white shirt", "golf", "green field")
    for seed in range(10):
        made = get_perturbation("substitution")(CAPTIONS["en"], "en", seed, objects=objects, protocol="gentle")
        assert sorted(made) == sorted(CAPTIONS["en"])
        assert all(text in made for text in objects)
        assert made.startswith("A man, wearing a ")


def test_nouns_are_found_where_the_language_shows_them():
    def nouns(caption, lang):
        words = caption.split()
        return [words[place].strip(".,") for place in find_nouns(words, lang)]

    assert nouns("A man, wearing a white shirt, walks to the old church", "en") == ["man", "shirt", "church"]
    assert nouns("Ein Hund mit einem roten Ball läuft", "de") == ["Hund", "Ball"]
    assert nouns("Un homme marche vers un policier debout sur la rue", "fr") == ["homme", "policier", "rue"]
    # Nothing shows nouns in Turkish, so that all words that carry meaning count.
    assert nouns("Bir adam kırmızı arabanın yanında duruyor", "tr") == ["adam", "kırmızı", "arabanın", "duruyor"]


def test_chinese_nouns_are_found_by_the_segmenter():
    need("jieba")
    words = [word.text for word in split(CAPTIONS["zh"], "zh")]
    assert [words[place].strip("。") for place in find_nouns(words, "zh")] == ["黄色", "狗", "草地", "红色", "球"]


def test_korean_and_thai_nouns_are_found_by_taggers():
    need("mecab_ko")
    words = "갈색 강아지가 푸른 잔디 위를 달린다".split()
    assert [words[place] for place in find_nouns(words, "ko")] == ["갈색", "강아지가", "잔디", "위를"]
    need("pythainlp")
    words = ["สุนัข", "วิ่ง", "บน", "หญ้า"]
    assert [words[place] for place in find_nouns(words, "th")] == ["สุนัข", "หญ้า"]


@pytest.mark.parametrize(
    ("caption", "kinds"),
    [("dog", {"repetition", "masking"}), ("dog dog", {"repetition", "removal", "masking"}), ("", set())],
)
def test_what_cannot_be_done_is_none(caption, kinds):
    assert {kind for kind, perturb in PERTURBATIONS.items() if perturb(caption, protocol="gentle") is not None} == kinds


def test_the_command_writes_a_row_for_each_kind(write, caplens, tmp_path):
    rows = [{"id": "1", "caption": "a dog and a cat", "lang": "en", "objects": ["dog", "cat"]}, {"id": "2", "caption": "dog"}]
    target = tmp_path / "worse.jsonl"
    said = caplens("perturb", write("captions.jsonl", rows), target, "--protocol", "gentle")
    assert said.status == 0
    made = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in made] == [*(f"1:{kind}" for kind in PERTURBATIONS), "2:repetition", "2:masking"]
    assert made[4]["caption"] == "a cat and a dog"
    assert made[4]["original"] == "a dog and a cat"
    assert "1 captions are too short for jumble." in said.err
    assert "unknown perturbation 'shuffle'" in caplens("perturb", tmp_path / "captions.jsonl", target, "--kind", "shuffle").err
    bad = write("bad.jsonl", [{"id": "1", "caption": "a dog", "objects": "dog"}])
    assert "'objects' must be a list of strings" in caplens("perturb", bad, target).err


def test_robustness_is_worked_out_by_hand(write, caplens):
    """BLEU-1 of a caption that is its own reference is 1; a masked word costs its share."""
    rows = [{"id": str(n), "caption": "one two three four five", "references": ["one two three four five"]} for n in range(30)]
    said = caplens(
        "robustness",
        write("c.jsonl", rows),
        "-m",
        "bleu1,length",
        "--kind",
        "masking,repetition",
        "-f",
        "json",
        "--tokenizer",
        "unicode",
    )
    assert said.status == 0, said.err
    found = {(one["metric"], one["perturbation"]): one for one in json.loads(said.out)["robustness"]}
    masked = found["bleu1", "masking"]
    texts = [get_perturbation("masking")("one two three four five", "en", 0, str(n)) for n in range(30)]
    shares = [1 - text.count("[MASK]") / 5 for text in texts]
    assert masked["original"] == pytest.approx(1)
    assert masked["perturbed"] == pytest.approx(np.mean(shares))
    assert masked["drop"] == pytest.approx(100 * (np.mean(shares) - 1))
    assert masked["drop_low"] < masked["drop"] < masked["drop_high"]
    assert (masked["accuracy"], masked["ties"], masked["captions"]) == (100, 0, 30)
    # Length rewards repetition.
    repeated = found["length", "repetition"]
    assert repeated["accuracy"] == 0
    assert repeated["drop"] > 0
    assert found["bleu1", "all"]["captions"] == 60
    assert "noticed, %" in caplens("robustness", write("c.jsonl", rows), "-m", "bleu1", "--resamples", 5).out


def test_languages_are_told_apart(write):
    rows = [{"id": lang, "caption": text, "lang": lang, "references": [text]} for lang, text in CAPTIONS.items()]
    found = package.robustness(write("c.jsonl", rows), ["bleu1"], ["jumble", "removal"], resamples=5).effects
    assert {one.lang for one in found} == {"all", *CAPTIONS}
    by = {(one.lang, one.perturbation): one for one in found}
    # Unigrams do not notice that words changed places.
    assert (by["all", "jumble"].accuracy, by["all", "jumble"].ties, by["all", "removal"].accuracy) == (0, 100, 100)
    with pytest.raises(package.InputError, match="none of the captions can be perturbed"):
        package.robustness(
            [{"id": "1", "caption": "dog", "references": ["dog"]}], ["bleu1"], ["jumble"], resamples=5, protocol="gentle"
        )
    (effect,) = package.robustness([{"id": "1", "caption": "dog", "references": ["dog"]}], ["bleu1"], ["jumble"]).effects
    assert np.isnan(effect.accuracy)
    assert effect.drop == 0


def test_a_metric_without_references_is_named_and_the_others_are_measured():
    samples = [Sample("1", "a dog runs fast", ("a dog runs",), lang="en"), Sample("2", "ein Hund rennt schnell", lang="de")]
    result = package.robustness(samples, ["bleu1", "length"], ["repetition"], resamples=5)
    assert "bleu1: 1 of 2 captions have no score: there are no references (all of the languages de)." in result.warnings
    assert result.failed == 0
    assert {(effect.metric, effect.lang) for effect in result.effects} >= {("length", "de"), ("length", "en"), ("bleu1", "en")}


def coco_like(path, count, **more):
    images = [{"id": n, "file_name": f"{n}.jpg"} for n in range(count)]
    annotations = [{"image_id": n, "caption": f"caption {n} {k}", **more} for n in range(count) for k in range(2)]
    path.write_text(json.dumps({"images": images, "annotations": annotations}), encoding="utf-8")


def test_data_sets_of_the_paper_are_read_in_their_layouts(tmp_path, caplens):
    coco_like(tmp_path / "captions_val2014.json", 3200)
    drawn = load_captions("coco-3k", tmp_path)
    assert len({sample.image for sample in drawn}) == len(drawn) == 3000
    assert drawn != load_captions("coco-3k", tmp_path, seed=1)
    coco_like(tmp_path / "val.json", 2, is_rejected=True)
    assert load_captions("vizwiz", tmp_path) == []
    (tmp_path / "test_2016_flickr.txt").write_text("1.jpg\n2.jpg\n", encoding="utf-8")
    (tmp_path / "test_2016_flickr.de").write_text("Ein Hund\nEine Katze\n", encoding="utf-8")
    assert [sample.caption for sample in load_captions("multi30k", tmp_path, "de")] == ["Ein Hund", "Eine Katze"]
    (tmp_path / "Flickr8k.token.txt").write_text("1.jpg#0\ta dog\n1.jpg#1\tthe dog\n2.jpg#0\ta cat\n", encoding="utf-8")
    (tmp_path / "test.txt").write_text("1.jpg\n", encoding="utf-8")
    assert [sample.caption for sample in load_captions("flickr8k", tmp_path)] == ["a dog"]
    said = caplens("robustness", "--data-set", "multi30k", "--data", tmp_path, "--lang", "es")
    assert "multi30k has captions in en, de, fr, cs, not in 'es'" in said.err
    assert "unknown data set of captions 'x'" in caplens("robustness", "--data-set", "x", "--data", tmp_path).err
    assert "give a file of captions, or a data set" in caplens("robustness").err


def test_the_few_shot_split_of_the_paper_is_300_captions_of_3000(tmp_path, caplens):
    rows = [{"image": f"{n}.jpg", "caption": f"a dog and a cat {n}", "critical_objects": "dog, cat"} for n in range(3000)]
    (tmp_path / "m-finecap3k.en.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    few, rest = (load_captions("m-finecap3k", tmp_path, part=part) for part in ("few-shot", "rest"))
    assert (len(few), len(rest)) == (300, 2700)
    assert not {sample.id for sample in few} & {sample.id for sample in rest}
    assert few[0].meta["objects"] == ["dog", "cat"]
    target = tmp_path / "few.jsonl"
    command = ["robustness", "--data-set", "m-finecap3k", "--data", tmp_path, "--part", "few-shot", "--export-items", target]
    assert caplens(*command).status == 0
    assert len(target.read_text(encoding="utf-8").splitlines()) == 300


def test_figure_5_of_the_paper():
    """Its critical objects, substituted one after the other."""
    caption = "A man, wearing a white shirt and grey shorts, is playing golf on a green field with green trees"
    objects = ("white shirt", "grey shorts", "golf", "green field")
    found = {get_perturbation("substitution")(caption, "en", seed, objects=objects) for seed in range(300)}
    assert "A man, wearing a golf and green field, is playing white shirt on a grey shorts with green trees" in found


def test_a_dictionary_knows_english_nouns_without_articles():
    need("lemminflect")
    words = "Two children chase the red ball".split()
    assert [words[index] for index in find_nouns(words, "en")] == ["children", "ball"]
    words = "a brown dog and the very happy child".split()
    assert [words[index] for index in find_nouns(words, "en")] == ["dog", "child"]


@pytest.mark.parametrize(
    ("lang", "caption", "nouns"),
    [
        ("ru", "чёрная собака бежит по зелёной траве", ["собака", "траве"]),
        ("uk", "чорна собака біжить по зеленій траві", ["собака", "траві"]),
    ],
)
def test_dictionaries_know_slavic_nouns(lang, caption, nouns):
    need("pymorphy3")
    words = caption.split()
    assert [words[index] for index in find_nouns(words, lang)] == nouns
