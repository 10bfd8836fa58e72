"""Names of models, where their files are found, and what is said when they are not."""

import hashlib
from pathlib import PurePosixPath

import pytest
import tiny_models
from extras import need

from caplens.backbones import FAMILIES, PRESETS, load_backbone
from caplens.backbones.hub import HF, OPEN_CLIP, ST, find_model, fingerprint, model_files
from caplens.backbones.mini import DEFAULT
from caplens.backbones.names import ModelName
from caplens.errors import CaplensError, InputError

need("huggingface_hub")


def test_a_name_has_a_family_a_model_and_options():
    name = ModelName.parse("hf:openai/clip,revision=abc,weights=a b.pth", FAMILIES)
    assert (name.family, name.model, name.options) == ("hf", "openai/clip", {"revision": "abc", "weights": "a b.pth"})
    nested = ModelName.parse("mclip:M-CLIP/X,image=openclip:ViT-B-16-plus-240/laion400m_e32", FAMILIES)
    assert nested.options == {"image": "openclip:ViT-B-16-plus-240/laion400m_e32"}


@pytest.mark.parametrize("name", ["openai/clip", "clip", "", "hf:", "https://example.org/x"])
def test_what_is_no_name_is_explained(name):
    with pytest.raises(InputError, match=r"is not a model name: a name is caplens-mini, .* or starts with hf:"):
        load_backbone(name)


def test_unknown_options_are_explained():
    with pytest.raises(InputError, match="have no option 'image'; choose from: revision, weights"):
        load_backbone("hf:a/b,image=c")


def test_every_preset_has_a_name_that_is_understood():
    assert len(PRESETS) == len({preset.name for preset in PRESETS})
    assert sum(preset.source == "table 1" for preset in PRESETS) == 18
    built_in = [preset for preset in PRESETS if preset.name.startswith(DEFAULT)]
    assert PRESETS[: len(built_in)] == (*built_in,)
    assert {preset.name for preset in built_in} == {DEFAULT, f"{DEFAULT}@1", "caplens-mini-use"}
    for preset in PRESETS[len(built_in) :]:
        ModelName.parse(preset.name, FAMILIES)
        assert int(preset.parameters) > 0
        assert float(preset.download) > 0
        assert ("non-commercial" in preset.licence) == ("NC" in preset.licence)


def test_a_model_is_found_in_the_hubs_cache(tmp_path, monkeypatch):
    need("transformers")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    folder = tiny_models.in_hub_cache(tmp_path, "openai/clip-vit-base-patch32", tiny_models.clip)
    assert find_model("openai/clip-vit-base-patch32", HF, offline=True) == folder
    backbone = load_backbone("hf:openai/clip-vit-base-patch32", device="cpu", offline=True)
    assert backbone.encode_texts(["a dog"]).shape == (1, 24)
    assert backbone.licence == "MIT"


def test_a_model_may_lie_in_a_folder_called_runs(tmp_path):
    """Inside a model, a folder of that name is of training and no part of it; around one, it is where we put ours."""
    need("transformers")
    folder = tiny_models.clip(tmp_path / "runs" / "tuned" / "model")
    (folder / "runs").mkdir()
    (folder / "runs" / "model.safetensors").write_bytes(b"")
    assert find_model(str(folder), HF) == folder
    assert {path.parent for path in model_files(folder, HF)} == {folder}


def test_offline_with_nothing_cached_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError) as error:
        load_backbone("hf:openai/clip-vit-base-patch32", offline=True)
    assert "not on this machine, and nothing may be downloaded" in str(error.value)
    assert "hf download openai/clip-vit-base-patch32 --local-dir FOLDER" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_hub_that_cannot_be_reached_is_one_sentence(tmp_path, monkeypatch):
    import huggingface_hub

    def unreachable(*_, **__):
        raise ConnectionError("no route to host\nand more")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", unreachable)
    with pytest.raises(CaplensError, match=r"the hub cannot be reached \(no route to host\)"):
        load_backbone("hf:openai/clip-vit-base-patch32")


def test_a_folder_that_is_not_there_is_explained():
    with pytest.raises(InputError, match="there is no such model folder"):
        load_backbone("hf:/no/such/folder")


def test_hashes_of_files_are_those_of_their_content(tmp_path):
    weights = tmp_path / "weights.bin"
    weights.write_bytes(b"one")
    first = fingerprint([weights], "fact")
    assert first == fingerprint([weights], "fact")
    assert first != fingerprint([weights], "another fact")
    weights.write_bytes(b"two and more")
    second = fingerprint([weights], "fact")
    assert first != second
    remembered = {path.read_text() for path in (tmp_path / "cache" / "hashes").iterdir()}
    assert remembered == {hashlib.sha256(content).hexdigest() for content in (b"one", b"two and more")}


def test_only_the_files_that_are_read_are_downloaded():
    """As the files of some models lie on the hub."""

    def chosen(layout, *names):
        return sorted(map(str, layout.choose([PurePosixPath(name) for name in names])))

    chinese = ["config.json", "pytorch_model.bin", "vocab.txt"]
    assert chosen(HF, *chinese, "clip_cn_vit-b-16.pt", "README.md", "model.fp16.safetensors") == chinese
    assert chosen(HF, "model.safetensors", "pytorch_model.bin", "onnx/config.json", "flax_model.msgpack") == ["model.safetensors"]
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    assert chosen(HF, *shards, "model.safetensors.index.json") == [*shards, "model.safetensors.index.json"]
    assert chosen(OPEN_CLIP, "open_clip_pytorch_model.bin", "model.safetensors", "pytorch_model.bin") == [
        "open_clip_pytorch_model.bin"
    ]
    assert chosen(ST, "model.safetensors", "pytorch_model.bin", "2_Dense/pytorch_model.bin", "2_Dense/config.json") == [
        "2_Dense/config.json", "2_Dense/pytorch_model.bin", "model.safetensors",
    ]  # fmt: skip
    assert chosen(HF, "modeling.py") == []
    assert chosen(HF._replace(code=True), "modeling.py") == ["modeling.py"]


def test_what_is_missing_from_the_cache_is_downloaded(tmp_path, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    folder = tiny_models.in_hub_cache(tmp_path, "org/partly", tiny_models.clip)
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(InputError, match=r"preprocessor_config.json or processor_config.json, which is part of it, is not on"):
        find_model("org/partly", HF, offline=True)
    cached = huggingface_hub.snapshot_download

    def snapshot_download(name, *, allow_patterns=None, local_files_only=False, **given):
        if allow_patterns:
            assert "preprocessor_config.json" in allow_patterns
            tiny_models.save_json(folder, preprocessor_config=tiny_models.CLIP_IMAGES)
        return cached(name, local_files_only=True)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    listed = [*(path.name for path in folder.iterdir()), "preprocessor_config.json"]
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", lambda *_, **__: listed)
    assert find_model("org/partly", HF) == folder


def test_the_fingerprint_does_not_depend_on_where_files_lie(tmp_path):
    made = []
    for place in ("a", "z"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "weights.bin").write_bytes(b"weights")
        (tmp_path / "config.json").write_bytes(b"{}")
        made.append(fingerprint([tmp_path / place / "weights.bin", tmp_path / "config.json"]))
    assert made[0] == made[1]


def test_a_folder_has_no_revisions(clip_folder):
    with pytest.raises(InputError, match="this is a folder, which has no revisions"):
        load_backbone(f"hf:{clip_folder},revision=abc")


def test_a_device_that_is_none_is_refused_at_once(clip_folder):
    with pytest.raises(InputError, match="unknown device 'tpu'; choose from"):
        load_backbone(f"hf:{clip_folder}", device="tpu")
