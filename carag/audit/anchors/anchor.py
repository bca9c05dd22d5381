"""Define the interface of anchors: outside services that confirm a checkpoint and return evidence of it.

An anchor answers in one of three ways. It returns :class:`Evidence`. It raises AnchorUnavailable if it cannot be
reached, refuses, or its answer does not verify: the exposure grows, and nothing else happens. It raises CorruptFile if
it holds a checkpoint *signed by this log's own key* that this log does not continue: the log was rolled back or forked,
or the key was stolen. A claim without such a signature counts as unavailable, so that a lying anchor cannot stop a log.
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


@dataclass(frozen=True, slots=True)
class Submission:
    """A checkpoint to be confirmed, and what else an anchor may need.

    Parameters
    ----------
    keys : tuple of NoteKey
        The log's keys, to verify checkpoints found outside.
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
        """The checkpoint's origin, size and root."""
        return Checkpoint.parse(self.checkpoint.text)


class Anchor(Protocol):
    """An outside service; the module's docstring says how it answers."""

    @property
    def kind(self) -> str:
        """A code: ``"s3"``, ``"tsa"``, ``"witness"``."""

    @property
    def place(self) -> str:
        """Address of the anchor, for messages and for the evidence file's name."""

    def submit(self, submission: Submission) -> Evidence:
        """Have a checkpoint confirmed, and return the evidence.

        Raises
        ------
        AnchorUnavailable
            If it could not be confirmed for now.
        CorruptFile
            If the anchor holds this log's signature on a different history.
        """

    def confirm(self, evidence: Evidence, keys: tuple[NoteKey, ...]) -> Checkpoint:
        """Check evidence of this anchor, for an auditor.

        Raises
        ------
        CorruptFile
            If it does not prove what it states.
        AnchorUnavailable
            If the anchor must be asked and cannot be.
        """


def check_known(known: Checkpoint, submission: Submission, place: str) -> None:
    """Check that the submitted checkpoint continues the one, signed by the log's key, that ``place`` holds.

    Raises CorruptFile if the log is shorter than the known checkpoint, or does not begin with it.
    """
    tree = submission.tree
    if known.size > tree.size:
        raise CorruptFile(
            f"{place} holds a checkpoint of {known.size} records of {tree.origin}, but this log has {tree.size}: "
            "it was rolled back; restore the newest copy"
        )
    hashes = submission.hashes(known.size, tree.size) if known.size else ()
    if known.size and not verify_consistency(known.size, tree.size, hashes, known.root, tree.root):
        raise CorruptFile(
            f"{place} holds a checkpoint of {known.size} records of {tree.origin} that this log's "
            f"{tree.size} records do not extend: it was forked, or somebody else uses its key"
        )
