"""A folder in which every command and program of the guides can run: small files under the names that the guides use."""

import json
import shutil
import tomllib
from importlib.resources import files
from pathlib import Path

import tiny_captioners
import tiny_data
import tiny_models

import caplens

EXAMPLES = Path(str(files("caplens").joinpath("examples")))
PLUGIN = Path(__file__).parents[1] / "examples" / "plugin"


def set_up(root: Path) -> Path:
    """Captions, photos, COCO files, a small Flickr8k, training data, and models in a cache as the hub's client has it."""
    photos = root / "photos"
    photos.mkdir(parents=True)
    for photo in EXAMPLES.glob("*.jpg"):
        shutil.copy(photo, photos)
    rows = [json.loads(line) for line in (EXAMPLES / "good.jsonl").read_text(encoding="utf-8").splitlines()]
    _write(root / "captions.jsonl", rows)
    good = _good_captions(photos)
    _write(root / "good.jsonl", good)
    for day in ("monday", "tuesday"):
        caplens.score(root / "good.jsonl", ["length"], resamples=0).save(root / f"{day}.json")
    _write(root / "rated.jsonl", [{**row, "ratings": [number % 4 + 1, 3]} for number, row in enumerate([*rows, *good])])
    lines = ["id,caption,references", *(f"{number},青い空と犬,犬と空" for number in range(3))]
    (root / "captions.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _coco(root, [row for row in rows if row["lang"] == "en"])
    flickr8k = _flickr8k(root / "flickr8k", photos)
    tiny_data.make(root / "data")
    shutil.copytree(flickr8k, root / "data" / "benchmarks" / "flickr8k")
    _videos(root, photos)
    _places(root)
    _crossmodal(root)
    _parts(root, good)
    _translations(root)
    _plugin(root)
    _models(root)
    return root


def _good_captions(photos: Path) -> list[dict[str, object]]:
    """Captions of enough images to measure levels on."""
    rows = []
    for number in range(60):
        tiny_models.picture(number + 10).save(photos / f"good-{number}.png")
        rows.append({"id": f"good-{number}", "image": f"good-{number}.png", "caption": f"waves number {number}", "lang": "en"})
    return rows


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _coco(root: Path, rows: list[dict[str, object]]) -> None:
    images = [{"id": number, "file_name": row["image"]} for number, row in enumerate(rows)]
    annotations = [
        {"id": 10 * number + place, "image_id": number, "caption": text}
        for number, row in enumerate(rows)
        for place, text in enumerate(row["references"])
    ]
    tiny_models.save_json(root, captions_val2014={"images": images, "annotations": annotations})
    for name, change in (("results", str), ("base", str.upper), ("large", lambda text: text + " Again.")):
        tiny_models.save_json(
            root, **{name: [{"image_id": number, "caption": change(row["caption"])} for number, row in enumerate(rows)]}
        )


def _flickr8k(folder: Path, photos: Path) -> Path:
    (folder / "images").mkdir(parents=True)
    (folder / "captions").mkdir()
    tokens, ratings, translated = [], [], {"ja": [], "tr": []}
    for number in range(6):
        tiny_models.picture(number).save(folder / "images" / f"{number}.jpg")
        shutil.copy(folder / "images" / f"{number}.jpg", photos)
        for place in range(5):
            tokens.append(f"{number}.jpg#{place}\tcaption {place} of {number}")
            for lang, lines in translated.items():
                lines.append(f"{number}.jpg\t{place}\t{lang} caption {place} {number}")
        ratings.append(f"{number}.jpg\t{(number + 1) % 6}.jpg#0\t{number % 4 + 1}\t{(number + 1) % 4 + 1}\t1")
    (folder / "Flickr8k.token.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (folder / "ExpertAnnotations.txt").write_text("\n".join(ratings) + "\n", encoding="utf-8")
    for lang, lines in translated.items():
        (folder / "captions" / f"{lang}.mt.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    root = folder.parent
    (root / "my_training_list.txt").write_text("somewhere/else.jpg\n", encoding="utf-8")
    quality = [
        f"{lang}\t{line.split(chr(9))[2]}\t{place / 40}" for lang in translated for place, line in enumerate(translated[lang])
    ]
    (root / "kiwi.tsv").write_text("\n".join(["lang\tcaption\tquality", *quality]) + "\n", encoding="utf-8")
    return folder


def _parts(root: Path, good: list[dict[str, object]]) -> None:
    """Captions in several files."""
    (root / "parts").mkdir()
    for number in range(2):
        _write(root / "parts" / f"{number}.jsonl", good[number::2])


def _places(root: Path) -> None:
    """Where photos were taken: in Germany, India, Kenya and elsewhere."""
    places = [(52, 13), (48, 11), (28, 77), (26, 80), (-1, 37), (-3, 38), (60, 10)]
    lines = ["id,latitude,longitude", *(f"p{number}.jpg,{lat},{lon}" for number, (lat, lon) in enumerate(places))]
    (root / "places.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _videos(root: Path, photos: Path) -> None:
    """A video as a folder of frames."""
    shutil.copytree(photos, root / "videos" / "clip")
    vatex = {"candidates_list": ["a cat", "a dog runs", "a man"], "gts_list": [["a cat"] * 9] * 3, "video_ids": ["clip"] * 3}
    (root / "vatex-eval").mkdir()
    tiny_models.save_json(root / "vatex-eval", **vatex, human_scores=[[1, 2, 3]] * 3)
    _write(root / "clips.jsonl", [{"id": str(number), "video": "clip", "caption": "a cat"} for number in range(2)])


def _translations(root: Path) -> None:
    """English captions, ready translations of them, and a benchmark to translate."""
    texts = ["a dog runs", "a cat sleeps", "the dog", "the cat"]
    _write(root / "english.jsonl", [{"id": str(number), "caption": text} for number, text in enumerate(texts[:2])])
    rows = [{"source": text, "caption": f"ein Hund und {text}", "lang": "de"} for text in texts]
    _write(root / "translations.jsonl", rows)
    (root / "vicr").mkdir(exist_ok=True)
    rated = [
        {"imgid": f"{number}.jpg", "caption": text, "score": number, "refs": [texts[number + 2]]}
        for number, text in enumerate(texts[:2])
    ]
    tiny_models.save_json(root / "vicr", vicr_test=rated)


def _crossmodal(root: Path) -> None:
    (root / "xm3600").mkdir()
    keys = ["k1", "k2", "k3"]
    _write(
        root / "xm3600" / "captions.jsonl",
        [{"image/key": key, "image/locale": "en", "en": {"caption": [f"a dog and {key}", "the dog"]}} for key in keys],
    )
    for name, text in (("a", "a dog"), ("b", "a cat and a dog")):
        _write(root / f"{name}.jsonl", [{"id": key, "caption": f"{text} {key}", "lang": "en"} for key in keys])


def _plugin(root: Path) -> None:
    """The example of a plug-in as pip installs it, in the folder `site-packages`, and the data of its benchmark."""
    packages = root / "site-packages"
    shutil.copytree(PLUGIN / "caplens_plugin", packages / "caplens_plugin", ignore=shutil.ignore_patterns("__pycache__"))
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = packages / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (root / "better-captions").mkdir()
    pairs = [{"image": f"{number}.jpg", "better": f"a dog and {number} cats", "worse": "dog dog"} for number in range(3)]
    _write(root / "better-captions" / "pairs.jsonl", pairs)


def _models(root: Path) -> None:
    import torch

    hub = root / "hub"
    made = {}

    def clip(folder: Path) -> Path:
        _, found, made["state"] = tiny_models.clip_in_both_libraries(root / "open_clip", folder)
        return found

    folder = tiny_models.in_hub_cache(hub, "openai/clip-vit-base-patch32", clip)
    shutil.copytree(folder, root / "FOLDER")
    torch.save({"state_dict": made["state"]}, root / "clip_ViT-B-32.pth")
    tiny_models.in_hub_cache(hub, "stable-diffusion-v1-5/stable-diffusion-v1-5", tiny_models.painter)
    tiny_models.in_hub_cache(hub, "Salesforce/blip-image-captioning-large", tiny_models.captioner)
    tiny_models.in_hub_cache(hub, "google/vit-base-patch16-224", tiny_captioners.vit)
    tiny_models.in_hub_cache(hub, "google/mt5-base", tiny_captioners.mt5)
