"""The audit log: append durably, prove, check itself.

What it promises. (a) :meth:`AuditLog.append` returns only after the record is on the disk and under a signed
checkpoint; until then the caller must hand nothing out. (b) Whoever holds the vkey and one receipt or
checkpoint from outside notices any edit, deletion, reordering, insertion, truncation or fork of what that
checkpoint covers. What it cannot: prove that the caller told the truth when the record was written, or notice
by itself that the whole directory was put back to an earlier state. That takes a checkpoint kept elsewhere.

The order of an append: salts and values into ``private.db`` (COMMIT, fsync), then record, nodes and
checkpoint into ``audit.db`` in one transaction (COMMIT, fsync), then the frontier in memory. A failure
anywhere leaves the frontier as it was.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from carag.audit import merkle
from carag.audit._home import LogHome
from carag.audit._settle import settle
from carag.audit.checkpoint import Checkpoint
from carag.audit.commitment import SALT_SIZE, Opening
from carag.audit.event import UNDISCLOSED, Event, Recovery
from carag.audit.merkle import EMPTY_ROOT, Frontier, leaf_hash, peak_positions, stored_hash_index
from carag.audit.note import Note, SigningKey
from carag.audit.private import PrivateStore
from carag.audit.proof import ConsistencyProof, InclusionProof
from carag.audit.receipt import Receipt
from carag.audit.record import Passage, Record, text_hash
from carag.audit.retention import DEFAULT_CLASS
from carag.audit.store import EvidenceStore
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

__all__ = ["AuditLog", "Clock"]

Clock: TypeAlias = Callable[[], int]
"""Microseconds since 1970 UTC."""

_ID_SIZE: Final = 16
_RECHECKED_AT_OPEN: Final = 256  # records; the whole log is for verify(), a cold start is for milliseconds


def _system_clock() -> int:
    return time.time_ns() // 1000


class AuditLog:
    """An append-only, signed log in a directory. Use :meth:`open`; safe to share between threads.

    Examples
    --------
    >>> import tempfile
    >>> from carag.audit import Recovery, verify_receipt
    >>> with tempfile.TemporaryDirectory() as directory, AuditLog.open(directory) as log:
    ...     receipt = log.append(Recovery("DRILL"))
    ...     verify_receipt(receipt.to_bytes(), log.vkey).verdict
    <Verdict.VERIFIED: 'verified'>
    """

    def __init__(
        self,
        home: LogHome,
        key: SigningKey,
        evidence: EvidenceStore,
        private: PrivateStore,
        clock: Clock,
    ) -> None:
        self._home, self._key, self._clock = home, key, clock
        self._evidence, self._private = evidence, private
        self._mutex = threading.RLock()
        self._closed, self._pid = False, os.getpid()
        self._checkpoint = self._read_checkpoint()
        self._frontier = self._read_frontier()
        self._last_commit = self._read_newest()

    @classmethod
    def open(
        cls, directory: str | os.PathLike[str], *, origin: str | None = None, clock: Clock = _system_clock
    ) -> Self:
        """Open the log in a directory, founding it on first use.

        The newest records, the tree's root and the newest checkpoint are checked against each other first.

        Parameters
        ----------
        directory : path
            Made if missing.
        origin : str, optional
            The log's name, a URL without scheme such as ``"audit.example/prod-1"``. On first use the default
            is a random name, later the name the log has.
        clock : callable, optional
            Microseconds since 1970 UTC.

        Raises
        ------
        StoreLocked
            If another writer has the log open.
        CorruptFile
            If the log does not hold together; the message names what is wrong.
        AuditUnavailable
            If the directory cannot be read or written.
        InvalidArgument
            If the log has another origin.
        """
        with contextlib.ExitStack() as undo:
            home = LogHome(Path(directory))
            undo.callback(home.release)
            key = home.signing_key(origin)
            empty = key.sign(Checkpoint(key.name, 0, EMPTY_ROOT).to_text()).to_text()
            evidence = EvidenceStore(home.evidence, create=not home.founded, empty=empty)
            undo.callback(evidence.close)
            private = PrivateStore(home.private)
            undo.callback(private.close)
            home.finish(key)
            log = cls(home, key, evidence, private, clock)
            settle(private, evidence.bodies(private.settled), log.size)
            if private.holds_from(log.size):
                log.append(Recovery("UNFINISHED_APPEND"))
            undo.pop_all()
        return log

    @property
    def origin(self) -> str:
        """The log's name: first line of its checkpoints and name of its key."""
        return self._key.name

    @property
    def vkey(self) -> str:
        """The public key to verify receipts with."""
        return str(self._key.verifier)

    @property
    def size(self) -> int:
        """Records so far."""
        return self._frontier.size

    @property
    def private(self) -> PrivateStore:
        """What the commitments hide. To open, erase or hold it there are functions that say so in a record."""
        self._check_open()
        return self._private

    def now(self) -> int:
        """Return the log's time in microseconds since 1970 UTC: never before its newest record."""
        with self._mutex:
            return max(self._clock(), self._last_commit)

    def append(
        self,
        event: Event,
        *,
        secrets: Mapping[str, str | None] | None = None,
        passages: Sequence[Passage] = (),
        retain: str = DEFAULT_CLASS,
    ) -> Receipt:
        """Write a record durably and return its receipt. Hand nothing out before this returns.

        Parameters
        ----------
        event : Access, Ingest, Recovery, ...
        secrets : mapping of str to str, optional
            Values to commit to: ``"subject"``, ``"query"``, ``"answer"``, and ``"entities"``, which no receipt
            opens. ``None`` leaves one out.
        passages : sequence of Passage
            What is handed out, best first.
        retain : str, optional
            The retention class (``retention.py``).

        Raises
        ------
        InvalidArgument
            If the record would be malformed, too long, or contradict itself; nothing was written.
        AuditUnavailable
            If it cannot be made durable. Return nothing to the asker.
        """
        openings = _openings(secrets or {})
        commitments = {name: opening.commitment(name) for name, opening in openings.items()}
        hits = tuple(passage.hit for passage in passages)
        with self._mutex:
            self._check_writable()
            committed = max(self._clock(), self._last_commit)
            record = Record(
                self.origin, self.size, token_bytes(_ID_SIZE), committed, event, commitments, hits, retain
            )
            body = record.to_bytes()
            if wrong := "; ".join(record.contradictions()):
                raise InvalidArgument(f"this record contradicts itself: {wrong}")
            path = self._frontier.peaks[::-1]  # the siblings of the newest leaf are the peaks before it
            frontier = self._frontier.copy()
            nodes = frontier.append(leaf_hash(body))
            note = self._key.sign(Checkpoint(self.origin, frontier.size, frontier.root()).to_text())
            self._private.put({record.seq: openings})
            self._evidence.append(record.seq, body, nodes, note.to_text())
            self._frontier, self._checkpoint, self._last_commit = frontier, note, committed
        proof = InclusionProof(record.seq, path, note).to_text()
        texts = tuple((passage.chunk, passage.text) for passage in passages)
        return Receipt(record.seq, body, proof, _disclosed(openings), texts)

    def checkpoint(self) -> str:
        """Return the newest signed checkpoint. Keep it elsewhere and the log cannot be rolled back unseen."""
        with self._mutex:
            return self._checkpoint.to_text()

    def record(self, seq: int) -> Record:
        """Read a record.

        Raises
        ------
        InvalidArgument
            If there is no such record.
        CorruptFile
            If its bytes are not a record.
        """
        with self._mutex:
            self._check_seq(seq)
            return Record.parse(self._evidence.body(seq))

    def prove(self, seq: int) -> str:
        """Prove a record under the newest checkpoint, as a ``c2sp.org/tlog-proof@v1`` text."""
        with self._mutex:
            self._check_seq(seq)
            hashes = merkle.inclusion_proof(self._evidence.node, seq, self.size)
            return InclusionProof(seq, tuple(hashes), self._checkpoint).to_text()

    def consistency(self, old_size: int) -> str:
        """Prove that the first ``old_size`` records are still what they were.

        Returns
        -------
        str
            The ``add-checkpoint`` request body of ``c2sp.org/tlog-witness``.
        """
        with self._mutex:
            self._check_open()
            hashes = merkle.consistency_proof(self._evidence.node, old_size, self.size)
            return ConsistencyProof(old_size, tuple(hashes), self._checkpoint).to_text()

    def receipt(self, seq: int, passages: Sequence[tuple[str, str]] = ()) -> Receipt:
        """Make a receipt again, under the newest checkpoint.

        Parameters
        ----------
        seq : int
        passages : sequence of (chunk id, text)
            The texts the record names, in its order; the log itself keeps only their hashes.

        Raises
        ------
        InvalidArgument
            If there is no such record or the passages are not its own.
        """
        with self._mutex:
            proof = self.prove(seq)
            body, openings = self._evidence.body(seq), self._private.openings(seq)
        named = [(hit.chunk, hit.text_hash) for hit in Record.parse(body).hits]
        if named != [(chunk, text_hash(text)) for chunk, text in passages]:
            raise InvalidArgument(f"record {seq} names {len(named)} passages; these are not their texts")
        return Receipt(seq, body, proof, _disclosed(openings), tuple(passages))

    def verify(self) -> Checkpoint:
        """Re-hash the whole log, from the records up, and return the checkpoint that covers it.

        Raises
        ------
        CorruptFile
            Naming the first thing that does not hold together.
        """
        with self._mutex:
            self._check_open()
            checkpoint = Checkpoint.parse(self._read_checkpoint().text)
            frontier, stored = Frontier(), self._evidence.nodes()
            for leaf, _ in self._leaves(0):
                for level, n, value in frontier.append(leaf):
                    if next(stored, None) != (stored_hash_index(level, n), value):
                        what = f"tree node ({level}, {n})" if level else f"record {n}"
                        raise CorruptFile(
                            f"{self._home.path}: {what} was altered, or is missing from the tree"
                        )
            if next(stored, None) is not None:
                raise CorruptFile(f"{self._home.path}: the tree has nodes that no record accounts for")
            if (checkpoint.size, checkpoint.root) != (frontier.size, frontier.root()):
                raise CorruptFile(f"{self._home.path}: the records are not those of the signed checkpoint")
            return checkpoint

    def close(self) -> None:
        """Close the files and let another writer in; harmless when repeated."""
        with self._mutex:
            if not self._closed:
                self._closed = True
                self._private.close()
                self._evidence.close()
                self._home.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise AuditUnavailable(f"the log in {self._home.path} is closed; open it again")
        if os.getpid() != self._pid:  # the lock, the files and the frontier are the parent's
            raise AuditUnavailable(f"the log in {self._home.path} was opened before a fork; open it after")

    def _check_seq(self, seq: int) -> None:
        self._check_open()
        if not 0 <= seq < self.size:
            raise InvalidArgument(f"there is no record {seq}; the log has {self.size}")

    def _check_writable(self) -> None:
        self._check_open()
        self._evidence.check_writable()
        if self._evidence.size() != self.size:
            raise AuditUnavailable(
                f"{self._home.evidence} no longer ends where this process left it; open the log again"
            )

    def _read_checkpoint(self) -> Note:
        note = Note.parse(self._evidence.checkpoint())
        if not self._key.verifier.verifies(note):
            raise CorruptFile(f"{self._home.path}: the newest checkpoint is not signed by the log's own key")
        if Checkpoint.parse(note.text).origin != self.origin:
            raise CorruptFile(f"{self._home.path}: the newest checkpoint belongs to another log")
        return note

    def _read_frontier(self) -> Frontier:
        checkpoint, size = Checkpoint.parse(self._checkpoint.text), self._evidence.size()
        if size != checkpoint.size:
            raise CorruptFile(
                f"{self._home.path}: there are {size} records, the signed checkpoint covers {checkpoint.size}"
            )
        frontier = Frontier(size, [self._evidence.node(level, n) for level, n in peak_positions(size)])
        if frontier.root() != checkpoint.root:
            raise CorruptFile(f"{self._home.path}: the tree's root is not that of the signed checkpoint")
        return frontier

    def _read_newest(self) -> int:
        """Lead the newest records to the signed root and return the last commit time."""
        size, root, last = self.size, self._frontier.root(), 0
        start = max(0, size - _RECHECKED_AT_OPEN)
        for seq, (leaf, committed) in enumerate(self._leaves(start), start):
            proof = merkle.inclusion_proof(self._evidence.node, seq, size)
            if not merkle.verify_inclusion(leaf, seq, size, proof, root):
                raise CorruptFile(f"{self._home.path}: record {seq} or the tree above it was altered")
            last = committed
        return last

    def _leaves(self, start: int) -> Iterator[tuple[bytes, int]]:
        """Yield (leaf hash, commit time) from ``start`` on; each record must be in place and in order."""
        expected, previous = start, 0
        for seq, body in self._evidence.bodies(start):
            where = f"{self._home.path}: record {expected}"
            if seq != expected:
                raise CorruptFile(f"{where} is missing")
            log, said, committed = Record.place(body)
            if (log, said) != (self.origin, seq):
                raise CorruptFile(f"{where} says it is record {said} of {log}")
            if committed < previous:
                raise CorruptFile(f"{where} was committed before the one in front of it")
            expected, previous = expected + 1, committed
            yield leaf_hash(body), committed


def _openings(values: Mapping[str, str | None]) -> dict[str, Opening]:
    return {
        name: Opening(token_bytes(SALT_SIZE), value) for name, value in values.items() if value is not None
    }


def _disclosed(openings: Mapping[str, Opening]) -> dict[str, Opening]:
    return {name: opening for name, opening in openings.items() if name not in UNDISCLOSED}
