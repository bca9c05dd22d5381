"""Rank admissible rows for a question: by similarity alone, or fused with words and with what the question names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import fsum, log
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from carag.errors import BackendUnavailable
from carag.index import SearchResult, TermCounts, tokenize
from carag.retrieval.evidence import NOTHING_NAMED, Topic, Words
from carag.retrieval.ranking.fusion import NAMED, Bonuses, Nearest, best_of, bonuses, least_share
from carag.retrieval.reading import asking, respelt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from carag.backends import AnyIndex, CheckedResult, IndexState
    from carag.index import TextIndex
    from carag.policy import Search
    from carag.retrieval.catalogue import Catalogue, Understood
    from carag.retrieval.ranking.fusion import Best
    from carag.retrieval.reading import Lexicon, Respelt


DENSE: Final = "dense"
FUSED: Final = "fused-1"

K1: Final = 0.9
"""BM25's saturation of repeated terms; measured with :data:`B` on development questions, where 0.6 to 2 and 0.4 to 0.75
are within 0.02 of the best recall."""
B: Final = 0.4
"""BM25's weight of a passage's length, 0 to 1."""
_SPARE: Final = 2
"""Ask approximate plans for half as many rows again as wanted: the rows that they miss are mostly in the last ranks."""


@dataclass(slots=True, eq=False)
class Question:
    """The question of one request, which may rank twice."""

    text: str
    vector: NDArray[np.float32]
    _terms: tuple[Lexicon, list[str]] | None = None

    def terms(self, lexicon: Lexicon) -> list[str]:
        """Return the terms of the search by words, looked up once."""
        if self._terms is None or self._terms[0] is not lexicon:
            self._terms = lexicon, terms_of(self.text, lexicon.expand(self.text))
        return self._terms[1]


class Wider(NamedTuple):
    """A search without the session's policy, which shows what the policy hides; it is ranked by itself."""

    search: Search
    k: int


class Ranked(NamedTuple):
    """The best admissible rows."""

    keys: list[int]
    """Best first."""
    similarities: list[float]
    scores: list[float]
    """The scores that order them."""
    plan: str
    """The plans that found the most similar rows."""
    admissible: int
    topic: Topic = NOTHING_NAMED
    words: Words | None = None
    """None from a ranker without words."""
    nearest: float | None = None
    """Similarity of the most similar row, which need not be among the best; None without rows."""
    about: frozenset[int] | None = None
    """The keys whose documents are about what the question names; None if it names nothing or is not read."""
    wider: Ranked | None = None
    """The best rows of the wider search, if any: keys, similarities, scores, and which are about it."""
    state: IndexState | None = None
    """The state of the backend that was searched, if any."""
    respelt: Respelt | None = None
    """The question with its misspelt words mended, which should be asked instead."""


class Ranker(Protocol):
    """Orders the rows that searches admit."""

    @property
    def name(self) -> str:
        """The name in records."""
        ...

    @property
    def fingerprint(self) -> str | None:
        """A hash of everything that an order depends on except rows, words and question; None if the name says it."""
        ...

    def rank(
        self,
        index: AnyIndex,
        words: TextIndex,
        question: Question,
        searches: Sequence[Search],
        k: int,
        *,
        exact_limit: int | None,
        wider: Wider | None = None,
    ) -> Ranked:
        """Return the ``min(k, admissible)`` best rows that any of the searches admits; no row is admissible in two.

        ``index`` and ``words`` are at the same instant. ``exact_limit`` is as for :meth:`carag.Index.search`, or None
        for the certified plan. ``wider`` affects only ``wider`` of the result.
        """
        ...


class Dense:
    """Ranks by similarity alone."""

    name: Final = DENSE
    fingerprint: Final = None

    def rank(
        self,
        index: AnyIndex,
        words: TextIndex,  # noqa: ARG002
        question: Question,
        searches: Sequence[Search],
        k: int,
        *,
        exact_limit: int | None,
        wider: Wider | None = None,
    ) -> Ranked:
        """Rank; see :class:`Ranker`."""
        near, beside = _nearest(index, question.vector, searches, k, exact_limit, wider)
        return _by_similarity(near)._replace(wider=beside and _by_similarity(beside))


class Fused:
    """Ranks by the fused score of :mod:`carag.retrieval.ranking.fusion`.

    Rows of documents in a tier are all scored by words. Of the others, first the ``k`` best by words are scored, which
    gives a lower bound; then those whose words could lift them to it. If ``k`` rows are about what the question names,
    no other is among the best, and the best one by words is enough as the unit of scores.
    """

    name: Final = FUSED

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the catalogue."""
        return self._catalogue.fingerprint

    def rank(
        self,
        index: AnyIndex,
        words: TextIndex,
        question: Question,
        searches: Sequence[Search],
        k: int,
        *,
        exact_limit: int | None,
        wider: Wider | None = None,
    ) -> Ranked:
        """Rank; see :class:`Ranker`."""
        near, beside = _nearest(index, question.vector, searches, k, exact_limit, wider)
        fused = self._fused(index, words, question, searches, k, near)

        def held(terms: Sequence[str]) -> Sequence[int]:
            return words.count(terms, searches).frequencies

        ranked = fused.ranked._replace(
            topic=topic_of(fused.understood, held),
            words=Words(share_of(fused.greatest, fused.counts), self._catalogue.declared.least_words),
            state=near.state,
            respelt=respelt(question.text, held) if 0 in fused.counts.frequencies else None,
        )
        if wider is None or beside is None:
            return ranked
        others = self._fused(index, words, question, [wider.search], wider.k, beside, fused)
        return ranked._replace(wider=others.ranked)

    def _fused(
        self,
        index: AnyIndex,
        words: TextIndex,
        question: Question,
        searches: Sequence[Search],
        k: int,
        near: _NearestRows,
        before: _Fusion | None = None,
    ) -> _Fusion:
        """Fuse; a question that was read ``before`` among the same documents is not read again."""
        nearest, admissible = near.rows, near.admissible
        documents = words.documents(searches)
        if before is not None and np.array_equal(before.documents, documents):
            understood = before.understood
        else:
            understood = self._catalogue.read(question.text, documents)
        terms = question.terms(self._catalogue.declared.lexicon)
        in_tier = documents[understood.tiers > 0]
        keys, _, of = words.admissible(searches, in_tier)
        at = np.searchsorted(documents, of)
        is_about = understood.is_about[at]
        tiers = Bonuses(keys, understood.tiers[at] + NAMED * is_about)
        search = partial(words.search, terms, policy=searches, k1=K1, b=B)
        enough = 1 if np.count_nonzero(is_about) >= k else k
        first = search(k=enough, documents=in_tier, others=True)
        is_other = ~tiers.places(first.keys)[1]
        greatest = first.scores.max(initial=0.0) or 1.0

        def best(keys: NDArray[np.int64], scores: NDArray[np.float64]) -> Best:
            return best_of(
                nearest,
                bonuses(keys, scores / greatest, tiers),
                k,
                lambda asked: index.similarities(question.vector, asked),
                whole=nearest.keys.size >= admissible,
            )

        found = best(first.keys, first.scores)
        least = greatest * least_share(found, nearest, k)
        others = first.scores[is_other]
        if len(others) == k and least <= others[-1]:
            every = search(k=None, floor=least)
            farther = ~tiers.places(every.keys)[1]
            found = best(
                np.concatenate((first.keys[~is_other], every.keys[farther])),
                np.concatenate((first.scores[~is_other], every.scores[farther])),
            )
        ranked = Ranked(
            found.keys.tolist(),
            found.similarities.tolist(),
            found.scores.tolist(),
            near.plan,
            admissible,
            nearest=_greatest(nearest),
            # Rows about it are in tier 1 or higher, plus NAMED; the tier of other rows is below 2.
            about=frozenset(found.keys[tiers.of(found.keys) >= 1 + NAMED].tolist())
            if understood.reading.is_about_somebody
            else None,
        )
        counts = TermCounts(first.stats.admissible, first.stats.length, first.frequencies)
        return _Fusion(ranked, documents, understood, greatest, counts)


class _NearestRows(NamedTuple):
    """The most similar rows, with the plans that found them, and the backend's state if a backend did."""

    rows: Nearest
    plan: str
    admissible: int
    state: IndexState | None


class _Fusion(NamedTuple):
    """The rows with the highest fused score, and what was found on the way."""

    ranked: Ranked
    documents: NDArray[np.int64]
    """The documents with an admissible row."""
    understood: Understood
    greatest: float
    """The BM25 score of the best row by words."""
    counts: TermCounts


def _by_similarity(near: _NearestRows) -> Ranked:
    similarities = near.rows.similarities.tolist()
    return Ranked(
        near.rows.keys.tolist(),
        similarities,
        similarities,
        near.plan,
        near.admissible,
        nearest=_greatest(near.rows),
        state=near.state,
    )


def _greatest(nearest: Nearest) -> float | None:
    return float(nearest.similarities[0]) if nearest.keys.size else None


def share_of(score: float, counts: TermCounts) -> float:
    """Return a BM25 score as a share of the most that the terms of a question could give, 0 to 1."""
    most = fsum(
        (K1 + 1) * log(1 + (counts.chunks - often + 0.5) / (often + 0.5))
        for often in counts.frequencies
        if often
    )
    return score / most if most else 0.0


def topic_of(understood: Understood, held: Callable[[Sequence[str]], Sequence[int]]) -> Topic:
    """Return what a question names, and whether the documents that a session may use are about it at all.

    ``held`` counts, for each of some terms, the passages that the session may use and that hold it.
    """
    said = "; ".join(dict.fromkeys(one.described() for one in understood.absent))
    is_void = understood.is_void
    if not (understood.reading.is_about_somebody or said):
        said = "; ".join(understood.unheard(lambda name: all(held(tokenize(name)))))
        is_void = bool(said)
    what, reading = understood.described(), understood.reading
    is_particular = bool(reading.is_about_somebody or reading.periods or reading.days)
    if is_void:
        near = respelt(said.lower(), held)
        return Topic(what, absent=said, is_particular=is_particular, similar=near.words[0][1] if near else "")
    return Topic(what, missing=said, is_particular=is_particular)


def terms_of(question: str, more: Sequence[str]) -> list[str]:
    """Return the terms of a search by words: those of the asking sentences, and those that a lexicon adds."""
    return [term for text in (asking(question), *more) for term in tokenize(text)]


def _nearest(
    index: AnyIndex,
    query: NDArray[np.float32],
    searches: Sequence[Search],
    k: int,
    exact_limit: int | None,
    wider: Wider | None,
) -> tuple[_NearestRows, _NearestRows | None]:
    """Return the nearest rows of all searches together, and those of the wider one, found by the first of them."""
    is_auto = exact_limit is not None

    def asked(k: int) -> int:
        # More rows than an index holds are never needed.
        return min(k + -(-k // _SPARE), max(k, len(index))) if is_auto else k

    found = [
        index.search(
            query,
            asked(k),
            search.policy,
            plan="auto" if is_auto else "certified",
            as_of=search.as_of,
            alive_at=search.alive_at,
            exact_limit=exact_limit or 0,
            also_hidden=asked(wider.k) if wider and not number else 0,
            hidden_among=wider.search if wider and not number else None,
        )
        for number, search in enumerate(searches)
    ]
    return _near(found, k), _near([found[0].wider], wider.k) if wider else None


def _near(found: Sequence[SearchResult | CheckedResult], k: int) -> _NearestRows:
    said = [None if isinstance(one, SearchResult) else one.stats.state for one in found]
    states = [state for state in said if state is not None]
    if any(state.epoch != states[0].epoch for state in states):
        raise BackendUnavailable("the backend changed between two searches for the same question; ask again")
    stats = [one.stats for one in found]
    return _NearestRows(
        _nearest_of(found[0], k) if len(found) == 1 else _merged([_nearest_of(one, k) for one in found], k),
        "/".join(dict.fromkeys(one.plans[0].value for one in stats)),
        sum(one.admissible for one in stats),
        states[0] if states else None,
    )


def _nearest_of(found: SearchResult | CheckedResult, k: int) -> Nearest:
    count = min(k, int(found.counts[0]))
    return Nearest(found.keys[0, :count], found.similarities[0, :count])


def _merged(found: Sequence[Nearest], k: int) -> Nearest:
    """Merge in a search's order: by similarity, then by key."""
    keys, similarities = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((keys, -similarities))[:k]
    return Nearest(keys[order], similarities[order])
