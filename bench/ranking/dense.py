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
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.evaluation.systems.baselines import Hnsw
from carag.retrieval.ranking import Dense

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from carag.engine import Engine
    from carag.evaluation.cases.pairs import Pair
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


class _Listener(Dense):
    """The ranker by similarity, which keeps what it was asked last, to be asked again."""

    question: Question
    k: int
    again: Callable[..., Ranked]

    def rank(self, *asked: Any, exact_limit: int | None, wider: Wider | None = None) -> Ranked:
        """Keep the question, and answer it."""
        _, _, self.question, _, self.k = asked
        self.again = partial(super().rank, *asked, wider=wider)
        return self.again(exact_limit=exact_limit)


def stages(engine: Engine, pairs: Iterable[Pair], vectors: NDArray[np.float32]) -> list[Stage]:
    """Ask both of every pair, of which none is refused, and return the roles in the order of their names."""
    retriever, listener = engine._retriever, _Listener()  # noqa: SLF001 - one engine may hold a store
    vanilla = Hnsw(vectors, seed=0)
    found: dict[str, Stage] = defaultdict(lambda: Stage(""))
    before, retriever.ranker = retriever.ranker, listener
    for number, pair in enumerate(pairs):
        engine.retrieve(pair.question.text, pair.session)
        stage = found[pair.session.role]
        stage.role = pair.session.role
        ours, theirs = _least(
            [
                partial(listener.again, exact_limit=0),
                partial(vanilla.nearest, listener.question.vector, listener.k),
            ],
            number,
        )
        stage.ours.append(ours)
        stage.vanilla.append(theirs)
        exact, auto = (set(listener.again(exact_limit=limit).keys) for limit in (None, 0))
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
