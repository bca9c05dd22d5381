"""The systems that are compared. All share embedder, prompt, gate and generator; what differs is what they retrieve.

The oracle is the yardstick: the same models over an index that holds only what is admissible, searched exactly.
The baselines are told what is admissible by the judge, without an error or a cost.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from carag.engine import Engine
from carag.errors import InvalidArgument, ModelUnavailable, Refused
from carag.evaluation.models import NeverSilent, Recorded, ShowingWithheld
from carag.evaluation.neighbours import Hnsw, exact
from carag.evaluation.row import ORACLE, SYSTEMS
from carag.generation import Answered, GuardedGenerator
from carag.index import Index
from carag.policy import PolicyTable, infer, intents
from carag.retrieval import ConfidenceGate, Evidence, Retriever, Withheld

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

    from carag.evaluation.asking import Models
    from carag.evaluation.pairs import Pair
    from carag.evaluation.world import World
    from carag.policy import Decision
    from carag.retrieval import Passage

__all__ = ["K", "Said", "Systems"]

K: Final = 8
"""Passages for a question, as in the paper."""
_NOTHING: Final = np.empty(0, np.int64), np.empty(0, np.float32)
_POSTFILTER: Final = {"postfilter-1": 1, "postfilter-4": 4, "postfilter-16": 16}
_RETRIEVERS: Final = {
    "carag-auto": 0,
    "carag-certified": None,
    "carag-withheld-text": None,
    "carag-no-gate": None,
    "carag-no-refusal": None,
}
"""By system, above how many admissible rows x dimension the plan is ``auto``; None for the engine's own limit."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a system did with a pair.

    Attributes
    ----------
    retrieved : tuple of int
        Rows of the world, best first.
    shown : tuple of str
        Ids of the chunks whose text was in the prompt.
    text : str
        An answer's, a decline's or a refusal's; empty if there was none.
    cited : tuple of str
        Ids of the chunks that an answer names.
    """

    retrieved: tuple[int, ...]
    shown: tuple[str, ...]
    outcome: str
    text: str
    cited: tuple[str, ...]
    latency_ms: dict[str, float | None]


class Systems:
    """The systems over one store.

    Parameters
    ----------
    store : Path
        The directory of the engine's store.
    world : World
    models : Models
    seed : int
        Of the baselines' graph.
    names : iterable of str
        Which are wanted; hnswlib is needed only by those that use it.
    """

    def __init__(
        self,
        store: Path,
        world: World,
        models: Models,
        *,
        seed: int,
        names: Iterable[str] = SYSTEMS,
    ) -> None:
        self.names = tuple(names)
        if unknown := set(self.names) - set(SYSTEMS):
            raise InvalidArgument(
                f"no system {', '.join(sorted(unknown))}; want some of {', '.join(SYSTEMS)}"
            )
        embedder, gate = models.embedder, models.gate
        self.world, self.embedder = world, embedder
        self._recorded = Recorded(models.generator, once=models.once)
        self._showing = ShowingWithheld(self._recorded)
        self._guarded = GuardedGenerator(self._recorded, gate)
        self._variants = {
            "carag-withheld-text": GuardedGenerator(self._showing, gate),
            "carag-no-gate": GuardedGenerator(self._recorded, ConfidenceGate(-1)),
            "carag-no-refusal": GuardedGenerator(NeverSilent(self._recorded), ConfidenceGate(-1)),
        }
        self._table = PolicyTable.shipped()
        self._resources = ExitStack()
        index = self._resources.enter_context(Index.load(store / "index.carag"))
        known = world.store.known()
        self._retrievers = {
            limit: Retriever(
                embedder,
                index,
                world.store,
                lambda: nullcontext(known),
                **({} if limit is None else {"exact_limit": limit}),
            )
            for limit in set(_RETRIEVERS.values())
        }
        self.engine = self._resources.enter_context(
            Engine.open(
                store,
                create=False,
                embedder=embedder,
                generator=self._recorded,
                gate=gate,
                clock=lambda: world.now,
            )
        )
        self._hnsw = Hnsw(world.vectors, seed=seed) if self._walks() else None
        self._run: dict[str, Callable[[Pair], Said]] = {
            ORACLE: self._oracle,
            "vanilla": self._vanilla,
            **{name: self._postfilter(times) for name, times in _POSTFILTER.items()},
            "prefilter-rbac": self._prefilter,
            "hnswlib-callback": self._callback,
            **{name: self._carag(name) for name in _RETRIEVERS},
        }

    def _walks(self) -> bool:
        return bool({"vanilla", "hnswlib-callback", *_POSTFILTER} & set(self.names))

    def close(self) -> None:
        """Close the engine and its store."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, name: str, pair: Pair) -> Said:
        """Ask a system; a model that fails is an outcome too."""
        self._recorded.forget()
        try:
            return self._run[name](pair)
        except ModelUnavailable as failure:
            return Said((), self._recorded.shown, "error", str(failure), (), self._times(pair, None, None))

    @property
    def remote(self) -> bool:
        """Whether the generator is somebody else's machine."""
        return self._recorded.remote

    def empty_context(self, question: str) -> str:
        """Return what the model says without any passage."""
        return self._recorded.generate(question, (), Withheld(())).text

    # --- the baselines ---

    def _oracle(self, pair: Pair) -> Said:
        # Its index holds what is admissible before the clock starts.
        mask = self.world.admissible(pair.session, pair.question.text)
        rows = _NOTHING[0] if mask is None else np.flatnonzero(mask)
        return self._governed(pair, lambda query: exact(self.world.vectors, rows, query, K))

    def _vanilla(self, pair: Pair) -> Said:
        return self._answer(pair, lambda query: self._walk.nearest(query, K), Withheld(()))

    def _postfilter(self, times: int) -> Callable[[Pair], Said]:
        def run(pair: Pair) -> Said:
            mask = self._mask(pair)

            def search(query: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
                rows, similarities = self._walk.nearest(query, K * times)
                kept = mask[rows]
                return rows[kept][:K], similarities[kept][:K]

            return self._governed(pair, search)

        return run

    def _prefilter(self, pair: Pair) -> Said:
        mask = self.world.partition(pair.session.role)
        if mask is None:
            return self._governed(pair, lambda _: _NOTHING)
        rows = np.flatnonzero(mask)
        # The partition knows the role and no purpose, so it withholds no kinds that it could name.
        return self._answer(pair, lambda query: exact(self.world.vectors, rows, query, K), Withheld(()))

    def _callback(self, pair: Pair) -> Said:
        mask = self._mask(pair)
        return self._governed(pair, lambda query: self._walk.nearest_of(query, K, mask))

    @property
    def _walk(self) -> Hnsw:
        if self._hnsw is None:
            raise InvalidArgument("this system walks a graph and was not among the names; name it")
        return self._hnsw

    def _mask(self, pair: Pair) -> NDArray[np.bool_]:
        mask = self.world.admissible(pair.session, pair.question.text)
        return np.zeros(len(self.world), bool) if mask is None else mask

    def _governed(
        self,
        pair: Pair,
        search: Callable[[NDArray[np.float32]], tuple[NDArray[np.int64], NDArray[np.float32]]],
    ) -> Said:
        """Refuse where the table refuses; else search and answer."""
        try:
            decision = self._decide(pair)
        except Refused as refusal:
            return self._refused(pair, refusal)
        return self._answer(pair, search, Withheld(decision.withheld))

    def _answer(
        self,
        pair: Pair,
        search: Callable[[NDArray[np.float32]], tuple[NDArray[np.int64], NDArray[np.float32]]],
        withheld: Withheld,
    ) -> Said:
        query = self.embedder.embed_query(pair.question.text)
        start = time.perf_counter()
        rows, similarities = search(query)
        passages = self.world.passages(rows.tolist(), similarities.tolist())
        retrieval = (time.perf_counter() - start) * 1000
        evidence = Evidence(passages, withheld, "", len(passages))
        return self._generate(pair, self._guarded, evidence, retrieval)

    # --- CARAG ---

    def _carag(self, name: str) -> Callable[[Pair], Said]:
        def run(pair: Pair) -> Said:
            try:
                decision = self._decide(pair)
            except Refused as refusal:
                if name == "carag-certified":
                    return self._asked(pair, None)
                return self._refused(pair, refusal)
            start = time.perf_counter()
            evidence = self._retrievers[_RETRIEVERS[name]].retrieve(pair.question.text, decision, K)
            retrieval = (time.perf_counter() - start) * 1000
            if name == "carag-certified":
                return self._asked(pair, retrieval)
            self._showing.withheld = self._hidden_nearby(pair)
            return self._generate(pair, self._variants.get(name, self._guarded), evidence, retrieval)

        return run

    def _asked(self, pair: Pair, retrieval: float | None) -> Said:
        """Ask the engine itself, record and all."""
        self.embedder.embed_query(pair.question.text)
        start = time.perf_counter()
        answer = self.engine.ask(pair.question.text, pair.session)
        total = (time.perf_counter() - start) * 1000 + self._recorded.saved
        total += self.embedder.milliseconds[pair.question.text]
        times = self._times(pair, retrieval, self._recorded.milliseconds)
        return Said(
            self._rows(answer.passages),
            self._recorded.shown,
            answer.outcome.value,
            answer.text,
            tuple(one.chunk_id for one in answer.citations),
            {**times, "total": total},
        )

    def _hidden_nearby(self, pair: Pair) -> tuple[Passage, ...]:
        """Return the passages of the unfiltered top that the policy hides: what the paper's second bucket holds."""
        query = self.embedder.embed_query(pair.question.text)
        rows, similarities = exact(self.world.vectors, np.arange(len(self.world)), query, K)
        hidden = ~self._mask(pair)[rows]
        return self.world.passages(rows[hidden].tolist(), similarities[hidden].tolist())

    # --- shared ---

    def _decide(self, pair: Pair) -> Decision:
        found = intents(pair.question.text)
        return infer(pair.session, self._table, now=self.world.now, intents=found)

    def _refused(self, pair: Pair, refusal: Refused) -> Said:
        return Said((), (), "refuse", str(refusal), (), self._times(pair, None, None))

    def _generate(self, pair: Pair, guarded: GuardedGenerator, evidence: Evidence, retrieval: float) -> Said:
        result = guarded.answer(pair.question.text, evidence)
        answered = isinstance(result, Answered)
        return Said(
            self._rows(evidence.passages),
            self._recorded.shown,
            "answer" if answered else "decline",
            result.text if isinstance(result, Answered) else result.message,
            tuple(one.chunk_id for one in result.citations) if isinstance(result, Answered) else (),
            self._times(pair, retrieval, self._recorded.milliseconds),
        )

    def _rows(self, passages: Iterable[Passage]) -> tuple[int, ...]:
        return tuple(self.world.row_of[one.chunk_id] for one in passages)

    def _times(
        self, pair: Pair, retrieval: float | None, generation: float | None
    ) -> dict[str, float | None]:
        embedding = self.embedder.milliseconds.get(pair.question.text)
        known = [one for one in (embedding, retrieval, generation) if one is not None]
        return {
            "embed": embedding,
            "retrieve": retrieval,
            "generate": generation,
            "total": sum(known) if retrieval is not None else None,
        }
