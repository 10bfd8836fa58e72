"""Captions into other languages."""

from caplens.translation.base import Hypothesis, Translations, Translator
from caplens.translation.captions import TranslationOptions, TranslationReport, translate_samples
from caplens.translation.registry import FAMILIES, load_translator

__all__ = [
    "FAMILIES",
    "Hypothesis",
    "TranslationOptions",
    "TranslationReport",
    "Translations",
    "Translator",
    "load_translator",
    "translate_samples",
]
