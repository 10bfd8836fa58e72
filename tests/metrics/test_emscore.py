"""EMScore beside a plain version of its formulas, on a tiny CLIP and videos made here."""

import json
from dataclasses import replace

import numpy as np
import pytest
from extras import need
from hypothesis import given, settings
from hypothesis import strategies as st

import caplens as package
from caplens.backbones import load_backbone
from caplens.data.media import Frames
from caplens.embed import Engine
from caplens.errors import InputError
from caplens.metrics import get_metric
from caplens.metrics.emscore import RareWords, RefPacSVideo, Words, match_texts, match_video

av = need("av")
need("transformers")

CAPTIONS = ["a dog runs over the grass", "two red cars", "a man", "the dog and the man play with a ball in the snow"]
REFERENCES = [
    "a brown dog runs",
    "a dog on grass",
    "a car",
    "red cars on a road",
    "a man stands",
    "he waits",
    "snow",
    "a ball",
    "dogs",
]


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """Four videos of twelve noisy pictures."""
    folder = tmp_path_factory.mktemp("videos")
    rng = np.random.default_rng(0)
    for number in range(4):
        with av.open(str(folder / f"{number}.mp4"), "w") as container:
            stream = container.add_stream("mpeg4", rate=6)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            for _ in range(12):
                picture = np.kron(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8), np.ones((8, 8, 1), np.uint8))
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
    return folder


@pytest.fixture(scope="module")
def clip(clip_folder):
    return load_backbone(f"hf:{clip_folder}")


def plain_idf(clip, corpus):
    ids = [set(tokens.ids) for tokens in clip.tokenize(corpus)]
    count = len(corpus)
    table = {token: np.log((count + 1) / (sum(token in one for one in ids) + 1)) for token in set().union(*ids)}
    mean = sum(table.values()) / len(table)

    def weights(text):
        tokens = clip.tokenize([text])[0].ids
        return np.array([*(table.get(token, np.log(count + 1)) for token in tokens[:-1]), mean])

    return weights


def plain_match(first, second, first_weights, second_weights):
    """P, R and F of two sequences of vectors."""
    similarity = first @ second.T
    precision = sum(max(*row, 0) * weight for row, weight in zip(similarity, first_weights, strict=True)) / sum(first_weights)
    recall = sum(max(*row, 0) * weight for row, weight in zip(similarity.T, second_weights, strict=True)) / sum(second_weights)
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def plain_emscore(clip, caption, frames, references, weights, maximum):
    tokens, vector = clip.encode_tokens([caption])[0].astype(float), clip.encode_texts([caption])[0].astype(float)
    frames = frames.astype(float)
    video = frames.mean(0) / np.linalg.norm(frames.mean(0))
    similarity = tokens @ frames.T
    precision = (similarity.max(1) * weights(caption)).sum() / weights(caption).sum()
    recall = np.maximum(similarity.max(0), 0).mean()
    fine = 2 * precision * recall / (precision + recall)
    score = (vector @ video + fine) / 2
    if not references:
        return score
    matches = []
    for reference in references:
        other = clip.encode_tokens([reference])[0].astype(float)
        parts = plain_match(tokens, other, weights(caption), weights(reference))
        matches.append((vector @ clip.encode_texts([reference])[0].astype(float), parts[2]))
    if maximum == "parts":
        best = (max(coarse for coarse, _ in matches) + max(fine for _, fine in matches)) / 2
    else:
        best = max((coarse + fine) / 2 for coarse, fine in matches)
    return (score + best) / 2


def frames_of(clip, path, count=10):
    with av.open(str(path)) as container:
        pictures = [frame.to_image() for frame in container.decode(video=0)]
    return clip.encode_images([pictures[int(index)] for index in np.linspace(0, len(pictures) - 1, count)])


@pytest.mark.parametrize(("metric", "maximum"), [("refemscore", "parts"), ("refpacs-video", "whole"), ("emscore", None)])
@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("idf", [None, "none"])
def test_it_is_the_plain_version(clip, videos, metric, maximum, count, idf):
    references = [(REFERENCES * 2)[number : number + count] for number in range(len(CAPTIONS))]
    samples = [
        package.Sample(str(number), caption, references[number], video=str(videos / f"{number}.mp4"))
        for number, caption in enumerate(CAPTIONS)
    ]
    scores = get_metric(metric, model=clip, idf=idf)(samples)
    corpus = [text for texts in references for text in texts]
    weights = (lambda text: np.ones(len(clip.tokenize([text])[0].ids))) if idf else plain_idf(clip, corpus)
    expected = [
        plain_emscore(
            clip, caption, frames_of(clip, videos / f"{number}.mp4"), references[number] if maximum else [], weights, maximum
        )
        for number, caption in enumerate(CAPTIONS)
    ]
    np.testing.assert_allclose(scores.values, expected, atol=1e-6)
    assert f"|idf:{idf or len(corpus)}|" in scores.signature
    assert maximum is None or f"|max:{maximum}|" in scores.signature


def test_words_are_rare_in_the_captions_if_there_are_no_references_or_in_a_file(clip, videos, tmp_path):
    samples = [package.Sample(str(n), text, video=str(videos / f"{n}.mp4")) for n, text in enumerate(CAPTIONS)]
    file = tmp_path / "train.jsonl"
    file.write_text(
        "".join(json.dumps({"id": str(n), "caption": text}) + "\n" for n, text in enumerate(REFERENCES)), encoding="utf-8"
    )
    for idf, corpus in ((None, CAPTIONS), (str(file), REFERENCES)):
        weights = plain_idf(clip, corpus)
        expected = [
            plain_emscore(clip, text, frames_of(clip, videos / f"{n}.mp4"), [], weights, None) for n, text in enumerate(CAPTIONS)
        ]
        np.testing.assert_allclose(get_metric("emscore", model=clip, idf=idf)(samples).values, expected, atol=1e-6)


def unit(rng, rows, dim=8):
    vectors = rng.normal(size=(rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@settings(deadline=None, max_examples=60)
@given(first=st.integers(1, 77), second=st.integers(1, 77), seed=st.integers(0, 1000))
def test_matches_of_any_length_are_the_plain_ones(first, second, seed):
    rng = np.random.default_rng(seed)
    caption, reference = (
        Words(unit(rng, count), rng.uniform(0.1, 3, count), unit(rng, 1)[0], False) for count in (first, second)
    )
    match = match_texts(caption, reference)
    expected = plain_match(caption.tokens.astype(float), reference.tokens.astype(float), caption.weights, reference.weights)
    assert (match.precision, match.recall) == pytest.approx(expected[:2], abs=1e-9)
    assert match.fine == pytest.approx(expected[2], abs=1e-9)
    frames = unit(rng, second)
    against = match_video(caption, frames)
    similarity = caption.tokens.astype(float) @ frames.T.astype(float)
    assert against.precision == pytest.approx(
        float((similarity.max(1) * caption.weights).sum() / caption.weights.sum()), abs=1e-6
    )
    assert against.recall == pytest.approx(float(np.maximum(similarity.max(0), 0).mean()), abs=1e-6)


def test_pacs_for_video_without_its_weights_says_so(clip, videos):
    metric = get_metric("refpacs-video", model=clip)
    assert isinstance(metric, RefPacSVideo)
    sample = package.Sample("1", CAPTIONS[0], REFERENCES[:2], video=str(videos / "0.mp4"))
    assert "only with one of its checkpoints" in metric([sample]).warnings[0]


def test_weights_of_a_worked_example():
    rare = RareWords([[1, 5, 9], [1, 6, 9], [1, 5, 7, 9]])
    table = {1: 0.0, 9: 0.0, 5: np.log(4 / 3), 6: np.log(2), 7: np.log(2)}
    mean = sum(table.values()) / 5
    np.testing.assert_allclose(rare.weights([1, 5, 6, 8, 9]), [0, np.log(4 / 3), np.log(2), np.log(4), mean])


def test_a_video_is_encoded_once_whoever_asks(clip, videos, tmp_path, monkeypatch):
    counted = []
    encode = type(clip).encode_pixels
    monkeypatch.setattr(type(clip), "encode_pixels", lambda self, batch: counted.append(len(batch)) or encode(self, batch))
    samples = [package.Sample(f"{n} {k}", CAPTIONS[k], video=str(videos / f"{n}.mp4")) for n in range(4) for k in range(4)]
    from caplens.embed import Store

    for _ in range(2):
        get_metric("emscore", model=Engine(clip, Store(tmp_path)))(samples)
    assert sum(counted) == 40


def test_what_was_encoded_before_an_interruption_is_not_encoded_again(clip, videos, tmp_path, monkeypatch):
    from caplens.embed import Store, sequences

    monkeypatch.setattr(sequences, "_FRAMES_TOGETHER", 10)
    encode, counted = type(clip).encode_pixels, []

    def stops(self, batch):
        if len(counted) == 2:
            raise KeyboardInterrupt
        counted.append(len(batch))
        return encode(self, batch)

    samples = [package.Sample(str(n), CAPTIONS[n], video=str(videos / f"{n}.mp4")) for n in range(4)]
    monkeypatch.setattr(type(clip), "encode_pixels", stops)
    with pytest.raises(KeyboardInterrupt):
        get_metric("emscore", model=Engine(clip, Store(tmp_path)))(samples)
    monkeypatch.setattr(type(clip), "encode_pixels", lambda self, batch: counted.append(len(batch)) or encode(self, batch))
    resumed = get_metric("emscore", model=Engine(clip, Store(tmp_path)))(samples)
    assert sum(counted) == 40
    undisturbed = get_metric("emscore", model=Engine(clip))(samples)
    np.testing.assert_allclose(resumed.values, undisturbed.values, atol=1e-6)


def test_frames_in_memory(clip, videos):
    with av.open(str(videos / "0.mp4")) as container:
        pictures = tuple(frame.to_image() for frame in container.decode(video=0))
    in_file = package.Sample("1", CAPTIONS[0], video=str(videos / "0.mp4"))
    metric = get_metric("emscore", model=clip, idf="none")
    first, second = metric([in_file]).values, metric([replace(in_file, video=Frames(pictures))]).values
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_the_command_line(clip_folder, videos, write, caplens):
    rows = [{"id": str(n), "video": f"{n}.mp4", "caption": text} for n, text in enumerate(CAPTIONS)]
    rows.append({"id": "gone", "video": "gone.mp4", "caption": "a dog"})
    rows.append({"id": "part", "video": "0", "caption": "a dog", "start": 0.5, "end": 1})
    said = caplens(
        "score", write("captions.jsonl", rows), "--images", videos, "-m", "emscore,length", "--model", f"hf:{clip_folder}",
        "--frames", "4", "--no-store", "-f", "json",
    )  # fmt: skip
    assert said.status == 3, said.err
    result = json.loads(said.out)["metrics"]["emscore"]
    assert "|frames:4|" in result["signature"]
    assert [error["id"] if isinstance(error, dict) else error for error in result["errors"]] == ["gone"]


def test_the_report_shows_film_strips(clip_folder, videos, write, caplens, tmp_path):
    rows = [{"id": str(n), "video": f"{n}.mp4", "caption": text} for n, text in enumerate(CAPTIONS)]
    captions = write("captions.jsonl", [*rows, {"id": "gone", "video": "gone.mp4", "caption": "a dog"}])
    result = tmp_path / "result.json"
    caplens("score", captions, "--images", videos, "-m", "emscore", "--model", f"hf:{clip_folder}", "--no-store", "-o", result)
    said = caplens("report", result, "-o", tmp_path / "report.html")
    assert said.status == 0, said.err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/jpeg") == 4
    assert page.count('class="photo strip photo-') == 4


def test_the_benchmarks_of_videos(clip_folder, videos, tmp_path, caplens):
    ids = [str(number % 4) for number in range(8)]
    content = {
        "candidates_list": [CAPTIONS[int(video)] for video in ids],
        "gts_list": [REFERENCES for _ in ids],
        "video_ids": ids,
        "human_scores": [[1 + number % 5 for number in range(8)]] * 3,
    }
    for name, values in content.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(values), encoding="utf-8")
    model = ["--model", f"hf:{clip_folder}", "--no-store", "--resamples", 5, "-f", "json"]
    said = caplens("bench", "vatex-eval", "--data", tmp_path, "--images", videos, "-m", "emscore,refemscore", *model)
    assert said.status == 0, said.err
    results = json.loads(said.out)["results"]
    assert results["refemscore"]["tau-b"]["published"] == 36.8
    alone = caplens("bench", "vatex-eval", "--data", tmp_path, "--images", tmp_path, "-m", "emscore", *model)
    assert "none of the 4 videos of vatex-eval is there" in alone.err


def test_paragraphs_of_activitynet_are_about_their_seconds(clip_folder, videos, tmp_path, caplens):
    right = {"0": [{"sentence": "a dog"}, {"sentence": "a man"}]}
    foil = {"0": [{"sentence": "a cat"}, {"sentence": "a man"}]}
    for kind, results in (("right", right), ("foil", foil)):
        (tmp_path / f"final_{kind}_video_sentences.json").write_text(json.dumps({"results": results}), encoding="utf-8")
    times = {"0": {"timestamps": [[0, 1], [1, 2]], "duration": 2.0, "sentences": ["a dog runs", "a man waits"]}}
    for number in (1, 2):
        (tmp_path / f"anet_entities_test_{number}.json").write_text(json.dumps(times), encoding="utf-8")
    said = caplens(
        "bench", "activitynet-foil", "--data", tmp_path, "--images", videos, "-m", "emscore,refemscore", "--model",
        f"hf:{clip_folder}", "--no-store", "--resamples", 5, "-f", "json",
    )  # fmt: skip
    assert said.status == 0, said.err
    assert json.loads(said.out)["results"]["emscore"]["accuracy"]["published"] == 89.5


def test_a_row_without_a_video_has_no_score(videos):
    samples = [
        package.Sample("1", "a dog", video=""),
        package.Sample("2", "a dog"),
        package.Sample("3", "a dog", video=str(videos / "0.mp4")),
    ]
    scores = get_metric("emscore", model="caplens-mini", keep_store=False)(samples)
    assert {row: error.reason for row, error in scores.errors.items()} == {0: "there is no video", 1: "there is no video"}
    assert np.isfinite(scores.values[2])


def test_errors_of_use(videos, write, caplens):
    rows = [{"id": "1", "video": str(videos / "0.mp4"), "caption": "a dog", "start": "soon"}]
    assert "a number of seconds" in caplens("score", write("a.jsonl", rows), "-m", "emscore").err
    with pytest.raises(InputError, match="at least one frame"):
        package.ScoringOptions(frames=0)
    no_words = caplens("score", write("b.jsonl", [{**rows[0], "start": 0}]), "-m", "emscore", "--model", "caplens-mini-use")
    assert no_words.status == 2
    assert "no vectors of single words" in no_words.err or "needs" in no_words.err
