"""Define the audit record: an event as logged, and the exact bytes that are hashed and stored.

To the event the log adds its origin, the sequence number, a random id, the commit time, the salted
commitments and the hits. The bytes are canonical JSON and are never encoded again: proofs cover the bytes as
stored, and :meth:`Record.parse` refuses any others. The keys every record has::

    v            version: 1                              log   origin of the log        seq   index of the leaf
    kind         what the event is, see ``kinds.py``     id    16 random bytes          tc    commit time
    commitments  by name, see ``commitment.py``          hits  of a request, see ``hits.py``

The event's own keys are added, which its class names; ``docs/reference/receipts.md`` lists them all, with their values.
Bytes are base64url without padding, times are microseconds since 1970 UTC unless stated as minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from carag.audit.records import _fields
from carag.audit.records.access import Access, Begin, Denial, GlassBroken
from carag.audit.records.changes import (
    Evaluation,
    GroupChange,
    IndexChange,
    Ingest,
    ModelChange,
    Move,
    PolicyChange,
)
from carag.audit.records.commitment import COMMITMENT_SIZE
from carag.audit.records.custody import Disclosure, DocumentErasure, Erasure, Hold
from carag.audit.records.hits import Hit
from carag.audit.records.kinds import Outcome, RecordKind
from carag.audit.records.retention import DEFAULT_CLASS, retention_class
from carag.audit.records.upkeep import Anchored, KeyChange, Recovery
from carag.audit.tlog import encoding
from carag.audit.tlog.encoding import Json, b64url, unb64url
from carag.errors import CorruptFile, InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from carag.audit.records.event import Event


RECORD_VERSION: Final = 1
"""Version of the record format."""

MAX_RECORD_BYTES: Final = 60_000
"""Greatest size of a record, below the 65,535 bytes that an entry of a C2SP tlog-tiles bundle may have."""

_ID_SIZE: Final = 16

_EVENT_CLASSES: Final[tuple[type[Event], ...]] = (
    Access,
    Anchored,
    Begin,
    Denial,
    Disclosure,
    Erasure,
    DocumentErasure,
    Evaluation,
    GlassBroken,
    GroupChange,
    Hold,
    IndexChange,
    Ingest,
    KeyChange,
    ModelChange,
    Move,
    PolicyChange,
    Recovery,
)
_EVENTS: Final = {kind: event for event in _EVENT_CLASSES for kind in event.KINDS}


@dataclass(frozen=True, slots=True)
class Record:
    """An event as logged.

    Parameters
    ----------
    log : str
        Origin of the log, so that a record cannot be moved to another.
    seq : int
        Index of the leaf, so that a record cannot be moved within its log.
    id : bytes
        16 random bytes.
    committed : int
        Commit time in microseconds since 1970 UTC; never runs backwards within a log.
    commitments : mapping of str to bytes
        Salted commitments by name, such as "subject", "query", "answer" and "entities".
    hits : tuple of Hit
        Best first, as returned to the asker.
    retain : str
        The record's retention class; the default class is not encoded.
    """

    log: str
    seq: int
    id: bytes
    committed: int
    event: Event
    commitments: Mapping[str, bytes] = field(default_factory=dict)
    hits: tuple[Hit, ...] = ()
    retain: str = DEFAULT_CLASS

    def __post_init__(self) -> None:
        _fields.label("log", self.log)
        _fields.integer("seq", self.seq, 0)
        _fields.integer("committed", self.committed, 0)
        if len(self.id) != _ID_SIZE:
            raise InvalidArgument(f"a record id is {_ID_SIZE} bytes, got {len(self.id)}")
        for name, value in self.commitments.items():
            if name not in self.event.COMMITS:
                allowed = ", ".join(self.event.COMMITS) or "nothing"
                raise InvalidArgument(f"{self.kind} records commit to {allowed}; got {quoted(name)}")
            _fields.digest(f"commitment to {name}", value, COMMITMENT_SIZE)
        if self.hits and not isinstance(self.event, Access):
            raise InvalidArgument(f"{self.kind} records have no hits")
        retention_class(self.retain)

    @property
    def kind(self) -> RecordKind:
        """The kind of the record's event."""
        return self.event.kind

    def to_bytes(self) -> bytes:
        """Encode the record in its canonical form.

        Raises
        ------
        InvalidArgument
            If it is longer than :data:`MAX_RECORD_BYTES`.
        """
        fields: dict[str, Json] = {
            "v": RECORD_VERSION,
            "commitments": {name: b64url(value) for name, value in self.commitments.items()},
            "id": b64url(self.id),
            "kind": self.kind.value,
            "log": self.log,
            "seq": int(self.seq),
            "tc": int(self.committed),
            **self.event.to_json(),
        }
        if isinstance(self.event, Access):
            fields["hits"] = [hit.to_json() for hit in self.hits]
        if self.retain != DEFAULT_CLASS:
            fields["retain"] = self.retain
        body = encoding.encode(fields)
        if len(body) > MAX_RECORD_BYTES:
            raise InvalidArgument(
                f"the record has {len(body)} bytes; the limit is {MAX_RECORD_BYTES}: ask for fewer passages"
            )
        return body

    @classmethod
    def parse(cls, body: bytes) -> Record:
        """Read a record, and refuse bytes that are not its canonical form.

        Raises
        ------
        CorruptFile
            If the bytes are not exactly one record of a known version and kind.
        """
        fields = encoding.load(body)
        try:
            version = fields["v"]
            if version != RECORD_VERSION:
                raise CorruptFile(f"record version {quoted(version)}; this reader knows {RECORD_VERSION}")
            event = _EVENTS[_fields.member(RecordKind, fields["kind"])]
            record = cls(
                log=fields["log"],
                seq=fields["seq"],
                id=unb64url(fields["id"], _ID_SIZE),
                committed=fields["tc"],
                event=event.from_json(fields),
                commitments={
                    name: unb64url(value, COMMITMENT_SIZE) for name, value in fields["commitments"].items()
                },
                hits=tuple(Hit.from_json(hit) for hit in fields.get("hits", ())),
                retain=fields.get("retain", DEFAULT_CLASS),
            )
            again = record.to_bytes()
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise CorruptFile(f"not a record: {error}") from error
        if again != body:
            raise CorruptFile("not a record: it has keys or values that records do not have")
        return record

    @staticmethod
    def place(body: bytes) -> tuple[str, int, int]:
        """Read only the log, the sequence number and the commit time of a record, 20 times faster than :meth:`parse`.

        This is enough for bytes whose hash is already in the tree.
        """
        fields = encoding.load(body)
        try:
            log, seq, committed = fields["log"], fields["seq"], fields["tc"]
        except (KeyError, TypeError) as error:
            raise CorruptFile(f"not a record: {error}") from error
        if not (isinstance(seq, int) and isinstance(committed, int)):
            raise CorruptFile("not a record: its number or its time is not an integer")
        return log, seq, committed

    def contradictions(self) -> Iterator[str]:
        """Yield the contradictions within this record; a record that the log accepts has none.

        This is the last line of defence: a passage outside the recorded masks is never logged, so it is never returned.
        """
        event = self.event
        if isinstance(event, Begin) and "query" not in self.commitments:
            yield "it commits to no question"
        if not isinstance(event, Access):
            return
        if event.begun is not None and event.begun >= self.seq:
            yield f"it names record {event.begun} as its begin, which is not an earlier record"
        if event.glass is not None and event.glass >= self.seq:
            yield f"it names record {event.glass} as the one that opened its cell, which is not an earlier record"
        for hit in self.hits:
            if not event.policy.admits(hit.word):
                yield f"{hit.name} carries word {hit.word:#010x}, which no mask of the record admits"
        if len({hit.digest for hit in self.hits}) < len(self.hits):
            yield "a chunk is listed twice"
        if "query" not in self.commitments:
            yield "it commits to no question"
        if event.policy.lists_entities != ("entities" in self.commitments):
            yield "its policy lists entities without a commitment to them, or the reverse"
        if len(set(event.intents)) < len(event.intents):
            yield "an intent is listed twice"
        if bool(event.where) != ("where" in self.commitments):
            yield "it narrows the search without a commitment to the values, or the reverse"
        if list(event.where) != sorted(set(event.where)):
            yield "the fields of `where` are out of order, or listed twice"
        searched = event.kind is not RecordKind.EXPLAIN  # an explanation looks up one chunk by its id
        if searched and len(self.hits) > (event.index.admissible if event.index else 0):
            yield "it has more hits than the index had admissible rows"
        numbers = [rows.hit for rows in event.heads]
        if numbers != sorted(set(numbers)):
            yield "its heads are not in the order of their hits, or listed twice"
        if any(
            max(rows.hit, rows.lender) > len(self.hits) or rows.hit == rows.lender for rows in event.heads
        ):
            yield "a hit takes its heads from itself, or from something that is not a hit"
        if any(rows.start >= rows.end for rows in event.heads):
            yield "its heads end before they begin"
        if event.outcome is Outcome.REFUSE and (self.hits or event.index):
            yield "a refused request has hits or searched an index"
        if event.outcome is not Outcome.ANSWER and any(hit.cited for hit in self.hits):
            yield f"it cites a passage though its outcome is {event.outcome}"
        yield from self._answer_contradictions(event)

    def _answer_contradictions(self, event: Access) -> Iterator[str]:
        answered = event.kind is RecordKind.QUERY and event.outcome is Outcome.ANSWER
        if answered and not self.hits:
            yield "it answers without a passage"
        if answered and "answer" not in self.commitments:
            yield "it answers and commits to no answer"
        if "answer" in self.commitments and (
            event.outcome is not Outcome.ANSWER or event.kind is RecordKind.RETRIEVE
        ):
            yield f"it commits to an answer though it is a {event.kind} with outcome {event.outcome}"
