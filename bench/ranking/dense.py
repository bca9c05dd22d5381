"""Time the search by similarity alone, for each role, beside hnswlib without a policy; and find what ``auto`` misses.

What is timed is what the ranker asks of the index: all searches of the decision, under the plan ``auto`` whatever they
admit, and for a role that may know of hidden passages also what is nearest of them. hnswlib searches all rows, with the
paper's settings, and knows no policy. They take turns, and the least of :data:`TIMES` times counts.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.evaluation.systems.baselines import Hnsw
from carag.retrieval.ranking import Dense

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from carag.backends import Checked
    from carag.engine import Engine
    from carag.evaluation.cases.pairs import Pair
    from carag.index import Index, TextIndex
    from carag.policy import Search
    from carag.retrieval.ranking import Question, Ranked, Wider

__all__ = ["Stage", "stages"]

TIMES: Final = 5
"""How often each is asked."""


@dataclass(slots=True)
class Stage:
    """Milliseconds of both, a pair each, and how much of the exact answer ``auto`` finds."""

    role: str
    ours: list[float] = field(default_factory=list)
    vanilla: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)

    def cells(self) -> str:
        """Write the row of the table."""
        median, most = (
            [float(np.quantile(of, part)) for of in (self.ours, self.vanilla)] for part in (0.5, 0.95)
        )
        return (
            f"| {self.role} | {len(self.ours)} | {median[0]:.3f} | {median[1]:.3f} | {most[0]:.3f} | {most[1]:.3f} | "
            f"{np.mean(self.recalls):.4f} |"
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a ranker was asked."""

    index: Index | Checked
    words: TextIndex
    question: Question
    searches: Sequence[Search]
    k: int
    wider: Wider | None

    def rank(self, *, exact_limit: int | None) -> Ranked:
        return Dense().rank(
            *(self.index, self.words, self.question, self.searches, self.k),
            exact_limit=exact_limit,
            wider=self.wider,
        )


class _Listener:
    """A ranker that keeps what it is asked."""

    name, fingerprint = Dense.name, Dense.fingerprint

    def __init__(self) -> None:
        self.asked: _Asked | None = None

    def rank(
        self,
        index: Index | Checked,
        words: TextIndex,
        question: Question,
        searches: Sequence[Search],
        k: int,
        *,
        exact_limit: int | None,
        wider: Wider | None = None,
    ) -> Ranked:
        """Keep the question, and answer it."""
        self.asked = _Asked(index, words, question, searches, k, wider)
        return self.asked.rank(exact_limit=exact_limit)


def stages(engine: Engine, pairs: Iterable[Pair], vectors: NDArray[np.float32]) -> list[Stage]:
    """Ask both of every pair, of which none is refused, and return the roles in the order of their names."""
    retriever, listener = engine._retriever, _Listener()  # noqa: SLF001 - one engine may hold a store
    vanilla = Hnsw(vectors, seed=0)
    found: dict[str, Stage] = defaultdict(lambda: Stage(""))
    before, retriever.ranker = retriever.ranker, listener
    for number, pair in enumerate(pairs):
        engine.retrieve(pair.question.text, pair.session)
        asked = listener.asked
        assert asked is not None
        stage = found[pair.session.role]
        stage.role = pair.session.role
        ours, theirs = _least(
            [partial(asked.rank, exact_limit=0), partial(vanilla.nearest, asked.question.vector, asked.k)],
            number,
        )
        stage.ours.append(ours)
        stage.vanilla.append(theirs)
        exact, auto = (set(asked.rank(exact_limit=limit).keys) for limit in (None, 0))
        stage.recalls.append(len(exact & auto) / len(exact) if exact else 1.0)
    retriever.ranker = before
    return [found[role] for role in sorted(found)]


def _least(works: Sequence[Callable[[], object]], first: int) -> list[float]:
    """Return the least milliseconds of each, in turn; which begins changes with each question."""
    least = [float("inf")] * len(works)
    for turn in range(len(works) * TIMES):
        at = (first + turn) % len(works)
        start = time.perf_counter()
        works[at]()
        least[at] = min(least[at], 1000 * (time.perf_counter() - start))
    return least
