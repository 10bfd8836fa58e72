"""PAC-S checkpoints: full CLIP state dicts in OpenAI's naming."""

import numpy as np
import pytest
import tiny_models
from extras import need
from tiny_models import PICTURES, TEXTS

from caplens.backbones import load_backbone
from caplens.errors import InputError

torch = need("torch")
open_clip = need("open_clip")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """An open_clip model, whose names of weights are OpenAI's, and the same in transformers' layout."""

    return tiny_models.clip_in_both_libraries(tmp_path_factory.mktemp("hub"))


def test_a_checkpoint_gives_the_same_images_in_both_libraries(models, tmp_path):
    native, folder, state = models
    openai = {"input_resolution": torch.tensor(32), "context_length": torch.tensor(77), "vocab_size": torch.tensor(49408)}
    torch.save({"state_dict": {**state, **openai}, "epoch": 3}, tmp_path / "clip_ViT-B-32.pth")
    names = (f"openclip:{native}", f"hf:{folder}")
    backbones = [load_backbone(f"{name},weights={tmp_path}/clip_ViT-B-32.pth", device="cpu") for name in names]
    first, second = (backbone.encode_images(PICTURES) for backbone in backbones)
    assert (first * second).sum(axis=1).min() > 0.9999
    ids = [[49406, 320, 1929, 49407], [49406, 5, 6, 7, 8, 49407]]
    np.testing.assert_allclose(*(backbone.encode_ids(ids) for backbone in backbones), atol=1e-5)
    plain = load_backbone(f"openclip:{native}", device="cpu")
    assert plain.fingerprint != backbones[0].fingerprint
    assert not np.allclose(plain.encode_images(PICTURES), first, atol=1e-3)
    np.testing.assert_allclose(plain.encode_texts(TEXTS), backbones[0].encode_texts(TEXTS), atol=1e-6)


def test_a_checkpoint_that_changes_nothing_is_an_error(models, tmp_path):
    native, _, _ = models
    torch.save({"state_dict": open_clip.create_model(f"local-dir:{native}").state_dict()}, tmp_path / "same.pth")
    with pytest.raises(InputError, match="changes no weight that scores depend on"):
        load_backbone(f"openclip:{native},weights={tmp_path / 'same.pth'}", device="cpu").encode_texts(TEXTS)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda state: {f"model.{key}": value for key, value in state.items()}, "do not exist in the model"),
        (lambda state: {**state, "logit_scale": torch.zeros(3)}, "model of another size"),
        (lambda state: {"nothing": 3}, "no weights in this file"),
    ],
)
def test_a_checkpoint_of_another_model_is_an_error(models, tmp_path, change, sentence):
    native, _, state = models
    torch.save({"state_dict": change(state)}, tmp_path / "other.pth")
    with pytest.raises(InputError, match=sentence):
        load_backbone(f"openclip:{native},weights={tmp_path / 'other.pth'}", device="cpu").encode_texts(TEXTS)


def test_adapters_are_merged_into_their_weights(models, tmp_path):
    """As PAC-S++ has them: of rank 4, scaled by a quarter."""
    native, folder, state = models
    rng, rank = torch.Generator().manual_seed(0), 4
    adapted, merged = {}, dict(state)
    for key, weight in state.items():
        width = weight[0].numel() if weight.ndim > 1 else 0
        if key.endswith("attn.in_proj_weight"):
            name, rows, columns, ranks = f"{key}_", len(weight), width, rank
        elif key.endswith(("out_proj.weight", "c_fc.weight", "c_proj.weight")) and weight.ndim == 2:
            name, rows, columns, ranks = key.removesuffix("weight"), len(weight), width, rank
        elif key == "visual.conv1.weight":
            side = weight.shape[-1]
            name, rows, columns, ranks = "visual.conv1.", len(weight) * side, weight.shape[1] * side, rank * side
        else:
            adapted[key] = weight
            continue
        down, up = torch.randn(ranks, columns, generator=rng), torch.randn(rows, ranks, generator=rng) / 50
        adapted |= {f"{name}lora_A": down, f"{name}lora_B": up}
        adapted["visual.conv1.conv.weight" if key == "visual.conv1.weight" else key] = weight
        merged[key] = weight + (up @ down).reshape(weight.shape) / rank
    assert len(adapted) > len(merged)
    for name, content in (("adapted", adapted), ("merged", merged)):
        torch.save({"state_dict": content}, tmp_path / f"{name}.pth")
    for model in (f"openclip:{native}", f"hf:{folder}"):
        first, second = (load_backbone(f"{model},weights={tmp_path / name}.pth", device="cpu") for name in ("adapted", "merged"))
        np.testing.assert_allclose(first.encode_images(PICTURES), second.encode_images(PICTURES), atol=1e-5)
        np.testing.assert_allclose(first.encode_ids([[49406, 320, 49407]]), second.encode_ids([[49406, 320, 49407]]), atol=1e-5)
    del adapted[next(key for key in adapted if key.endswith("lora_B"))]
    torch.save({"state_dict": adapted}, tmp_path / "half.pth")
    with pytest.raises(InputError, match="fits no weight"):
        load_backbone(f"hf:{folder},weights={tmp_path / 'half.pth'}", device="cpu").encode_texts(TEXTS)


def test_a_checkpoint_for_longer_texts_makes_room_for_them(models, tmp_path):
    """As Long-CLIP has them: two tables, of which the first holds for 20 positions."""
    _, folder, state = models
    first, rest = (
        torch.randn(248, state["positional_embedding"].shape[1], generator=torch.Generator().manual_seed(n)) for n in (0, 1)
    )
    torch.save({**state, "positional_embedding": first, "positional_embedding_res": rest}, tmp_path / "long.pt")
    backbone = load_backbone(f"hf:{folder},weights={tmp_path / 'long.pt'}", device="cpu")
    assert backbone.max_tokens == 248
    table = backbone.loaded.network.text_model.embeddings.position_embedding.weight
    torch.testing.assert_close(table, torch.cat([first[:20], rest[20:]]))
    ids = backbone.tokenize(["a dog " * 200])[0].ids
    assert len(ids) == 248
    assert np.isfinite(backbone.encode_ids([ids])).all()


def test_a_checkpoint_that_would_run_code_is_refused(models, tmp_path):
    import pickle

    class Evil:
        def __reduce__(self):
            return (tmp_path.joinpath("ran").touch, ())

    native, _, _ = models
    (tmp_path / "evil.pth").write_bytes(pickle.dumps({"state_dict": Evil()}))
    with pytest.raises(InputError, match="damaged, or hold more than weights"):
        load_backbone(f"openclip:{native},weights={tmp_path / 'evil.pth'}", device="cpu").encode_texts(TEXTS)
    assert not (tmp_path / "ran").exists()
