"""Show a result as a small piece of HTML, as notebooks ask for with ``_repr_html_``.

Everything is escaped, and there is neither script nor link nor style from elsewhere, because texts of documents and
questions are shown in the page of the person who asks. Invisible characters are shown as in a terminal.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from carag.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_SHOWN: Final = 10
"""The most rows that a card shows; it says how many more there are."""
_LONGEST: Final = 2000
"""The most characters of one text that it shows."""


def card(
    title: str,
    facts: Mapping[str, object],
    *,
    text: str = "",
    columns: Sequence[str] = (),
    rows: Iterable[Sequence[object]] = (),
) -> str | None:
    """Return the HTML of a result; None without Jinja, for which a notebook shows the ``repr`` instead.

    Examples
    --------
    >>> "&lt;b&gt;" in (card("<b>", {"record": 7}) or "")
    True
    """
    if find_spec("jinja2") is None:
        return None
    several = [[_shortened(one) for one in row] for row in rows]
    values = {
        "title": title,
        "facts": {name: _shortened(one) for name, one in facts.items() if one not in (None, "")},
        "text": _shortened(text),
        "columns": columns,
        "rows": several[:_SHOWN],
        "more": max(0, len(several) - _SHOWN),
    }
    html: str = _template().render(values)
    return html


def _shortened(value: object) -> str:
    text = str(value)
    return visible(text if len(text) <= _LONGEST else text[:_LONGEST] + " …")


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("carag.audit.receipts"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return made.get_template("card.html.j2")
