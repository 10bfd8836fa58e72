"""Tiny models with random weights, saved as the hub lays them out."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

WORDS = "a photo depicts dog cat runs on the grass ein hund läuft 一 只 狗 在 草 地 上 奔 跑 red ball with and of".split()
TEXTS = ["a dog runs", "A photo depicts a red ball on the grass", "ein Hund läuft", "一只狗在草地上奔跑", "!"]
LONG = "a dog runs on the grass and a cat with a red ball " * 20


def picture(number: int, width: int = 90, height: int = 60) -> Image.Image:
    """Something smooth, as photos are."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / (5 + number % 7 + c) + c + number) * np.cos(y / (7 + c) + number / 3) for c in range(3)]
    return Image.fromarray((127 + 120 * np.stack(waves, -1)).astype(np.uint8))


PICTURES = [picture(number, *size) for number, size in enumerate([(90, 60), (64, 101), (48, 48), (33, 40)])]


def library_images(folder: Path) -> object:
    """The library's own image processor, the one that uses Pillow."""
    import transformers

    plain = {"backend": "pil"} if int(transformers.__version__.split(".")[0]) >= 5 else {"use_fast": False}
    return transformers.AutoImageProcessor.from_pretrained(folder, **plain)


def save_json(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def unigram_tokenizer(folder: Path, kind: str, **settings: object) -> None:
    """A tokenizer of the XLM-R kind: pieces of one letter up to a word, learned from a few words."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    letters = sorted({letter for text in [*WORDS, *TEXTS] for letter in text if letter != " "})
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [(f"▁{word}", -3.0) for word in WORDS] + [(letter, -5.0) for letter in letters]
    pieces.append(("<mask>", 0.0))
    tokenizer = Tokenizer(models.Unigram([(piece, score) for piece, score in dict(pieces).items()], unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    save_json(
        folder,
        tokenizer_config={
            "tokenizer_class": kind,
            "bos_token": "<s>",
            "eos_token": "</s>",
            "cls_token": "<s>",
            "sep_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
            "mask_token": "<mask>",
            **settings,
        },
    )


UNIGRAM_SIZE = 5 + len(WORDS) + len({letter for text in [*WORDS, *TEXTS] for letter in text if letter != " "}) + 1


def clip_tokenizer(folder: Path, length: int = 77) -> None:
    """OpenAI's kind of tokenizer: bytes, a few merges, markers of begin and end."""
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers.models.clip.tokenization_clip import CLIPTokenizer

    alphabet = sorted(ByteLevel.alphabet())
    merges = [("d", "o"), ("do", "g</w>"), ("t", "h"), ("th", "e</w>"), ("r", "u"), ("ru", "n"), ("run", "s</w>")]
    pieces = [*alphabet, *(f"{letter}</w>" for letter in alphabet), *("".join(merge) for merge in merges)]
    vocabulary = {piece: number for number, piece in enumerate([*pieces, "<|startoftext|>", "<|endoftext|>"])}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(merge) for merge in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    special = {
        "bos_token": "<|startoftext|>",
        "eos_token": "<|endoftext|>",
        "unk_token": "<|endoftext|>",
        "pad_token": "<|endoftext|>",
    }
    save_json(folder, tokenizer_config={"tokenizer_class": "CLIPTokenizer", "model_max_length": length, **special})
    CLIPTokenizer.from_pretrained(folder).save_pretrained(folder)


CLIP_SIZE = 2 * 256 + 7 + 2
CLIP_IMAGES = {
    "image_processor_type": "CLIPImageProcessor",
    "size": {"shortest_edge": 32},
    "crop_size": {"height": 32, "width": 32},
    "resample": 3,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "do_resize": True, "do_center_crop": True, "do_rescale": True, "do_normalize": True, "do_convert_rgb": True,
}  # fmt: skip
TOWER = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
VISION = {**TOWER, "image_size": 32, "patch_size": 8}


def clip(folder: Path) -> Path:
    """A CLIP as `openai/clip-vit-base-patch32` lies on the hub."""
    import torch
    from transformers import CLIPConfig, CLIPModel

    torch.manual_seed(1)
    clip_tokenizer(folder)
    end = CLIP_SIZE - 1
    text = {**TOWER, "vocab_size": CLIP_SIZE, "max_position_embeddings": 77, "bos_token_id": end - 1, "eos_token_id": end}
    config = CLIPConfig(text_config={**text, "pad_token_id": end}, vision_config=VISION, projection_dim=24)
    CLIPModel(config).save_pretrained(folder)
    save_json(folder, preprocessor_config=CLIP_IMAGES)
    return folder


def _text(**settings: object) -> dict[str, object]:
    return {**TOWER, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "vocab_size": UNIGRAM_SIZE, **settings}


def altclip(folder: Path) -> Path:
    """An AltCLIP as `BAAI/AltCLIP-m9` lies on the hub."""
    import torch
    from transformers import AltCLIPConfig, AltCLIPModel

    torch.manual_seed(2)
    unigram_tokenizer(folder, "XLMRobertaTokenizer", model_max_length=512)
    text = _text(max_position_embeddings=120, project_dim=24, type_vocab_size=1)
    AltCLIPModel(AltCLIPConfig(text_config=text, vision_config=VISION, projection_dim=24)).save_pretrained(folder)
    save_json(folder, preprocessor_config=CLIP_IMAGES)
    return folder


def metaclip2(folder: Path) -> Path:
    """A MetaCLIP 2 as `facebook/metaclip-2-worldwide-b32` lies on the hub."""
    import torch
    from transformers import MetaClip2Config, MetaClip2Model

    torch.manual_seed(3)
    unigram_tokenizer(folder, "XLMRobertaTokenizer", model_max_length=77)
    config = MetaClip2Config(text_config=_text(max_position_embeddings=77), vision_config=VISION, projection_dim=24)
    MetaClip2Model(config).save_pretrained(folder)
    save_json(folder, preprocessor_config=CLIP_IMAGES)
    return folder


def chinese_clip(folder: Path) -> Path:
    """A Chinese-CLIP as `OFA-Sys/chinese-clip-vit-base-patch16` lies on the hub."""
    import torch
    from transformers import ChineseCLIPConfig, ChineseCLIPModel

    torch.manual_seed(4)
    letters = sorted({letter for text in [*WORDS, *TEXTS] for letter in text.lower() if letter != " "})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    save_json(folder, tokenizer_config={"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 512})
    text = {**TOWER, "vocab_size": len(vocabulary), "max_position_embeddings": 120, "pad_token_id": 0}
    config = ChineseCLIPConfig(text_config=text, vision_config=VISION, projection_dim=24)
    ChineseCLIPModel(config).save_pretrained(folder)
    squashed = {"size": {"height": 32, "width": 32}, "do_center_crop": False}
    images = {**CLIP_IMAGES, **squashed, "image_processor_type": "ChineseCLIPImageProcessor"}
    save_json(folder, preprocessor_config=images)
    return folder


SIGLIP_IMAGES = {
    "image_processor_type": "SiglipImageProcessor",
    "size": {"height": 32, "width": 32},
    "resample": 3,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "do_resize": True, "do_rescale": True, "do_normalize": True, "do_convert_rgb": True,
}  # fmt: skip


def siglip(folder: Path) -> Path:
    """A SigLIP as `google/siglip-base-patch16-224` lies on the hub."""
    import sentencepiece
    import torch
    from transformers import SiglipConfig, SiglipModel

    torch.manual_seed(5)
    folder.mkdir(parents=True)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*TEXTS, " ".join(WORDS)] * 5), model_prefix=str(folder / "spiece"), vocab_size=60,
        hard_vocab_limit=False, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2,
    )  # fmt: skip
    (folder / "spiece.vocab").unlink()
    settings = {"model_max_length": 64, "model_input_names": ["input_ids"], "pad_token": "</s>", "do_lower_case": True}
    save_json(folder, tokenizer_config={"tokenizer_class": "SiglipTokenizer", **settings})
    text = _text(vocab_size=100, max_position_embeddings=64, projection_size=32, eos_token_id=1)
    SiglipModel(SiglipConfig(text_config=text, vision_config=VISION)).save_pretrained(folder)
    save_json(folder, preprocessor_config=SIGLIP_IMAGES)
    return folder


GEMMA = {
    "model_max_length": 64,
    "model_input_names": ["input_ids"],
    "padding_side": "right",
    "add_bos_token": False,
    "add_eos_token": True,
}


def siglip2(folder: Path) -> Path:
    """A SigLIP 2 of fixed size as `google/siglip2-base-patch16-224` lies on the hub: a SigLIP with Gemma's tokenizer."""
    import torch
    from transformers import SiglipConfig, SiglipModel

    torch.manual_seed(6)
    unigram_tokenizer(folder, "GemmaTokenizer", **GEMMA)
    text = _text(max_position_embeddings=64, projection_size=32)
    SiglipModel(SiglipConfig(text_config=text, vision_config=VISION)).save_pretrained(folder)
    save_json(folder, preprocessor_config=SIGLIP_IMAGES)
    return folder


def naflex(folder: Path) -> Path:
    """A SigLIP 2 that keeps shapes as `google/siglip2-base-patch16-naflex` lies on the hub."""
    import torch
    from transformers import Siglip2Config, Siglip2Model

    torch.manual_seed(7)
    unigram_tokenizer(folder, "GemmaTokenizer", **GEMMA)
    vision = {**TOWER, "patch_size": 8, "num_patches": 16}
    text = _text(max_position_embeddings=64, projection_size=32)
    Siglip2Model(Siglip2Config(text_config=text, vision_config=vision)).save_pretrained(folder)
    images = {"image_processor_type": "Siglip2ImageProcessor", "patch_size": 8, "max_num_patches": 16, "resample": 2}
    save_json(folder, preprocessor_config={**images, "image_mean": [0.5] * 3, "image_std": [0.5] * 3})
    return folder


OPEN_CLIP_VISION = {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 8}
OPEN_CLIP_IMAGES = {
    "mean": [0.48145466, 0.4578275, 0.40821073],
    "std": [0.26862954, 0.26130258, 0.27577711],
    "interpolation": "bicubic",
    "resize_mode": "shortest",
}


def _save_open_clip(folder: Path, model: dict[str, object]) -> Path:
    """As open_clip pushes a model to the hub: its configuration, and the weights as safetensors."""
    import open_clip
    from safetensors.torch import save_model

    save_json(folder, open_clip_config={"model_cfg": model, "preprocess_cfg": OPEN_CLIP_IMAGES})
    network = open_clip.create_model(f"local-dir:{folder}", load_weights=False, pretrained_text=False)
    save_model(network, folder / "open_clip_model.safetensors")
    return folder


def open_clip_native(folder: Path) -> Path:
    """An open_clip model with its own text tower, as `laion/CLIP-ViT-B-32-laion2B-s34B-b79K` lies on the hub."""
    import torch

    torch.manual_seed(8)
    text = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
    return _save_open_clip(folder, {"embed_dim": 24, "vision_cfg": OPEN_CLIP_VISION, "text_cfg": text})


def open_clip_resnet(folder: Path) -> Path:
    """One whose image tower is a ResNet with attention pooling, as CLIP's RN50 is."""
    import torch

    torch.manual_seed(9)
    text = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
    vision = {"layers": [1, 1, 1, 1], "width": 16, "image_size": 32, "patch_size": None, "head_width": 16}
    return _save_open_clip(folder, {"embed_dim": 24, "vision_cfg": vision, "text_cfg": text})


def open_clip_siglip(folder: Path) -> Path:
    """One whose text tower reads its padding, as SigLIP's do."""
    import torch

    torch.manual_seed(9)
    text = {
        "context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2,
        "no_causal_mask": True, "pool_type": "last", "proj_bias": True,
    }  # fmt: skip
    return _save_open_clip(folder, {"embed_dim": 24, "custom_text": True, "vision_cfg": OPEN_CLIP_VISION, "text_cfg": text})


def _base(folder: Path, config: object) -> Path:
    config.save_pretrained(folder)  # type: ignore[attr-defined]
    return folder


def xlm_roberta_config() -> object:
    from transformers import XLMRobertaConfig

    return XLMRobertaConfig(**_text(max_position_embeddings=120, type_vocab_size=1, layer_norm_eps=1e-5))


def open_clip_xlm_roberta(folder: Path) -> Path:
    """One with XLM-R, as `laion/CLIP-ViT-B-32-xlm-roberta-base-laion5B-s13B-b90k` lies on the hub."""
    import torch

    torch.manual_seed(10)
    base = _base(folder.parent / "xlm-roberta-base", xlm_roberta_config())
    unigram_tokenizer(folder, "XLMRobertaTokenizer", model_max_length=512)
    text = {"hf_model_name": str(base), "hf_tokenizer_name": str(base), "hf_proj_type": "mlp", "hf_pooler_type": "mean_pooler"}
    return _save_open_clip(folder, {"embed_dim": 24, "vision_cfg": OPEN_CLIP_VISION, "text_cfg": text})


def open_clip_nllb(folder: Path) -> Path:
    """One with the encoder of NLLB, as `visheratin/nllb-clip-base-siglip` lies on the hub."""
    import torch
    from transformers import M2M100Config

    torch.manual_seed(11)
    shape = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    shape |= {"encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "vocab_size": UNIGRAM_SIZE + 4, "max_position_embeddings": 128}
    base = _base(folder.parent / "nllb-200-distilled-600M", M2M100Config(**shape, pad_token_id=1, bos_token_id=0, eos_token_id=2))
    languages = {"additional_special_tokens": ["eng_Latn", "deu_Latn"], "src_lang": "eng_Latn"}
    unigram_tokenizer(folder, "NllbTokenizer", model_max_length=512, **languages)
    text = {"hf_model_name": str(base), "hf_tokenizer_name": str(base), "hf_proj_type": "linear", "hf_pooler_type": "cls_pooler"}
    return _save_open_clip(folder, {"embed_dim": 24, "vision_cfg": OPEN_CLIP_VISION, "text_cfg": text})


def mclip(folder: Path, dim: int = 24) -> Path:
    """An M-CLIP text tower as `M-CLIP/XLM-Roberta-Large-Vit-B-32` lies on the hub."""
    import torch
    from transformers import XLMRobertaModel

    torch.manual_seed(12)
    unigram_tokenizer(folder, "XLMRobertaTokenizer", model_max_length=512)
    parts = {"transformer": XLMRobertaModel(_wide_heads()), "LinearTransformation": torch.nn.Linear(64, dim)}
    torch.save(torch.nn.ModuleDict(parts).state_dict(), folder / "pytorch_model.bin")
    about = {"modelBase": "xlm-roberta-large", "numDims": dim, "transformerDimensions": 64, "model_type": "M-CLIP"}
    save_json(folder, config=about)
    return folder


def text_encoder(folder: Path) -> Path:
    """A multilingual encoder of texts as `FacebookAI/xlm-roberta-base` lies on the hub."""
    import torch
    from transformers import XLMRobertaModel

    torch.manual_seed(14)
    unigram_tokenizer(folder, "XLMRobertaTokenizer", model_max_length=512)
    XLMRobertaModel(_wide_heads()).save_pretrained(folder)
    return folder


def _wide_heads() -> object:
    """XLM-R with heads of 64, as all that exist have."""
    from transformers import XLMRobertaConfig

    shape = _text(max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5, hidden_size=64, num_attention_heads=1)
    return XLMRobertaConfig(**shape)


def sentence_transformer(folder: Path, dim: int = 24) -> Path:
    """A text model as `sentence-transformers/clip-ViT-B-32-multilingual-v1` lies on the hub."""
    import torch
    from transformers import DistilBertConfig, DistilBertModel

    torch.manual_seed(13)
    letters = sorted({letter for text in [*WORDS, *TEXTS] for letter in text if letter != " "})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    save_json(
        folder, tokenizer_config={"tokenizer_class": "DistilBertTokenizer", "do_lower_case": False, "model_max_length": 512}
    )
    config = DistilBertConfig(
        vocab_size=len(vocabulary), dim=32, hidden_dim=48, n_layers=2, n_heads=2, max_position_embeddings=512
    )
    DistilBertModel(config).save_pretrained(folder)
    kinds = {"Transformer": "", "Pooling": "1_Pooling", "Dense": "2_Dense"}
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (kind, path) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    save_json(folder, sentence_bert_config={"max_seq_length": 128, "do_lower_case": False})
    pooling = {"word_embedding_dimension": 32, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    save_json(folder / "1_Pooling", config=pooling)
    dense = {"in_features": 32, "out_features": dim, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
    save_json(folder / "2_Dense", config=dense)
    torch.save({"linear.weight": torch.randn(dim, 32)}, folder / "2_Dense" / "pytorch_model.bin")
    return folder


def sentence_transformer_images(folder: Path) -> Path:
    """Its image twin as `sentence-transformers/clip-ViT-B-32` lies on the hub."""
    clip(folder / "0_CLIPModel")
    modules = [{"idx": 0, "name": "0", "path": "0_CLIPModel", "type": "sentence_transformers.models.CLIPModel"}]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    return folder


def in_hub_cache(cache: Path, name: str, make: Callable[[Path], Path]) -> Path:
    """A model as the hub's client caches it: snapshots of revisions."""
    root = cache / f"models--{name.replace('/', '--')}"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text("0" * 40, encoding="ascii")
    return make(root / "snapshots" / ("0" * 40))


def painter(folder: Path) -> Path:
    """A tiny text-to-image model of diffusers."""
    import diffusers
    import torch
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    clip_tokenizer(folder / "tokenizer")
    torch.manual_seed(0)
    tokenizer = CLIPTokenizer.from_pretrained(folder / "tokenizer")
    text = CLIPTextConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=37, num_hidden_layers=2, num_attention_heads=4,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    diffusers.StableDiffusionPipeline(
        unet=diffusers.UNet2DConditionModel(
            block_out_channels=(8, 16), layers_per_block=1, sample_size=8, cross_attention_dim=32, norm_num_groups=2,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        ),
        vae=diffusers.AutoencoderKL(
            block_out_channels=[8, 8], down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2,
            latent_channels=4, norm_num_groups=2,
        ),
        text_encoder=CLIPTextModel(text), tokenizer=tokenizer,
        scheduler=diffusers.DDIMScheduler(clip_sample=False, steps_offset=1),
        safety_checker=None, feature_extractor=None, requires_safety_checker=False,
    ).save_pretrained(folder, safe_serialization=True)  # fmt: skip
    return folder


CAPTIONER_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[DEC]", "a", "dog", "cat", "runs", "photo", "of"]


def captioner(folder: Path) -> Path:
    """A tiny captioner of transformers."""
    import torch
    import transformers

    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(CAPTIONER_WORDS) + "\n")
    torch.manual_seed(0)
    small = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BlipConfig(
        text_config={**small, "vocab_size": len(CAPTIONER_WORDS), "encoder_hidden_size": 16, "bos_token_id": 5, "sep_token_id": 3,
                     "pad_token_id": 0, "eos_token_id": 3, "max_position_embeddings": 64},
        vision_config={**small, "image_size": 32, "patch_size": 16},
    )  # fmt: skip
    transformers.BlipForConditionalGeneration(config).save_pretrained(folder)
    tokenizer = transformers.BertTokenizer.from_pretrained(folder)
    images = transformers.BlipImageProcessor(size={"height": 32, "width": 32})
    transformers.BlipProcessor(images, tokenizer).save_pretrained(folder)
    return folder


def clip_in_both_libraries(root: Path, folder: Path | None = None) -> tuple[Path, Path, dict[str, object]]:
    """A CLIP of open_clip and one of transformers of the same shape, and weights for it in OpenAI's naming."""
    import open_clip
    import torch
    from transformers import CLIPConfig, CLIPModel

    native = open_clip_native(root / "native")
    tower = {**TOWER, "intermediate_size": 128, "hidden_act": "gelu"}
    text = {**tower, "vocab_size": 49408, "eos_token_id": 49407, "bos_token_id": 49406, "pad_token_id": 49407}
    vision = {**VISION, "hidden_size": 64, "intermediate_size": 256, "hidden_act": "gelu"}
    folder = clip(folder or root / "transformers")
    CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=24)).save_pretrained(folder)
    state = open_clip.create_model(f"local-dir:{native}").state_dict()
    state["visual.proj"] = state["visual.proj"] + 0.1 * torch.randn(
        state["visual.proj"].shape, generator=torch.Generator().manual_seed(0)
    )
    return native, folder, state
