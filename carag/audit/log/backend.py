"""Define what a log asks of the store of its records, ``audit.db``.

A backend stores bytes and answers look-ups. It neither hashes nor signs nor verifies: what it returns is checked
against the signed checkpoint, so false answers are noticed as any other tampering is. Its contract:

- :meth:`Backend.append` is atomic, and returns only once the batch survives a power cut;
- a batch is accepted only if the store ends exactly where the batch begins, so that two writers cannot fork the log;
- any thread may read while a batch is being written, and sees only whole batches;
- failures raise ``AuditUnavailable``, impossible contents ``CorruptFile``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from carag.audit.log.stored import Stored

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from carag.audit.tlog.merkle import Frontier, Node
    from carag.audit.tlog.note import Note, NoteKey


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records that become durable together, under one checkpoint.

    Parameters
    ----------
    first : int
        Sequence number of the first record.
    bodies : sequence of bytes
        The records, verbatim; at least one.
    nodes : sequence of Node
        The tree nodes that they complete, in storage order without a gap, from ``stored_hash_count(first)`` on.
    note : str
        The signed checkpoint that covers the last of them.
    begun : sequence of int
        Sequence numbers of the begin records in the batch.
    ended : sequence of int
        Sequence numbers of begin records that the batch ends, possibly in the same batch.
    """

    first: int
    bodies: Sequence[bytes]
    nodes: Sequence[Node]
    note: str
    begun: Sequence[int] = ()
    ended: Sequence[int] = ()

    @property
    def size(self) -> int:
        """Number of records in the log once the batch is written."""
        return self.first + len(self.bodies)


class Tip(NamedTuple):
    """The end of a log. It is replaced as a whole, after a commit."""

    frontier: Frontier
    note: Note
    """The newest checkpoint."""
    committed: int
    """Commit time of the last record, in microseconds since 1970 UTC."""
    unended: frozenset[int]
    """Sequence numbers of begin records without an end."""


class Backend(Stored):
    """Records, tree nodes, checkpoints, and which begin records have not ended."""

    is_shared: ClassVar[bool]
    """Whether other processes append as well."""

    @abstractmethod
    def turn(self, tip: Tip, key: NoteKey) -> AbstractContextManager[Tip]:
        """Keep all other writers out, and yield the log's present end; all that is written meanwhile is one commit.

        ``tip`` is the end as this process knows it. What others have appended since must lead to a checkpoint signed by
        the key; otherwise CorruptFile.
        """

    @abstractmethod
    def paused(self) -> AbstractContextManager[None]:
        """Keep the writers of other processes out while the end of the log is read."""

    @abstractmethod
    def alone(self, what: str) -> AbstractContextManager[None]:
        """Keep all other processes out of the log; StoreLocked, and ``what`` is refused, if one has it open."""

    @abstractmethod
    def append(self, batch: Batch) -> None:
        """Add a batch and replace the checkpoint, or change nothing.

        Raises
        ------
        AuditUnavailable
            If the store does not end at ``batch.first``, or it is uncertain whether the batch is durable. In the
            second case every later call raises too, until the store is opened again and read.
        """

    @abstractmethod
    def size(self) -> int:
        """Return one more than the last sequence number; 0 for an empty log."""

    @abstractmethod
    def unended(self) -> tuple[int, ...]:
        """Return the sequence numbers of begin records without an end, in order."""

    @abstractmethod
    def left_behind(self) -> tuple[int, ...]:
        """Return those of :meth:`unended` that no process will end, because the process that began them has left."""

    @abstractmethod
    def close(self) -> None:
        """Close the file; idempotent."""
