"""Read a store's labels: which are open at an instant, what they say, and the rows that an index makes from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from carag.errors import CorruptFile, InvalidArgument
from carag.limits import document_of_chunk
from carag.store import _by_label as by_label
from carag.store import _rows as rows
from carag.store._audiences import JOINED, STATE_LABEL
from carag.store._label_history import CLOSED_BETWEEN, OPENED_BETWEEN, audiences, history
from carag.store.values import EVER, Labels, StoredLabel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from numpy.typing import ArrayLike, NDArray

    from carag.store.values import PastAudience, PastLabel, Reading, Snapshot


class StoredLabels:
    """The labels of a :class:`~carag.store.store.CorpusStore`, by key."""

    def __init__(self, path: Path, reading: Reading, snapshot: Snapshot) -> None:
        self._path = path
        self._reading = reading
        self._snapshot = snapshot

    def open(self, *, after: int = -1, known_at: int | None = None, erased: bool = True) -> NDArray[np.int64]:
        """Return the keys, ascending, of the labels after a key that are open, or were open at an instant.

        Unless ``erased``, without those whose passages were erased since.
        """
        query = f"SELECT label FROM labels WHERE label > :after AND {rows.open_at(known_at)}"  # noqa: S608
        if not erased:
            query += " AND label NOT IN (SELECT label FROM erased_labels)"
        return self._keys(query, {"after": after, "u": known_at})

    def count_by(self, known_at: int) -> int:
        """Return the number of labels opened by an instant; their keys are the numbers below it, without a gap."""
        query = "SELECT CAST(coalesce(sum(opened), 0) AS BIGINT) FROM changes WHERE known_at <= ?"
        with self._reading() as sql:
            return int(sql.execute(query, (known_at,)).fetchone()[0])

    def check_complete(self) -> None:
        """Check that there are labels, and the change that opened the last; CorruptFile if not."""
        query = (
            "SELECT changes.known_at FROM labels LEFT JOIN changes ON known_from = known_at "
            "ORDER BY label DESC LIMIT 1"
        )
        with self._reading() as sql:
            opened = sql.execute("SELECT CAST(coalesce(sum(opened), 0) AS BIGINT) FROM changes").fetchone()[0]
            last = sql.execute(query).fetchone()
        if (last is None and opened) or (last and last[0] is None):
            raise CorruptFile(
                f"{self._path} does not hold the {opened} labels that its changes opened: another program changed it; "
                "restore a backup"
            )

    def standing(self, minute: int) -> Iterator[tuple[str, int, int]]:
        """Stream what open labels say at a minute: a document's id, a word and the number of an audience, each once."""
        return self._snapshot(
            "SELECT DISTINCT accession_number, labels.word, coalesce(audience, 0) "  # noqa: S608 - constants
            "FROM labels JOIN chunks USING (key) JOIN filings USING (filing) LEFT JOIN label_audiences USING (label) "
            f"WHERE {rows.open_at(None)} AND valid_from <= :minute AND valid_to > :minute",
            {"minute": minute},
        )

    def closed(self, *, after: int, until: int = EVER) -> NDArray[np.int64]:
        """Return the keys, ascending, of the labels closed after one instant and by another, in microseconds."""
        return self._keys("SELECT label FROM labels WHERE known_to > ? AND known_to <= ?", (after, until))

    def of_document(self, document_id: str, *, known_at: int | None = None) -> NDArray[np.int64]:
        """Return the keys of a document's labels that are open, or were at an instant; empty if it is not stored."""
        query = (
            "SELECT label FROM labels JOIN chunks USING (key) JOIN filings USING (filing) "  # noqa: S608 - constants
            f"WHERE accession_number = :id AND {rows.open_at(known_at)}"
        )
        return self._keys(query, {"id": document_id, "u": known_at})

    def of_passages(self, passages: Sequence[int], *, known_at: int) -> list[tuple[int, StoredLabel]]:
        """Return the labels, with their keys, that were open at an instant on passages given by number."""
        with self._reading() as sql:
            return rows.open_labels(sql, passages, self._path, known_at=known_at)

    def ended(self, minute: int, *, known_at: int) -> list[tuple[int, StoredLabel]]:
        """Return, with the number of its document, each label open at an instant that stopped holding by a minute.

        Of passages of a document that had equal labels, one is enough.
        """
        query = (
            "SELECT filing, min(key), min(chunk_id) FROM labels JOIN chunks USING (key) "  # noqa: S608 - constants
            f"WHERE valid_to <= :minute AND {rows.open_at(known_at)} "
            "GROUP BY filing, labels.word, valid_from, valid_to, labels.entity"
        )
        with self._reading() as sql:
            found = sql.execute(query, {"minute": minute, "u": known_at}).fetchall()
        of = {document_of_chunk(chunk_id): filing for filing, _, chunk_id in found}
        labels = self.of_passages([key for _, key, _ in found], known_at=known_at)
        return [(of[document_of_chunk(one.chunk_id)], one) for _, one in labels if one.expires_at <= minute]

    def of(self, keys: ArrayLike) -> Labels:
        """Return labels by their keys; InvalidArgument if a key is unknown, or the keys do not ascend."""
        return self._rows(keys, "", "labels")[0]

    def rows(self, keys: ArrayLike) -> tuple[Labels, NDArray[np.float32]]:
        """Return labels by their keys, and the vectors ``(n, dim)`` of their passages.

        Raises as :meth:`of` does, and CorruptFile if the vectors differ in length.
        """
        labels, blobs = self._rows(keys, ", vector", "labels JOIN vectors USING (key)")
        sizes = {len(blob) for blob in blobs}
        if len(sizes) > 1 or (size := sizes.pop() if sizes else 0) % 4:
            raise CorruptFile(
                f"{self._path}: vectors from label {labels.keys[0]} on differ in length; restore a backup, or "
                "ingest into a new store"
            )
        vectors = np.frombuffer(b"".join(blobs), "<f4").reshape(-1, max(size // 4, 1)).astype(np.float32)
        return labels, vectors

    def as_of(self, keys: Sequence[int], as_of: int, *, known_at: int | None = None) -> list[StoredLabel]:
        """Return, for each of some labels, its passage's label that ``CorpusStore.chunk`` finds, in the order of keys.

        Raises InvalidArgument if a key is unknown, CorruptFile if a label was altered in the file.
        """
        with self._reading() as sql:
            held = by_label.labels_as_of(sql, keys, as_of, self._path, known_at=known_at)
        return [held[key] for key in keys]

    def at_or_after(
        self, chunk_id: str, *, as_of: int | None = None, known_at: int | None = None
    ) -> StoredLabel | None:
        """Return the label that ``CorpusStore.chunk`` finds, or else that of the next passage by id.

        One row is read in either case, so the time taken does not reveal whether the passage exists. None if the
        passage found was not known at ``known_at``, or the store is empty.
        """
        until = EVER if known_at is None else known_at
        with self._reading() as sql:
            found = sql.execute(rows.SELECT_LABEL_AT_OR_AFTER, (until, chunk_id)).fetchall()
        held = rows.holding(found, as_of, until) if found else None
        return None if held is None else rows.stored_label(held, self._path, known_at=known_at)

    def history(self, chunk_id: str) -> list[PastLabel]:
        """Return every label that a passage ever had, by when it was known, then by when it holds; empty if unknown."""
        try:
            with self._reading() as sql:
                return history(sql, chunk_id)
        except ValueError as error:
            raise rows.changed(self._path, chunk_id, error) from error

    def audiences(self, document_id: str) -> list[PastAudience]:
        """Return who could see a document in all of its versions, in the order of :meth:`history`; empty if unknown."""
        try:
            with self._reading() as sql:
                return audiences(sql, document_id)
        except ValueError as error:
            raise rows.changed(self._path, document_id, error) from error

    def words_of(self, keys: Iterable[int]) -> dict[int, int]:
        """Return the words of labels by key, closed ones with the tombstone; unknown keys are left out."""
        query = "SELECT label, word, known_to FROM labels WHERE label IN (SELECT value FROM json_each(?))"
        with self._reading() as sql:
            found = sql.execute(query, (json.dumps([*keys]),)).fetchall()
        return {label: rows.word_of(word, known_to, None) for label, word, known_to in found}

    def snapshot(self, *, known_at: int | None = None) -> Iterator[tuple[str, bytes, int, int, int, str]]:
        """Stream ``(chunk id, SHA-256 of the text, word, valid from, valid to, audience)`` of all open labels.

        In this order. The audience is canonical JSON, and empty for everybody.

        Given ``known_at``, of the labels that were open at that microsecond.
        """
        return self._snapshot(
            f"SELECT {STATE_LABEL} "  # noqa: S608 - constants
            f"FROM chunks JOIN labels USING (key) {JOINED} WHERE {rows.open_at(known_at)} "
            "ORDER BY chunk_id, valid_from",
            {"u": known_at},
        )

    def changes(
        self, since: int, until: int
    ) -> Iterator[tuple[int, str, bytes, int, int, int, str, bytes | None, bytes | None]]:
        """Stream the labels closed, then the labels opened, after one instant and by another, both in microseconds.

        ``(1 if opened and still open, 0 if closed, ...)``, followed by what :meth:`snapshot` streams, and by place and
        leaf in the index state if the label's passage was erased; labels that were opened and closed again in between
        are left out.
        """
        for query in (CLOSED_BETWEEN, OPENED_BETWEEN):
            yield from self._snapshot(query, {"a": since, "b": until})

    def _keys(self, query: str, given: Any) -> NDArray[np.int64]:
        with self._reading() as sql:
            return np.array([label for (label,) in sql.execute(f"{query} ORDER BY label", given)], np.int64)

    def _rows(self, keys: ArrayLike, more: str, source: str) -> tuple[Labels, list[bytes]]:
        wanted = np.asarray(keys, np.int64).ravel()
        with self._reading() as sql:
            found = sql.execute(
                f"SELECT label, word, valid_from, valid_to, entity, key, coalesce(audience, 0){more} "  # noqa: S608
                f"FROM {source} LEFT JOIN label_audiences USING (label) "
                "WHERE label IN (SELECT value FROM json_each(?)) ORDER BY label",
                (json.dumps(wanted.tolist()),),
            ).fetchall()
        table = np.array([row[:7] for row in found], np.int64).reshape(-1, 7)
        if not np.array_equal(table[:, 0], wanted):
            raise InvalidArgument(f"labels are missing in {self._path}, or out of order; restore a backup")
        word, since, until, entity = (table[:, column].astype(np.uint32) for column in range(1, 5))
        labels = Labels(wanted, word, since, until, entity, table[:, 5], table[:, 6].astype(np.uint32))
        return labels, [row[7] for row in found if len(row) > 7]
