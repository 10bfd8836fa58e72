"""open_clip's models: a tiny one, saved as on the hub, gives the vectors that open_clip gives."""

import json
import shutil

import numpy as np
import pytest
import tiny_models
from extras import need
from tiny_models import LONG, PICTURES, TEXTS

from caplens.backbones import load_backbone
from caplens.errors import CaplensError, InputError

torch = need("torch")
open_clip = need("open_clip")

KINDS = ["open_clip_native", "open_clip_siglip", "open_clip_xlm_roberta", "open_clip_nllb"]


@pytest.fixture(scope="module", params=KINDS)
def folder(request, tmp_path_factory):
    return getattr(tiny_models, request.param)(tmp_path_factory.mktemp("hub") / request.param)


def normalized(features):
    return torch.nn.functional.normalize(features).detach().numpy()


def test_vectors_equal_the_librarys_own(folder):
    network, preprocess = open_clip.create_model_from_pretrained(f"local-dir:{folder}", return_transform=True)
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    backbone = load_backbone(f"openclip:{folder}", device="cpu")
    network.eval()
    image = normalized(network.encode_image(torch.stack([preprocess(picture) for picture in PICTURES])))
    text = normalized(network.encode_text(tokenizer([*TEXTS, LONG])))
    np.testing.assert_allclose(backbone.encode_images(PICTURES), image, atol=1e-5)
    np.testing.assert_allclose(backbone.encode_texts([*TEXTS, LONG]), text, atol=1e-5)
    assert backbone.dim == 24


def test_a_long_text_is_counted(folder):
    backbone = load_backbone(f"openclip:{folder}", device="cpu")
    short, long = backbone.tokenize(["a dog", LONG])
    assert (short.cut, long.cut) == (False, True)
    assert len(long.ids) == backbone.max_tokens
    assert long.ids[-1] == short.ids[-1]


def test_tokens_have_vectors_of_their_own(folder):
    backbone = load_backbone(f"openclip:{folder}", device="cpu")
    if folder.name == "open_clip_siglip":
        pytest.skip("needs a text tower with token vectors, and this one has none")
    found = backbone.encode_tokens(TEXTS)
    assert [len(vectors) for vectors in found] == [len(tokens.ids) for tokens in backbone.tokenize(TEXTS)]
    if folder.name == "open_clip_native":
        np.testing.assert_allclose([vectors[-1] for vectors in found], backbone.encode_texts(TEXTS), atol=1e-5)


def test_an_architecture_with_a_file_of_weights(tmp_path):
    """`openclip:ARCH/FILE`, with an architecture that open_clip learns from a JSON file."""
    shape = {
        "embed_dim": 24,
        "vision_cfg": tiny_models.OPEN_CLIP_VISION,
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
    }
    (tmp_path / "tiny-ViT.json").write_text(json.dumps(shape), encoding="utf-8")
    open_clip.add_model_config(tmp_path / "tiny-ViT.json")
    network = open_clip.create_model("tiny-ViT")
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    backbone = load_backbone(f"openclip:tiny-ViT/{tmp_path / 'weights.pt'}", device="cpu")
    text = normalized(network.eval().encode_text(open_clip.get_tokenizer("tiny-ViT")(TEXTS)))
    np.testing.assert_allclose(backbone.encode_texts(TEXTS), text, atol=1e-5)


def test_unknown_names_are_explained():
    with pytest.raises(InputError, match="name the architecture and its weights"):
        load_backbone("openclip:ViT-B-32")
    with pytest.raises(InputError, match="no architecture 'ViT-Z-1'"):
        load_backbone("openclip:ViT-Z-1/openai")
    with pytest.raises(InputError, match=r"neither a file nor weights .*laion2b_s34b_b79k"):
        load_backbone("openclip:ViT-B-32/nonsense")


def test_a_folder_without_its_configuration_is_explained(tmp_path):
    folder = tiny_models.open_clip_native(tmp_path / "model")
    broken = shutil.copytree(folder, tmp_path / "broken")
    (broken / "open_clip_config.json").unlink()
    with pytest.raises(InputError, match=r"open_clip_config\.json is missing"):
        load_backbone(f"openclip:{broken}", device="cpu").encode_texts(["a dog"])


def test_a_folder_without_weights_is_explained(tmp_path):
    folder = tiny_models.open_clip_native(tmp_path / "model")
    (folder / "open_clip_model.safetensors").unlink()
    with pytest.raises(InputError, match=r"open_clip_model\.safetensors or .* is missing"):
        load_backbone(f"openclip:{folder}", device="cpu")


def test_nllb_reads_the_language(tmp_path):
    folder = tiny_models.open_clip_nllb(tmp_path / "nllb-clip-base-siglip")
    network = open_clip.create_model(f"local-dir:{folder}").eval()
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    backbone = load_backbone(f"openclip:{folder}", device="cpu")
    assert backbone.reads_language
    english = backbone.encode_texts(TEXTS)
    mixed = backbone.encode_texts(TEXTS, ["de", "en", "de", "en", "de"])
    tokenizer.tokenizer.src_lang = "deu_Latn"
    german = normalized(network.encode_text(tokenizer(TEXTS)))
    np.testing.assert_allclose(mixed[[1, 3]], english[[1, 3]], atol=1e-5)
    np.testing.assert_allclose(mixed[[0, 2, 4]], german[[0, 2, 4]], atol=1e-5)
    assert not np.allclose(german, english, atol=1e-3)
    with pytest.raises(InputError, match="no NLLB code is known for the language 'vo'"):
        backbone.encode_texts(["a"], ["vo"])


def test_weights_trained_with_quick_gelu_get_it(tmp_path, monkeypatch):
    """As OpenAI's, whose architecture is also named without it."""
    shape = {"embed_dim": 24, "vision_cfg": tiny_models.OPEN_CLIP_VISION}
    shape["text_cfg"] = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
    for name, quick in (("quick-test", False), ("quick-test-quickgelu", True)):
        (tmp_path / f"{name}.json").write_text(json.dumps({**shape, "quick_gelu": quick}), encoding="utf-8")
        open_clip.add_model_config(tmp_path / f"{name}.json")
    network = open_clip.create_model("quick-test-quickgelu").eval()
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    tags = {"openai": {"file": str(tmp_path / "weights.pt"), "quick_gelu": True, "hf_hub": "x"}}
    tags["laion"] = {**tags["openai"], "quick_gelu": False}
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, "quick-test", tags)
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, "quick-test-quickgelu", tags)
    text = normalized(network.encode_text(open_clip.get_tokenizer("quick-test")(TEXTS)))
    np.testing.assert_allclose(load_backbone("openclip:quick-test/openai", device="cpu").encode_texts(TEXTS), text, atol=1e-5)
    with pytest.raises(InputError, match="trained without QuickGELU; the right name is openclip:quick-test/laion"):
        load_backbone("openclip:quick-test-quickgelu/laion", device="cpu").encode_texts(TEXTS)


def test_offline_a_tag_is_looked_for_in_the_cache_only(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(CaplensError, match=r"not on this machine and cannot be downloaded .*openclip:ViT-B-32/FILE"):
        load_backbone("openclip:ViT-B-32/laion2b_s34b_b79k", offline=True)


def test_a_tokenizer_that_the_folder_only_names_is_found(tmp_path):
    folder = tiny_models.open_clip_xlm_roberta(tmp_path / "model")
    expected = load_backbone(f"openclip:{folder}", device="cpu").encode_texts(TEXTS)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).rename(tmp_path / "xlm-roberta-base" / name)
    np.testing.assert_array_equal(load_backbone(f"openclip:{folder}", device="cpu").encode_texts(TEXTS), expected)


def test_half_precision_is_close(folder):
    exact, rough = (load_backbone(f"openclip:{folder}", device="cpu", dtype=kind) for kind in ("fp32", "bf16"))
    for encode, items in (("encode_images", PICTURES), ("encode_texts", TEXTS)):
        cosines = (getattr(exact, encode)(items) * getattr(rough, encode)(items)).sum(axis=1)
        assert cosines.min() > 0.998
