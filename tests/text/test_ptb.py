import gzip
import json
import random

import pytest
from extras import need
from hypothesis import given
from hypothesis import strategies as st

from caplens.data import SampleFile, read_references
from caplens.text import get_tokenizer
from caplens.text.ptb import _CROSSES_SPACE, PUNCTUATION, _crossing_space, lex
from caplens.text.vocabulary import Vocabulary

ptb = get_tokenizer("ptb")


def test_tokens_are_those_of_the_java_program_on_hard_cases(golden):
    for case in golden("ptb")["cases"]:
        assert ptb(case["text"]) == case["tokens"], case["text"]


def test_the_coco_example_is_tokenised_exactly_as_published(coco_example):
    def after(name):
        return json.load(gzip.open(coco_example / f"en_captions_val2014_{name}_after_tokenization.json.gz"))

    references = {key: texts for key, _, texts in read_references(coco_example / "en_captions_val2014.json.gz")}
    captions = {s.id: (s.caption,) for s in SampleFile(coco_example / "en_captions_val2014_fakecap_results.json.gz")}
    for texts, published in ((references, after("references")), (captions, after("results"))):
        assert texts.keys() == published.keys()
        differing = [
            (text, expected)
            for key, lines in published.items()
            for text, expected in zip(texts[key], lines, strict=True)
            if " ".join(ptb(text)) != expected
        ]
        assert differing == []


WORDS = (
    "a man dog's the A U.S. Mr. etc. 5 12 1/2 3.5 1,000 don't can't cannot gonna well-known black/white T-shirt 20th (a) "
    "\"hi\" 'quoted' - -- ... , ; : ! ? $5 50% #1 & R&B '90s 80's dogs' o'clock X-ray 9:30 p.m. 10/12/2013 :) snow, red. "
    "blue; green: (two) [x] {y} it’s – — café 2x4 w/ 24/7 5-year-old St. Ave. * n't 's I'm you're they'd've 'em"
).split()


def test_random_captions_are_tokenised_as_by_the_java_program(needs_java):
    peer = need("pycocoevalcap.tokenizer.ptbtokenizer").PTBTokenizer()
    generator = random.Random(0)
    texts = [" ".join(generator.choices(WORDS, k=generator.randint(1, 9))) for _ in range(3000)]
    # The Java program looks across captions; a neutral one between them keeps each to itself.
    spaced = {i: [{"caption": text}, {"caption": "zzz zzz"}] for i, text in enumerate(texts)}
    found = peer.tokenize(spaced)
    assert [text for i, text in enumerate(texts) if " ".join(ptb(text)) != found[i][0]] == []


def test_real_captions_are_tokenised_as_by_the_java_program(flickr8k, needs_java):
    peer = need("pycocoevalcap.tokenizer.ptbtokenizer").PTBTokenizer()
    from caplens.benchmarks.datasets.flickr8k import read_captions

    texts = sorted({text for captions in read_captions(flickr8k).values() for text in captions.values()})
    found = peer.tokenize({i: [{"caption": text}] for i, text in enumerate(texts)})
    differing = {text for i, text in enumerate(texts) if " ".join(ptb(text)) != found[i][0]}
    # In Java the last word of a caption may lose or keep its period by what the next caption begins with; here a
    # caption stands for itself.
    assert differing <= {
        "A child swings the bat to hit the ball off the T.",
        "A smiling blond woman waves as she stands in front of a table covered with food .a.",
    }


@pytest.mark.parametrize("separator", ["\r", "\u2028", "\x0b", "\x0c", "\n", "\r\n", "\x85"])
def test_a_line_end_inside_a_caption_shifts_nothing(separator):
    captions = [f"a dog{separator}runs.", "a cat sleeps"]
    vocabulary = Vocabulary()
    numbers, counts = ptb.token_ids(captions, vocabulary)
    assert [list(vocabulary)[number] for number in numbers] == ["a", "dog", "runs", "a", "cat", "sleeps"]
    assert counts.tolist() == [3, 3]


@given(st.lists(st.text(alphabet=st.characters(codec="utf-8"), max_size=40)))
def test_many_texts_give_the_tokens_of_each(texts):
    vocabulary = Vocabulary()
    numbers, counts = ptb.token_ids(texts, vocabulary)
    assert counts.tolist() == [len(ptb(text)) for text in texts]
    assert [list(vocabulary)[number] for number in numbers] == [token for text in texts for token in ptb(text)]


@given(st.text(alphabet="abAB.,'-!? 15/()<>&", max_size=30))
def test_looking_at_runs_alone_gives_what_lexing_the_whole_text_gives(text):
    assert ptb(text) == [token for token in lex(text) if token not in PUNCTUATION]


@pytest.mark.parametrize("part", ["dog,", "a,", "☺a", "&", "狗", "a.", "x@", "<a", "1,", "'s"])
def test_time_grows_with_length_also_without_spaces(part):
    # Quadratic time would make these take minutes.
    assert len(lex(part * (100_000 // len(part)))) > 0
    assert ptb(part * 3) == [token for token in lex(part * 3) if token not in PUNCTUATION]


def test_a_caption_of_100000_characters_is_tokenised():
    assert len(ptb("dog " * 25_000)) == 25_000
    assert ptb("x" * 100_000) == ["x" * 100_000]


@given(st.lists(st.text("a1.<)( \n\x01\x00AZb/é", max_size=9), max_size=12))
def test_texts_are_told_apart_together_as_they_are_one_by_one(texts):
    expected = [place for place, text in enumerate(texts) if _CROSSES_SPACE.search(text)]
    assert _crossing_space(texts) == expected
