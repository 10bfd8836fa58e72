"""Published values of other models than CLIP ViT-B/32: those of tables 8, 10 and 11 of the PAC-S paper."""

import pytest

from caplens.benchmarks.published_by_model import with_values_by_model
from caplens.benchmarks.registry import get_benchmark


def values_for(metric, model, benchmark, protocol):
    source, published = get_benchmark(benchmark).published_for(protocol, "en")
    signatures = {metric: f"{metric}|model:{model}@0123abcd|dtype:fp32"}
    return with_values_by_model(published, source, signatures, benchmark, protocol)


@pytest.mark.parametrize(
    ("metric", "model", "benchmark", "protocol", "measure", "value"),
    [
        ("clipscore", "hf:openai/clip-vit-base-patch16", "flickr8k-expert", "expanded", "tau-c", 52.1),
        ("pacs", "hf:openai/clip-vit-large-patch14,weights=pac.pth", "flickr8k-cf", "mean", "tau-b", 36.8),
        ("emscore", "openclip:RN50x4/openai", "vatex-eval", "no-refs", "spearman", 28.8),
        ("refpacs-video", "openclip:ViT-L-14/laion2b_s32b_b82k", "vatex-eval", "9-refs", "tau-b", 40.3),
        ("refclipscore", "openclip:RN101/openai", "foil", "4-refs", "accuracy", 95.2),
        ("refemscore", "openclip:hf-hub:laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "activitynet-foil", "accuracy", "accuracy", 93.0),
        ("pacs", "openclip:RN50/openai", "pascal-50s", "majority", "mean", 81.7),
    ],
)
def test_a_model_of_the_paper_is_beside_its_own_values(metric, model, benchmark, protocol, measure, value):
    values, source = values_for(metric, model, benchmark, protocol)
    assert values[measure][metric] == value
    assert "table 8" in source or "table 10" in source or "table 11" in source


def test_a_model_is_never_beside_the_values_of_another():
    values, _ = values_for("clipscore", "hf:openai/clip-vit-base-patch16", "flickr8k-expert", "expanded")
    assert values["spearman"]["clipscore"] is None


def test_other_models_keep_the_published_values():
    values, source = values_for("clipscore", "hf:openai/clip-vit-base-patch32", "flickr8k-expert", "expanded")
    assert values["tau-c"]["clipscore"] == 51.2
    assert "table 8" not in source
