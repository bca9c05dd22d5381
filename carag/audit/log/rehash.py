"""Re-hash a log from its records, and compare every stored tree node with the computed one.

Whole subtrees of 1,024 records are hashed and compared in one step; the remaining records are hashed singly. The same
pass serves opening (the newest records), :meth:`AuditLog.verify` (all records) and the scrub (all records, at a limited
rate).
"""

from __future__ import annotations

import threading
import time
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from carag.audit.records.record import Record
from carag.audit.tlog import encoding
from carag.audit.tlog.merkle import (
    Frontier,
    leaf_hash,
    node_hash,
    peak_positions,
    stored_hash_count,
    stored_hash_index,
)
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from carag.audit.log.backend import Tip
    from carag.audit.log.stored import Stored
    from carag.audit.tlog.merkle import Node


_LEVEL: Final = 10  # subtrees of 2**10 = 1,024 records, a megabyte or two, are hashed at a time


class Rehash:
    """A pass over the records of a log, from ``start`` on.

    The tree to the left of ``start`` is taken from the stored nodes: if the final root is right, these are right too.
    ``visit`` is called with number and bytes of each record once its hash is found to be the stored one.
    """

    def __init__(
        self,
        backend: Stored,
        origin: str,
        start: int = 0,
        visit: Callable[[int, bytes], None] | None = None,
    ) -> None:
        self._backend, self._origin, self._visit = backend, origin, visit
        peaks = [backend.node(level, n) for level, n in peak_positions(start)]
        self.frontier = Frontier(start, peaks)
        self.committed = 0
        """Commit time of the last record read."""
        self.unended: set[int] = set()
        """Sequence numbers of begin records that no record read so far has ended."""
        self._log = b'"log":' + encoding.encode(origin)

    def advance(self, stop: int) -> Iterator[int]:
        """Continue to ``stop`` records, and yield the number of records of each step.

        Raises CorruptFile naming the first record or node that is wrong.
        """
        width = 1 << _LEVEL
        while (at := self.frontier.size) < stop:
            if at % width == 0 and stop - at >= width:
                self._subtree(at)
            else:
                self._leaves(at, min(stop, at + width - at % width))
            yield self.frontier.size - at

    def expect(self, size: int, root: bytes) -> None:
        """Raise CorruptFile unless the records read have this number and root."""
        if (self.frontier.size, self.frontier.root()) != (size, root):
            raise CorruptFile(f"{self._backend.where}: the records are not those of the signed checkpoint")

    def nothing_beyond(self) -> None:
        """Raise CorruptFile if the backend has records or nodes before or beyond those read."""
        read = self._backend
        for seq, _ in chain(read.bodies(stop=0), read.bodies(self.frontier.size)):
            raise CorruptFile(f"{read.where}: record {seq} is beyond the signed checkpoint")
        for _ in chain(read.nodes(stop=0), read.nodes(stored_hash_count(self.frontier.size))):
            raise CorruptFile(f"{read.where}: the tree has nodes that no record accounts for")

    def _leaves(self, start: int, stop: int) -> None:
        nodes: list[Node] = []
        rows = self._read(start, stop)
        for _, body in rows:
            nodes += self.frontier.append(leaf_hash(body))
        self._compare(start, [node.hash for node in nodes], rows)

    def _subtree(self, start: int) -> None:
        """Hash an aligned subtree level by level, and compare each level in one step."""
        rows = self._read(start, start + (1 << _LEVEL))
        below = [leaf_hash(body) for _, body in rows]
        nodes = list(below)
        while len(below) > 1:
            pairs = iter(below)
            below = [node_hash(left, right) for left, right in zip(pairs, pairs, strict=True)]
            nodes += below
        above = Frontier(start >> _LEVEL, self.frontier.peaks)  # the same tree with these subtrees as leaves
        completed = above.append(below[0])[1:]
        self.frontier = Frontier(start + (1 << _LEVEL), above.peaks)
        self._compare(start, [*_stored(_LEVEL)(nodes), *(node.hash for node in completed)], rows)

    def _compare(self, start: int, hashes: list[bytes], rows: list[tuple[int, bytes]]) -> None:
        first = stored_hash_count(start)
        stored = list(self._backend.nodes(first, first + len(hashes)))
        if stored == list(enumerate(hashes, first)):
            if self._visit is not None:
                for seq, body in rows:
                    self._visit(seq, body)
            return
        kept = dict(stored)
        index = next(index for index, value in enumerate(hashes, first) if kept.get(index) != value)
        level, n = _subtree_at(index)
        what = f"tree node ({level}, {n})" if level else f"record {n}"
        raise CorruptFile(f"{self._backend.where}: {what} was altered, or is missing from the tree")

    def _read(self, start: int, stop: int) -> list[tuple[int, bytes]]:
        """Return the records; each must state its own place, and commit times must not run backwards."""
        rows = list(self._backend.bodies(start, stop))
        found = [seq for seq, _ in rows]
        if found != list(range(start, stop)):
            missing = min(set(range(start, stop)) - set(found))
            raise CorruptFile(f"{self._backend.where}: record {missing} is missing")
        for seq, body in rows:
            committed = self._place(body, seq)
            if committed < self.committed:
                raise CorruptFile(
                    f"{self._backend.where}: record {seq} has an earlier commit time than the record before it"
                )
            self.committed = committed
        return rows

    def _place(self, body: bytes, seq: int) -> int:
        """Check the log and the sequence number that a record states; return its commit time.

        The quotes of a JSON key are not escaped, so its bytes cannot occur inside a text; a key that occurs once is the
        record's own. Other records are parsed.
        """
        if b'"beg' in body:
            self._note_begins(body, seq)
        log, place, time_ = body.find(b'"log":'), body.find(b'"seq":'), body.find(b'"tc":')
        digits = body[time_ + 5 : body.find(b",", time_)]
        plain = (
            body.startswith(self._log, log)
            and body.startswith(b'"seq":%d,' % seq, place)
            and digits.isdigit()
            and body.find(b'"log":', log + 1) == body.find(b'"seq":', place + 1) == -1
            and body.find(b'"tc":', time_ + 1) == -1
        )
        if plain:
            return int(digits)
        of, said, committed = Record.place(body)
        if (of, said) != (self._origin, seq):
            raise CorruptFile(f"{self._backend.where}: record {seq} says it is record {said} of {of}")
        return committed

    def _note_begins(self, body: bytes, seq: int) -> None:
        fields = encoding.load(body)
        if isinstance(fields, dict):
            if fields.get("kind") == "begin":
                self.unended.add(seq)
            ends = [fields.get("begun"), *(fields.get("begins") or ())]
            self.unended.difference_update(end for end in ends if isinstance(end, int))


class Scrubber:
    """Re-hashes a log on demand, or repeatedly in its own thread; ``tip`` returns the present end of the log."""

    def __init__(self, backend: Stored, origin: str, tip: Callable[[], Tip]) -> None:
        self._backend, self._origin, self._tip = backend, origin, tip
        self._starting, self._stopping = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self.damage: str | None = None
        """The inconsistency that was found, after which nothing more is written."""

    def scrub(self, rate: float | None = None) -> int:
        """Re-hash all present records; return how many were re-hashed, fewer if the pass was stopped.

        Raises CorruptFile naming the first inconsistency.
        """
        tip = self._tip()
        rehash = Rehash(self._backend, self._origin)
        try:
            for _ in _paced(rehash.advance(tip.frontier.size), rate, self._stopping.wait):
                if self._stopping.is_set():
                    return rehash.frontier.size
            rehash.expect(tip.frontier.size, tip.frontier.root())
        except CorruptFile as damage:
            self.damage = str(damage)
            raise
        return rehash.frontier.size

    def start(self, rate: float, every: float) -> None:
        """Scrub in a thread until stopped; idempotent. InvalidArgument unless both numbers are positive."""
        if not (rate > 0 and every > 0):
            raise InvalidArgument(
                f"the scrub reads {rate} records a second, every {every} seconds; want both above 0"
            )
        with self._starting:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(
                    target=self._go_on, args=(rate, every), name="carag-audit-scrub", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """Stop, even in the middle of a pass, and wait for the thread."""
        self._stopping.set()
        with self._starting:
            if self._thread is not None:
                self._thread.join()

    def _go_on(self, rate: float, every: float) -> None:
        while not self._stopping.is_set():
            try:
                self.scrub(rate)
            except CorruptFile:
                return  # kept as the damage that the next append reports
            except AuditUnavailable as error:
                if not self._stopping.is_set():
                    self.damage = f"it cannot be read for the scrub ({error})"
                return
            self._stopping.wait(every)


def _paced(steps: Iterator[int], rate: float | None, wait: Callable[[float], bool]) -> Iterator[int]:
    """Yield steps at no more than ``rate`` records per second, until ``wait`` returns True."""
    begun, done = time.monotonic(), 0
    for step in steps:
        yield step
        done += step
        if rate is not None and wait(max(0.0, begun + done / rate - time.monotonic())):
            return


@cache
def _stored(level: int) -> itemgetter[Any]:
    """Return a getter that puts the nodes of a perfect tree, given level by level, into storage order."""
    nodes = [(at, n) for at in range(level + 1) for n in range(1 << (level - at))]
    return itemgetter(*sorted(range(len(nodes)), key=lambda place: stored_hash_index(*nodes[place])))


def _subtree_at(index: int) -> tuple[int, int]:
    """Invert ``stored_hash_index``: search from the last leaf whose index is certainly not greater."""
    leaf = index // 2
    place = stored_hash_count(leaf)
    while (following := stored_hash_count(leaf + 1)) <= index:
        leaf, place = leaf + 1, following
    level = index - place
    return level, leaf >> level
