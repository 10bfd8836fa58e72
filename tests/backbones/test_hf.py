"""Every family of transformers: a tiny model, saved as on the hub, gives the vectors that transformers gives."""

import numpy as np
import pytest
import tiny_models
from tiny_models import LONG, PICTURES, TEXTS

from caplens.backbones import load_backbone
from caplens.errors import InputError

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

PADDED = ["siglip", "siglip2", "naflex"]
LIMITS = {"clip": 77, "altclip": 77, "metaclip2": 77, "chinese_clip": 52, "siglip": 64, "siglip2": 64, "naflex": 64}


@pytest.fixture(scope="module", params=LIMITS)
def model(request, tmp_path_factory):
    folder = getattr(tiny_models, request.param)(tmp_path_factory.mktemp("hub") / request.param)
    return request.param, folder


def library_vectors(folder, kind, texts):
    """What the documentation of transformers does."""
    network = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if kind in ("siglip2", "naflex"):
        texts = [text.lower() for text in texts]
    padding = "max_length" if kind in PADDED else True
    inputs = tokenizer(texts, padding=padding, truncation=True, max_length=LIMITS[kind], return_tensors="pt")
    if kind in PADDED:
        inputs.pop("attention_mask", None)
    processor = tiny_models.library_images(folder)
    with torch.no_grad():
        pixels = processor(PICTURES, return_tensors="pt")
        image = network.get_image_features(**pixels)
        # transformers 4 has a fault in this method of Chinese-CLIP, and none in the model's own forward pass.
        text = network(**inputs, **pixels).text_embeds if kind == "chinese_clip" else network.get_text_features(**inputs)
    return (torch.nn.functional.normalize(getattr(f, "pooler_output", f)).numpy() for f in (image, text))


def test_vectors_equal_the_librarys_own(model):
    kind, folder = model
    backbone = load_backbone(f"hf:{folder}", device="cpu")
    image, text = library_vectors(folder, kind, [*TEXTS, LONG])
    np.testing.assert_allclose(backbone.encode_images(PICTURES), image, atol=1e-5)
    np.testing.assert_allclose(backbone.encode_texts([*TEXTS, LONG]), text, atol=1e-5)
    assert backbone.dim == image.shape[1] == text.shape[1]


def test_a_long_text_is_cut_with_its_end_marker_kept(model):
    kind, folder = model
    backbone = load_backbone(f"hf:{folder}", device="cpu")
    short, long = backbone.tokenize(["a dog", LONG])
    assert (short.cut, long.cut) == (False, True)
    assert len(long.ids) == backbone.max_tokens == LIMITS[kind]
    assert long.ids[-1] == short.ids[-1]


def test_vectors_do_not_depend_on_the_rest_of_the_batch(model):
    backbone = load_backbone(f"hf:{model[1]}", device="cpu")
    together = backbone.encode_texts(TEXTS)
    np.testing.assert_allclose(together, np.concatenate([backbone.encode_texts([text]) for text in TEXTS]), atol=1e-5)


def test_tokens_have_vectors_of_their_own(model):
    backbone = load_backbone(f"hf:{model[1]}", device="cpu")
    found = backbone.encode_tokens(TEXTS)
    assert [len(vectors) for vectors in found] == [len(tokens.ids) for tokens in backbone.tokenize(TEXTS)]
    np.testing.assert_allclose(np.linalg.norm(found[0], axis=1), 1, atol=1e-5)
    if model[0] == "clip":
        np.testing.assert_allclose([vectors[-1] for vectors in found], backbone.encode_texts(TEXTS), atol=1e-5)


def test_the_fingerprint_tells_weights_and_number_formats_apart(clip_folder, tmp_path):
    import shutil

    from safetensors.torch import load_file, save_file

    copy = shutil.copytree(clip_folder, tmp_path / "copy")
    same = load_backbone(f"hf:{copy}", device="cpu").fingerprint
    assert same == load_backbone(f"hf:{clip_folder}", device="cpu").fingerprint
    assert same != load_backbone(f"hf:{copy}", device="cpu", dtype="bf16").fingerprint
    weights = load_file(copy / "model.safetensors")
    weights["text_projection.weight"][0, 0] += 1e-3
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    assert same != load_backbone(f"hf:{copy}", device="cpu").fingerprint


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_half_precision_is_close(clip_folder, dtype):
    exact, rough = (load_backbone(f"hf:{clip_folder}", device="cpu", dtype=kind) for kind in ("fp32", dtype))
    for encode, items in (("encode_images", PICTURES), ("encode_texts", TEXTS)):
        cosines = (getattr(exact, encode)(items) * getattr(rough, encode)(items)).sum(axis=1)
        assert cosines.min() > 0.999


def test_weights_that_are_missing_are_an_error(clip_folder, tmp_path):
    import shutil

    from safetensors.torch import load_file, save_file

    copy = shutil.copytree(clip_folder, tmp_path / "copy")
    weights = load_file(copy / "model.safetensors")
    del weights["visual_projection.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="1 weights of the model are missing, visual_projection"):
        load_backbone(f"hf:{copy}", device="cpu").encode_texts(["a dog"])


def test_a_model_of_another_type_is_refused(clip_folder, tmp_path):
    tiny_models.save_json(tmp_path / "bert", config={"model_type": "bert"})
    with pytest.raises(InputError, match="models of type 'bert' are not known"):
        load_backbone(f"hf:{tmp_path / 'bert'}", device="cpu").encode_texts(["a dog"])
