"""Tiny captioners of each family of transformers, made and saved as the hub would lay them out."""

from pathlib import Path

import tiny_models

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "cat", "runs", "photo", "of", "the", "snow", "in"]
SMALL = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
SIDE = 32
CHAT = (
    "{% for message in messages %}{{ message['role'] }}: {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image> {% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %} assistant:{% endif %}"
)


def _seeded():
    import torch
    import transformers

    torch.manual_seed(0)
    return transformers


def _bert_tokenizer(folder: Path):
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    return transformers.BertTokenizer.from_pretrained(folder)


def _varied(model):
    """Weights of which the outputs differ from image to image."""
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6)
    return model


def git(folder: Path) -> Path:
    transformers = _seeded()
    config = transformers.GitConfig(
        vision_config={**SMALL, "image_size": SIDE, "patch_size": 16},
        **SMALL, vocab_size=len(WORDS), max_position_embeddings=64, bos_token_id=2, eos_token_id=3, pad_token_id=0,
    )  # fmt: skip
    _varied(transformers.GitForCausalLM(config)).save_pretrained(folder)
    images = transformers.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    transformers.GitProcessor(images, _bert_tokenizer(folder)).save_pretrained(folder)
    return folder


def encoder_decoder(folder: Path) -> Path:
    transformers = _seeded()
    encoder = transformers.ViTConfig(**SMALL, image_size=SIDE, patch_size=16)
    decoder = transformers.BertConfig(**SMALL, vocab_size=len(WORDS), is_decoder=True, add_cross_attention=True)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 2, 0, 3
    model = _varied(transformers.VisionEncoderDecoderModel(config))
    model.generation_config.decoder_start_token_id, model.generation_config.pad_token_id = 2, 0
    model.generation_config.eos_token_id, model.generation_config.bos_token_id = 3, 2
    model.save_pretrained(folder)
    transformers.ViTImageProcessor(size={"height": SIDE, "width": SIDE}).save_pretrained(folder)
    _bert_tokenizer(folder).save_pretrained(folder)
    return folder


def llava(folder: Path) -> Path:
    """A model that is asked in words, by a template of its own."""
    transformers = _seeded()
    fast = _word_tokenizer(["<pad>", "<unk>", "<s>", "</s>", "<image>", "user", ":", *WORDS[5:]], bos="<s>")
    fast.padding_side = "left"
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**SMALL, image_size=SIDE, patch_size=16),
        text_config=transformers.LlamaConfig(
            **SMALL, vocab_size=len(fast), max_position_embeddings=256, bos_token_id=2, eos_token_id=3, pad_token_id=0
        ),
        image_token_index=4, vision_feature_layer=-1,
    )  # fmt: skip
    _varied(transformers.LlavaForConditionalGeneration(config)).save_pretrained(folder)
    images = transformers.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    processor = transformers.LlavaProcessor(
        images, fast, patch_size=16, vision_feature_select_strategy="default", chat_template=CHAT, num_additional_image_tokens=1
    )
    processor.save_pretrained(folder)
    return folder


MT5_WORDS = ["<pad>", "</s>", "<unk>", "en", "de", *"all of it is red green blue alles ist rot grün blau".split()]


def vit(folder: Path) -> Path:
    transformers = _seeded()
    transformers.ViTModel(transformers.ViTConfig(**SMALL, image_size=SIDE, patch_size=8)).save_pretrained(folder)
    transformers.ViTImageProcessor(size={"height": SIDE, "width": SIDE}).save_pretrained(folder)
    return folder


def mt5(folder: Path) -> Path:
    transformers = _seeded()
    import tokenizers

    words = {word: number for number, word in enumerate(MT5_WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", eos_token="</s>"
    ).save_pretrained(folder)
    config = transformers.MT5Config(
        vocab_size=len(words), d_model=32, d_kv=16, d_ff=48, num_layers=1, num_decoder_layers=1, num_heads=2, dropout_rate=0.0,
        pad_token_id=0, eos_token_id=1, decoder_start_token_id=0,
    )  # fmt: skip
    transformers.MT5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def blip2(folder: Path) -> Path:
    transformers = _seeded()
    fast = _word_tokenizer(["<pad>", "<unk>", "</s>", "<image>", *WORDS[5:]])
    text = transformers.OPTConfig(
        vocab_size=len(fast), hidden_size=16, ffn_dim=24, num_hidden_layers=2, num_attention_heads=2, word_embed_proj_dim=16,
        max_position_embeddings=64, bos_token_id=2, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    config = transformers.Blip2Config(
        vision_config=transformers.Blip2VisionConfig(**SMALL, image_size=SIDE, patch_size=16),
        qformer_config=transformers.Blip2QFormerConfig(**SMALL, encoder_hidden_size=16, vocab_size=10),
        text_config=text, num_query_tokens=3, image_token_index=3,
    )  # fmt: skip
    _varied(transformers.Blip2ForConditionalGeneration(config)).save_pretrained(folder)
    images = transformers.BlipImageProcessor(size={"height": SIDE, "width": SIDE})
    transformers.Blip2Processor(images, fast, num_query_tokens=3).save_pretrained(folder)
    return folder


def paligemma(folder: Path) -> Path:
    transformers = _seeded()
    fast = _word_tokenizer(
        ["<pad>", "<unk>", "<bos>", "<eos>", "<image>", "caption", "en", "\n", *WORDS[5:]], bos="<bos>", eos="<eos>"
    )
    config = transformers.PaliGemmaConfig(
        vision_config=transformers.SiglipVisionConfig(**SMALL, image_size=SIDE, patch_size=16, vision_use_head=False),
        text_config=transformers.GemmaConfig(
            **SMALL, vocab_size=len(fast), head_dim=8, num_key_value_heads=1, max_position_embeddings=128, bos_token_id=2,
            eos_token_id=3, pad_token_id=0,
        ),
        image_token_index=4, projection_dim=16,
    )  # fmt: skip
    _varied(transformers.PaliGemmaForConditionalGeneration(config)).save_pretrained(folder)
    images = transformers.SiglipImageProcessor(size={"height": SIDE, "width": SIDE})
    images.image_seq_length = (SIDE // 16) ** 2
    transformers.PaliGemmaProcessor(images, fast).save_pretrained(folder)
    return folder


def qwen2_vl(folder: Path) -> Path:
    transformers = _seeded()
    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    fast = _word_tokenizer(["<pad>", "<unk>", "<|im_end|>", *marks, "user", *WORDS[5:]], "<|im_end|>", "<|im_end|>", marks)
    fast.padding_side, fast.image_token, fast.video_token = "left", marks[2], marks[3]
    config = transformers.Qwen2VLConfig(
        text_config={
            **SMALL, "hidden_size": 32, "vocab_size": len(fast), "num_key_value_heads": 1, "max_position_embeddings": 512,
            "rope_scaling": {"rope_type": "default", "type": "mrope", "mrope_section": [2, 3, 3]},
            "bos_token_id": 2, "eos_token_id": 2, "pad_token_id": 0,
        },
        vision_config={"depth": 2, "embed_dim": 16, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2, "patch_size": 14},
        vision_start_token_id=3, vision_end_token_id=4, image_token_id=5, video_token_id=6,
    )  # fmt: skip
    _varied(transformers.Qwen2VLForConditionalGeneration(config)).save_pretrained(folder)
    template = CHAT.replace("<image>", " ".join((marks[0], marks[2], marks[1])))
    images = transformers.Qwen2VLImageProcessor(min_pixels=28 * 28 * 2, max_pixels=28 * 28 * 4)
    videos = transformers.Qwen2VLVideoProcessor()
    transformers.Qwen2VLProcessor(images, fast, video_processor=videos, chat_template=template).save_pretrained(folder)
    return folder


def florence2(folder: Path) -> Path:
    transformers = _seeded()
    fast = _word_tokenizer(
        ["<pad>", "<unk>", "</s>", "<s>", "<image>", "what", "does", "the", "image", "describe", "?", *WORDS[5:]]
    )
    vision = transformers.Florence2VisionConfig(
        embed_dim=(16, 16), depths=(1, 1), num_heads=(2, 2), num_groups=(2, 2), patch_size=(7, 3), patch_stride=(4, 2),
        patch_padding=(3, 1), patch_prenorm=(False, True), window_size=2, projection_dim=16, max_position_embeddings=20,
    )  # fmt: skip
    text = transformers.BartConfig(
        vocab_size=len(fast), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=128, pad_token_id=0,
        bos_token_id=3, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2,
    )  # fmt: skip
    config = transformers.Florence2Config(vision_config=vision.to_dict(), text_config=text.to_dict(), image_token_id=4)
    _varied(transformers.Florence2ForConditionalGeneration(config)).save_pretrained(folder)
    images = transformers.CLIPImageProcessor(size={"height": SIDE, "width": SIDE}, do_center_crop=False)
    images.image_seq_length = 17
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=fast.backend_tokenizer, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>",
        extra_special_tokens={"image_token": "<image>"},
    )  # fmt: skip
    transformers.Florence2Processor(images, fast).save_pretrained(folder)
    return folder


def _word_tokenizer(words, bos="</s>", eos="</s>", further=("<image>",)):
    import tokenizers
    import transformers

    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", bos_token=bos, eos_token=eos,
        additional_special_tokens=list(further),
    )  # fmt: skip


FAMILIES = {
    "blip": tiny_models.captioner, "blip-2": blip2, "git": git, "encoder-decoder": encoder_decoder, "florence-2": florence2,
    "llava": llava, "paligemma": paligemma, "qwen2-vl": qwen2_vl,
}  # fmt: skip
ASKED = {"paligemma": "caption en", "florence-2": "<CAPTION>"}
"""What those are asked that have a task in words."""
CHATTING = {"llava", "qwen2-vl"}
