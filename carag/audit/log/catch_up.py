"""Make ``audit.db`` and PostgreSQL equal again after a crash: PostgreSQL commits first, so only it can be ahead.

Its further records are taken over if the log's own key signed them and they continue ``audit.db``; so the server, which
is not trusted, can add nothing itself. A server with fewer records was put back to an earlier state, and is refused.
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
"""Code of the recovery record before an empty server was filled; it lacks the chunk ids of earlier records."""
_PAGE_ROWS: Final = 500
"""Records read at a time."""


def caught_up(backend: Backend, evidence: PostgresEvidence, tip: Tip, key: NoteKey) -> Tip:
    """Add to ``audit.db`` the further records of the server, and return the log's end.

    Nothing is changed if both are equal, or the server is still to be filled. Raises CorruptFile if the server has
    fewer records, or others; AuditUnavailable if one of the two cannot be read or written.
    """
    if evidence.is_empty:
        return tip
    size, text = evidence.end()
    if text == tip.note.to_text():
        return tip
    if size < tip.frontier.size:
        raise CorruptFile(
            f"{evidence.where}: rollback: there are {size} records, but {backend.where} has {tip.frontier.size}; "
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
    """Extend a log's end by records from elsewhere, up to a signed checkpoint; return also the last commit time.

    Raises CorruptFile if the key did not sign the checkpoint, or the records do not lead to it; ``where`` names their
    source.
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
            raise CorruptFile(f"{where}: record {seq} cannot be decoded: {error}") from error
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
