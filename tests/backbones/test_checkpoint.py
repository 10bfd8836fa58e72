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
