"""The report: one HTML file that needs nothing else, and in which nothing that a caption holds can run.

Jinja2 escapes whatever is put in; the page's policy allows one script, by its hash, and no connection at all.
"""

import base64
import hashlib
import io
import warnings
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import jinja2
from markupsafe import Markup

from caplens.data.files import replacing
from caplens.data.media import ImageSource, media_name
from caplens.embed.images import UnreadableError, decode, read
from caplens.progress import track
from caplens.report.documents import Document, InputPaths
from caplens.report.sections import Section, make_sections
from caplens.report.tables import delimited, latex
from caplens.results.table import Table
from caplens.version import __version__

_SIDE = 320
_QUALITY = 72


def write_page(
    documents: Sequence[Document], target: Path, paths: InputPaths | None = None, title: str = "caplens report"
) -> None:
    """Write the report about some results; `paths` says where captions and images are, if not where the results say."""
    sections = make_sections(documents, paths or InputPaths())
    with replacing(target) as temporary:
        temporary.write_text(render(sections, title), encoding="utf-8", newline="\n")


def render(sections: Sequence[Section], title: str) -> str:
    script = _file("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    thumbnails = Thumbnails(sections)
    environment.filters |= {"csv": _csv, "latex": _latex, "svg": Markup, "thumbnail": thumbnails.name}
    return environment.from_string(_file("report.html")).render(
        title=title,
        sections=sections,
        version=__version__,
        style=Markup(_file("report.css")) + thumbnails.style,
        script=Markup(script),
        digest=digest,
    )


@cache
def _file(name: str) -> str:
    return files("caplens.report").joinpath(name).read_text(encoding="utf-8")


def _csv(table: Table) -> str:
    """Spreadsheets take what begins with these signs for a formula, and names come from elsewhere."""
    safe = [[f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "@")) else cell for cell in row] for row in table.rows]
    return _link("text/csv", delimited(Table(table.columns, safe)))


def _latex(table: Table) -> str:
    return _link("application/x-tex", latex(table))


def _link(kind: str, content: str) -> str:
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(content.encode()).decode()}"


class Thumbnails:
    """Small pictures of those that captions are about, each once in the page's style however many captions it has."""

    def __init__(self, sections: Sequence[Section]) -> None:
        cases = [case for section in sections for case in section.cases if case.sample.image is not None]
        pictures = {case.sample.group: case.sample.image for case in cases if case.sample.image is not None}
        self._made: dict[str, tuple[str, str]] = {}
        for number, (group, picture) in enumerate(track(pictures.items(), "drawing thumbnails", len(pictures))):
            self._made[group] = (f"photo-{number}", _thumbnail(picture))

    def name(self, group: str) -> str:
        """The class that shows a picture; none where it cannot be opened."""
        name, content = self._made[group]
        return name if content else ""

    @property
    def style(self) -> Markup:
        rules = (f".{name} {{ background-image: url({content}); }}" for name, content in self._made.values() if content)
        return Markup("\n".join(rules))


def _thumbnail(picture: ImageSource) -> str:
    """Empty where the image cannot be opened; the caption is shown all the same."""
    try:
        with warnings.catch_warnings():
            # Of images that are large, but not too large.
            warnings.simplefilter("ignore")
            image = decode(read(picture), media_name(picture))
    except UnreadableError:
        return ""
    image.thumbnail((_SIDE, _SIDE))
    out = io.BytesIO()
    image.convert("RGB").save(out, "JPEG", quality=_QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}"
