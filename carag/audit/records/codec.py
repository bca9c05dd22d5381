"""Write, read and check the parts of a record by one table of their fields: the annotations on their classes.

A field's annotation names the values that it takes. Its line in the table adds what the type does not show::

    table: Digest                                  32 bytes, base64url
    started: Annotated[Count, Key("t0")]           the name in the record, if it is not that of the attribute
    day: Annotated[Code | None, OPTIONAL]          not encoded while it has its default, so that records which were
                                                   written before the field existed keep their bytes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as fields_of
from enum import StrEnum
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Self, TypeAlias, get_args, get_type_hints

from carag.audit.records import _fields
from carag.audit.tlog.encoding import Json, b64url, unb64url
from carag.errors import InvalidArgument
from carag.limits import MAX_MINUTE, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Kind(NamedTuple):
    """The values that a field takes."""

    check: Callable[[str, Any], Any]
    """Take the field's name and a value; return the value to keep, or raise InvalidArgument."""
    write: Callable[[Any], Json]
    read: Callable[[Any], Any]
    """Undo ``write``; the value is checked afterwards."""


class Key(NamedTuple):
    """Mark a field whose name in the record differs from that of its attribute."""

    name: str


OPTIONAL: Final = "not encoded while it has its default"
"""Marks a field."""


def _itself(value: Any) -> Any:
    return value


def integer(low: int, high: int = _fields.MAX_INTEGER) -> Kind:
    """Describe an integer within a range."""

    def check(name: str, value: Any) -> Any:
        if (
            type(value) is int and low <= value <= high
        ):  # almost always: every field of every request comes here
            return value
        return _fields.integer(name, value, low, high)

    return Kind(check, int, _itself)


Code: TypeAlias = Annotated[str, Kind(_fields.code, _itself, _itself)]
Name: TypeAlias = Annotated[str, Kind(_fields.key, _itself, _itself)]
Label: TypeAlias = Annotated[str, Kind(_fields.label, _itself, _itself)]
Digest: TypeAlias = Annotated[
    bytes, Kind(_fields.digest, b64url, partial(unb64url, size=_fields.DIGEST_SIZE))
]
Number: TypeAlias = Annotated[int, integer(-_fields.MAX_INTEGER)]
Count: TypeAlias = Annotated[int, integer(0)]
Positive: TypeAlias = Annotated[int, integer(1)]
Minute: TypeAlias = Annotated[int, integer(0, MAX_MINUTE)]
Micro: TypeAlias = Annotated[int, integer(-_fields.MILLION, _fields.MILLION)]
"""A cosine, in millionths."""

_FLAG: Final = Kind(lambda _, value: value, int, lambda value: value == 1)


class _Field(NamedTuple):
    attribute: str
    name: str
    """In messages."""
    key: str
    """In the record."""
    kind: Kind
    optional: bool
    default: Any


class Fields:
    """A part of a record: a frozen dataclass that is written, read and checked by its annotations."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for field in _table(type(self)):
            value = getattr(self, field.attribute)
            if value is not field.default:
                kept = field.kind.check(field.name, value)
                if kept is not value:
                    object.__setattr__(self, field.attribute, kept)
        self._check()

    def _check(self) -> None:
        """Raise InvalidArgument if fields, each valid by itself, do not go together."""

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            field.key: field.kind.write(value)
            for field in _table(type(self))
            if (value := getattr(self, field.attribute)) != field.default or not field.optional
        }

    @classmethod
    def from_json(cls, fields: Any) -> Self:
        """Read the JSON form; InvalidArgument, KeyError or TypeError for anything else."""
        return cls(
            **{
                field.attribute: field.kind.read(fields[field.key])
                for field in _table(cls)
                if not field.optional or field.key in fields
            }
        )


_TABLES: Final[dict[type, tuple[_Field, ...]]] = {}


def _table(cls: type[Fields]) -> tuple[_Field, ...]:
    if cls not in _TABLES:
        hints = get_type_hints(cls, include_extras=True)
        _TABLES[cls] = tuple(_field(one.name, hints[one.name], one.default) for one in fields_of(cls))  # type: ignore[arg-type]
    return _TABLES[cls]


def _field(attribute: str, hint: Any, default: Any) -> _Field:
    marks = getattr(hint, "__metadata__", ())
    key = next((mark.name for mark in marks if isinstance(mark, Key)), attribute)
    return _Field(attribute, attribute.replace("_", " "), key, _kind(hint), OPTIONAL in marks, default)


def _kind(hint: Any) -> Kind:
    """Return the kind that an annotation names, or that follows from its type."""
    for mark in reversed(getattr(hint, "__metadata__", ())):
        if isinstance(mark, Kind):
            return mark
    plain = getattr(hint, "__origin__", hint) if hasattr(hint, "__metadata__") else hint
    within = get_args(plain)
    if NoneType in within:
        return _or_none(_kind(within[0]))
    if within[1:] == (Ellipsis,):
        return _each(_kind(within[0]))
    outer = getattr(plain, "__origin__", plain)
    if outer is Mapping:
        return _mapping(*map(_kind, within))
    if outer is tuple:
        return _row(tuple, [_kind(one) for one in within])
    if outer is bool:
        return _FLAG
    if issubclass(outer, StrEnum):
        return Kind(lambda _, value: _fields.member(outer, value), lambda value: value.value, _itself)
    if issubclass(outer, Fields):
        return _part(outer)
    return _row(outer._make, [_kind(one) for one in get_type_hints(outer, include_extras=True).values()])


def _or_none(kind: Kind) -> Kind:
    return Kind(
        lambda name, value: None if value is None else kind.check(name, value),
        lambda value: None if value is None else kind.write(value),
        lambda value: None if value is None else kind.read(value),
    )


def _each(kind: Kind) -> Kind:
    def check(name: str, values: Any) -> Any:
        if not isinstance(values, (tuple, list)):
            raise InvalidArgument(f"{name} is {quoted(values)}; want a tuple")
        entry = f"an entry of {name}"
        return tuple([kind.check(entry, value) for value in values])

    return Kind(
        check,
        lambda values: [kind.write(value) for value in values],
        lambda values: tuple(kind.read(value) for value in values),
    )


def _row(make: Callable[[Any], Any], kinds: Sequence[Kind]) -> Kind:
    """Describe a tuple of values that each have their own kind."""

    def check(name: str, values: Any) -> Any:
        if not isinstance(values, (tuple, list)) or len(values) != len(kinds):
            raise InvalidArgument(f"{name} is {quoted(values)}; want {len(kinds)} values together")
        return make([kind.check(name, value) for kind, value in zip(kinds, values, strict=True)])

    return Kind(
        check,
        lambda values: [kind.write(value) for kind, value in zip(kinds, values, strict=True)],
        lambda values: make([kind.read(value) for kind, value in zip(kinds, values, strict=True)]),
    )


def _mapping(key: Kind, kind: Kind) -> Kind:
    def check(name: str, values: Any) -> Any:
        if not isinstance(values, Mapping):
            raise InvalidArgument(f"{name} is {quoted(values)}; want a mapping")
        return {key.check(name, one): kind.check(f"{name} {one}", value) for one, value in values.items()}

    return Kind(
        check,
        lambda values: {one: kind.write(value) for one, value in values.items()},
        lambda values: {one: kind.read(value) for one, value in values.items()},
    )


def _part(cls: type[Fields]) -> Kind:
    def check(name: str, value: Any) -> Any:
        if not isinstance(value, cls):
            raise InvalidArgument(f"{name} is {quoted(value)}; want {cls.__name__}")
        return value

    return Kind(check, cls.to_json, cls.from_json)
