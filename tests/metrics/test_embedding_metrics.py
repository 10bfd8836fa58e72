"""CLIPScore and its kin, against an independent computation from the same vectors and against torchmetrics."""

import numpy as np
import pytest
from extras import need
from fake_backbone import FakeBackbone
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import PICTURES, library_images, picture

import caplens as package
from caplens.backbones import load_backbone
from caplens.data import Sample
from caplens.data.media import MissingImage
from caplens.embed import Engine
from caplens.errors import InputError
from caplens.metrics import get_metric
from caplens.metrics.clipscore import clipscore, refclipscore

WORDS = "a dog runs on grass red ball cat with the man woman in park two".split()


def made_up_samples(count: int, seed: int = 0) -> list[Sample]:
    random = np.random.default_rng(seed)

    def text():
        return " ".join(random.choice(WORDS, random.integers(1, 9)))

    return [
        Sample(str(number), text(), tuple(text() for _ in range(random.integers(1, 5))), image=picture(int(random.integers(9))))
        for number in range(count)
    ]


def reference_scores(samples, encode_images, encode_texts, prompt, w):
    """CLIPScore and RefCLIPScore of one pair after the other, straight from the equations."""
    clip, ref = [], []
    for sample in samples:
        v = encode_images([sample.image])[0].astype(float)
        c = encode_texts([prompt + sample.caption])[0].astype(float)
        rs = [encode_texts([prompt + text])[0].astype(float) for text in sample.references]
        first = w * max(float(c @ v) / (np.linalg.norm(c) * np.linalg.norm(v)), 0.0)
        second = max(max(float(c @ r) / (np.linalg.norm(c) * np.linalg.norm(r)) for r in rs), 0.0)
        clip.append(first)
        ref.append(2 * first * second / (first + second) if first + second > 0 else 0.0)
    return clip, ref


@pytest.mark.parametrize(("names", "w"), [(("clipscore", "refclipscore"), 2.5), (("pacs", "refpacs"), 2.0)])
def test_scores_equal_the_equations(names, w):
    samples = made_up_samples(60)
    backbone = FakeBackbone()
    results = package.score(samples, list(names), model=Engine(backbone, batch_size=7), resamples=0)
    clip, ref = reference_scores(samples, backbone.encode_images, backbone.encode_texts, "A photo depicts ", w)
    np.testing.assert_allclose(results[names[0]].values, clip, atol=1e-6)
    np.testing.assert_allclose(results[names[1]].values, ref, atol=1e-6)
    assert results[names[0]].corpus == pytest.approx(np.mean(clip))
    assert min(clip) == 0


def test_scores_of_a_real_model_equal_the_equations(clip_folder):
    samples = made_up_samples(12)
    backbone = load_backbone(f"hf:{clip_folder}", device="cpu")
    results = package.score(samples, ["clipscore", "refclipscore"], model=Engine(backbone), resamples=0)
    clip, ref = reference_scores(samples, backbone.encode_images, backbone.encode_texts, "A photo depicts ", 2.5)
    np.testing.assert_allclose(results["clipscore"].values, clip, atol=1e-6)
    np.testing.assert_allclose(results["refclipscore"].values, ref, atol=1e-6)


def test_torchmetrics_gives_the_same_cosine(clip_folder):
    """Its CLIPScore is 100 times the cosine. Given a callable, since its own loading breaks on transformers 5."""
    torch = need("torch")
    multimodal = need("torchmetrics.multimodal.clip_score")
    transformers = need("transformers")

    class Plain(torch.nn.Module):
        """What torchmetrics expects of a model: tensors, not objects."""

        def __init__(self):
            super().__init__()
            self.inner = transformers.CLIPModel.from_pretrained(clip_folder)
            self.config = self.inner.config

        def get_image_features(self, pixels):
            return getattr(found := self.inner.get_image_features(pixels), "pooler_output", found)

        def get_text_features(self, ids, mask):
            return getattr(found := self.inner.get_text_features(ids, mask), "pooler_output", found)

    tokenizer = transformers.AutoTokenizer.from_pretrained(clip_folder)
    images = library_images(clip_folder)

    def processor(text=None, images_=None, **given):
        pixels = given.get("images", images_)
        found = {} if text is None else dict(tokenizer(text, return_tensors="pt", padding=True))
        return found | ({} if pixels is None else dict(images(pixels, return_tensors="pt")))

    metric = multimodal.CLIPScore(model_name_or_path=lambda: (Plain().eval(), processor))
    texts = ["a dog runs", "red ball on the grass", "A cat", "two men in the park"]
    results = package.score(
        [Sample(str(i), text, image=image) for i, (text, image) in enumerate(zip(texts, PICTURES, strict=True))],
        ["clipscore"], model=load_backbone(f"hf:{clip_folder}", device="cpu"), prompt="", resamples=0,
    )  # fmt: skip
    for row, (text, image) in enumerate(zip(texts, PICTURES, strict=True)):
        peer = metric(torch.from_numpy(np.array(image)).permute(2, 0, 1), text).item() / 100
        metric.reset()
        assert results["clipscore"].values[row] / 2.5 == pytest.approx(max(peer, 0), abs=1e-5)


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1))
def test_refclipscore_lies_between_its_parts_and_is_zero_with_either(pairs):
    to_image, to_reference = np.array(pairs).T
    clip, both, best = clipscore(to_image), refclipscore(to_image, to_reference), np.maximum(to_reference, 0)
    assert (both >= np.minimum(clip, best) - 1e-12).all()
    assert (both <= np.maximum(clip, best) + 1e-12).all()
    assert (both[(clip == 0) | (best == 0)] == 0).all()


def test_the_prompt_is_the_authors_the_users_or_none():
    samples = [Sample("1", "dog", image=PICTURES[0]), Sample("2", "Hund", image=PICTURES[0], lang="de")]
    backbone = FakeBackbone()

    def expected(*texts):
        return clipscore(backbone.encode_texts(texts) @ backbone.encode_images(PICTURES[:1])[0])

    def found(metric="clipscore", **options):
        result = package.score(samples, [metric], model=Engine(backbone), resamples=0, **options)[metric]
        return result.values, result.signature

    values, signature = found()
    np.testing.assert_allclose(values, expected("A photo depicts dog", "Hund"), atol=1e-6)
    assert "|prompt:none[de],A photo depicts [en]|" in signature
    values, signature = found(prompt="")
    np.testing.assert_allclose(values, expected("dog", "Hund"), atol=1e-6)
    assert "|prompt:none|" in signature
    values, signature = found(prompt={"de": "Ein Foto zeigt "})
    np.testing.assert_allclose(values, expected("A photo depicts dog", "Ein Foto zeigt Hund"), atol=1e-6)
    values, signature = found(prompt={"en": "", "de": "Ein|Foto "})
    np.testing.assert_allclose(values, expected("dog", "Ein|Foto Hund"), atol=1e-6)
    assert r"|prompt:Ein\|Foto [de],none[en]|" in signature
    values, signature = found(prompt="x ")
    np.testing.assert_allclose(values, expected("x dog", "x Hund"), atol=1e-6)
    assert "|prompt:x |" in signature
    values, signature = found("mcs")
    np.testing.assert_allclose(values, expected("dog", "Hund"), atol=1e-6)
    assert "mcs|model:fake:model@fafafafa|prompt:none|w:2.5|dtype:fp32|truncated:0|v:" in signature


def test_clip_and_cider_are_averaged():
    samples = made_up_samples(30)
    engine = Engine(FakeBackbone())
    results = package.score(samples, ["clipscore", "cider", "clip+cider"], model=engine, resamples=0)
    np.testing.assert_allclose(results["clip+cider"].values, (results["clipscore"].values + results["cider"].values) / 2)
    assert results["clip+cider"].signature.startswith("clip+cider|mean:0.5*clipscore+0.5*cider|clipscore|model:")
    assert "|cider-d|tok:ptb|" in results["clip+cider"].signature


def test_texts_that_were_cut_are_counted_by_language():
    long = "word " * 20
    samples = [
        Sample("1", long, ("short",), image=PICTURES[0], lang="en"),
        Sample("2", "short", (long,), image=PICTURES[0], lang="de"),
        Sample("3", "short", ("short",), image=PICTURES[0], lang="de"),
        Sample("4", long, (long,), image=PICTURES[0], lang="de"),
    ]
    results = package.score(samples, ["clipscore", "refclipscore"], model=Engine(FakeBackbone()), resamples=0)
    assert results.truncated == {"de": 2, "en": 1}
    assert results.to_dict()["counts"]["truncated"] == 3
    assert results.to_dict()["truncated"] == {"de": 2, "en": 1}
    assert "truncated:2" in results["clipscore"].signature
    assert "truncated:3" in results["refclipscore"].signature
    assert any("overlong=split" in warning for warning in results.warnings)


def test_images_that_cannot_be_read_get_null_and_a_reason(tmp_path):
    (tmp_path / "text.jpg").write_text("no picture", encoding="ascii")
    samples = [
        Sample("good", "a dog", ("a dog",), image=PICTURES[0]),
        Sample("none", "a dog", ("a dog",)),
        Sample("missing", "a dog", ("a dog",), image=str(tmp_path / "missing.jpg")),
        Sample("text", "a dog", ("a dog",), image=tmp_path / "text.jpg"),
        Sample("outside", "a dog", ("a dog",), image=MissingImage("it may not be opened")),
    ]
    results = package.score(samples, ["clipscore", "cider"], model=Engine(FakeBackbone()), resamples=10)
    assert np.isnan(results["clipscore"].values).tolist() == [False, True, True, True, True]
    assert not np.isnan(results["cider"].values).any()
    assert results.errors == {
        "none": "there is no image",
        "missing": f"there is no file {tmp_path / 'missing.jpg'}",
        "text": f"{tmp_path / 'text.jpg'} is not an image that can be read",
        "outside": "it may not be opened",
    }
    with pytest.raises(InputError, match="sample 'none': there is no image"):
        package.score(samples, ["clipscore"], model=Engine(FakeBackbone()), strict=True)
    with pytest.raises(InputError, match="sample 'missing': there is no file"):
        package.score(samples[:1] + samples[2:4], ["clipscore"], model=Engine(FakeBackbone()), strict=True)
    with pytest.raises(InputError, match=r"none of the 1 samples can be scored with clipscore: there is no file .*'images'"):
        package.score(samples[2:3], ["clipscore"], model=Engine(FakeBackbone()))


def test_windows_and_chunks_change_nothing(monkeypatch):
    samples = made_up_samples(50)
    whole = package.score(samples, ["refclipscore"], model=Engine(FakeBackbone()), resamples=0)["refclipscore"]
    monkeypatch.setattr("caplens.metrics.embedding._WINDOW", 7)
    monkeypatch.setattr("caplens.metrics.embedding._CHUNK", 3)
    monkeypatch.setattr("caplens.metrics.base._BATCH", 5)
    parts = package.score(samples, ["refclipscore"], model=Engine(FakeBackbone()), resamples=0)["refclipscore"]
    np.testing.assert_array_equal(parts.values, whole.values)
    assert parts.signature == whole.signature


def test_a_metric_by_name_computes_with_the_model_of_its_options():
    assert get_metric("clipscore").engine.backbone.name == "caplens-mini"
    assert get_metric("clipscore", model=Engine(FakeBackbone())).engine.backbone.name == "fake:model"
    with pytest.raises(InputError, match="a model is a name, a Backbone or an Engine"):
        get_metric("clipscore", model=5)


def test_the_weight_is_the_users_the_models_or_the_metrics():
    samples, engine = made_up_samples(3), Engine(FakeBackbone())
    own, doubled = (package.score(samples, "clipscore", model=engine, weight=weight, resamples=0) for weight in (None, 5.0))
    np.testing.assert_allclose(doubled["clipscore"].values, 2 * own["clipscore"].values)
    assert "|w:5|" in doubled["clipscore"].signature
    with pytest.raises(InputError, match="weight must be above 0"):
        package.score(samples, "clipscore", model=engine, weight=-1)


def test_pacs_on_a_plain_model_says_so():
    results = package.score(made_up_samples(3), ["pacs"], model=Engine(FakeBackbone()), resamples=0)
    assert any("only with one of its checkpoints" in warning for warning in results.warnings)


def test_cider_is_combined_with_refclipscore_and_by_any_share():
    samples, engine = made_up_samples(30), Engine(FakeBackbone())
    names = ["refclipscore", "clipscore", "cider", "refclip+cider", "clip+cider"]
    results = package.score(samples, names, model=engine, resamples=0, cider_share=0.2)
    for clip, both in (("refclipscore", "refclip+cider"), ("clipscore", "clip+cider")):
        np.testing.assert_allclose(results[both].values, 0.8 * results[clip].values + 0.2 * results["cider"].values)
    assert results["refclip+cider"].signature.startswith("refclip+cider|mean:0.8*refclipscore+0.2*cider|refclipscore|")
    with pytest.raises(package.InputError, match="between 0 and 1"):
        package.ScoringOptions(cider_share=2)
