"""Name a document by its stated fields, in the parts that its profile gives: for headings and for citations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_FIELD: Final = re.compile(r"\{(\w+)\}")


def named(parts: Iterable[str], stated: Mapping[str, object]) -> list[str]:
    """Fill the parts, such as ``"filed {filed}"``, and leave out each one with a field that is absent or empty."""
    found = []
    for part in parts:
        values = [str(stated.get(field) or "").strip() for field in _FIELD.findall(part)]
        if all(values):
            given = iter(values)
            found.append(_FIELD.sub(lambda _, given=given: next(given), part))  # type: ignore[misc]
    return found
