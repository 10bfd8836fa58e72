"""The languages of the page: sentences are said whole, or stay as they are."""

import numpy as np
import pytest

from caplens.report.catalogue import LANGUAGES, PageLanguage, catalogue
from caplens.results.language_pairs import LanguagePair, lowest_language


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_sentence_that_no_template_fits_stays_as_it_is(lang):
    say = PageLanguage(lang)
    for sentence in (
        "The mean of where captions stand among captions of their language.",
        "characters, where no segmenter is installed.",
        "This caption of a dog is fine.",
    ):
        assert say(sentence) == sentence


@pytest.mark.parametrize("lang", LANGUAGES[1:])
def test_templates_have_the_same_names_in_every_language(lang):
    names = {english: {part.split("}")[0] for part in english.split("{")[1:]} for english in catalogue()}
    for english, said in catalogue().items():
        assert {part.split("}")[0] for part in said[lang].split("{")[1:]} == names[english], english


@pytest.mark.parametrize("lang", LANGUAGES[1:])
def test_which_language_is_the_worst_is_said_in_the_language_of_the_page(lang):
    pair = LanguagePair("fr", "tr", 929, True, -6.5, -8.32, -4.75, 0.0033, 0.4)
    chance = LanguagePair("fr", "tr", 929, True, -0.5, -2.32, 1.75, 0.4, 0.4)
    for one in (pair, chance):
        sentence = f"clipscore: {lowest_language([one], {'fr': 43.0, 'tr': 49.2})}"
        said = PageLanguage(lang)(sentence)
        assert said != sentence
        assert "lowest" not in said
    assert lowest_language([], {"fr": np.nan}) == ""
