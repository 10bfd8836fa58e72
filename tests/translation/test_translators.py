"""Translators: each family on a tiny model, endpoints on a server of the test, and files."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from extras import need

from caplens.errors import CaplensError, InputError
from caplens.translation import chat_endpoint, load_translator

TEXTS = ["a dog runs", "the red cat sleeps on grass"]


@pytest.mark.parametrize("family", ["m2m100", "madlad", "marian", "nllb", "mbart"])
def test_the_best_translation_is_that_of_the_library(translation_models, family):
    transformers, torch = need("transformers"), need("torch")
    folder = translation_models[family]
    translator = load_translator(f"hf:{folder}", beams=4)
    translator.check_languages("en", "de")
    found = translator.translate(TEXTS, "en", "de", 3)
    assert [len(result.hypotheses) for result in found] == [3, 3]
    scores = [hypothesis.log_probability for hypothesis in found[0].hypotheses]
    assert scores == sorted(scores, reverse=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    prefix, forced = {"madlad": "<2de> ", "marian": ">>deu<< "}.get(family, ""), {}
    codes = {"m2m100": ("en", "__de__"), "nllb": ("eng_Latn", "deu_Latn"), "mbart": ("en_XX", "de_DE")}
    if family in codes:
        tokenizer.src_lang, target = codes[family]
        forced = {"forced_bos_token_id": tokenizer.convert_tokens_to_ids(target)}
    for text, result in zip(TEXTS, found, strict=True):
        inputs = tokenizer(prefix + text, return_tensors="pt")
        with torch.inference_mode():
            ids = network.generate(**inputs, **forced, num_beams=4, max_new_tokens=63, do_sample=False)
        assert result.hypotheses[0].text == tokenizer.decode(ids[0], skip_special_tokens=True).strip()


@pytest.mark.parametrize("family", ["m2m100", "madlad", "marian", "nllb", "mbart"])
def test_unknown_languages_and_long_texts_are_told(translation_models, family):
    translator = load_translator(f"hf:{translation_models[family]}")
    with pytest.raises(InputError, match="does not translate 'quz'"):
        translator.check_languages("en", "quz")
    long, short = translator.translate(["dog " * 3000, "dog"], "en", "fr", 1)
    assert "the translator takes" in long.error
    assert short.hypotheses


@pytest.mark.parametrize("family", ["marian", "m2m100"])
def test_ctranslate2_translates_as_transformers_does(translation_models, monkeypatch, tmp_path, family):
    need("ctranslate2")
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path))
    name = translation_models[family]
    ours, theirs = (load_translator(f"{family}:{name}", beams=4) for family in ("ct2", "hf"))
    first, second = ([result.hypotheses[0].text for result in one.translate(TEXTS, "en", "de", 1)] for one in (ours, theirs))
    # At the limit of their lengths one library counts the start marker and the other does not.
    assert [text.split()[:30] for text in first] == [text.split()[:30] for text in second]
    with pytest.raises(InputError, match="does not translate"):
        ours.check_languages("en", "quz")


def test_other_models_are_told(tmp_path):
    need("transformers")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "vocab.txt").write_text("a")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="models of type 'bert' do not translate"):
        load_translator(f"hf:{tmp_path}")


@pytest.mark.parametrize("name", ["m2m100", "nobody:x", "hf:", "endpoint:http://x/v1", "endpoint:ftp://x,model=y"])
def test_names_that_are_none_are_told(name):
    with pytest.raises(InputError):
        load_translator(name)


class Server(BaseHTTPRequestHandler):
    answers = []
    seen = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append(body)
        status, content = self.answers.pop(0) if self.answers else (200, chat(f"übersetzt {len(self.seen)}"))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(content.encode() if isinstance(content, str) else json.dumps(content).encode())

    def log_message(self, *_):
        pass


def chat(text):
    return {"choices": [{"message": {"content": text}}], "usage": {"prompt_tokens": 10, "completion_tokens": 3}}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(chat_endpoint, "_FIRST_WAIT", 0.01)
    Server.answers, Server.seen = [], []
    with HTTPServer(("127.0.0.1", 0), Server) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"endpoint:http://127.0.0.1:{http.server_port}/v1,model=tiny"
        http.shutdown()


def test_an_endpoint_translates_and_counts_its_tokens(server, caplog):
    caplog.set_level("INFO", logger="caplens")
    translator = load_translator(server)
    (result,) = translator.translate(["a dog"], "en", "de", 2)
    assert [hypothesis.text for hypothesis in result.hypotheses] == ["übersetzt 1", "übersetzt 2"]
    assert "from English into German" in Server.seen[0]["messages"][0]["content"]
    assert [body["temperature"] for body in Server.seen] == [0.0, 0.7]
    translator.report_cost((1.0, 2.0))
    assert "2 requests, 20 + 6 tokens, 0.0000 at these prices" in caplog.text


def test_a_busy_endpoint_is_asked_again(server):
    Server.answers = [(429, {}), (503, "busy"), (200, chat("gut"))]
    (result,) = load_translator(server).translate(["a dog"], "en", "de", 1)
    assert result.hypotheses[0].text == "gut"


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([(200, {"nonsense": 1})], "something else than a text"),
        ([(200, chat(""))], "answered with nothing"),
        ([(200, {"choices": [{"message": {"content": 5}}]})], "something else than a text"),
    ],
)
def test_an_endpoint_that_answers_nonsense_fails_one_text(server, answers, why):
    Server.answers = list(answers)
    first, second = load_translator(server).translate(["a dog", "a cat"], "en", "de", 1)
    assert why in first.error
    assert second.hypotheses


@pytest.mark.parametrize("answers", [[(500, "")] * 9, [(200, "not json")] * 9, [(401, {})]])
def test_an_endpoint_that_is_down_is_told(server, answers):
    Server.answers = list(answers)
    with pytest.raises(CaplensError, match="the server does not answer"):
        load_translator(server).translate(["a dog"], "en", "de", 1)


def test_no_server_is_told(monkeypatch):
    monkeypatch.setattr(chat_endpoint, "_FIRST_WAIT", 0.01)
    with pytest.raises(CaplensError, match="the server does not answer"):
        load_translator("endpoint:http://127.0.0.1:9/v1,model=x").translate(["a dog"], "en", "de", 1)


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ('ein Schild mit "STOP"', 'ein Schild mit "STOP"'),
        ('"ein Hund"', "ein Hund"),
        ("„ein Hund“", "ein Hund"),
        ("a \ud800 b", "a ? b"),
    ],
)
def test_only_quotes_around_all_of_an_answer_go(server, answer, kept):
    Server.answers = [(200, chat(answer))]
    (result,) = load_translator(server).translate(["a dog"], "en", "de", 1)
    assert result.hypotheses[0].text == kept


@pytest.mark.parametrize("tokens", ["many", [1], float("inf"), True, -3, None])
def test_odd_counts_of_tokens_do_not_matter(server, tokens):
    Server.answers = [(200, {**chat("gut"), "usage": {"prompt_tokens": tokens}})]
    translator = load_translator(server)
    translator.translate(["a dog"], "en", "de", 1)
    assert translator.usage.prompt_tokens == 0


def test_an_endpoint_that_redirects_gets_no_key(server, monkeypatch):
    monkeypatch.setenv("CAPLENS_API_KEY", "secret")
    Server.answers = [(302, "")] * 9
    with pytest.raises(CaplensError, match="status 302"):
        load_translator(server).translate(["a dog"], "en", "de", 1)


@pytest.mark.parametrize("url", ["http://127.0.0.1:port/v1", "http://127.0.0.1/a b"])
def test_addresses_that_are_none_are_told(url, monkeypatch):
    monkeypatch.setattr(chat_endpoint, "_FIRST_WAIT", 0.01)
    with pytest.raises(CaplensError):
        load_translator(f"endpoint:{url},model=m").translate(["a dog"], "en", "de", 1)


def test_an_endpoint_s_answers_are_kept_one_by_one(server, tmp_path):
    from caplens.data import Sample
    from caplens.translation import TranslationOptions, translate_samples
    from caplens.translation.store import HypothesisStore

    Server.answers = [(200, chat("eins")), (200, chat("zwei")), *[(400, "")] * 9]
    samples = [Sample(str(n), f"caption {n}") for n in range(4)]
    settings = TranslationOptions(check_language=False, store=HypothesisStore(tmp_path))
    with pytest.raises(CaplensError):
        translate_samples(samples, load_translator(server), "de", options=settings)
    Server.answers, before = [], len(Server.seen)
    translate_samples(samples, load_translator(server), "de", options=settings)
    assert len(Server.seen) - before == 2


def test_a_damaged_converted_model_is_converted_again(monkeypatch, tmp_path, translation_models):
    need("ctranslate2")
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path))
    name = f"ct2:{translation_models['m2m100']}"
    first = load_translator(name, beams=2).translate(["a dog"], "en", "de", 1)
    (model,) = tmp_path.glob("ctranslate2/*/model.bin")
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 255
    model.write_bytes(content)
    again = load_translator(name, beams=2).translate(["a dog"], "en", "de", 1)
    assert [result.hypotheses for result in again] == [result.hypotheses for result in first]


def test_part_of_the_answers_is_no_complete_answer(server):
    Server.answers = [(200, chat("eins")), (200, {"nonsense": 1})]
    (result,) = load_translator(server).translate(["a dog"], "en", "de", 3)
    assert [hypothesis.text for hypothesis in result.hypotheses] == ["eins"]
    assert not result.complete


def test_an_answer_that_drips_is_not_waited_for(server, monkeypatch):
    def drip(self):
        self.send_response(200)
        self.end_headers()
        for _ in range(50):
            self.wfile.write(b" ")
            time.sleep(0.1)

    monkeypatch.setattr(Server, "do_POST", drip)
    monkeypatch.setattr(chat_endpoint, "_TRIES", 1)
    translator = load_translator(server)
    monkeypatch.setattr(translator._endpoint, "_timeout", 0.5)
    with pytest.raises(CaplensError, match=r"its answer takes longer than 0\.5 s"):
        translator.translate(["a dog"], "en", "de", 1)
