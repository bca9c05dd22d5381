"""Say which fields of a source's rows are what in a store: a small TOML file, all of whose keys have defaults."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from carag.adopting.sources import Wanted
from carag.errors import InvalidArgument
from carag.labelling.document import FIELD
from carag.limits import shown
from carag.policy import parse_moment
from carag.policy.toml_lines import Toml
from carag.readers.json_rows import LEFT_OUT
from carag.readers.outcome import several

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from carag.adopting.sources import Row

_Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_TIMES: Final = ("public_at", "expires_at")
_LISTS: Final = ("allow", "deny")


class Mapping(BaseModel):
    """Which field of a row is what; a dot leads into a nested field, as in ``cmetadata.level``.

    Without ``facts``, every field that means nothing else states a fact under its own name, and is metadata if it is
    one value. ``document`` and ``order`` put rows together as the passages of one document; without ``document`` each
    row is a document.

    Examples
    --------
    >>> mapping = Mapping(text="body", facts={"classification": "level"})
    >>> mapping.stated({"level": "public", "n": 3})
    {'facts': {'classification': 'public'}, 'metadata': {}}
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    version: Literal[1] = Field(default=1, alias="schema")
    model: _Name | None = None
    """The model that made the vectors; by default the embedder that is given."""
    id: _Name = "id"
    text: _Name = "text"
    vector: _Name = "vector"
    document: _Name | None = None
    order: _Name | None = None
    allow: _Name | None = None
    deny: _Name | None = None
    public_at: _Name | None = None
    expires_at: _Name | None = None
    facts: dict[_Name, _Name] | None = None
    """The profile's fields, and the fields of rows that state them."""
    metadata: dict[_Name, _Name] | None = None
    """Fields of a document's metadata, and the fields of rows that state them."""

    @classmethod
    def read(cls, file: Path | None) -> Mapping:
        """Read a file, or return the defaults; InvalidArgument, with the line, for what is not understood."""
        if file is None:
            return cls()
        try:
            text = file.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise InvalidArgument(f"cannot read {shown(str(file))}: {error}; name a TOML file") from error
        return Toml(file.name, text, page="docs/how-to/adopt-an-index.md").read(cls)

    @property
    def wanted(self) -> Wanted:
        """The names of the fields that each row must have."""
        return Wanted(self.id, self.text, self.vector)

    def place_of(self, row: Row, id_: str) -> tuple[Any, Any]:
        """Return the document that a row belongs to, and what orders it there."""
        document = id_ if self.document is None else field_of(row.metadata, self.document)
        return document, id_ if self.order is None else plain(field_of(row.metadata, self.order))

    def stated(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return what a row states about its document, as JSON values."""
        known = {getattr(self, one) for one in ("document", "order", *_LISTS, *_TIMES)}
        own = {name: name for name in fields if name not in known}
        facts = _taken(fields, own if self.facts is None else self.facts)
        metadata = _taken(fields, self.metadata or {})
        if self.facts is None and self.metadata is None:
            metadata = {
                name: one
                for name, one in facts.items()
                if FIELD.fullmatch(name) and not isinstance(one, list)
            }
        more = {one: getattr(self, one) for one in (*_LISTS, *_TIMES) if getattr(self, one) is not None}
        return {"facts": facts, "metadata": metadata, **_taken(fields, more)}


def arguments_of(stated: dict[str, Any]) -> dict[str, Any]:
    """Return what a row states as arguments of a document; InvalidArgument if a time or a list cannot be read."""
    read: dict[str, Callable[[Any], Any]] = dict.fromkeys(_TIMES, _moment) | dict.fromkeys(
        _LISTS, _principals
    )
    return {name: read[name](value) if name in read else value for name, value in stated.items()}


def _moment(value: Any) -> Any:
    if not isinstance(value, str):
        raise InvalidArgument(f"a time is {value!r}; want a date, or a time with its zone, in ISO 8601")
    return parse_moment(value)


def _principals(value: Any) -> Sequence[str]:
    if isinstance(value, str | list):
        return several(value)
    raise InvalidArgument(f"who may see it is {value!r}; want a list of principals such as 'group:treasury'")


def field_of(fields: dict[str, Any], name: str) -> Any:
    """Return a field; the part before a dot may be a field that holds others."""
    if name in fields or "." not in name:
        return fields.get(name)
    first, _, rest = name.partition(".")
    inner = fields.get(first)
    return field_of(inner, rest) if isinstance(inner, dict) else None


def plain(value: Any) -> Any:
    """Return a JSON value for what a source's client returned: text where it is a time, no nested objects."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, list | tuple | set | np.ndarray):
        return [plain(one) for one in value]
    return LEFT_OUT


def _taken(fields: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    found = ((name, plain(field_of(fields, of))) for name, of in names.items())
    return {name: value for name, value in found if value is not None}
