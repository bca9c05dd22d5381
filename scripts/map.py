"""Write docs/reference/map.md: every module of CARAG with the first line of its docstring, grouped by package.

    python scripts/map.py

``./scripts/docs`` runs it; the page is built and not committed.
"""

from __future__ import annotations

import ast
import re
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "map.md"
_TOP = """# Map of all modules

The first line of each module's docstring. This page is built with the site.
"""
_ROLE = re.compile(r":\w+:`~?([^`]+)`")


def page(package: Path = ROOT / "carag") -> str:
    """Return the page of a package and all packages below it."""
    modules = sorted(package.rglob("*.py"), key=lambda path: (path.parent, path.name != "__init__.py", path))
    parts = [_TOP]
    for folder, inside in groupby(modules, key=lambda path: path.parent):
        name = folder.relative_to(package.parent).as_posix()
        parts += [f"## {name.replace('/', '.')}", "", "| module | what it does |", "|---|---|"]
        parts += [f"| `{name}/{path.name}` | {_first_line(path)} |" for path in inside]
        parts.append("")
    return "\n".join(parts)


def _first_line(path: Path) -> str:
    line = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
    return _ROLE.sub(r"`\1`", line).replace("``", "`").replace("|", r"\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
