"""Name a document by its stated fields, in the parts that its profile gives for headings and for citations."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_FIELD: Final = re.compile(r"\{(\w+)\}")


def named(parts: Iterable[str], stated: Mapping[str, object]) -> list[str]:
    """Fill the parts, such as ``"filed {filed}"``, and leave out each one with a field that is absent or empty."""
    found = []
    for part in parts:
        text, fields = _split(part)
        values = [str(stated.get(field) or "").strip() for field in fields]
        if all(values):
            found.append(text % (*values,))
    return found


@lru_cache(256)
def _split(part: str) -> tuple[str, list[str]]:
    """Return a part as a format string, and its fields."""
    return _FIELD.sub("%s", part.replace("%", "%%")), _FIELD.findall(part)
