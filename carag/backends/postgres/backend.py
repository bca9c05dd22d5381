"""Keep vectors in PostgreSQL with pgvector, with transactions, exact counts, and every epoch that there ever was.

A batch is one transaction, under a lock on its collection, and moves the epoch last; a search is one read-only
transaction, so that epoch, count and rows come from one snapshot. Exact plans read every admissible row; the graph
walks until enough rows pass, and promises a recall (:data:`RECALL`), not exactness; it is not walked if few rows are
admissible. If its list is short, the search is repeated exactly, in the same snapshot.

There is no certified plan: the pages that PostgreSQL reads also hold inadmissible rows, and its planner's statistics
include them.

Rows that ended are kept for earlier epochs until :meth:`PostgresBackend.purge`; nothing is removed automatically.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.backends.loads import load_is_open
from carag.backends.postgres import statements as sql
from carag.backends.postgres.link import PostgresLink
from carag.backends.postgres.loads import PostgresLoads
from carag.backends.postgres.place import (
    check_batch,
    check_dim,
    dim_of,
    lock_epoch,
    make_place,
    open_place,
    read_place,
)
from carag.backends.postgres.schema import FOREVER, GONE, let_use, make_graph
from carag.backends.postgres.wire import copy_blocks, rows_from
from carag.backends.protocol import Capabilities, Found, IndexState, ShardState
from carag.errors import BackendUnavailable, InvalidArgument
from carag.index import Plan
from carag.limits import check_label, quoted
from carag.postgres.address import driver, taken_out
from carag.postgres.freed import BEYOND, STATISTICS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from carag.backends.postgres.place import PostgresCollection
    from carag.backends.protocol import Admitted, Rows


DEFAULT_COLLECTION: Final = "carag"
DEFAULT_SCHEMA: Final = "carag_vectors"
RECALL: Final = 0.9
"""Least mean recall@10 of the graph plan, by tests/backends/conformance.py on 3,000 rows, clustered or not. On many
more rows without structure it is lower: measure yours, or use the exact plan.
"""
_WIDTH: Final = 400
"""How many rows a walk of the graph keeps: ``hnsw.ef_search``."""
_LINKS: Final = 16
_BUILD_WIDTH: Final = 128
_MOST_MB: Final = 2**21 - 1
"""Largest ``maintenance_work_mem``, in megabytes."""
_EXACT_ROWS: Final = 20_000
"""Admissible rows up to which scoring all of them is faster than a walk, measured at 20,000 x 384."""
_LEAST_SHARE: Final = 0.1
"""Share of all rows that must be admissible for a walk; below it, all admissible rows are scored, whichever plan was
requested. A walk ends once it has met enough admissible rows, near or not: at 1,000,000 x 128 its recall was 0.98 if a
fifth of the rows were admissible, 0.91 for a twentieth and 0.66 for a hundredth, and from a fifth down, scoring took no
longer.
"""
_MOST_WORDS: Final = 10_000
"""Most words in one search: on 6,668 rows, this many took 41 ms and ten times as many took half a second."""


class PostgresBackend(PostgresLoads):
    """A collection of vectors in a PostgreSQL database.

    Parameters
    ----------
    dsn : str
        Such as ``postgresql://carag_app@db.example/vectors``; the rest comes from libpq's environment. To another
        machine TLS and a verified certificate are required, unless ``sslmode`` says otherwise.
    collection : str, optional
        Usually a tenant: part of every key and of every statement. By default, the one in the address,
        ``?collection=NAME``, or ``carag``.
    dim : int, optional
        Length of every vector, at most 2,000; by default that of the first batch.
    schema : str
        The schema that holds the tables, which are created if they are missing and the account may create them.
    timeout : float
        Seconds for a transaction.
    connections : int
        Most connections at once.

    Raises
    ------
    BackendUnavailable
        If the database cannot be reached or used.
    InvalidArgument
        If an argument is not valid, or the collection has vectors of another length.
    MissingExtra
        If psycopg is not installed.
    """

    def __init__(
        self,
        dsn: str,
        *,
        collection: str | None = None,
        dim: int | None = None,
        schema: str = DEFAULT_SCHEMA,
        timeout: float = 30.0,
        connections: int = 16,
    ) -> None:
        url, values = taken_out(dsn, "collection")
        named = values[-1] if values else None
        if collection is not None and named not in (None, collection):
            raise InvalidArgument(
                f"the address names the collection {quoted(named)}, but collection is {quoted(collection)}; use one"
            )
        self._collection = name = collection or named or DEFAULT_COLLECTION
        check_label("collection", name)
        self._link = PostgresLink(url, schema, timeout=timeout, most=connections)
        try:
            self._place = self._link.write(lambda db: open_place(db, schema, name, dim))
        except BaseException:
            self._link.close()
            raise

    def __repr__(self) -> str:
        return f"<PostgresBackend {self._place.version}, {self._collection!r}>"

    @property
    def capabilities(self) -> Capabilities:
        """What the backend promises."""
        has_graph = self._place.has_graph
        return Capabilities(
            plans=frozenset({Plan.AUTO, Plan.EXACT, Plan.GRAPH} if has_graph else {Plan.EXACT}),
            exact_count=True,
            read_your_writes=True,
            atomic_batches=True,
            replay_by_epoch=True,
            recall=RECALL if has_graph else None,
            most_words=_MOST_WORDS,
            server_side_policy=self._place.is_fenced,
        )

    @property
    def beyond(self) -> tuple[str, ...]:
        """Codes of what may still hold deleted rows; only the tables' owner writes the server's pages again."""
        own = () if self._place.is_owner else ("postgresql-pages",)
        return (*BEYOND, *own, *(() if self._place.is_superuser else (STATISTICS,)))

    def close(self) -> None:
        """See :class:`~carag.backends.VectorBackend`."""
        self._link.close()

    # ------------------------------------------------------------ change

    def add(self, rows: Rows, *, batch: str) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        return self._change(batch, _distinct(rows.keys), lambda db, epoch: self._put(db, rows, epoch))

    def relabel(self, keys: Sequence[int], words: Sequence[int], *, batch: str) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        wanted = _distinct(keys)
        given = _whole("words", words, 2**32 - 1)
        if len(given) != len(wanted):
            raise InvalidArgument(f"got {len(wanted)} keys and {len(given)} words; want one word per key")

        def make(db: Any, epoch: int) -> None:
            self._end(db, wanted, epoch)
            db.execute(sql.RELABEL, {"c": self._place.id, "keys": wanted, "words": given, "epoch": epoch})

        return self._change(batch, wanted, make)

    def delete(self, keys: Sequence[int], *, batch: str) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        wanted = _distinct(keys)

        def make(db: Any, epoch: int) -> None:
            self._end(db, wanted, epoch)
            db.execute(
                "DELETE FROM live WHERE collection = %(c)s AND key = ANY(%(keys)s::bigint[])",
                {"c": self._place.id, "keys": wanted},
            )

        return self._change(batch, wanted, make)

    def build_graph(self, *, memory_mb: int | None = None) -> None:
        """Build the graph over all rows, which makes the graph plan available; only the tables' owner may do so.

        Rows added later enter the graph one at a time, which takes longer, so build it after the first load. Writers
        wait meanwhile, and there is no time limit.

        Parameters
        ----------
        memory_mb : int, optional
            Megabytes for the build, by default ``maintenance_work_mem``. What does not fit is built on disk, several
            times slower: a row takes four bytes per coordinate and about 500 for its links.

        Raises
        ------
        InvalidArgument
            If there are no rows, or ``memory_mb`` is not valid.
        """
        if memory_mb is not None and not (type(memory_mb) is int and 1 <= memory_mb <= _MOST_MB):
            raise InvalidArgument(
                f"memory_mb is {quoted(memory_mb)}; want 1 to {_MOST_MB:,} megabytes, or None"
            )

        def build(db: Any) -> PostgresCollection:
            if memory_mb is not None:
                db.execute("SELECT set_config('maintenance_work_mem', %s, true)", (f"{memory_mb}MB",))
            dim = self._dim(db)
            if dim is None:
                raise InvalidArgument("there are no rows to build a graph from; add rows first")
            make_graph(db, self._place.id, dim, _LINKS, _BUILD_WIDTH)
            return read_place(db, self._collection)

        self._place = self._link.unhurried(build)

    def purge(self) -> None:
        """Delete the rows that ended, and with them all earlier epochs; the tables' owner also writes the tables again.

        Readers and writers wait meanwhile, and there is no time limit; a graph is built again. Raises StoreLocked if an
        earlier transaction may still read the deleted rows.
        """

        def delete(db: Any) -> bool:
            place = {"c": self._place.id, "epoch": lock_epoch(db, self._place.id), "gone": GONE}
            try:
                db.execute("DELETE FROM past WHERE collection = %(c)s", place)
                db.execute(
                    "UPDATE change SET rows = %(gone)s WHERE collection = %(c)s AND epoch < %(epoch)s", place
                )
            except driver().errors.InsufficientPrivilege:
                raise BackendUnavailable(
                    "the account may not delete rows that ended; have the owner of the tables let it use the "
                    "collection again, with let_use()"
                ) from None
            return self._dim(db) is not None

        if self._link.unhurried(delete) and self._place.is_owner:
            self._link.free([f"live_{self._place.id}", "past", "change"])

    def let_use(self, account: str) -> None:
        """Let an existing account use this collection and see no other; only the tables' owner may do so.

        The length of vectors must be known, because the account cannot create tables.
        """
        check_label("account", account)

        def let(db: Any) -> None:
            if self._dim(db) is None:
                raise InvalidArgument(
                    "the length of the collection's vectors is not known yet; open it with dim"
                )
            let_use(db, self._link.schema, self._place.id, account)

        self._link.write(let)

    def _change(self, batch: str, keys: list[int], make: Callable[[Any, int], None]) -> IndexState:
        check_batch(batch)

        def work(db: Any) -> IndexState:
            last = lock_epoch(db, self._place.id)
            place = {"c": self._place.id, "batch": batch, "keys": keys, "epoch": last + 1}
            is_done, is_loading = db.execute(sql.IS_DONE, place).fetchone()
            if is_done:
                return self._state(db, None)
            if is_loading:
                raise load_is_open()
            make(db, last + 1)
            (more,) = db.execute(sql.WORDS, place).fetchone()
            db.execute(
                "UPDATE word SET e1 = %(epoch)s WHERE collection = %(c)s AND e1 = %(forever)s AND rows = 0",
                {**place, "forever": FOREVER},
            )
            db.execute(
                "INSERT INTO change (collection, epoch, batch, rows) SELECT %(c)s, %(epoch)s, %(batch)s, "
                "rows + %(more)s FROM change WHERE collection = %(c)s AND epoch = %(epoch)s - 1",
                {**place, "more": more},
            )
            db.execute("UPDATE collection SET epoch = %(epoch)s WHERE id = %(c)s", place)
            return self._state(db, None)

        return self._link.write(work)

    def _end(self, db: Any, keys: list[int], epoch: int) -> None:
        place = {"c": self._place.id, "keys": keys, "epoch": epoch}
        if db.execute(sql.END, place).rowcount != len(keys):
            (unknown,) = db.execute(sql.UNKNOWN, place).fetchone()
            raise InvalidArgument(f"key {unknown} is unknown; nothing was changed")

    def _put(self, db: Any, rows: Rows, epoch: int) -> None:
        keys = _distinct(rows.keys)
        if rows.vectors.ndim != 2 or any(len(column) != len(keys) for column in rows):
            raise InvalidArgument(
                f"rows have columns of shapes {[column.shape for column in rows]}; want one entry per row"
            )
        if self._dim(db) is None:
            make_place(db, self._place.id, rows.vectors.shape[1])
        check_dim(rows.vectors.shape[1], self._dim(db))
        (taken,) = db.execute(sql.TAKEN, {"c": self._place.id, "keys": keys}).fetchone()
        if taken is not None:
            raise InvalidArgument(f"key {taken} is in use; delete its row first, or relabel it")
        self._copy(db, rows, epoch)

    def _copy(self, db: Any, rows: Rows, epoch: int) -> None:
        columns = "collection, key, e0, word, public_at, expires_at, entity, audience, v"
        into = "live"
        if self._place.is_fenced:  # COPY into a table with row-level security is refused
            db.execute("CREATE TEMPORARY TABLE staged (LIKE live) ON COMMIT DROP")
            into = "pg_temp.staged"
        with db.cursor().copy(f"COPY {into} ({columns}) FROM STDIN (FORMAT binary)") as copy:
            for block in copy_blocks(rows, self._place.id, epoch):
                copy.write(block)
        if self._place.is_fenced:
            db.execute(f"INSERT INTO live ({columns}) SELECT {columns} FROM pg_temp.staged")  # noqa: S608 - ours

    # ------------------------------------------------------------ read

    def search(
        self, queries: NDArray[np.float32], k: int, admitted: Admitted, *, plan: Plan, at: int | None = None
    ) -> Found:
        """See :class:`~carag.backends.VectorBackend`."""
        if plan not in self.capabilities.plans:
            known = ", ".join(sorted(self.capabilities.plans))
            raise InvalidArgument(f"PostgreSQL has no plan {quoted(plan)} here; want one of {known}")

        def work(db: Any) -> Found:
            state = self._state(db, at)
            check_dim(queries.shape[1], self._dim(db))
            bound = sql.parameters(self._place.id, state.epoch, admitted)
            questions = [{**bound, "q": query, "k": k} for query in queries]
            least = max(_LEAST_SHARE * state.shards[0].rows, _EXACT_ROWS + 1 if plan is Plan.AUTO else 0)
            ran, admissible, lists = Plan.EXACT, 0, []
            may_walk = plan is not Plan.EXACT and db.execute(sql.AT_MOST, bound).fetchone()[0] >= least
            if may_walk or not questions:
                (admissible,) = db.execute(sql.count(admitted), bound).fetchone()
            if may_walk and admissible >= least:
                ran = Plan.GRAPH
                db.execute(*sql.graph_settings(max(_WIDTH, min(2 * k, 1000))))
                lists = [_walked(db, admitted, asked, admissible) for asked in questions]
            else:
                for asked in questions:
                    found, admissible = _scored(db, admitted, asked)
                    lists.append(found)
            return _found(lists, k, queries.shape[1], admissible, ran, state)

        return self._link.read(work)

    def count(self, admitted: Admitted, *, at: int | None = None) -> int:
        """See :class:`~carag.backends.VectorBackend`."""

        def work(db: Any) -> int:
            bound = sql.parameters(self._place.id, self._state(db, at).epoch, admitted)
            return int(db.execute(sql.count(admitted), bound).fetchone()[0])

        return self._link.read(work)

    def get(self, keys: Sequence[int], *, at: int | None = None) -> Rows:
        """See :class:`~carag.backends.VectorBackend`."""
        wanted = _whole("keys", keys, 2**63 - 1)

        def work(db: Any) -> Rows:
            place = {"c": self._place.id, "at": self._state(db, at).epoch, "keys": wanted}
            found = db.execute(sql.rows_of_keys(), place, binary=True).fetchall()
            return rows_from(found, self._dim(db) or 0)

        return self._link.read(work)

    def state(self) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        return self._link.read(lambda db: self._state(db, None))

    def _state(self, db: Any, at: int | None) -> IndexState:
        row = db.execute(sql.STATE, {"c": self._place.id, "at": at}).fetchone()
        if row is None:
            if at is None:
                raise BackendUnavailable(f"the collection {quoted(self._collection)} is gone; open it again")
            raise InvalidArgument(
                f"epoch {quoted(at)} does not exist yet; the last is {self._state(db, None).epoch}"
            )
        epoch, where, rows, words = row
        if rows == GONE:
            raise BackendUnavailable(
                f"epoch {epoch} is gone, because ended rows were deleted since; ask again"
            )
        shard = ShardState(self._place.shard, where, rows)
        return IndexState(self._place.version, self._collection, epoch, tuple(words), (shard,))

    def _dim(self, db: Any) -> int | None:
        if self._place.dim is not None:
            return self._place.dim
        found = dim_of(db, self._place.id)  # another process may have added the first batch
        if db.read_only:  # a writer's transaction may still be rolled back
            self._place = self._place._replace(dim=found)
        return found


def _scored(db: Any, admitted: Admitted, asked: dict[str, Any]) -> tuple[list[tuple[Any, ...]], int]:
    """Find the nearest of all admissible rows, and their number."""
    found = db.execute(sql.exact(admitted), asked, binary=True).fetchall()
    return [row[:-1] for row in found], found[0][-1] if found else 0


def _walked(db: Any, admitted: Admitted, asked: dict[str, Any], admissible: int) -> list[tuple[Any, ...]]:
    """Find near rows by the graph, or the nearest exactly if its list is short."""
    found = db.execute(sql.graph(admitted, len(asked["q"])), asked, binary=True).fetchall()
    if len(found) < min(asked["k"], admissible):
        return _scored(db, admitted, asked)[0]
    return sorted(found, key=lambda row: (-row[-1], row[0]))[: asked["k"]]


def _found(
    lists: list[list[tuple[Any, ...]]], k: int, dim: int, admissible: int, ran: Plan, state: IndexState
) -> Found:
    keys = np.full((len(lists), k), -1, np.int64)
    scores = np.full((len(lists), k), -np.inf, np.float32)
    rows: dict[int, tuple[Any, ...]] = {}
    for query, found in enumerate(lists):
        keys[query, : len(found)] = [row[0] for row in found]
        scores[query, : len(found)] = [row[-1] for row in found]
        rows.update((row[0], row[:-1]) for row in found)
    return Found(keys, scores, rows_from(list(rows.values()), dim), admissible, ran, state)


def _distinct(keys: Sequence[int] | NDArray[np.int64]) -> list[int]:
    found = _whole("keys", keys, 2**63 - 1)
    if len(set(found)) < len(found):
        raise InvalidArgument("a key is named twice; name each row once")
    return found


def _whole(name: str, values: Sequence[int] | NDArray[Any], most: int) -> list[int]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidArgument(f"{name} are {array.dtype} of shape {array.shape}; want a list of integers")
    if array.size and not (int(array.min()) >= 0 and int(array.max()) <= most):
        raise InvalidArgument(f"{name} range from {array.min()} to {array.max()}; want 0 to {most}")
    return [int(value) for value in array]
