"""Store the corpus in one SQLite file: documents, passages, labels and vectors, from which the index is built.

The store decides no label and computes no vector. Nothing is ever deleted, unless it is erased for good
(:mod:`carag.store.erasures`):

- A changed document is a new *version* with new passages and new keys. The old version stays, so that an answer
  which cited it can be replayed word for word; its labels are closed, so no policy admits it again.
- A *label* states which word a passage has, between which minutes, and between which instants the store knew this. When
one document affects another, labels are closed and others opened in the same transaction, so these rows answer what
held on any day, as known on any other day. A label's key is the index's key, and is never reused.
- Every transaction that changes rows increments the *epoch*, and becomes known at a microsecond that no other has.

A write is one transaction, synced before it returns: after a crash, a document is stored either whole or not at all.
"""

from __future__ import annotations

import os
import threading
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from carag.errors import CorruptFile, InvalidArgument, StoreLocked
from carag.limits import quoted
from carag.policy import NOBODY
from carag.store import _by_label as by_label
from carag.store import _rows as rows
from carag.store._audiences import Audiences, spelled
from carag.store._entity_sets import EntitySets
from carag.store._label_history import system_clock
from carag.store._notes import Notes
from carag.store._schema import connect, create_or_check, translating
from carag.store._transaction import Transaction
from carag.store.documents import StoredDocuments
from carag.store.erasures import Erasures
from carag.store.groups import Groups
from carag.store.labels import StoredLabels
from carag.store.values import (
    EVER,
    Change,
    StoredChunk,
    StoredLabel,
    check_integer,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from carag.labelling.labelled import LabelledDocument, LabelledPassage
    from carag.policy import Audience, Identity, Policy, Where


class CorpusStore(Notes):
    """An open store file, for reading and writing; open it with :meth:`open`.

    Safe to share between threads. Long reads run on a separate snapshot, which writes do not change.
    """

    def __init__(
        self, path: Path, connection: sqlite3.Connection | None, *, timeout: float, clock: Callable[[], int]
    ) -> None:
        self.path = path
        self._clock = clock
        self._connection: sqlite3.Connection | None = connection
        self._timeout = timeout
        self._sets = EntitySets(path)
        self._audiences = Audiences(path)
        self.documents = StoredDocuments(path, self._reading, self._snapshot)
        self.labels = StoredLabels(path, self._reading, self._snapshot)
        self.groups = Groups(path, self._reading, self._writing, clock)
        self.erasures = Erasures(self._reading, self._erasing, clock)
        self._lock = threading.RLock()

    # --- opening and closing ---

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        timeout: float = 5.0,
        clock: Callable[[], int] = system_clock,
    ) -> Self:
        """Open a store, or create an empty one that only its owner can read.

        Raises InvalidArgument if the file is missing and ``create`` is false; CorruptFile if it is not a store, is
        damaged, or has another schema version; StoreLocked if another writer holds it for longer than the timeout.

        Parameters
        ----------
        create : bool
            Whether to create a missing file.
        timeout : float
            Seconds to wait for another writer's transaction.
        clock : callable
            Returns microseconds since 1970: when a transaction becomes known.
        """
        path = Path(path)
        if not create and not path.exists():
            raise InvalidArgument(f"there is no store at {path}; ingest a corpus first, or check the path")
        with translating(path):
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            connection = connect(path, timeout=timeout)
            try:
                create_or_check(connection, path, create=create)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, timeout=timeout, clock=clock)

    def close(self) -> None:
        """Close the file; idempotent."""
        with self._lock, translating(self.path):
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- writing ---

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Open a transaction: all documents put in it are stored, and become known, together or not at all.

        Raises InvalidArgument if documents were put and :meth:`Transaction.relabel` was not called; StoreLocked if
        another writer holds the store.
        """
        with self._writing() as sql:
            transaction = Transaction(sql, clock=self._clock)
            yield transaction
            transaction.check_settled()

    def put(
        self, document: LabelledDocument, passages: Sequence[LabelledPassage], vectors: NDArray[np.float32]
    ) -> Change:
        """Store a document that has no effect on others, in a transaction of its own; see :meth:`Transaction.put`."""
        with self.writing() as transaction:
            transaction.put([(document, passages)], vectors)
            return transaction.relabel()

    # --- reading: passages and documents ---

    def chunk(self, chunk_id: str, *, as_of: int | None = None, known_at: int | None = None) -> StoredChunk:
        """Return a passage by its id, even one from a superseded version, with one of its labels.

        Raises InvalidArgument if there is no such passage, or there was none at ``known_at``; CorruptFile if the text
        does not have the stored hash.

        Parameters
        ----------
        as_of : int, optional
            Minutes since 1970: the label that holds at this time, or the first label if none holds yet; if absent, the
            last label.
        known_at : int, optional
            Microseconds since 1970: the label as the store knew it at this time, by default now. The word of a passage
            that was superseded by then carries the tombstone.
        """
        until = EVER if known_at is None else known_at
        query = f"{rows.SELECT_CHUNK} WHERE chunk_id = ? AND known_from <= ? ORDER BY valid_from"
        with self._reading() as sql:
            found = sql.execute(query, (chunk_id, until)).fetchall()
        if not found:
            raise InvalidArgument(
                f"there is no passage {quoted(chunk_id)} in {self.path}; give an id as a citation shows it"
            )
        return rows.stored_chunk(rows.holding(found, as_of, until), self.path, known_at=known_at)

    def chunks(
        self, keys: Sequence[int] | NDArray[np.int64], *, known_at: int | None = None
    ) -> list[StoredChunk]:
        """Return the passages of some labels, in the order of the keys.

        The word of a label closed by ``known_at`` (microseconds since 1970) carries the tombstone; if ``known_at`` is
        absent, that of any closed label does. Raises InvalidArgument if a key is unknown, CorruptFile if a text does
        not have the stored hash.
        """
        wanted = [check_integer(key, "key") for key in keys]
        with self._reading() as sql:
            found = by_label.chunks(sql, wanted, self.path, known_at=known_at)
        return [found[key] for key in wanted]

    def chunks_and_labels(
        self, keys: Sequence[int], beside: Sequence[int], as_of: int, *, closed_by: int | None, known_at: int
    ) -> tuple[list[StoredChunk], dict[int, StoredLabel]]:
        """Return some passages as :meth:`chunks` does at ``closed_by``, and others as ``labels.as_of`` does.

        The latter are returned by key, and their texts are not read.
        """
        with self._reading() as sql:
            found, labels = by_label.chunks_and_labels(
                sql, keys, beside, as_of, self.path, closed_by=closed_by, known_at=known_at
            )
        return [found[key] for key in keys], labels

    # --- reading: rows for the index and the audit log ---

    def expanded(self, policy: Policy, where: Where, identity: Identity = NOBODY) -> Policy:
        """Replace a policy's lists of CIKs, and a narrowing, by the entity numbers that the rows of an index carry.

        A deny list gets every set with a member on it; an allow list every set that the policy admits. A narrowing
        becomes an allow list of every set that both admit. The policy also gets the audiences that ``identity`` belongs
        to, unless it admits any.
        """
        with self._reading() as sql:
            if identity.denied and not policy.any_audience:
                policy = policy.with_audiences(self._audiences.admitted(sql, identity))
            return self._sets.expanded(sql, policy, where)

    def spelled(self, principals: Iterable[str]) -> dict[str, str]:
        """Return the spellings that the store knows of some principals, by :func:`one_spelling` of each."""
        with self._reading() as sql:
            return spelled(sql, principals)

    def audience(self, number: int) -> Audience:
        """Return the audience of a number that labels carry; CorruptFile if the store does not have it."""
        with self._reading() as sql:
            return self._audiences.of(sql, number)

    def known(self, at: int | None = None) -> int:
        """Return the microsecond of the last change, or of the last change by an instant; -1 if there was none yet."""
        until = EVER if at is None else at
        return self._number("SELECT coalesce(max(known_at), -1) FROM changes WHERE known_at <= ?", until)

    def vectors_of(self, hashes: Iterable[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the stored vectors of texts, by the SHA-256 of each text, its heading included."""
        with self._reading() as sql:
            return rows.vectors_of(sql, hashes, self.path)

    @property
    def dim(self) -> int | None:
        """Length of the stored vectors; None before the first."""
        with self._reading() as sql:
            return rows.dim(sql)

    @property
    def epoch(self) -> int:
        """The number of transactions that have changed rows or labels."""
        return self._number("SELECT value FROM meta WHERE name = 'epoch'")

    # --- other processes ---

    places: tuple[str, ...] = ("corpus.db",)
    """Codes of what :meth:`purge` writes again."""

    @property
    def beyond(self) -> tuple[str, ...]:
        """Codes of what may hold erased rows, and is beyond its reach."""
        return ()

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write; never for a file."""
        return False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let one process at a time do what takes more than one transaction."""
        yield

    # --- transactions ---

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, translating(self.path):
            if self._connection is None:
                raise InvalidArgument(f"the store {self.path} is closed; open it again")
            yield self._connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as sql:
            sql.execute("BEGIN IMMEDIATE")
            try:
                yield sql
                sql.execute("COMMIT")
            finally:
                if sql.in_transaction:
                    sql.execute("ROLLBACK")

    @contextmanager
    def _erasing(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that may erase, in a transaction; what was read before is forgotten after it."""
        with self._writing() as sql:
            yield sql
        self.forget()

    def forget(self) -> None:
        """Forget what was read before an erasure."""
        self._sets, self._audiences = EntitySets(self.path), Audiences(self.path)

    @contextmanager
    def administered(self, admin: str | None) -> Iterator[None]:
        """Let documents be erased, over the connection of an administrator if the store is on a server.

        Raises InvalidArgument if an address is given, and a file needs none.
        """
        if admin is not None:
            raise InvalidArgument(f"{self.path} is a file, which needs no administrator; leave admin out")
        yield

    def purge(self) -> None:
        """Write the file again without the remains of what was erased, which free pages and journal may hold.

        Raises StoreLocked if another connection reads the store meanwhile; the remains are then still there.
        """
        # A connection of its own, so that questions are answered meanwhile.
        with translating(self.path), closing(connect(self.path, timeout=self._timeout)) as sql:
            sql.execute("VACUUM")
            busy, *_ = sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StoreLocked(
                f"{self.path} is being read by another program, so its journal still has what was erased; end that "
                "program and open the store again, which finishes the erasure"
            )

    def _noting(self) -> AbstractContextManager[sqlite3.Connection]:
        return self._writing()

    def _snapshot(self, query: str, parameters: Any = ()) -> Iterator[Any]:
        """Stream rows over a separate connection."""
        with self._reading():
            connection = connect(self.path, timeout=self._timeout)
        try:
            with translating(self.path):
                yield from connection.execute(query, parameters)
        finally:
            connection.close()

    def _number(self, query: str, *parameters: int) -> int:
        with self._reading() as sql:
            for (number,) in sql.execute(query, parameters):
                return int(number)
        raise CorruptFile(f"{self.path} lacks a row; restore a backup, or delete it and ingest again")
