"""The `jieba` tokenizer for Chinese."""

import atexit
import logging
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from caplens.data.cache import cache_folder
from caplens.data.temporary import new_scratch_folder
from caplens.errors import InputError
from caplens.libraries import require
from caplens.text.segmenter import Segmenter


def load_jieba(purpose: str) -> Any:
    """The package, silenced, with its cache in the user's folder: in a temporary folder, others could change what it loads."""
    jieba = require("jieba", purpose, "cjk")
    jieba.setLogLevel(logging.CRITICAL)
    if jieba.dt.tmp_dir is None:
        jieba.dt.tmp_dir = str(_own_folder())
    return jieba


def _own_folder() -> Path:
    try:
        folder = cache_folder() / "jieba"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, InputError):
        folder = new_scratch_folder()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class JiebaTokenizer(Segmenter):
    name = "jieba"
    library = "jieba"

    def __init__(self, lang: str = "zh") -> None:
        super().__init__(lang)
        self._cut = load_jieba(f"The tokenizer {self.name!r}").dt.cut

    def segment(self, text: str) -> Iterable[str]:
        words: Iterable[str] = self._cut(text)
        return words
