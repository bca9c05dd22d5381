"""Make ``audit.db`` and PostgreSQL equal again after a crash: PostgreSQL commits first, so only it can be ahead.

What it has more is taken over if the log's own key signed it and it continues ``audit.db``; so the server, which is not
trusted, can add nothing of its own. A server that has less was put back to an earlier state, and is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.audit.log.growth import Growth
from carag.audit.log.postgres import End
from carag.audit.log.requests import request_row
from carag.audit.records.record import Record
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.note import Note
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.audit.log.backend import Backend
    from carag.audit.log.postgres import PostgresEvidence
    from carag.audit.log.requests import RequestRow
    from carag.audit.log.tip import Tip
    from carag.audit.private.store import PrivateStore
    from carag.audit.tlog.note import NoteKey

__all__ = ["FILLED", "caught_up", "fill", "grown"]

FILLED: Final = "EVIDENCE_FILLED"
"""Code of the recovery record after which an empty server got all records; chunk ids of those are not known there."""
_PAGE_ROWS: Final = 500
"""Records read at a time."""


def caught_up(backend: Backend, evidence: PostgresEvidence, tip: Tip, key: NoteKey) -> Tip:
    """Add to ``audit.db`` what the server has more, and return the log's end.

    Nothing is changed if both are equal, or the server is still to be filled.

    Raises
    ------
    CorruptFile
        If the server has fewer records, or others; the message says which.
    AuditUnavailable
        If one of the two cannot be read or written.
    """
    if evidence.is_empty:
        return tip
    size, text = evidence.end()
    if text == tip.note.to_text():
        return tip
    if size < tip.frontier.size:
        raise CorruptFile(
            f"{evidence.where}: rollback: there are {size} records, and {backend.where} has {tip.frontier.size}; "
            "restore the newest backup of the database, or keep the evidence in an empty schema, which is filled: "
            "carag audit postgres"
        )
    more = evidence.bodies(tip.frontier.size, size)
    growth, note, committed = grown(tip, key, End(size, text), more, evidence.where)
    if growth.bodies:
        backend.append(growth.batch(note))
        return growth.tip(note, committed)
    return tip


def grown(
    tip: Tip, key: NoteKey, end: End, bodies: Iterable[tuple[int, bytes]], where: str
) -> tuple[Growth, Note, int]:
    """Let a log's end grow by records that somebody else kept, up to a checkpoint that the log's key signed.

    Returns
    -------
    Growth, Note, int
        The last is the commit time of the last record.

    Raises
    ------
    CorruptFile
        If the key did not sign the checkpoint, or the records do not lead to it; ``where`` is whose they are.
    """
    note = Note.parse(end.note)
    checkpoint = Checkpoint.parse(note.text)
    if not key.verifies(note) or checkpoint.size != end.size:
        raise CorruptFile(f"{where}: the newest checkpoint is not signed by the log's own key")
    growth, committed = Growth(tip), tip.committed
    for seq, body in bodies:
        try:
            record = Record.parse(body)
        except CorruptFile as error:
            raise CorruptFile(f"{where}: record {seq} is none: {error}") from error
        if (record.seq, seq, record.log) != (growth.size, growth.size, checkpoint.origin):
            raise CorruptFile(f"{where}: record {growth.size} is missing")
        growth.add(record.event, body)
        committed = record.committed
    if (growth.size, growth.frontier.root()) != (end.size, checkpoint.root):
        raise CorruptFile(f"{where}: the records are not those that the log signed")
    return growth, note, committed


def fill(backend: Backend, evidence: PostgresEvidence, private: PrivateStore) -> None:
    """Copy the whole log to the server in one transaction, if it is empty."""
    if not evidence.is_empty:
        return

    def pages() -> Iterator[tuple[int, list[bytes], list[RequestRow]]]:
        for first in range(0, backend.size(), _PAGE_ROWS):
            bodies = [body for _, body in backend.bodies(first, first + _PAGE_ROWS)]
            records = [Record.parse(body) for body in bodies]
            rows = [request_row(one, private.openings(one.seq), None) for one in records]
            yield first, bodies, [row for row in rows if row is not None]

    evidence.fill(pages(), backend.size(), backend.checkpoint())
