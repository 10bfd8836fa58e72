"""Sub-words, against sentencepiece with the same vocabulary."""

import pytest
from extras import need
from hypothesis import given
from hypothesis import strategies as st

from caplens.errors import InputError
from caplens.text.subwords import BYTES, SPECIAL, Subwords, words_of

TEXTS = [
    "A brown dog runs along the beach.",
    "Zwei kleine Mädchen spielen im Schnee.",
    "一个小女孩在公园里玩。",
    "少女が公園で遊んでいる。",
    "كلب بني يركض على الشاطئ",
    "एक कुत्ता समुद्र तट पर दौड़ता है।",
    "ᠤᠰᠤ ᠨᠠᠭᠠᠳᠴᠤ ᠪᠠᠶᠢᠭ᠎ᠠ ᠬᠡᠦᠬᠡᠳ ᠃",
    "ཆུ་རྩེད་པའི་བྱིས་པ།",
]
PIECES = [
    ("▁", -4.0),
    ("▁a", -3.0),
    ("▁dog", -5.0),
    ("s", -4.5),
    ("▁do", -6.0),
    ("g", -5.5),
    ("d", -6.0),
    ("o", -6.1),
    ("a", -6.2),
]
SMALL = Subwords([*((piece, 0.0) for piece in SPECIAL), *PIECES])


def shown(subwords: Subwords, text: str) -> list[str]:
    return [subwords.pieces[number][0] for number in subwords.encode(text)]


def test_the_most_likely_pieces_are_taken():
    assert shown(SMALL, "A dog, dogs!") == ["▁a", "▁dog", "▁dog", "s"]


def test_what_no_piece_has_becomes_its_bytes_and_a_lone_start_mark_is_left_out():
    assert shown(SMALL, "ж") == ["<0xD0>", "<0xB6>"]
    assert shown(SMALL, "dжo") == ["d", "<0xD0>", "<0xB6>", "o"]


@given(st.text())
def test_bytes_bring_back_every_word_of_any_text(text):
    empty = Subwords([(piece, 0.0) for piece in SPECIAL])
    first = SPECIAL.index(BYTES[0])
    read = bytes(number - first for number in empty.encode(text)).decode()
    assert read == "".join(words_of(text))


def test_case_punctuation_and_form_do_not_matter():
    assert words_of("A DOG — running!") == words_of("a dog running")
    assert words_of("ﬁve") == words_of("five")
    assert words_of("İstanbul") == words_of("istanbul")
    assert words_of("两只狗") == ["▁两", "▁只", "▁狗"]


def test_letters_that_were_never_seen_are_told():
    assert SMALL.unknown_letter_share("dog") == 0
    assert SMALL.unknown_letter_share("собака") == 1
    assert SMALL.unknown_letter_share("12 !") == 0


def test_a_vocabulary_is_read_as_it_was_written(tmp_path):
    SMALL.save(tmp_path / "vocabulary.tsv")
    assert Subwords.load(tmp_path / "vocabulary.tsv").pieces == SMALL.pieces


@pytest.mark.parametrize(
    ("content", "sentence"), [("dog", "line 1: expected a piece, a tab and a number"), ("dog\t1\n", "begin with the special")]
)
def test_a_damaged_vocabulary_is_told(tmp_path, content, sentence):
    (tmp_path / "vocabulary.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        Subwords.load(tmp_path / "vocabulary.tsv")


def test_pieces_equal_those_of_sentencepiece():
    sentencepiece = need("sentencepiece")
    from sentencepiece import sentencepiece_model_pb2

    from caplens.training.mini.vocabulary import learn_vocabulary

    learned = learn_vocabulary({"all": TEXTS}, 420, 40, seed=0)
    model = sentencepiece_model_pb2.ModelProto()
    kinds = model.SentencePiece
    for piece, score in learned.pieces:
        kind = (
            kinds.BYTE
            if piece in BYTES
            else kinds.UNKNOWN
            if piece == "<unk>"
            else kinds.CONTROL
            if piece in SPECIAL
            else kinds.NORMAL
        )
        model.pieces.add(piece=piece, score=score, type=kind)
    model.trainer_spec.model_type, model.trainer_spec.byte_fallback = model.trainer_spec.UNIGRAM, True
    model.trainer_spec.unk_id, model.trainer_spec.pad_id, model.trainer_spec.eos_id, model.trainer_spec.bos_id = 1, 0, 2, -1
    model.normalizer_spec.name, model.normalizer_spec.add_dummy_prefix = "identity", True
    peer = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    lone = learned.pieces.index(next(pair for pair in learned.pieces if pair[0] == "▁"))
    for text in [*TEXTS, "A wholly unseen sentence: snowboarding, Пример!", "дом"]:
        words = " ".join(word[1:] for word in words_of(text))
        assert learned.encode(text) == [number for number in peer.encode(words) if number != lone]
