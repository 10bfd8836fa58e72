"""The report: one self-contained HTML file, in which no text from a caption can run as code.

Jinja2 escapes all content. The content security policy allows one script, by its hash, and no connections.
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

from caplens.data.media import ImageSource
from caplens.data.replacing import replacing
from caplens.embed.images import UnreadableError, opened
from caplens.progress import track
from caplens.report.documents import Document, InputPaths
from caplens.report.sections import Section, make_sections
from caplens.report.tables import delimited, latex
from caplens.results.table import Table
from caplens.version import __version__

_THUMBNAIL_SIDE = 320
_JPEG_QUALITY = 72


def write_page(
    documents: Sequence[Document], target: Path, paths: InputPaths | None = None, title: str = "caplens report"
) -> None:
    """Write the report to `target`. `paths` replaces the paths of captions and images that the results name."""
    sections = make_sections(documents, paths or InputPaths())
    with replacing(target) as temporary:
        temporary.write_text(render(sections, title), encoding="utf-8", newline="\n")


def render(sections: Sequence[Section], title: str) -> str:
    """The HTML of the page."""
    script = _asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    thumbnails = Thumbnails(sections)
    environment.filters |= {"csv": _csv, "latex": _latex, "svg": Markup, "thumbnail": thumbnails.name}
    return environment.from_string(_asset("report.html")).render(
        title=title,
        sections=sections,
        version=__version__,
        style=Markup(_asset("report.css")) + thumbnails.style,
        script=Markup(script),
        digest=digest,
    )


@cache
def _asset(name: str) -> str:
    return files("caplens.report").joinpath(name).read_text(encoding="utf-8")


def _csv(table: Table) -> str:
    """A link to the table as CSV."""
    return _data_url("text/csv", delimited(table))


def _latex(table: Table) -> str:
    return _data_url("application/x-tex", latex(table))


def _data_url(media_type: str, content: str) -> str:
    return f"data:{media_type};charset=utf-8;base64,{base64.b64encode(content.encode()).decode()}"


class Thumbnails:
    """Thumbnails of the captioned images, embedded in the style sheet once each, however many captions an image has."""

    def __init__(self, sections: Sequence[Section]) -> None:
        cases = [case for section in sections for case in section.cases if case.sample.image is not None]
        images = {case.sample.group: case.sample.image for case in cases if case.sample.image is not None}
        self._by_group: dict[str, tuple[str, str]] = {}
        for number, (group, image) in enumerate(track(images.items(), "drawing thumbnails", len(images))):
            self._by_group[group] = (f"photo-{number}", _thumbnail(image))

    def name(self, group: str) -> str:
        """The CSS class of an image; empty if the image cannot be opened."""
        name, url = self._by_group[group]
        return name if url else ""

    @property
    def style(self) -> Markup:
        """The CSS rules of all thumbnails."""
        rules = (f".{name} {{ background-image: url({url}); }}" for name, url in self._by_group.values() if url)
        return Markup("\n".join(rules))


def _thumbnail(source: ImageSource) -> str:
    """The thumbnail as a data URL; empty if the image cannot be opened, as its caption is still shown."""
    try:
        with warnings.catch_warnings():
            # Pillow warns of large images; those that are too large are refused by `decode`.
            warnings.simplefilter("ignore")
            with opened(source) as image:
                image.thumbnail((_THUMBNAIL_SIDE, _THUMBNAIL_SIDE))
                out = io.BytesIO()
                image.convert("RGB").save(out, "JPEG", quality=_JPEG_QUALITY, optimize=True)
    except UnreadableError:
        return ""
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}"
