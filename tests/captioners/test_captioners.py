"""Captioners: each family against its library, the search against all sequences, and the jobs around them."""

import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.resources import files
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from extras import need
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import caplens as package
from caplens.captioners import ImageCaptions, SearchOptions, open_captioner
from caplens.captioners.beam_search import beam_search
from caplens.captioners.detokenize import written
from caplens.captioners.mini import DEFAULT
from caplens.data import Sample
from caplens.errors import CaplensError, InputError
from caplens.text.subwords import Subwords, words_of
from caplens.translation import chat_endpoint
from caplens.translation.base import Hypothesis

PHOTOS = [Image.new("RGB", (40, 30), (200, 0, 0)), Image.effect_noise((64, 64), 80).convert("RGB")]


@pytest.fixture
def examples():
    return Path(str(files("caplens").joinpath("examples")))


def _naive_best(table, longest, end):
    """The sequence with the highest mean log-probability, of all."""
    best = (-np.inf, ())
    for length in range(longest + 1):
        for tokens in product([token for token in range(table.shape[1]) if token != end], repeat=length):
            whole = (*tokens, end)
            score = np.mean([table[place, token] for place, token in enumerate(whole)])
            best = max(best, (score, tokens))
    return best


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_a_wide_beam_search_finds_the_best_of_all_sequences(seed):
    rng = np.random.default_rng(seed)
    longest, pieces, end, beams = 3, 4, 2, 64
    logits = rng.normal(size=(longest + 1, pieces)) * 2
    table = (logits - np.log(np.exp(logits).sum(1, keepdims=True))).astype(np.float32)
    steps = iter(range(longest + 1))

    def step(tokens, order):
        return np.repeat(table[next(steps)][None], len(tokens), axis=0)

    ((first, *_),) = beam_search(step, np.zeros(1, dtype=np.int64), beams, 1, longest, end)
    score, tokens = _naive_best(table, longest, end)
    assert first.log_probability == pytest.approx(score, abs=1e-6)
    assert first.tokens == tokens


@given(
    st.lists(
        st.sampled_from("a dog runs in the snow 狗 子犬 ein Hund läuft собака zqxj ñandú 🐕".split()), min_size=1, max_size=8
    )
)
@settings(max_examples=60, deadline=None)
def test_spelling_keeps_every_word(words):
    subwords = _subwords()
    text = " ".join(words)
    assert subwords.decode(subwords.spell(text)).split() == [word[1:] for word in words_of(text)]


def _subwords():
    return Subwords.load(files("caplens.backbones").joinpath("caplens-mini", "vocabulary.tsv"))


def test_text_is_written_as_languages_are():
    assert [written("一 只 狗", "zh"), written("子 犬", "ja"), written("a dog", "en")] == ["一只狗", "子犬", "a dog"]
    assert written("བྱིས པ", "bo") == "བྱིས་པ"


class TestMini:
    def test_it_writes_twelve_languages_and_the_same_text_in_every_batch(self, examples):
        captioner = open_captioner(DEFAULT)
        images = [Image.open(path).convert("RGB") for path in sorted(examples.glob("*.jpg"))]
        for lang in captioner.languages:
            together = captioner.caption(images, lang, 1)
            assert len({result.hypotheses[0].text for result in together}) > 1
            alone = captioner.caption(images[2:3], lang, 1)
            assert alone[0].hypotheses[0].text == together[2].hypotheses[0].text
        assert len(captioner.languages) == 12

    def test_it_sees_what_is_on_a_photo(self, examples):
        captioner = open_captioner(DEFAULT, SearchOptions(3))
        said = {
            name: captioner.caption([Image.open(examples / f"{name}.jpg").convert("RGB")], "en", 1)[0].hypotheses[0].text
            for name in ("cat", "officer", "camera")
        }
        assert "cat" in said["cat"]
        assert "man" in said["officer"]
        assert "man" in said["camera"]

    def test_captions_are_ordered_by_probability_and_differ(self, examples):
        (result,) = open_captioner(DEFAULT).caption([Image.open(examples / "cat.jpg").convert("RGB")], "en", 8)
        scores = [hypothesis.log_probability for hypothesis in result.hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({hypothesis.text for hypothesis in result.hypotheses}) == 8

    def test_another_language_is_told(self):
        with pytest.raises(InputError, match="writes no captions in 'sw'; it writes: ar, bo"):
            open_captioner(DEFAULT).caption(PHOTOS, "sw", 1)

    @pytest.mark.parametrize(
        "damage", ["decoder", "settings", "list", "languages", "shape", "layers", "more layers", "texts", "array", "image", "hub"]
    )
    def test_a_damaged_folder_is_one_sentence(self, tmp_path, damage):
        folder = tmp_path / "captioner"
        shutil.copytree(files("caplens.captioners").joinpath(DEFAULT), folder)
        (folder / "caplens-manifest.json").unlink()
        settings_file = folder / "captioner.json"
        content, decoder = json.loads(settings_file.read_text(encoding="utf-8")), folder / "decoder.npz"
        with np.load(decoder) as stored:
            arrays = dict(stored)
        if damage == "decoder":
            decoder.write_bytes(decoder.read_bytes()[:4_000_000])
        elif damage == "texts":
            np.savez(decoder, **{**arrays, "bias": np.array(["a"] * len(arrays["bias"]))})
        elif damage == "array":
            np.save(decoder.with_suffix(".npy"), np.zeros(3))
            decoder.with_suffix(".npy").rename(decoder)
        elif damage == "layers":
            np.savez(decoder, **{name: value for name, value in arrays.items() if not name.startswith("layers.3")})
        else:
            changes = {"list": [], "languages": {**content["decoder"], "languages": "en"}}
            changes |= {"shape": {**content["decoder"], "width": 128}, "more layers": {**content["decoder"], "layers": 9}}
            if damage in changes:
                content["decoder"] = changes[damage]
            elif damage == "image":
                content["image_fingerprint"] = "0"
            elif damage == "hub":
                content["image"] = "hf:somebody/something"
            settings_file.write_text("{}" if damage == "settings" else json.dumps(content))
        with pytest.raises(CaplensError, match=r"Get (it|the captioner) again|Train it again"):
            open_captioner(str(folder)).caption(PHOTOS, "en", 1)

    def test_a_changed_file_is_noticed(self, tmp_path):
        folder = tmp_path / "captioner"
        shutil.copytree(files("caplens.captioners").joinpath(DEFAULT), folder)
        (folder / "captioner.json").write_text((folder / "captioner.json").read_text(encoding="utf-8") + " ")
        with pytest.raises(InputError, match=r"captioner\.json"):
            open_captioner(str(folder))


class TestHuggingFace:
    @pytest.mark.parametrize("beams", [1, 3])
    @pytest.mark.parametrize(
        "family", ["blip", "blip-2", "git", "encoder-decoder", "florence-2", "llava", "paligemma", "qwen2-vl"]
    )
    def test_captions_are_those_of_the_library(self, tmp_path, family, beams):
        torch, transformers = need("torch"), need("transformers")
        import tiny_captioners

        folder = tiny_captioners.FAMILIES[family](tmp_path / family)
        results = open_captioner(f"hf:{folder}", SearchOptions(beams, 8)).caption(PHOTOS, "en", beams)
        model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
        if family == "encoder-decoder":
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            inputs = transformers.AutoImageProcessor.from_pretrained(folder)(images=PHOTOS, return_tensors="pt")
        else:
            processor = tokenizer = transformers.AutoProcessor.from_pretrained(folder)
            asked = {}
            if family in tiny_captioners.CHATTING:
                question = "Describe this image in one short sentence. Answer with the sentence alone."
                content = [{"type": "image"}, {"type": "text", "text": question}]
                text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
                asked = {"text": [text] * 2, "padding": True}
            elif family in tiny_captioners.ASKED:
                asked = {"text": [tiny_captioners.ASKED[family]] * 2, "padding": True}
            inputs = processor(images=PHOTOS, return_tensors="pt", **asked)
        with torch.inference_mode():
            ids = model.generate(**inputs, num_beams=beams, num_return_sequences=beams, max_new_tokens=8, do_sample=False)
        if family in {*tiny_captioners.CHATTING, "paligemma"}:
            ids = ids[:, inputs["input_ids"].shape[1] :]
        expected = [" ".join(text.split()) for text in tokenizer.batch_decode(ids, skip_special_tokens=True)]
        for place, result in enumerate(results):
            of_image = [text for text in dict.fromkeys(expected[place * beams : (place + 1) * beams]) if text]
            assert [hypothesis.text for hypothesis in result.hypotheses] == of_image
        assert beams == 1 or all(result.hypotheses for result in results)

    def test_a_model_that_writes_english_only_says_so(self, tmp_path):
        need("torch")
        need("transformers")
        import tiny_captioners

        with pytest.raises(InputError, match="writes no captions in 'de'"):
            open_captioner(f"hf:{tiny_captioners.git(tmp_path / 'git')}").check_language("de")

    def test_a_folder_that_is_no_captioner_is_told(self, tmp_path):
        with pytest.raises(CaplensError, match="nowhere"):
            open_captioner(f"hf:{tmp_path / 'nowhere'}")


class Server(BaseHTTPRequestHandler):
    answers = []
    seen = []

    def do_POST(self):
        self.seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        status, text = self.answers.pop(0) if self.answers else (200, "a dog in the snow")
        self.send_response(status)
        self.end_headers()
        answer = {"choices": [{"message": {"content": text}}], "usage": {"prompt_tokens": 300, "completion_tokens": 6}}
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(chat_endpoint, "_FIRST_WAIT", 0.01)
    Server.answers, Server.seen = [], []
    with HTTPServer(("127.0.0.1", 0), Server) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"endpoint:http://127.0.0.1:{http.server_port}/v1,model=tiny"
        http.shutdown()


class TestEndpoint:
    def test_it_is_asked_in_the_language_of_the_caption_with_the_image(self, server, caplog):
        caplog.set_level("INFO", logger="caplens")
        Server.answers[:] = [(503, ""), (200, "„Ein Hund im Schnee“")]
        captioner = open_captioner(server)
        (result,) = captioner.caption(PHOTOS[:1], "de", 1)
        assert result == ImageCaptions([Hypothesis("Ein Hund im Schnee")])
        text, image = Server.seen[-1]["messages"][0]["content"]
        assert text["text"].startswith("Beschreibe")
        assert image["image_url"]["url"].startswith("data:image/jpeg;base64,/9j/")
        captioner.report_cost((1.0, 2.0))
        assert "1 requests, 300 + 6 tokens, 0.0003 at these prices" in caplog.text

    def test_several_captions_are_asked_for_in_json(self, server):
        Server.answers[:] = [(200, '```json\n{"captions": ["mbwa", "mbwa", "paka", 3]}\n```'), (200, "no json")]
        first, second = open_captioner(server).caption(PHOTOS, "sw", 3)
        assert [hypothesis.text for hypothesis in first.hypotheses] == ["mbwa", "paka"]
        assert second.error == "the endpoint answered with no caption"
        assert Server.seen[0]["response_format"] == {"type": "json_object"}
        asked = Server.seen[0]["messages"][0]["content"][0]["text"]
        assert "in Swahili" in asked
        assert "3 different answers" in asked

    def test_ones_own_question_is_asked_however_many_captions_there_are(self, server):
        Server.answers[:] = [(200, "a dog"), (200, '{"captions": ["a \\ud800 dog"]}')]
        captioner = open_captioner(server, SearchOptions(question="What is here, in {language}?"))
        captioner.caption(PHOTOS[:1], "en", 1)
        (result,) = captioner.caption(PHOTOS[:1], "en", 2)
        for body in Server.seen:
            assert body["messages"][0]["content"][0]["text"].startswith("What is here, in English?")
        # Half of a character cannot be written to a file.
        assert result.hypotheses[0].text.encode()

    @pytest.mark.parametrize("reason", ["length", "stop"])
    def test_an_answer_that_was_cut_off_is_no_caption_and_thoughts_are_not_part_of_one(self, server, monkeypatch, reason):
        content = {"choices": [{"message": {"content": "<think>a dog?</think> a dog"}, "finish_reason": reason}]}
        monkeypatch.setattr(chat_endpoint.ChatEndpoint, "_post", lambda *_: content)
        (result,) = open_captioner(server).caption(PHOTOS[:1], "en", 1)
        if reason == "length":
            assert "cut off" in result.error
        else:
            assert result.hypotheses[0].text == "a dog"

    def test_it_is_not_asked_where_nothing_may_leave_the_machine(self, server):
        from caplens.backbones.load_options import LoadOptions

        with pytest.raises(InputError, match="sends images to a server"):
            open_captioner(server, options=LoadOptions(offline=True))


class Counting:
    """Writes the brightness of an image, three times differently; one image it cannot caption."""

    name, fingerprint, licence = "counting", "counting 1", "any"

    def __init__(self, most=99):
        self.seen, self.most = [], most

    def check_language(self, lang):
        if lang == "quz":
            raise InputError("counting writes no captions in 'quz'")

    def caption(self, images, lang, n):
        results = []
        for image in images:
            if len(self.seen) >= self.most:
                raise KeyboardInterrupt
            level = int(np.asarray(image).mean())
            self.seen.append(level)
            texts = [f"{lang} {level}", f"{lang} {level} and more words", f"{lang}"][:n]
            results.append(ImageCaptions([Hypothesis(text, -float(place)) for place, text in enumerate(texts)]))
        return results


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(5):
        Image.new("RGB", (20, 20), (number * 40,) * 3).save(folder / f"{number}.png")
    return folder


class TestCaptioning:
    def test_each_image_is_captioned_once_and_a_stopped_run_goes_on(self, photos, tmp_path):
        stopped, again = Counting(most=3), Counting()
        with pytest.raises(KeyboardInterrupt):
            package.caption(photos, stopped, store=tmp_path / "store", batch=1)
        samples, report = package.caption(photos, again, store=tmp_path / "store", batch=1)
        assert [sample.caption for sample in samples] == [f"en {number * 40}" for number in range(5)]
        assert (len(stopped.seen), len(again.seen), report.reused) == (3, 2, 3)

    def test_references_are_those_of_the_language_and_rows_those_of_the_images(self, photos, tmp_path):
        rows = [
            Sample("a", "an old caption", ("a reference",), image="1.png", lang="en"),
            Sample("a", "ein alter Text", ("eine Referenz",), image="1.png", lang="de"),
            Sample("a", "another", ("another reference",), image="1.png", lang="en"),
        ]
        expected = {"en": ("a reference", "another reference"), "de": ("eine Referenz",), "ja": ()}
        for langs in (["de", "ja", "de"], ["en", "de"], []):
            samples, _ = package.caption(rows, Counting(), images=photos, langs=langs, store=tmp_path / "store")
            wanted = list(dict.fromkeys(langs)) or ["en", "de"]
            assert [(s.id, s.lang, s.caption, s.references, s.image) for s in samples] == [
                ("a", lang, f"{lang} 40", expected[lang], "1.png") for lang in wanted
            ]
        assert samples[0].system == "counting"

    def test_ratings_of_the_caption_before_are_not_those_of_the_new_one(self, photos, tmp_path):
        row = {"id": "a", "image": "1.png", "caption": "a dog", "ratings": [4], "about": "kept"}
        ((sample,), _) = package.caption([row], Counting(), images=photos, store=tmp_path / "store")
        assert (sample.ratings, sample.meta["about"]) == ((), "kept")

    @pytest.mark.parametrize("langs", [("en", "en"), ("en", "de")])
    def test_an_id_of_two_images_is_an_error_and_not_a_caption_of_the_wrong_one(self, photos, langs):
        rows = [Sample("a", image=f"{number}.png", lang=lang) for number, lang in enumerate(langs)]
        with pytest.raises(InputError, match="names two images"):
            package.caption(rows, Counting(), images=photos)

    def test_a_captioner_that_returns_too_few_results_is_told(self, photos, tmp_path, monkeypatch):
        monkeypatch.setattr(Counting, "caption", lambda *_: [])
        with pytest.raises(CaplensError, match="returned 0 results for 5 images"):
            package.caption(photos, Counting(), store=tmp_path / "store")

    def test_images_of_a_folder_are_named_as_files_in_it(self, photos, tmp_path):
        samples, _ = package.caption(photos, Counting(), store=tmp_path / "store")
        assert [sample.image for sample in samples] == [f"{number}.png" for number in range(5)]
        assert package.score(samples, ["clipscore"], images=photos, keep_store=False)["clipscore"].scored == 5

    def test_the_metric_chooses_the_best_and_the_gain_is_the_difference_of_means(self, photos, tmp_path):
        samples, report = package.caption(photos, Counting(), nbest=3, rerank="length", store=tmp_path / "store")
        assert [sample.caption for sample in samples] == [f"en {number * 40} and more words" for number in range(5)]
        before, after = (
            package.score([text for sample in samples for text in [pick(sample)]], ["length"], resamples=0)[
                "length"
            ].values.mean()
            for pick in (lambda sample: sample.meta["nbest"][1], lambda sample: sample.caption)
        )
        assert report.gain == pytest.approx(after - before)
        assert report.changed == 5
        assert samples[0].meta["rank"] == 2

    def test_an_image_that_cannot_be_read_has_no_caption_and_a_reason(self, photos, tmp_path, caplens, monkeypatch):
        monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
        (photos / "5.png").write_bytes(b"no image")
        out = tmp_path / "out.jsonl"
        run = caplens("caption", photos, "-o", out, "--lang", "de", "--json")
        assert run.status == 3
        assert json.loads(run.out)["failed"] == 1
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        assert len(rows) == 6
        assert all(row["caption"] for row in rows[:5])
        assert "5.png" in rows[5]["caption_error"]
        assert rows[0]["captioner"].startswith(f"caption|captioner:{DEFAULT}@")

    def test_what_the_command_wrote_can_be_scored(self, tmp_path, caplens, examples, monkeypatch):
        monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
        out = tmp_path / "out.jsonl"
        assert caplens("caption", examples, "-o", out, "--nbest", 4, "--rerank", "clipscore").status == 0
        assert caplens("score", out, "--images", examples, "-m", "clipscore").status == 0
        again = caplens("caption", examples, "-o", out, "--nbest", 4, "--rerank", "clipscore", "--json")
        assert json.loads(again.out)["reused"] == 5

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--lang", "quz"], "writes no captions in 'quz'"),
            (["--rerank", "nothing"], "nothing"),
            (["--prices", "1"], "two numbers"),
            (["--prices", "nan,1"], "two numbers"),
            (["--captioner", ""], "is not a captioner"),
            (["--captioner", "captions.jsonl"], "is not a captioner"),
            (["--captioner", "endpoint:http://x/v1"], "name the model"),
            (["-o", "captions.txt"], "names no format"),
        ],
    )
    def test_wrong_options_are_one_sentence(self, photos, tmp_path, caplens, arguments, words):
        given_output = [] if "-o" in arguments else ["-o", tmp_path / "out.jsonl"]
        run = caplens("caption", photos, *given_output, *arguments)
        assert run.status == 2
        assert words in run.err
        assert not (tmp_path / "out.jsonl").exists()

    def test_no_images_and_wrong_numbers_are_errors(self, tmp_path):
        with pytest.raises(InputError, match="no image was found"):
            package.caption([Sample("1", "a dog")], Counting())
        with pytest.raises(InputError, match="between 1 and 100"):
            package.caption([Sample("1", "a dog")], Counting(), nbest=0)
        with pytest.raises(InputError, match="one metric"):
            package.caption([Sample("1", "a dog")], Counting(), rerank="length,cider")
        with pytest.raises(InputError, match="'beams' must be"):
            SearchOptions(0)


class TestSuggestions:
    def test_only_bad_captions_get_one_and_it_survives_a_file(self, examples, tmp_path):
        rows = [
            Sample("1", "a photo of two buses in the rain at the station", image="cat.jpg", lang="en"),
            Sample("2", "A brown cat with green eyes.", image="cat.jpg", lang="en"),
            Sample("3", "IMG_2041.jpg", image="officer.jpg", lang="sw"),
        ]
        result = package.check(rows, images=examples, suggest=DEFAULT, store=tmp_path / "store")
        suggestions = {caption.id: caption.suggestion for caption in result}
        assert "cat" in suggestions["1"]
        # The second is fine, and the captioner does not write Swahili.
        assert (suggestions["2"], suggestions["3"]) == (None, None)
        result.save(tmp_path / "check.json")
        again = package.load_results(tmp_path / "check.json")
        assert {caption.id: caption.suggestion for caption in again} == suggestions
        assert next(iter(result.to_rows())).keys() >= {"suggestion"}

    def test_the_page_shows_them_escaped(self, examples, tmp_path, caplens, write, monkeypatch):
        monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
        rows = [{"id": "1", "caption": "two buses in the rain at the station", "image": "cat.jpg", "lang": "en"}]
        out = tmp_path / "check.html"
        assert caplens("check", write("a.jsonl", rows), "--images", examples, "--suggest", "-o", out).status == 0
        page = out.read_text(encoding="utf-8")
        assert "the photo seems to show: <bdi>" in page
        assert "cat" in page.split("the photo seems to show: <bdi>")[1][:120]
