"""Tokenizers behind extras, against the libraries they stand on."""

import pytest
from extras import need

from caplens.errors import InputError, MissingExtraError
from caplens.text import TOKENIZERS, get_tokenizer
from caplens.text.segmenter import Segmenter

SENTENCES = {
    "jieba": ("zh", "一只棕色的狗在草地上奔跑。", ["一只", "棕色", "的", "狗", "在", "草地", "上", "奔跑"]),
    "ja-mecab": ("ja", "茶色の犬が芝生を走っている。", ["茶色", "の", "犬", "が", "芝生", "を", "走っ", "て", "いる"]),
    "ko-mecab": ("ko", "갈색 개가 뛰고 있다.", ["갈색", "개", "가", "뛰", "고", "있", "다"]),
    "newmm": ("th", "สุนัขวิ่งบนหญ้า", ["สุนัข", "วิ่ง", "บน", "หญ้า"]),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_words_are_found_where_nothing_parts_them(name):
    lang, text, words = SENTENCES[name]
    try:
        tokenizer = get_tokenizer(name, lang)
    except MissingExtraError as missing:
        pytest.skip(f"needs the extra 'cjk' ({missing})")
    assert tokenizer(text) == words


@pytest.mark.parametrize(("ours", "theirs", "lang"), [("ja-mecab", "ja-mecab", "ja"), ("ko-mecab", "ko-mecab", "ko")])
def test_words_are_those_of_sacrebleu(ours, theirs, lang):
    bleu = need("sacrebleu.metrics.bleu")
    peer = bleu.BLEU(tokenize=theirs).tokenizer
    text = SENTENCES[ours][1]
    assert get_tokenizer(ours, lang)(text) == [word for word in peer(text).split() if word not in "。."]


@pytest.mark.parametrize("name", ["13a", "intl"])
def test_mteval_tokens_are_those_of_sacrebleu(name):
    bleu = need("sacrebleu.metrics.bleu")
    peer = bleu.BLEU(tokenize=name, lowercase=True).tokenizer
    for text in ("A dog, running (fast) at 3.5 m/s.", "Don't “quote” it – ever!", "l'eau d'un garçon"):
        assert get_tokenizer(name)(text) == peer(text.lower()).split()


def test_a_missing_library_is_one_sentence_with_the_cure(monkeypatch):
    import sys

    get_tokenizer.cache_clear()
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(MissingExtraError, match=r"'jieba' needs jieba.*pip install -c .*constraints.txt 'caplens\[cjk\]'"):
        get_tokenizer("jieba", "zh")
    get_tokenizer.cache_clear()


def test_an_unknown_tokenizer_names_the_known_ones():
    with pytest.raises(InputError, match="unknown tokenizer 'nope'") as error:
        get_tokenizer("nope")
    assert all(name in str(error.value) for name in TOKENIZERS)


def test_a_long_text_is_segmented_in_pieces():
    """MeCab takes time in the square of a text's length: minutes for a line of 200,000 characters."""
    lengths = []

    class Words(Segmenter):
        name = "words"

        def segment(self, text):
            lengths.append(len(text))
            return text.split()

    words = Words("ja")
    assert words("犬 が 走る") == ["犬", "が", "走る"]
    assert "".join(words("あ い " * 50_000)) == "あい" * 50_000
    assert max(lengths) <= 2000
