"""Models of the right shape with random weights, saved in the hub's layout: speed does not depend on the weights."""

import json
from pathlib import Path
from typing import Any

VIT_B_32 = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "patch_size": 32}
VIT_H_14 = {"hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32, "num_attention_heads": 16, "patch_size": 14}
XLM_ROBERTA_LARGE = {
    "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "vocab_size": 250_002,
    "max_position_embeddings": 514, "type_vocab_size": 1, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
SEED = 5
"""Random weights give all pairs cosines of one sign; with this seed it is the positive one, so that scores are not all 0."""
_IMAGES = {
    "image_processor_type": "CLIPImageProcessor",
    "size": {"shortest_edge": 224},
    "crop_size": {"height": 224, "width": 224},
    "resample": 3,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "do_resize": True, "do_center_crop": True, "do_rescale": True, "do_normalize": True, "do_convert_rgb": True,
}  # fmt: skip


def vit_b_32(folder: Path, texts: list[str]) -> str:
    """The shape of `openai/clip-vit-base-patch32`. Returns the model's name for caplens."""
    import torch
    from transformers import CLIPConfig, CLIPModel

    torch.manual_seed(SEED)
    _tokenizer(folder, texts, "PreTrainedTokenizerFast", 77)
    text = {"vocab_size": 49408, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    return _save(folder, CLIPModel(CLIPConfig(text_config=text, vision_config=VIT_B_32)))


def vit_h_14_xlm_roberta_large(folder: Path, texts: list[str]) -> str:
    """The shape of AltCLIP-m18, which is nearly that of LAION's ViT-H/14 with XLM-R large."""
    from transformers import AltCLIPConfig, AltCLIPModel

    _tokenizer(folder, texts, "XLMRobertaTokenizer", 512)
    text = {**XLM_ROBERTA_LARGE, "project_dim": 1024}
    return _save(folder, AltCLIPModel(AltCLIPConfig(text_config=text, vision_config=VIT_H_14, projection_dim=1024)))


def _save(folder: Path, network: Any) -> str:
    network.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(_IMAGES), encoding="utf-8")
    return f"hf:{folder}"


def _tokenizer(folder: Path, texts: list[str], kind: str, length: int) -> None:
    """Write a sub-word tokenizer trained on the captions, so that texts have about as many tokens as with the models' own."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=8000, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(texts[:30_000], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), special, strict=True))
    config = {"tokenizer_class": kind, "model_max_length": length, **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
