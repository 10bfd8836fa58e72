import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caplens.data.languages import CROSSMODAL_3600, base_language, language_names
from caplens.errors import InputError
from caplens.text import default_tokenizer, get_tokenizer

# The first words of the Universal Declaration of Human Rights, or the like, split by hand.
BY_HAND = {
    "ar": ("كلب بني يركض، على الشاطئ.", ["كلب", "بني", "يركض", "على", "الشاطئ"]),
    "bn": ("একটি কুকুর দৌড়াচ্ছে।", ["একটি", "কুকুর", "দৌড়াচ্ছে"]),
    "de": ("Ein Hund läuft – schnell!", ["ein", "hund", "läuft", "schnell"]),
    "el": ("Ένας σκύλος;", ["ένας", "σκύλος"]),
    "es": ("¿Un perro? ¡Sí!", ["un", "perro", "sí"]),
    "fr": ("L’eau d'un garçon", ["l", "eau", "d", "un", "garçon"]),
    "hi": ("एक कुत्ता, दौड़ता है।", ["एक", "कुत्ता", "दौड़ता", "है"]),
    "it": ("l'uomo è qui", ["l", "uomo", "è", "qui"]),
    "he": ("כלב רץ בחוף.", ["כלב", "רץ", "בחוף"]),
    "ja": ("犬が走る。", ["犬", "が", "走", "る"]),
    "ko": ("갈색 개가 뛴다.", ["갈색", "개가", "뛴다"]),
    "te": ("ఒక కుక్క పరుగెత్తుతోంది.", ["ఒక", "కుక్క", "పరుగెత్తుతోంది"]),
    "th": ("หมาวิ่ง", ["ห", "มา", "วิ่", "ง"]),
    "tr": ("IŞIK İSTANBUL'da", ["ışık", "istanbulʼda"]),
    "uk": ("П’ять собак", ["пʼять", "собак"]),
    "zh": ("一只狗，在NBA。", ["一", "只", "狗", "在", "nba"]),
}


@pytest.mark.parametrize(("lang", "text", "words"), [(lang, *case) for lang, case in BY_HAND.items()])
def test_words_are_those_split_by_hand(lang, text, words):
    assert get_tokenizer("unicode", lang)(text) == [unicodedata.normalize("NFKC", word) for word in words]


def test_each_of_the_36_languages_has_a_default_that_needs_no_extra():
    assert len(CROSSMODAL_3600) == 36
    for lang in CROSSMODAL_3600:
        assert get_tokenizer(default_tokenizer(lang), lang)("x y") == ["x", "y"]
    assert default_tokenizer("en") == default_tokenizer("en-GB") == default_tokenizer(None) == "ptb"
    assert {default_tokenizer(lang) for lang in CROSSMODAL_3600 if lang != "en"} == {"unicode"}


@given(st.text(max_size=60), st.sampled_from(CROSSMODAL_3600))
def test_no_token_holds_punctuation_or_spaces(text, lang):
    for name in ("unicode", "char"):
        for token in get_tokenizer(name, lang)(text):
            assert token
            assert all(unicodedata.category(character)[0] in "LMN" for character in token)


@given(st.text(max_size=60))
def test_a_text_has_the_tokens_of_its_compatible_form(text):
    tokenizer = get_tokenizer("unicode", "de")
    assert tokenizer(text) == tokenizer(unicodedata.normalize("NFKC", text))


def test_characters_stand_alone():
    assert get_tokenizer("char", "zh")("一只 T恤。") == ["一", "只", "t", "恤"]


def test_old_and_regional_codes_are_known():
    assert [base_language(tag) for tag in ("iw", "zh-Hans-CN", "pt_BR", "quz", "tl")] == ["he", "zh", "pt", "quz", "fil"]
    assert set(CROSSMODAL_3600) <= language_names().keys()


def test_an_unknown_code_says_where_to_look():
    with pytest.raises(InputError, match=r"unknown language code 'xx'.*caplens list languages"):
        base_language("xx")
