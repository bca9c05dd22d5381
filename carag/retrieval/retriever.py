"""Find evidence for a question: embed it, rank under the policy, check every hit again, read its text."""

from __future__ import annotations

import heapq
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from carag.errors import CorruptFile
from carag.labelling.naming import named
from carag.policy import EVERYWHERE, NEVER, Mask, Policy, Rule, Search
from carag.policy.mask import ANY_AUDIENCE
from carag.retrieval.evidence import Evidence, Head, Hidden, Passage, Withheld
from carag.retrieval.past_index import PastIndex
from carag.retrieval.ranking import Question, Wider
from carag.retrieval.reranker import pool_size
from carag.retrieval.tables import BACK, head_of, torn_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from carag.backends import AnyIndex
    from carag.index import TextIndex
    from carag.policy import Audience, Decision, Profile, Reason, Where
    from carag.retrieval.authority import Inquiry
    from carag.retrieval.embedder import Embedder
    from carag.retrieval.ranking import Ranked, Ranker
    from carag.retrieval.reading import Respelt
    from carag.retrieval.reranker import Reranker
    from carag.store.store import CorpusStore
    from carag.store.values import StoredChunk, StoredLabel


EXACT_LIMIT: Final = 1 << 28
"""The largest product of admissible rows and dimension that is searched exactly. The limit is not a time, so that a
question runs the same plan on every machine; the record says which plan ran."""

_ANYTHING: Final = Policy(Mask(), audiences=ANY_AUDIENCE)


class Searchable(Protocol):
    """A store whose open labels are the rows of an index."""

    @property
    def store(self) -> CorpusStore:
        """The store of passages and labels."""
        ...

    @property
    def index(self) -> AnyIndex:
        """Rows under the keys of the store's labels."""
        ...

    @property
    def words(self) -> TextIndex:
        """The words of the passages, under the same labels."""
        ...

    @property
    def profile(self) -> Profile:
        """What decides the form of citations and headings."""
        ...

    @property
    def embedder(self) -> Embedder:
        """What made the index's vectors."""
        ...

    def reading(self) -> AbstractContextManager[int]:
        """Keep the index at one instant of the store, and lend that instant (microseconds since 1970)."""
        ...


_Rows: TypeAlias = "tuple[AnyIndex, TextIndex]"
"""Vectors and words of one instant."""


class Rows(NamedTuple):
    """The words of a store at one instant, and the searches that say what a session may use of them."""

    words: TextIndex
    searches: Sequence[Search]
    known_at: int
    """The instant, in microseconds since 1970; -1 for an empty store."""


class Retriever:
    """Find the admissible passages for a question, and what is withheld.

    Above ``exact_limit``, admissible rows x dimension, the plan is ``auto``. A reranker orders the admissible passages
    found, of which the best ``k`` are returned.

    - ``certifies``: whether decisions that must not know what is hidden run the certified plan, whose time does not
      depend on hidden rows, even above ``exact_limit``, and never a graph.
    """

    def __init__(
        self,
        collection: Searchable,
        ranker: Ranker,
        *,
        exact_limit: int = EXACT_LIMIT,
        reranker: Reranker | None = None,
    ) -> None:
        self.ranker = ranker
        self.reranker = reranker
        self.certifies = False
        self._collection = collection
        self._store = collection.store
        self._exact_limit = exact_limit
        heading = collection.profile.vocabulary.heading
        self._past = PastIndex(collection.store, collection.index.dim, heading)

    @property
    def _citation(self) -> tuple[str, ...]:
        return self._collection.profile.vocabulary.citation

    def retrieve(
        self,
        question: str,
        decision: Decision,
        k: int,
        where: Where = EVERYWHERE,
        *,
        before_remote: Callable[[], None] | None = None,
        authority: Inquiry | None = None,
    ) -> Evidence:
        """Return the ``min(k, admissible)`` best admissible passages, and what is withheld.

        Passages about what the question names come first. A reranker chooses among more passages than ``k``. A decision
        about what was known in the past is answered exactly, from the labels known then.

        - ``where``: documents that it does not admit are treated as absent from the store.
        - ``before_remote``: called before question and passages leave this machine for a remote reranker; if it raises,
          they stay.
        - ``authority``: asked about the documents of the passages found, while labels and index stand still; what it
          does not allow is left out, and the next best take its place. Counts, and what the question is understood to
          name, are those before it.

        Raises CorruptFile if index and store disagree on a hit; nothing is returned. Raises ModelUnavailable if the
        embedder or the reranker fails; no other order replaces the reranker's.
        """
        evidence = self._found(question, decision, k, where, authority)
        if self.reranker is None or not evidence.passages:
            return evidence
        if self.reranker.remote and before_remote is not None:
            before_remote()
        # Outside `reading`, so that no writer waits for a model.
        scores = self.reranker.rerank(evidence.respelt or question, [one.text for one in evidence.passages])
        about = len(scores) if evidence.about is None else evidence.about
        best = heapq.nsmallest(k, range(len(scores)), key=lambda at: (at >= about, -scores[at], at))
        passages = tuple(evidence.passages[at] for at in best)
        return replace(
            evidence,
            passages=passages,
            about=None if evidence.about is None else min(k, about),
            lenders=tuple(_lenders(passages, (*evidence.passages, *evidence.lenders))),
        )

    def _found(
        self, question: str, decision: Decision, k: int, where: Where, authority: Inquiry | None
    ) -> Evidence:
        """Return the best admissible passages: ``k``, or as many as the reranker reads; misspelt words are mended."""
        found, respelt = self._searched(question, decision, k, where, authority)
        if respelt is None:
            return found
        found, _ = self._searched(respelt.text, decision, k, where, authority)
        said = "; ".join(filter(None, (found.topic.understood, respelt.described())))
        return replace(found, topic=replace(found.topic, understood=said), respelt=respelt.text)

    def _searched(
        self, question: str, decision: Decision, k: int, where: Where, authority: Inquiry | None
    ) -> tuple[Evidence, Respelt | None]:
        asked = Question(question, self._collection.embedder.embed_query(question))
        with self._at(decision, where) as (rows, known_at):
            return self._gather(rows, asked, decision, k, where, authority, known_at=known_at)

    @contextmanager
    def listing(self, decision: Decision, where: Where = EVERYWHERE) -> Iterator[Rows]:
        """Lend the words of the instant that a decision is about, and the searches of what it admits of them."""
        with self._at(decision, where) as ((_, words), known_at):
            yield Rows(words, self._searches(decision, where), known_at)

    @contextmanager
    def _at(self, decision: Decision, where: Where) -> Iterator[tuple[_Rows, int]]:
        """Lend the rows of the instant that a decision is about, of documents that are asked for, and that instant."""
        with self._collection.reading() as known_at:
            then = known_at if decision.known_at is None else self._store.known(decision.known_at)
            if then == known_at:
                yield self._narrowed((self._collection.index, self._collection.words), where), known_at
                return
        with self._past.at(then) as rows:
            yield self._narrowed(rows, where), then

    def _narrowed(self, rows: _Rows, where: Where) -> _Rows:
        if where.documents is None:
            return rows
        from carag.retrieval.narrowed import NarrowedIndex, NarrowedWords, Within

        index, words = rows
        narrowed = NarrowedWords(words, Within(self._store.documents, where.documents))
        # They have what rankers and listings call of an index, and nothing else.
        return cast("AnyIndex", NarrowedIndex(index, narrowed)), cast("TextIndex", narrowed)

    def _gather(
        self,
        rows: _Rows,
        asked: Question,
        decision: Decision,
        k: int,
        where: Where,
        authority: Inquiry | None,
        *,
        known_at: int,
    ) -> tuple[Evidence, Respelt | None]:
        ranked, hits, near = self._hits(rows, asked, decision, k, where, authority, known_at=known_at)
        hidden = self._hidden(near, decision, where, hits, known_at=known_at) if near else ()
        passages, lenders, audiences = self._with_heads(
            rows[0], asked, decision, where, hits, known_at=known_at
        )
        found = Evidence(
            passages,
            Withheld(decision.withheld, hidden),
            ranked.plan,
            ranked.admissible,
            known_at if known_at >= 0 else None,
            ranked.topic,
            ranked.words,
            ranked.nearest,
            None if ranked.about is None else sum(chunk.key in ranked.about for _, chunk in hits),
            lenders,
            ranked.state,
            audiences,
        )
        return found, ranked.respelt

    def _hits(
        self,
        rows: _Rows,
        asked: Question,
        decision: Decision,
        k: int,
        where: Where,
        authority: Inquiry | None,
        *,
        known_at: int,
    ) -> tuple[Ranked, list[tuple[float, StoredChunk]], _Neighbours | None]:
        """Rank, and rank again for more hits if some were closed since the instant searched, or are not allowed."""
        wanted = most = k if self.reranker is None else pool_size(k)
        near = None
        while True:
            wider = self._wider(decision, k, where) if near is None else None
            found = self._attempt(rows, asked, decision, wanted, where, wider, known_at=known_at)
            if found is None:
                near = None
                continue
            near = found.near or near
            hits, admissible = found.hits, found.ranked.admissible
            if authority is not None:
                allowed = authority.allows(chunk.document_id for _, chunk in hits)
                hits = [one for one in hits if one[1].document_id in allowed]
            lost = found.ended + len(found.hits) - len(hits)
            if len(hits) >= most or wanted >= admissible or not lost:
                # Exact except for lower-ranked labels that were closed since the instant of the index.
                ranked = found.ranked._replace(admissible=admissible - found.ended)
                # The nearest passage may be one that the authority does not allow.
                return ranked if authority is None else ranked._replace(nearest=None), hits[:most], near
            wanted = min(wanted + max(most, 2 * lost), admissible)

    def _attempt(
        self,
        rows: _Rows,
        asked: Question,
        decision: Decision,
        wanted: int,
        where: Where,
        wider: Wider | None,
        *,
        known_at: int,
    ) -> _Attempt | None:
        """Rank once and test every hit again; None if the entity lists were translated too early: then rank again."""
        searches = self._searches(decision, where)
        ranked = self._rank(rows, asked, searches, wanted, decision, wider)
        chunks, near = self._read(ranked, decision, known_at=known_at)
        hits, ended = [], 0
        for chunk, similarity in zip(chunks, ranked.similarities, strict=True):
            why = decision.reasons_for(chunk)
            is_within = where.admits(chunk.metadata)
            if not why and is_within:
                hits.append((similarity, chunk))
            elif is_within and self._was_closed(chunk.key, why, known_at):
                ended += 1
            elif searches != self._searches(decision, where):
                return None  # a filing with a new set of CIKs was added after the lists were translated
            else:
                raise disagreement()
        return _Attempt(ranked, hits, ended, near)

    def _read(
        self, ranked: Ranked, decision: Decision, *, known_at: int
    ) -> tuple[list[StoredChunk], _Neighbours | None]:
        """Read the passages found, and only the labels of others near the question."""
        then = None if decision.known_at is None else known_at
        if ranked.wider is None:
            return self._store.chunks(ranked.keys, known_at=then), None
        keys = ranked.wider.keys
        own = set(ranked.keys)
        others = [key for key in keys if key not in own]
        chunks, labels = self._store.chunks_and_labels(
            ranked.keys, others, decision.as_of, closed_by=then, known_at=known_at
        )
        return chunks, _Neighbours(keys, labels)

    def _with_heads(
        self,
        index: AnyIndex,
        asked: Question,
        decision: Decision,
        where: Where,
        hits: Sequence[tuple[float, StoredChunk]],
        *,
        known_at: int,
    ) -> tuple[tuple[Passage, ...], tuple[Passage, ...], dict[str, Audience]]:
        """Return the hits, with head rows of torn tables, the passages that have those, and who may see them all."""
        torn = [chunk for _, chunk in hits if torn_row(chunk.text)]
        near: dict[int, StoredChunk] = {}
        if torn:
            numbers = sorted({one.number - back for one in torn for back in range(1, BACK + 1)})
            near = self._admissible(numbers, decision, where, known_at=known_at)
        heads = {one.key: head_of(one, list(_before(one, near))) for one in torn}
        passages = tuple(
            passage_of(chunk, similarity, self._citation, heads.get(chunk.key)) for similarity, chunk in hits
        )
        lenders = _lenders(passages, near.values())
        similarities = index.similarities(asked.vector, [one.key for one in lenders]) if lenders else ()
        lending = tuple(
            passage_of(chunk, float(similarity), self._citation)
            for chunk, similarity in zip(lenders, similarities, strict=True)
        )
        return passages, lending, shared_with((*(chunk for _, chunk in hits), *lenders))

    def _admissible(
        self, numbers: Sequence[int], decision: Decision, where: Where, *, known_at: int
    ) -> dict[int, StoredChunk]:
        """Read, by number, the passages that a search at an instant would admit; the text of no other is read."""
        keys = [
            key
            for key, label in self._store.labels.of_passages(numbers, known_at=known_at)
            if where.admits(label.metadata) and not decision.reasons_for(label)
        ]
        then = None if decision.known_at is None else known_at
        # Tested again, because a label may have been closed between the two reads.
        return {
            one.number: one
            for one in self._store.chunks(keys, known_at=then)
            if where.admits(one.metadata) and not decision.reasons_for(one)
        }

    def _searches(self, decision: Decision, where: Where) -> list[Search]:
        """Return the searches of a decision, with entity lists and principals translated to the numbers in rows."""
        return [
            replace(one, policy=self._store.expanded(one.policy, where.declared, decision.identity))
            for one in decision.searches
        ]

    def _wider(self, decision: Decision, k: int, where: Where) -> Wider | None:
        """Return the search without a policy, for a session that may know what is hidden."""
        if not decision.may_know_existence:
            return None
        return Wider(Search(self._store.expanded(_ANYTHING, where.declared), NEVER - 1), k)

    def _rank(
        self,
        rows: _Rows,
        asked: Question,
        searches: Sequence[Search],
        k: int,
        decision: Decision,
        wider: Wider | None,
    ) -> Ranked:
        is_certified = decision.known_at is not None or (self.certifies and not decision.may_know_existence)
        limit = None if is_certified else max(self._exact_limit // rows[0].dim, 0)
        return self.ranker.rank(*rows, asked, searches, k, exact_limit=limit, wider=wider)

    def _was_closed(self, key: int, why: Sequence[Reason], known_at: int) -> bool:
        """Tell whether a hit is hidden only because its label was closed after an instant."""
        ended = [reason.rule for reason in why] == [Rule.TOMBSTONE]
        return ended and key in self._store.labels.closed(after=known_at)

    def _hidden(
        self,
        near: _Neighbours,
        decision: Decision,
        where: Where,
        hits: Sequence[tuple[float, StoredChunk]],
        *,
        known_at: int,
    ) -> tuple[Hidden, ...]:
        """Return what the policy hides near the question, by the labels at the session's as-of, without text."""
        admitted = {chunk.key for _, chunk in hits}
        rest = [key for key in near.keys if key not in admitted]
        labels = near.labels
        if late := [key for key in rest if key not in labels]:  # found, but closed since
            found = self._store.labels.as_of(late, decision.as_of, known_at=known_at)
            labels = labels | dict(zip(late, found, strict=True))
        return tuple(
            Hidden(one.chunk_id, why)
            for one in map(labels.__getitem__, rest)
            if where.admits(one.metadata) and (why := decision.reasons_for(one))
        )


def disagreement() -> CorruptFile:
    """Return the error for a passage that only the index admits; it does not name what is hidden from the session."""
    return CorruptFile(
        "index and store disagree about a passage: the index admits it, the store does not; delete the index files, "
        "and the next opening rebuilds them from the store"
    )


class _Neighbours(NamedTuple):
    """What is nearest to a question regardless of policy."""

    keys: list[int]
    """Best first."""
    labels: dict[int, StoredLabel]
    """By key, the labels at the session's as-of of passages that were not found under its policy."""


class _Attempt(NamedTuple):
    ranked: Ranked
    hits: list[tuple[float, StoredChunk]]
    ended: int
    """Hits that are left out because their labels were closed since the instant that was searched."""
    near: _Neighbours | None


_Named = TypeVar("_Named", "Passage", "StoredChunk")


def _before(chunk: StoredChunk, near: Mapping[int, StoredChunk]) -> Iterator[StoredChunk]:
    """Yield the passages right before one in its document, nearest first, up to the first that is not in ``near``."""
    for back in range(1, BACK + 1):
        one = near.get(chunk.number - back)
        if one is None or one.filing != chunk.filing:
            return
        yield one


def _lenders(passages: Sequence[Passage], found: Iterable[_Named]) -> list[_Named]:
    """Return those in ``found`` that have the head rows of some passages and are not among them."""
    lending = {one.head.chunk_id for one in passages if one.head is not None}
    lending -= {one.chunk_id for one in passages}
    return [one for one in found if one.chunk_id in lending]


def shared_with(chunks: Iterable[StoredChunk]) -> dict[str, Audience]:
    """Return who may see those of some passages that are not for everybody."""
    return {one.chunk_id: one.audience for one in chunks if one.audience}


def passage_of(
    chunk: StoredChunk, similarity: float, citation: Sequence[str], head: Head | None = None
) -> Passage:
    """Return a passage with its text, named by the parts in a profile's ``citation``."""
    stated = {**chunk.stated, "part": chunk.document, "id": chunk.document_id}
    return Passage(
        chunk_id=chunk.chunk_id,
        text=chunk.text,
        similarity=similarity,
        word=chunk.word,
        accession_number=chunk.document_id,
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
        head=head,
    )
