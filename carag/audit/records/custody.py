"""Define the `erasure`, `documents`, `hold` and `disclosure` events: what people erased, held and opened.

An erasure names the affected records or, if they belong to one person, only their number: a list would permanently link
a person's records together. The record commits to the list, so that an operator can show which records they were.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

from carag.audit.records.codec import Code, Count, Digest, Positive
from carag.audit.records.event import Event
from carag.audit.records.kinds import Outcome, RecordKind
from carag.audit.tlog import encoding
from carag.errors import InvalidArgument
from carag.limits import quoted

MAX_ERASED_DOCUMENTS: Final = 500
"""Most documents that one record of an erasure names; more take several records."""
ERASED_SALT_BYTES: Final = 16
OPENERS: Final = ("auditor", "privacy_officer")
"""The roles that may open private values."""


class Target(NamedTuple):
    """One value to erase: that of the commitment ``field`` in record ``seq``."""

    seq: int
    field: str


class Basis(StrEnum):
    """The legal basis of an erasure. The first two yield to a duty to keep the values; the others do not."""

    REQUEST = "GDPR_17_1"
    """The person requests the erasure, or withdraws consent: GDPR Art. 17(1)(a) to (c); yields to Art. 17(3)(b)."""
    STORAGE_LIMIT = "GDPR_5_1_E"
    """The values are no longer needed: GDPR Art. 5(1)(e)."""
    UNLAWFUL = "GDPR_17_1_D"
    """The values should never have been recorded: GDPR Art. 17(1)(d)."""
    LEGAL_OBLIGATION = "GDPR_17_1_E"
    """A law, or a court or authority under a law, orders it: GDPR Art. 17(1)(e), 58(2)(g)."""

    @property
    def waits(self) -> bool:
        """Whether a duty to keep the values has priority."""
        return self in (Basis.REQUEST, Basis.STORAGE_LIMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure(Event):
    """Committed values were destroyed. The record commits to the two people who did it and to the list of values.

    Parameters
    ----------
    count : int
        Number of records that lost a value.
    fields : tuple of str
        Names of the commitments that can no longer be opened.
    records : tuple of int
        The records; empty if they belong to one person, or are too many to name.
    """

    basis: Basis
    count: Positive
    fields: tuple[Code, ...]
    records: tuple[Count, ...] = ()

    KINDS: ClassVar = (RecordKind.ERASURE,)
    COMMITS: ClassVar = ("actor", "approver", "targets")

    def _check(self) -> None:
        if not self.fields or list(self.fields) != sorted(set(self.fields)):
            raise InvalidArgument(f"erased fields are {quoted(self.fields)}; want each once, in order")
        if list(self.records) != sorted(set(self.records)) or len(self.records) not in (0, self.count):
            raise InvalidArgument(
                "the erased records must match their count, each named once, in ascending order"
            )


def write_targets(targets: Iterable[Target]) -> str:
    """Write the list that an erasure record commits to."""
    return encoding.encode([list(target) for target in targets]).decode()


def read_targets(text: str) -> list[Target]:
    """Read the list that an erasure record commits to."""
    return [Target(seq, field) for seq, field in encoding.decode(text.encode())]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentErasure(Event):
    """Documents were erased from a store. The record commits to the two people who did it, and to ids and salts.

    Parameters
    ----------
    ids : tuple of bytes
        For each document, SHA-256 of its salt, 16 bytes, followed by its id in UTF-8: with id and salt it can be
        shown that this record is about that document, and without them it cannot.
    passages : int
        Number of their passages, those of earlier versions included.
    before, after : bytes
        Root of the index state before the documents were withdrawn for this, and after.
    answers : int
        Number of records whose answers are erased, because they cite one of the passages.
    kept : tuple of int
        Records whose answers cite one of them, and stay because of a hold or a duty to keep them; at most 1,000.
    places : tuple of str
        Codes of the places from which everything is removed before the erasure is confirmed.
    beyond : tuple of str
        Codes of places that may still hold something, and that CARAG cannot reach.
    """

    basis: Basis
    ids: tuple[Digest, ...]
    passages: Count
    before: Digest
    after: Digest
    answers: Count
    kept: tuple[Count, ...] = ()
    places: tuple[Code, ...]
    beyond: tuple[Code, ...] = ()

    KINDS: ClassVar = (RecordKind.DOCUMENTS,)
    COMMITS: ClassVar = ("actor", "approver", "targets")

    def _check(self) -> None:
        if not 1 <= len(self.ids) <= MAX_ERASED_DOCUMENTS or len(set(self.ids)) != len(self.ids):
            raise InvalidArgument(
                f"{len(self.ids)} documents were erased; want 1 to {MAX_ERASED_DOCUMENTS} in a record, each once"
            )
        if list(self.kept) != sorted(set(self.kept)):
            raise InvalidArgument(
                f"the answers kept are {quoted(self.kept)}; want each record once, ascending"
            )


def salted_id(document_id: str, salt: bytes) -> bytes:
    """Return the hash by which the record of an erasure names a document."""
    return hashlib.sha256(salt + document_id.encode("utf-8", "surrogatepass")).digest()


def write_salts(salts: Mapping[str, bytes]) -> str:
    """Write the list that such a record commits to: ids and salts of its documents."""
    return json.dumps([[id_, salt.hex()] for id_, salt in salts.items()], ensure_ascii=False)


def read_salts(text: str) -> dict[str, bytes]:
    """Read the list that such a record commits to."""
    return {id_: bytes.fromhex(salt) for id_, salt in json.loads(text)}


class HoldAction(StrEnum):
    """Whether a hold was placed or released."""

    PLACED = "placed"
    RELEASED = "released"


class HoldScope(StrEnum):
    """The values that a hold covers."""

    ALL = "all"
    RECORDS = "records"
    SUBJECT = "subject"
    DOCUMENTS = "documents"
    """Documents of the store, and no values of the log."""


NO_RECORDS: Final = (1, 0)
"""The range of records, an empty one, that a hold on documents covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold(Event):
    """A legal hold was placed or released (GDPR Art. 17(3)(e)).

    Parameters
    ----------
    matter : str
        A code for the matter; no names.
    scope : HoldScope
        With SUBJECT, the record commits to the subject; with DOCUMENTS, to which documents, as JSON.
    first, last : int or None
        Range of records, with RECORDS.
    placed : int or None
        The record that placed the hold, if this event releases it.
    """

    action: HoldAction
    matter: Code
    scope: HoldScope
    first: Count | None = None
    last: Count | None = None
    placed: Count | None = None

    KINDS: ClassVar = (RecordKind.HOLD,)
    COMMITS: ClassVar = ("actor", "approver", "subject", "targets")

    def _check(self) -> None:
        if self.scope is HoldScope.RECORDS:
            if self.first is None or self.last is None or self.first > self.last:
                raise InvalidArgument(
                    f"records {self.first} to {self.last} are not a range; want two numbers, the lower one first"
                )
        elif self.first is not None or self.last is not None:
            raise InvalidArgument(f"a hold on {self.scope} must not name records")
        if (self.action is HoldAction.RELEASED) != (self.placed is not None):
            raise InvalidArgument("a release must name the record that placed the hold; a placement must not")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure(Event):
    """A person opened a record's private values, or tried to.

    Parameters
    ----------
    record : int or None
        None for a report on a person, which may name any record; this record then commits to the person's names.
    fields : tuple of str
        The fields asked for; empty means all.
    role : str or None
        ``None`` if the role may not open any value.
    outcome : Outcome
        ANSWER or REFUSE.
    why : str
        The purpose, as a code.
    """

    record: Count | None
    fields: tuple[Code, ...]
    role: Code | None
    outcome: Outcome
    why: Code

    KINDS: ClassVar = (RecordKind.DISCLOSURE,)
    COMMITS: ClassVar = ("actor", "targets")

    def _check(self) -> None:
        if (self.outcome is Outcome.ANSWER) != (self.role in OPENERS) or self.outcome not in (
            Outcome.ANSWER,
            Outcome.REFUSE,
        ):
            raise InvalidArgument(f"{' or '.join(OPENERS)} may open values; all other roles are refused")
        if self.outcome is Outcome.REFUSE and self.role is not None:
            raise InvalidArgument(
                f"a refused role is {quoted(self.role)}; want None, because it was not verified"
            )
