"""Learning a sub-word vocabulary from captions in many languages, with equal weight for each language."""

import io
import random
from collections.abc import Mapping, Sequence

from caplens.errors import InputError, reason
from caplens.libraries import require
from caplens.text.subwords import BYTES, END, PADDING, SPECIAL, UNKNOWN, Subwords, word_lines

_LONGEST_PIECE = 16


def learn_vocabulary(captions: Mapping[str, Sequence[str]], size: int, per_language: int, seed: int) -> Subwords:
    """Learn `size` sub-words from `per_language` captions of each language: long lists are sampled, short ones repeated."""
    sentencepiece = require("sentencepiece", "Learning a vocabulary", "train")
    rng = random.Random(seed)
    lines: list[str] = []
    for lang in sorted(captions):
        repeats, rest = divmod(per_language, len(captions[lang]))
        lines += [*captions[lang]] * repeats + rng.sample([*captions[lang]], rest)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([line for line in word_lines(lines) if line]),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=0.9999,
            byte_fallback=True,
            normalization_rule_name="identity",
            max_sentencepiece_length=_LONGEST_PIECE,
            pad_id=0,
            unk_id=1,
            eos_id=2,
            bos_id=-1,
            pad_piece=PADDING,
            unk_piece=UNKNOWN,
            eos_piece=END,
            num_threads=4,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise InputError(f"a vocabulary of {size} sub-words cannot be learned from these captions ({reason(error)}).") from None
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = {processor.id_to_piece(number): processor.get_score(number) for number in range(len(processor))}
    assert set(BYTES) <= pieces.keys()
    ordinary = [(piece, score) for piece, score in pieces.items() if piece not in SPECIAL]
    return Subwords([*((piece, 0.0) for piece in SPECIAL), *ordinary])
