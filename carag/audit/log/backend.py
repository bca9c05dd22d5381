"""Define what the log asks of the store of its records: SQLite by default, a database server for teams.

A backend stores bytes and answers look-ups. It neither hashes, signs nor judges: what it returns is checked
against the signed checkpoint, so a backend that lies is noticed like any other tampering. What is asked of it:

- :meth:`Backend.append` is all or nothing, and returns only when a power cut can no longer take it back;
- a batch is taken only if the store ends exactly where the batch begins, so that two writers cannot fork the log;
- reads may come from any thread while a batch is being written, and see whole batches only;
- failures are ``AuditUnavailable``, contents that cannot be right ``CorruptFile``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from carag.audit.tlog.merkle import Node

__all__ = ["Backend", "BackendOpener", "Batch"]


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
        The tree nodes they complete, in storage order: the first has storage index
        ``stored_hash_count(first)``, and there is no gap.
    note : str
        The signed checkpoint that covers the last of them.
    begun : sequence of int
        Sequence numbers of the begin records among them.
    ended : sequence of int
        Sequence numbers of begin records that they end; some may be among them.
    """

    first: int
    bodies: Sequence[bytes]
    nodes: Sequence[Node]
    note: str
    begun: Sequence[int] = ()
    ended: Sequence[int] = ()

    @property
    def size(self) -> int:
        """Records in the log once the batch is written."""
        return self.first + len(self.bodies)


class Backend(Protocol):
    """Records, tree nodes, the newest checkpoint, and which begin records have not ended."""

    @property
    def where(self) -> str:
        """Name the place in messages: a path, or a server and its table; no secrets."""
        ...

    def append(self, batch: Batch) -> None:
        """Add a batch and replace the checkpoint, or change nothing.

        Raises
        ------
        AuditUnavailable
            If the store does not end at ``batch.first``, or if it is not certain that all of it is durable. In
            the second case every later call raises too, until the store is opened again and read.
        """
        ...

    def check_writable(self) -> None:
        """Raise AuditUnavailable if nothing may be written any more; cheap, asked before every batch."""
        ...

    def size(self) -> int:
        """Return one more than the last sequence number; 0 for an empty log."""
        ...

    def body(self, seq: int) -> bytes:
        """Return a record's bytes; CorruptFile if it is not there."""
        ...

    def bodies(self, start: int, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence number, bytes) of the records in ``start <= seq < stop``, in order."""
        ...

    def node(self, level: int, n: int) -> bytes:
        """Return the hash of a perfect subtree; CorruptFile if it is not there."""
        ...

    def nodes(self, start: int, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield (storage index, hash) of the nodes with ``start <= index < stop``, in order."""
        ...

    def checkpoint(self) -> str:
        """Return the newest checkpoint; CorruptFile if there is none."""
        ...

    def unended(self) -> tuple[int, ...]:
        """Return the sequence numbers of begin records without an end, in order."""
        ...

    def close(self) -> None:
        """Let go of files or connections; harmless when repeated."""
        ...


BackendOpener: TypeAlias = Callable[[bool, str], Backend]
"""``(create, empty)``: open the evidence. Only if ``create`` may it be founded, with ``empty`` as the checkpoint of
the empty log; otherwise evidence that is not there is CorruptFile."""
