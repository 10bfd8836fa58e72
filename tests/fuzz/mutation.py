"""Mutation of files with regard to their structure: of values inside JSON, of cells, of lines, and of bytes."""

import gzip
import json
import random
import re

ODD_VALUES = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**63,
    10**400,
    1.5,
    -1e308,
    5e-324,
    "",
    " ",
    "0",
    "1",
    "-1",
    "null",
    "\x00",
    "\x1b[31mred",
    "\u202eabc",
    "\ufeff",
    "😀",
    "a" * 300,
    "9" * 5000,
    "=1+1",
    "@x",
    "\t",
    "\r",
    "a\nb",
    "a,b",
    '"',
    "'",
    "../../x",
    "/dev/zero",
    "~nouser",
    "http://x/y.jpg",
    "photos/a://../..",
    "xx",
    "en",
    "zh-Hans",
    [],
    {},
    [[]],
    [None],
    [1, "a"],
    [""],
    {"id": 1},
    {"value": 1},
    {"": ""},
    [[[[[[[[]]]]]]]],
]
RAW_TOKENS = [
    "1e999",
    "-1e999",
    "NaN",
    "Infinity",
    "1" * 400,
    "1" * 5000,
    '"\\ud800"',
    '"\\udfff x"',
    "[" * 2000,
    '{"a":' * 2000,
    "nul",
    "01",
    "'x'",
    "\x00",
]
ODD_BYTES = [
    b"\x00",
    b"\xff",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n",
    b"\r\n",
    b"\t",
    b",",
    b";",
    b'"',
    b"'",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\",
    b"\x1b",
    b"\xed\xa0\x80",
    b"PAR1",
    b"\x1f\x8b\x08",
]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content with one to four changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        content = rng.choice(_MUTATIONS)(content, rng)
    return content


def _json_value(content: bytes, rng: random.Random) -> bytes:
    """Another value somewhere in a JSON document, or in one line of many."""
    lines = content.split(b"\n")
    document = _parsed(content)
    number = None
    if document is None:
        candidates = [index for index, line in enumerate(lines) if line.strip().startswith((b"{", b"["))]
        if not candidates:
            return _cell(content, rng)
        number = rng.choice(candidates)
        document = _parsed(lines[number])
        if document is None:
            return _bytes(content, rng)
    changed = json.dumps(_changed(document[0], rng), ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    if number is None:
        return changed
    lines[number] = changed
    return b"\n".join(lines)


def _parsed(content: bytes):
    try:
        return (json.loads(content),)
    except (ValueError, RecursionError):
        return None


def _changed(value, rng: random.Random, depth: int = 0):
    """The value with one change at a random place inside it."""
    if value and depth < _DEEPEST and rng.random() < _INSIDE:
        if isinstance(value, dict):
            return _changed_object(value, rng, depth)
        if isinstance(value, list):
            return _changed_list(value, rng, depth)
    return rng.choice(ODD_VALUES)


_DEEPEST, _INSIDE = 6, 0.85


def _changed_object(value: dict, rng: random.Random, depth: int) -> dict:
    """With a key less, more or renamed, or with another value."""
    key = rng.choice(list(value))
    kind = rng.random()
    if kind < 0.12:
        return {name: entry for name, entry in value.items() if name != key}
    if kind < 0.24:
        return {**value, rng.choice([*_NAMES, key + " ", key.upper(), ""]): rng.choice([*ODD_VALUES, value[key]])}
    if kind < 0.34:
        return {(rng.choice(_NAMES) if name == key else name): entry for name, entry in value.items()}
    return {**value, key: _changed(value[key], rng, depth + 1)}


def _changed_list(value: list, rng: random.Random, depth: int) -> list:
    """With an entry less, twice, or changed."""
    index = rng.randrange(len(value))
    kind = rng.random()
    if kind < 0.15:
        return value[:index] + value[index + 1 :]
    if kind < 0.3:
        return [*value[:index], value[index], *value[index:]]
    return [*value[:index], _changed(value[index], rng, depth + 1), *value[index + 1 :]]


_NAMES = [
    "id",
    "image_id",
    "caption",
    "references",
    "image",
    "video",
    "lang",
    "system",
    "ratings",
    "meta",
    "source",
    "score",
    "annotations",
    "images",
    "value",
    "rater",
    "kind",
    "schema",
    "metrics",
    "values",
    "inputs",
    "captions",
    "documents",
    "counts",
    "errors",
    "file_name",
]


def _raw_token(content: bytes, rng: random.Random) -> bytes:
    """A token that no JSON writer would produce in place of a number or a text."""
    places = list(re.finditer(rb'"(?:[^"\\\\]|\\\\.)*"|-?\d[\d.eE+-]*', content[:20_000]))
    if not places:
        return _bytes(content, rng)
    place = rng.choice(places)
    return content[: place.start()] + rng.choice(RAW_TOKENS).encode() + content[place.end() :]


def _repeated_key(content: bytes, rng: random.Random) -> bytes:
    places = list(re.finditer(rb'"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[\d.]+)', content[:20_000]))
    if not places:
        return _line(content, rng)
    place = rng.choice(places)
    return content[: place.end()] + b", " + place[0] + content[place.end() :]


def _cell(content: bytes, rng: random.Random) -> bytes:
    """Another cell in a table."""
    lines = content.split(b"\n")
    number = rng.randrange(len(lines))
    delimiter = b"\t" if b"\t" in lines[number] else b","
    cells = lines[number].split(delimiter)
    odd = str(rng.choice(ODD_VALUES)).encode("utf-8", "surrogatepass")
    cells[rng.randrange(len(cells))] = odd if rng.random() < 0.7 else b'"' + odd
    lines[number] = delimiter.join(cells)
    return b"\n".join(lines)


def _line(content: bytes, rng: random.Random) -> bytes:
    """A line less, twice, or in another place."""
    lines = content.split(b"\n")
    number = rng.randrange(len(lines))
    line = lines.pop(number)
    for _ in range(rng.choice((0, 2, 1))):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def _bytes(content: bytes, rng: random.Random) -> bytes:
    """Bytes changed, inserted, removed or cut off."""
    place = rng.randrange(len(content) + 1)
    kind = rng.random()
    if kind < 0.3:
        return content[:place] + rng.choice(ODD_BYTES) + content[place:]
    if kind < 0.5:
        return content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
    if kind < 0.65:
        return content[:place] + content[place + rng.choice((1, 2, 8, 100)) :]
    if kind < 0.8:
        return content[:place]
    if kind < 0.9:
        return content + content[place:]
    return content[place:]


def _packed(content: bytes, rng: random.Random) -> bytes:
    packed = gzip.compress(content[:100_000], mtime=0)
    return packed if rng.random() < 0.3 else _bytes(packed, rng)


_MUTATIONS = [_json_value] * 6 + [_raw_token] * 2 + [_repeated_key, _cell, _cell, _line, _bytes, _bytes, _packed]
