"""Append records durably to a log, prove them, and verify the log.

(a) :meth:`AuditLog.append` returns only after the record is on disk and under a signed checkpoint; until then the
caller must not return anything to the asker. (b) A holder of the vkey and of one receipt or checkpoint from outside
notices any edit, deletion, reordering, insertion, truncation or fork of the records that the checkpoint covers.

The log cannot prove that the caller told the truth when the record was written. Nor can it notice by itself that the
whole directory was rolled back: that needs a checkpoint kept elsewhere, given to :meth:`AuditLog.open` as
``not_before``.

Callers draft their records in parallel. One thread takes all waiting drafts, gives them sequence numbers, signs one
root over them, and writes salts, values, records, nodes and checkpoint in one transaction. It waits for the disk once,
advances the frontier in memory and wakes the callers. A failure anywhere leaves the frontier unchanged; every caller of
the batch gets the error.
"""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from carag.audit._clock import Clock, system_clock
from carag.audit.log.directory import LogDirectory
from carag.audit.log.group_commit import GroupCommit
from carag.audit.log.growth import Growth
from carag.audit.log.opening import check_extends, kept_note, read_checkpoint, read_tip, restorable
from carag.audit.log.rehash import Rehash, Scrubber
from carag.audit.log.settle import settle
from carag.audit.receipts.receipt import Receipt
from carag.audit.records.draft import Draft, disclosed
from carag.audit.records.hits import text_hash
from carag.audit.records.record import Record
from carag.audit.records.retention import DEFAULT_CLASS, retention_class
from carag.audit.records.upkeep import Recovery
from carag.audit.tlog.batch_paths import BatchPaths
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.merkle import EMPTY_ROOT, consistency_proof
from carag.audit.tlog.proof import InclusionProof
from carag.errors import AuditUnavailable, CaragError, CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from carag.audit.log.backend import Backend, Tip
    from carag.audit.log.keyring import KeyRing
    from carag.audit.private.store import PrivateStore
    from carag.audit.records.event import Event
    from carag.audit.records.hits import Passage
    from carag.audit.tlog.note import Note


_MAX_BEGINS_A_RECORD: Final = 4000
"""Most begin records that a recovery record names: at up to 9 bytes each, they fit into MAX_RECORD_BYTES."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A draft that became a record, with the paths under its batch's checkpoint."""

    seq: int
    body: bytes
    note: Note
    paths: BatchPaths

    def proof(self) -> str:
        return InclusionProof(self.seq, tuple(self.paths.path(self.seq)), self.note).to_text()


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
        home: LogDirectory,
        key: KeyRing,
        backend: Backend,
        private: PrivateStore,
        tip: Tip,
        clock: Clock,
        retain: str,
    ) -> None:
        self._home, self._key, self._clock, self._retain = home, key, clock, retain
        self._backend, self._private = backend, private
        self._closed, self._closing, self._pid = False, threading.RLock(), os.getpid()
        self._tip = tip
        self._writing = threading.Lock()  # held while records are added to the backend
        self._guard: Callable[[Event], None] | None = None
        self._scrubber = Scrubber(backend, self.origin, lambda: self._tip)
        self._appender = GroupCommit(self._commit)

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        origin: str | None = None,
        clock: Clock = system_clock,
        not_before: str | None = None,
        retain: str = DEFAULT_CLASS,
        accept_lost_values: bool = False,
    ) -> Self:
        """Open the log in a directory, and create it on first use.

        The newest records, the tree's root and the newest checkpoint are first checked against each other. Work that an
        earlier process left unfinished is recorded.

        Parameters
        ----------
        directory : path
            Created if missing. Never a URL: keys and private values are files.
        origin : str, optional
            The log's name, a URL without scheme such as ``"audit.example/prod-1"``; by default random.
        clock : callable, optional
            Microseconds since 1970 UTC.
        not_before : str, optional
            A checkpoint, inclusion proof or receipt that was kept elsewhere; a log that does not extend it is not
            opened.
        retain : str
            The retention class of records that name none (:mod:`carag.audit.records.retention`).
        accept_lost_values : bool
            Open a log whose ``private.key`` is lost, without the values of its commitments; this is recorded.

        Raises
        ------
        StoreLocked
            If another writer has the log open.
        CorruptFile
            If the log is inconsistent, or was rolled back; the message names the inconsistency.
        AuditUnavailable
            If the directory cannot be read or written.
        InvalidArgument
            If the log has another origin, this log did not sign ``not_before``, or there is no such retention class.
        """
        retention_class(retain)
        kept = [] if not_before is None else [("not_before", kept_note(not_before))]
        with contextlib.ExitStack() as undo:
            home = LogDirectory(Path(directory))
            undo.callback(home.release)
            key = home.signing_key(origin, clock)
            empty = key.sign(Checkpoint(key.name, 0, EMPTY_ROOT).to_text()).to_text()
            store = home.open_backend(empty)
            undo.callback(store.close)
            tip = read_tip(store, key.verifier)
            home.finish(key)
            if (pinned := home.pinned()) is not None:
                kept.append((str(home.pin), pinned))
            for where, note in kept:
                check_extends(store, tip, key.trusted, note, where)
            # This comes after the check against rollback, because losing values is accepted for this history only.
            with restorable(store.where):
                private = home.open_values(store, accept_loss=accept_lost_values)
            log = cls(home, key, store, private, tip, clock, retain)
            undo.callback(log._stop)
            if private.is_lost:
                log._start_over()
            with private.settling():
                log._settle()
            log._recover()
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
    def keys(self) -> KeyRing:
        """The keys that sign, and the public keys of all keys that ever signed."""
        return self._key

    def watch(self, guard: Callable[[Event], None] | None) -> None:
        """Call a guard before each append; if it raises, the record is refused. ``None`` removes the guard."""
        self._guard = guard

    @property
    def private(self) -> PrivateStore:
        """The values of the commitments. To open, erase or hold them, use the functions that record the act."""
        self._check_open()
        return self._private

    def damage(self) -> str | None:
        """Return the alteration that a scrub found, after which nothing more is written, or None."""
        return self._scrubber.damage

    def now(self) -> int:
        """Return the log's time in microseconds since 1970 UTC: never before its newest record."""
        return max(self._clock(), self._tip.committed)

    def append(
        self,
        event: Event,
        *,
        secrets: Mapping[str, str | None] | None = None,
        passages: Sequence[Passage] = (),
        retain: str | None = None,
    ) -> Receipt:
        """Write a record durably and return its receipt. Return nothing to the asker before this returns.

        Parameters
        ----------
        secrets : mapping of str to str, optional
            Values to commit to: ``"subject"``, ``"query"``, ``"answer"``, and ``"entities"``, which no receipt opens.
            ``None`` omits one.
        passages : sequence of Passage
            The passages to be returned to the asker, best first.
        retain : str, optional
            The record's retention class, by default that of the log.

        Raises
        ------
        InvalidArgument
            If the record would be malformed, too long, or contradict itself or the log; nothing was written.
        AuditUnavailable
            If it cannot be made durable, or too many records are waiting. Return nothing to the asker.
        """
        if self._guard is not None:
            self._guard(event)
        term = self._retain if retain is None else retain
        draft = Draft.of(self.origin, event, secrets or {}, passages, term)
        self._check_open()
        placed = self._appender.submit(draft)
        return Receipt(placed.seq, placed.body, placed.proof(), disclosed(draft.openings), draft.texts)

    @property
    def size(self) -> int:
        """Number of records; in a log that several processes write, the number that this process knows of."""
        return self._tip.frontier.size

    def checkpoint(self) -> str:
        """Return the newest signed checkpoint. Kept elsewhere, it makes a later rollback detectable."""
        return self._followed().note.to_text()

    def record(self, seq: int) -> Record:
        """Read a record; InvalidArgument if there is no such record, CorruptFile if its bytes are not a record."""
        self._tip_over(seq)
        return Record.parse(self._backend.body(seq))

    def prove(self, seq: int) -> str:
        """Prove a record under the newest checkpoint, as a ``c2sp.org/tlog-proof@v1`` text."""
        return self._backend.inclusion(seq, self._tip_over(seq).note)

    def consistency(self, old_size: int) -> str:
        """Prove that the first ``old_size`` records are unchanged, as a ``c2sp.org/tlog-witness`` request body."""
        self._check_open()
        return self._backend.extension(old_size, self._tip.note)

    def consistency_hashes(self, old_size: int, size: int) -> tuple[bytes, ...]:
        """Prove that ``size`` records begin with ``old_size``: :meth:`consistency` between any two sizes.

        Raises InvalidArgument unless ``0 < old_size <= size`` and the log has ``size`` records.
        """
        self._check_open()
        if size > self.size:
            raise InvalidArgument(f"the log has only {self.size} records, not {size}")
        return tuple(consistency_proof(self._backend.node, old_size, size))

    def receipt(self, seq: int, passages: Sequence[tuple[str, str]] = ()) -> Receipt:
        """Make a receipt again, under the newest checkpoint, without openings of the record's commitments.

        ``passages`` are pairs of chunk id and text of the record's hits, in its order; the log keeps only their hashes.
        Opening question and answer needs a role and is recorded: see :func:`~carag.audit.disclose`, whose result can be
        added with ``dataclasses.replace(receipt, openings=...)``. Only the first receipt has proofs of the index state.
        Raises InvalidArgument if there is no such record or the passages are not its own.
        """
        proof, body = self.prove(seq), self._backend.body(seq)
        hits = Record.parse(body).hits
        if len(hits) != len(passages) or not all(
            hit.is_of(chunk, text_hash(text)) for hit, (chunk, text) in zip(hits, passages, strict=True)
        ):
            raise InvalidArgument(
                f"the texts given are not those of the {len(hits)} passages of record {seq}"
            )
        return Receipt(seq, body, proof, passages=tuple(passages))

    def verify(self) -> Checkpoint:
        """Re-hash the whole log, from its records, and return the checkpoint that covers it.

        Appends continue meanwhile; they are blocked only while the records that they added are read.

        Raises
        ------
        CorruptFile
            Naming the first inconsistency.
        """
        self._check_open()
        rehash = Rehash(self._backend, self.origin)
        for _ in rehash.advance(self.size):
            self._check_open()
        with self._writing, self._turn():
            self._check_open()
            checkpoint = Checkpoint.parse(read_checkpoint(self._backend, self._key.verifier).text)
            for _ in rehash.advance(self.size):
                pass
            rehash.nothing_beyond()
            rehash.expect(checkpoint.size, checkpoint.root)
            if rehash.unended != set(self._backend.unended()):
                raise CorruptFile(f"{self._home.path}: the stored begins differ from those of the records")
        return checkpoint

    def scrub(self, *, rate: float | None = None) -> int:
        """Re-hash all present records and return their number: fewer than the log has if it was closed meanwhile.

        Parameters
        ----------
        rate : float, optional
            Greatest number of records per second; by default unlimited.

        Raises
        ------
        CorruptFile
            Naming the first inconsistency. Every later append raises AuditUnavailable.
        """
        self._check_open()
        return self._scrubber.scrub(rate)

    def scrub_in_background(self, *, rate: float = 10_000, every: float = 3600) -> None:
        """Scrub in a thread until the log is closed; further calls do nothing. Damage makes the next append fail.

        Parameters
        ----------
        rate : float
            Greatest number of records per second.
        every : float
            Seconds between the end of one pass and the next.

        Raises
        ------
        InvalidArgument
            Unless both are positive.
        """
        self._check_open()
        self._scrubber.start(rate, every)

    def close(self) -> None:
        """Write the waiting records, close the files and release the lock; idempotent."""
        if os.getpid() != self._pid:  # a forked child must not close the parent's threads, locks and files
            self._closed = True
            return
        with self._closing:
            if self._closed:
                return
            self._stop()
            with contextlib.suppress(AuditUnavailable):  # the older pin is still valid, for fewer records
                self._home.write_pin(self._tip.note)
            self._closed = True
            self._backend.close()
            self._home.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _commit(self, drafts: Sequence[Draft]) -> list[_Placed | CaragError]:
        """Write the drafts as one batch; only the group commit's thread calls this."""
        with self._writing:
            if self._scrubber.damage is not None:
                raise AuditUnavailable(
                    f"the log is damaged, and writes nothing more: {self._scrubber.damage}"
                )
            with self._turn() as tip:
                places, growth, end = self._written(tip, drafts)
            self._tip = end
        paths = BatchPaths(tip.frontier, growth.frontier, growth.nodes)
        return [
            place
            if isinstance(place, CaragError)
            else _Placed(place, growth.bodies[place - growth.first], end.note, paths)
            for place in places
        ]

    def _written(self, tip: Tip, drafts: Sequence[Draft]) -> tuple[list[int | CaragError], Growth, Tip]:
        """Write the drafts after the log's end, in its turn; return their places, what was added and the new end."""
        growth, committed = Growth(tip), max(self._clock(), tip.committed)
        placed: dict[int, Draft] = {}
        places: list[int | CaragError] = []
        for draft in drafts:
            if (refusal := growth.refusal(draft.event)) is not None:
                places.append(refusal)
                continue
            seq = growth.size
            growth.add(draft.event, draft.placed(seq, committed))
            placed[seq] = draft
            places.append(seq)
        if not placed:
            return places, growth, tip
        note = self._key.sign(Checkpoint(self.origin, growth.size, growth.frontier.root()).to_text())
        batch = growth.batch(note)
        self._private.put({seq: draft.openings for seq, draft in placed.items()})
        self._backend.append(batch)
        return places, growth, growth.tip(note, committed)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[Tip]:
        """Keep writers in other processes out, and yield the log's end with what they appended."""
        with self._backend.turn(self._tip, self._key.verifier) as tip:
            self._tip = tip
            yield tip

    @contextlib.contextmanager
    def settling(self) -> Iterator[None]:
        """Record and carry out an erasure or a hold, one at a time, after anything that an ended process left to do."""
        self._check_open()
        with self._private.settling():
            if self._backend.is_shared:
                self._settle()
            yield
            self._private.settle(self.size)

    def _settle(self) -> None:
        with restorable(self._backend.where):
            size = self._followed().frontier.size
            settle(self._private, self._backend.bodies(self._private.settled, size), size)

    def _start_over(self) -> None:
        """Give up the values that are lost and, if there were any, record that, in one transaction."""
        with self._turn():
            self._private.start_over()
            if self.size:
                self._commit([Draft.of(self.origin, Recovery("VALUES_LOST"), {}, (), self._retain)])

    def _recover(self) -> None:
        """Record the requests that an earlier process left unfinished."""
        while begins := self._backend.left_behind()[:_MAX_BEGINS_A_RECORD]:
            self.append(Recovery("UNENDED_BEGINS", begins))

    def _stop(self) -> None:
        """Stop the threads, after writing the queued records."""
        self._appender.close()
        self._scrubber.stop()

    def _check_open(self) -> None:
        if self._closed:
            raise AuditUnavailable(f"the log in {self._home.path} is closed; open it again")
        if os.getpid() != self._pid:  # the lock, the files and the frontier belong to the parent process
            raise AuditUnavailable(
                f"the log in {self._home.path} was opened before a fork; open it in the child"
            )

    def _tip_over(self, seq: int) -> Tip:
        """Return an end of the log that covers a record; InvalidArgument if there is no such record."""
        self._check_open()
        tip = self._tip if seq < self.size else self._followed()
        if not 0 <= seq < tip.frontier.size:
            raise InvalidArgument(f"there is no record {seq}; the log has {tip.frontier.size}")
        return tip

    def _followed(self) -> Tip:
        """Return the log's end, including what other processes have appended."""
        if self._backend.is_shared and not self._closed:
            with self._writing, self._turn():
                pass
        return self._tip

    def check_unshared(self, what: str) -> None:
        """Refuse an operation that would make the copies of a shared log's key differ between processes."""
        if self._backend.is_shared:
            raise InvalidArgument(f"{what} is not possible in a log that several processes write to")

    def alone(self, what: str) -> AbstractContextManager[None]:
        """Keep other processes out of the log while shared files are changed; StoreLocked if one has it open."""
        return self._backend.alone(what)
