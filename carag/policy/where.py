"""Narrow a search to passages whose metadata meets conditions; a narrowing admits nothing by itself.

Fields that the profile declares are tested with each row. What every document may state (:data:`STATED_FIELDS`) is
tested before the search, for each document that the session may use, so that no profile has to declare it.

Values are compared in one form: ``" Treasury"`` and ``"treasury"`` are the same, and so are ``2024`` and ``"2024"``.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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


STATED_FIELDS: Final[Mapping[str, FieldKind]] = MappingProxyType(
    {
        "company": "text",
        "filed": "date",
        "form": "text",
        "id": "text",
        "issued": "date",
        "language": "text",
        "period": "date",
        "source": "text",
        "title": "text",
    }
)
"""Fields that documents state under any profile; those of a filing may also be in the metadata of other documents."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class Where:
    """Conditions on metadata, all of which a passage must meet. ``Where()`` has none and narrows nothing.

    ``documents`` holds the conditions on :data:`STATED_FIELDS` that the profile does not declare.

    Examples
    --------
    >>> kinds = {"department": "text", "year": "number"}
    >>> where = Where.of({"department": ["Treasury", "risk"], "year": {"gte": 2024}}, kinds)
    >>> where.admits({"department": "treasury", "year": 2025}), where.admits({"department": "treasury"})
    (True, False)
    >>> final = Where.of({"department": {"not": "risk"}, "id": "memo/7"}, kinds)
    >>> final.admits({"department": "treasury"}), final.admits({}), final.documents.admits({"id": "memo/7"})
    (True, False, True)
    """

    one_of: tuple[tuple[str, tuple[Value, ...]], ...] = ()
    bounds: tuple[tuple[str, str, Value], ...] = ()
    none_of: tuple[tuple[str, tuple[Value, ...]], ...] = ()
    documents: Where | None = None

    @classmethod
    def of(
        cls,
        given: Mapping[str, Any] | None,
        kinds: Mapping[str, FieldKind],
        stated: Mapping[str, FieldKind] = STATED_FIELDS,
    ) -> Self:
        """Read conditions as callers write them, about fields that the profile declares (``kinds``) or all ``stated``.

        ``given`` maps a field to a value, to a list or set of values, one of which the field must hold, to a range of
        numbers or dates such as ``{"gte": 2024, "lt": 2026}``, or to ``{"not": value}`` with a value or a list: the
        field must hold something else. A field that is absent meets no condition, so ``not`` does not match it either.
        """
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise InvalidArgument(
                f'where is {quoted(given)}; want a mapping of fields to values, as in {{"year": 2024}}'
            )
        own: dict[object, Any] = {}
        others: dict[object, Any] = {}
        for field, wanted in given.items():
            _check_known(field, kinds, stated)
            (own if field in kinds else others)[field] = wanted
        return cls(*_read(own, kinds), documents=cls(*_read(others, stated)) if others else None)

    def __bool__(self) -> bool:
        return bool(self.one_of or self.bounds or self.none_of or self.documents)

    def __repr__(self) -> str:
        # Values may name a person, and a repr may end up in logs.
        return f"Where({', '.join(self.fields)})"

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the conditions test, in order of name."""
        return tuple(sorted(self._stated))

    @property
    def text(self) -> str:
        """All conditions as canonical JSON, for a commitment."""
        return json.dumps(self._stated, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @property
    def _stated(self) -> dict[str, Any]:
        found: dict[str, Any] = dict(self.one_of)
        for field, bound, value in self.bounds:
            found.setdefault(field, {})[bound] = value
        for field, values in self.none_of:
            found.setdefault(field, {})["not"] = values
        return found | (json.loads(self.documents.text) if self.documents else {})

    @property
    def declared(self) -> Where:
        """The conditions on fields that the profile declares, which rows are tested for."""
        return replace(self, documents=None)

    def admits(self, metadata: Mapping[str, Value]) -> bool:
        """Test one passage's declared metadata, or one document for ``documents``; absent fields meet no condition."""
        return (
            all(field in metadata and metadata[field] in values for field, values in self.one_of)
            and all(
                field in metadata and _BOUNDS[bound](metadata[field], value)
                for field, bound, value in self.bounds
            )
            and all(field in metadata and metadata[field] not in values for field, values in self.none_of)
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


def _check_known(field: object, kinds: Mapping[str, FieldKind], stated: Mapping[str, FieldKind]) -> None:
    known = {**kinds, **stated}
    if not known:
        raise InvalidArgument(
            f"where asks for {quoted(field)}, but the store's profile declares no metadata; leave it out, or make a "
            "store under a profile with [metadata]"
        )
    if not isinstance(field, str) or field not in known:
        raise InvalidArgument(f"where asks for {quoted(field)}; {nearest(str(field), sorted(known))}")


def _read(given: Mapping[Any, Any], kinds: Mapping[str, FieldKind]) -> tuple[Any, Any, Any]:
    one_of: dict[str, tuple[Value, ...]] = {}
    none_of: dict[str, tuple[Value, ...]] = {}
    bounds: list[tuple[str, str, Value]] = []
    for field, wanted in given.items():
        if not isinstance(wanted, Mapping):
            one_of[field] = _values(field, wanted, kinds[field])
            continue
        if "not" in wanted:
            none_of[field] = _values(field, wanted["not"], kinds[field])
        ranged = {bound: value for bound, value in wanted.items() if bound != "not"}
        if ranged or not wanted:
            bounds += _range(field, ranged, kinds[field])
    return tuple(sorted(one_of.items())), tuple(sorted(bounds)), tuple(sorted(none_of.items()))


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
        raise InvalidArgument(
            f"where has {said} as a bound of {field}; want one of {', '.join((*_BOUNDS, 'not'))}"
        )
    return [(field, bound, _stated(field, value, kind)) for bound, value in wanted.items()]


def _stated(field: str, value: object, kind: FieldKind) -> Value:
    stated = in_one_form(f"{field} in where", value, kind)
    if stated is None:
        raise InvalidArgument(f"{field} in where is empty; want {_WANTED[kind]}, or leave the field out")
    return stated
