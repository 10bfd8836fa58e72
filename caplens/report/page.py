"""The report: one self-contained HTML file, in which no text from a caption can run as code.

Jinja2 escapes all content. The content security policy allows one script, by its hash, and no connections.
"""

import base64
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from PIL import Image

from caplens.backbones.transform import Pixels
from caplens.data.media import ImageSource
from caplens.data.replacing import replacing
from caplens.data.sample import Sample
from caplens.embed.images import UnreadableError, opened
from caplens.embed.videos import FrameChoice, clip_of, read_frames
from caplens.errors import InputError, MissingExtraError
from caplens.metrics.registry import list_metrics
from caplens.progress import track
from caplens.report import plots
from caplens.report.catalogue import PageLanguage
from caplens.report.documents import Document, InputPaths
from caplens.report.latex_tables import latex_document
from caplens.report.sections import Section, make_sections
from caplens.report.tables import delimited
from caplens.report.templates import asset, render_template
from caplens.results.table import Table

_THUMBNAIL_SIDE = 320
_JPEG_QUALITY = 72
_STRIP_FRAMES, _STRIP_HEIGHT = 5, 90


def write_page(
    documents: Sequence[Document],
    target: Path,
    paths: InputPaths | None = None,
    title: str = "caplens report",
    moments: Sequence[str] = (),
    lang: str = "en",
) -> None:
    """Write the report to `target`. `paths` replaces the paths of captions and images that the results name."""
    said = PageLanguage(lang)
    sections = make_sections(documents, paths or InputPaths(), moments)
    with replacing(target) as temporary:
        temporary.write_text(plots.printable(render(sections, title, said)), encoding="utf-8", newline="\n")


class MetricHelp(NamedTuple):
    """What the page says about a metric."""

    number: int
    text: str


def render(sections: Sequence[Section], title: str, lang: PageLanguage) -> str:
    """The HTML of the page."""
    thumbnails = Thumbnails(sections)
    return render_template(
        "report.html",
        "report.js",
        {"csv": _csv, "latex": _latex, "svg": Markup, "thumbnail": thumbnails.name},
        title=title,
        sections=sections,
        metric_help=_metric_help(sections),
        _=lang,
        style=Markup(asset("report.css")) + thumbnails.style,
    )


def _metric_help(sections: Sequence[Section]) -> dict[str, MetricHelp]:
    """Metric -> what it is, for the metrics of the page that are ours; those of one kind with two models say the same."""
    metrics = list_metrics()
    names = dict.fromkeys(name for section in sections for name in section.metrics)
    texts = {name: metrics[name.partition("[")[0]][1] for name in names if name.partition("[")[0] in metrics}
    return {name: MetricHelp(number, text) for number, (name, text) in enumerate(texts.items(), 1)}


def _csv(table: Table) -> str:
    """A link to the table as CSV."""
    return _data_url("text/csv", delimited(table))


def _latex(table: Table) -> str:
    return _data_url("application/x-tex", latex_document([table]))


def _data_url(media_type: str, content: str) -> str:
    return f"data:{media_type};charset=utf-8;base64,{base64.b64encode(content.encode()).decode()}"


class Thumbnails:
    """Thumbnails of images and film strips of videos, embedded in the style sheet once each, however many captions they have."""

    def __init__(self, sections: Sequence[Section]) -> None:
        samples = [case.sample for section in sections for case in section.cases]
        samples += [card.sample for section in sections for card in section.checked]
        shown = {_shown_by(sample): sample for sample in samples if sample.image is not None or sample.video is not None}
        self._shown: dict[tuple[str, ...], tuple[str, str]] = {}
        for number, (key, sample) in enumerate(track(shown.items(), "drawing thumbnails", len(shown))):
            if sample.image is not None:
                self._shown[key] = (f"photo-{number}", _thumbnail(sample.image))
            else:
                self._shown[key] = (f"strip photo-{number}", _film_strip(sample))

    def name(self, sample: Sample) -> str:
        """The CSS classes of what a sample shows; empty if that cannot be opened."""
        name, url = self._shown[_shown_by(sample)]
        return name if url else ""

    @property
    def style(self) -> Markup:
        """The CSS rules of all thumbnails."""
        rules = (f".{name.split()[-1]} {{ background-image: url({url}); }}" for name, url in self._shown.values() if url)
        return Markup("\n".join(rules))


def _shown_by(sample: Sample) -> tuple[str, ...]:
    """What two samples that show the same have in common: the image, or the seconds of a video."""
    seconds = () if sample.image is not None else (str(sample.meta.get("start")), str(sample.meta.get("end")))
    return sample.group, *seconds


def _thumbnail(source: ImageSource) -> str:
    """The thumbnail as a data URL; empty if the image cannot be opened, as its caption is still shown."""
    try:
        with warnings.catch_warnings():
            # Pillow warns of large images; those that are too large are refused by `decode`.
            warnings.simplefilter("ignore")
            with opened(source) as image:
                image.thumbnail((_THUMBNAIL_SIDE, _THUMBNAIL_SIDE))
                return _jpeg_url(image)
    except UnreadableError:
        return ""


def _film_strip(sample: Sample) -> str:
    """Frames of a video side by side, as a data URL; empty if it cannot be opened."""
    try:
        frames = read_frames(clip_of(sample), FrameChoice(_STRIP_FRAMES), _strip_frame)
    except (UnreadableError, InputError, MissingExtraError):
        return ""
    return _jpeg_url(Image.fromarray(np.concatenate(frames, axis=1)))


def _strip_frame(image: Image.Image) -> Pixels:
    width = max(1, min(2 * _STRIP_HEIGHT, round(image.width * _STRIP_HEIGHT / image.height)))
    return np.asarray(image.convert("RGB").resize((width, _STRIP_HEIGHT)))


def _jpeg_url(image: Image.Image) -> str:
    out = io.BytesIO()
    image.convert("RGB").save(out, "JPEG", quality=_JPEG_QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}"
