"""Erase and hold documents, report on persons, and import groups, for people whose token grants the duty."""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.audit.operations.persons import two_persons
from carag.errors import InvalidArgument
from carag.policy.groups.reading import read_groups
from carag.service import requests, written
from carag.service.problems import Problem
from carag.service.requests import ApprovedBody, WriteBody, unusable, wanted_of
from carag.service.wire import encoded

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

    from carag.engine import Engine
    from carag.service.admission import Person
    from carag.service.grants import Duty

_MAX_REPLIES: Final = 16 << 20
"""Most bytes of replies that are remembered."""


class Persons(NamedTuple):
    """Who acts, and who approves it: subjects of two tokens."""

    by: str
    approver: str | None


def _erase(engine: Engine, asked: requests.EraseBody, who: Persons) -> dict[str, Any]:
    """Erase documents for good, with the answers that cite them; two persons' tokens where the profile wants two."""
    return written.erasure_json(
        engine.erase(asked.ids, basis=asked.basis, by=who.by, approver=who.approver, dry_run=asked.dry_run)
    )


def _erase_due(engine: Engine, _: ApprovedBody, who: Persons) -> dict[str, Any]:
    """Erase the documents that are due, except those that a hold or a duty keeps."""
    return written.due_json(engine.erasures.erase_due(by=who.by, approver=who.approver))


def _due(engine: Engine, _: WriteBody, __: Persons) -> dict[str, Any]:
    """Return the documents that are due to be erased, those included that a hold or a duty keeps."""
    return {"due": [one._asdict() for one in engine.erasures.due()]}


def _hold(engine: Engine, asked: requests.HoldBody, who: Persons) -> dict[str, Any]:
    """Forbid erasing documents, on record, until two people release the hold."""
    said = asked.model_dump(exclude={"subject"})
    return written.placed_json(engine.erasures.holds.place(said.pop("matter"), by=who.by, **said))


def _held(engine: Engine, asked: requests.HeldBody, _: Persons) -> dict[str, Any]:
    """Return which holds keep documents from being erased."""
    return {"held": engine.erasures.holds.on(asked.ids)}


def _subject_report(engine: Engine, asked: requests.SubjectReportBody, who: Persons) -> dict[str, Any]:
    """Find where a person stands: in documents, lists, groups, records and answers; on record."""
    # The duty to audit is that role; no request states one.
    return engine.erasures.report(asked.person, role="auditor", actor=who.by, why=asked.why).to_json()


def _import_groups(engine: Engine, asked: requests.GroupsBody, who: Persons) -> dict[str, Any]:
    """Bring groups to what is stated about them, on record, all of it or nothing."""
    read = read_groups(asked.groups, zone=engine.profile.vocabulary.zone)
    return engine.contents.import_groups(read, by=who.by, dry_run=asked.dry_run)._asdict()


class Write(NamedTuple):
    """One operation: its address, the duty that it needs, what it takes and answers, and its work.

    ``fields`` are those whose values decide whether the engine takes the request, ``has_key`` says whether a request
    that is sent again must not be done again.
    """

    path: str
    duty: Duty
    takes: type[WriteBody]
    gives: type[BaseModel]
    work: Callable[[Engine, Any, Persons], dict[str, Any]]
    fields: tuple[str, ...] = ()
    has_key: bool = True


WRITES: Final = {
    "erase": Write("erase", "admin", requests.EraseBody, written.ErasureBody, _erase, ("ids",)),
    "erase_due": Write("erase-due", "admin", ApprovedBody, written.ErasedDueBody, _erase_due),
    "due": Write("due", "admin", WriteBody, written.DueBody, _due, has_key=False),
    "hold": Write(
        "hold",
        "admin",
        requests.HoldBody,
        written.PlacedBody,
        _hold,
        ("matter", "ids", "words", "entity", "where"),
    ),
    "held": Write("held", "admin", requests.HeldBody, written.HoldsBody, _held, ("ids",), has_key=False),
    "subject_report": Write(
        "subject-report",
        "audit",
        requests.SubjectReportBody,
        written.PersonBody,
        _subject_report,
        ("person", "why"),
        has_key=False,
    ),
    "import_groups": Write(
        "groups", "admin", requests.GroupsBody, written.GroupReportBody, _import_groups, ("groups",)
    ),
}


def second_person(engine: Engine, asked: WriteBody, by: str, approver: Callable[[str], str]) -> Persons:
    """Return who acts and who approves; ``approver`` returns the subject of a token, or raises a Problem.

    Raises Problem ``APPROVER_REQUIRED`` where the profile wants two persons and there are not two.
    """
    if not isinstance(asked, ApprovedBody):
        return Persons(by, None)
    name = None if asked.approver is None else approver(asked.approver)
    if name is not None or engine.profile.vocabulary.two_persons_erase:
        try:
            two_persons(by, name or "")
        except InvalidArgument:
            wanted = {"approver": wanted_of("approver")}
            raise Problem("APPROVER_REQUIRED", at=["approver"], wanted=wanted) from None
    return Persons(by, name)


def done(engine: Engine, write: Write, asked: WriteBody, who: Persons) -> bytes:
    """Do a write; raise Problem ``INVALID_ARGUMENT`` with the fields in question if the engine does not take it."""
    try:
        return encoded(write.work(engine, asked, who))
    except InvalidArgument:
        stated = [name for name in write.fields if name in asked.model_fields_set]
        raise unusable("INVALID_ARGUMENT", {name: wanted_of(name) for name in stated}) from None


class Replies:
    """The replies to writes by person and key, so that a write that is sent again is done once.

    In memory, because they name what was erased; a service that starts again knows none. Writes are done in turn.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[Person, str], tuple[bytes, bytes]] = {}

    def once(self, person: Person, key: str, asked: WriteBody, work: Callable[[], bytes]) -> bytes:
        """Return the reply to what was sent with this key before, or do the work; ``IDEMPOTENCY_KEY_REUSED``."""
        # The second person may need to log in again meanwhile.
        text = type(asked).__name__ + asked.model_dump_json(exclude={"approver"})
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            known = self._kept.get((person, key))
            if known is None:
                self._kept[person, key] = known = digest, work()
                while len(self._kept) > 1 and sum(len(one) for _, one in self._kept.values()) > _MAX_REPLIES:
                    del self._kept[next(iter(self._kept))]
        if known[0] != digest:
            raise Problem("IDEMPOTENCY_KEY_REUSED")
        return known[1]
