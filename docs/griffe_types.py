"""For the API page: parameters that share a description (`resamples, seed`) show their own types and defaults.

griffe, which reads the docstrings, gives all of them the type and default of the first one.
"""

import re
from typing import Any

import griffe

_SHARED = re.compile(r"^[\w*]+(, [\w*]+)+$", re.MULTILINE)
"""A line that names several parameters."""


class OwnTypes(griffe.Extension):
    """Sets the types and defaults of documented parameters from the signature."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        for parent in _functions_and_classes(pkg):
            if parent.docstring is None or not _SHARED.search(parent.docstring.value):
                continue
            for section in parent.docstring.parsed:
                if isinstance(section, griffe.DocstringSectionParameters):
                    for documented in section.value:
                        if documented.name in parent.parameters:
                            parameter = parent.parameters[documented.name]
                            documented.annotation, documented.value = parameter.annotation, parameter.default


def _functions_and_classes(parent: griffe.Object) -> "list[griffe.Function | griffe.Class]":
    """Everything with parameters that is defined inside `parent`."""
    members = [member for member in parent.members.values() if not member.is_alias]
    inside = [nested for member in members for nested in _functions_and_classes(member)]
    return [*(member for member in members if member.is_function or member.is_class), *inside]
