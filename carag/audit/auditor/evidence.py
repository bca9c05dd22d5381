"""Compare the evidence in PostgreSQL with a log that was examined: every record, every request, triggers and grants.

The log was read first, and PostgreSQL commits first, so it has at least what the log has. Further records, of a writer
that continues meanwhile, must continue the log and lead to a checkpoint that the log's key signed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from carag.audit.auditor.reader import open_checkpoint
from carag.audit.log.catch_up import FILLED
from carag.audit.log.requests import SEALED, request_row, unsealed
from carag.audit.records.hits import hit_digest
from carag.audit.records.record import Record
from carag.audit.records.recovery import Recovery
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.merkle import Frontier, leaf_hash
from carag.audit.tlog.note import Note
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from carag.audit.auditor.reader import LogReader
    from carag.audit.log.postgres import EvidenceReader
    from carag.audit.log.requests import RequestRow
    from carag.audit.records.commitment import Opening

    Openings = Callable[[int], Mapping[str, Opening]]

__all__ = ["compare_evidence"]


def compare_evidence(reader: LogReader, evidence: EvidenceReader, openings: Openings | None = None) -> int:
    """Compare everything on the server with a log that was verified before; return the number of requests.

    ``openings`` returns what can be opened of a record's commitments; without it sealed values are not compared. Raises
    CorruptFile naming the first difference; AuditUnavailable if the server cannot be read.
    """
    if wrong := evidence.wrong():
        raise CorruptFile(f"{evidence.where}: {'; '.join(wrong)}")
    end = evidence.newest()
    if end is None or end.size < reader.size:
        raise CorruptFile(
            f"{evidence.where}: there are {0 if end is None else end.size} records, but the log has {reader.size}: "
            "it was put back to an earlier state"
        )
    open_checkpoint(end.note, reader.key, f"{evidence.where}: the newest checkpoint")
    requests, mine = evidence.requests(), reader.bodies()
    roots = {one.size: one for one in evidence.checkpoints()}
    frontier, count, unknown, filled = Frontier(), 0, -1, -1
    for seq, body in evidence.bodies(0, end.size):
        if seq != frontier.size:
            raise CorruptFile(f"{evidence.where}: record {frontier.size} is missing")
        if seq < reader.size and (seq, body) != next(mine, None):
            raise CorruptFile(f"{evidence.where}: record {seq} differs from the log's")
        frontier.append(leaf_hash(body))
        record = Record.parse(body)
        if isinstance(record.event, Recovery) and record.event.why == FILLED:
            filled = seq
        if (row := request_row(record, {}, None)) is not None:
            found = next(requests, None)
            if wrong_row := _difference(record, row, found, openings):
                raise CorruptFile(f"{evidence.where}: request {seq} {wrong_row}")
            unknown = seq if found is None or found.chunks is None else unknown
            count += 1
        if (signed := roots.pop(frontier.size, None)) is not None:
            said = Checkpoint.parse(Note.parse(signed.note).text)
            if (said.size, said.root) != (frontier.size, frontier.root()):
                raise CorruptFile(f"{evidence.where}: the checkpoint of {signed.size} records was altered")
    if frontier.size != end.size or roots.keys() - {0}:
        raise CorruptFile(
            f"{evidence.where}: records or checkpoints do not end where the newest checkpoint does"
        )
    if (more := next(requests, None)) is not None:
        raise CorruptFile(f"{evidence.where}: request {more.seq} has no record")
    if unknown > filled:
        raise CorruptFile(f"{evidence.where}: request {unknown} lacks its chunk ids")
    return count


def _difference(
    record: Record, row: RequestRow, found: RequestRow | None, openings: Openings | None
) -> str | None:
    """Return how a row differs from its record, or None. Rows without chunk ids are judged elsewhere."""
    if found is None or found.seq != row.seq:
        return "is missing"
    plain = ("at", "kind", "outcome", "code", "scores")
    for name in plain:
        if getattr(found, name) != getattr(row, name):
            return f"has another {name} than its record"
    if not _names(record, found):
        return "names other chunks or texts than its record"
    opened: Mapping[str, Opening] = {} if openings is None else openings(row.seq)
    for column, name in SEALED.items():
        box = getattr(found, column)
        if box is not None and name not in record.commitments:
            return f"has a {column}, but its record commits to none"
        if box is None and name in record.commitments and found.chunks is not None:
            return f"lacks its {column}"
        if box is not None and name in opened and _sealed_value(box, opened[name], row.seq, name) is None:
            return f"has another {column} than the record commits to"
    return None


def _names(record: Record, found: RequestRow) -> bool:
    if found.chunks is None or found.texts is None:
        return found.chunks is None and found.texts is None
    named = zip(found.chunks, found.texts, strict=False)
    digests = [hit_digest(chunk, bytes(text)) for chunk, text in named]
    lengths = {len(found.chunks), len(found.texts), len(record.hits)}
    return len(lengths) == 1 and digests == [hit.digest for hit in record.hits]


def _sealed_value(box: Any, opening: Opening, seq: int, name: str) -> str | None:
    try:
        value = unsealed(bytes(box), opening.salt, seq, name)
    except CorruptFile:
        return None
    return value if value == opening.value else None
