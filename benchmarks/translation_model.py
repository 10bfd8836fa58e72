"""A small M2M100 from English into eight languages: `python benchmarks/translation_model.py --data DATA --out DIR`.

Trained from scratch and saved as on the hub, to measure translation and its selection with real translations where no large model
is at hand. Captions of Flickr8k's dev and test photos, and their sentences in Multi30k, are left out. Minutes on a GPU; with
`--steps 300 --small` it shows on a processor that everything works.
"""

import argparse
import json
import math
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sentencepiece
import torch
import transformers

from caplens.data.records import find_file, read_fields

TRANSLATIONS = ("ja", "tr", "zh", "hi", "mn")
"""Machine translations of Flickr8k's captions, numbered as the English ones."""
MULTI30K = ("de", "fr", "cs")
LANGUAGES = (*MULTI30K, *TRANSLATIONS)
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
Row = tuple[list[int], list[int]]
"""The tokens of a caption and of its translation."""


class Pair(NamedTuple):
    """An English caption and its translation."""

    source: str
    lang: str
    translation: str
    photo: str
    """The name of its photo in Flickr8k, or the start of that name for Multi30k."""


def captions(data: Path, name: str) -> dict[tuple[str, str], str]:
    """(photo, number) -> text; the last of several counts."""
    path = find_file(data, [f"{name}.tsv"], f"the captions {name}", "See docs/mini.md.")
    return {(photo, number): text for _, (photo, number, text) in read_fields(path, 3, tabs_in_last=True)}


def stem(photo: str) -> str:
    return photo.rpartition(".")[0] or photo


def held_out(data: Path) -> set[str]:
    names = [name for part in ("dev", "test") for name in (data / "flickr8k" / f"{part}.txt").read_text().split()]
    return {stem(name) for name in names} | {name.partition("_")[0] for name in names}


def pairs(data: Path, *, of_held_out: bool = False) -> list[Pair]:
    """English captions with their translations, of photos that are held out, or of the others."""
    kept = held_out(data)
    english = captions(data / "flickr8k" / "captions", "en")
    rows = [
        Pair(english[key].strip(), lang, text.strip(), key[0])
        for lang in TRANSLATIONS
        for key, text in captions(data / "flickr8k" / "captions", f"{lang}.mt").items()
        if key in english and (stem(key[0]) in kept) == of_held_out
    ]
    sentences = captions(data / "multi30k", "en")
    rows += [
        Pair(sentences[key].strip(), lang, text.strip(), key[0])
        for lang in MULTI30K
        for key, text in captions(data / "multi30k", lang).items()
        if key[1] == "0" and key in sentences and (key[0] in kept) == of_held_out
    ]
    return [row for row in rows if row.source and row.translation]


def make_tokenizer(training: list[Pair], folder: Path, size: int) -> transformers.M2M100Tokenizer:
    """Sub-words of all texts, in the files of M2M100's tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [text for pair in training for text in (pair.source, pair.translation)]
    random.Random(0).shuffle(texts)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts[:300_000]), model_prefix=str(folder / "pieces"), vocab_size=size, character_coverage=0.9995,
        minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    (folder / "pieces.model").rename(folder / "sentencepiece.bpe.model")
    (folder / "pieces.vocab").unlink()
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.bpe.model"))
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    vocabulary = {piece: number for number, piece in enumerate([*SPECIAL, *(piece for piece in pieces if piece not in SPECIAL)])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    tokenizer = transformers.M2M100Tokenizer(folder / "vocab.json", folder / "sentencepiece.bpe.model", model_max_length=128)
    tokenizer.save_pretrained(folder)
    return tokenizer


def batches(rows: list[Row], tokens: int, rng: random.Random) -> Iterator[list[Row]]:
    """Batches of about so many tokens, of rows of like length, in random order, for ever."""
    while True:
        order = sorted(rng.sample(rows, len(rows)), key=lambda row: len(row[0]) + rng.random())
        groups, start = [], 0
        while start < len(order):
            stop, longest = start, 0
            while stop < len(order) and (stop - start + 1) * max(longest, len(order[stop][0]), len(order[stop][1])) <= tokens:
                longest = max(longest, len(order[stop][0]), len(order[stop][1]))
                stop += 1
            groups.append(order[start : max(stop, start + 1)])
            start = max(stop, start + 1)
        rng.shuffle(groups)
        yield from groups


def padded(rows: list[list[int]], value: int, device: str) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [value] * (width - len(row)) for row in rows], device=device)


def prepare(arguments: argparse.Namespace) -> tuple[transformers.M2M100Tokenizer, list[Row]]:
    """The tokenizer and the tokens of all pairs, kept in the folder of the model."""
    kept = arguments.out / "tokens.npz"
    if kept.is_file():
        tokens = np.load(kept)
        rows = [row.tolist() for row in np.split(tokens["ids"], np.cumsum(tokens["lengths"])[:-1])]
        return transformers.M2M100Tokenizer.from_pretrained(arguments.out), list(zip(rows[::2], rows[1::2], strict=True))
    training = pairs(arguments.data)
    print(f"{len(training):,} pairs", flush=True)
    tokenizer = make_tokenizer(training, arguments.out, 4000 if arguments.small else 12_000)
    rows = []
    tokenizer.src_lang = "en"
    for pair in training:
        tokenizer.tgt_lang = pair.lang
        rows.append((tokenizer(pair.source)["input_ids"][:100], tokenizer(text_target=pair.translation)["input_ids"][:100]))
    parts = [part for row in rows for part in row]
    np.savez_compressed(kept, ids=np.concatenate(parts).astype(np.int32), lengths=[len(part) for part in parts])
    return tokenizer, rows


def train(arguments: argparse.Namespace) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer, rows = prepare(arguments)
    if arguments.only_prepare:
        return
    width, layers = (128, 2) if arguments.small else (384, 4)
    config = transformers.M2M100Config(
        vocab_size=max(tokenizer.lang_code_to_id.values()) + 9, d_model=width, encoder_layers=layers, decoder_layers=layers,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width,
        max_position_embeddings=128, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
        dropout=arguments.dropout,
        encoder_layerdrop=0.0, decoder_layerdrop=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    network = transformers.M2M100ForConditionalGeneration(config).to(device).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01, fused=device == "cuda")
    warmup = max(1, min(1000, arguments.steps // 5))
    loss_of = torch.nn.CrossEntropyLoss(ignore_index=-100, label_smoothing=0.1)
    stream, start = batches(rows, arguments.tokens, random.Random(0)), time.monotonic()
    for step in range(1, arguments.steps + 1):
        batch = next(stream)
        minutes = (time.monotonic() - start) / 60
        # Whichever limit is nearer ends the schedule.
        progress = max(step / arguments.steps, minutes / arguments.minutes)
        if progress > 1:
            break
        rate = 1e-3 * min(step / warmup, 0.5 * (1 + math.cos(math.pi * progress)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        ids = padded([source for source, _ in batch], 1, device)
        labels = padded([target for _, target in batch], -100, device)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = network(input_ids=ids, attention_mask=ids != 1, labels=labels).logits
        loss = loss_of(logits.flatten(0, 1).float(), labels.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        if step % 500 == 0 or step == arguments.steps:
            print(f"step {step}, loss {loss.item():.3f}, {60 * minutes:.0f} s", flush=True)
    network.eval().cpu().half().save_pretrained(arguments.out, max_shard_size="15MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds flickr8k and multi30k")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the model")
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--minutes", type=float, default=math.inf, help="train for so long at most")
    parser.add_argument("--tokens", type=int, default=8192, help="tokens of a batch, with padding")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--only-prepare", action="store_true", help="make the tokenizer and the tokens, for a machine with a GPU")
    parser.add_argument("--small", action="store_true", help="a smaller model, for a processor")
    train(parser.parse_args())
