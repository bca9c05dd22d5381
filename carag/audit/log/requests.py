"""Make the rows of the table of requests in PostgreSQL: what was asked, found and answered, the values sealed.

Question, response, subject and conversation are each sealed with AES-256-GCM under a key derived from the salt of the
commitment: ``HMAC-SHA256(salt, "carag/evidence/v1" NUL number SP name)``. Each key seals one message, so its nonce is
constant (NIST SP 800-38D section 8 asks that no nonce repeats under a key). The salts are sealed in ``private.db``;
when :func:`carag.audit.erase` destroys them, neither the table nor any dump of it reveals the value.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from carag.audit.records.access import Access
from carag.audit.records.commitment import hmac_sha256
from carag.audit.records.record import Record, text_hash
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from carag.audit.records.commitment import Opening
    from carag.audit.records.draft import Draft

__all__ = ["SEALED", "RequestRow", "request_row", "request_rows", "sealed", "unsealed"]

SEALED: Final = {
    "conversation": "conversation",
    "question": "query",
    "response": "answer",
    "subject": "subject",
}
"""The sealed columns, each with the name of its commitment."""
_DOMAIN: Final = b"carag/evidence/v1\0"
"""Domain separator of the keys."""
_NONCE: Final = bytes(12)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class RequestRow(NamedTuple):
    """A row of the table, in the order of its columns. ``chunks`` and ``texts`` are None if they are unknown."""

    seq: int
    at: datetime
    kind: str
    outcome: str
    code: str
    chunks: list[str] | None
    """Ids of the passages, best first."""
    texts: list[bytes] | None
    """SHA-256 of their texts: with these, the hits of the record prove the ids."""
    scores: list[int]
    """Similarities in millionths, as in the record."""
    conversation: bytes | None
    question: bytes | None
    response: bytes | None
    subject: bytes | None


def request_row(
    record: Record,
    openings: Mapping[str, Opening],
    texts: Sequence[tuple[str, str]] | None,
) -> RequestRow | None:
    """Make the row of a record, or None if it is not a request.

    ``openings`` are those of its commitments that exist; ``texts`` are its passages, None if they are not known.
    """
    event = record.event
    if not isinstance(event, Access):
        return None
    return RequestRow(
        record.seq,
        _EPOCH + timedelta(microseconds=record.committed),
        record.kind.value,
        event.outcome.value,
        event.why,
        None if texts is None else [chunk for chunk, _ in texts],
        None if texts is None else [text_hash(text) for _, text in texts],
        [hit.similarity for hit in record.hits],
        **{
            column: sealed(openings[name], record.seq, name) if name in openings else None
            for column, name in SEALED.items()
        },
    )


def request_rows(bodies: Iterable[bytes], drafts: Iterable[Draft]) -> list[RequestRow]:
    """Make the rows of a batch, from its records and their drafts."""
    rows = (
        request_row(Record.parse(body), draft.openings, draft.texts)
        for body, draft in zip(bodies, drafts, strict=True)
    )
    return [row for row in rows if row is not None]


def sealed(opening: Opening, seq: int, name: str) -> bytes:
    """Seal the value of a commitment for its row."""
    place = f"{seq} {name}".encode()
    return AESGCM(hmac_sha256(opening.salt, _DOMAIN + place)).encrypt(_NONCE, opening.value.encode(), place)


def unsealed(box: bytes, salt: bytes, seq: int, name: str) -> str:
    """Open a box of :func:`sealed`; CorruptFile if it was altered, or belongs to another row or salt."""
    place = f"{seq} {name}".encode()
    try:
        return AESGCM(hmac_sha256(salt, _DOMAIN + place)).decrypt(_NONCE, box, place).decode()
    except (InvalidTag, ValueError) as error:
        raise CorruptFile(f"the sealed {name} of request {seq} was altered") from error
