"""Review evidence for an auditor: check that each piece is valid and that the log still continues it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from carag.audit.anchors.pin import check_pin
from carag.audit.receipts.verify import Verdict
from carag.audit.tlog.merkle import consistency_proof
from carag.errors import AnchorUnavailable, CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from carag.audit.anchors.anchor import Anchor
    from carag.audit.anchors.evidence import Evidence
    from carag.audit.anchors.pin import History
    from carag.audit.auditor.reader import LogReader
    from carag.audit.tlog.note import NoteKey


class ReaderHistory(NamedTuple):
    """The history of a log opened for reading, with which evidence is compared."""

    reader: LogReader

    def checkpoint(self) -> str:
        """Return the newest signed checkpoint."""
        return self.reader.checkpoint.to_text()

    def consistency_hashes(self, old_size: int, size: int) -> tuple[bytes, ...]:
        """Prove that ``size`` records begin with ``old_size``."""
        return tuple(consistency_proof(self.reader.node, old_size, size))


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One piece of evidence with its verdict.

    Parameters
    ----------
    verdict : Verdict
        VERIFIED: the log continues the piece, and its anchor confirms it. FAILED: one of the two checks fails.
        UNDECIDED: the log continues the piece, but its anchor was not given or cannot be asked.
    """

    evidence: Evidence
    verdict: Verdict
    reason: str


def review(
    history: History, evidence: Iterable[Evidence], keys: Sequence[NoteKey], anchors: Sequence[Anchor] = ()
) -> Iterator[Reviewed]:
    """Check evidence against the log and against the anchors that gave it.

    Parameters
    ----------
    evidence : iterable of Evidence
        Such as a :class:`Shelf`.
    keys : sequence of NoteKey
        The log's keys, from a source you trust.
    anchors : sequence of Anchor
        The anchors you trust; matched by kind and place.
    """
    by_place = {(anchor.kind, anchor.place): anchor for anchor in anchors}
    for piece in evidence:
        pinned = check_pin(history, piece.to_bytes(), keys)
        anchor = by_place.get((piece.kind, piece.place))
        if pinned.verdict is not Verdict.VERIFIED:
            yield Reviewed(piece, Verdict.FAILED, pinned.reason)
        elif anchor is None:
            reason = f"{pinned.reason}; {piece.kind} {piece.place} is not among the anchors given"
            yield Reviewed(piece, Verdict.UNDECIDED, reason)
        else:
            yield _asked(anchor, piece, keys, pinned.reason)


def _asked(anchor: Anchor, piece: Evidence, keys: Sequence[NoteKey], reason: str) -> Reviewed:
    try:
        anchor.confirm(piece, tuple(keys))
    except CorruptFile as error:
        return Reviewed(piece, Verdict.FAILED, str(error))
    except AnchorUnavailable as error:
        return Reviewed(piece, Verdict.UNDECIDED, f"{reason}; {error}")
    return Reviewed(piece, Verdict.VERIFIED, f"{reason}; confirmed by {piece.kind} {piece.place}")
