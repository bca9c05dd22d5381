"""Write filings, and update the labels of all filings that they affect, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from carag.errors import InvalidArgument
from carag.store import _rows as rows
from carag.store._label_history import LabelChange, deciding_facts
from carag.store.values import Change, check_chunk, check_filing, check_vectors

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from carag.labelling.lifecycle import StateSpan
    from carag.store.values import StoredChunk, StoredFiling

__all__ = ["Transaction"]


class Transaction:
    """One transaction of a store; see :meth:`~carag.store.store.CorpusStore.writing`.

    The caller computes the effects of filings on one another, from the facts as of this transaction::

        with store.writing() as transaction:
            transaction.put([(filing, chunks)], vectors)
            change = transaction.relabel(histories(transaction.facts()))
    """

    def __init__(self, sql: sqlite3.Connection, *, clock: Callable[[], int]) -> None:
        self._sql = sql
        self._clock = clock
        self._new: list[int] = []
        self._old: list[int] = []
        self._keys: list[range] = []

    def put(
        self,
        filings: Sequence[tuple[StoredFiling, Sequence[StoredChunk]]],
        vectors: NDArray[np.float32],
        *,
        embedded: Sequence[bytes] = (),
    ) -> None:
        """Store filings with all their passages, superseding earlier versions of them, with one statement per table.

        Raises InvalidArgument if the arguments are inconsistent, or a word carries no label; nothing is stored.

        Parameters
        ----------
        filings : sequence of (StoredFiling, sequence of StoredChunk)
            Each filing once. Its passages, possibly none, are in order over all documents; their words are the filing's
            own, before any event.
        vectors : (n, dim) float32
            One per passage, in order. All vectors of a store have the same dim.
        embedded : sequence of bytes
            The SHA-256 of the text, heading included, that each vector embeds, for
            :meth:`~carag.store.store.CorpusStore.vectors_of`; or empty.
        """
        passages = [chunk for _, chunks in filings for chunk in chunks]
        for filing, _ in filings:
            check_filing(filing)
        for chunk in passages:
            check_chunk(chunk)
        check_vectors(vectors, len(passages))
        rows.check_dim(self._sql, vectors)
        numbers = [filing.accession_number for filing, _ in filings]
        if len(set(numbers)) < len(numbers):
            raise InvalidArgument("a filing is given twice; give each accession number once")
        before = rows.supersede(self._sql, numbers)
        # Version 0 is a filing known by metadata only, so the first version with passages is always 1.
        versions = [before[number][1] + 1 if number in before else 1 for number in numbers]
        new = rows.insert_filings(
            self._sql, ((filing, version) for (filing, _), version in zip(filings, versions, strict=True))
        )
        keys = rows.insert_chunks(
            self._sql,
            [
                (row, chunk_id, chunk)
                for row, version, (filing, chunks) in zip(new, versions, filings, strict=True)
                for chunk_id, chunk in zip(
                    rows.chunk_ids(filing.accession_number, version), chunks, strict=False
                )
            ],
        )
        rows.insert_vectors(self._sql, keys, vectors)
        if embedded:
            rows.insert_embedded(self._sql, keys, embedded)
        self._new += new
        self._old += [row for row, _ in before.values()]
        self._keys.append(keys)

    def put_metadata(self, filings: Sequence[StoredFiling]) -> None:
        """Store facts of filings without their text.

        A filing that is not stored yet becomes its version 0, which has no passages. For a stored one, facts and
        quarantine are replaced, so the caller must unite the known ones with the new. Each can affect the filings of
        its ``ciks``.
        """
        for filing in filings:
            check_filing(filing)
            self._new.append(rows.add_metadata(self._sql, filing))

    def facts(self) -> list[dict[str, Any]]:
        """Return the facts of the filings put, and of every filing that can affect those that these affect."""
        return deciding_facts(self._sql, [*self._new, *self._old])

    def relabel(self, histories: Mapping[str, Sequence[StateSpan]] | None = None) -> Change:
        """Update the labels of the filings put and of all that share a CIK with one of them.

        ``histories`` has one for every filing whose facts :meth:`facts` returned, by accession number; without it, the
        filings put have no events and no effect on others. Raises InvalidArgument if no filing was put, or a history is
        out of order.
        """
        if not self._new:
            raise InvalidArgument("no filings were put; put at least one before relabel")
        change = LabelChange(self._sql, self._new, now=self._clock())
        if self._old:
            change.retire(self._old)
        change.apply(histories, old=self._old)
        rows.raise_epoch(self._sql)
        query = "SELECT label FROM labels WHERE key BETWEEN ? AND ? ORDER BY label"
        own = [
            label
            for keys in self._keys
            for (label,) in self._sql.execute(query, (keys.start, keys.stop - 1)).fetchall()
        ]
        self._new, self._old, self._keys = [], [], []
        return Change(
            change.known_at, np.array(own, np.int64), change.opened, change.closed, change.relabelled
        )

    def check_settled(self) -> None:
        """Raise an error if filings were put and :meth:`relabel` was not called."""
        if self._new:
            raise InvalidArgument("filings were put without their labels; call relabel before the end")
