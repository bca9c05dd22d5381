"""Check that a log still extends a checkpoint kept from earlier, by itself or in a receipt, proof or evidence.

The log must now have at least as many records, and a consistency proof must lead from the kept root to the present one.
A log that was rolled back to before that checkpoint, or rewritten by a holder of its key, cannot give that proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from carag.audit.anchors.evidence import Evidence
from carag.audit.receipts.receipt import checkpoint_in
from carag.audit.receipts.verify import Verdict
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.log_verifier import signed_by_known
from carag.audit.tlog.merkle import verify_consistency
from carag.audit.tlog.note import Note
from carag.audit.tlog.proof import ConsistencyProof
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.audit.tlog.note import NoteKey


class History(Protocol):
    """The methods of ``AuditLog`` that are needed here."""

    def checkpoint(self) -> str:
        """Return the newest signed checkpoint."""

    def consistency_hashes(self, old_size: int, size: int) -> tuple[bytes, ...]:
        """Prove that ``size`` records begin with ``old_size``."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """The result of checking whether a log still extends a kept checkpoint.

    Parameters
    ----------
    verdict : Verdict
        FAILED: rolled back or forked. UNDECIDED: the kept file is unreadable or belongs to another log.
    size : int
        Records that the kept checkpoint covers; 0 if it could not be read.
    """

    verdict: Verdict
    reason: str
    size: int


def check_pin(history: History, data: bytes, keys: Sequence[NoteKey]) -> Pinned:
    """Check a log against a receipt, proof, evidence or checkpoint that was kept from earlier.

    Parameters
    ----------
    keys : sequence of NoteKey
        The log's keys, from a source you trust (``parse_vkeys``).

    Examples
    --------
    >>> import tempfile
    >>> from carag.audit import AuditLog, Recovery
    >>> with tempfile.TemporaryDirectory() as directory, AuditLog.open(directory) as log:
    ...     kept = log.append(Recovery("DRILL")).to_bytes()
    ...     log.append(Recovery("DRILL")) and None
    ...     check_pin(log, kept, log.keys.listed).verdict
    <Verdict.VERIFIED: 'verified'>
    """
    try:
        is_evidence = data.startswith(b'{"checkpoint":')
        old = Evidence.parse(data).checkpoint if is_evidence else checkpoint_in(data)
        size = Checkpoint.parse(old.text).size
    except CorruptFile as error:
        return Pinned(Verdict.UNDECIDED, f"the kept file cannot be read: {error}", 0)
    new = Note.parse(history.checkpoint())
    today = Checkpoint.parse(new.text).size
    hashes = history.consistency_hashes(size, today) if 0 < size <= today else ()
    return leads_to(old, ConsistencyProof(size, hashes, new), keys)


def leads_to(old: Note, proof: ConsistencyProof, keys: Sequence[NoteKey]) -> Pinned:
    """Check offline that a proof leads from a kept checkpoint to a newer one of the same log."""
    before = Checkpoint.parse(old.text)
    if not signed_by_known(old, keys) or before.origin != keys[0].name:
        return Pinned(
            Verdict.UNDECIDED,
            f"the kept checkpoint is not signed by a given key of {keys[0].name}",
            before.size,
        )
    after = Checkpoint.parse(proof.checkpoint.text)
    if not signed_by_known(proof.checkpoint, keys) or after.origin != before.origin:
        return Pinned(
            Verdict.FAILED,
            f"the log's newest checkpoint is not signed by a given key of {before.origin}",
            before.size,
        )
    if after.size < before.size:
        reason = f"the log has {after.size} records but once had {before.size}: it was rolled back"
        return Pinned(Verdict.FAILED, reason, before.size)
    if before.size == 0:
        return Pinned(Verdict.VERIFIED, "the log was empty then, and every log extends an empty one", 0)
    hold = verify_consistency(before.size, after.size, proof.hashes, before.root, after.root)
    if proof.old != before.size or not hold:
        reason = (
            f"the log's {after.size} records do not begin with the {before.size} it had: it was rewritten"
        )
        return Pinned(Verdict.FAILED, reason, before.size)
    reason = f"the log's {after.size} records begin with the {before.size} it had"
    return Pinned(Verdict.VERIFIED, reason, before.size)
