"""Every family of transformers: a tiny model, saved as on the hub, gives the vectors that transformers gives."""

import shutil

import numpy as np
import pytest
import tiny_models
from extras import need
from tiny_models import LONG, PICTURES, TEXTS

from caplens.backbones import load_backbone
from caplens.errors import InputError

transformers = need("transformers")
torch = need("torch")

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
    from safetensors.torch import load_file, save_file

    copy = shutil.copytree(clip_folder, tmp_path / "copy")
    weights = load_file(copy / "model.safetensors")
    del weights["visual_projection.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="1 weights of the model are missing, such as visual_projection"):
        load_backbone(f"hf:{copy}", device="cpu").encode_texts(["a dog"])


def test_a_model_of_another_type_is_refused(clip_folder, tmp_path):
    shutil.copytree(clip_folder, tmp_path / "bert")
    tiny_models.save_json(tmp_path / "bert", config={"model_type": "bert"})
    with pytest.raises(InputError, match="models of type 'bert' are not supported"):
        load_backbone(f"hf:{tmp_path / 'bert'}", device="cpu").encode_texts(["a dog"])


REMOTE = """
import torch
from pathlib import Path
from transformers import PretrainedConfig, PreTrainedModel

class TinyConfig(PretrainedConfig):
    model_type = "tiny-remote"
    hidden_size = 24
    max_position_embeddings = 77

class TinyModel(PreTrainedModel):
    config_class = TinyConfig
    def __init__(self, config):
        super().__init__(config)
        self.words = torch.nn.Embedding(600, 24)
        self.post_init()
    def get_text_features(self, input_ids, attention_mask):
        return self.words(input_ids).mean(1)
    def get_image_features(self, pixel_values):
        return pixel_values.mean((2, 3)).repeat(1, 8)
"""


def test_code_that_comes_with_a_model_is_run_only_when_asked(clip_folder, tmp_path):
    from safetensors.torch import save_file

    folder = shutil.copytree(clip_folder, tmp_path / "remote")
    (folder / "tiny.py").write_text(REMOTE, encoding="ascii")
    classes = {"AutoConfig": "tiny.TinyConfig", "AutoModel": "tiny.TinyModel"}
    tiny_models.save_json(folder, config={"model_type": "tiny-remote", "auto_map": classes})
    save_file({"words.weight": torch.randn(600, 24)}, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="trust_remote_code=True runs it"):
        load_backbone(f"hf:{folder}", device="cpu").encode_texts(["a dog"])
    trusted = load_backbone(f"hf:{folder}", device="cpu", trust_remote_code=True)
    assert trusted.encode_texts(["a dog"]).shape == (1, 24)
    assert trusted.encode_images(PICTURES).shape == (4, 24)
    before = trusted.fingerprint
    (folder / "tiny.py").write_text(REMOTE + "\n# another version\n", encoding="ascii")
    assert load_backbone(f"hf:{folder}", device="cpu", trust_remote_code=True).fingerprint != before


def test_copies_of_the_weights_do_not_change_the_fingerprint(clip_folder, tmp_path):
    folder = shutil.copytree(clip_folder, tmp_path / "copy")
    (folder / "pytorch_model.bin").write_bytes(b"the same in another format")
    (folder / "README.md").write_text("about it", encoding="ascii")
    assert load_backbone(f"hf:{folder}").fingerprint == load_backbone(f"hf:{clip_folder}").fingerprint
