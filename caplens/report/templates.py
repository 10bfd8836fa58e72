"""Pages from templates, in which no text can run as code.

Jinja2 escapes all content. The content security policy of each page allows one script, by its hash, and no connections.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from caplens.version import __version__


def render_template(name: str, script_name: str, filters: Mapping[str, Callable[..., Any]] | None = None, **content: Any) -> str:
    """The HTML of a page of this folder, with the script that it may run."""
    script = asset(script_name)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= dict(filters or {})
    # Numbers keep their direction on pages that are written from right to left.
    environment.tests["wordless"] = lambda text: not any(map(str.isalpha, str(text)))
    return environment.from_string(asset(name)).render(script=Markup(script), digest=digest, version=__version__, **content)


@cache
def asset(name: str) -> str:
    """A file of this folder."""
    return files("caplens.report").joinpath(name).read_text(encoding="utf-8")
