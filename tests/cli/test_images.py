"""Scores that look at the image, through the command."""

import json
import shutil

import pytest
import tiny_models
from extras import need
from tiny_models import picture

need("transformers")


@pytest.fixture
def job(tmp_path, write):
    """Three captions about photos in a folder."""
    (tmp_path / "photos").mkdir()
    for number in range(3):
        picture(number).save(tmp_path / "photos" / f"{number}.png")
    texts = ["a dog runs", "the cat", "ein Hund läuft"]
    rows = [
        {"id": str(number), "image": f"{number}.png", "caption": text, "references": ["a dog", "the red ball"], "lang": lang}
        for number, (text, lang) in enumerate(zip(texts, ["en", "en", "de"], strict=True))
    ]
    return write("captions.jsonl", rows), tmp_path / "photos"


def options(clip_folder, photos):
    return "--images", photos, "--model", f"hf:{clip_folder}", "--device", "cpu"


def test_a_model_makes_clipscore_the_default(caplens, job, clip_folder):
    said = caplens("score", job[0], *options(clip_folder, job[1]), "-f", "json")
    assert said.status == 0, said.err
    found = json.loads(said.out)
    assert list(found["metrics"]) == ["clipscore"]
    assert len(found["metrics"]["clipscore"]["values"]) == 3
    assert set(found["metrics"]["clipscore"]["languages"]) == {"de", "en"}
    assert f"clipscore|model:hf:{clip_folder}@" in found["metrics"]["clipscore"]["signature"]
    assert "loading on cpu in fp32" in said.err


def test_the_second_run_loads_no_model(caplens, job, clip_folder):
    first, second = (caplens("score", job[0], *options(clip_folder, job[1]), "-f", "json") for _ in range(2))
    assert "loading" in first.err
    assert "loading" not in second.err
    assert json.loads(first.out) == json.loads(second.out)


def test_no_store_keeps_nothing(caplens, job, clip_folder, tmp_path):
    caplens("score", job[0], *options(clip_folder, job[1]), "--no-store")
    assert not list((tmp_path / "cache").rglob("*.vectors"))


def test_every_metric_of_images_in_one_run(caplens, job, clip_folder):
    names = "clipscore,refclipscore,pacs,refpacs,mcs,clip+cider,cider"
    said = caplens("score", job[0], *options(clip_folder, job[1]), "-m", names, "-f", "json")
    assert said.status == 0, said.err
    assert list(json.loads(said.out)["metrics"]) == names.split(",")


def test_prompts_are_given_for_all_or_by_language(caplens, job, clip_folder):
    def signature(*prompts):
        given = [part for prompt in prompts for part in ("--prompt", prompt)]
        said = caplens("score", job[0], *options(clip_folder, job[1]), *given, "-f", "json")
        assert said.status == 0, said.err
        return json.loads(said.out)["metrics"]["clipscore"]["signature"]

    assert "|prompt:none|" in signature("none")
    assert "|prompt:Look: |" in signature("Look: ")
    assert "|prompt:Ein Foto zeigt [de],A photo of [en]|" in signature("en=A photo of ", "de=Ein Foto zeigt ")
    for bad in (["a", "b"], ["en=a", "b"], ["de=a", "de-AT=b"], ["German=a", "en=b"], ["=a", "en=b"]):
        said = caplens("score", job[0], *options(clip_folder, job[1]), "--prompt", bad[0], "--prompt", bad[1])
        assert said.status == 2, bad


def test_bad_images_give_null_rows_and_status_3(caplens, job, clip_folder, write, tmp_path):
    names = ["0.png", "missing.png", "../../etc/passwd", "/etc/passwd", "text.jpg"]
    (job[1] / "text.jpg").write_text("no picture", encoding="ascii")
    captions = write("bad.jsonl", [{"id": name, "image": name, "caption": "a dog"} for name in names])
    said = caplens("score", captions, *options(clip_folder, job[1]), "-f", "json")
    assert said.status == 3
    found = json.loads(said.out)
    assert [value is None for value in found["metrics"]["clipscore"]["values"]] == [False, True, True, True, True]
    assert "there is no file" in found["errors"]["missing.png"]
    assert "outside the folder" in found["errors"]["../../etc/passwd"]
    assert "outside the folder" in found["errors"]["/etc/passwd"]
    assert "is not an image" in found["errors"]["text.jpg"]
    strict = caplens("score", captions, *options(clip_folder, job[1]), "--strict")
    assert strict.status == 2


def test_systems_are_compared_by_clipscore(caplens, job, clip_folder, write):
    other = write("other.jsonl", [{"id": str(n), "image": f"{n}.png", "caption": "a red ball", "lang": "en"} for n in range(2)])
    said = caplens("compare", job[0], other, *options(clip_folder, job[1]), "-f", "json")
    assert said.status == 0, said.err
    assert list(json.loads(said.out)["scores"]) == ["clipscore"]


def test_the_store_is_shown_checked_and_pruned(caplens, job, clip_folder):
    caplens("score", job[0], *options(clip_folder, job[1]))
    said = caplens("store", "info", "-f", "json")
    (about,) = json.loads(said.out)["models"]
    assert about["vectors"] == 6
    assert about["model"] == f"hf:{clip_folder}"
    (checked,) = json.loads(caplens("store", "verify", "--json").out)["checked"]
    assert checked == {"model": f"hf:{clip_folder}", "vectors": 6, "damaged": 0}
    assert "no damage found" in caplens("store", "verify").out
    assert caplens("store", "prune").status == 2
    assert "nothing to remove" in caplens("store", "prune", "--older-than", 1).out
    assert "would be removed" in caplens("store", "prune", "--all", "--dry-run").out
    assert "removed" in caplens("store", "prune", "--model", about["fingerprint"]).out
    assert json.loads(caplens("store", "info", "-f", "json").out)["models"] == []


def test_a_damaged_store_is_found_and_mended(caplens, job, clip_folder, tmp_path):
    import sqlite3

    first = caplens("score", job[0], *options(clip_folder, job[1]), "-f", "json")
    (path,) = (tmp_path / "cache").rglob("*.vectors")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE vectors SET vector = zeroblob(96) WHERE rowid = 2")
    said = caplens("store", "verify", "--json")
    assert said.status == 3
    assert [(one["vectors"], one["damaged"]) for one in json.loads(said.out)["checked"]] == [(6, 1)]
    assert json.loads(caplens("score", job[0], *options(clip_folder, job[1]), "-f", "json").out) == json.loads(first.out)


def test_models_are_listed_with_their_licences(caplens):
    found = json.loads(caplens("list", "models", "-f", "json").out)["models"]
    assert len(found) >= 25
    best = next(row for row in found if "frozen-xlm-roberta-large" in row["model"])
    assert best["licence"] == "MIT"
    assert any("non-commercial" in row["licence"] for row in found)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-m", "clipscore", "--device", "cuda"], "runs on the CPU only"),
        (["-m", "clipscore", "--dtype", "bf16"], "runs in fp32 only"),
        (["--model", "nonsense"], "is not a model name"),
        (["--model", "hf:/no/such/folder"], "there is no such model folder"),
        (["--model", "hf:org/model", "--offline"], "nothing may be downloaded"),
        (["--model", "hf:{clip}", "--device", "cuda"], "no CUDA GPU"),
        (["--model", "hf:{clip}", "--dtype", "int3"], "unknown dtype 'int3'"),
        (["--model", "hf:{clip}", "--images", "/no/such/folder"], "there is no such folder of images"),
        (["--model", "hf:{clip}", "--store", "/dev/null/x"], "vectors cannot be stored there"),
        (["--model", "hf:{clip}", "--store", "x", "--no-store"], "choose one"),
        (["--model", "hf:{clip},weights=/no/file.pth"], "there is no weights file"),
    ],
)
def test_bad_choices_are_one_sentence(caplens, job, clip_folder, monkeypatch, tmp_path, arguments, sentence):
    import torch

    if torch.cuda.is_available() and "cuda" in arguments:
        pytest.skip("needs a machine without a GPU")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    said = caplens("score", job[0], *(argument.replace("{clip}", str(clip_folder)) for argument in arguments))
    assert said.status == 2
    assert sentence in said.err
    assert said.err.count("\n") <= 2


def test_a_benchmark_finds_its_photos(caplens, clip_folder, tmp_path):
    folder = tmp_path / "flickr8k"
    (folder / "Flicker8k_Dataset").mkdir(parents=True)
    lines, ratings = [], []
    for number in range(6):
        picture(number).save(folder / "Flicker8k_Dataset" / f"{number}.jpg")
        lines += [f"{number}.jpg#{index}\tcaption {index} of {number}" for index in range(5)]
        ratings.append(f"{number}.jpg\t{(number + 1) % 6}.jpg#0\t{number % 4 + 1}\t{(number + 1) % 4 + 1}\t1")
    (folder / "Flickr8k.token.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "ExpertAnnotations.txt").write_text("\n".join(ratings) + "\n", encoding="utf-8")
    said = caplens(
        "bench", "flickr8k-expert", "--data", folder, "--model", f"hf:{clip_folder}", "-m", "clipscore,refclipscore",
        "--resamples", 20, "-f", "json",
    )  # fmt: skip
    assert said.status == 0, said.err
    found = json.loads(said.out)
    assert found["counts"] == {"rows": 18, "images": 6, "failed": 0, "without_image": 0}
    assert found["results"]["clipscore"]["tau-c"]["published"] == 51.2


def test_mclip_and_pacs_names_work_from_the_command(caplens, job, clip_folder, tmp_path):
    folder = tiny_models.mclip(tmp_path / "XLM-Roberta-Large-Vit-B-32")
    name = f"mclip:{folder},image=hf:{clip_folder}"
    said = caplens("score", job[0], "--images", job[1], "--model", name, "-m", "mcs", "-f", "json")
    assert said.status == 0, said.err
    assert name in json.loads(said.out)["metrics"]["mcs"]["signature"]


def test_coco_files_find_their_images(caplens, clip_folder, tmp_path, write):
    """Results name the image by its number only; the annotations know its file."""
    (tmp_path / "val2014").mkdir()
    names = {number: f"COCO_val2014_{number:012}.jpg" for number in (7, 12)}
    for number, name in names.items():
        picture(number).save(tmp_path / "val2014" / name)
    results = write("results.json", [{"image_id": number, "caption": "a dog"} for number in names])
    annotations = {
        "images": [{"id": number, "file_name": name} for number, name in names.items()],
        "annotations": [{"image_id": number, "id": number, "caption": "the dog"} for number in names],
    }
    annotations = write("annotations.json", annotations)
    chosen = [*options(clip_folder, tmp_path / "val2014"), "-m", "clipscore,refclipscore", "-f", "json"]
    said = caplens("score", results, "-r", annotations, *chosen)
    assert said.status == 0, said.err
    assert None not in json.loads(said.out)["metrics"]["refclipscore"]["values"]


def damage(folder, what):
    """Model folders as people have them after a download went wrong."""
    files = {
        "cut weights": ("model.safetensors", lambda data: data[: len(data) // 2]),
        "empty weights": ("model.safetensors", lambda _: b""),
        "a pointer of Git LFS": (
            "model.safetensors",
            lambda _: b"version https://git-lfs.github.com/spec/v1",
        ),
        "no configuration": ("config.json", None),
        "broken configuration": ("config.json", lambda data: data[:40]),
        "odd configuration": ("config.json", lambda data: data.replace(b'"hidden_size": 32', b'"hidden_size": "abc"')),
        "another size": ("config.json", lambda data: data.replace(b'"hidden_size": 32', b'"hidden_size": 64')),
        "no image settings": ("preprocessor_config.json", None),
        "empty image settings": ("preprocessor_config.json", lambda _: b"{}"),
        "odd image settings": ("preprocessor_config.json", lambda _: b'{"size": {"longest_edge": 3}}'),
        "no size": ("preprocessor_config.json", lambda _: b'{"size": {"shortest_edge": 0}}'),
        "one colour": ("preprocessor_config.json", lambda _: b'{"size": 32, "image_mean": [0.5]}'),
        "odd tokenizer": ("tokenizer_config.json", lambda _: b"[]"),
    }
    if what == "no vocabulary":
        for name in ("tokenizer.json", "vocab.json", "merges.txt"):
            (folder / name).unlink()
        return
    name, change = files[what]
    if change is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(change((folder / name).read_bytes()))


@pytest.mark.parametrize(
    "what",
    ["cut weights", "empty weights", "a pointer of Git LFS", "no configuration", "broken configuration", "odd configuration",
     "another size", "no image settings", "empty image settings", "odd image settings", "no size", "one colour", "odd tokenizer",
     "no vocabulary"],
)  # fmt: skip
def test_a_damaged_model_is_one_sentence(caplens, job, clip_folder, tmp_path, what):
    folder = shutil.copytree(clip_folder, tmp_path / "model")
    damage(folder, what)
    said = caplens("score", job[0], "--images", job[1], "--model", f"hf:{folder}")
    assert said.status == 2, said
    assert str(folder) in said.err
    assert said.err.splitlines()[-1].startswith("caplens: ")
    assert len(said.err.splitlines()) <= 2


def test_a_checkpoint_that_is_the_model_itself_is_an_error_though_its_vectors_are_known(caplens, job, clip_folder):
    caplens("score", job[0], *options(clip_folder, job[1]))
    name = f"hf:{clip_folder},weights={clip_folder / 'model.safetensors'}"
    said = caplens("score", job[0], "--images", job[1], "--model", name, "-m", "pacs")
    assert said.status == 2
    assert "changes no weight" in said.err


@pytest.mark.parametrize("name", ["http://example.org/a.jpg", "", "a" * 5000, "a\0b"])
def test_an_odd_name_of_an_image_costs_its_row_only(caplens, job, clip_folder, write, name):
    rows = [{"id": "odd", "image": name, "caption": "a dog"}, {"id": "0", "image": "0.png", "caption": "a"}]
    captions = write("odd.jsonl", rows)
    said = caplens("score", captions, *options(clip_folder, job[1]), "-f", "json")
    assert said.status == 3, said.err
    assert json.loads(said.out)["errors"].keys() == {"odd"}
