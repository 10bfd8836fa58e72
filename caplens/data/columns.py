"""The columns of tables that people have: `Alt-Text`, `Bild` and `Sprache` mean caption, image and language.

A column that caplens knows by its own name stands for itself. Where one is missing, a column with a usual name for it is taken,
which is said; a table with one column for each language becomes one row for each language.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from caplens.data.aliases import ALIASES, field_meant_by, folded
from caplens.data.extracted import original_name
from caplens.data.files import Place
from caplens.data.languages import base_language, language_names
from caplens.data.rows import FIELDS, Row, canonical_name
from caplens.data.sample import IMAGE_ID
from caplens.errors import InputError, option
from caplens.progress import logger
from caplens.terminal import visible

_NATIVE_NAMES = {
    "deutsch": "de", "englisch": "en", "anglais": "en", "inglés": "en", "ingles": "en", "arabisch": "ar", "arabe": "ar",
    "عربي": "ar", "العربية": "ar", "عربية": "ar", "français": "fr", "französisch": "fr", "español": "es", "spanisch": "es",
    "espagnol": "es", "italiano": "it", "italienisch": "it", "português": "pt", "portugiesisch": "pt", "nederlands": "nl",
    "türkçe": "tr", "türkisch": "tr", "čeština": "cs", "tschechisch": "cs", "polski": "pl", "polnisch": "pl", "русский": "ru",
    "russisch": "ru", "українська": "uk", "ukrainisch": "uk", "中文": "zh", "简体中文": "zh", "汉语": "zh", "chinesisch": "zh",
    "日本語": "ja", "japanisch": "ja", "한국어": "ko", "koreanisch": "ko",
    "हिन्दी": "hi", "हिंदी": "hi", "فارسی": "fa", "עברית": "he",
    "mandarin": "zh", "farsi": "fa", "norwegian": "no", "filipino": "fil", "greek": "el", "swahili": "sw", "quechua": "quz",
}  # fmt: skip
_FEWEST_LANGUAGES = 2
"""Columns of languages that make a table a wide one."""
_MOST_LANGUAGES = 500
_MOST_KEYS = 1000
"""Sets of columns, of rows that name them one by one, that are remembered."""
ColumnChoice = Mapping[str, str]
"""Field -> the column that holds it."""


def parsed_columns(texts: Iterable[str]) -> dict[str, str]:
    """`caption=ALT,image=Datei` -> field by field; an error for a field that does not exist."""
    columns: dict[str, str] = {}
    for text in texts:
        for part in text.split(","):
            field, sign, name = part.partition("=")
            field = field.strip().lower()
            if not sign or not name.strip() or field not in (*FIELDS, IMAGE_ID):
                raise InputError(
                    f"{part!r}: write FIELD=COLUMN, as in {option('columns', 'caption=ALT,image=File')}; fields are"
                    f" {', '.join(FIELDS)} and {IMAGE_ID}."
                )
            if columns.setdefault(field, name.strip()) != name.strip():
                raise InputError(f"two columns are named for {field!r}. Name one.")
    return columns


class Columns:
    """What the columns of a file mean.

    Parameters
    ----------
    choice
        Field -> the column that holds it, as the user says.
    numbered
        Whether several rows about one image without ids are several captions, each with a number; references are not.
    """

    def __init__(self, choice: ColumnChoice | None = None, *, numbered: bool = True) -> None:
        self.choice = dict(choice or {})
        self._languages: dict[str, str] = {}
        """Column -> language, of a table with one column for each."""
        self._new_names: dict[tuple[str, ...], dict[str, str]] = {}
        """Of rows that name their columns one by one: columns -> those with a new name."""
        self._columns: dict[str, str] = {}
        """Field -> its column, of such rows: the first that a row has, for all of the file."""
        self._numbered = numbered
        self._said: set[str] = set()
        self._seen: dict[tuple[object, ...], int] = {}
        """How often an image was met that stands for the id of its captions."""

    def of_part(self) -> "Columns":
        """The same for the next part of a data set, which may call its columns otherwise."""
        part = Columns(self.choice, numbered=self._numbered)
        part._said, part._seen = self._said, self._seen
        return part

    def renamed(self, header: Sequence[str], place: Place, *, by_row: bool = False) -> list[str]:
        """The header with the names of fields where a column stands for one.

        `by_row`: whether it is that of a row which names its columns; another row may have others, but a field has one column in
        all of a file, as it has in a table.
        """
        names = self._with_choice(header, place, complete=not (by_row and self._new_names))
        if not {"caption", "lang"} & set(names) and not any(field_meant_by(name) == "caption" for name in names):
            self._take_languages(names, place)
        for field in ALIASES:
            if field in names or (field == "id" and IMAGE_ID in names):
                if by_row:
                    self._keep_own_name(field, place)
            elif field not in self.choice:
                self._take_alias(field, names, header, place, by_row=by_row)
        return names

    def _keep_own_name(self, field: str, place: Place) -> None:
        """A field that a row calls by its own name is called so in all rows."""
        if self._columns.setdefault(field, field) != field:
            raise InputError(
                f"{place}: this row has a column {field!r}, which rows before it call {self._columns[field]!r}. Use one name."
            )

    def _take_languages(self, names: Sequence[str], place: Place) -> None:
        added = {name: lang for name, lang in _languages_of(names).items() if name not in self._languages}
        if added:
            self._languages |= added
            self._say(f"{place.file.name}: one column for each language: {', '.join(added.values())}")
        if len(self._languages) > _MOST_LANGUAGES:
            raise InputError(f"{place}: there are more than {_MOST_LANGUAGES} columns of languages. Give rows a column 'lang'.")

    def _with_choice(self, header: Sequence[str], place: Place, *, complete: bool) -> list[str]:
        """The header with the names of fields where the user names a column for one; `complete` where it has to be there."""
        names = [canonical_name(name.strip()) for name in header]
        for field, column in self.choice.items():
            exact = [number for number, name in enumerate(header) if name == column]
            alike = exact or [number for number, name in enumerate(header) if folded(name) == folded(column)]
            if len(alike) > 1:
                raise InputError(
                    f"{place}: several columns are called {column!r} ({_listed(header[n] for n in alike)}). Rename them."
                )
            if not alike and complete:
                raise InputError(f"{place}: there is no column {column!r} (columns: {_listed(header)}).")
            # A column of the field's own name that is not meant gets another.
            names = [f"{name} (not used)" if name == field else name for name in names]
            if alike:
                names[alike[0]] = field
        return names

    def _take_alias(self, field: str, names: list[str], header: Sequence[str], place: Place, *, by_row: bool) -> None:
        """Let a column with a usual name for a field stand for it."""
        if field == "caption" and (self._languages or "references" in names):
            return
        meant = [number for number, name in enumerate(names) if name not in FIELDS and field_meant_by(name) == field]
        if by_row and field in self._columns:
            meant = [number for number in meant if header[number] == self._columns[field]]
        if not meant:
            return
        self._say_choice(field, [header[number] for number in meant], place)
        names[meant[0]] = field
        if by_row:
            self._columns[field] = header[meant[0]]

    def _say_choice(self, field: str, candidates: Sequence[str], place: Place) -> None:
        """Say which column is taken; of several for the caption, none is."""
        if field == "caption" and len(candidates) > 1:
            raise InputError(
                f"{place}: the columns {_listed(candidates)} could each be the caption. Name the one that is meant:"
                f" {option('columns', f'caption={candidates[0]}')}."
            )
        what = _SAID.get(field, field)
        self._say(f"{place.file.name}: the column {candidates[0]!r} is read as the {what}")
        if len(candidates) > 1:
            choice = option("columns", f"{field}={candidates[1]}")
            others = _listed(candidates[1:])
            self._say(
                f"{place.file.name}: {others} could be the {what} as well; the first is taken. Choose with {choice}", warning=True
            )

    def rows(self, placed: Iterable[tuple[Place, Row]], *, by_row: bool) -> Iterator[tuple[Place, Row]]:
        """The rows of a file, one for each language of a wide table; a row without an id has that of its image.

        `by_row`: whether each row names its columns, so that there was no header to rename.
        """
        for place, row in placed:
            named = self._with_new_names(row, place) if by_row else row
            for narrow in self._by_language(named, place, by_row=by_row):
                _name_language(narrow)
                self._identify(narrow, place)
                yield place, narrow

    def _with_new_names(self, row: Row, place: Place) -> Row:
        keys = tuple(row)
        new_names = self._new_names.get(keys)
        if new_names is None:
            names = self.renamed(keys, place, by_row=True)
            new_names = {old: new for old, new in zip(row, names, strict=True) if old != new and canonical_name(old) != new}
            if len(self._new_names) < _MOST_KEYS:
                self._new_names[keys] = new_names
        if not new_names:
            return row
        renamed: Row = {new_names.get(name, name): value for name, value in row.items()}
        if len(renamed) < len(row):
            raise InputError(f"{place}: two of its columns have the same meaning ({_listed(row)}). Rename one of them.")
        return renamed

    def _by_language(self, row: Row, place: Place, *, by_row: bool) -> Iterator[Row]:
        """The captions of a row, one in each language; rows that name their columns may have some of them."""
        here = self._languages
        if by_row:
            here = {name: self._languages[name] for name in row if name in self._languages}
        if not here or (by_row and "caption" in row):
            yield row
            return
        if len(set(here.values())) < len(here):
            raise InputError(f"{place}: two of its columns are in one language ({_listed(here)}). Remove one of them.")
        shared = {name: value for name, value in row.items() if name not in here}
        for name, lang in here.items():
            yield {**shared, "caption": row.get(name), "lang": lang}

    def _identify(self, row: Row, place: Place) -> None:
        image = row.get("image")
        if row.get("id") is None and row.get(IMAGE_ID) is None and isinstance(image, str) and image:
            self._say(f"{place.file.name}: there is no column 'id', so captions are known by their images")
            # Where an image is while caplens runs is another place each time.
            name = original_name(image)
            # Values that are no text are an error later on.
            key = (name, str(row.get("lang")), str(row.get("system")))
            self._seen[key] = self._seen.get(key, 0) + 1
            row["id"] = f"{name}#{self._seen[key]}" if self._numbered and self._seen[key] > 1 else name

    def _say(self, what: str, *, warning: bool = False) -> None:
        if what not in self._said:
            self._said.add(what)
            (logger.warning if warning else logger.info)(f"{visible(what)}.")


_SAID = {"lang": "language"}


def knows_columns(header: Sequence[str]) -> bool:
    """Whether a line looks like the header of a table of captions."""
    names = {canonical_name(name) for name in header}
    fields = [field_meant_by(name) for name in header]
    return bool(
        names & {"id", IMAGE_ID, "caption", "references"}
        or "caption" in fields
        or (("image" in fields or "image" in names) and len(_languages_of(header)) >= _FEWEST_LANGUAGES)
    )


def _languages_of(names: Iterable[str]) -> dict[str, str]:
    """Column -> language, of columns that are called as a language, or as a caption in one; none if there are fewer than two."""
    languages: dict[str, str] = {}
    for name in names:
        lang = _language_of(name)
        if lang is not None:
            if lang in languages.values():
                return {}
            languages[name] = lang
    return languages if len(languages) >= _FEWEST_LANGUAGES else {}


def _language_of(name: str) -> str | None:
    """`de`, `Deutsch`, `caption_de`, `Alt-Text (de)` -> de"""
    words = folded(name)
    if (lang := language_code(words)) is not None and canonical_name(name) not in FIELDS and words not in _NO_LANGUAGES:
        return lang
    first, _, last = words.rpartition(" ")
    if first and (first == "caption" or field_meant_by(first) == "caption"):
        return language_code(last)
    return None


_NO_LANGUAGES = frozenset({"id", "no", "to", "is", "as", "or", "so", "an", "be", "my", "he", "ch", "nr"})
"""Codes of languages that are words, or names of other columns."""


def language_code(text: str) -> str | None:
    """The code of a language by its code, its English name, or its own name; None for anything else."""
    name = text.strip().casefold()
    if name in _NATIVE_NAMES:
        return _NATIVE_NAMES[name]
    if name in _english_names():
        return _english_names()[name]
    try:
        return base_language(text.strip()) if len(name.replace("_", "-").split("-")[0]) in (2, 3) else None
    except InputError:
        return None


@cache
def _english_names() -> dict[str, str]:
    return {name.casefold(): code for code, name in language_names().items()}


def _name_language(row: Row) -> None:
    """A language that is written out becomes its code."""
    lang = row.get("lang")
    if isinstance(lang, str) and lang.strip().casefold() in {**_NATIVE_NAMES, **_english_names()}:
        row["lang"] = language_code(lang)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in list(names)[:12])
