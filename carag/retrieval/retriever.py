"""Find evidence for a question: embed it, search under the policy, check every hit again, read its text.

The native core tests each row's word in its inner loop. The store is the truth, so every hit is tested a second time
against the store before its text leaves: two independent statements of the same rule.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from carag.errors import CorruptFile
from carag.labelling.naming import named
from carag.policy import EVERYWHERE, NEVER, Mask, Policy, Rule, Search
from carag.retrieval.evidence import Evidence, Hidden, Passage, Withheld
from carag.retrieval.past_index import PastIndex
from carag.retrieval.reranker import pool_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from carag.index import Index, SearchStats
    from carag.policy import Decision, Profile, Reason, Where
    from carag.retrieval.embedder import Embedder
    from carag.retrieval.reranker import Reranker
    from carag.store.store import CorpusStore
    from carag.store.values import StoredChunk, StoredLabel

__all__ = ["EXACT_LIMIT", "Retriever", "Searchable", "passage_of"]

EXACT_LIMIT: Final = 1 << 28
"""Largest product of admissible rows and dimension that is searched exactly. A size and not a time, so that the same
question runs the same plan on every machine; the record says which plan ran."""

_SPARE: Final = 2
"""Ask approximate plans for 1/2 more rows than wanted: what they miss is mostly in the last ranks."""

_ANYTHING: Final = Policy(Mask())


class Searchable(Protocol):
    """A store whose open labels are the rows of an index."""

    @property
    def store(self) -> CorpusStore:
        """Where passages and labels are read."""
        ...

    @property
    def index(self) -> Index:
        """Rows keyed by the store's labels."""
        ...

    @property
    def profile(self) -> Profile:
        """How a citation reads."""
        ...

    @property
    def embedder(self) -> Embedder:
        """What the index's vectors come from."""
        ...

    def reading(self) -> AbstractContextManager[int]:
        """Keep the index at one instant of the store, and lend that instant in microseconds since 1970."""
        ...


class _Found(NamedTuple):
    hits: list[tuple[float, StoredChunk]]
    """Most similar first."""
    plan: str
    admissible: int


def _reasons(one: StoredChunk | StoredLabel, decision: Decision) -> tuple[Reason, ...]:
    return decision.reasons(one.word, one.public_at, entity=one.subjects, expires_at=one.expires_at)


class Retriever:
    """Find the passages for a question that are admissible, and what is withheld.

    Parameters
    ----------
    collection : Searchable
    exact_limit : int
        Admissible rows x dimension above which the plan is ``auto``.
    reranker : Reranker, optional
        Orders the admissible passages found, of which the best ``k`` are returned.
    """

    def __init__(
        self, collection: Searchable, *, exact_limit: int = EXACT_LIMIT, reranker: Reranker | None = None
    ) -> None:
        self.reranker = reranker
        self._collection = collection
        self._store = collection.store
        self._exact_limit = exact_limit
        self._citation = collection.profile.vocabulary.citation
        self._past = PastIndex(collection.store, collection.index.dim)

    def retrieve(
        self,
        question: str,
        decision: Decision,
        k: int,
        where: Where = EVERYWHERE,
        *,
        before_remote: Callable[[], None] | None = None,
    ) -> Evidence:
        """Return the ``min(k, admissible)`` best admissible passages, and what is withheld.

        The best are the most similar, or of more of these the ones that the reranker puts first. A decision about what
        was known in the past is answered exactly, from the labels known then.

        Parameters
        ----------
        question : str
        decision : Decision
        k : int
        where : Where, optional
            What it does not admit is as if it were not in the store.
        before_remote : callable, optional
            Called before question and passages leave this machine for a remote reranker; if it raises, they stay.

        Raises
        ------
        CorruptFile
            If index and store disagree on a hit; nothing is returned.
        ModelUnavailable
            If embedder or reranker fail; no other order takes the place of the reranker's.
        """
        evidence = self._found(question, decision, k, where)
        if self.reranker is None or not evidence.passages:
            return evidence
        if self.reranker.remote and before_remote is not None:
            before_remote()
        # Outside of `reading`, so that nobody who writes waits for a model.
        scores = self.reranker.rerank(question, [one.text for one in evidence.passages])
        best = heapq.nsmallest(k, range(len(evidence.passages)), key=lambda at: (-scores[at], at))
        return replace(evidence, passages=tuple(evidence.passages[at] for at in best))

    def _found(self, question: str, decision: Decision, k: int, where: Where) -> Evidence:
        """Return the most similar admissible passages, as many as the reranker reads."""
        query = self._collection.embedder.embed_query(question)
        with self._collection.reading() as known_at:
            then = known_at if decision.known_at is None else self._store.known(decision.known_at)
            if then == known_at:
                return self._gather(self._collection.index, query, decision, k, where, known_at=known_at)
        with self._past.at(then) as index:
            return self._gather(index, query, decision, k, where, known_at=then)

    def _gather(
        self,
        index: Index,
        query: NDArray[np.float32],
        decision: Decision,
        k: int,
        where: Where,
        *,
        known_at: int,
    ) -> Evidence:
        wanted = k if self.reranker is None else pool_size(k)
        found = [
            self._search(index, query, search, decision, wanted, where, known_at=known_at)
            for search in decision.searches
        ]
        # Ties go to the smaller key, as within one search.
        best = heapq.nsmallest(
            wanted, itertools.chain(*(one.hits for one in found)), key=lambda hit: (-hit[0], hit[1].key)
        )
        passages = tuple(passage_of(chunk, similarity, self._citation) for similarity, chunk in best)
        hidden: tuple[Hidden, ...] = ()
        if decision.may_know_existence:
            admitted = {chunk.key for one in found for _, chunk in one.hits}
            hidden = self._hidden(index, query, decision, k, where, admitted, known_at=known_at)
        plans = dict.fromkeys(one.plan for one in found)
        return Evidence(
            passages,
            Withheld(decision.withheld, hidden),
            "/".join(plans),
            sum(one.admissible for one in found),
            known_at if known_at >= 0 else None,
        )

    def _search(
        self,
        index: Index,
        query: NDArray[np.float32],
        search: Search,
        decision: Decision,
        k: int,
        where: Where,
        *,
        known_at: int,
    ) -> _Found:
        """Search once, and again for more if labels were closed since the instant that was searched.

        A question about the present is answered from the index, and nothing that the store has closed since is emitted.
        """
        wanted = k
        then = None if decision.known_at is None else known_at
        while True:
            policy = self._store.expanded(search.policy, where)
            expanded = replace(search, policy=policy)
            keys, similarities, stats = self._nearest(index, query, wanted, expanded, decision)
            admissible = stats.admissible
            hits, closed = [], 0
            for chunk, similarity in zip(self._store.chunks(keys, known_at=then), similarities, strict=True):
                why = _reasons(chunk, decision)
                is_within = where.admits(chunk.metadata)
                if not why and is_within:
                    hits.append((similarity, chunk))
                elif is_within and self._was_closed(chunk.key, why, known_at):
                    closed += 1
                elif policy != self._store.expanded(search.policy, where):
                    break  # a filing with a new set of CIKs came in after the lists were put into numbers
                else:
                    # The message does not name the passage, which is hidden from the session.
                    raise CorruptFile(
                        "index and store disagree on a passage: the index admitted it, the store does not; delete "
                        "the index file, and the next opening rebuilds it from the store"
                    )
            else:
                if len(hits) >= k or wanted >= admissible or not closed:
                    # Exact except for labels farther away than what was found that were closed since the index was
                    # brought up to the store.
                    return _Found(hits[:k], stats.plans[0].value, admissible - closed)
                wanted = min(wanted + max(k, 2 * closed), admissible)

    def _was_closed(self, key: int, why: Sequence[Reason], known_at: int) -> bool:
        """Tell whether a hit is hidden only because its label was closed since the instant that was searched."""
        is_closed = [reason.rule for reason in why] == [Rule.TOMBSTONE]
        return is_closed and key in self._store.closed_labels(after=known_at)

    def _nearest(
        self,
        index: Index,
        query: NDArray[np.float32],
        wanted: int,
        search: Search,
        decision: Decision,
    ) -> tuple[list[int], list[float], SearchStats]:
        """Return keys and similarities of the nearest, most similar first, and how they were found."""
        if decision.known_at is not None:
            found = index.search(
                query, wanted, search.policy, plan="certified", as_of=search.as_of, alive_at=search.alive_at
            )
        else:
            # An index has no use for more rows than it holds.
            asked = min(wanted + -(-wanted // _SPARE), max(wanted, len(index)))
            limit = max(self._exact_limit // index.dim, 0)
            found = index.search(
                query,
                asked,
                search.policy,
                as_of=search.as_of,
                alive_at=search.alive_at,
                exact_limit=limit,
            )
        count = min(wanted, int(found.counts[0]))
        return found.keys[0, :count].tolist(), found.similarities[0, :count].tolist(), found.stats

    def _hidden(
        self,
        index: Index,
        query: NDArray[np.float32],
        decision: Decision,
        k: int,
        where: Where,
        admitted: set[int],
        *,
        known_at: int,
    ) -> tuple[Hidden, ...]:
        """Search once more without a policy, and return those of the nearest k that the policy hides, without text.

        At the last minute every passage has one label, so none is found twice; what counts is its label at the
        session's as-of. Those ``admitted`` need no second test.
        """
        anything = Search(self._store.expanded(_ANYTHING, where), NEVER - 1)
        keys, _, _ = self._nearest(index, query, k, anything, decision)
        rest = [key for key in keys if key not in admitted]
        neighbours = self._store.labels_as_of(rest, decision.as_of, known_at=known_at)
        return tuple(
            Hidden(one.chunk_id, why)
            for one in neighbours
            if where.admits(one.metadata) and (why := _reasons(one, decision))
        )


def passage_of(chunk: StoredChunk, similarity: float, citation: Sequence[str]) -> Passage:
    """Return a passage with its text; ``citation`` is a profile's: the parts by which it is named."""
    stated = {**chunk.stated, "part": chunk.document, "id": chunk.accession_number}
    return Passage(
        chunk_id=chunk.chunk_id,
        text=chunk.text,
        similarity=similarity,
        word=chunk.word,
        accession_number=chunk.accession_number,
        form=chunk.form,
        company=chunk.company,
        filed=chunk.filed,
        document=chunk.document,
        start=chunk.start,
        end=chunk.end,
        public_at=chunk.public_at,
        expires_at=chunk.expires_at,
        text_sha256=chunk.text_sha256,
        source=", ".join(named(citation, stated)),
    )
