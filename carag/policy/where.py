"""Narrow a search to passages whose declared metadata meets conditions; a narrowing admits nothing by itself.

Values are compared in one form: ``" Treasury"`` and ``"treasury"`` are the same, and so are ``2024`` and ``"2024"``.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, Literal, Self, TypeAlias, final

from carag.errors import InvalidArgument
from carag.limits import INT64, check_text, quoted
from carag.policy.bits import nearest

FieldKind: TypeAlias = Literal["text", "number", "date", "boolean"]
Value: TypeAlias = str | int | float | bool
"""A value of metadata in the form in which it is compared."""

_MAX_VALUES: Final = 1000
"""Greatest number of values that a condition lists."""
_MAX_TEXT: Final = 1000
"""Greatest length of a value in characters, as in a document's metadata."""
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?", re.ASCII)
_BOUNDS: Final = MappingProxyType(
    {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
)
_WANTED: Final[Mapping[FieldKind, str]] = MappingProxyType(
    {
        "text": "a text",
        "number": "a finite number, of 64 bits if it is whole",
        "date": "a date such as 2025-05-01",
        "boolean": "true or false",
    }
)


@final
@dataclass(frozen=True, slots=True, repr=False)
class Where:
    """Conditions on metadata, all of which a passage must meet. ``Where()`` has none and narrows nothing.

    Examples
    --------
    >>> kinds = {"department": "text", "year": "number"}
    >>> where = Where.of({"department": ["Treasury", "risk"], "year": {"gte": 2024}}, kinds)
    >>> where.admits({"department": "treasury", "year": 2025}), where.admits({"department": "treasury"})
    (True, False)
    """

    one_of: tuple[tuple[str, tuple[Value, ...]], ...] = ()
    bounds: tuple[tuple[str, str, Value], ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, kinds: Mapping[str, FieldKind]) -> Self:
        """Read conditions as callers write them, about the fields (``kinds``) that the profile declares.

        ``given`` maps a field to a value, to a list or set of values, one of which the field must hold, or to a range
        of numbers or dates such as ``{"gte": 2024, "lt": 2026}``.
        """
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise InvalidArgument(
                f'where is {quoted(given)}; want a mapping of fields to values, as in {{"year": 2024}}'
            )
        one_of: dict[str, tuple[Value, ...]] = {}
        bounds: list[tuple[str, str, Value]] = []
        for field, wanted in given.items():
            kind = _declared(field, kinds)
            if isinstance(wanted, Mapping):
                bounds += _range(field, wanted, kind)
            else:
                one_of[field] = _values(field, wanted, kind)
        return cls(tuple(sorted(one_of.items())), tuple(sorted(bounds)))

    def __bool__(self) -> bool:
        return bool(self.one_of or self.bounds)

    def __repr__(self) -> str:
        # Values may name a person, and a repr may end up in logs.
        return f"Where({', '.join(self.fields)})"

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the conditions test, in order of name."""
        return tuple(sorted({one[0] for one in self.one_of} | {one[0] for one in self.bounds}))

    @property
    def text(self) -> str:
        """All conditions as canonical JSON, for a commitment."""
        ranges: dict[str, dict[str, Value]] = {}
        for field, bound, value in self.bounds:
            ranges.setdefault(field, {})[bound] = value
        return json.dumps(
            {**dict(self.one_of), **ranges}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )

    def admits(self, metadata: Mapping[str, Value]) -> bool:
        """Test one passage's declared metadata; an absent field meets no condition."""
        return all(field in metadata and metadata[field] in values for field, values in self.one_of) and all(
            field in metadata and _BOUNDS[bound](metadata[field], value)
            for field, bound, value in self.bounds
        )


EVERYWHERE: Final = Where()
"""Narrows nothing."""


def in_one_form(name: str, value: object, kind: FieldKind) -> Value | None:
    """Return a value of a declared field in the form in which it is compared; None if it is None or empty.

    Examples
    --------
    >>> in_one_form("year", "2024", "number"), in_one_form("team", " Risk ", "text"), in_one_form("team", "", "text")
    (2024, 'risk', None)
    """
    plain = value
    if isinstance(value, str):
        plain = value.strip().casefold()
        check_text(name, plain, _MAX_TEXT)
    if plain is None or (isinstance(plain, str) and not plain):
        return None
    match kind:
        case "text" if isinstance(plain, str):
            return plain
        case "number" if (number := _number(plain)) is not None:
            return number
        case "date" if (day := _day(plain)) is not None:
            return day
        case "boolean" if type(plain) in (bool, str) and plain in (True, False, "true", "false", "yes", "no"):
            return plain in (True, "true", "yes")
    raise InvalidArgument(f"{name} is {quoted(value)}; want {_WANTED[kind]}")


def _number(value: object) -> int | float | None:
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            return None
        value = float(value) if "." in value else int(value)
    match value:
        case bool():
            return None
        case int() if -INT64 <= value < INT64:
            return value
        case float() if isfinite(value):
            return int(value) if value.is_integer() and abs(value) < INT64 else value
    return None


def _day(value: object) -> str | None:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    try:
        return date.fromisoformat(value).isoformat() if isinstance(value, str) else None
    except ValueError:
        return None


def _declared(field: object, kinds: Mapping[str, FieldKind]) -> FieldKind:
    if isinstance(field, str) and field in kinds:
        return kinds[field]
    if not kinds:
        raise InvalidArgument(
            f"where asks for {quoted(field)}, but the store's profile declares no metadata; leave it out, or make a "
            "store under a profile with [metadata]"
        )
    raise InvalidArgument(f"where asks for {quoted(field)}; {nearest(str(field), kinds)}")


def _values(field: str, wanted: object, kind: FieldKind) -> tuple[Value, ...]:
    several: list[object] = (
        list(wanted) if isinstance(wanted, Iterable) and not isinstance(wanted, str | bytes) else [wanted]
    )
    if not 1 <= len(several) <= _MAX_VALUES:
        raise InvalidArgument(f"where lists {len(several)} values of {field}; want 1 to {_MAX_VALUES}")
    found = {_stated(field, one, kind) for one in several}
    return tuple(sorted(found))


def _range(field: str, wanted: Mapping[Any, Any], kind: FieldKind) -> list[tuple[str, str, Value]]:
    if kind not in ("number", "date"):
        raise InvalidArgument(
            f"where has a range for {field}, which is a {kind}; want a value or a list of values"
        )
    if not wanted or (unknown := [one for one in wanted if one not in _BOUNDS]):
        said = quoted(unknown[0]) if wanted else "nothing"
        raise InvalidArgument(f"where has {said} as a bound of {field}; want one of {', '.join(_BOUNDS)}")
    return [(field, bound, _stated(field, value, kind)) for bound, value in wanted.items()]


def _stated(field: str, value: object, kind: FieldKind) -> Value:
    stated = in_one_form(f"{field} in where", value, kind)
    if stated is None:
        raise InvalidArgument(f"{field} in where is empty; want {_WANTED[kind]}, or leave the field out")
    return stated
