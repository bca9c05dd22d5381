"""Check metadata fields, and merge what several places state about one document."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from carag.errors import CorruptFile, InvalidArgument
from carag.limits import INT64, check_label, check_text, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.readers.outcome import Fact


MAX_FACTS: Final = 256
"""Greatest number of metadata fields of a document."""
MAX_FACT: Final = 4096
"""Greatest number of characters in a metadata field, or in one of its items."""
MAX_ITEMS: Final = 1024
"""Greatest number of items of a metadata field."""


def check_facts(stated: dict[str, Any]) -> dict[str, Fact]:
    """Return metadata fields unchanged if each is a text, a number, a Boolean or a list of texts.

    Raises
    ------
    CorruptFile
        If a field has another type, is too long, or has a name that cannot be shown.

    Examples
    --------
    >>> check_facts({"year": 2024, "tags": ["a", "b"]})
    {'year': 2024, 'tags': ['a', 'b']}
    """
    if len(stated) > MAX_FACTS:
        raise CorruptFile(f"has {len(stated)} metadata fields; want {MAX_FACTS} at most")
    try:
        for name, value in stated.items():
            check_label("the name of a metadata field", name)
            _check_fact(name, value)
    except InvalidArgument as error:
        raise CorruptFile(str(error)) from None
    return stated


def _check_fact(name: str, value: object) -> None:
    if isinstance(value, str):
        check_text(name, value, MAX_FACT)
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        if len(value) > MAX_ITEMS:
            raise InvalidArgument(f"{name} has {len(value)} items; want {MAX_ITEMS} at most")
        for item in value:
            check_text(f"an item of {name}", item, MAX_FACT)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArgument(f"{name} is {value}; want a finite number")
    elif isinstance(value, int):
        if not -INT64 <= value < INT64:
            raise InvalidArgument(f"{name} is {quoted(value)}; want an integer of 64 bits")
    else:
        raise InvalidArgument(
            f"{name} is {quoted(value)}; want text, a number, true, false or a list of strings"
        )


def merged_facts(statements: Iterable[tuple[str, dict[str, Fact]]]) -> dict[str, Fact]:
    """Merge what several places state.

    Raises ``CorruptFile`` if two places state different values or types, because neither is preferred.
    """
    merged: dict[str, Fact] = {}
    places: dict[str, str] = {}
    for place, stated in statements:
        for name, value in stated.items():
            other = merged.setdefault(name, [*value] if isinstance(value, list) else value)
            if type(other) is not type(value) or other != value:
                raise CorruptFile(
                    f"{name} is {quoted(other)} in {places[name]} and {quoted(value)} in {place};"
                    " want the same value and type"
                )
            places.setdefault(name, place)
    return merged


def with_id_as_text(stated: dict[str, Fact]) -> dict[str, Fact]:
    """Return the fields with an integer ``id`` as decimal text, because another place may state it in quotes.

    Raises ``CorruptFile`` if the ``id`` is neither text nor integer.
    """
    identity = stated.get("id", "")
    if isinstance(identity, str):
        return stated
    if type(identity) is int:
        return {**stated, "id": str(identity)}
    raise CorruptFile(f"the id is {quoted(identity)}; want text or an integer")
