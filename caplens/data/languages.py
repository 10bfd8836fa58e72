"""Language codes: the supported ones, and the 36 of Crossmodal-3600."""

from functools import cache
from importlib.resources import files

from caplens.errors import InputError

CROSSMODAL_3600 = (
    "ar bn cs da de el en es fa fi fil fr he hi hr hu id it ja ko mi nl no pl pt quz ro ru sv sw te th tr uk vi zh".split()
)
"""The languages of Crossmodal-3600 (Thapliyal et al. 2022, table 1); the paper writes `iw` for `he`."""

_ALIASES = {
    "iw": "he",
    "in": "id",
    "ji": "yi",
    "jw": "jv",
    "tl": "fil",
    "cmn": "zh",
    "nb": "no",
    "mo": "ro",
    "sh": "sr",
}


@cache
def language_names() -> dict[str, str]:
    """Code -> English name, for all of ISO 639-1 and common languages of ISO 639-3 without a two-letter code."""
    table = files("caplens.data").joinpath("languages.tsv").read_text(encoding="utf-8")
    return dict(line.split("\t") for line in table.splitlines())


@cache
def base_language(tag: str) -> str:
    """The language subtag of a BCP-47 tag ("zh-Hans-CN" -> "zh"), with deprecated codes replaced ("iw" -> "he")."""
    subtag = tag.replace("_", "-").split("-")[0].lower()
    code = _ALIASES.get(subtag, subtag)
    if code not in language_names():
        raise InputError(
            f"unknown language code {tag!r}; use a BCP-47 code such as 'en', 'zh' or 'quz' ('caplens list languages' shows all)."
        )
    return code
