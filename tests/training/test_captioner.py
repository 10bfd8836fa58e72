"""Training captioners: the decoder in PyTorch and numpy, what is learned, and what a metric as reward changes."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from extras import need

torch = need("torch")
need("safetensors")

from PIL import Image

import caplens
from caplens.captioners import SearchOptions, open_captioner
from caplens.captioners.beam_search import beam_search
from caplens.captioners.mini_decoder import DecoderShape, MiniDecoder, quantized, read_weights
from caplens.data import Sample
from caplens.errors import InputError
from caplens.training.captioner.data import CaptionTable
from caplens.training.captioner.networks import CaptionDecoder
from caplens.training.captioner.recipe import CaptionerRecipe
from caplens.training.captioner.rewards import CaptionReward, repeated_share, self_critical
from caplens.training.captioner.train import CaptionerJob, train_captioner
from caplens.training.recipes.pairs import Photos
from caplens.training.recipes.recipe import read_recipe

SHAPE = DecoderShape(("de", "en"), 500, 32, 9, 64, 2, 4, 12)
END, PADDING = 2, 0
SMALL = [
    "decoder.width=32", "decoder.layers=1", "decoder.heads=2", "decoder.dropout=0.0", "train.captions=16", "train.average=0.5",
    "train.rate=5e-3", "validation.every=1000", "validation.share=0.1",
]  # fmt: skip


@pytest.fixture
def decoders():
    torch.manual_seed(0)
    network = CaptionDecoder(SHAPE).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    return network, MiniDecoder(SHAPE, weights), np.random.default_rng(0).normal(size=(5, 9, 32)).astype(np.float32)


def _searched(decoder, maps, langs, beams):
    state = decoder.begin(maps, beams)
    return beam_search(
        lambda tokens, order: decoder.step(state, tokens, order), np.array(langs), beams, beams, SHAPE.longest, END
    )


def test_numpy_and_pytorch_write_the_same_captions(decoders):
    network, decoder, maps = decoders
    langs = [0, 1, 0, 1, 0]
    ids = network.sample(torch.from_numpy(maps), torch.tensor(langs), END, PADDING, greedy=True).tolist()
    expected = [row[: row.index(END)] if END in row else row for row in ids]
    assert [list(captions[0].tokens) for captions in _searched(decoder, maps, langs, 1)] == expected


def test_the_scores_of_a_search_are_the_probabilities_of_the_whole_captions(decoders):
    network, decoder, maps = decoders
    for image, captions in enumerate(_searched(decoder, maps, [1] * 5, 4)):
        for caption in captions:
            ids = torch.tensor([[*caption.tokens, END]])
            with torch.no_grad():
                logits = network(torch.from_numpy(maps[image : image + 1]), torch.tensor([1]), ids[:, :-1])
            expected = logits.log_softmax(-1).gather(2, ids[:, :, None]).mean().item()
            assert caption.log_probability == pytest.approx(expected, abs=1e-4)


def test_weights_in_8_bits_are_near_those_in_32(decoders, tmp_path):
    network = decoders[0]
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    np.savez(tmp_path / "decoder.npz", **quantized(weights))
    stored = read_weights(tmp_path / "decoder.npz", SHAPE)
    assert stored.keys() == weights.keys()
    for name, weight in weights.items():
        assert np.abs(stored[name] - weight).max() <= np.abs(weight).max() / 254 + 1e-7, name


COLOURS = {"red": "rot", "green": "grün", "blue": "blau"}


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Thirty photos of one colour each, which captions in two languages name."""
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    rows = []
    for number in range(30):
        english, german = list(COLOURS.items())[number % 3]
        pixels = rng.integers(0, 60, (48, 48, 3))
        pixels[:, :, number % 3] += 180
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
        image = str(folder / f"{number}.png")
        rows.append(Sample(f"{number}e", f"all of it is {english}", image=image, lang="en"))
        rows.append(Sample(f"{number}d", f"alles ist {german}", image=image, lang="de"))
    return rows


def _train(samples, folder, *changes, start=None):
    recipe = read_recipe(CaptionerRecipe, None, [*SMALL, *changes])
    return train_captioner(samples, CaptionerJob("caplens-mini", folder, recipe, 0, "cpu", start=start))


def _captions(folder, samples, lang):
    images = [Image.open(sample.image).convert("RGB") for sample in samples if sample.lang == lang]
    return [result.hypotheses[0].text for result in open_captioner(str(folder), SearchOptions(2)).caption(images, lang, 1)]


@pytest.mark.slow
def test_it_learns_what_captions_say_in_each_language(samples, tmp_path):
    folder = _train(samples, tmp_path / "run", "train.steps=120")
    english = [sample.caption for sample in samples if sample.lang == "en"]
    german = [sample.caption for sample in samples if sample.lang == "de"]
    assert np.mean([said == wanted for said, wanted in zip(_captions(folder, samples, "en"), english, strict=True)]) > 0.9
    assert np.mean([said == wanted for said, wanted in zip(_captions(folder, samples, "de"), german, strict=True)]) > 0.9
    about = json.loads((folder / "captioner.json").read_text(encoding="utf-8"))
    assert about["decoder"]["languages"] == ["de", "en"]
    # The same run again trains nothing, and another recipe is refused.
    before = (folder / "decoder.npz").stat().st_mtime_ns
    assert _train(samples, tmp_path / "run", "train.steps=120") == folder
    assert (folder / "decoder.npz").stat().st_mtime_ns >= before
    with pytest.raises(InputError, match="another recipe"):
        _train(samples, tmp_path / "run", "train.steps=121")


@pytest.mark.slow
def test_a_metric_as_reward_raises_its_own_score(samples, tmp_path):
    """The reward is the length of a caption: captions become longer."""
    reward = ["decoder.longest=16", "reward.steps=20", 'reward.metric="length"', "reward.photos=8", "reward.rate=3e-3"]
    plain = _train(samples, tmp_path / "plain", "decoder.longest=16", "train.steps=60")
    longer = _train(samples, tmp_path / "longer", *reward, start=str(plain))
    lengths = [np.mean([len(text.split()) for text in _captions(folder, samples, "en")]) for folder in (plain, longer)]
    assert lengths[1] > lengths[0] + 1
    with pytest.raises(InputError, match="writes no captions in 'fr'"):
        _train([replace(sample, lang="fr") for sample in samples], tmp_path / "french", start=str(plain))


def test_repetitions_cost_what_the_recipe_says(samples):
    settings = read_recipe(CaptionerRecipe, None, ['reward.metric="length"', "reward.repetition=2.0"]).reward
    reward = CaptionReward(settings, Photos(samples), "caplens-mini")
    distinct, repeated = reward([0, 0], ["en", "en"], ["a dog runs home", "a a a a"], [[1, 2, 3, 4], [1, 1, 1, 1]]).tolist()
    assert distinct == 4
    assert repeated == pytest.approx(4 - 2 * (3 / 4 + 2 / 3) / 2)


def test_cider_as_reward_knows_words_by_all_captions(samples):
    """As CIDEr of a file of all captions, document frequencies of all photos included."""
    settings = read_recipe(CaptionerRecipe).reward
    photos = Photos(samples)
    english = [(row, texts["en"][0]) for row, texts in enumerate(photos.captions)]
    wanted = [text if row % 2 else "all of it is red" for row, text in english]
    rewards = CaptionReward(settings, photos, "caplens-mini")([row for row, _ in english], ["en"] * 30, wanted, [[1]] * 30)
    expected = caplens.score(wanted, ["cider"], references=[[text] for _, text in english], resamples=0)["cider"].values
    np.testing.assert_allclose(rewards.numpy(), expected, rtol=1e-6)


def test_repetitions_are_counted_in_words_and_pairs():
    assert repeated_share([1, 2, 3, 4]) == 0
    assert repeated_share([1, 1, 1, 1]) == pytest.approx((3 / 4 + 2 / 3) / 2)
    assert repeated_share([]) == 0


def test_captions_are_drawn_by_language_photo_and_caption(samples):
    from caplens.backbones.registry import load_backbone

    photos = Photos([*samples, *(Sample(f"x{n}", f"another {n}", image=samples[0].image, lang="en") for n in range(3))])
    table = CaptionTable(photos, load_backbone("caplens-mini").subwords, ("de", "en", "fr"), 40, "cpu")
    assert table.sizes == [30, 30, 0]
    drawn = Counter()
    for seed in range(40):
        batch = table.draw(100, 0.5, torch.Generator().manual_seed(seed))
        drawn.update(zip(batch.langs.tolist(), batch.photos.tolist(), strict=True))
    assert {lang for lang, _ in drawn} == {0, 1}
    # A photo with more captions comes as often as others.
    assert drawn[1, 0] == pytest.approx(4000 / 60, rel=0.5)
    assert sum(len(batch.ids) for batch in table.batches(16)) == len(table) == 63


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["decoder.width=30", "decoder.heads=4"], "multiple of decoder.heads"),
        (["train.steps=0"], "between 1"),
        (["validation.share=0.99"], "no photo is left"),
        (["decoder.longest=2"], "no caption has between"),
        (["reward.steps=1", 'reward.metric="nothing"', "train.steps=1"], "nothing"),
    ],
)
def test_recipes_that_cannot_be_trained_are_one_sentence(samples, tmp_path, changes, words):
    with pytest.raises(InputError, match=words):
        _train(samples[:6], tmp_path / "run", *changes)


def test_another_model_than_mini_is_told(samples, tmp_path):
    need("transformers")
    import tiny_models

    folder = tiny_models.clip(tmp_path / "clip")
    with pytest.raises(InputError, match="a captioner is trained on caplens-mini"):
        train_captioner(
            samples, CaptionerJob(f"hf:{folder}", tmp_path / "run", read_recipe(CaptionerRecipe, None, SMALL), 0, "cpu")
        )


@pytest.mark.slow
def test_a_vision_transformer_and_mt5_learn_to_caption_and_write_what_the_library_does(samples, tmp_path, request, write):
    need("transformers")
    import tiny_captioners

    from caplens.captioners.vit_mt5 import language_tokens

    rows = [
        {"id": sample.id, "image": Path(sample.image).name, "lang": sample.lang, "caption": sample.caption} for sample in samples
    ]
    vit, mt5 = tiny_captioners.vit(tmp_path / "vit"), tiny_captioners.mt5(tmp_path / "mt5")
    changes = ["train.steps=150", "train.captions=16", "train.rate=2e-2", "train.constant=100", "validation.every=50"]
    options = [part for change in changes for part in ("--set", change)]
    run = request.getfixturevalue("caplens")(
        "train", "vit-mt5", write("captions.jsonl", rows), "--images", Path(samples[0].image).parent, "--vit", vit,
        "--mt5", mt5, "--out", tmp_path / "run", *options, "--json",
    )  # fmt: skip
    assert run.status == 0, run.err
    folder = json.loads(run.out)["model"]
    german = [sample for sample in samples if sample.lang == "de"]
    said = _captions(folder, samples, "de")
    assert np.mean([text == sample.caption for text, sample in zip(said, german, strict=True)]) > 0.8
    captioner = open_captioner(f"vit-mt5:{folder}", SearchOptions(1, 8))
    images = [Image.open(sample.image).convert("RGB") for sample in german[:4]]
    (captions, parts) = captioner.caption(images, "de", 1), captioner.load()
    # Token by token, each the most likely one.
    with torch.no_grad():
        pixels = parts.images(images=images, return_tensors="pt")["pixel_values"]
        langs = language_tokens(parts.tokenizer, ["de"] * 4)
        inputs = parts.network.inputs(pixels, langs["input_ids"], langs["attention_mask"])
        ids = torch.zeros((4, 1), dtype=torch.long)
        for _ in range(8):
            ids = torch.cat([ids, parts.network.mt5(**inputs, decoder_input_ids=ids).logits[:, -1:].argmax(-1)], 1)
    for row, result in zip(ids.tolist(), captions, strict=True):
        expected = row[1 : row.index(1, 1)] if 1 in row[1:] else row[1:]
        assert result.hypotheses[0].text == parts.tokenizer.decode(expected, skip_special_tokens=True)
    with pytest.raises(InputError, match="writes no captions in 'fr'; it writes: de, en"):
        captioner.check_language("fr")


@pytest.mark.slow
def test_a_vision_transformer_and_mt5_are_trained_with_a_metric_as_reward(samples, tmp_path):
    """The reward is the length of a caption: captions become longer."""
    need("transformers")
    import tiny_captioners

    from caplens.training.captioner.vit_mt5 import VitMt5Job, VitMt5Recipe, train_vit_mt5

    vit, mt5 = str(tiny_captioners.vit(tmp_path / "vit")), str(tiny_captioners.mt5(tmp_path / "mt5"))
    changes = ["train.steps=60", "train.captions=16", "train.rate=2e-2", "train.constant=60", "train.longest=12"]
    reward = ["reward.steps=40", 'reward.metric="length"', "reward.photos=8", "reward.rate=1e-2"]
    lengths = []
    for name, more in (("plain", []), ("longer", reward)):
        job = VitMt5Job(vit, mt5, tmp_path / name, read_recipe(VitMt5Recipe, None, [*changes, *more]), 0, "cpu")
        said = _captions(f"vit-mt5:{train_vit_mt5(samples, job)}", samples[:12], "en")
        lengths.append(np.mean([len(text.split()) for text in said]))
    assert lengths[1] > lengths[0] + 2


def test_the_loss_of_drawn_captions_is_that_of_the_equation():
    rewards, samples = torch.tensor([1.0, 0.0, 0.5, 0.5]), 2
    logits, ids = (
        torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(0)),
        torch.tensor([[1, 2, 0], [3, 2, 2], [4, 0, 0], [1, 1, 1]]),
    )
    expected = 0.0
    for row, advantage in enumerate([1.0, -1.0, 0.0, 0.0]):
        tokens = [(place, token) for place, token in enumerate(ids[row].tolist()) if token != PADDING]
        mean = np.mean([logits[row, place].log_softmax(-1)[token].item() for place, token in tokens])
        expected -= advantage * mean / 4
    assert self_critical(rewards, logits, ids, PADDING, samples).item() == pytest.approx(expected, abs=1e-6)


def test_the_rate_of_t5_is_constant_and_then_falls_with_the_root():
    from caplens.training.loop.fit import Schedule

    schedule = Schedule(1000, 1e-4, 0.0, warmup=0.0, root_after=100)
    assert [schedule.factor(step) for step in (0, 50, 99)] == [1, 1, 1]
    assert schedule.factor(399) == pytest.approx(0.5)


def test_models_that_are_neither_vit_nor_mt5_are_told(samples, tmp_path):
    need("transformers")
    import tiny_captioners

    from caplens.training.captioner.vit_mt5 import VitMt5Job, VitMt5Recipe, train_vit_mt5

    mt5 = str(tiny_captioners.mt5(tmp_path / "mt5"))
    with pytest.raises(InputError, match="not a vision transformer and an mT5"):
        train_vit_mt5(samples, VitMt5Job(mt5, mt5, tmp_path / "run", read_recipe(VitMt5Recipe)))
