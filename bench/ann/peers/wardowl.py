"""wardowl: permission-aware retrieval over a vector store; here over its FAISS backend, in this process.

Its filters are sets of values, so a policy becomes the list of admissible words, and time and deny list become
the list of open entities.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.ann.engine import Build, Engine, Request, Rows, Store, optional

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Wardowl"]


class Wardowl(Engine):
    """Its FAISS backend over IndexFlatIP, with the filter that an authorizer would give."""

    name = "wardowl-faiss"
    bits = 32

    def build(self, rows: Rows, store: Store) -> Build:  # noqa: ARG002 - nothing is kept
        """Store every row with its word and entity."""
        self._wardowl, faiss_backend = optional("wardowl"), optional("wardowl.backends.faiss")
        begin = time.process_time()
        self._backend = faiss_backend.FaissBackend(None, rows.vectors.shape[1])
        columns = zip(rows.words.tolist(), rows.entities.tolist(), strict=True)
        documents = [
            self._wardowl.Document(str(row), "", {"word": word, "entity": entity})
            for row, (word, entity) in enumerate(columns)
        ]
        self._backend.add(documents, rows.vectors)
        seconds = time.process_time() - begin
        self._words = np.unique(rows.words)
        self._entities, first = np.unique(rows.entities, return_index=True)
        self._public_at = rows.public_at[first]
        return Build(seconds, 1, 4.0 * rows.vectors.shape[1] + 16)

    def search(self, query: NDArray[np.float32], k: int, policy: Request, effort: int) -> NDArray[np.int64]:  # noqa: ARG002 - no knob
        """Make the filter, and search."""
        asked = self._wardowl.Query(vector=query.tolist())
        hits = self._backend.search(asked, k, None if policy.is_open else self._filter(policy))
        return np.array([int(hit.id) for hit in hits], dtype=np.int64)

    def _filter(self, policy: Request) -> Any:
        mask = policy.required | policy.forbidden
        words = self._words[(self._words & np.uint32(mask)) == policy.required]
        clause = self._wardowl.In("word", words.tolist())
        if policy.as_of is None:
            return clause
        is_open = self._public_at <= policy.as_of
        if policy.denied is not None:
            is_open &= ~np.isin(self._entities, policy.denied)
        return self._wardowl.And(clause, self._wardowl.In("entity", self._entities[is_open].tolist()))
