"""Serve what proves records: receipts to those who asked, and checkpoints and tiles as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.audit import Access
from carag.audit.auditor.reader import LogReader
from carag.audit.receipts.receipt import RECEIPT_FORMAT
from carag.audit.tlog import encoding
from carag.service.problems import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from carag.audit import AuditLog, Record
    from carag.audit.tlog.tiles import Tile
    from carag.policy import Session


def own_receipt(log: AuditLog, seq: int, session: Session) -> bytes:
    """Make the receipt of one of the session's own records once more, with nothing opened and no passages.

    A record is the session's own if it names the same issuer and its commitment to a subject opens to the same name.
    The error for another person's record is the same as for a record that does not exist. Raises Problem ``NOT_FOUND``.
    """
    if not 0 <= seq < log.size or session.subject is None:
        raise Problem("NOT_FOUND")
    record = log.record(seq)
    opening = log.private.openings(seq).get("subject")
    is_own = (
        isinstance(record.event, Access)
        and record.event.issuer == session.issuer
        and opening is not None
        and opening.value == session.subject
        and opening.opens("subject", record.commitments["subject"])
    )
    if not is_own:
        raise Problem("NOT_FOUND")
    return bare_receipt(record, log.prove(seq))


def bare_receipt(record: Record, proof: str) -> bytes:
    """Write a receipt that opens nothing and has no passages."""
    fields: dict[str, encoding.Json] = {
        "format": RECEIPT_FORMAT,
        "hits": [None] * len(record.hits),
        "openings": {},
        "proof": proof,
        "record": record.to_bytes().decode(),
    }
    return encoding.encode(fields) + b"\n"


def tile(home: Path, vkey: str, asked: Tile | None) -> bytes:
    """Return the bytes of a tile or entry bundle; raise Problem ``NOT_FOUND`` if the log does not hold all of it."""
    if asked is None:
        raise Problem("NOT_FOUND")
    with LogReader(home, vkey=vkey) as reader:
        if not asked.is_in(reader.size):
            raise Problem("NOT_FOUND")
        return asked.bundle(reader.body) if asked.is_entries else asked.read(reader.node)
