"""Define what an anchor is: a place outside that is shown a checkpoint and gives evidence that it was.

An anchor answers in one of three ways. It returns :class:`Evidence`. It raises AnchorUnavailable: unreachable,
refusing, not to be believed; nothing follows but that the exposure grows. It raises CorruptFile: it holds a
checkpoint *signed by this log's own key* that this log does not lead to, so the log was rolled back or forked
or the key is somebody else's too. A mere claim without such a signature is never more than unavailable, so that
nobody outside can stop a log by lying.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.merkle import verify_consistency
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.audit.anchors.evidence import Evidence
    from carag.audit.tlog.note import Note, NoteKey

__all__ = ["Anchor", "Submission", "check_known"]


@dataclass(frozen=True, slots=True)
class Submission:
    """A checkpoint on its way out, and what else an anchor may need.

    Parameters
    ----------
    checkpoint : Note
    keys : tuple of NoteKey
        The log's keys, to judge checkpoints found outside.
    hashes : callable
        ``AuditLog.consistency_hashes``: the RFC 6962 proof from an older size to a size.
    now : int
        Microseconds since 1970 UTC.
    """

    checkpoint: Note
    keys: tuple[NoteKey, ...]
    hashes: Callable[[int, int], tuple[bytes, ...]]
    now: int

    @property
    def tree(self) -> Checkpoint:
        """What the checkpoint says."""
        return Checkpoint.parse(self.checkpoint.text)


class Anchor(Protocol):
    """Somewhere outside. See the module's text for how it answers."""

    @property
    def kind(self) -> str:
        """A code: ``"s3"``, ``"tsa"``, ``"witness"``."""

    @property
    def place(self) -> str:
        """Where, for people and for the evidence file's name."""

    def submit(self, submission: Submission) -> Evidence:
        """Have a checkpoint confirmed.

        Raises
        ------
        AnchorUnavailable
            If it was not, for now.
        CorruptFile
            If the outside holds this log's signature on a history that is not this one.
        """

    def confirm(self, evidence: Evidence, keys: tuple[NoteKey, ...]) -> Checkpoint:
        """Check evidence of this anchor, for an auditor.

        Raises
        ------
        CorruptFile
            If it does not prove what it says.
        AnchorUnavailable
            If the outside must be asked and cannot be.
        """


def check_known(known: Checkpoint, submission: Submission, place: str) -> None:
    """Insist that the submitted checkpoint continues one that the log's key signed and ``place`` holds.

    Raises
    ------
    CorruptFile
        If the log is shorter than what is known of it, or does not begin with it.
    """
    tree = submission.tree
    if known.size > tree.size:
        raise CorruptFile(
            f"{place} holds a checkpoint of {known.size} records of {tree.origin}, this log has {tree.size}: "
            "it was rolled back; restore the newest copy"
        )
    hashes = submission.hashes(known.size, tree.size) if known.size else ()
    if known.size and not verify_consistency(known.size, tree.size, hashes, known.root, tree.root):
        raise CorruptFile(
            f"{place} holds a checkpoint of {known.size} records of {tree.origin} with which this log's "
            f"{tree.size} do not begin: it was forked, or its key is used by somebody else"
        )
