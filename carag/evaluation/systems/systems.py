"""Run the compared systems, which share embedder, ranker, prompt, gate and generator, and differ in what they search.

The oracle is the reference: the same models over an index that contains only admissible chunks, searched exactly. The
ground truth tells the baselines which chunks are admissible, without error or cost.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from carag.engine import Engine
from carag.errors import InvalidArgument, ModelUnavailable, Refused
from carag.evaluation.models import AlwaysAnswering, RecordingGenerator, ShowingWithheld
from carag.evaluation.row import ORACLE, SYSTEMS, K
from carag.evaluation.searched import Searched
from carag.evaluation.systems.baselines import Hnsw
from carag.evaluation.systems.output import Output
from carag.evaluation.systems.own import checked, corpus_of, take
from carag.evaluation.systems.reference_ranker import Best, ReferenceRanker
from carag.generation import Answered, GuardedGenerator
from carag.index import Index, TextIndex
from carag.limits import quoted
from carag.policy import infer
from carag.retrieval import EXACT_LIMIT, FUSED, ConfidenceGate, Evidence, Retriever, Withheld, ranker_by_name
from carag.retrieval.evidence import NOTHING_NAMED
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

    from carag.evaluation.cases.ground_truth import GroundTruth
    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.models import Models
    from carag.evaluation.systems.own import OwnSystem
    from carag.policy import Decision, Profile, Session
    from carag.retrieval import Embedder, Passage
    from carag.retrieval.retriever import Searchable
    from carag.store.store import CorpusStore


_log = logger(__name__)
_NOTHING: Final = Best(np.empty(0, np.int64), np.empty(0, np.float32), NOTHING_NAMED, None, None, None)
_POSTFILTER: Final = {"postfilter-1": 1, "postfilter-4": 4, "postfilter-16": 16}
"""How many times `K` passages a post-filter searches before it filters."""
_EXACT_LIMITS: Final = {
    "carag-auto": 0,
    "carag-certified": None,
    "carag-withheld-text": None,
    "carag-no-gate": None,
    "carag-no-refusal": None,
}
"""Greatest product of admissible rows and dimension that a system searches exactly; None: the engine's limit."""


@dataclass(frozen=True, slots=True)
class _AsLoaded:
    """A store and the index files that were saved at one of its instants."""

    store: CorpusStore
    index: Index
    words: TextIndex
    embedder: Embedder
    known_at: int
    profile: Profile

    def reading(self) -> AbstractContextManager[int]:
        """Lend the instant of the index."""
        return nullcontext(self.known_at)


class Systems:
    """The compared systems over the store in a directory.

    - ``seed``: seed of the baselines' graph.
    - ``names``: the systems wanted; hnswlib is needed only by those that use it.
    - ``own``: systems that the user brings, asked in addition.
    - ``searched``: where CARAG's own systems search; by default in the store's index file. The others have their
      vectors in memory.
    """

    def __init__(
        self,
        store: Path,
        truth: GroundTruth,
        models: Models,
        *,
        seed: int,
        names: Iterable[str] = SYSTEMS,
        own: Sequence[OwnSystem] = (),
        searched: Searched | None = None,
    ) -> None:
        ours, searched = tuple(names), searched or Searched()
        self.names = (*ours, *(one.name for one in own))
        if unknown := set(ours) - set(SYSTEMS):
            raise InvalidArgument(
                f"there is no system {', '.join(sorted(unknown))}; want some of {', '.join(SYSTEMS)}"
            )
        embedder, gate = models.embedder, models.gate
        self.truth = truth
        self.embedder = embedder
        self._recorded = RecordingGenerator(models.generator, once=models.once)
        self._showing = ShowingWithheld(self._recorded)
        self._guarded = GuardedGenerator(self._recorded, gate)
        self._variants = {
            "carag-withheld-text": GuardedGenerator(self._showing, gate),
            "carag-no-gate": GuardedGenerator(self._recorded, ConfidenceGate(-1)),
            "carag-no-refusal": GuardedGenerator(AlwaysAnswering(self._recorded), ConfidenceGate(-1)),
        }
        self._table = truth.profile.table
        self._reported: set[str] = set()
        self._resources = ExitStack()
        self.engine = self._resources.enter_context(
            Engine.open(
                store,
                create=False,
                embedder=embedder,
                generator=self._recorded,
                gate=gate,
                clock=lambda: truth.now,
                **searched.settings(store),
            )
        )
        collection = self._as_loaded(store, searched)
        ranker = ranker_by_name(FUSED, self._reference.catalogue)
        self._retrievers = {
            limit: Retriever(collection, ranker, exact_limit=EXACT_LIMIT if limit is None else limit)
            for limit in set(_EXACT_LIMITS.values())
        }
        self._hnsw = Hnsw(truth.vectors, seed=seed) if self._need_graph() else None
        self._run: dict[str, Callable[[Pair], Output]] = {
            ORACLE: self._oracle,
            "vanilla": self._vanilla,
            **{name: self._postfilter(times) for name, times in _POSTFILTER.items()},
            "prefilter-rbac": self._prefilter,
            "hnswlib-callback": self._callback,
            **{name: self._carag(name) for name in _EXACT_LIMITS},
        }
        if own:
            corpus = corpus_of(truth)
            self._run |= {one.name: self._own(one.name, one.build(corpus)) for one in own}

    @property
    def truth(self) -> GroundTruth:
        """Who may use what; an attack replaces it after changing the store."""
        return self._truth

    @truth.setter
    def truth(self, truth: GroundTruth) -> None:
        self._truth, self._reference = truth, ReferenceRanker(truth)

    def _as_loaded(self, store: Path, searched: Searched) -> Searchable:
        """Load what was saved last; rows in a backend move on with the engine, and what belongs to them must too."""
        if searched.is_in_backend(store):
            return self.engine._collection  # noqa: SLF001 - one engine may hold a store
        index = self._resources.enter_context(Index.load(store / "index.carag"))
        words = self._resources.enter_context(TextIndex.load(store / "index.words"))
        known_at = self.truth.store.known()
        return _AsLoaded(self.truth.store, index, words, self.embedder, known_at, self.truth.profile)

    def _need_graph(self) -> bool:
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

    def ask(self, name: str, pair: Pair) -> Output:
        """Ask one system; an unavailable model is an outcome too."""
        self._recorded.forget()
        try:
            return self._run[name](pair)
        except ModelUnavailable as failure:
            return Output((), self._recorded.shown, "error", str(failure), (), self._times(pair, None, None))

    @property
    def remote(self) -> bool:
        """Whether the generator runs on another machine."""
        return self._recorded.remote

    def empty_context(self, question: str) -> str:
        """Return what the model answers without any passage."""
        return self._recorded.generate(question, (), Withheld(())).text

    # --- the baselines ---

    def _oracle(self, pair: Pair) -> Output:
        mask = self._mask(pair)
        return self._governed(pair, mask, lambda query: self._best(pair, query, mask))

    def _vanilla(self, pair: Pair) -> Output:
        everything = np.ones(len(self.truth), bool)
        return self._answer(
            pair,
            everything,
            lambda query: self._best(pair, query, everything, nearest=self._walk.nearest(query, K)),
            Withheld(()),
        )

    def _postfilter(self, times: int) -> Callable[[Pair], Output]:
        def run(pair: Pair) -> Output:
            mask, everything = self._mask(pair), np.ones(len(self.truth), bool)

            def search(query: NDArray[np.float32]) -> Best:
                nearest = self._walk.nearest(query, K * times)
                return self._best(pair, query, everything, K * times, nearest=nearest).among(mask, K)

            return self._governed(pair, mask, search)

        return run

    def _prefilter(self, pair: Pair) -> Output:
        mask = self.truth.partition(pair.session.role)
        if mask is None:
            return self._governed(pair, self._mask(pair), lambda _: _NOTHING)
        # The partition knows roles but no purposes, so there are no withheld kinds to name.
        return self._answer(pair, mask, lambda query: self._best(pair, query, mask), Withheld(()))

    def _callback(self, pair: Pair) -> Output:
        mask = self._mask(pair)
        return self._governed(
            pair,
            mask,
            lambda query: self._best(pair, query, mask, nearest=self._walk.nearest_of(query, K, mask)),
        )

    def _best(
        self,
        pair: Pair,
        query: NDArray[np.float32],
        mask: NDArray[np.bool_],
        k: int = K,
        *,
        nearest: tuple[NDArray[np.int64], NDArray[np.float32]] | None = None,
    ) -> Best:
        respelt = self._reference.respelt(pair.question.text, mask)
        if respelt:
            query = self.embedder.embed_query(respelt)
        best = self._reference.best(respelt or pair.question.text, query, mask, k, nearest=nearest)
        return best._replace(respelt=respelt)

    @property
    def _walk(self) -> Hnsw:
        if self._hnsw is None:
            raise InvalidArgument("this system searches a graph but is not among the names; name it")
        return self._hnsw

    def _mask(self, pair: Pair) -> NDArray[np.bool_]:
        mask = self.truth.admissible(pair.session, pair.question.text)
        return np.zeros(len(self.truth), bool) if mask is None else mask

    def _governed(
        self,
        pair: Pair,
        mask: NDArray[np.bool_],
        search: Callable[[NDArray[np.float32]], Best],
    ) -> Output:
        """Refuse if the table refuses the session; otherwise search and answer."""
        try:
            decision = self._decide(pair)
        except Refused as refusal:
            return self._refused(pair, refusal)
        return self._answer(pair, mask, search, Withheld(decision.withheld))

    def _answer(
        self,
        pair: Pair,
        mask: NDArray[np.bool_],
        search: Callable[[NDArray[np.float32]], Best],
        withheld: Withheld,
    ) -> Output:
        """Search and answer; the heads of split tables come from the chunks that a mask admits, as hits do."""
        query = self.embedder.embed_query(pair.question.text)
        start = time.perf_counter()
        best = search(query)
        passages = self.truth.passages(best.rows.tolist(), best.similarities.tolist())
        passages = self.truth.with_heads(passages, mask)
        retrieval = (time.perf_counter() - start) * 1000
        evidence = Evidence(
            passages,
            withheld,
            "",
            len(passages),
            topic=best.topic,
            words=best.words,
            nearest=best.nearest,
            about=best.about,
            respelt=best.respelt,
        )
        return self._generate(pair, self._guarded, evidence, retrieval)

    # --- CARAG ---

    def _carag(self, name: str) -> Callable[[Pair], Output]:
        def run(pair: Pair) -> Output:
            try:
                decision = self._decide(pair)
            except Refused as refusal:
                if name == "carag-certified":
                    return self._asked(pair, None)
                return self._refused(pair, refusal)
            start = time.perf_counter()
            evidence = self._retrievers[_EXACT_LIMITS[name]].retrieve(pair.question.text, decision, K)
            retrieval = (time.perf_counter() - start) * 1000
            if name == "carag-certified":
                return self._asked(pair, retrieval)
            self._showing.withheld = self.hidden_nearby(pair)
            return self._generate(pair, self._variants.get(name, self._guarded), evidence, retrieval)

        return run

    def _asked(self, pair: Pair, retrieval: float | None) -> Output:
        """Ask the engine itself, including its audit record."""
        self.embedder.embed_query(pair.question.text)
        start = time.perf_counter()
        answer = self.engine.ask(pair.question.text, pair.session)
        total = (time.perf_counter() - start) * 1000 + self._recorded.saved
        total += self.embedder.milliseconds[pair.question.text]
        times = self._times(pair, retrieval, self._recorded.milliseconds)
        return Output(
            self._rows(answer.passages),
            self._recorded.shown,
            answer.outcome.value,
            answer.text,
            tuple(one.chunk_id for one in answer.citations),
            {**times, "total": total},
        )

    def hidden_nearby(self, pair: Pair) -> tuple[Passage, ...]:
        """Return the inadmissible passages among the `K` best of all: the paper's second bucket."""
        query = self.embedder.embed_query(pair.question.text)
        best = self._best(pair, query, np.ones(len(self.truth), bool))
        hidden = ~self._mask(pair)[best.rows]
        return self.truth.passages(best.rows[hidden].tolist(), best.similarities[hidden].tolist())

    # --- the user's own ---

    def _own(self, name: str, system: Callable[[str, Session], object]) -> Callable[[Pair], Output]:
        def run(pair: Pair) -> Output:
            start = time.perf_counter()
            try:
                returned = take(system(pair.question.text, pair.session))
            except (Exception, SystemExit) as failure:  # noqa: BLE001 - whatever a stranger's code raises is an outcome
                return self._failed(name, pair.question.id, failure)
            took = (time.perf_counter() - start) * 1000
            said = checked(returned, name, pair.question.id, self.truth.row_of)
            if said.text is None and said.outcome == "answer":
                return self._answered(pair, said.rows, took)
            # Which passages its model read is unknown, so everything it retrieved counts as read.
            shown = () if said.text is None else tuple(self.truth.ids[row] for row in said.rows)
            return Output(
                said.rows, shown, said.outcome, said.text or "", (), _own_times(took), own_model=True
            )

        return run

    def _answered(self, pair: Pair, rows: tuple[int, ...], retrieval: float) -> Output:
        """Answer from what a mere retriever found, with the gate and the generator of all systems."""
        mask = self._mask(pair)
        read = self._reference.read(pair.question.text, mask)
        about = [row for row in rows if not read.is_about_somebody or read.is_about[row]]
        order = [*about, *(row for row in rows if row not in about)]
        similarities = self.truth.vectors @ self.embedder.embed_query(pair.question.text)
        passages = self.truth.with_heads(self.truth.passages(order, similarities[order].tolist()), mask)
        evidence = Evidence(
            passages,
            Withheld(()),
            "",
            len(passages),
            topic=read.topic,
            words=read.words,
            nearest=float(similarities[mask].max()) if mask.any() else None,
            about=len(about),
        )
        said = self._generate(pair, self._guarded, evidence, retrieval)
        generation = self._recorded.milliseconds
        return replace(
            said, retrieved=rows, latency_ms=_own_times(retrieval + generation, retrieval, generation)
        )

    def _failed(self, name: str, question: str, failure: BaseException) -> Output:
        said = quoted(failure)
        if name not in self._reported:
            self._reported.add(name)
            _log.warning(
                "%s failed on question %s: %s; its rows with an error are counted in the report",
                *(name, question, said),
            )
        return Output((), (), "error", said, (), _own_times(None), own_model=True)

    # --- shared ---

    def _decide(self, pair: Pair) -> Decision:
        found = self._table.vocabulary.intents.found(pair.question.text)
        return infer(pair.session, self._table, now=self.truth.now, intents=found)

    def _refused(self, pair: Pair, refusal: Refused) -> Output:
        return Output((), (), "refuse", str(refusal), (), self._times(pair, None, None))

    def _generate(
        self, pair: Pair, guarded: GuardedGenerator, evidence: Evidence, retrieval: float
    ) -> Output:
        result = guarded.answer(pair.question.text, evidence)
        answered = isinstance(result, Answered)
        return Output(
            self._rows(evidence.passages),
            self._recorded.shown,
            "answer" if answered else "decline",
            result.text if isinstance(result, Answered) else result.message,
            tuple(one.chunk_id for one in result.citations) if isinstance(result, Answered) else (),
            self._times(pair, retrieval, self._recorded.milliseconds),
        )

    def _rows(self, passages: Iterable[Passage]) -> tuple[int, ...]:
        return tuple(self.truth.row_of[one.chunk_id] for one in passages)

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


def _own_times(
    total: float | None, retrieve: float | None = None, generate: float | None = None
) -> dict[str, float | None]:
    """Return the times of your own system, which embeds the question itself, if at all."""
    return {"embed": None, "retrieve": retrieve, "generate": generate, "total": total}
