"""Render pages from templates, and lay out drawings; values are escaped, and lose their invisible characters."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from carag.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PACKAGE: Final = files("carag.service.console")
_TYPES: Final = {
    "console.css": "text/css; charset=utf-8",
    "docs.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "htmx.LICENSE.txt": "text/plain; charset=utf-8",
    "verify.html": "text/html; charset=utf-8",
}
STATIC: Final = {
    name: (_PACKAGE.joinpath("static", name).read_bytes(), kind) for name, kind in _TYPES.items()
}
"""The console's files with their media types."""
_BENCHMARKS: Final = json.loads(_PACKAGE.joinpath("benchmarks.json").read_text("utf-8"))
_STEP: Final = 84
"""Height of one step in the drawing of a path."""
_COLUMN: Final = 168
"""Width of one column in the drawing of a history."""
_ROW: Final = 64
"""Height of one row in it."""


def page(template: str, **values: Any) -> str:
    r"""Render a page."""
    return _ENVIRONMENT.get_template(template).render(**values)


def path_drawing(path: dict[str, Any]) -> dict[str, Any]:
    """Lay out a Merkle path, the leaf at the bottom; see :func:`carag.service.console.tree.path_of`."""
    count, node, rows = len(path["steps"]), path["leaf"], []
    for number, step in enumerate(path["steps"]):
        x = 8 if step["side"] == "left" else 432
        rows.append({"y": 4 + _STEP * (count - number), "x": x, "hash": node, "sibling": step["sibling"]})
        node = step["parent"]
    return {"rows": rows, "step": _STEP, "height": _STEP * count + 50}


def history_drawing(labels: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Lay out a passage's labels as rectangles: to the right when a label holds, upwards when it was known.

    All columns and rows have the same size, however much time they span, so that two changes in a day are as
    visible as two in a decade.
    """
    words = {
        word: chr(65 + number % 26)
        for number, word in enumerate(dict.fromkeys(one["word"] for one in labels))
    }
    valid = _edges(labels, "valid_from", "valid_to")
    known = _edges(labels, "known_from", "known_to")
    left, top = 200, 20
    height, width = _ROW * (len(known) - 1), _COLUMN * (len(valid) - 1)

    def x(edge: int | None) -> int:
        return left + _COLUMN * valid.index(edge)

    def y(edge: int | None) -> int:
        return top + height - _ROW * known.index(edge)

    return {
        "rectangles": [
            {
                "letter": words[one["word"]],
                "x": x(one["valid_from"]),
                "y": y(one["known_to"]),
                "width": x(one["valid_to"]) - x(one["valid_from"]),
                "height": y(one["known_from"]) - y(one["known_to"]),
            }
            for one in labels
        ],
        "letters": [words[one["word"]] for one in labels],
        "valid": [{"x": x(edge), "text": "no end" if edge is None else _minute(edge)} for edge in valid],
        "known": [{"y": y(edge), "text": "now" if edge is None else _moment(edge)} for edge in known],
        "left": left,
        "bottom": top + height,
        "width": left + width + 90,
        "height": top + height + 60,
    }


def _edges(labels: Sequence[dict[str, Any]], since: str, until: str) -> list[int | None]:
    """Return all edges of an axis in order, with None (no end) last; even a label of zero duration gets a column."""
    edges = sorted({edge for one in labels for edge in (one[since], one[until]) if edge is not None})
    found: list[int | None] = [*edges, None] if any(one[until] is None for one in labels) else [*edges]
    return found if len(found) > 1 else [*found, None]


def _minute(minutes: int | None) -> str:
    if minutes is None:
        return "no end"
    try:
        return f"{_EPOCH + timedelta(minutes=minutes):%Y-%m-%d %H:%M}"
    except OverflowError:  # 32 bits of minutes reach beyond Python's calendar
        return "after 9999"


def _moment(microseconds: int | None) -> str:
    return (
        "now"
        if microseconds is None
        else f"{_EPOCH + timedelta(microseconds=microseconds):%Y-%m-%d %H:%M:%S.%f}"[:-3]
    )


def _shown(value: object) -> object:
    """Remove characters that a reader would not see, except from what the template itself wrote."""
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _versioned(name: str) -> str:
    """Return the address of a file, which changes with its bytes, so that it can be cached for long."""
    return f"/console/static/{name}?v={hashlib.sha256(STATIC[name][0]).hexdigest()[:16]}"


def _as_link(text: str) -> str:
    """Return a text as a data link, byte for byte."""
    return f"data:application/json;base64,{base64.b64encode(text.encode()).decode()}"


_ENVIRONMENT: Final = Environment(
    loader=PackageLoader("carag.service.console"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_shown,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {"minute": _minute, "moment": _moment, "as_link": _as_link, "pairs": pairwise}
_ENVIRONMENT.globals |= {"static": _versioned, "benchmarks": _BENCHMARKS}
