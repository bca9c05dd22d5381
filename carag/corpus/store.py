"""The corpus in one SQLite file: filings, passages, labels and vectors. The index derives from it.

The store keeps what it is given; it judges no label and computes no vector. Rows are only ever added:

- A changed filing is a new *version* with new passages and new keys. The old version stays, so that an answer
  which cited it can be replayed word for word; its labels get the tombstone, so no policy admits it again.
  Versions side by side in the same tables are the simplest shape that gives both: one look-up by chunk id
  serves old and new.
- A key is never reused, because no row is ever deleted: the next key is the greatest plus one.
- Every transaction that changes rows or labels raises the *epoch*. An index file that carries the store's
  epoch is current; any other is behind.

A write is one transaction, synced before it returns: after a kill there is all of a filing or none of it.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager
from itertools import chain, count, islice
from operator import index as as_int
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from carag.corpus import _rows as rows
from carag.corpus._schema import connect, create_or_check, translating
from carag.corpus.stored import (
    Counts,
    StoredChunk,
    StoredFiling,
    check_chunk,
    check_filing,
    check_integer,
    check_text,
    check_vectors,
    check_word,
)
from carag.errors import CorruptFile, InvalidArgument
from carag.policy import TOMBSTONE

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from numpy.typing import NDArray

__all__ = ["CorpusStore", "Counts", "Labels", "StoredChunk", "StoredFiling"]

Labels: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]"
"""Keys, words and public-at minutes, row by row."""


class CorpusStore:
    """One writer's or reader's hold on a store file; open it with :meth:`open`.

    Safe to share between threads. Long reads run on a snapshot of their own, which no write disturbs.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, *, timeout: float) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = connection
        self._timeout = timeout
        self._lock = threading.RLock()

    # --- opening and closing ---

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = True, timeout: float = 5.0) -> Self:
        """Open a store, or make an empty one that only its owner can read.

        Parameters
        ----------
        path : path
        create : bool
            Whether a missing file is made.
        timeout : float
            Seconds to wait for another writer's transaction.

        Raises
        ------
        InvalidArgument
            If the file is missing and not to be made.
        CorruptFile
            If it is no store, damaged, or of another schema version.
        StoreLocked
            If another writer holds it for longer than the timeout.
        """
        path = Path(path)
        if not create and not path.exists():
            raise InvalidArgument(f"no store at {path}; ingest a corpus first, or check the path")
        with translating(path):
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            connection = connect(path, timeout=timeout)
            try:
                create_or_check(connection, path, create=create)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, timeout=timeout)

    def close(self) -> None:
        """Let go of the file; a second close does nothing."""
        with self._lock, translating(self.path):
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- writing ---

    def put(
        self, filing: StoredFiling, chunks: Sequence[StoredChunk], vectors: NDArray[np.float32]
    ) -> NDArray[np.int64]:
        """Store a filing with all its passages, superseding an earlier version of it.

        Parameters
        ----------
        filing : StoredFiling
        chunks : sequence of StoredChunk
            In order over all documents; may be empty.
        vectors : (n, dim) float32
            One a chunk. Every put of a store has the same dim.

        Returns
        -------
        (n,) int64
            The passages' new keys.

        Raises
        ------
        InvalidArgument
            If anything given does not fit together, or a word carries no label; nothing is stored.
        StoreLocked
            If another writer holds the store.
        """
        check_filing(filing)
        for chunk in chunks:
            check_chunk(chunk)
        check_vectors(vectors, len(chunks))
        with self._writing() as sql:
            rows.check_dim(sql, vectors)
            version = rows.supersede(sql, filing.accession_number)
            row = rows.insert_filing(sql, filing, version)
            keys = rows.insert_chunks(sql, row, chunks, ids=_chunk_ids(filing.accession_number, version))
            rows.insert_vectors(sql, keys, vectors)
            rows.raise_epoch(sql)
        return np.array(keys, np.int64)

    def relabel(self, changes: Iterable[tuple[int, int]]) -> int:
        """Give passages new words: all of them, or on any error none.

        Parameters
        ----------
        changes : iterable of (key, word)

        Returns
        -------
        int
            How many words differed from the stored ones. If none did, the epoch stays.

        Raises
        ------
        InvalidArgument
            If a key is unknown, a word carries no label, or a deleted passage would come back.
        """
        changed = 0
        with self._writing() as sql:
            for key, word in changes:
                check_word(word, f"key {check_integer(key, 'key')}")
                found = sql.execute("SELECT word FROM labels WHERE key = ?", (as_int(key),)).fetchone()
                if found is None:
                    raise InvalidArgument(f"no passage has key {key}; nothing was relabelled")
                if found[0] & TOMBSTONE and not word & TOMBSTONE:
                    raise InvalidArgument(f"key {key} is deleted and stays so; nothing was relabelled")
                if found[0] != word:
                    sql.execute("UPDATE labels SET word = ? WHERE key = ?", (as_int(word), as_int(key)))
                    changed += 1
            if changed:
                rows.raise_epoch(sql)
        return changed

    # --- reading: passages and filings ---

    def chunk(self, chunk_id: str) -> StoredChunk:
        """Return the passage of a chunk id, of a superseded version too.

        Raises
        ------
        InvalidArgument
            If there is no such passage.
        CorruptFile
            If the text is not the one that was stored.
        """
        with self._reading() as sql:
            row = sql.execute(f"{rows.SELECT_CHUNK} WHERE chunk_id = ?", (chunk_id,)).fetchone()
        if row is None:
            raise InvalidArgument(
                f"no passage {chunk_id!r} in {self.path}; want an id such as a citation shows"
            )
        return rows.stored_chunk(row, self.path)

    def chunks(self, keys: Sequence[int] | NDArray[np.int64]) -> list[StoredChunk]:
        """Return the passages of some keys, in the order of the keys.

        Raises
        ------
        InvalidArgument
            If a key is unknown.
        CorruptFile
            If a text is not the one that was stored.
        """
        found = []
        with self._reading() as sql:
            for key in keys:
                row = sql.execute(
                    f"{rows.SELECT_CHUNK} WHERE key = ?", (check_integer(key, "key"),)
                ).fetchone()
                if row is None:
                    raise InvalidArgument(f"no passage has key {key} in {self.path}; rebuild the index")
                found.append(rows.stored_chunk(row, self.path))
        return found

    def filing(self, accession_number: str, *, version: int | None = None) -> StoredFiling:
        """Return a filing's current version, or the one asked for.

        Raises
        ------
        InvalidArgument
            If there is no such filing or version.
        """
        wanted = "superseded_by_version IS NULL" if version is None else "version = :version"
        query = f"{rows.SELECT_FILING} WHERE accession_number = :accession_number AND {wanted}"
        with self._reading() as sql:
            row = sql.execute(query, {"accession_number": accession_number, "version": version}).fetchone()
        if row is None:
            which = "" if version is None else f" in version {version}"
            raise InvalidArgument(f"no filing {accession_number!r}{which} in {self.path}")
        return rows.stored_filing(row, self.path)

    def content_hash(self, accession_number: str) -> str | None:
        """Return the content hash of a filing's current version, or None if the filing is not stored."""
        with self._reading() as sql:
            row = sql.execute(
                "SELECT content_hash FROM current_filings WHERE accession_number = ?", (accession_number,)
            ).fetchone()
        return None if row is None else str(row[0])

    def facts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Stream ``(accession number, facts)`` of every filing's current version, by accession number."""
        for accession_number, facts in self._snapshot(
            "SELECT accession_number, facts FROM current_filings ORDER BY accession_number"
        ):
            yield accession_number, json.loads(facts)

    def counts(self) -> Counts:
        """Count filings, passages, and quarantined filings by reason."""
        with self._reading() as sql:
            filings = sql.execute("SELECT count(*) FROM current_filings").fetchone()[0]
            chunks = sql.execute(
                "SELECT count(*) FROM chunks JOIN current_filings USING (filing)"
            ).fetchone()[0]
            quarantined = sql.execute(
                "SELECT quarantine_code, count(*) FROM current_filings "
                "WHERE quarantine_code IS NOT NULL GROUP BY quarantine_code ORDER BY quarantine_code"
            ).fetchall()
        return Counts(filings, chunks, dict(quarantined))

    # --- reading: what the index and the audit log are made of ---

    def labels(self, after_key: int = -1) -> Labels:
        """Return the labels of all passages above a key, by key; of superseded ones too."""
        return self._labels(
            "SELECT key, word, public_at FROM labels WHERE key > ? ORDER BY key", as_int(after_key)
        )

    def filing_labels(self, accession_number: str) -> Labels:
        """Return the labels of one filing's current version, by key; none if it is not stored."""
        return self._labels(
            "SELECT key, word, public_at FROM labels JOIN chunks USING (key) "
            "JOIN current_filings USING (filing) WHERE accession_number = ? ORDER BY key",
            accession_number,
        )

    def vectors(
        self, after_key: int = -1, *, batch: int = 4096
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Stream ``(keys (m,), vectors (m, dim))`` of all passages above a key, by key, ``m <= batch``.

        Raises
        ------
        CorruptFile
            If the vectors are not all of one length.
        """
        if batch < 1:
            raise InvalidArgument(f"batch {batch}; want at least 1")
        stream = self._snapshot(
            "SELECT key, vector FROM vectors WHERE key > ? ORDER BY key", as_int(after_key)
        )
        for first in stream:
            part = [first, *islice(stream, batch - 1)]
            sizes = {len(blob) for _, blob in part}
            if len(sizes) != 1 or (size := sizes.pop()) % 4:
                raise CorruptFile(f"{self.path}: vectors near key {first[0]} differ in length; ingest anew")
            joined = np.frombuffer(b"".join(blob for _, blob in part), "<f4")
            yield (
                np.array([key for key, _ in part], np.int64),
                joined.reshape(-1, size // 4).astype(np.float32),
            )

    def snapshot_rows(self) -> Iterator[tuple[str, bytes, int]]:
        """Stream ``(chunk id, SHA-256 of the text, word)`` of all passages by chunk id, of superseded too."""
        return self._snapshot(
            "SELECT chunk_id, text_sha256, word FROM chunks JOIN labels USING (key) ORDER BY chunk_id"
        )

    @property
    def dim(self) -> int | None:
        """Length of the stored vectors; None while there are none."""
        with self._reading() as sql:
            return rows.dim(sql)

    @property
    def epoch(self) -> int:
        """How many transactions have changed rows or labels."""
        with self._reading() as sql:
            return int(sql.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()[0])

    # --- notes of the engine ---

    def meta_get(self, name: str) -> str | None:
        """Return a note, such as the embedder's fingerprint, or None."""
        with self._reading() as sql:
            row = sql.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def meta_set(self, name: str, value: str) -> None:
        """Keep a note; see :meth:`meta_update`."""
        self.meta_update({name: value})

    def meta_update(self, notes: Mapping[str, str]) -> None:
        """Keep several notes, all or none; an older note of the same name goes.

        Raises
        ------
        InvalidArgument
            If a name is ``epoch``, which is the store's own, or a name or value is no text.
        """
        for name, value in notes.items():
            check_text(name, "meta name")
            check_text(value, f"meta {name}")
        if "epoch" in notes:
            raise InvalidArgument("the epoch is the store's own; choose another name")
        with self._writing() as sql:
            sql.executemany("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", notes.items())

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

    def _snapshot(self, query: str, *parameters: object) -> Iterator[Any]:
        """Stream rows over a connection of their own."""
        with self._reading():
            connection = connect(self.path, timeout=self._timeout)
        try:
            with translating(self.path):
                yield from connection.execute(query, parameters)
        finally:
            connection.close()

    def _labels(self, query: str, parameter: object) -> Labels:
        with self._reading() as sql:
            found = sql.execute(query, (parameter,))
            table = np.fromiter(chain.from_iterable(found), np.int64).reshape(-1, 3)
        return table[:, 0].copy(), table[:, 1].astype(np.uint32), table[:, 2].astype(np.uint32)


def _chunk_ids(accession_number: str, version: int) -> Iterator[str]:
    prefix = accession_number if version == 1 else f"{accession_number}.v{version}"
    return (f"{prefix}:{ordinal:05d}" for ordinal in count())
