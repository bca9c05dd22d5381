"""Read what a log stores, with the same statements for a file and for PostgreSQL, for its writer and its auditor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from carag.audit.tlog import merkle
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.proof import ConsistencyProof, InclusionProof
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.audit.tlog.note import Note


FILE_TABLES: Final = ("rec", "cp")
SHARED_TABLES: Final = ("record", "checkpoint")
"""Names of the tables of records and of checkpoints, in a file and in PostgreSQL."""
START, END = -(1 << 63), (1 << 63) - 1
"""Bounds on everything that is stored, and beyond that on what no log has."""


class Stored(ABC):
    """Records, tree nodes and checkpoints. What is read is not trusted: it must lead to a signed checkpoint."""

    tables = FILE_TABLES
    repair = ""
    """What to do about missing contents: the end of a message."""

    @property
    @abstractmethod
    def where(self) -> str:
        """Name of the store in messages."""

    @abstractmethod
    def _one(self, query: str, *parameters: object) -> Any:
        """Return the first row of a statement in SQLite's dialect, or None."""

    @abstractmethod
    def _rows(self, query: str, start: int, stop: int) -> Iterator[Any]:
        """Yield the rows of a statement, whose first column ascends from ``start`` to before ``stop``."""

    def body(self, seq: int) -> bytes:
        """Return a record's bytes; CorruptFile if it is missing."""
        query = f"SELECT body FROM {self.tables[0]} WHERE seq = ?"  # noqa: S608 - the tables of this file
        return self._bytes(self._one(query, seq), f"record {seq}")

    def bodies(self, start: int = START, stop: int = END) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence number, bytes) of the records in ``start <= seq < stop``, in order."""
        query = f"SELECT seq, body FROM {self.tables[0]} WHERE seq >= ? AND seq < ? ORDER BY seq"  # noqa: S608
        for seq, body in self._rows(query, start, stop):
            yield seq, body if type(body) is bytes else self._bytes((body,), f"record {seq}")

    def node(self, level: int, n: int) -> bytes:
        """Return the hash of a perfect subtree; CorruptFile if it is missing."""
        row = self._one("SELECT hash FROM node WHERE i = ?", merkle.stored_hash_index(level, n))
        return self._bytes(row, f"tree node ({level}, {n})")

    def nodes(self, start: int = START, stop: int = END) -> Iterator[tuple[int, bytes]]:
        """Yield (storage index, hash) of the nodes with ``start <= index < stop``, in order."""
        yield from self._rows("SELECT i, hash FROM node WHERE i >= ? AND i < ? ORDER BY i", start, stop)

    def newest(self) -> str:
        """Return the newest checkpoint; CorruptFile if it is missing."""
        row = self._one(f"SELECT note FROM {self.tables[1]} ORDER BY size DESC LIMIT 1")  # noqa: S608
        if row is None or not isinstance(row[0], str):
            raise CorruptFile(f"{self.where} has no checkpoint{self.repair}")
        return row[0]

    def root(self, size: int) -> bytes:
        """Return the root of the first ``size`` records, from the stored nodes."""
        return merkle.Frontier(size, [self.node(*peak) for peak in merkle.peak_positions(size)]).root()

    def inclusion(self, seq: int, note: Note) -> str:
        """Prove a record under a checkpoint, as a ``c2sp.org/tlog-proof@v1`` text.

        Raises InvalidArgument if the checkpoint covers no such record; CorruptFile if the stored nodes do not lead to
        the signed root.
        """
        tree = Checkpoint.parse(note.text)
        leaf = merkle.leaf_hash(self.body(seq))
        hashes = merkle.inclusion_proof(self.node, seq, tree.size)
        if not merkle.verify_inclusion(leaf, seq, tree.size, hashes, tree.root):
            raise CorruptFile(f"{self.where}: record {seq} or the tree above it was altered")
        return InclusionProof(seq, tuple(hashes), note).to_text()

    def extension(self, old: int, note: Note) -> str:
        """Prove that a checkpoint's tree begins with ``old`` records, as a ``c2sp.org/tlog-witness`` request body.

        Raises InvalidArgument unless ``0 < old <= size``; CorruptFile if the stored nodes do not lead to the signed
        root.
        """
        tree = Checkpoint.parse(note.text)
        hashes = merkle.consistency_proof(self.node, old, tree.size)
        if not merkle.verify_consistency(old, tree.size, hashes, self.root(old), tree.root):
            raise CorruptFile(f"{self.where}: the tree was altered")
        return ConsistencyProof(old, tuple(hashes), note).to_text()

    def _bytes(self, row: tuple[object, ...] | None, what: str) -> bytes:
        if row is None:
            raise CorruptFile(f"{self.where}: {what} is missing{self.repair}")
        if not isinstance(row[0], bytes):
            raise CorruptFile(f"{self.where}: {what} was altered: it is not a byte string{self.repair}")
        return row[0]
