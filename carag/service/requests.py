"""Read requests strictly: each key once, no key that is unknown, and never a wider session than the token grants."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import contextmanager
from datetime import timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.requests import ClientDisconnect

from carag.errors import MALFORMED, InvalidArgument
from carag.labelling.document import Act, ActKind, Document
from carag.limits import MAX_LABEL, MAX_QUESTION, check_question
from carag.policy import Where, parse_moment
from carag.policy.restrictions import MAX_COOLING
from carag.service.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date, datetime

    from pydantic_core import ErrorDetails
    from starlette.requests import Request

    from carag.policy import FieldKind, PolicyFlag, Session
    from carag.service.grants import Cell

__all__ = [
    "MAX_KEY",
    "AskBody",
    "DocumentBody",
    "ExplainBody",
    "IngestBody",
    "Narrow",
    "RetrieveBody",
    "idempotency_key",
    "parsed",
    "read_body",
    "read_json",
    "validated",
]

_Model = TypeVar("_Model", bound=BaseModel)

_MAX_LISTED: Final = 10_000
"""Greatest number of entities that a request lists."""
MAX_KEY: Final = 128
"""Greatest number of characters of an idempotency key."""
_IDEMPOTENCY_KEY: Final = re.compile(rf'("?)([\x21\x23-\x5b\x5d-\x7e]{{1,{MAX_KEY}}})\1')
_BODY_SECONDS: Final = 10.0
"""Longest time that a body may take to arrive."""
Entities = Annotated[list[int], Field(max_length=_MAX_LISTED)]
_ENTITIES: Final = "Entities, each a whole number from 1 to 2^32 - 1."
_DAY: Final = (
    "A day such as 2025-05-01, or a time with an offset such as 2025-05-01T09:00:00+02:00; 1970 or later."
)
_ID: Final = "1 to 159 printable characters, which do not end in a version such as .v2."


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class Narrow(_Strict):
    """By what a request restricts the session that its token grants: the arguments of ``Session.narrow``."""

    allow_entities: list[int] | None = Field(default=None, max_length=_MAX_LISTED, description=_ENTITIES)
    restricted: Entities = Field(default=[], description=_ENTITIES)
    watched: Entities = Field(default=[], description=_ENTITIES)
    residency: list[str] = Field(
        default=[], max_length=32, description="Names of jurisdictions that the store's profile has."
    )
    cooling_minutes: int | None = Field(default=None, gt=0, le=MAX_COOLING // timedelta(minutes=1))
    intents: list[str] = Field(
        default=[], max_length=32, description=f"Names of up to {MAX_LABEL} printable characters."
    )
    conversation: str | None = Field(
        default=None, min_length=1, max_length=MAX_LABEL, description="Printable characters; it only groups."
    )

    def applied(self, session: Session, flags: type[PolicyFlag]) -> Session:
        """Return the session narrowed; bits are those of the store's profile.

        Raises
        ------
        Problem
            ``INVALID_REQUEST``, if a value is not of its kind, or the profile has no such bit.
        """
        for name in sorted(self.model_fields_set):
            value, argument = getattr(self, name), name
            with _field(f"narrow.{name}", "INVALID_REQUEST"):
                if name == "residency":
                    value = _places(value, flags)
                elif name == "cooling_minutes":
                    argument, value = "cooling", None if value is None else timedelta(minutes=value)
                session = session.narrow(**{argument: value})
        return session


def _places(names: Sequence[str], flags: type[PolicyFlag]) -> PolicyFlag:
    found = flags(0)
    for name in names:
        if name not in flags.__members__:
            raise InvalidArgument("residency names no bit of the store's profile")
        found |= flags[name]
    return found


class _Asked(_Strict):
    role: str | None = Field(default=None, max_length=MAX_LABEL)
    purpose: str | None = Field(default=None, max_length=MAX_LABEL)
    subject: str | None = Field(default=None, max_length=MAX_LABEL)
    narrow: Narrow = Narrow()

    @model_validator(mode="after")
    def _whole_cell(self) -> Any:
        if (self.role is None) != (self.purpose is None):
            raise ValueError("role and purpose are one cell; want both or neither")
        return self

    @property
    def cell(self) -> Cell | None:
        """The cell that the request chooses, if it does."""
        return None if self.role is None or self.purpose is None else (self.role, self.purpose)


def _shown_by(**example: Any) -> ConfigDict:
    """Give a schema the example that its description shows."""
    return ConfigDict(json_schema_extra={"examples": [example]})


class AskBody(_Asked):
    """A question, in plain words."""

    model_config = _shown_by(question="What drove revenue?")

    question: str = Field(
        min_length=1,
        max_length=MAX_QUESTION,
        description="A text without NUL, of which not all characters are white space.",
    )
    where: dict[str, Any] | None = Field(
        default=None,
        max_length=64,
        description=(
            "Fields that the store's profile declares, each with a value of its kind, a list of such values, or a "
            'range such as {"gte": 2024} of numbers or dates.'
        ),
    )

    def check(self, kinds: Mapping[str, FieldKind]) -> None:
        """Check what the schema cannot say; Problem ``INVALID_ARGUMENT`` if a value cannot be used."""
        with _field("question"):
            check_question("question", self.question)
        with _field("where"):
            Where.of(self.where, kinds)


class RetrieveBody(AskBody):
    """A question of which the passages are wanted."""

    model_config = _shown_by(question="What drove revenue?", k=8)

    k: int = Field(default=8, ge=1, le=400)


class ExplainBody(_Asked):
    """A passage of which is asked why the session may or may not use it."""

    model_config = _shown_by(chunk_id="memo:00000")

    chunk_id: str = Field(
        min_length=1,
        max_length=MAX_LABEL,
        description="A passage's id: a text without NUL, of which not all characters are white space.",
    )

    def check(self, _: Mapping[str, FieldKind]) -> None:
        """Check what the schema cannot say; Problem ``INVALID_ARGUMENT`` if a value cannot be used."""
        with _field("chunk_id"):
            check_question("chunk id", self.chunk_id)  # as the engine, which searches for it as a text


class ActBody(_Strict):
    """What a document does to others, as :class:`carag.labelling.document.Act`."""

    kind: Literal["replaces", "withdraws", "amends"]
    name: str = Field(description=f"The id of another document, or one of its names. {_ID}")
    since: str | None = Field(default=None, description=_DAY)


Plain = str | int | float | bool | None


class DocumentBody(_Strict):
    """A document as :class:`carag.Document` has it; bits by their names, times as text with an offset, or days."""

    id: str = Field(description=_ID)
    text: str = Field(description="A text without NUL.")
    bits: list[str] | None = Field(default=None, description="Names of bits; this or facts, and not both.")
    facts: dict[str, Plain | list[Plain]] | None = Field(
        default=None,
        description=(
            "At most 256 facts with names such as case_number, each a value or a list of up to 1,000; texts of up to "
            "1,000 characters without NUL, and finite numbers, of 64 bits if they are whole."
        ),
    )
    metadata: dict[str, Plain] = Field(
        default={},
        description=(
            "At most 64 fields with names such as case_number; texts of up to 1,000 characters without NUL, and finite "
            "numbers, of 64 bits if they are whole."
        ),
    )
    entities: list[int] = Field(default=[], description=_ENTITIES)
    public_at: str | None = Field(default=None, description=_DAY)
    expires_at: str | None = Field(default=None, description=f"Later than public_at. {_DAY}")
    supersedes: str | None = Field(default=None, description=f"The id of another document. {_ID}")
    names: list[str] = Field(default=[], description=f"At most 1,000. {_ID}")
    acts: list[ActBody] = Field(default=[], description="At most 1,000, each of a kind, a name and a day.")
    in_force_at: str | None = Field(default=None, description=_DAY)
    language: str | None = Field(default=None, description="A BCP 47 tag such as en or de-CH.")
    pages: list[int] = Field(
        default=[], description="Ascending offsets in the text, in characters, at which its pages begin."
    )

    def document(self) -> Document:
        """Return the document; InvalidArgument if a value is not of its kind."""
        said: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        for name in ("public_at", "expires_at", "in_force_at"):
            said[name] = _moment(said[name])
        acts = (Act(ActKind(one.kind), one.name, _moment(one.since)) for one in self.acts)
        return Document(**{**said, "acts": tuple(acts)})

    def unusable(self) -> list[str]:
        """Return the fields that no document could have; none if they only contradict each other."""
        usual: dict[str, Any] = {"id": "x", "text": " " * len(self.text), "bits": ()}
        found = []
        for name in sorted(self.model_fields_set):
            if name in ("bits", "facts") and getattr(self, name) is None:
                continue  # the other is wanted, or this
            alone = {**usual, **({"bits": None} if name == "facts" else {}), name: getattr(self, name)}
            try:
                DocumentBody.model_construct(**alone).document()
            except InvalidArgument:
                found.append(name)
        return found


class IngestBody(_Strict):
    """Documents to take in, each in place of the one that has its id; or ids of documents to remove."""

    model_config = _shown_by(
        documents=[{"id": "memo", "text": "The canteen opens at noon.", "bits": ["INTERNAL"]}]
    )

    documents: list[DocumentBody] = Field(default=[], max_length=_MAX_LISTED)
    remove: list[Annotated[str, Field(min_length=1, max_length=MAX_LABEL)]] = Field(
        default=[], max_length=_MAX_LISTED
    )

    def checked(self) -> Self:
        """Return this if it says one of the two, and each document is one.

        Raises
        ------
        Problem
            ``INVALID_REQUEST``; it tells which document by its place.
        """
        if bool(self.documents) == bool(self.remove):
            either = "Either documents to take in or ids of documents to remove"
            raise _unusable("INVALID_REQUEST", {"documents": either, "remove": either})
        for place, one in enumerate(self.documents):
            try:
                one.document()
            except InvalidArgument:
                at = f"documents.{place}"
                wanted = {f"{at}.{name}": _wanted(name) for name in one.unusable()}
                raise _unusable("INVALID_REQUEST", wanted or {at: _AGREE}) from None
        return self


_AGREE: Final = (
    "One of bits and facts, an expires_at later than public_at, and another document's id in supersedes"
)
_BODIES: Final = (RetrieveBody, ExplainBody, IngestBody, Narrow, DocumentBody, ActBody)
"""Schemas that have every field of a request between them."""
_FIELDS: Final = {name: field for schema in _BODIES for name, field in schema.model_fields.items()}


_OPEN: Final = ("where", "facts", "metadata")
"""Fields whose keys are the caller's own."""


def _wanted(place: str) -> str:
    """Return what a field should be, in the words of the interface's description."""
    field = _FIELDS.get(place.rpartition(".")[2])
    return ((field and field.description) or "As described").removesuffix(".")


def _unusable(code: str, wanted: dict[str, str]) -> Problem:
    return Problem(code, at=sorted(wanted), wanted=wanted)


@contextmanager
def _field(place: str, code: str = "INVALID_ARGUMENT") -> Iterator[None]:
    """Tell that what is checked is a field of the request, and what is wanted of it."""
    try:
        yield
    except InvalidArgument:
        raise _unusable(code, {place: _wanted(place)}) from None


def idempotency_key(stated: Sequence[str]) -> str:
    """Return the one key that a request states, so that a repeated one is not done twice.

    The header is that of draft-ietf-httpapi-idempotency-key-header-07; quoted or not, it is one key.

    Raises
    ------
    Problem
        ``IDEMPOTENCY_KEY_MISSING`` for none, several, or what is not 1 to 128 visible ASCII characters.

    Examples
    --------
    >>> idempotency_key(['"8e03978e-40d5-43dd"'])
    '8e03978e-40d5-43dd'
    """
    if len(stated) == 1 and (found := _IDEMPOTENCY_KEY.fullmatch(stated[0].strip())) is not None:
        return found[2]
    raise Problem("IDEMPOTENCY_KEY_MISSING")


def _moment(text: str | None) -> datetime | date | None:
    return None if text is None else parse_moment(text)


async def read_body(request: Request, most: int) -> bytes:
    """Read a body of limited size in limited time, whatever its header says of its length.

    Raises
    ------
    Problem
        ``BODY_TOO_LARGE`` or ``TIME_LIMIT``.
    """
    data = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for piece in request.stream():
                data += piece
                if len(data) > most:
                    raise Problem("BODY_TOO_LARGE")
    except (TimeoutError, ClientDisconnect):
        raise Problem("TIME_LIMIT") from None
    return bytes(data)


def read_json(data: bytes) -> Any:
    """Read a JSON object.

    Raises
    ------
    Problem
        ``JSON_DUPLICATE_KEY`` where a key stands twice: readers differ in which of the two counts (RFC 8259 section
        4), so one in front of the service could have seen another question. ``JSON_MALFORMED`` for all else.
    """
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_not_finite)
    except MALFORMED as error:
        raise Problem("JSON_MALFORMED") from error
    if not isinstance(found, dict):
        raise Problem("JSON_MALFORMED")
    return found


def parsed(schema: type[_Model], data: bytes) -> _Model:
    """Read the body of a request.

    Raises
    ------
    Problem
        As :func:`read_json`; ``INVALID_REQUEST`` where the body is not of the schema.
    """
    return validated(schema, read_json(data))


def validated(schema: type[_Model], said: Mapping[str, Any]) -> _Model:
    """Check a JSON object by a schema; ``INVALID_REQUEST`` where it does not fit."""
    try:
        return schema.model_validate(said)
    except ValidationError as error:
        wanted = dict(
            _told(one, {*_FIELDS, *schema.model_fields})
            for one in error.errors(include_input=False, include_context=False)
        )
        places = sorted({*wanted} - {"request"})
        raise Problem("INVALID_REQUEST", at=places or None, wanted=wanted) from None


def _told(error: ErrorDetails, fields: set[str]) -> tuple[str, str]:
    """Return the place and the wish of a validation error; keys that are the caller's own are not told."""
    is_unknown = error["type"] == "extra_forbidden"
    stated = error["loc"][:-1] if is_unknown else error["loc"]
    start = next((number for number, part in enumerate(stated, 1) if part in _OPEN), len(stated))
    named = [*takewhile(lambda part: part in fields or isinstance(part, int), stated[:start])]
    place = ".".join(str(part) for part in named)
    if is_unknown:
        wish = "Only fields that the interface describes"
    elif len(named) < len(stated):  # within a value whose keys are the caller's, or of one of several kinds
        wish = _wanted(place)
    else:
        wish = error["msg"].removeprefix("Value error, ")
    return place or "request", wish


def _once(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Problem("JSON_DUPLICATE_KEY")
    return found


def _not_finite(_: str) -> NoReturn:
    raise ValueError("JSON has no such number")
