"""What is fuzzed: every reader, and commands from their arguments to their exit status. Each target has files to mutate.

A target is called with a folder in which one of its files was mutated. It may return, or raise a `CaplensError`; commands may end
with status 0, 2, 3 or, below a threshold, 4. Anything else is a finding.
"""

import contextlib
import csv
import io
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from extras import need
from fasttext_models import fasttext_model
from fuzz import tables
from fuzz.layouts import CROSSMODAL, LAYOUTS
from PIL import Image

import caplens
from caplens.api.experiments import Experiment
from caplens.backbones import load_backbone
from caplens.backbones.hub import MANIFEST
from caplens.backbones.mini import FILES, mini_folder
from caplens.captioners import open_captioner
from caplens.cli.main import main
from caplens.data import SampleFile, read_references
from caplens.embed.images import UnreadableError, decode
from caplens.errors import CaplensError
from caplens.human.settings import StudySettings
from caplens.metrics.document_frequency import DocumentFrequency
from caplens.metrics.external import ExternalScores
from caplens.metrics.pair_statistics import PairStatistics
from caplens.partitions.planning import read_machines
from caplens.results.loading import load_results
from caplens.text.fasttext_file import read_fasttext_labels
from caplens.text.subwords import Subwords

EXAMPLES = Path(str(files("caplens").joinpath("examples")))
ROWS = [
    {
        "id": "1",
        "image": "1.png",
        "caption": "a dog runs",
        "references": ["a dog is running", "the dog runs"],
        "lang": "en",
        "ratings": [3, 4],
    },
    {
        "id": "2",
        "image": "2.png",
        "caption": "a cat sleeps",
        "references": ["a cat is sleeping"],
        "lang": "en",
        "ratings": [2],
        "x": {"y": [1]},
    },
    {
        "id": "3",
        "image": "1.png",
        "caption": "ein Hund rennt",
        "references": ["der Hund läuft"],
        "lang": "de",
        "ratings": [{"value": 1, "rater": "a"}],
    },
]
COCO = [{"image_id": 7, "caption": "a dog runs"}, {"image_id": 8, "caption": "a cat sleeps", "id": 3}]
ANNOTATIONS = {
    "images": [{"id": 7, "file_name": "1.png"}, {"id": 8, "file_name": "2.png"}],
    "annotations": [{"id": 1, "image_id": 7, "caption": "a dog"}, {"id": 2, "image_id": 8, "caption": "a cat"}],
}
SCORES = [{"id": row["id"], "score": number / 2} for number, row in enumerate(ROWS)]


def _lines(rows: list[dict]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _table(rows: list[dict], delimiter: str = ",") -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(
        out, ["id", "image", "caption", "references", "lang", "ratings"], delimiter=delimiter, extrasaction="ignore"
    )
    writer.writeheader()
    writer.writerows(
        {name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()} for row in rows
    )
    return out.getvalue().encode()


CAPTIONS = {
    "captions.jsonl": _lines(ROWS),
    "captions.csv": _table(ROWS),
    "captions.tsv": _table(ROWS, "\t"),
    "captions.json": json.dumps(ROWS).encode(),
    "coco.json": json.dumps(COCO).encode(),
    "dictionary.json": json.dumps({row["id"]: row["caption"] for row in ROWS}).encode(),
}
REFERENCES = {
    "references.json": json.dumps(ANNOTATIONS).encode(),
    "references.jsonl": _lines([{"id": row["id"], "references": row["references"], "lang": row["lang"]} for row in ROWS]),
    "list.json": json.dumps({row["id"]: row["references"] for row in ROWS}).encode(),
}


STUDY = (
    b'title = "Alt texts"\ntask = "rate"\nreplication = 5\ncriteria = ["fluency", "adequacy"]\ngold_share = 0.1\n'
    b'[guidelines]\nen = "Be kind."\n[[scale]]\nvalue = 1\nname = "yes"\n[[scale]]\nvalue = 0\nname = "no"\nmeaning = "never"\n'
)


MACHINES = (
    b'[[machine]]\nname = "big"\ncores = 64\nprice = 2.5\ngpu = true\n[machine.rates]\n'
    b'"caplens-mini" = { images = 100, texts = 1000.5 }\n[[machine]]\nname = "small"\ncores = 2\n'
)
EXPERIMENT = (
    b'images = "photos"\noutput = "out"\nreferences = "test.jsonl"\nmetrics = ["clipscore", "cider"]\nlangs = ["en", "de"]\n'
    b'side_by_side = 2\nnbest = 3\nrerank = "length"\n[systems]\nmini = "caplens-mini-captioner"\npeople = "people.jsonl"\n'
)


class Target(NamedTuple):
    """One thing that is fuzzed."""

    name: str
    files: dict[str, bytes]
    run: Callable[[Path, Path], object]
    """(folder with all files, the mutated file)"""


def _image(form: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (24, 32, 3), dtype=np.uint8)).save(out, form)
    return out.getvalue()


def _decode(_: Path, path: Path) -> None:
    with contextlib.suppress(UnreadableError):
        decode(path)


def _read_captions(_: Path, path: Path) -> None:
    samples = [sample for sample in SampleFile(path, mark_repeats=True) if not sample.invalid]
    naive = naive_rows(path)
    if naive is not None:
        assert [(sample.id, sample.caption) for sample in samples] == naive, "the rows are not those of the file"


def naive_rows(path: Path) -> list[tuple[str, str]] | None:
    """(id, caption) of each row of a plain JSONL file as the standard library reads it; None where it is not so plain."""
    rows = []
    try:
        for line in path.read_bytes().decode().split("\n"):
            if line.strip():
                row = json.loads(line)
                identifier = row.get("id") if row.get("id") is not None else row.get("image_id")
                if identifier is None or identifier != identifier:
                    # Such a caption is known by its image, or an error.
                    return None
                rows.append((str(identifier), row["caption"] or ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return (
        rows
        if len({identifier for identifier, _ in rows}) == len(rows) and all(isinstance(text, str) for _, text in rows)
        else None
    )


def _join(folder: Path, path: Path) -> None:
    """The references that captions get are those that a naive join of the same rows gives them."""
    samples = list(SampleFile(path.parent / "captions.jsonl", mark_repeats=True))
    rows = list(SampleFile(path.parent / "references.jsonl", caption_required=False))
    joined = list(read_references(path.parent / "references.jsonl").joined(samples, "en"))
    if any(sample.image_id is not None for sample in samples + rows):
        return
    for before, after in zip(samples, joined, strict=True):
        expected = before.references + naive_references(before, rows)
        assert after.references == expected, f"wrong references of {before.id!r}"


def naive_references(sample: caplens.Sample, rows: list[caplens.Sample]) -> tuple[str, ...]:
    """The texts of all rows with this id, those without a language before those in the sample's."""
    own = [row for row in rows if row.id == sample.id]
    ordered = [row for tag in (None, sample.key[1] or "en") for row in own if row.key[1] == tag]
    return tuple(text for row in ordered for text in (row.references or ((row.caption,) if row.caption else ())))


def _model(folder: Path, path: Path) -> None:
    """A model folder of which one file is mutated, without its manifest."""
    model = folder / "model"
    model.mkdir(exist_ok=True)
    for name in FILES:
        link = model / name
        link.unlink(missing_ok=True)
        link.symlink_to(path if name == path.name else mini_folder("caplens-mini") / name)
    if path.name == MANIFEST:
        (model / MANIFEST).unlink(missing_ok=True)
        (model / MANIFEST).symlink_to(path)
    load_backbone(str(model))


def _recipe(_: Path, path: Path) -> None:
    from caplens.training.recipes.pacs import PacsRecipe
    from caplens.training.recipes.recipe import read_recipe

    read_recipe(PacsRecipe, path)


def command(*arguments: str) -> Callable[[Path, Path], None]:
    """A command, with {file} for the mutated file and {folder} for the folder of the others."""

    def run(folder: Path, path: Path) -> None:
        filled = [argument.format(file=path, folder=folder) for argument in arguments]
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        before = sys.argv
        sys.argv = ["caplens", *filled]
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main()
        except SystemExit as end:
            if end.code not in (None, 0, 2, 3, 4):
                raise AssertionError(f"exit status {end.code}") from end
            if end.code == 2:
                err.flush()
                said = err.buffer.getvalue().decode()
                assert said.strip(), "an error without a message"
                assert "\x1b[31m" not in said, "an escape sequence reached the terminal"
        finally:
            sys.argv = before

    return run


def _results() -> dict[str, bytes]:
    names = ("score", "compare", "bench", "robustness", "leakage", "crossmodal")
    folder = Path(__file__).parents[1] / "golden" / "results-0.1"
    new = caplens.score(ROWS, ["cider", "bleu1", "length"], resamples=10)
    two = caplens.compare({"a": ROWS, "b": ROWS}, ["bleu1"], resamples=5)
    fresh = {f"new-{result.kind}.json": json.dumps(result.to_dict()).encode() for result in (new, two)}
    return {f"{name}.json": (folder / f"{name}.json").read_bytes()[:200_000] for name in names} | fresh


def _frequencies() -> dict[str, bytes]:
    document = {
        "caplens_document_frequency": 1,
        "documents": 2,
        "tokenizer": "ptb",
        "lang": "en",
        "counts": {"a": 2, "dog": 1, "a dog": 1},
    }
    return {"df.json": json.dumps(document).encode()}


def _statistics() -> bytes:
    statistics, rng = PairStatistics(3, "m", "f"), np.random.default_rng(0)
    statistics.add(*rng.normal(size=(2, 9, 3)))
    with tempfile.TemporaryDirectory() as folder:
        statistics.save(Path(folder) / "mid.npz")
        return (Path(folder) / "mid.npz").read_bytes()


LOG = b"".join(
    json.dumps({"stage": "tune", "step": step, "loss": 1 / step, "rate": 0.1}).encode() + b"\n" for step in range(1, 5)
)
RECIPE = (Path(str(files("caplens.training.recipes"))) / "pacs.toml").read_bytes()
VOCABULARY = (mini_folder("caplens-mini") / "vocabulary.tsv").read_bytes()[:3000]


def readers() -> list[Target]:
    """In-process readers of single files."""
    return [
        Target("captions", CAPTIONS, _read_captions),
        Target("tables", tables.plain_tables(), tables.read_all),
        Target("tar", {"shard.tar": tables.archive()}, tables.read_all),
        Target("photos with captions", *tables.described_photos()),
        Target("calibration", {"levels.json": tables.calibration()}, tables.read_calibration),
        Target("references", REFERENCES | CAPTIONS, lambda _, path: list(read_references(path))),
        Target("join", {"captions.jsonl": CAPTIONS["captions.jsonl"], "references.jsonl": REFERENCES["references.jsonl"]}, _join),
        Target("external scores", {"mine.jsonl": _lines(SCORES)}, lambda _, path: ExternalScores.read(path)),
        Target("document frequencies", _frequencies() | REFERENCES, lambda _, path: DocumentFrequency.load(path)),
        Target("results", _results(), lambda _, path: str(load_results(path))),
        Target("training log", {"log.jsonl": LOG}, lambda _, path: str(load_results(path))),
        Target("recipe", {"recipe.toml": RECIPE}, _recipe),
        Target("fasttext", {"model.bin": fasttext_model(word_ngrams=2, bucket=3)}, lambda _, path: read_fasttext_labels(path)),
        Target("mid statistics", {"mid.npz": _statistics()}, lambda _, path: PairStatistics.load(path)),
        Target("vocabulary", {"vocabulary.tsv": VOCABULARY}, lambda _, path: Subwords.load(path)),
        Target("model", {name: (mini_folder("caplens-mini") / name).read_bytes() for name in ("model.json", MANIFEST)}, _model),
        Target(
            "images", {f"photo.{form.lower()}": _image(form) for form in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")}, _decode
        ),
    ]


def commands() -> list[Target]:
    """Whole commands, in this process."""
    captions = {name: CAPTIONS[name] for name in ("captions.jsonl", "captions.csv", "coco.json")}
    results = {name: content for name, content in _results().items() if len(content) < 50_000}
    return [
        Target("score", captions, command("score", "{file}", "-m", "cider,bleu4,rouge-l,length", "--json")),
        Target("score table", captions, command("score", "{file}", "-m", "bleu1", "-q")),
        Target(
            "score df",
            _frequencies(),
            command("score", "{folder}/captions.jsonl", "-m", "cider", "--df", "{file}", "--lang", "en", "-q"),
        ),
        Target(
            "score references",
            REFERENCES,
            command("score", "{folder}/captions.jsonl", "-r", "{file}", "-m", "bleu1", "-f", "csv"),
        ),
        Target(
            "score images",
            captions,
            command("score", "{file}", "--images", "{folder}", "-m", "clipscore", "--json", "--no-store"),
        ),
        Target("score partitions", captions, command("score", "{file}", "-m", "cider,length", "-o", "{folder}/scores", "-q")),
        Target(
            "compare",
            captions,
            command("compare", "{folder}/captions.jsonl", "{file}", "-m", "bleu1", "--resamples", "10", "-f", "markdown"),
        ),
        Target("agreement", captions, command("agreement", "{file}", "-m", "length,bleu1", "--resamples", "10", "--json")),
        Target(
            "agreement scores",
            {"mine.jsonl": _lines(SCORES)},
            command("agreement", "{folder}/captions.jsonl", "--scores", "{file}", "--resamples", "10"),
        ),
        Target("robustness", captions, command("robustness", "{file}", "-m", "length", "--resamples", "10", "-f", "latex")),
        Target(
            "convert to csv",
            captions | {"captions.json": CAPTIONS["captions.json"]},
            command("convert", "{file}", "{folder}/out.csv"),
        ),
        Target("convert to jsonl", CAPTIONS, command("convert", "{file}", "{folder}/out.jsonl", "-q")),
        Target("convert to coco", captions, command("convert", "{file}", "{folder}/out.json", "--to", "coco", "--lossy")),
        Target("count-df", REFERENCES, command("count-df", "{file}", "{folder}/df-out.json", "--lang", "en")),
        Target("perturb", captions, command("perturb", "{file}", "{folder}/worse.csv")),
        Target(
            "translate",
            captions,
            command("translate", "{file}", "{folder}/de.csv", "--to", "de", "--translator", "file:{file}", "--no-language-check"),
        ),
        Target(
            "leakage",
            {"training.txt": b"1.jpg\nphotos/2.jpg\n"},
            command("leakage", "polaris", "--training", "{file}", "--data", "{folder}/polaris"),
        ),
        Target("check", captions, command("check", "{file}", "--json")),
        Target(
            "check images", captions, command("check", "{file}", "--images", "{folder}", "--no-store", "-o", "{folder}/fix.html")
        ),
        Target("filter", captions, command("filter", "{file}", "{folder}/kept.csv", "-m", "length", "--keep-top", "50%")),
        Target("filter lines", captions, command("filter", "{file}", "{folder}/kept.jsonl", "-m", "length", "--above", "2")),
        Target("calibrate", captions, command("calibrate", "{file}", "-m", "length", "--json")),
        Target(
            "score levels",
            {"levels.json": tables.calibration()},
            command("score", "{folder}/captions.jsonl", "-m", "length", "--calibration", "{file}", "-f", "csv"),
        ),
        Target("study settings", {"study.toml": STUDY}, lambda _, path: StudySettings.read(path)),
        Target("machines", {"machines.toml": MACHINES}, lambda _, path: read_machines(path)),
        Target("experiment", {"study.toml": EXPERIMENT}, lambda _, path: Experiment.read(path)),
        Target("captioner settings", {"captioner.json": _captioner()}, _open_captioner),
        Target(
            "caption", captions, command("caption", "{file}", "--images", "{folder}", "-o", "{folder}/said.csv", "--no-store")
        ),
        Target("filter partitions", captions, command("filter", "{file}", "{folder}/kept", "-m", "length", "--keep-top", "50%")),
        Target("drift", results, command("drift", "{folder}/scores.json", "{file}", "--resamples", "10")),
        Target("report", results, command("report", "{file}", "-o", "{folder}/report.html", "-q")),
        Target(
            "train",
            {"recipe.toml": RECIPE},
            command(
                "train", "pacs", "{folder}/captions.jsonl", "--images", "{folder}", "--out", "{folder}/run", "--config", "{file}"
            ),
        ),
    ]


def _benchmark(name: str) -> Callable[[Path, Path], None]:
    def run(folder: Path, path: Path) -> None:
        caplens.bench(name, path.parent, ["length", "bleu1"], resamples=2, lang="id" if name == "marvl" else "en")

    return run


def _captioner() -> bytes:
    return files("caplens.captioners").joinpath("caplens-mini-captioner", "captioner.json").read_bytes()


def _open_captioner(folder: Path, path: Path) -> None:
    """The settings in a folder with the weights of the captioner inside the package."""
    home = folder / "captioner"
    home.mkdir(exist_ok=True)
    shutil.copyfile(path, home / "captioner.json")
    weights = Path(str(files("caplens.captioners").joinpath("caplens-mini-captioner", "decoder.npz")))
    if not (home / "decoder.npz").exists():
        (home / "decoder.npz").symlink_to(weights)
    open_captioner(str(home)).caption([Image.new("RGB", (8, 8))], "en", 1)


def _crossmodal(folder: Path, path: Path) -> None:
    systems = {"a": [{"id": "k1", "caption": "a dog", "lang": "en"}, {"id": "k2", "caption": "men", "lang": "de"}]}
    caplens.crossmodal(systems, path.parent, ["bleu1"], resamples=2)


def _parquet(_: Path, path: Path) -> None:
    list(SampleFile(path))
    command("convert", "{file}", "{folder}/from-parquet.csv", "-q")(path.parent, path)


def _parquet_file() -> bytes:
    """With columns of types that only Parquet has."""
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    rows = [
        {**{name: row[name] for name in ("id", "caption", "references")}, "when": datetime(2026, 1, 2), "cost": Decimal("1.5")}
        for row in ROWS
    ]
    out = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(rows), out)
    return out.getvalue()


def data_sets() -> list[Target]:
    """The files of benchmarks, beside each other, one of them mutated."""
    targets = [Target(f"bench {name}", files, _benchmark(name)) for name, files in LAYOUTS.items()]
    targets.append(Target("crossmodal", CROSSMODAL, _crossmodal))
    for name, made in (("workbook", tables.workbook()), ("arrow", tables.arrow_folder())):
        if made is not None:
            targets.append(Target(name, *made))
    if find_spec("pyarrow") is not None:
        targets.append(Target("parquet", {"captions.parquet": _parquet_file()}, _parquet))
    return targets


OPTIONS = {
    "score": {
        "-m": "bleu1,length",
        "--lang": "en",
        "--tokenizer": "13a",
        "--resamples": "5",
        "--seed": "0",
        "-f": "csv",
        "--keep-columns": "x",
        "--columns": "caption=caption,lang=lang",
        "--fail-under": "bleu1=0.5,length=10%<3",
    },
    "check": {"--lang": "en", "--columns": "image=image", "--page-lang": "de", "--seed": "1"},
    "filter": {"-m": "length", "--keep-top": "30%", "--columns": "image=image"},
    "calibrate": {"-m": "length", "--draws": "3", "--coverage": "0.9", "--about": "x", "--seed": "1"},
    "score --images {folder} --no-store --offline": {
        "-m": "clipscore",
        "--prompt": "A photo of ",
        "--weight": "2.5",
        "--model": "caplens-mini",
        "--overlong": "split",
        "--dtype": "fp32",
        "--device": "cpu",
        "--batch-size": "4",
        "--workers": "2",
    },
    "robustness": {"-m": "length", "--perturbation": "jumble", "--resamples": "5", "--seed": "1"},
    "agreement": {"-m": "length", "--resamples": "5", "--correction": "holm"},
    "train pacs --images {folder} --out {folder}/run": {
        "--set": "train.steps=3",
        "--device": "cpu",
        "--seed": "0",
        "--model": "nothing",
    },
}
"""Command -> options, whose values are mutated."""


def _arguments(words: str) -> Callable[[Path, Path], None]:
    """A command whose options are the file: a JSON object of option -> value."""
    defaults = OPTIONS[words]

    def run(folder: Path, path: Path) -> None:
        try:
            options = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            return
        if isinstance(options, dict):
            given = [str(part).replace("\0", "") for name, value in options.items() if name in defaults for part in (name, value)]
            name, *more = words.split()
            before = ["train", more.pop(0)] if name == "train" else [name]
            before += ["{folder}/captions.jsonl", *(["{folder}/kept.jsonl"] if name == "filter" else [])]
            command(*before, *more, *(part.replace("{", "{{").replace("}", "}}") for part in given))(folder, path)

    return run


def arguments() -> list[Target]:
    """Commands with odd values of their options."""
    return [
        Target(
            f"options of {words.partition(' --')[0]}{' with images' if '--images' in words else ''}",
            {"options.json": json.dumps(options).encode()},
            _arguments(words),
        )
        for words, options in OPTIONS.items()
    ]


def lay_out(folder: Path) -> None:
    """The files that are not mutated: captions, and two photos."""
    (folder / "captions.jsonl").write_bytes(CAPTIONS["captions.jsonl"])
    (folder / "references.jsonl").write_bytes(REFERENCES["references.jsonl"])
    for name in ("1.png", "2.png"):
        (folder / name).write_bytes(_image("PNG"))
    (folder / "scores.json").write_bytes(json.dumps(caplens.score(ROWS, ["bleu1", "length"], resamples=10).to_dict()).encode())
    (folder / "polaris").mkdir(exist_ok=True)
    for name, content in LAYOUTS["polaris"].items():
        (folder / "polaris" / name).write_bytes(content)


def run_once(target: Target, content: bytes, name: str, folder: Path) -> None:
    """Run a target on one content of one of its files; raises what is a finding."""
    path = folder / "mutated" / target.name.replace(" ", "-") / name
    if not path.parent.exists():
        path.parent.mkdir(parents=True)
        for other, unchanged in target.files.items():
            (path.parent / other).write_bytes(unchanged)
    path.write_bytes(content)
    try:
        target.run(path.parent if target.name == "join" else folder, path)
    except CaplensError as error:
        if not str(error).strip():
            raise AssertionError("an error without a message") from error
    finally:
        path.write_bytes(target.files[name])


def draw(target: Target, rng: random.Random) -> str:
    return rng.choice(list(target.files))
