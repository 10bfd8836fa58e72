"""Tiny translation models, made and saved as the hub would lay them out."""

import json
from pathlib import Path

import pytest
from extras import need

WORDS = "a the dog cat runs sleeps red blue on grass ein der hund katze läuft schläft rot blau auf gras".split()


def sentence_pieces(folder: Path, name: str, symbols=()) -> None:
    sentencepiece = need("sentencepiece")
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(" ".join(WORDS[start:] + WORDS[:start]) for start in range(len(WORDS))), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(folder / "pieces"), vocab_size=70, character_coverage=1.0, minloglevel=2,
        user_defined_symbols=list(symbols), hard_vocab_limit=False, pad_id=3,
    )  # fmt: skip
    (folder / "pieces.model").rename(folder / name)
    corpus.unlink()
    (folder / "pieces.vocab").unlink()


def vocabulary(folder: Path, name: str) -> dict[str, int]:
    sentencepiece = need("sentencepiece")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
    special = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    rest = [piece for piece in pieces if piece not in special]
    return {**special, **{piece: 4 + number for number, piece in enumerate(rest)}}


def m2m100(folder: Path) -> Path:
    transformers, torch = need("transformers"), need("torch")
    folder.mkdir(parents=True)
    sentence_pieces(folder, "sentencepiece.bpe.model")
    (folder / "vocab.json").write_text(json.dumps(vocabulary(folder, "sentencepiece.bpe.model")), encoding="utf-8")
    tokenizer = transformers.M2M100Tokenizer(folder / "vocab.json", folder / "sentencepiece.bpe.model", model_max_length=64)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(3)
    config = transformers.M2M100Config(
        vocab_size=max(tokenizer.lang_code_to_id.values()) + 9, d_model=16, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
    )  # fmt: skip
    transformers.M2M100ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def madlad(folder: Path) -> Path:
    transformers, torch = need("transformers"), need("torch")
    folder.mkdir(parents=True)
    sentence_pieces(folder, "spiece.model", ["<2de>", "<2fr>", "<2en>"])
    tokenizer = transformers.T5Tokenizer.from_pretrained(folder, extra_ids=0, model_max_length=64)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(4)
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id, decoder_start_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def marian(folder: Path) -> Path:
    transformers, torch = need("transformers"), need("torch")
    need("sentencepiece")
    folder.mkdir(parents=True)
    for name in ("source.spm", "target.spm"):
        sentence_pieces(folder, name)
    # As Opus-MT has it: the end marker first, the padding last.
    pieces = [piece for piece in vocabulary(folder, "source.spm") if piece not in ("<s>", "<pad>", "</s>", "<unk>")]
    words = {word: number for number, word in enumerate(["</s>", "<unk>", *pieces, ">>deu<<", ">>fra<<", "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(words), encoding="utf-8")
    save = {"source_lang": "en", "target_lang": "mul", "tokenizer_class": "MarianTokenizer", "model_max_length": 64}
    (folder / "tokenizer_config.json").write_text(json.dumps(save), encoding="utf-8")
    torch.manual_seed(5)
    config = transformers.MarianConfig(
        vocab_size=len(words), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64,
        pad_token_id=len(words) - 1, eos_token_id=0, decoder_start_token_id=len(words) - 1, forced_eos_token_id=0,
    )  # fmt: skip
    transformers.MarianMTModel(config).save_pretrained(folder)
    return folder


def nllb(folder: Path) -> Path:
    transformers, torch = need("transformers"), need("torch")
    folder.mkdir(parents=True)
    sentence_pieces(folder, "sentencepiece.bpe.model")
    languages = ["deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans"]
    save = {"tokenizer_class": "NllbTokenizer", "model_max_length": 64, "additional_special_tokens": languages}
    (folder / "tokenizer_config.json").write_text(json.dumps(save), encoding="utf-8")
    tokenizer = transformers.NllbTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(6)
    config = transformers.M2M100Config(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
    )  # fmt: skip
    transformers.M2M100ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def mbart(folder: Path) -> Path:
    transformers, torch = need("transformers"), need("torch")
    folder.mkdir(parents=True)
    sentence_pieces(folder, "sentencepiece.bpe.model")
    save = {"tokenizer_class": "MBart50Tokenizer", "model_max_length": 64, "src_lang": "en_XX"}
    (folder / "tokenizer_config.json").write_text(json.dumps(save), encoding="utf-8")
    tokenizer = transformers.MBart50Tokenizer.from_pretrained(folder)
    torch.manual_seed(7)
    config = transformers.MBartConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2,
    )  # fmt: skip
    transformers.MBartForConditionalGeneration(config).save_pretrained(folder)
    return folder


MODELS = {"m2m100": m2m100, "madlad": madlad, "marian": marian, "nllb": nllb, "mbart": mbart}


@pytest.fixture(scope="session")
def translation_models(tmp_path_factory):
    """Family -> the folder of a tiny model."""
    root = tmp_path_factory.mktemp("translators")
    return {name: make(root / name) for name, make in MODELS.items()}
