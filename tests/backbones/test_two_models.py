"""M-CLIP and sentence-transformers: a text tower beside the image tower of another model."""

import numpy as np
import pytest
import tiny_models
from extras import need
from tiny_models import LONG, PICTURES, TEXTS

from caplens.backbones import load_backbone
from caplens.errors import InputError

torch = need("torch")
transformers = need("transformers")


def normalized(features):
    return torch.nn.functional.normalize(features).detach().numpy()


@pytest.fixture(scope="module")
def mclip_folder(tmp_path_factory):
    return tiny_models.mclip(tmp_path_factory.mktemp("hub") / "XLM-Roberta-Large-Vit-B-32")


@pytest.fixture(scope="module")
def st_folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("hub")
    images = tiny_models.sentence_transformer_images(root / "clip-ViT-B-32")
    return tiny_models.sentence_transformer(root / "clip-ViT-B-32-multilingual-v1"), images


def test_mclip_equals_the_published_forward_pass(mclip_folder, clip_folder):
    """Written anew from the description of M-CLIP: the mean of XLM-R's last states over real tokens, then a linear map."""
    weights = torch.load(mclip_folder / "pytorch_model.bin", weights_only=True)
    network = transformers.XLMRobertaModel(tiny_models._wide_heads()).eval()
    network.load_state_dict({key[12:]: value for key, value in weights.items() if key.startswith("transformer.")})
    tokenizer = transformers.AutoTokenizer.from_pretrained(mclip_folder)
    inputs = tokenizer([*TEXTS, LONG * 3], padding=True, truncation=True, max_length=512, return_tensors="pt")
    states, mask = network(**inputs)[0], inputs["attention_mask"][:, :, None]
    mean = (states * mask).sum(1) / mask.sum(1)
    expected = normalized(mean @ weights["LinearTransformation.weight"].T + weights["LinearTransformation.bias"])

    backbone = load_backbone(f"mclip:{mclip_folder},image=hf:{clip_folder}", device="cpu")
    np.testing.assert_allclose(backbone.encode_texts([*TEXTS, LONG * 3]), expected, atol=1e-5)
    images = load_backbone(f"hf:{clip_folder}", device="cpu").encode_images(PICTURES)
    np.testing.assert_array_equal(backbone.encode_images(PICTURES), images)
    assert [len(vectors) for vectors in backbone.encode_tokens(TEXTS)] == [len(t.ids) for t in backbone.tokenize(TEXTS)]


def test_the_image_tower_of_mclip_is_told_by_its_name(mclip_folder, clip_folder, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("caplens.backbones.hf.find_model", lambda name, *_, **__: asked.append(name) or clip_folder)
    load_backbone(f"mclip:{mclip_folder}", device="cpu")
    assert asked == ["openai/clip-vit-base-patch32"]
    nameless = tmp_path / "model"
    mclip_folder.rename(nameless)
    try:
        with pytest.raises(InputError, match="does not say which model encodes the images"):
            load_backbone(f"mclip:{nameless}", device="cpu")
    finally:
        nameless.rename(mclip_folder)


def test_towers_that_do_not_fit_are_an_error(tmp_path, clip_folder):
    folder = tiny_models.mclip(tmp_path / "XLM-Roberta-Large-Vit-B-32", dim=17)
    with pytest.raises(InputError, match=r"17 dimensions and the image tower .* has 24"):
        load_backbone(f"mclip:{folder},image=hf:{clip_folder}", device="cpu").encode_texts(["a dog"])


def test_sentence_transformers_equal_the_librarys_own(st_folders):
    library = need("sentence_transformers")
    text, images = st_folders
    backbone = load_backbone(f"st:{text},image=st:{images}", device="cpu")
    model = library.SentenceTransformer(str(text), device="cpu")
    expected = model.encode([*TEXTS, LONG], normalize_embeddings=True)
    np.testing.assert_allclose(backbone.encode_texts([*TEXTS, LONG]), expected, atol=1e-5)
    assert backbone.tokenize([LONG])[0].cut
    assert backbone.max_tokens == 128
    pictures = library.SentenceTransformer(str(images), device="cpu").encode(PICTURES, normalize_embeddings=True)
    cosines = (backbone.encode_images(PICTURES) * pictures).sum(axis=1)
    assert cosines.min() > 0.9999
    assert [len(vectors) for vectors in backbone.encode_tokens(TEXTS)] == [len(t.ids) for t in backbone.tokenize(TEXTS)]


def test_a_clip_of_sentence_transformers_is_both_towers(st_folders):
    _, images = st_folders
    backbone = load_backbone(f"st:{images}", device="cpu")
    plain = load_backbone(f"hf:{images / '0_CLIPModel'}", device="cpu")
    np.testing.assert_array_equal(backbone.encode_texts(TEXTS), plain.encode_texts(TEXTS))
    np.testing.assert_array_equal(backbone.encode_images(PICTURES), plain.encode_images(PICTURES))
