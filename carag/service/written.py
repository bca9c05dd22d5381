"""Write documents and the reports of writes as JSON, and read the reports back: a client returns the engine's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from carag.audit.receipts.erased import ErasureStatement
from carag.engine.contents import GroupReport
from carag.engine.erasing.documents import DueReport, ErasureReport
from carag.engine.erasing.retention import Due
from carag.engine.erasing.subject import (
    SubjectReport,
)
from carag.engine.results import AddReport
from carag.errors import InvalidArgument
from carag.labelling.document import Act, Document
from carag.limits import quoted
from carag.policy import PolicyFlag, from_minutes
from carag.policy.time import NEVER
from carag.service.wire import JobBody, _Body, receipt_of

if TYPE_CHECKING:
    from carag.audit import Receipt
    from carag.policy.groups.statements import GroupImport, GroupStatement, Window


class ErasureBody(_Body):
    """What an erasure did, or would do."""

    receipts: list[str]
    documents: int
    passages: int
    answers: list[int]
    kept: list[int]
    beyond: list[str]
    reasons: list[str]
    statements: list[str]


class DueOneBody(_Body):
    """A document that is due to be erased."""

    document: str
    since: int
    """The minute that it states, since 1970."""
    held: list[int]
    until: int


class DueBody(_Body):
    """The documents that are due to be erased."""

    due: list[DueOneBody]


class ErasedDueBody(_Body):
    """What erasing what is due did."""

    erased: list[str]
    stayed: list[DueOneBody]
    report: ErasureBody | None


class PlacedBody(_Body):
    """The receipt of a hold; its record is what releases it."""

    record: int
    receipt: str


class HoldsBody(_Body):
    """By the id of each document that is held, the records that placed the holds in force."""

    held: dict[str, list[int]]


class _MentioningBody(_Body):
    id: str
    where: list[str]


class _ListingBody(_Body):
    id: str
    list: str
    principal: str


class _MembershipBody(_Body):
    group: str
    member: str
    now: bool


class _RecordBody(_Body):
    record: int
    kind: str
    fields: list[str]


class PersonBody(_Body):
    """Where a person stands."""

    names: list[str]
    record: int
    documents: list[_MentioningBody]
    lists: list[_ListingBody]
    groups: list[_MembershipBody]
    records: list[_RecordBody]


class GroupReportBody(_Body):
    """What an import of groups changed, or would change."""

    opened: int
    closed: int
    added: int
    undefined: list[str]
    sha256: str
    known_at: int | None


def erasure_json(done: ErasureReport) -> dict[str, Any]:
    """Return a report on an erasure as JSON values."""
    texts = {
        name: [one.to_bytes().decode() for one in getattr(done, name)] for name in ("receipts", "statements")
    }
    return {**done._asdict(), **texts}


def due_json(done: DueReport) -> dict[str, Any]:
    """Return a report on what was due as JSON values."""
    report = None if done.report is None else erasure_json(done.report)
    return {"erased": done.erased, "stayed": [one._asdict() for one in done.stayed], "report": report}


def placed_json(receipt: Receipt) -> dict[str, Any]:
    """Return the receipt of a hold as JSON values."""
    return {"record": receipt.seq, "receipt": receipt.to_bytes().decode()}


def erasure_of(said: ErasureBody) -> ErasureReport:
    """Make a report from what a service sent; raise CorruptFile if a receipt or statement is not valid."""
    return ErasureReport(
        tuple(map(receipt_of, said.receipts)),
        said.documents,
        said.passages,
        tuple(said.answers),
        tuple(said.kept),
        tuple(said.beyond),
        tuple(said.reasons),
        tuple(ErasureStatement.parse(one.encode()) for one in said.statements),
    )


def due_of(said: DueBody) -> list[Due]:
    """Return what is due, as a service sent it."""
    return TypeAdapter(list[Due]).validate_python(said.model_dump()["due"])


def erased_due_of(said: ErasedDueBody) -> DueReport:
    """Make a report from what a service sent; errors as for :func:`erasure_of`."""
    report = None if said.report is None else erasure_of(said.report)
    return DueReport(tuple(said.erased), tuple(due_of(DueBody(due=said.stayed))), report)


def person_of(said: PersonBody) -> SubjectReport:
    """Make a report on a person from what a service sent."""
    return TypeAdapter(SubjectReport).validate_python(said.model_dump())


def groups_of(said: GroupReportBody) -> GroupReport:
    """Make a report on groups from what a service sent."""
    return TypeAdapter(GroupReport).validate_python(said.model_dump())


def added_of(said: JobBody) -> AddReport:
    """Make a report from a job that is done; if it is no longer known which documents cannot be found, it says so."""
    lost = [f"{said.quarantined} documents got no label; the service no longer knows which"]
    problems = (lost if said.quarantined else []) if said.problems is None else said.problems
    return AddReport(
        said.added,
        said.changed,
        said.unchanged,
        said.quarantined,
        said.chunks,
        said.embedded,
        said.reused,
        problems,
    )


_APART: Final = ("bits", "vectors", "embedded_by", "cuts")
"""Fields of a document that are written in another way, or not at all."""


def document_json(one: Document) -> dict[str, Any]:
    """Return a document as JSON values, as :class:`carag.service.requests.DocumentBody` reads them."""
    if not isinstance(one, Document):
        raise InvalidArgument(f"documents contains a {type(one).__name__}; want carag.Document objects")
    if one.vectors is not None:
        raise InvalidArgument(
            f"document {quoted(one.id)} brings vectors, which a service does not take; add it with carag.Engine"
        )
    found = {field.name: _json(getattr(one, field.name)) for field in fields(one) if field.name not in _APART}
    found["bits"] = None if one.bits is None else _names(one)
    return {name: value for name, value in found.items() if value is not None}


def groups_text(stated: GroupImport) -> str:
    """Write statements about groups as the lines that :func:`carag.policy.groups.reading.read_groups` reads."""
    return "".join(json.dumps(_statement(one)) + "\n" for one in stated.statements)


def _statement(one: GroupStatement) -> dict[str, Any]:
    members = [{"member": name, **_window(window)} for name, window in one.members.items()]
    said = {"group": one.group, "members": members}
    return said if one.removed is None else {**said, "remove": sorted(one.removed)}


def _window(window: Window) -> dict[str, str]:
    since = {"from": from_minutes(window.since).isoformat()} if window.since else {}
    return {**since, **({"until": from_minutes(window.until).isoformat()} if window.until < NEVER else {})}


def _names(one: Document) -> list[str]:
    stated: Any = one.bits
    found: list[str] = []
    for bit in (stated,) if isinstance(stated, PolicyFlag | int) else stated:
        if not isinstance(bit, str | PolicyFlag):
            raise InvalidArgument(
                f"bits of document {quoted(one.id)} has a {type(bit).__name__}; name the bits, because only the store "
                "knows its vocabulary"
            )
        found += [bit] if isinstance(bit, str) else [str(flag.name) for flag in bit]
    return found


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _json(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [_json(one) for one in value]
    if isinstance(value, Act):
        return {"kind": value.kind.value, "name": value.name, "since": _json(value.since)}
    return value.isoformat() if isinstance(value, date) else value
