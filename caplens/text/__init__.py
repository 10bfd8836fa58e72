"""Normalization, tokenizers and n-grams."""

from caplens.text.tokenizer import TOKENIZERS, Tokenizer, default_tokenizer, get_tokenizer

__all__ = ["TOKENIZERS", "Tokenizer", "default_tokenizer", "get_tokenizer"]
