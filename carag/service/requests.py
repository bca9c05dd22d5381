"""Read requests strictly: each key once, no key that is unknown, and never a wider session than the token grants."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.requests import ClientDisconnect

from carag.errors import MALFORMED, InvalidArgument
from carag.labelling.document import Act, ActKind, Document
from carag.limits import MAX_LABEL, MAX_QUESTION
from carag.policy import parse_moment
from carag.policy.restrictions import MAX_COOLING
from carag.service.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date, datetime

    from starlette.requests import Request

    from carag.policy import PolicyFlag, Session
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


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class Narrow(_Strict):
    """By what a request restricts the session that its token grants: the arguments of ``Session.narrow``."""

    allow_entities: list[int] | None = Field(default=None, max_length=_MAX_LISTED)
    restricted: Entities = []
    watched: Entities = []
    residency: list[str] = Field(default=[], max_length=32)
    cooling_minutes: int | None = Field(default=None, gt=0, le=MAX_COOLING // timedelta(minutes=1))
    intents: list[str] = Field(default=[], max_length=32)
    conversation: str | None = Field(default=None, min_length=1, max_length=MAX_LABEL)

    def applied(self, session: Session, flags: type[PolicyFlag]) -> Session:
        """Return the session narrowed; bits are those of the store's profile.

        Raises
        ------
        InvalidArgument
            If a value is not of its kind, or the profile has no such bit.
        """
        places = flags(0)
        for name in self.residency:
            if name not in flags.__members__:
                raise InvalidArgument("residency names no bit of the store's profile")
            places |= flags[name]
        return session.narrow(
            allow_entities=self.allow_entities,
            restricted=self.restricted,
            watched=self.watched,
            residency=places,
            cooling=None if self.cooling_minutes is None else timedelta(minutes=self.cooling_minutes),
            intents=self.intents,
            conversation=self.conversation,
        )


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

    question: str = Field(min_length=1, max_length=MAX_QUESTION)
    where: dict[str, Any] | None = Field(default=None, max_length=64)


class RetrieveBody(AskBody):
    """A question of which the passages are wanted."""

    model_config = _shown_by(question="What drove revenue?", k=8)

    k: int = Field(default=8, ge=1, le=400)


class ExplainBody(_Asked):
    """A passage of which is asked why the session may or may not use it."""

    model_config = _shown_by(chunk_id="memo:00000")

    chunk_id: str = Field(min_length=1, max_length=MAX_LABEL)


class ActBody(_Strict):
    """What a document does to others, as :class:`carag.labelling.document.Act`."""

    kind: Literal["replaces", "withdraws", "amends"]
    name: str
    since: str | None = None


Plain = str | int | float | bool | None


class DocumentBody(_Strict):
    """A document as :class:`carag.Document` has it; bits by their names, times as text with an offset, or days."""

    id: str
    text: str
    bits: list[str] | None = None
    facts: dict[str, Plain | list[Plain]] | None = None
    metadata: dict[str, Plain] = {}
    entities: list[int] = []
    public_at: str | None = None
    expires_at: str | None = None
    supersedes: str | None = None
    names: list[str] = []
    acts: list[ActBody] = []
    in_force_at: str | None = None
    language: str | None = None
    pages: list[int] = []

    def document(self) -> Document:
        """Return the document; InvalidArgument if a value is not of its kind."""
        said: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        for name in ("public_at", "expires_at", "in_force_at"):
            said[name] = _moment(said[name])
        acts = (Act(ActKind(one.kind), one.name, _moment(one.since)) for one in self.acts)
        return Document(**{**said, "acts": tuple(acts)})


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
            raise Problem("INVALID_REQUEST", at=["documents", "remove"])
        for place, one in enumerate(self.documents):
            try:
                one.document()
            except InvalidArgument:
                raise Problem("INVALID_REQUEST", at=[f"documents.{place}"]) from None
        return self


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
        # A key that is unknown is the caller's own text, so only names that the interface has are told.
        known = {
            *schema.model_fields,
            *Narrow.model_fields,
            *DocumentBody.model_fields,
            *ActBody.model_fields,
        }
        wanted = {
            ".".join(str(part) for part in one["loc"]) or "request": one["msg"].removeprefix("Value error, ")
            for one in error.errors(include_input=False, include_context=False)
            if all(part in known or isinstance(part, int) for part in one["loc"])
        }
        places = sorted({*wanted} - {"request"})
        raise Problem("INVALID_REQUEST", at=places or None, wanted=wanted or None) from None


def _once(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Problem("JSON_DUPLICATE_KEY")
    return found


def _not_finite(_: str) -> NoReturn:
    raise ValueError("JSON has no such number")
