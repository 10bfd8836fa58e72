"""Translations that were made elsewhere: a file with `source`, `caption` and `lang`, one or several rows for each source."""

import hashlib
from collections.abc import Sequence
from os import PathLike

from caplens.data.files import on_disk
from caplens.data.languages import base_language
from caplens.data.records import field, numbers, read_records, text
from caplens.errors import InputError
from caplens.translation.base import Hypothesis, Translations, unknown_language


class ReadyTranslations:
    """Looks translations up in a file.

    Parameters
    ----------
    path
        CSV, TSV, JSONL or a JSON list with `source`, `caption`, `lang`, and perhaps `log_probability`; of several rows for one
        source the first is the best.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        file = on_disk(path)
        self.name = f"file:{path}"
        self._translations: dict[tuple[str, str], list[Hypothesis]] = {}
        tags: dict[str, str] = {}
        for place, record in read_records(file):
            source, caption, lang = (text(field(record, [name], place), place) for name in ("source", "caption", "lang"))
            score = record.get("log_probability")
            probability = None if score in (None, "") else numbers(score, place)[0]
            tag = tags.setdefault(base_language(lang), lang)
            if tag != lang:
                raise InputError(f"{place}: {lang!r} and {tag!r} are variants of one language; keep the rows of one of them.")
            self._translations.setdefault((base_language(lang), source.strip()), []).append(Hypothesis(caption, probability))
        if not self._translations:
            raise InputError(f"{path}: there are no translations in the file.")
        content = repr(sorted(self._translations.items())).encode()
        self.fingerprint = hashlib.sha256(content).hexdigest()

    def check_languages(self, source: str, target: str) -> None:
        langs = sorted({lang for lang, _ in self._translations})
        if target not in langs:
            raise unknown_language(self.name, target, langs)

    def translate(self, texts: Sequence[str], source: str, target: str, n: int) -> list[Translations]:
        rows = [self._translations.get((target, text.strip()), [])[:n] for text in texts]
        return [Translations(hypotheses, None if hypotheses else "the file has no translation of it") for hypotheses in rows]
