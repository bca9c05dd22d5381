"""Redact a receipt, so that it can be shown to more people; the remaining parts are proved as before.

These can be removed: the opening of a commitment, a whole passage with its proof, the proof alone, and the opening of
the minutes until which words hold. The record itself stays, because the log signed its hash: it states the number of
passages and their words, and it binds each passage by a digest of chunk id and text, so a holder of the same documents
can find out which passage was removed.

The laws, over every receipt and every choice: redacting twice is redacting once; the order does not matter; nothing
that is still shown is changed; and a redacted receipt verifies if and only if the original does. For the last law, a
receipt that does not verify is not redacted: without the altered part it might verify.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from carag.audit.receipts.receipt import open_envelope
from carag.audit.receipts.verify import Verdict, verify_unsigned
from carag.audit.records.access import with_reading
from carag.audit.state.proof import StateProof
from carag.audit.tlog import encoding
from carag.errors import CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Collection


def redact(
    receipt: bytes,
    *,
    drop: Collection[str] = (),
    passages: Collection[int] = (),
    proofs: Collection[int] = (),
    until: bool = False,
) -> bytes:
    """Remove parts of a receipt file, and return the new file's content.

    Parameters
    ----------
    drop : collection of str
        Commitments whose openings are removed, such as ``{"subject", "answer"}``; removing ``"query"`` also removes its
        reading.
    passages : collection of int
        Passages that are removed with text, chunk id and proof; the best passage is 1.
    proofs : collection of int
        Passages of which only the proof is removed.
    until : bool
        Whether to remove the minutes until which words hold; their commitments stay, because the proofs need them.

    Raises
    ------
    CorruptFile
        If it is not a receipt, or does not verify apart from its signatures.
    InvalidArgument
        If the record has no such commitment or passage.

    Examples
    --------
    >>> import tempfile
    >>> from carag.audit import AuditLog, place_hold, verify_receipt
    >>> with tempfile.TemporaryDirectory() as directory, AuditLog.open(directory) as log:
    ...     whole = place_hold(log, "MATTER-7", actor="counsel").to_bytes()
    ...     verify_receipt(redact(whole, drop={"actor"}), log.vkey).withheld
    ('actor',)
    """
    checked = verify_unsigned(receipt)
    if checked.verdict is not Verdict.VERIFIED or checked.record is None:
        raise CorruptFile(f"only a receipt that verifies can be redacted: {checked.reason}")
    known = checked.record.commitments
    if unknown := set(drop) - set(known):
        raise InvalidArgument(f"the record commits to no {min(unknown)!r}; want {', '.join(known) or 'none'}")
    count = len(checked.record.hits)
    if missing := (set(passages) | set(proofs)) - set(range(1, count + 1)):
        raise InvalidArgument(f"there is no passage {min(missing)}; the record names {count}, counted from 1")
    fields: dict[str, Any] = encoding.decode(receipt[:-1])
    dropped = with_reading(drop)
    fields["openings"] = {name: one for name, one in fields["openings"].items() if name not in dropped}
    fields["hits"] = [
        None if number in passages else _thinned(hit, proved=number not in proofs, sealed=until)
        for number, hit in enumerate(open_envelope(receipt).hits, start=1)
    ]
    return encoding.encode(fields) + b"\n"


def _thinned(hit: Any, *, proved: bool, sealed: bool) -> Any:
    if hit is None or hit["proof"] is None:
        return hit
    if not proved:
        return {**hit, "proof": None}
    return {**hit, "proof": StateProof.from_json(hit["proof"]).sealed().to_json()} if sealed else hit
