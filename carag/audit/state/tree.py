"""Store the hash tree of the index state in a file that is updated along the paths of changed labels.

:mod:`carag.audit.state.proof` defines the root; this file's layout is internal. The labels are in 8,192 buckets by the
first thirteen bits of their place, one row per bucket, so that a changed label rewrites its bucket and thirteen hashes
above it. The hashes above the buckets are kept in memory, computed from the buckets' roots at opening. A deleted file
is built again from the store.

CPU time on the reference machine (``bench/micro/test_state.py``) at 20,000 / 200,000 / 1,000,000 labels: a filing of
forty passages 4 / 8 / 15 ms, one relabel 0.2 / 0.3 / 0.6 ms, eight proofs 0.6 / 0.9 / 2.6 ms, opening 8 / 9 / 9 ms,
a complete rebuild 0.6 / 6 / 38 s.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from bisect import bisect_left
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from carag.audit.tlog.merkle import EMPTY_ROOT, HASH_SIZE, node_hash
from carag.errors import CaragError, CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


_DEPTH: Final = 13  # levels above the buckets
_BUCKETS: Final = 1 << _DEPTH
_PAIR: Final = 2 * HASH_SIZE  # bytes of a place and a leaf hash
_SCHEMA: Final = (
    # Roots have a table of their own, so that reading all of them at opening reads nothing else.
    "CREATE TABLE IF NOT EXISTS root (prefix INTEGER PRIMARY KEY, hash BLOB NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS bucket (prefix INTEGER PRIMARY KEY, labels BLOB NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS note (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
)

Levels: TypeAlias = "list[list[bytes | None]]"


@dataclass(frozen=True, slots=True)
class Bucket:
    """Labels that share their first bits: places, ascending, and leaf hashes."""

    places: list[int]
    leaves: list[bytes]
    _roots: dict[tuple[int, int], bytes] = field(default_factory=dict, compare=False, repr=False)
    """Roots of ranges of the labels, computed when the root was checked and reused for paths."""

    def root(self) -> bytes | None:
        """Return the root over the labels, or None without labels."""
        return self._root(0, len(self.places)) if self.places else None

    def changed(self, changes: Mapping[int, bytes | None]) -> Bucket:
        """Return the bucket with leaves inserted, replaced, or (None) removed."""
        labels = dict(zip(self.places, self.leaves, strict=True))
        for where, leaf in changes.items():
            if leaf is None:
                labels.pop(where, None)
            else:
                labels[where] = leaf
        places = sorted(labels)
        return Bucket(places, [labels[where] for where in places])

    def path(self, where: int) -> tuple[bytes, list[bytes], str] | None:
        """Return a label's leaf, with siblings and sides up to this bucket's root; None if it is not here."""
        at = bisect_left(self.places, where)
        if at == len(self.places) or self.places[at] != where:
            return None
        siblings, sides, low, high = list[bytes](), "", 0, len(self.places)
        while high - low > 1:
            middle = self._split(low, high)
            if at < middle:
                siblings.append(self._root(middle, high))
                sides, high = "R" + sides, middle
            else:
                siblings.append(self._root(low, middle))
                sides, low = "L" + sides, middle
        return self.leaves[at], siblings[::-1], sides

    def to_bytes(self) -> bytes:
        """Encode the bucket for storage."""
        pairs = zip(self.places, self.leaves, strict=True)
        return b"".join(where.to_bytes(HASH_SIZE) + leaf for where, leaf in pairs)

    @classmethod
    def from_bytes(cls, data: bytes) -> Bucket:
        """Decode a stored bucket."""
        starts = range(0, len(data), _PAIR)
        return cls(
            [int.from_bytes(data[at : at + HASH_SIZE]) for at in starts],
            [data[at + HASH_SIZE : at + _PAIR] for at in starts],
        )

    def _root(self, low: int, high: int) -> bytes:
        if high - low == 1:
            return self.leaves[low]
        if (known := self._roots.get((low, high))) is None:
            middle = self._split(low, high)
            known = self._roots[low, high] = node_hash(self._root(low, middle), self._root(middle, high))
        return known

    def _split(self, low: int, high: int) -> int:
        """Find the position at which the first bit in which the labels differ becomes 1."""
        bit = (self.places[low] ^ self.places[high - 1]).bit_length() - 1
        return bisect_left(self.places, self.places[high - 1] >> bit << bit, low, high)


def _above(left: bytes | None, right: bytes | None) -> bytes | None:
    return node_hash(left, right) if left is not None and right is not None else left or right


def _prefix(where: int) -> int:
    return where >> (8 * HASH_SIZE - _DEPTH)


class LabelPath(NamedTuple):
    """A label's leaf, and what leads from it to the root."""

    leaf: bytes
    siblings: tuple[bytes, ...]
    sides: str


class StateView:
    """An index state: its root, and proofs of its labels.

    Parameters
    ----------
    levels : list of lists
        Hashes by level, the buckets' roots first.
    buckets : callable
        Returns buckets by their prefixes.
    """

    def __init__(self, levels: Levels, buckets: Callable[[Collection[int]], Mapping[int, Bucket]]) -> None:
        self._levels = levels
        self._buckets = buckets

    @classmethod
    def of(cls, leaves: Mapping[int, bytes]) -> StateView:
        """Return the state of these leaves, given by place, in memory."""
        return cls(_empty(), lambda prefixes: dict.fromkeys(prefixes, Bucket([], []))).with_changes(leaves)

    @property
    def root(self) -> bytes:
        """The root hash."""
        return self._levels[_DEPTH][0] or EMPTY_ROOT

    def paths(self, places: Sequence[int]) -> list[LabelPath]:
        """Return the paths from the labels at some places to the root; CorruptFile if a place has no label."""
        buckets = self._buckets({_prefix(where) for where in places})
        return [self._path(buckets[_prefix(where)], where) for where in places]

    def _path(self, bucket: Bucket, where: int) -> LabelPath:
        found = bucket.path(where)
        if found is None:
            raise CorruptFile("the index state lacks a label that the search found; delete the state file")
        leaf, siblings, sides = found
        prefix = _prefix(where)
        for level in self._levels[:_DEPTH]:
            if (sibling := level[prefix ^ 1]) is not None:
                siblings.append(sibling)
                sides += "L" if prefix & 1 else "R"
            prefix >>= 1
        return LabelPath(leaf, tuple(siblings), sides)

    def with_changes(self, changes: Mapping[int, bytes | None]) -> StateView:
        """Return a new state with leaves inserted, replaced, or (None) removed."""
        before, by_prefix = self._buckets, _by_prefix(changes)
        found = before(by_prefix)
        buckets = {prefix: found[prefix].changed(own) for prefix, own in by_prefix.items()}
        levels = [level.copy() for level in self._levels]
        _put_roots(levels, {prefix: bucket.root() for prefix, bucket in buckets.items()})
        return StateView(
            levels,
            lambda prefixes: {**before([one for one in prefixes if one not in buckets]), **buckets},
        )


class StateTree:
    """The current state, in a file.

    Parameters
    ----------
    path : Path
        Created if missing.

    Raises
    ------
    CorruptFile
        If the file is not what this class wrote; the message says to delete it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from carag.audit.state.proof import Label, StateProof, place
    >>> label, key = Label("0000000000-26-000001:00000", bytes(32), 0x0800_0001), bytes(32)
    >>> with tempfile.TemporaryDirectory() as home:
    ...     tree = StateTree(pathlib.Path(home) / "index.state")
    ...     tree.apply({place(key, label.chunk, label.since): label.leaf(key)}, {"known": "5"})
    ...     [path] = tree.view().paths([place(key, label.chunk, label.since)])
    ...     proof = StateProof(0, label.seal(key), path.siblings, path.sides)
    ...     proved = proof.root(label.chunk, bytes(32), 0x0800_0001)
    ...     proved == tree.view().root, tree.note("known")
    ...     tree.close()
    (True, '5')
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._levels = _empty()
        try:  # readable only by its owner, like the store, whose key maps labels to places
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except IsADirectoryError as error:
            raise CorruptFile(f"{path} is a directory; delete it to have it rebuilt") from error
        except OSError as error:
            raise CaragError(
                f"cannot open {path}: {error.strerror}; check the path and its permissions"
            ) from error
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._load()
        except sqlite3.Error as error:
            self._db.close()
            raise CorruptFile(f"{path} is damaged: {error}; delete it to have it rebuilt") from error
        except CorruptFile:
            self._db.close()
            raise

    def note(self, name: str) -> str | None:
        """Return a note that was stored with the last change, or None."""
        rows = self._rows("SELECT value FROM note WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    def view(self) -> StateView:
        """Return the present state. Its root does not change; its proofs are valid until the next change."""
        return StateView(self._levels, self._buckets)

    def apply(self, changes: Mapping[int, bytes | None], notes: Mapping[str, str]) -> None:
        """Insert, replace or (None) remove leaves, and store notes, in one transaction.

        Raises CaragError if the file cannot be written; the state is unchanged, and is updated from the store later.
        """
        with self._lock:
            rows, roots, by_prefix = [], {}, _by_prefix(changes)
            buckets = self._buckets(by_prefix)
            for prefix, own in by_prefix.items():
                bucket = buckets[prefix].changed(own)
                roots[prefix] = bucket.root()
                rows.append((prefix, bucket.to_bytes()))
            levels = [level.copy() for level in self._levels]
            _put_roots(levels, roots)
            kept = {**notes, "root": (levels[_DEPTH][0] or EMPTY_ROOT).hex()}
            with self._writing() as db:
                db.executemany("INSERT OR REPLACE INTO bucket VALUES (?, ?)", rows)
                stored = ((prefix, root or b"") for prefix, root in roots.items())
                db.executemany("INSERT OR REPLACE INTO root VALUES (?, ?)", stored)
                db.executemany("INSERT OR REPLACE INTO note VALUES (?, ?)", kept.items())
            self._levels = levels

    def clear(self) -> None:
        """Remove all labels and notes."""
        with self._lock:
            with self._writing() as db:
                db.execute("DELETE FROM root")
                db.execute("DELETE FROM bucket")
                db.execute("DELETE FROM note")
            self._levels = _empty()

    def close(self) -> None:
        """Close the file; idempotent."""
        with self._lock:
            self._db.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._db as db:  # commits, or rolls back
                db.execute("BEGIN IMMEDIATE")
                yield db
        except sqlite3.Error as error:
            raise CaragError(
                f"{self._path} cannot be written: {error}; free some space or check its permissions, and open again"
            ) from error

    def _load(self) -> None:
        # The file is derived from the store, so a power cut may lose the last change, but must not damage the file.
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", *_SCHEMA):
            self._db.execute(statement)
        stored = self._db.execute("SELECT prefix, hash FROM root")
        _put_roots(self._levels, {prefix % _BUCKETS: root or None for prefix, root in stored})
        if self.note("root") not in {None, self.view().root.hex()}:
            raise CorruptFile(
                f"{self._path}: its hashes do not lead to its root; delete it to have it rebuilt"
            )

    def _buckets(self, prefixes: Collection[int]) -> dict[int, Bucket]:
        query = "SELECT prefix, labels FROM bucket WHERE prefix IN (SELECT value FROM json_each(?))"
        stored = dict(self._rows(query, str(list(prefixes))))
        found = {}
        for prefix in prefixes:
            found[prefix] = bucket = Bucket.from_bytes(stored.get(prefix, b""))
            if bucket.root() != self._levels[0][prefix]:
                raise CorruptFile(f"{self._path}: bucket {prefix} was altered; delete it to have it rebuilt")
        return found

    def _rows(self, query: str, key: str) -> list[Any]:
        try:
            with self._lock:
                return self._db.execute(query, (key,)).fetchall()
        except sqlite3.ProgrammingError as error:
            raise InvalidArgument(f"{self._path} is closed; open the store again") from error
        except sqlite3.DatabaseError as error:
            raise CorruptFile(
                f"{self._path} cannot be read: {error}; delete it to have it rebuilt"
            ) from error


def _empty() -> Levels:
    return [[None] * (_BUCKETS >> level) for level in range(_DEPTH + 1)]


def _put_roots(levels: Levels, roots: Mapping[int, bytes | None]) -> None:
    """Set the roots of buckets and every hash above them."""
    for prefix, root in roots.items():
        levels[0][prefix] = root
    changed: Iterable[int] = roots
    for below, level in pairwise(levels):
        changed = {prefix >> 1 for prefix in changed}
        for n in changed:
            level[n] = _above(below[2 * n], below[2 * n + 1])


def _by_prefix(changes: Mapping[int, bytes | None]) -> dict[int, dict[int, bytes | None]]:
    found: dict[int, dict[int, bytes | None]] = {}
    for where, leaf in changes.items():
        found.setdefault(_prefix(where), {})[where] = leaf
    return found
