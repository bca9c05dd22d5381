"""Configure Sphinx for the documentation; `./scripts/docs` runs it.

Sphinx, because our docstrings refer to one another by its roles, which it renders and checks. Zensical 0.0.73 with
mkdocstrings built the same pages in 3 seconds instead of 19, left 84 roles on them as text, and checked none.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.pycode import ModuleAnalyzer
from sphinx.util.logging import getLogger

import carag

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.application import Sphinx

project = "CARAG"
version = release = carag.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
templates_path = ["_templates"]
html_theme = "furo"
html_show_copyright = False
html_show_sourcelink = False
myst_heading_anchors = 3  # so that links to headings work as they do in the repository
nitpicky = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_default_options = {"exclude-members": "model_config"}  # pydantic's own
numpydoc_show_class_members = False
smartquotes = False  # a command must stay what it is

_LINK = re.compile(r"(?<!!)\[([^]]+)\]\(([^)#:]+)\)")


def _link_files(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links to files outside of docs/ lead to a copy of them, which the site then holds."""

    def linked(match: re.Match[str]) -> str:
        target = Path(app.srcdir, name).parent.joinpath(match[2]).resolve()
        inside = target.is_relative_to(app.srcdir)
        return match[0] if inside else f"{{download}}`{match[1]} <{match[2]}>`"

    source[0] = _LINK.sub(linked, source[0])


def _describe_constant(
    _app: Sphinx, what: str, name: str, _obj: object, _options: object, lines: list[str]
) -> None:
    """Take the text below a constant from the module that defines it; autodoc looks where it is exported alone."""
    room, _, constant = name.rpartition(".")
    if what == "data":
        lines.clear()  # or the text of its type would stand there
        rooms = [one for one in sorted(sys.modules) if f"{one}.".startswith(f"{room}.")]
        for module in rooms:
            if not str(getattr(sys.modules[module], "__file__", "")).endswith(".py"):
                continue  # the core, which is not Python
            lines[:] = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", constant), lines)


def _show_undocumented(_app: Sphinx, _env: object, node: Element, text: Element) -> Element | None:
    """Show a name that exists and is not public as plain text. One that does not exist stays a warning."""
    try:
        pkgutil.resolve_name(node["reftarget"])
    except (AttributeError, ImportError, ValueError):
        return None
    return text


def _check_complete(app: Sphinx, failure: Exception | None) -> None:
    """Warn of every name that a module with a page exports and that is not on it."""
    if failure is None:
        modules = [path.stem for path in Path(app.srcdir, "reference", "api").glob("*.rst")]
        exported = {f"{one}.{name}" for one in modules for name in import_module(one).__all__}
        for name in sorted(exported - set(app.env.domains["py"].objects)):
            getLogger(__name__).warning("%s is not in the reference", name)


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("source-read", _link_files)
    app.connect("autodoc-process-docstring", _describe_constant)
    app.connect("missing-reference", _show_undocumented)
    app.connect("build-finished", _check_complete)
