"""Time search and retrieval under ``auto``, a role each, beside hnswlib without a policy; find what ``auto`` misses.

What is timed of a search by similarity is what the ranker asks of the index: all searches of the decision, whatever
they admit, and for a role that may know of hidden passages also what is nearest of them. hnswlib searches all rows,
with the paper's settings, and knows no policy. What is timed of retrieval is :meth:`carag.Engine.retrieve`, fused, with
its record: over the index, and over hnswlib in the index's place. They take turns; the least of :data:`TIMES` times
counts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.truth import TIE
from bench.harness import in_turn
from bench.ranking.vanilla import Limited, Vanilla
from carag.policy import NEVER, Mask, Policy
from carag.retrieval.ranking import Dense

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from carag.engine import Engine
    from carag.evaluation.cases.pairs import Pair
    from carag.index import Index
    from carag.retrieval.ranking import Question, Ranked, Ranker, Wider


TIMES: Final = 5
"""How often each is asked."""


@dataclass(slots=True)
class Stage:
    """Milliseconds of ours and hnswlib's, a pair each, and how much each finds of its own exact answer."""

    role: str
    searched: list[list[float]] = field(default_factory=list)
    retrieved: list[list[float]] = field(default_factory=list)
    recalls: list[tuple[float, float]] = field(default_factory=list)

    def cells(self) -> str:
        """Write the row of the table."""
        parts = [f"{self.role} | {len(self.recalls)}"]
        for taken, digits in ((self.searched, 3), (self.retrieved, 2)):
            for ours, vanilla in np.quantile(taken, (0.5, 0.95), axis=0):
                parts.append(f"{ours:.{digits}f} | {vanilla:.{digits}f} | {ours / vanilla:.2f}")
        ours, vanilla = np.mean(self.recalls, axis=0)
        return f"| {' | '.join(parts)} | {ours:.4f} | {vanilla:.4f} |"


class _Listener(Dense):
    """The ranker by similarity, which keeps what it was asked last, to be asked again."""

    index: Index
    question: Question
    k: int
    again: Callable[..., Ranked]

    def rank(self, *asked: Any, exact_limit: int | None, wider: Wider | None = None) -> Ranked:
        """Keep the question, and answer it."""
        self.index, _, self.question, _, self.k = asked
        self.again = partial(super().rank, *asked, wider=wider)
        return self.again(exact_limit=exact_limit)


def stages(
    engine: Engine, pairs: Sequence[Pair], keys: NDArray[np.int64], vectors: NDArray[np.float32]
) -> list[Stage]:
    """Ask both of every pair, of which none is refused, and return the roles in the order of their names.

    `keys` and `vectors` belong to all rows of the index.
    """
    retriever, listener = engine.requests.retriever, _Listener()
    fused = retriever.ranker
    vanilla = _in_its_place(engine, listener, pairs[0], keys, vectors)
    rankers = Limited(fused), Limited(fused, vanilla)
    found: dict[str, Stage] = defaultdict(lambda: Stage(""))
    for number, pair in enumerate(pairs):
        stage = found[pair.session.role]
        stage.role = pair.session.role
        stage.retrieved.append(
            in_turn([partial(_retrieve, engine, pair, ranker) for ranker in rankers], TIMES, number)
        )
        _retrieve(engine, pair, listener)
        again, question = listener.again, listener.question
        nearest = partial(vanilla.graph.nearest, question.vector, listener.k)
        stage.searched.append(in_turn([partial(again, exact_limit=0), nearest], TIMES, number))
        exact, auto = (set(again(exact_limit=limit).keys) for limit in (None, 0))
        ours = len(exact & auto) / len(exact) if exact else 1.0
        stage.recalls.append((ours, _recall(vectors @ question.vector, nearest()[0], listener.k)))
    retriever.ranker = fused
    return [found[role] for role in sorted(found)]


def _recall(similarities: NDArray[np.float32], rows: NDArray[np.int64], k: int) -> float:
    """Return which part of the k nearest rows of all are among some; ties count."""
    floor = np.partition(similarities, -k)[-k] - TIE
    return float(np.count_nonzero(similarities[rows] >= floor)) / k


def _retrieve(engine: Engine, pair: Pair, ranker: Ranker) -> None:
    engine.requests.retriever.ranker = ranker
    engine.retrieve(pair.question.text, pair.session)


def _in_its_place(
    engine: Engine, listener: _Listener, pair: Pair, keys: NDArray[np.int64], vectors: NDArray[np.float32]
) -> Vanilla:
    """Make what is searched instead of the index, which the ranker is given for any pair."""
    _retrieve(engine, pair, listener)
    index, everything = listener.index, Policy(Mask())
    return Vanilla(index, keys, vectors, index.search(vectors[0], 1, everything, as_of=NEVER - 1).stats)
