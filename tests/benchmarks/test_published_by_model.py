"""Published values of other models than CLIP ViT-B/32: tables 8, 10 and 11 of PAC-S, 1 to 3 of multilingual CLIPScore."""

import pytest

from caplens.benchmarks.published_by_model import published_by_model
from caplens.benchmarks.registry import get_benchmark


def values_for(metric, model, benchmark, protocol, lang="en"):
    source, published = get_benchmark(benchmark).published_for(protocol, lang)
    signatures = {metric: f"{metric}|model:{model}@0123abcd|dtype:fp32"} if model else {metric: f"{metric}|tok:ptb"}
    return published_by_model(published, source, signatures, benchmark, protocol, lang)


@pytest.mark.parametrize(
    ("metric", "model", "benchmark", "protocol", "measure", "value"),
    [
        ("clipscore", "hf:openai/clip-vit-base-patch16", "flickr8k-expert", "expanded", "tau-c", 52.1),
        ("pacs", "hf:openai/clip-vit-large-patch14,weights=pac.pth", "flickr8k-cf", "mean", "tau-b", 36.8),
        ("emscore", "openclip:RN50x4/openai", "vatex-eval", "no-refs", "spearman", 28.8),
        ("refpacs-video", "openclip:ViT-L-14/laion2b_s32b_b82k", "vatex-eval", "9-refs", "tau-b", 40.3),
        ("refclipscore", "openclip:RN101/openai", "foil", "4-refs-8k", "accuracy", 95.2),
        ("refemscore", "openclip:hf-hub:laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "activitynet-foil", "accuracy", "accuracy", 93.0),
        ("pacs", "openclip:RN50/openai", "pascal-50s", "majority", "mean", 81.7),
        ("clipscore", "mclip:M-CLIP/XLM-Roberta-Large-Vit-L-14", "vicr", "mean", "spearman", 78.4),
        ("clipscore", "hf:openai/clip-vit-large-patch14", "flickr8k-expert", "expanded", "spearman", 64.6),
        ("clip+cider", "openclip:hf-hub:apple/DFN5B-CLIP-ViT-H-14-378", "flickr8k-cf", "mean", "tau-c", 18.4),
    ],
)
def test_a_model_of_the_paper_is_beside_its_own_values(metric, model, benchmark, protocol, measure, value):
    found = values_for(metric, model, benchmark, protocol)
    assert found.values[measure][metric] == value
    assert any(f"table {number}" in found.source for number in (1, 2, 8, 10, 11))
    assert found.same_model == ([metric] if "pacs" not in metric or "weights=" in model else [])


def test_a_model_is_never_beside_the_values_of_another():
    found = values_for("refclipscore", "hf:openai/clip-vit-base-patch16", "flickr8k-expert", "expanded")
    assert found.values["spearman"]["refclipscore"] is None


def test_other_models_keep_the_published_values():
    for model, same in (
        ("hf:openai/clip-vit-base-patch32", ["clipscore"]),
        ("hf:google/siglip-base-patch16-224", []),
        ("caplens-mini", []),
    ):
        found = values_for("clipscore", model, "flickr8k-expert", "expanded")
        assert found.values["tau-c"]["clipscore"] == 51.2
        assert found.same_model == same


def test_metrics_without_a_model_have_values_in_other_languages():
    assert values_for("cider", None, "vicr", "mean", "ko").values["tau-b"]["cider"] == 58.1
    model = "openclip:hf-hub:laion/CLIP-ViT-H-14-frozen-xlm-roberta-large-laion5B-s13B-b90k"
    assert values_for("refclipscore", model, "vicr", "mean", "ru").values["spearman"]["refclipscore"] == 82.2


@pytest.mark.parametrize(
    ("benchmark", "protocol", "lang", "measure", "value"),
    [
        ("valse", "valid", "en", "mean", 67.6),
        ("valse", "valid", "ko", "existence", 56.4),
        ("valse", "valid", "pt", "counting-adversarial", 62.1),
        ("valse", "valid", "nl", "foil-it", 92.9),
        ("xvnli", "order", "sw", "accuracy 1", 67.1),
        ("xvnli", "order", "tr", "accuracy 3", 44.1),
        ("marvl", "best against least", "en", "accuracy 2", 81.4),
        ("marvl", "best against least", "ta", "accuracy 1", 85.7),
    ],
)
def test_values_of_multilingual_benchmarks_are_those_of_their_model_alone(benchmark, protocol, lang, measure, value):
    model = "openclip:hf-hub:laion/CLIP-ViT-H-14-frozen-xlm-roberta-large-laion5B-s13B-b90k"
    assert values_for("clipscore", model, benchmark, protocol, lang).values[measure]["clipscore"] == value
    assert "clipscore" not in values_for("clipscore", "hf:openai/clip-vit-base-patch32", benchmark, protocol, lang).values.get(
        measure, {}
    )


def test_lexical_metrics_have_values_on_translations():
    assert values_for("cider", None, "composite", "correctness", "es").values["tau-c"]["cider"] == 37.7
    assert values_for("bleu4", None, "flickr8k-expert", "expanded", "fr").values["tau-c"]["bleu4"] == 30.2
