"""Question to evidence: embed, search under the policy, re-check every hit, fetch text.

The native core tests each row's word in its inner loop. This room tests it once more against the store, the
corpus's single truth, before any text is read: two independent statements of the same rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.errors import CorruptFile
from carag.policy import NEVER, Mask, Policy, reasons, withheld_kinds
from carag.retrieval.evidence import Evidence, Hidden, Passage, Withheld
from carag.retrieval.replay import PastIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from carag.corpus import CorpusStore, StoredChunk
    from carag.index import Index
    from carag.policy import Decision
    from carag.retrieval.embedders import Embedder

__all__ = ["EXACT_LIMIT", "Retriever"]

EXACT_LIMIT: Final = 1 << 28
"""Largest admissible rows x dimension that is searched exactly. A fixed size, not a timing, so that the same
question runs the same plan on every machine; the record says which plan ran."""

_ANYTHING: Final = Policy(Mask())


class Retriever:
    """Find both buckets for a question.

    Parameters
    ----------
    embedder : Embedder
    index : Index
        Rows keyed by the store's labels.
    store : CorpusStore
    known_at : callable
        Returns of which of the store's instants the index is, in microseconds since 1970.
    """

    def __init__(
        self, embedder: Embedder, index: Index, store: CorpusStore, known_at: Callable[[], int]
    ) -> None:
        self._embedder = embedder
        self._index = index
        self._store = store
        self._known_at = known_at
        self._past = PastIndex(store, index.dim)

    def retrieve(self, question: str, decision: Decision, k: int) -> Evidence:
        """Return the ``min(k, admissible)`` most similar admissible passages, and what is withheld.

        A decision that is about what was known in the past is answered from the labels of then, exactly.

        Raises
        ------
        CorruptFile
            If index and store disagree on a hit; nothing is returned.
        """
        query = self._embedder.embed_query(question)
        known_at = self._known_at()
        if decision.known_at is None:
            return self._search(self._index, query, decision, k, known_at=known_at)
        then = self._store.known(decision.known_at)
        if then == known_at:
            return self._search(self._index, query, decision, k, known_at=known_at)
        with self._past.at(then) as index:
            return self._search(index, query, decision, k, known_at=then)

    def _search(
        self, index: Index, query: NDArray[np.float32], decision: Decision, k: int, *, known_at: int
    ) -> Evidence:
        admissible = index.count(decision.policy, as_of=decision.as_of)
        is_exact = decision.known_at is not None or admissible * index.dim <= EXACT_LIMIT
        plan = "certified" if is_exact else "auto"
        found = index.search(query, k, decision.policy, plan=plan, as_of=decision.as_of)
        count = int(found.counts[0])
        chunks = self._store.chunks(found.keys[0, :count], known_at=known_at)
        for chunk in chunks:
            is_over = decision.as_of >= chunk.expires_at
            if is_over or reasons(chunk.word, chunk.public_at, decision.policy, decision.as_of):
                raise CorruptFile(
                    f"index and store disagree on {chunk.chunk_id}: the index admitted it, the store does not; "
                    "delete the index file, and the next opening rebuilds it from the store"
                )
        passages = tuple(
            self._passage(chunk, float(similarity))
            for chunk, similarity in zip(chunks, found.similarities[0, :count], strict=True)
        )
        hidden = (
            self._hidden(index, query, decision, k, known_at=known_at) if decision.may_know_existence else ()
        )
        withheld = Withheld(withheld_kinds(decision.policy), hidden)
        return Evidence(passages, withheld, found.stats.plans[0].value, found.stats.admissible)

    def _hidden(
        self, index: Index, query: NDArray[np.float32], decision: Decision, k: int, *, known_at: int
    ) -> tuple[Hidden, ...]:
        """Of the exact unfiltered top k, those the policy hides: a pass of its own, without text.

        At the end of time every passage has one label; what counts is the one of the session's as-of.
        """
        found = index.search(query, k, _ANYTHING, plan="exact", as_of=NEVER - 1)
        last = self._store.chunks(found.keys[0, : int(found.counts[0])], known_at=known_at)
        then = (
            None if decision.known_at is None else known_at
        )  # now, more may be known already than was indexed
        neighbours = [
            self._store.chunk(chunk.chunk_id, as_of=decision.as_of, known_at=then) for chunk in last
        ]
        return tuple(
            Hidden(chunk.chunk_id, why)
            for chunk in neighbours
            if (why := reasons(chunk.word, chunk.public_at, decision.policy, decision.as_of))
        )

    def _passage(self, chunk: StoredChunk, similarity: float) -> Passage:
        filing = self._store.filing(chunk.accession_number, version=chunk.version)
        return Passage(
            chunk_id=chunk.chunk_id,
            text=chunk.text,
            similarity=similarity,
            word=chunk.word,
            accession_number=filing.accession_number,
            form=filing.form or "",
            company=filing.company,
            filed=filing.filed,
            document=chunk.document,
            start=chunk.start,
            end=chunk.end,
        )
