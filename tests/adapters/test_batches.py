"""Adapters that gather captions give what the original gives for the same calls, or what `caplens.score` does."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from extras import need
from PIL import Image

import caplens as package
from caplens.adapters.evaluate import load
from caplens.adapters.torchmetrics import CaptionScore
from caplens.errors import InputError

CAPTIONS = ["a dog runs on the grass", "two men play a game of chess"]
REFERENCES = [["a dog is running on the grass", "the dog runs"], ["two men are playing chess", "men play a game"]]
EXAMPLES = Path(str(files("caplens").joinpath("examples")))


@pytest.mark.parametrize("n", [1, 2])
def test_updates_add_up_as_in_torchmetrics(n):
    """The same calls on both; BLEU of torchmetrics takes words by spaces, as these captions are written."""
    text = need("torchmetrics.text")
    theirs, ours = text.BLEUScore(n_gram=n), CaptionScore(f"bleu{n}", tokenizer="space")
    for metric in (theirs, ours):
        metric.update(CAPTIONS[:1], REFERENCES[:1])
        metric.update(CAPTIONS[1:], REFERENCES[1:])
    assert ours.compute() == pytest.approx(float(theirs.compute()), abs=1e-5)
    for metric in (theirs, ours):
        metric.reset()
    assert ours(CAPTIONS[1:], REFERENCES[1:]) == pytest.approx(float(theirs(CAPTIONS[1:], REFERENCES[1:])), abs=1e-5)
    # The batch was also taken in.
    assert ours.compute() == pytest.approx(float(theirs.compute()), abs=1e-5)


def test_several_metrics_give_a_dictionary_and_images_are_looked_at():
    metric = CaptionScore(["clipscore", "cider"])
    with Image.open(EXAMPLES / "cat.jpg") as cat:
        metric.update(["A brown cat with green eyes."], [["A cat looks to the side."]], images=[cat.copy()])
    metric.update(["Two dogs run in the snow."], ["A rocket takes off."], images=[EXAMPLES / "rocket.jpg"])
    assert metric.compute().keys() == {"clipscore", "cider"}
    cat, rocket = metric.results()["clipscore"].values
    assert cat > rocket


def test_images_may_be_arrays_and_tensors():
    torch = need("torch")
    with Image.open(EXAMPLES / "cat.jpg") as cat:
        pixels = np.asarray(cat.convert("RGB"))
    first = torch.from_numpy(pixels.copy()).permute(2, 0, 1)
    metric = CaptionScore("clipscore").to("cpu")
    metric.update(["a cat"] * 4, images=[Image.fromarray(pixels), pixels, first, first / 255])
    values = metric.results()["clipscore"].values
    assert values == pytest.approx([values[0]] * 4)
    metric.update(["a cat"], images=[(first / 255).bfloat16()])
    metric.update("a cat", images=first)
    for image, said in (
        (pixels[:, :, 0], "three channels"),
        (first.float(), "between 0 and 1"),
        (first / 255 - 1, "between 0 and 1"),
    ):
        with pytest.raises(InputError, match=said):
            metric.update(["a cat"], images=[image])


def test_modules_compute_as_those_of_evaluate(tmp_path):
    """A module of evaluate and ours get the same calls: both score what was added, and forget it."""
    evaluate = need("evaluate")
    datasets = need("datasets")

    class Theirs(evaluate.Metric):
        def _info(self):
            features = datasets.Features(
                {"predictions": datasets.Value("string"), "references": datasets.Sequence(datasets.Value("string"))}
            )
            return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

        def _compute(self, predictions, references):
            rows = [
                {"id": number, "caption": caption, "references": list(texts)}
                for number, (caption, texts) in enumerate(zip(predictions, references, strict=True))
            ]
            return {"rouge-l": package.score(rows, ["rouge-l"], resamples=0)["rouge-l"].corpus}

    theirs, ours = Theirs(cache_dir=str(tmp_path)), load("rouge-l")
    found = []
    for module in (theirs, ours):
        whole = module.compute(predictions=CAPTIONS, references=REFERENCES)["rouge-l"]
        module.add(prediction=CAPTIONS[0], reference=REFERENCES[0])
        module.add_batch(predictions=CAPTIONS[1:], references=REFERENCES[1:])
        added = module.compute()["rouge-l"]
        alone = module.compute(predictions=CAPTIONS[1:], references=REFERENCES[1:])["rouge-l"]
        found.append((whole, added, alone))
    assert found[0] == pytest.approx(found[1])
    assert found[1][0] == found[1][1] != found[1][2]


def test_modules_say_how_far_a_score_can_be_trusted_and_how_it_was_made():
    made = load(["cider", "bleu1"]).compute(predictions=CAPTIONS, references=REFERENCES)
    low, high = made["intervals"]["cider"]
    assert low <= made["cider"] <= high
    assert made["signatures"]["bleu1"].startswith("bleu1|tok:ptb")
    assert "CIDEr" in load("cider").description


def test_what_does_not_fit_is_told():
    with pytest.raises(InputError, match="Did you mean 'cider'"):
        CaptionScore("cidr")
    with pytest.raises(InputError, match="no option 'model_name_or_path'"):
        CaptionScore("clipscore", model_name_or_path="openai/clip-vit-base-patch16")
    with pytest.raises(InputError, match="references are texts"):
        CaptionScore("clipscore").update(["a cat"], np.zeros((1, 3, 8, 8)))
    with pytest.raises(InputError, match="images are passed with images="):
        CaptionScore("CLIPScore").update([object()], ["a cat"])
    with pytest.raises(InputError, match="2 captions and 1 references"):
        load("cider").compute(predictions=CAPTIONS, references=REFERENCES[:1])
    with pytest.raises(InputError, match="no captions to score"):
        CaptionScore("cider").compute()
    metric = CaptionScore("bleu1")
    metric.update(["a dog", ""], ["a dog", "a cat"])
    with pytest.warns(UserWarning, match=r"1 of 2 captions have no score: the caption is empty \(1\)"):
        assert metric.compute() == pytest.approx(1)
