"""Read requests strictly: no duplicate and no unknown keys, and never a wider session than the token grants."""

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

from carag.engine.break_glass import MAX_REASON
from carag.errors import MALFORMED, InvalidArgument
from carag.labelling.document import Act, ActKind, Document
from carag.limits import MAX_LABEL, MAX_QUESTION, check_question
from carag.policy import Where, parse_moment
from carag.policy.audience import MAX_PRINCIPALS
from carag.policy.restrictions import MAX_COOLING
from carag.service.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date, datetime

    from pydantic_core import ErrorDetails
    from starlette.requests import Request

    from carag.policy import FieldKind, PolicyFlag, Session
    from carag.service.grants import Cell


_Model = TypeVar("_Model", bound=BaseModel)

_MAX_LISTED: Final = 10_000
"""Most entities in one list of a request."""
MAX_KEY: Final = 128
"""Most characters in an idempotency key."""
_IDEMPOTENCY_KEY: Final = re.compile(rf'("?)([\x21\x23-\x5b\x5d-\x7e]{{1,{MAX_KEY}}})\1')
_MAX_TOKEN: Final = 16 << 10
"""Most characters of a second token; the head that holds the first one is not longer."""
_BODY_SECONDS: Final = 10.0
"""Time in which a body must arrive."""
Entities = Annotated[list[int], Field(max_length=_MAX_LISTED)]
_ENTITIES: Final = "Entities, each a whole number from 1 to 2^32 - 1."
_DAY: Final = (
    "A day such as 2025-05-01, or a time with an offset such as 2025-05-01T09:00:00+02:00; 1970 or later."
)
_PRINCIPALS: Final = "At most 10,000 persons and groups, each a kind and an id such as group:treasury."
_ID: Final = "1 to 159 printable characters, which do not end in a version such as .v2."


class Strict(BaseModel):
    """What others send: no unknown fields, no converted values, and errors that quote none of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class Narrow(Strict):
    """How a request restricts the session that its token grants: the arguments of ``Session.narrow``."""

    allow_entities: list[int] | None = Field(default=None, max_length=_MAX_LISTED, description=_ENTITIES)
    principals: list[str] | None = Field(
        default=None,
        max_length=MAX_PRINCIPALS,
        description="Those of the token's principals that open documents, each a kind and an id, such as user:ana.",
    )
    restricted: Entities = Field(default=[], description=_ENTITIES)
    watched: Entities = Field(default=[], description=_ENTITIES)
    residency: list[str] = Field(
        default=[], max_length=32, description="Names of jurisdictions in the store's profile."
    )
    cooling_minutes: int | None = Field(default=None, gt=0, le=MAX_COOLING // timedelta(minutes=1))
    intents: list[str] = Field(
        default=[], max_length=32, description=f"Names of up to {MAX_LABEL} printable characters."
    )
    conversation: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_LABEL,
        description="Printable characters; a follow-up is read after the caller's earlier questions in this cell.",
    )

    def applied(self, session: Session, flags: type[PolicyFlag]) -> Session:
        """Return the session narrowed; raise Problem ``INVALID_REQUEST`` if a value is not valid."""
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
            raise InvalidArgument("residency must name bits of the store's profile")
        found |= flags[name]
    return found


class SessionBody(Strict):
    """Which of the token's cells a request chooses, and whose token it takes it to be."""

    role: str | None = Field(default=None, max_length=MAX_LABEL)
    purpose: str | None = Field(default=None, max_length=MAX_LABEL)
    subject: str | None = Field(default=None, max_length=MAX_LABEL)

    @model_validator(mode="after")
    def _whole_cell(self) -> Any:
        if (self.role is None) != (self.purpose is None):
            raise ValueError("role and purpose belong together; give both or neither")
        return self

    @property
    def cell(self) -> Cell | None:
        """The cell that the request chooses, if any."""
        return None if self.role is None or self.purpose is None else (self.role, self.purpose)


def _shown_by(**example: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [example]})


class _NarrowedBody(SessionBody):
    narrow: Narrow = Narrow()
    glass: str | None = Field(
        default=None,
        max_length=MAX_LABEL,
        repr=False,
        description="The name that the service gave when the person broke the glass for this cell.",
    )


class BreakGlassBody(SessionBody):
    """Why a cell is to be opened, for how long, and who approves it."""

    model_config = _shown_by(role="nurse", purpose="emergency", reason="cardiac arrest in ward 3")

    reason: str = Field(
        min_length=1,
        max_length=MAX_REASON,
        repr=False,
        description="Text without NUL, and not only white space.",
    )
    minutes: int | None = Field(
        default=None,
        ge=1,
        le=24 * 60,
        description="At most as many as the cell opens for, which is the default.",
    )
    approver: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TOKEN,
        repr=False,
        description="The bearer token of another person, which grants the same cell.",
    )

    def check(self, most: int | None) -> None:
        """Check what the schema cannot express; raise Problem ``INVALID_ARGUMENT``. ``most`` minutes are allowed."""
        with _field("reason"):
            check_question("reason", self.reason)
        if self.minutes is not None and most is not None and self.minutes > most:
            raise unusable("INVALID_ARGUMENT", {"minutes": wanted_of("minutes")})


class AskBody(_NarrowedBody):
    """A question, in plain words."""

    model_config = _shown_by(question="What drove revenue?")

    question: str = Field(
        min_length=1,
        max_length=MAX_QUESTION,
        description="Text without NUL, and not only white space.",
    )
    where: dict[str, Any] | None = Field(
        default=None,
        max_length=64,
        description=(
            "Fields declared by the store's profile, each with a value of its kind, a list of such values, or a "
            'range such as {"gte": 2024} of numbers or dates.'
        ),
    )

    def check(self, kinds: Mapping[str, FieldKind]) -> None:
        """Check what the schema cannot express; raise Problem ``INVALID_ARGUMENT``."""
        with _field("question"):
            check_question("question", self.question)
        with _field("where"):
            Where.of(self.where, kinds)


class RetrieveBody(AskBody):
    """A question for which passages are wanted."""

    model_config = _shown_by(question="What drove revenue?", k=8)

    k: int = Field(default=8, ge=1, le=400)


class ExplainBody(_NarrowedBody):
    """A passage, to explain why the session may or may not use it."""

    model_config = _shown_by(chunk_id="memo:00000")

    chunk_id: str = Field(
        min_length=1,
        max_length=MAX_LABEL,
        description="A passage's id: text without NUL, and not only white space.",
    )

    def check(self, _: Mapping[str, FieldKind]) -> None:
        """Check what the schema cannot express; raise Problem ``INVALID_ARGUMENT``."""
        with _field("chunk_id"):
            check_question("chunk id", self.chunk_id)  # the engine searches for the id as text


class ActBody(Strict):
    """What a document does to others, as :class:`carag.labelling.document.Act`."""

    kind: Literal["replaces", "withdraws", "amends"]
    name: str = Field(description=f"The id of another document, or one of its names. {_ID}")
    since: str | None = Field(default=None, description=_DAY)


Plain = str | int | float | bool | None


class DocumentBody(Strict):
    """A document as in :class:`carag.Document`; bits by name, times as text with an offset, or days."""

    id: str = Field(description=_ID)
    text: str = Field(description="Text without NUL.")
    bits: list[str] | None = Field(
        default=None, description="Names of bits; either these or facts, not both."
    )
    facts: dict[str, Plain | list[Plain]] | None = Field(
        default=None,
        description=(
            "At most 256 facts with names such as case_number, each a value or a list of up to 1,000; texts of up to "
            "1,000 characters without NUL, and finite numbers; whole numbers must fit in 64 bits."
        ),
    )
    metadata: dict[str, Plain] = Field(
        default={},
        description=(
            "At most 64 fields with names such as case_number; texts of up to 1,000 characters without NUL, and finite "
            "numbers; whole numbers must fit in 64 bits."
        ),
    )
    entities: list[int] = Field(default=[], description=_ENTITIES)
    allow: list[str] | None = Field(default=None, description=f"Who may see it. {_PRINCIPALS}")
    deny: list[str] = Field(default=[], description=f"Who may not see it. {_PRINCIPALS}")
    public_at: str | None = Field(default=None, description=_DAY)
    expires_at: str | None = Field(default=None, description=f"Later than public_at. {_DAY}")
    retain_until: str | None = Field(default=None, description=f"Until when it must be kept. {_DAY}")
    erase_after: str | None = Field(
        default=None, description=f"From when it is due to be erased, no earlier than retain_until. {_DAY}"
    )
    supersedes: str | None = Field(default=None, description=f"The id of another document. {_ID}")
    names: list[str] = Field(default=[], description=f"At most 1,000. {_ID}")
    acts: list[ActBody] = Field(default=[], description="At most 1,000, each of a kind, a name and a day.")
    in_force_at: str | None = Field(default=None, description=_DAY)
    language: str | None = Field(default=None, description="A BCP 47 tag such as en or de-CH.")
    pages: list[int] = Field(
        default=[], description="Offsets in the text, in characters and ascending, at which its pages begin."
    )
    read_by: str | None = Field(
        default=None,
        description=f"What extracted the text, such as pdf/2: up to {MAX_LABEL} printable characters.",
    )

    def document(self) -> Document:
        """Return the document; raise InvalidArgument if a value is not valid."""
        said: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        for name in ("public_at", "expires_at", "retain_until", "erase_after", "in_force_at"):
            said[name] = _moment(said[name])
        acts = (Act(ActKind(one.kind), one.name, _moment(one.since)) for one in self.acts)
        return Document(**{**said, "acts": tuple(acts)})

    def unusable(self) -> list[str]:
        """Return the fields that would not be valid in any document; empty if fields only contradict each other."""
        usual: dict[str, Any] = {"id": "x", "text": " " * len(self.text), "bits": ()}
        found = []
        for name in sorted(self.model_fields_set):
            if name in ("bits", "facts") and getattr(self, name) is None:
                continue  # the other one is given
            alone = {**usual, **({"bits": None} if name == "facts" else {}), name: getattr(self, name)}
            try:
                DocumentBody.model_construct(**alone).document()
            except InvalidArgument:
                found.append(name)
        return found


class WriteBody(Strict):
    """Whose token a request that changes the store takes it to be."""

    model_config = _shown_by()

    subject: str | None = Field(default=None, max_length=MAX_LABEL)


class IngestBody(WriteBody):
    """Documents to add, each replacing the one with its id; or ids of documents to remove."""

    model_config = _shown_by(
        documents=[{"id": "memo", "text": "The canteen opens at noon.", "bits": ["INTERNAL"]}]
    )

    documents: list[DocumentBody] = Field(default=[], max_length=_MAX_LISTED)
    remove: list[Annotated[str, Field(min_length=1, max_length=MAX_LABEL)]] = Field(
        default=[], max_length=_MAX_LISTED
    )

    def checked(self) -> Self:
        """Return self if valid; else raise Problem ``INVALID_REQUEST`` with the first invalid document's place."""
        if bool(self.documents) == bool(self.remove):
            either = "Either documents to add or ids of documents to remove"
            raise unusable("INVALID_REQUEST", {"documents": either, "remove": either})
        for place, one in enumerate(self.documents):
            try:
                one.document()
            except InvalidArgument:
                at = f"documents.{place}"
                wanted = {f"{at}.{name}": wanted_of(name) for name in one.unusable()}
                raise unusable("INVALID_REQUEST", wanted or {at: _AGREE}) from None
        return self


Ids = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=MAX_LABEL)]], Field(max_length=_MAX_LISTED)
]
_IDS: Final = "Ids of documents that are in the store, none of them erased before."


class ApprovedBody(WriteBody):
    """What may take a second person."""

    model_config = _shown_by(approver="eyJ...")

    approver: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TOKEN,
        repr=False,
        description="The bearer token of another person, which grants the same.",
    )


class EraseBody(ApprovedBody):
    """Documents to erase for good, and why."""

    model_config = _shown_by(ids=["memo"], basis="GDPR_17_1", dry_run=True)

    ids: Ids = Field(min_length=1, description=_IDS)
    basis: Literal["GDPR_17_1", "GDPR_5_1_E", "GDPR_17_1_D", "GDPR_17_1_E"]
    dry_run: bool = Field(default=False, description="Report only, and change nothing.")


class HoldBody(WriteBody):
    """What to hold: ids, or words, or an entity and metadata."""

    model_config = _shown_by(matter="MATTER-7", ids=["memo"])

    matter: str = Field(description="A code such as MATTER-2026-17.")
    ids: Ids = Field(default=[], description=_IDS)
    words: list[str] = Field(
        default=[], max_length=_MAX_LISTED, description="Words that stand in a document; either ids or these."
    )
    entity: int | None = Field(default=None, description="An entity, in place of ids or words.")
    where: dict[str, Any] | None = Field(
        default=None,
        max_length=64,
        description="Fields declared by the store's profile, in place of ids or words.",
    )


class HeldBody(WriteBody):
    """Documents of which the holds are wanted."""

    model_config = _shown_by(ids=["memo"])

    ids: Ids = Field(description=_IDS)


class SubjectReportBody(WriteBody):
    """A person to find, and what for."""

    model_config = _shown_by(person=["Ana Ruiz", "user:ana"], why="REQUEST-3")

    person: list[str] = Field(
        min_length=1, max_length=1000, description="Names and ids of the person, as text."
    )
    why: str = Field(description="A code such as REQUEST-3.")


class GroupsBody(WriteBody):
    """What is stated about groups."""

    model_config = _shown_by(groups='{"group": "group:treasury", "members": ["user:ana"]}', dry_run=True)

    groups: str = Field(description="JSON Lines or SCIM, as `carag groups import` reads them.")
    dry_run: bool = Field(default=False, description="Report only, and change nothing.")


_AGREE: Final = (
    "Either bits or facts, an expires_at later than public_at, no erase_after before retain_until, and another "
    "document's id in supersedes"
)
WRITE_BODIES: Final = (IngestBody, EraseBody, HoldBody, HeldBody, SubjectReportBody, GroupsBody)
_BODIES: Final = (*WRITE_BODIES, RetrieveBody, ExplainBody, BreakGlassBody, Narrow, DocumentBody, ActBody)
"""Schemas that together have every field of a request."""
_FIELDS: Final = {name: field for schema in _BODIES for name, field in schema.model_fields.items()}


_OPEN: Final = ("where", "facts", "metadata")
"""Fields whose keys the caller chooses."""


def wanted_of(place: str) -> str:
    """Return what a field should be, from the interface's description."""
    field = _FIELDS.get(place.rpartition(".")[2])
    return ((field and field.description) or "As described").removesuffix(".")


def unusable(code: str, wanted: dict[str, str]) -> Problem:
    """Return the problem of fields that cannot be used; ``wanted`` says what each should be."""
    return Problem(code, at=sorted(wanted), wanted=wanted)


@contextmanager
def _field(place: str, code: str = "INVALID_ARGUMENT") -> Iterator[None]:
    """Report an invalid value as this field of the request."""
    try:
        yield
    except InvalidArgument:
        raise unusable(code, {place: wanted_of(place)}) from None


def idempotency_key(stated: Sequence[str]) -> str:
    """Return the request's one key, quoted or not (draft-ietf-httpapi-idempotency-key-header-07).

    Raises Problem ``IDEMPOTENCY_KEY_MISSING`` unless there is exactly one, of 1 to 128 visible ASCII characters.
    """
    if len(stated) == 1 and (found := _IDEMPOTENCY_KEY.fullmatch(stated[0].strip())) is not None:
        return found[2]
    raise Problem("IDEMPOTENCY_KEY_MISSING")


def _moment(text: str | None) -> datetime | date | None:
    return None if text is None else parse_moment(text)


async def read_body(request: Request, most: int) -> bytes:
    """Read a body, whatever length its header states; raise Problem ``BODY_TOO_LARGE`` or ``TIME_LIMIT``."""
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

    Raises Problem ``JSON_DUPLICATE_KEY``: readers differ in which of two equal keys counts (RFC 8259 section 4), so a
    proxy in front could have seen a different question. Raises ``JSON_MALFORMED`` for any other error.
    """
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_not_finite)
    except MALFORMED as error:
        raise Problem("JSON_MALFORMED") from error
    if not isinstance(found, dict):
        raise Problem("JSON_MALFORMED")
    return found


def parsed(schema: type[_Model], data: bytes) -> _Model:
    """Read and check the body of a request; errors as for :func:`read_json` and :func:`validated`."""
    return validated(schema, read_json(data))


def validated(schema: type[_Model], said: Mapping[str, Any]) -> _Model:
    """Check a JSON object against a schema; raise Problem ``INVALID_REQUEST`` if it does not match."""
    try:
        return schema.model_validate(said)
    except ValidationError as error:
        wanted = dict(
            _described(one, {*_FIELDS, *schema.model_fields})
            for one in error.errors(include_input=False, include_context=False)
        )
        places = sorted({*wanted} - {"request"})
        raise Problem("INVALID_REQUEST", at=places or None, wanted=wanted) from None


def _described(error: ErrorDetails, fields: set[str]) -> tuple[str, str]:
    """Return the place of a validation error and what is wanted there, without keys that the caller chose."""
    is_unknown = error["type"] == "extra_forbidden"
    stated = error["loc"][:-1] if is_unknown else error["loc"]
    start = next((number for number, part in enumerate(stated, 1) if part in _OPEN), len(stated))
    named = [*takewhile(lambda part: part in fields or isinstance(part, int), stated[:start])]
    place = ".".join(str(part) for part in named)
    if is_unknown:
        wish = "Only fields that the interface describes"
    elif len(named) < len(stated):  # in a union, or a value whose keys the caller chose
        wish = wanted_of(place)
    else:
        wish = error["msg"].removeprefix("Value error, ")
    return place or "request", wish


def _once(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Problem("JSON_DUPLICATE_KEY")
    return found


def _not_finite(_: str) -> NoReturn:
    raise ValueError("JSON has no NaN or Infinity")
