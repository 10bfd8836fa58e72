"""The recipes on every family of models: what learns, what stays, what is written, and that it loads."""

import hashlib
import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from extras import need

need("torch")
need("onnx")

import tiny_models
import torch
from PIL import Image

from caplens.backbones import load_backbone
from caplens.backbones.mini import mini_folder
from caplens.data import Sample, SampleFile, with_images
from caplens.errors import CaplensError, InputError
from caplens.training.loop import fit
from caplens.training.loop.towers import open_towers
from caplens.training.recipes.distill import DistillRecipe, train_distill
from caplens.training.recipes.mclipscore import MclipscoreRecipe, train_mclipscore
from caplens.training.recipes.pacs import PacsRecipe, train_pacs
from caplens.training.recipes.prmcs import PrmcsRecipe, train_prmcs
from caplens.training.recipes.recipe import read_recipe
from caplens.training.recipes.table import RECIPES
from caplens.training.recipes.tuning import Job

EXAMPLES = Path(str(files("caplens").joinpath("examples")))
MODEL = "caplens-mini@1"
"""Smaller than the model of today, and faster to train."""
MINI = mini_folder(MODEL)
FAMILIES = ["mini", "hf", "openclip", "mclip"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Family -> the name of a tiny model of it."""
    need("transformers")
    need("open_clip")
    place = tmp_path_factory.mktemp("hub")
    clip = tiny_models.clip(place / "clip")
    return {
        "mini": MODEL,
        "hf": f"hf:{clip}",
        "openclip": f"openclip:{tiny_models.open_clip_native(place / 'native')}",
        "mclip": f"mclip:{tiny_models.mclip(place / 'mclip')},image=hf:{clip}",
    }


@pytest.fixture(scope="module")
def samples():
    """Good captions of the example's photos."""
    return list(with_images(SampleFile(EXAMPLES / "good.jsonl"), EXAMPLES))


@pytest.fixture(scope="module")
def rated(samples):
    """The same captions, and those of the next photo, which are rated low."""
    wrong = [*samples[5:], *samples[:5]]
    good = [
        Sample(f"g{sample.id}", sample.caption, image=sample.image, lang=sample.lang, ratings=(4.0, 3.0)) for sample in samples
    ]
    bad = [
        Sample(f"b{sample.id}", other.caption, image=sample.image, lang=other.lang, ratings=(1.0, 2.0 if place % 2 else 1.0))
        for place, (sample, other) in enumerate(zip(samples, wrong, strict=True))
    ]
    return [*good, *bad]


@pytest.fixture(scope="module")
def tuples(samples, tmp_path_factory):
    """Captions with a mirrored photo in place of a generated one, and another caption in the place of a generated one."""
    folder = tmp_path_factory.mktemp("made")
    made = []
    few = sorted({str(sample.image) for sample in samples})[:4]
    for sample in [sample for sample in samples if str(sample.image) in few]:
        name = Path(str(sample.image)).stem + ".png"
        if not (folder / name).exists():
            Image.open(sample.image).convert("RGB").transpose(Image.Transpose.FLIP_LEFT_RIGHT).resize((64, 64)).save(
                folder / name
            )
        meta = {"made_image": name, "made_caption": f"{sample.caption} again"}
        made.append(Sample(sample.id, sample.caption, image=sample.image, lang=sample.lang, meta=meta))
    return made, folder


def job(model, folder, recipe, *changes):
    return Job(model, folder, read_recipe(recipe, None, changes), 0, "cpu")


def vectors(model, samples):
    backbone = load_backbone(str(model), device="cpu")
    pictures = [Image.open(EXAMPLES / name).convert("RGB") for name in sorted({str(sample.image) for sample in samples})[:3]]
    return backbone.encode_images(pictures), backbone.encode_texts([sample.caption for sample in samples[:4]])


def changed_parameters(before: str, after: str) -> tuple[set[str], set[str]]:
    """The parameters in which two models differ, and those of the projections."""
    first, second = open_towers(before, "cpu"), open_towers(after, "cpu")
    assert not any("parametrizations" in name for name, _ in second.parameters())
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    changed = {name for (name, old), (_, new) in pairs if not torch.equal(old, new)}
    return changed, {name for name, _ in first.parameters() if name.startswith(first.projections)}


SHORT = ("train.steps=3", "train.photos=2", "train.rate=0.01")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("parts", ["projections", "lora", "all"])
def test_pacs_changes_what_it_names_and_its_model_loads(family, parts, models, tuples, samples, tmp_path):
    changes = [*SHORT, f'train.parts="{parts}"', "validation.share=0.3"]
    made = train_pacs(*tuples, job(models[family], tmp_path, PacsRecipe, *changes))
    before, after = vectors(models[family], samples), vectors(made, samples)
    assert not np.allclose(before[0], after[0], atol=1e-4)
    assert not np.allclose(before[1], after[1], atol=1e-4)
    # The folder gives what was trained, and says how.
    settings = json.loads((made / ("model.json" if family == "mini" else "caplens.json")).read_text(encoding="utf-8"))
    assert settings["tuned"]["recipe"] == "pacs"
    assert settings["tuned"]["validation"] < 0
    changed, projections = changed_parameters(models[family], str(made))
    assert changed
    assert (changed <= projections) == (parts == "projections")
    assert load_backbone(str(made), device="cpu").tuned == "pacs"


@pytest.mark.parametrize("family", FAMILIES)
def test_mclipscore_learns_from_ratings_on_every_family(family, models, samples, rated, tmp_path):
    changes = ["train.steps=60", "train.photos=8", "train.rate=0.003", "losses.stay=0.0"]
    validated = train_mclipscore(samples, rated, job(models[family], tmp_path, MclipscoreRecipe, *changes), rated)
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    found = [line["validation"] for line in log if "validation" in line]
    assert len(found) >= 2
    about = json.loads((validated / ("model.json" if family == "mini" else "caplens.json")).read_text(encoding="utf-8"))["tuned"]
    # The best weights are kept. (Writing caplens-mini in 8 bits comes after.)
    assert about["validation"] == pytest.approx(max(found), abs=0.3)
    assert max(found) >= found[0]


def test_each_choice_of_losses(samples, rated, tmp_path):
    weights = {}
    for choice in ("both", "contrastive", "pearson"):
        changes = [*SHORT, f'losses.choice="{choice}"']
        made = train_mclipscore(samples, rated, job(MODEL, tmp_path / choice, MclipscoreRecipe, *changes))
        weights[choice] = open_towers(str(made), "cpu").networks["text"].project.weight
    assert not torch.equal(weights["both"], weights["contrastive"])
    assert not torch.equal(weights["both"], weights["pearson"])


@pytest.mark.parametrize("family", FAMILIES)
def test_prmcs_leaves_the_image_tower_as_it_was(family, models, samples, tmp_path):
    made = train_prmcs(samples, job(models[family], tmp_path, PrmcsRecipe, "train.steps=3", "train.photos=6"))
    before, after = vectors(models[family], samples), vectors(made, samples)
    assert (before[0] == after[0]).all()
    assert not np.allclose(before[1], after[1], atol=1e-4)


@pytest.fixture(scope="module")
def translations(samples):
    german = [f"Ein Bild von {word}" for word in ("Hund", "Katze", "Haus", "Rakete", "Mann", "Frau", "Baum", "Auto")]
    english = [f"a picture of a {word}" for word in ("dog", "cat", "house", "rocket", "man", "woman", "tree", "car")]
    return [
        Sample(str(number), text, lang="de", source=source)
        for number, (text, source) in enumerate(zip(german, english, strict=True))
    ]


@pytest.mark.slow
def test_a_copy_of_the_text_tower_learns_translations(translations, samples, tmp_path):
    changes = ["train.steps=60", "train.rate=0.003", "validation.share=0.2", "validation.every=10", "train.average=0.5"]
    made = train_distill(translations, "same", job(MODEL, tmp_path, DistillRecipe, *changes))
    cosines = []
    for model in (MODEL, str(made)):
        teacher, student = load_backbone(MODEL), load_backbone(model)
        wanted = teacher.encode_texts([sample.source for sample in translations])
        cosines.append((wanted * student.encode_texts([sample.caption for sample in translations])).sum(1).mean())
    assert cosines[1] > cosines[0] + 0.1
    assert (made / "image.onnx").read_bytes() == (MINI / "image.onnx").read_bytes()


def test_a_transformers_encoder_learns_from_the_texts_of_clip(models, translations, samples, tmp_path):
    encoder = tiny_models.text_encoder(tmp_path / "encoder")
    changes = ["train.steps=40", "train.rate=0.003", "validation.share=0.2", "validation.every=10"]
    made = train_distill(translations, str(encoder), job(models["hf"], tmp_path / "run", DistillRecipe, *changes))
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in log]
    assert losses[-1] < losses[0] / 2
    teacher, student = load_backbone(models["hf"], device="cpu"), load_backbone(str(made), device="cpu")
    picture = Image.open(EXAMPLES / samples[0].image).convert("RGB")
    assert (teacher.encode_images([picture]) == student.encode_images([picture])).all()
    assert student.encode_texts(["Ein Hund"]).shape == (1, teacher.dim)


def test_bad_input_is_told_and_nothing_is_written(samples, rated, tuples, translations, tmp_path, caplens, write, monkeypatch):
    def fails(words, recipe, train, *changes):
        folder = tmp_path / hashlib.sha256(words.encode()).hexdigest()
        with pytest.raises(CaplensError, match=words):
            train(job(MODEL, folder, recipe, *changes))
        assert not (folder / "model").exists()

    same = [Sample(sample.id, sample.caption, image=sample.image, ratings=(3.0,)) for sample in samples]
    nan = [Sample(sample.id, sample.caption, image=sample.image, ratings=(float("nan"),)) for sample in samples]
    fails("all ratings are the same", MclipscoreRecipe, lambda one: train_mclipscore(samples, same, one))
    fails("is not a number", MclipscoreRecipe, lambda one: train_mclipscore(samples, nan, one))
    fails("both an image and 'ratings'", MclipscoreRecipe, lambda one: train_mclipscore(samples, samples, one))
    fails("a batch of one photo", MclipscoreRecipe, lambda one: train_mclipscore(samples, rated, one), "train.photos=1")
    fails("a batch of one rating", MclipscoreRecipe, lambda one: train_mclipscore(samples, rated, one), "train.rated=1")
    fails("choice must be one of", MclipscoreRecipe, lambda one: train_mclipscore(samples, rated, one), 'losses.choice="all"')
    fails("train.parts must be one of", MclipscoreRecipe, lambda one: train_mclipscore(samples, rated, one), 'train.parts="head"')
    fails("no caption has an image", PrmcsRecipe, lambda one: train_prmcs([Sample("1", "a dog")], one))
    fails("trains the text tower only", PrmcsRecipe, lambda one: train_prmcs(samples, one), 'train.parts="all"')
    fails(
        "no kind of perturbation",
        PrmcsRecipe,
        lambda one: train_prmcs(samples, one),
        *(f"kinds.{kind}=0.0" for kind in ("repetition", "removal", "masking", "jumble", "substitution")),
    )
    fails("'caplens augment'", PacsRecipe, lambda one: train_pacs(samples, tmp_path, one))
    fails("no such folder of images", PacsRecipe, lambda one: train_pacs(tuples[0], tmp_path / "elsewhere", one))
    fails("the English sentence they translate", DistillRecipe, lambda one: train_distill(samples, "same", one))
    monkeypatch.setattr(
        "caplens.training.recipes.mclipscore.contrastive", lambda *_: torch.tensor(float("nan"), requires_grad=True)
    )
    fails("the loss is not a number", MclipscoreRecipe, lambda one: train_mclipscore(samples, rated, one), *SHORT)
    wrong = write("wrong.toml", "[train]\nstep = 4\n")
    said = caplens("train", "prmcs", EXAMPLES / "good.jsonl", "--images", EXAMPLES, "--out", tmp_path / "x", "--config", wrong)
    assert said.status == 2
    assert "train.step" in said.err


def test_a_checkpoint_of_another_architecture_is_told(samples, models, tmp_path, monkeypatch):
    monkeypatch.setattr(fit, "_CHECKPOINT_SECONDS", -1.0)
    saved = fit.save_checkpoint

    def save_and_stop(*arguments):
        saved(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "save_checkpoint", save_and_stop)
    for family in ("mini", "hf"):
        with pytest.raises(KeyboardInterrupt):
            train_prmcs(samples, job(models[family], tmp_path / family, PrmcsRecipe, "train.steps=3", "train.photos=6"))
    place = tmp_path / "mini" / "tune.checkpoint.pt"
    place.write_bytes((tmp_path / "hf" / "tune.checkpoint.pt").read_bytes())
    with pytest.raises(CaplensError, match="this checkpoint does not fit"):
        train_prmcs(samples, job(MODEL, tmp_path / "mini", PrmcsRecipe, "train.steps=3", "train.photos=6"))


def test_other_captions_are_another_run(samples, tmp_path):
    one = job(MODEL, tmp_path, PrmcsRecipe, "train.steps=2", "train.photos=6")
    train_prmcs(samples, one)
    with pytest.raises(InputError, match="another recipe, seed or data"):
        train_prmcs(samples[:-1], one)


def test_tensorboard_reads_what_the_log_says(samples, tmp_path):
    events = need("tensorboard.backend.event_processing.event_accumulator")
    train_prmcs(samples, job(MODEL, tmp_path, PrmcsRecipe, "train.steps=3", "train.photos=6")._replace(tensorboard=True))
    found = events.EventAccumulator(str(tmp_path / "tensorboard"))
    found.Reload()
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [event.value for event in found.Scalars("tune/loss")] == pytest.approx([line["loss"] for line in logged])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("train.rate=nan", "train.rate must be a number"),
        ("train.rate=-1e-3", "train.rate must be between 1e-12 and 10"),
        ("train.rate=1e999", "train.rate must be a number"),
        ("train.steps=0", "train.steps must be between 1 and 1e+07"),
        ("train.steps=0.5", "train.steps must be a whole number"),
        ("train.average=1.0", "train.average must be between 0 and 0.999999"),
        ("train.warmup=2.0", "train.warmup must be between 0 and 1"),
        ("validation.every=0", "validation.every must be between 1"),
        ("validation.share=1.0", "validation.share must be between 0 and 0.99"),
        (f"train.steps={'9' * 5000}", "this is not a TOML value"),
        (f"train.prompt={'[' * 5000}", "this is not a TOML value"),
    ],
)
def test_every_value_has_a_range_that_is_checked_before_anything_is_read(change, problem, caplens, tmp_path):
    said = caplens("train", "pacs", tmp_path / "nowhere.jsonl", "--images", tmp_path, "--out", tmp_path / "run", "--set", change)
    assert said.status == 2
    assert problem in said.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("entry", list(RECIPES.values()), ids=list(RECIPES))
def test_every_number_of_a_recipe_has_a_range(entry):
    from typing import get_type_hints

    from caplens.training.recipes.values import Range

    recipe_class, _ = entry.load()
    for section in get_type_hints(recipe_class).values():
        if not hasattr(section, "__dataclass_fields__"):
            continue
        for name, hint in get_type_hints(section, include_extras=True).items():
            if get_type_hints(section)[name] in (int, float):
                assert any(isinstance(rule, Range) for rule in getattr(hint, "__metadata__", ())), f"{section.__name__}.{name}"


def test_the_paper_s_recipes_have_the_paper_s_values():
    """PR-MCS, appendix B; PAC-S, section 4.1; multilingual CLIPScore, section 3."""
    prmcs, pacs, mclipscore = (read_recipe(kind, variant="paper") for kind in (PrmcsRecipe, PacsRecipe, MclipscoreRecipe))
    losses = prmcs.losses
    assert (losses.contrastive, losses.near, losses.from_image, losses.from_text, losses.margin) == (1, 0.1, 0.05, 0.05, 0.1)
    assert (losses.below, losses.stay, prmcs.train.rate, prmcs.train.epochs, prmcs.validation.share) == (0, 0, 5e-5, 5, 0.1)
    assert prmcs.perturbation.protocol == "paper"
    assert (pacs.train.rate, pacs.train.photos, pacs.losses.made_images, pacs.losses.made_texts) == (1e-4, 256, 0.05, 0.1)
    assert (pacs.train.decay, pacs.train.clip, pacs.validation.patience, pacs.train.parts) == (0, 0, 1500, "projections")
    assert (mclipscore.losses.clamp, mclipscore.losses.ranks, mclipscore.losses.stay) == (True, False, 0)
    assert mclipscore.losses.contrastive == mclipscore.losses.pearson == 1
    for recipe in (prmcs, pacs, mclipscore):
        assert recipe.train.schedule == "constant"


def test_a_recipe_of_one_s_own_may_leave_values_out(write):
    recipe = read_recipe(PacsRecipe, write("mine.toml", "[train]\nsteps = 4\n"))
    assert (recipe.train.steps, recipe.train.rate) == (4, 1e-4)


def test_epochs_and_held_out_photos(samples, tmp_path):
    changes = ("train.photos=4", "train.epochs=2", "validation.share=0.4", "validation.every=1", 'perturbation.protocol="paper"')
    folder = tmp_path / "run"
    train_prmcs(samples, job(MODEL, folder, PrmcsRecipe, *changes))
    photos = {str(sample.image) for sample in samples}
    trained = len(samples) * (len(photos) - round(0.4 * len(photos))) / len(photos)
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert lines[-1]["step"] == -(-2 * int(trained) // 4)
    assert "validation" in lines[-1]


def test_pacs_validates_on_photos_of_one_s_own(tuples, samples, tmp_path):
    made, folder = tuples
    train_pacs(made, folder, job(MODEL, tmp_path, PacsRecipe, *SHORT, "validation.every=1"), samples)
    assert "validation" in json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert "validation" in json.loads((tmp_path / "model" / "model.json").read_text())["tuned"]["given"]


def test_projections_of_a_resnet_are_its_attention_pooling(tmp_path, tuples):
    """PAC-S, appendix A: "we finetune the last attention pooling of the visual backbone and the final projection of the text"."""
    need("open_clip")
    name = f"openclip:{tiny_models.open_clip_resnet(tmp_path / 'resnet')}"
    towers = open_towers(name, "cpu")
    towers.learn("projections")
    trained = {key for key, weight in towers.parameters() if weight.requires_grad}
    assert trained
    assert all("attnpool." in key or key.endswith("text_projection") for key in trained)
    assert {"positional_embedding", "c_proj.weight"} <= {key.split("attnpool.")[-1] for key in trained}
    made, folder = tuples
    train_pacs(made, folder, job(name, tmp_path / "run", PacsRecipe, *SHORT, "validation.share=0.3"))
    before, after = (vectors(model, made)[0] for model in (name, tmp_path / "run" / "model"))
    assert np.abs(before - after).max() > 1e-5


def test_presets_on_the_command_line(caplens, tmp_path):
    command = ["train", "prmcs", EXAMPLES / "good.jsonl", "--images", EXAMPLES, "--model", MODEL]
    assert (
        caplens(
            *command, "--out", tmp_path / "p", "--preset", "paper", "--set", "train.epochs=1", "--set", "train.photos=8"
        ).status
        == 0
    )
    recipe = json.loads((tmp_path / "p" / "model" / "model.json").read_text())["tuned"]["settings"]
    assert recipe["perturbation"]["protocol"] == "paper"
    said = caplens("train", "distill", EXAMPLES / "good.jsonl", "--out", tmp_path / "d", "--preset", "paper")
    assert "distill has no recipe 'paper'" in said.err
    wrong = caplens(*command, "--out", tmp_path / "c", "--preset", "paper", "--config", EXAMPLES / "good.jsonl")
    assert "two recipes" in wrong.err
