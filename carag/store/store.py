"""Store the corpus in one SQLite file: documents, passages, labels and vectors, from which the index is built.

The store decides no label and computes no vector. Nothing is ever deleted:

- A changed document is a new *version* with new passages and new keys. The old version stays, so that an answer
  which cited it can be replayed word for word; its labels are closed, so no policy admits it again.
- A *label* states which word a passage has from which minute to which, and from when to when the store knew this. When
  one document affects another, labels are closed and others opened in the same transaction; so these rows answer what
  held on any day, as known on any other day. A label's key is the index's key, and is never reused.
- Every transaction that changes rows increments the *epoch*, and becomes known at a microsecond that no other has.

A write is one transaction, synced before it returns: after a crash a document is stored whole or not at all.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from carag.errors import CorruptFile, InvalidArgument
from carag.limits import quoted
from carag.store import _by_label as by_label
from carag.store import _rows as rows
from carag.store._entity_sets import EntitySets
from carag.store._label_history import CLOSED_BETWEEN, OPENED_BETWEEN, history, linked_facts, system_clock
from carag.store._notes import Notes
from carag.store._schema import connect, create_or_check, translating
from carag.store._transaction import Transaction
from carag.store.values import (
    EVER,
    Change,
    Counts,
    Labels,
    StoredChunk,
    StoredDocument,
    StoredLabel,
    check_integer,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import ArrayLike, NDArray

    from carag.labelling.labelled import LabelledDocument, LabelledPassage
    from carag.policy import Policy, Where
    from carag.store.values import PastLabel

__all__ = ["CorpusStore"]


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
        """Return a passage by its id, also one of a superseded version, with one of its labels.

        Raises InvalidArgument if there is no such passage, or there was none at ``known_at``; CorruptFile if the text
        does not have the stored hash.

        Parameters
        ----------
        as_of : int, optional
            Minutes since 1970: the label that holds at this time, or the first if none does yet; the last if absent.
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

        The word of a label closed by ``known_at`` (microseconds since 1970) carries the tombstone; if that is absent,
        of any closed label. Raises InvalidArgument if a key is unknown, CorruptFile if a text does not have the stored
        hash.
        """
        wanted = [check_integer(key, "key") for key in keys]
        with self._reading() as sql:
            found = by_label.chunks(sql, wanted, self.path, known_at=known_at)
        return [found[key] for key in wanted]

    def chunks_and_labels(
        self, keys: Sequence[int], beside: Sequence[int], as_of: int, *, closed_by: int | None, known_at: int
    ) -> tuple[list[StoredChunk], dict[int, StoredLabel]]:
        """Return some passages as :meth:`chunks` does at ``closed_by``, and other labels as :meth:`labels_as_of` does.

        The latter are returned by key, and their texts are not read.
        """
        with self._reading() as sql:
            found, labels = by_label.chunks_and_labels(
                sql, keys, beside, as_of, self.path, closed_by=closed_by, known_at=known_at
            )
        return [found[key] for key in keys], labels

    def labels_as_of(
        self, keys: Sequence[int], as_of: int, *, known_at: int | None = None
    ) -> list[StoredLabel]:
        """Return, for each of some labels, the label of the same passage that :meth:`chunk` finds, in order of keys.

        Raises InvalidArgument if a key is unknown, CorruptFile if a label was altered in the file.
        """
        with self._reading() as sql:
            held = by_label.labels_as_of(sql, keys, as_of, self.path, known_at=known_at)
        return [held[key] for key in keys]

    def history(self, chunk_id: str) -> list[PastLabel]:
        """Return every label that a passage ever had, by when it was known, then by when it holds; empty if unknown."""
        with self._reading() as sql:
            return history(sql, chunk_id)

    def labels_of(self, passages: Sequence[int], *, known_at: int) -> list[tuple[int, StoredLabel]]:
        """Return the labels, with their keys, that were open at an instant on passages given by number."""
        with self._reading() as sql:
            return rows.open_labels(sql, passages, self.path, known_at=known_at)

    def label_at_or_after(
        self, chunk_id: str, *, as_of: int | None = None, known_at: int | None = None
    ) -> StoredLabel | None:
        """Return the label that :meth:`chunk` finds, or that of the next passage by id if this id does not exist.

        One row is read in either case, so the time taken does not reveal whether the passage exists. None if the
        passage found was not known at ``known_at``, or the store is empty.
        """
        until = EVER if known_at is None else known_at
        with self._reading() as sql:
            found = sql.execute(rows.SELECT_LABEL_AT_OR_AFTER, (until, chunk_id)).fetchall()
        held = rows.holding(found, as_of, until) if found else None
        return None if held is None else rows.stored_label(held, self.path, known_at=known_at)

    def document(self, document_id: str, *, version: int | None = None) -> StoredDocument:
        """Return a document's current version, or the given one; InvalidArgument if it is unknown."""
        wanted = "superseded_by_version IS NULL" if version is None else "version = :version"
        query = f"{rows.SELECT_DOCUMENT} WHERE accession_number = :id AND {wanted}"
        with self._reading() as sql:
            row = sql.execute(query, {"id": document_id, "version": version}).fetchone()
        if row is None:
            which = "" if version is None else f" in version {version}"
            raise InvalidArgument(
                f"there is no document {quoted(document_id)}{which} in {self.path}; check its id"
            )
        return rows.stored_document(row, self.path)

    def described(self, *, after: int = 0) -> Iterator[tuple[Any, ...]]:
        """Stream the columns of ``SELECT_DESCRIBED`` of every document with text and a row number above ``after``."""
        return self._snapshot(rows.SELECT_DESCRIBED, (after,))

    def content_hash(self, document_id: str) -> str | None:
        """Return the content hash of a document's current version, or None if it is not stored."""
        return self.content_hashes([document_id]).get(document_id)

    def content_hashes(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the content hashes of those of these documents that are stored, by id."""
        query = (
            "SELECT accession_number, content_hash FROM current_filings "
            "WHERE accession_number IN (SELECT CAST(value AS TEXT) FROM json_each(?))"
        )
        with self._reading() as sql:
            return dict(sql.execute(query, (json.dumps(list(ids)),)).fetchall())

    def facts_of(self, document_id: str) -> dict[str, Any] | None:
        """Return the facts of a document's current version, or None if it is not stored."""
        query = "SELECT facts FROM current_filings WHERE accession_number = ?"
        with self._reading() as sql:
            row = sql.execute(query, (document_id,)).fetchone()
        return None if row is None else dict(json.loads(row[0]))

    def linked_facts(self, document_id: str) -> list[dict[str, Any]]:
        """Return the facts of a document and of all that share a CIK, a name or an act with it."""
        with self._reading() as sql:
            return linked_facts(sql, document_id)

    def counts(self) -> Counts:
        """Count documents, passages, and quarantined documents by reason."""
        with self._reading() as sql:
            return rows.counts(sql)

    # --- reading: rows for the index and the audit log ---

    def expanded(self, policy: Policy, where: Where) -> Policy:
        """Replace a policy's lists of CIKs, and a narrowing, by the entity numbers that the rows of an index carry.

        A deny list gets every set with a member on it; an allow list every set that the policy admits. A narrowing
        becomes an allow list of every set that both admit.
        """
        with self._reading() as sql:
            return self._sets.expanded(sql, policy, where)

    def known(self, at: int | None = None) -> int:
        """Return the microsecond of the last change, or of the last one by an instant; -1 if there was none yet."""
        until = EVER if at is None else at
        return self._number("SELECT coalesce(max(known_at), -1) FROM changes WHERE known_at <= ?", until)

    def open_labels(self, *, after: int = -1, known_at: int | None = None) -> NDArray[np.int64]:
        """Return the keys, ascending, of the labels after a key that are open, or were at an instant."""
        query = f"SELECT label FROM labels WHERE label > :after AND {rows.open_at(known_at)}"  # noqa: S608
        return self._keys(query, {"after": after, "u": known_at})

    def labels_by(self, known_at: int) -> int:
        """Return the number of labels opened by an instant; their keys are those below it, without a gap."""
        return self._number(
            "SELECT CAST(coalesce(sum(opened), 0) AS BIGINT) FROM changes WHERE known_at <= ?", known_at
        )

    def closed_labels(self, *, after: int, until: int = EVER) -> NDArray[np.int64]:
        """Return the keys, ascending, of the labels closed after one instant and by another, in microseconds."""
        return self._keys("SELECT label FROM labels WHERE known_to > ? AND known_to <= ?", (after, until))

    def document_labels(self, document_id: str, *, known_at: int | None = None) -> NDArray[np.int64]:
        """Return the keys of one document's labels that are open, or were at an instant; empty if it is not stored."""
        query = (
            "SELECT label FROM labels JOIN chunks USING (key) JOIN filings USING (filing) "  # noqa: S608 - constants
            f"WHERE accession_number = :id AND {rows.open_at(known_at)}"
        )
        return self._keys(query, {"id": document_id, "u": known_at})

    def labels(self, keys: ArrayLike) -> Labels:
        """Return labels by their keys; InvalidArgument if a key is unknown, or the keys do not ascend."""
        return self._rows(keys, "", "labels")[0]

    def rows(self, keys: ArrayLike) -> tuple[Labels, NDArray[np.float32]]:
        """Return labels by their keys, and the vectors ``(n, dim)`` of their passages.

        Raises as :meth:`labels` does, and CorruptFile if the vectors differ in length.
        """
        labels, blobs = self._rows(keys, ", vector", "labels JOIN vectors USING (key)")
        sizes = {len(blob) for blob in blobs}
        if len(sizes) > 1 or (size := sizes.pop() if sizes else 0) % 4:
            raise CorruptFile(
                f"{self.path}: vectors from label {labels.keys[0]} on differ in length; restore a backup, or "
                "ingest into a new store"
            )
        vectors = np.frombuffer(b"".join(blobs), "<f4").reshape(-1, max(size // 4, 1)).astype(np.float32)
        return labels, vectors

    def words_of(self, keys: Iterable[int]) -> dict[int, int]:
        """Return the words of labels by key, closed ones with the tombstone; unknown keys are left out."""
        query = "SELECT label, word, known_to FROM labels WHERE label IN (SELECT value FROM json_each(?))"
        with self._reading() as sql:
            found = sql.execute(query, (json.dumps([*keys]),)).fetchall()
        return {label: rows.word_of(word, known_to, None) for label, word, known_to in found}

    def vectors_of(self, hashes: Iterable[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the stored vectors of texts, by the SHA-256 of each text, its heading included."""
        with self._reading() as sql:
            return rows.vectors_of(sql, hashes, self.path)

    def snapshot_rows(self, *, known_at: int | None = None) -> Iterator[tuple[str, bytes, int, int, int]]:
        """Stream ``(chunk id, SHA-256 of the text, word, valid from, valid to)`` of all open labels, in this order.

        Given ``known_at``, of those that were open at that microsecond.
        """
        return self._snapshot(
            "SELECT chunk_id, text_sha256, labels.word, valid_from, valid_to "  # noqa: S608 - constants
            f"FROM chunks JOIN labels USING (key) WHERE {rows.open_at(known_at)} ORDER BY chunk_id, valid_from",
            {"u": known_at},
        )

    def label_changes(self, since: int, until: int) -> Iterator[tuple[int, str, bytes, int, int, int]]:
        """Stream the labels closed, then those opened, after one instant and by another, both in microseconds.

        ``(1 if opened and still open, 0 if closed, chunk id, SHA-256 of the text, word, valid from, valid to)``; labels
        that were opened and closed again in between are left out.
        """
        for query in (CLOSED_BETWEEN, OPENED_BETWEEN):
            yield from self._snapshot(query, {"a": since, "b": until})

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

    def _keys(self, query: str, given: Any) -> NDArray[np.int64]:
        with self._reading() as sql:
            return np.array([label for (label,) in sql.execute(f"{query} ORDER BY label", given)], np.int64)

    def _rows(self, keys: ArrayLike, more: str, source: str) -> tuple[Labels, list[bytes]]:
        wanted = np.asarray(keys, np.int64).ravel()
        with self._reading() as sql:
            found = sql.execute(
                f"SELECT label, word, valid_from, valid_to, entity, key{more} FROM {source} "  # noqa: S608 - constants
                "WHERE label IN (SELECT value FROM json_each(?)) ORDER BY label",
                (json.dumps(wanted.tolist()),),
            ).fetchall()
        table = np.array([row[:6] for row in found], np.int64).reshape(-1, 6)
        if not np.array_equal(table[:, 0], wanted):
            raise InvalidArgument(f"labels are missing in {self.path}, or out of order; restore a backup")
        word, since, until, entity = (table[:, column].astype(np.uint32) for column in range(1, 5))
        labels = Labels(wanted, word, since, until, entity, table[:, 5])
        return labels, [row[6] for row in found if len(row) > 6]
