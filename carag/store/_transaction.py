"""Write documents, and update the labels of all documents that they affect, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from carag.errors import InvalidArgument
from carag.store import _rows as rows
from carag.store._audiences import put_audiences
from carag.store._label_history import LabelChange, deciding_facts
from carag.store.values import Change, check_chunk, check_document, check_vectors

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from carag.labelling.labelled import LabelledDocument, LabelledPassage
    from carag.labelling.lifecycle import StateSpan


class Transaction:
    """One transaction of a store; see :meth:`~carag.store.store.CorpusStore.writing`.

    The caller computes the effects of documents on one another, from the facts as of this transaction::

        with store.writing() as transaction:
            transaction.put([(document, passages)], vectors)
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
        documents: Sequence[tuple[LabelledDocument, Sequence[LabelledPassage]]],
        vectors: NDArray[np.float32],
        *,
        embedded: Sequence[bytes] = (),
    ) -> None:
        """Store documents with all their passages, superseding earlier versions of them, with one statement per table.

        Raises InvalidArgument if the arguments are inconsistent, or a word carries no label; nothing is stored.

        Parameters
        ----------
        documents : sequence of (LabelledDocument, sequence of LabelledPassage)
            Each document once. Its passages, of which there may be none, are in order over all its parts; their words
            are the document's own, before any event.
        vectors : (n, dim) float32
            One per passage, in order. All vectors of a store have the same dim.
        embedded : sequence of bytes
            The SHA-256 of the text, heading included, that each vector embeds, for
            :meth:`~carag.store.store.CorpusStore.vectors_of`; or empty.
        """
        passages = [chunk for _, chunks in documents for chunk in chunks]
        for document, _ in documents:
            check_document(document)
        for chunk in passages:
            check_chunk(chunk)
        check_vectors(vectors, len(passages))
        rows.check_dim(self._sql, vectors)
        ids = [document.document_id for document, _ in documents]
        if len(set(ids)) < len(ids):
            raise InvalidArgument("a document is given twice; give each id once")
        before = rows.supersede(self._sql, ids)
        # Version 0 is a document known by its facts alone, so the first version with passages is always 1.
        versions = [before[id_][1] + 1 if id_ in before else 1 for id_ in ids]
        new = rows.insert_documents(
            self._sql,
            ((document, version) for (document, _), version in zip(documents, versions, strict=True)),
        )
        keys = rows.insert_chunks(
            self._sql,
            [
                (row, chunk_id, chunk)
                for row, version, (document, chunks) in zip(new, versions, documents, strict=True)
                for chunk_id, chunk in zip(
                    rows.chunk_ids(document.document_id, version), chunks, strict=False
                )
            ],
        )
        put_audiences(
            self._sql, ((row, document.audience) for row, (document, _) in zip(new, documents, strict=True))
        )
        rows.insert_vectors(self._sql, keys, vectors)
        if embedded:
            rows.insert_embedded(self._sql, keys, embedded)
        self._new += new
        self._old += [row for row, _ in before.values()]
        self._keys.append(keys)

    def put_metadata(self, documents: Sequence[LabelledDocument]) -> None:
        """Store facts of documents without their text.

        A document that is not stored yet becomes its version 0, which has no passages. For a stored document, facts and
        quarantine are replaced, so the caller must unite the known facts with the new ones. Each can affect the
        documents of its ``ciks``.
        """
        for document in documents:
            check_document(document)
            self._new.append(rows.add_metadata(self._sql, document))

    def facts(self) -> list[dict[str, Any]]:
        """Return the facts of the documents put, and of every document that can affect one that these affect."""
        return deciding_facts(self._sql, [*self._new, *self._old])

    def relabel(self, histories: Mapping[str, Sequence[StateSpan]] | None = None) -> Change:
        """Update the labels of the documents put and of all that share a CIK with one of them.

        ``histories`` has a history for every document whose facts :meth:`facts` returned, by its id; without it, the
        documents put have no events and no effect on others. Raises InvalidArgument if no document was put, or a
        history is out of order.
        """
        if not self._new:
            raise InvalidArgument("no documents were put; put at least one before relabel")
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
        """Raise an error if documents were put and :meth:`relabel` was not called."""
        if self._new:
            raise InvalidArgument("documents were put without their labels; call relabel before the end")
