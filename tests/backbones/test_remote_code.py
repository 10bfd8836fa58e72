"""Code that a model brings is not run unless the user says so, whatever stands on standard input."""

import io
import json

import pytest
from extras import need

need("torch")
need("transformers")

import tiny_models
import torch
from safetensors.torch import save_file

from caplens.backbones import load_backbone
from caplens.captioners import load_captioner
from caplens.errors import CaplensError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model with code of its own, which would leave a file behind."""
    ran = tmp_path / "ran"
    path = tmp_path / "model"
    path.mkdir()
    code = f"open({str(ran)!r}, 'w').close()\nfrom transformers import BertConfig as Config, BertModel as Model\n"
    (path / "code.py").write_text(code, encoding="utf-8")
    classes = {"AutoConfig": "code.Config", "AutoProcessor": "code.Processor"}
    classes |= dict.fromkeys(("AutoModel", "AutoModelForImageTextToText"), "code.Model")
    for name in ("config.json", "preprocessor_config.json"):
        (path / name).write_text(json.dumps({"model_type": "own", "auto_map": classes}), encoding="utf-8")
    (path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n", encoding="utf-8")
    (path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}), encoding="utf-8")
    weights = {"transformer.x": torch.zeros(2), "LinearTransformation.weight": torch.zeros(256, 2)}
    save_file({**weights, "LinearTransformation.bias": torch.zeros(256)}, path / "model.safetensors")
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n" * 100))
    yield path
    assert not ran.exists()


@pytest.mark.parametrize("name", ["hf:{}", "mclip:{},image=caplens-mini"])
def test_a_model(folder, name):
    with pytest.raises(CaplensError):
        load_backbone(name.format(folder), device="cpu").encode_texts(["a"])


def test_a_captioner(folder):
    with pytest.raises(CaplensError, match="cannot load this captioner"):
        load_captioner(str(folder), device="cpu")


def test_a_student(folder, tmp_path):
    from caplens.data import Sample
    from caplens.training.recipes.distill import DistillRecipe, train_distill
    from caplens.training.recipes.recipe import read_recipe
    from caplens.training.recipes.tuning import Job

    translations = [Sample(str(n), f"ein Hund {n}", lang="de", source=f"a dog {n}") for n in range(8)]
    job = Job("caplens-mini", tmp_path / "run", read_recipe(DistillRecipe, None, []), 0, "cpu")
    with pytest.raises(CaplensError, match="this encoder cannot be loaded"):
        train_distill(translations, str(folder), job)


def test_a_sentence_transformer(tmp_path):
    need("sentence_transformers")
    ran, folder = tmp_path / "ran", tmp_path / "model"
    (folder / "0_Own").mkdir(parents=True)
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w').close()\nclass Module: pass\n", encoding="utf-8")
    save_file({"x": torch.zeros(2)}, folder / "model.safetensors")
    for modules, dense in (
        ([{"idx": 0, "name": "0", "path": "0_Own", "type": "own.Module"}], {}),
        (
            [{"idx": 0, "name": "0", "path": "0_Own", "type": "sentence_transformers.models.Dense"}],
            {"activation_function": "os.abort"},
        ),
    ):
        (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
        (folder / "0_Own" / "config.json").write_text(json.dumps(dense), encoding="utf-8")
        with pytest.raises(CaplensError, match="which is code of another package or of its own"):
            load_backbone(f"st:{folder},image=caplens-mini", device="cpu").encode_texts(["a"])
    assert not ran.exists()


@pytest.mark.parametrize("kwargs", [{"trust_remote_code": True}, {}])
def test_an_open_clip_tokenizer(tmp_path, kwargs):
    """Its configuration may say that code is to be trusted, but it is not the configuration's to say."""
    need("open_clip")
    ran, folder = tmp_path / "ran", tmp_path / "model"
    tiny_models.open_clip_native(folder)
    (folder / "code.py").write_text(f"open({str(ran)!r}, 'w').close()\nclass Tokenizer: pass\n", encoding="utf-8")
    config = json.loads((folder / "open_clip_config.json").read_text(encoding="utf-8"))
    config["model_cfg"]["text_cfg"] |= {"hf_tokenizer_name": str(folder), "tokenizer_kwargs": kwargs}
    (folder / "open_clip_config.json").write_text(json.dumps(config), encoding="utf-8")
    auto_map = {"tokenizer_class": "Tokenizer", "auto_map": {"AutoTokenizer": ["code.Tokenizer", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(auto_map), encoding="utf-8")
    (folder / "vocab.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CaplensError):
        load_backbone(f"openclip:{folder}", device="cpu").encode_texts(["a"])
    assert not ran.exists()


def test_a_painter(folder):
    need("diffusers")
    from caplens.training.augment import load_painter

    (folder / "model_index.json").write_text(
        json.dumps(
            {"_class_name": "StableDiffusionPipeline", "unet": ["code", "Model"], "text_encoder": ["transformers", "AutoModel"]}
        ),
        encoding="utf-8",
    )
    with pytest.raises(CaplensError, match="diffusers cannot load this model"):
        load_painter(str(folder), steps=1, size=8, device="cpu")
