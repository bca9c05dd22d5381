"""Loads in PostgreSQL: rows are put among the live rows at once, for the next epoch, which nothing asks for.

A block is one transaction, under the collection's lock: its rows and the position of the load. So the position is right
even after a kill, and publishing changes only a few numbers, however many rows there are; it also has the server sample
some rows for its statistics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from carag.backends.loads import is_new, load_is_open, no_load
from carag.backends.postgres import statements as sql
from carag.backends.postgres.place import check_batch, lock_epoch
from carag.backends.postgres.wire import rows_from
from carag.errors import BackendUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.backends.postgres.link import PostgresLink
    from carag.backends.postgres.place import PostgresCollection
    from carag.backends.protocol import IndexState, Rows


class _Load(NamedTuple):
    epoch: int
    """The epoch that the load makes, unless it is published."""
    is_published: bool
    is_open: bool
    position: int
    words: Counter[int]


class PostgresLoads(ABC):
    """:class:`~carag.backends.PostgresBackend` as a :class:`~carag.backends.LoadingBackend`."""

    _link: PostgresLink
    _place: PostgresCollection

    @abstractmethod
    def _put(self, db: Any, rows: Rows, epoch: int) -> None:
        """Add rows that hold from an epoch."""

    @abstractmethod
    def _state(self, db: Any, at: int | None) -> IndexState:
        """Read what is known at an epoch."""

    @abstractmethod
    def _dim(self, db: Any) -> int | None:
        """Return the length of the vectors, if there are any."""

    def loaded(self, batch: str) -> int | None:
        """See :class:`~carag.backends.LoadingBackend`."""
        load = self._link.read(lambda db: self._load(db, batch))
        return None if load.is_published else load.position

    def load(self, rows: Rows, *, batch: str, begin: int, end: int) -> None:
        """See :class:`~carag.backends.LoadingBackend`."""

        def work(db: Any) -> None:
            lock_epoch(db, self._place.id)
            load = self._load(db, batch)
            if load.is_published:
                return
            if not load.is_open and begin > 0:
                raise no_load()
            if not is_new(load.position, begin, end):
                return
            self._put(db, rows, load.epoch)
            words = load.words + Counter(rows.words.tolist())
            noted = {"position": end, "words": list(words), "counts": list(words.values())}
            db.execute(sql.LOADED, {"c": self._place.id, "batch": batch, **noted})

        self._link.write(work)

    def count_loaded(self, batch: str) -> int:
        """See :class:`~carag.backends.LoadingBackend`."""

        def work(db: Any) -> int:
            place = {"c": self._place.id, "epoch": self._open(db, batch).epoch}
            counted = "SELECT count(*) FROM live WHERE collection = %(c)s AND e0 = %(epoch)s::bigint"
            return int(db.execute(counted, place).fetchone()[0])

        return self._link.unhurried(work)

    def get_loaded(self, keys: Sequence[int], *, batch: str) -> Rows:
        """See :class:`~carag.backends.LoadingBackend`."""

        def work(db: Any) -> Rows:
            place = {"c": self._place.id, "epoch": self._open(db, batch).epoch, "keys": list(map(int, keys))}
            found = db.execute(sql.loaded_rows(), place, binary=True).fetchall()
            return rows_from(found, self._dim(db) or 0)

        return self._link.read(work)

    def publish(self, batch: str) -> IndexState:
        """See :class:`~carag.backends.LoadingBackend`."""

        def work(db: Any) -> IndexState:
            lock_epoch(db, self._place.id)
            load = self._load(db, batch)
            if not load.is_published:
                if not load.is_open:
                    raise no_load()
                place = {"c": self._place.id, "epoch": load.epoch}
                db.execute(sql.LOADED_WORDS, place)
                db.execute(sql.LOADED_CHANGE, place)
                db.execute(
                    f"ANALYZE live_{self._place.id:d}"
                )  # otherwise the next searches would be planned as if the table were empty
                db.execute("UPDATE collection SET epoch = %(epoch)s WHERE id = %(c)s", place)
                db.execute("DELETE FROM loading WHERE collection = %(c)s", place)
            return self._state(db, None)

        return self._link.unhurried(work)

    def unload(self) -> None:
        """See :class:`~carag.backends.LoadingBackend`; without a time limit."""

        def work(db: Any) -> None:
            place = {"c": self._place.id, "epoch": lock_epoch(db, self._place.id) + 1}
            if db.execute("DELETE FROM loading WHERE collection = %(c)s", place).rowcount:
                db.execute("DELETE FROM live WHERE collection = %(c)s AND e0 = %(epoch)s::bigint", place)

        self._link.unhurried(work)

    def _open(self, db: Any, batch: str) -> _Load:
        load = self._load(db, batch)
        if not load.is_open:
            raise no_load()
        return load

    def _load(self, db: Any, batch: str) -> _Load:
        """Read a load; refuse if another load is open."""
        check_batch(batch)
        row = db.execute(sql.LOADING, {"c": self._place.id, "batch": batch}).fetchone()
        if row is None:
            raise BackendUnavailable("the collection is gone; open it again")
        epoch, is_published, name, position, words, counts = row
        if not is_published and name not in (None, batch):
            raise load_is_open()
        is_open = name == batch
        known = Counter(dict(zip(words, counts, strict=True))) if is_open else Counter()
        return _Load(epoch, is_published, is_open, position if is_open else 0, known)
