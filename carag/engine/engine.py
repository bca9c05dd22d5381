"""Answer questions over one store: connect the rooms, and put every request on record before its result leaves.

Public methods that return text go through :meth:`Engine._on_record`; without a record nothing is returned.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from carag.audit import DEFAULT_CLASS, Models, Outcome, RecordKind
from carag.engine.configuration import ConfigurationLog
from carag.engine.contents import Contents
from carag.engine.denials import Denials
from carag.engine.explain import explain
from carag.engine.following import record_answer, record_successors
from carag.engine.measured import Measured, gate_in_force
from carag.engine.opening.ending import Ending, close_dropped
from carag.engine.opening.store import opened
from carag.engine.recorder import (
    Finding,
    Recorder,
    Request,
    Retrieved,
    no_text_in_traceback,
    proven,
    shortened,
    stated,
)
from carag.engine.results import Answer, Explanation, Retrieval
from carag.engine.rules import Rules
from carag.engine.served import Served
from carag.errors import InvalidArgument, Refused
from carag.generation import ANSWERED, Declined, GuardedGenerator, generator_by_name, own_generator
from carag.limits import check_question, quoted
from carag.policy import Session, Where, infer, known_at_microseconds
from carag.retrieval import Retriever, any_reranker, ranker_by_name
from carag.retrieval.reading import Said
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from carag.audit import AuditLog, Receipt
    from carag.audit.anchors import Anchor, Anchoring, Window
    from carag.backends import VectorBackend
    from carag.engine.collection import Collection
    from carag.engine.recorder import Searched
    from carag.generation import Generator
    from carag.policy import Decision, Profile, TokenVerifier
    from carag.retrieval import ConfidenceGate, Embedder, Passage, Reranker, Withheld

__all__ = ["Engine"]

_logger = logger(__name__)

_K: Final = 8
"""Passages for one question, as in the paper."""
_MAX_K: Final = 400
"""Passages that one record can hold."""


class Engine(Contents, Measured, Served):
    """Answers questions over one store. Use :meth:`open`.

    Examples
    --------
    >>> import tempfile, carag
    >>> store = tempfile.mkdtemp()
    >>> with carag.Engine.open(store, embedder="wordllama") as engine:
    ...     answer = engine.ask("Anything?", carag.Session(role="visitor", purpose="invest"))
    >>> answer.outcome.value, answer.why
    ('refuse', 'UNKNOWN_ROLE')
    """

    _ending: Ending

    def __init__(
        self,
        *,
        log: AuditLog,
        anchoring: Anchoring,
        collection: Collection,
        guarded: GuardedGenerator,
        keeps_gate: bool,
        retriever: Retriever,
        clock: Callable[[], datetime],
        intents: bool,
    ) -> None:
        super().__init__(collection, Recorder(log, clock), ConfigurationLog(log, collection.store), clock)
        self._log = log
        self._anchoring = anchoring
        self._guarded, self._keeps_gate = guarded, keeps_gate
        self._intents, self._switching = intents, threading.Lock()
        self._rules = self._rules_at("")
        self._retriever = retriever
        self._denials = Denials(log, lambda: known_at_microseconds(clock()))

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        create: bool = True,
        profile: str | PathLike[str] | Profile | None = None,
        embedder: str | Embedder | object | None = None,
        generator: str | Generator | Callable[[str, tuple[Passage, ...], Withheld], str] = "extractive",
        ranker: str | None = None,
        reranker: str | Reranker | object | None = None,
        gate: ConfidenceGate | None = None,
        clock: Callable[[], datetime] | None = None,
        intents: bool = True,
        anchors: Sequence[Anchor] = (),
        window: Window | None = None,
        retain: str = DEFAULT_CLASS,
        not_before: str | None = None,
        scrub_every: float | None = None,
        backend: str | VectorBackend | None = None,
        accept_gate: bool = False,
        accept_labels: bool = False,
        accept_policy: bool = False,
        accept_lost_values: bool = False,
    ) -> Self:
        """Open a store, or make a new one.

        Raises InvalidArgument if there is no store and ``create`` is false, the store has another embedder or profile,
        or a setting is not valid; StoreLocked if another engine holds the store; CorruptFile if text, index or log fail
        their own checks, or labels or gate are not those on record.

        Parameters
        ----------
        path : path
            A directory; one engine at a time. Several share a store through :func:`carag.engine.sharing.share`.
        create : bool
            Whether a directory without a store becomes one.
        profile : str, path or Profile, optional
            For a new store, which keeps it: one that ships with the package, or a folder; default ``"edgar"``.
        embedder : str or object, optional
            For a new store, which keeps it and refuses others; default ``"minilm"``. An object of your own has
            ``name``, ``dim``, ``embed_documents``, ``embed_query`` (:mod:`carag.retrieval.own`).
        generator : str, Generator or callable
            A generator or its name: ``"extractive"`` quotes and cannot invent; ``"local"``, ``"bedrock:MODEL_ID"``. A
            callable of your own takes (question, passages, withheld), returns text (:mod:`carag.generation.own`).
        ranker : str, optional
            ``"fused-1"``: similarity, words, and what the question names (:mod:`carag.retrieval.ranking`); ``"dense"``:
            similarity alone; followed by ``"+mmr-0.7-20"``: passages that differ. By default what the profile says.
        reranker : str or object, optional
            Orders the passages found (:mod:`carag.retrieval.reranker`); none by default.
        gate : ConfidenceGate, optional
            By default the one calibrated on this store (:meth:`carag.Engine.calibrate_gate`), else what the profile
            ships for the embedder, else a baseline; see ``Answer.gate``.
        clock : callable, optional
            Returns an aware datetime; the system clock if absent.
        intents : bool
            Whether words of a question ("audited", "latest", ...) tighten the policy. They never widen it.
        anchors : sequence of Anchor
            Where checkpoints are confirmed externally, every minute or 1,000 records (``carag.audit.anchors``).
        window : Window, optional
            How much may stay without an anchor's confirmation, and how long, before answers stop; default 50,000
            records, 15 minutes.
        retain : str
            The retention class of the records written, one of ``carag.audit.RETENTION``.
        not_before : str, optional
            A checkpoint or receipt of this store that was kept elsewhere; a log that does not reach it is not opened.
        scrub_every : float, optional
            Seconds between background passes that hash the log again; damage stops all answers.
        backend : str or VectorBackend, optional
            Where vectors are: ``"native"``, here, or a URL (:mod:`carag.backends.urls`). By default here, if they are.
        accept_gate, accept_labels : bool
            Whether a calibrated gate that is not the one on record is dropped, or labels that are not those on record
            are accepted and all rows written again, in either case on record; otherwise the store is not opened.
        accept_policy : bool
            Whether other roles, intents and words of the same bits are put in force, on record.
        accept_lost_values : bool
            Whether the log continues, on record, without the values its records commit to if ``private.db`` is lost.
        """
        now = clock or partial(datetime.now, UTC)

        def microseconds() -> int:
            return known_at_microseconds(now())

        close_dropped()
        with ExitStack() as resources:
            log, anchoring, collection = opened(
                resources,
                Path(path),
                create=create,
                profile=profile,
                embedder=embedder,
                clock=microseconds,
                anchors=anchors,
                window=window,
                retain=retain,
                not_before=not_before,
                scrub_every=scrub_every,
                backend=backend,
                accept_policy=accept_policy,
                accept_labels=accept_labels,
                accept_lost_values=accept_lost_values,
            )
            configuration = ConfigurationLog(log, collection.store)
            with configuration.changing(microseconds()):
                if accept_policy:
                    configuration.put_in_force(collection.profile, at=microseconds())
                change = collection.follow_profile()
                table = bytes.fromhex(collection.profile.table.sha256)
                configuration.policy(
                    table, at=microseconds(), accept=accept_policy or collection.profile.is_shipped
                )
                kept = configuration.gate(accept=accept_gate)
            keeps_gate = gate is None
            gate = gate or gate_in_force(kept, collection, configuration)
            model = generator_by_name(generator) if isinstance(generator, str) else own_generator(generator)
            engine = cls(
                log=log,
                anchoring=anchoring,
                collection=collection,
                guarded=GuardedGenerator(model, gate),
                keeps_gate=keeps_gate,
                retriever=Retriever(
                    collection, ranker_by_name(ranker, collection.catalogue), reranker=any_reranker(reranker)
                ),
                clock=now,
                intents=intents,
            )
            resources.callback(engine._denials.flush)
            at, state, rows = microseconds(), collection.state, len(collection.index)
            engine._configuration.labels(state, accept=accept_labels, rows=rows, at=at)
            threshold = round(gate.threshold * 1_000_000)
            engine._configuration.models(engine._models, gate=threshold, at=at, kept=kept)
            engine._watch_over(kept)
            engine._rules = engine._rules_at(change)
            engine._settle(now(), "INGEST_RESUMED")
            engine._ending = Ending(engine, f"the engine of {path}", resources.pop_all())
            _logger.info("opened %r", engine, extra={"event": "OPENED"})
            return engine

    @property
    def vkey(self) -> str:
        """The public key that verifies this store's receipts."""
        return self._log.vkey

    @property
    def profile(self) -> Profile:
        """What the bits of this store's labels mean, and who may use what."""
        return self._collection.profile

    @property
    def log(self) -> AuditLog:
        """The audit log, to prove what is in it and to add to it."""
        return self._log

    def session(self, token: str, verifier: TokenVerifier) -> Session:
        """Make a session from a signed token; a refusal goes on record, without anything that the token says.

        Of many refusals for one reason the first is recorded at once, those of the following minute as a count, at the
        latest when the engine is closed. Raises Refused with a code that starts with ``TOKEN_``.
        """
        self._check_open()
        try:
            return Session.from_token(token, verifier)
        except Refused as refusal:
            issuer, audience = (getattr(verifier, name, None) for name in ("issuer", "audience"))
            self._denials.add(refusal.code, issuer=issuer, audience=audience)
            raise

    def ask(self, question: str, session: Session, *, where: Mapping[str, Any] | None = None) -> Answer:
        """Answer a question from what the session may use.

        Only documents are used whose declared metadata meets ``where``: by field a value, a list of values, or a range
        such as ``{"gte": 2024}`` (:class:`carag.policy.Where`). It narrows what the session may use, and is on record.

        The outcome is ``decline`` if the admissible evidence is too weak or the generator finds no answer in it,
        ``refuse`` if the session alone decides. Raises InvalidArgument if the question is empty or longer than 8,192
        characters, or ``where`` does not fit; AuditUnavailable, and returns nothing, if the record cannot be written;
        ModelUnavailable if embedder or generator fail, on record.
        """
        return self._watched(self._answer(question, session, where, self._guarded))

    def _answer(
        self, question: str, session: Session, where: Mapping[str, Any] | None, guarded: GuardedGenerator
    ) -> Answer:
        def answer(request: Request, decision: Decision) -> Finding:
            models = self._models
            searched = self._search(request, decision, _K, models)
            result = guarded.answer(
                question, searched.evidence, before_remote=lambda: self._recorder.begin(request, models)
            )
            if isinstance(result, Declined):
                return Finding(Outcome.DECLINE, result.code.value, result.message, models, searched)
            return Finding(
                Outcome.ANSWER,
                ANSWERED,
                result.text,
                models,
                searched,
                citations=result.citations,
                complete=result.complete,
            )

        found, receipt, _ = asked = self._on_record(RecordKind.QUERY, question, session, answer, where)
        later = record_successors(self._collection, self._recorder, asked)
        return Answer.of(found, receipt, gate=guarded.gate, superseded=later[0], follows=later[1])

    def retrieve(
        self, question: str, session: Session, k: int = _K, *, where: Mapping[str, Any] | None = None
    ) -> Retrieval:
        """Return the ``min(k, admissible)`` best admissible passages, without generating; ``where`` as in :meth:`ask`.

        Raises InvalidArgument if the question or ``where`` is not valid, or ``k`` is not in 1 to 400.
        """
        if type(k) is not int or not 1 <= k <= _MAX_K:
            raise InvalidArgument(f"k is {quoted(k)}; want 1 to {_MAX_K}, as many as one record can hold")

        def retrieve(request: Request, decision: Decision) -> Finding:
            models = self._searching
            searched = self._search(request, decision, k, models)
            if searched.evidence.passages:
                return Finding(Outcome.ANSWER, "RETRIEVED", models=models, searched=searched)
            return Finding(Outcome.DECLINE, "NO_ADMISSIBLE_EVIDENCE", models=models, searched=searched)

        found, receipt, request = self._on_record(RecordKind.RETRIEVE, question, session, retrieve, where)
        mark, searched = self._recorder.mark, found.searched
        asked = None if searched is None else Retrieved(mark, request, searched, receipt)
        return Retrieval(
            *(found.outcome, found.why, receipt, found.passages, found.withheld),
            understood=found.understood,
            asked_day=found.asked_day,
            asked=asked,
        )

    @no_text_in_traceback
    def record_answer(self, retrieval: Retrieval, text: str, *, model: str) -> Receipt:
        """Record an answer that was generated elsewhere from what :meth:`retrieve` returned.

        The record holds the question, session, policy and passages of the retrieval, commits to the answer, and names
        the retrieval's own record. Passages that the text cites as ``[1]``, ``[2, 3]`` are marked as cited.

        Raises InvalidArgument, and records nothing, if the retrieval is another engine's, was altered or has no
        passages, or the text is empty. If it raises AuditUnavailable, do not show the answer.
        """
        self._check_open()
        return record_answer(
            self._log, self._recorder, retrieval, text, model=model, searched=self._searching
        )

    def explain(self, chunk_id: str, session: Session) -> Explanation:
        """Say why a chunk is admissible or hidden for a session, never its text."""

        def explanation(_: Request, decision: Decision) -> Finding:
            return explain(self._collection.store, chunk_id, decision)

        found, receipt, _ = self._on_record(RecordKind.EXPLAIN, chunk_id, session, explanation)
        return Explanation(
            found.outcome,
            found.why,
            receipt,
            text=found.text,
            reasons=found.reasons,
            causes=found.causes,
            regulation=found.regulation,
        )

    def close(self) -> None:
        """Close everything that this engine opened; idempotent."""
        self._closed = True
        self._ending.close()
        _logger.info("closed %r", self, extra={"event": "CLOSED"})

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        collection = self._collection
        state = "closed" if self._closed else f"{len(collection.index)} rows, open"
        return f"Engine({str(collection.store.path.parent)!r}, {collection.embedder.name}, {state})"

    @property
    def _models(self) -> Models:
        generator = self._guarded.generator
        return replace(self._searching, generate=generator.name, prompt=shortened(generator.fingerprint))

    @property
    def _searching(self) -> Models:
        found = self._retriever
        return Models(
            self._collection.embedder.name, rerank=stated(found.reranker), rank=stated(found.ranker)
        )

    @no_text_in_traceback
    def _on_record(
        self,
        kind: RecordKind,
        text: str,
        session: Session,
        work: Callable[[Request, Decision], Finding],
        where: Mapping[str, Any] | None = None,
    ) -> tuple[Finding, Receipt, Request]:
        """Take a request from its check to its durable record; return the finding, the receipt and the request."""
        self._check_open()
        check_question("chunk id" if kind is RecordKind.EXPLAIN else "question", text)
        if type(session) is not Session:  # a subclass could give other values each time it is read
            raise InvalidArgument(
                f"session is a {type(session).__name__}; want a carag.Session, not a subclass"
            )
        rules = self._rules
        narrowed = Where.of(where, rules.table.vocabulary.metadata)
        request = Request(kind, text, session, self._clock(), rules, narrowed)
        self._recorder.check(request, self._models)
        with self._recorder.failures(request):
            request.rules = rules = self._keep_up()
            said = rules.listener.said(text) if kind is not RecordKind.EXPLAIN else Said()
            try:
                decision = infer(
                    session, rules.table, now=request.started, intents=said.intents, days=said.days
                )
            except Refused as refusal:
                found = Finding(Outcome.REFUSE, refusal.code, str(refusal))
            else:
                request.decision = decision
                found = replace(work(request, decision), asked_day=decision.asked_day)
            return found, self._recorder.access(request, found), request

    def keep_up(self) -> None:
        """Take over what other processes brought and put in force, as every request does first."""
        self._check_open()
        self._keep_up()

    def _keep_up(self) -> Rules:
        """Take over what other processes brought and put in force; return what decides from now on."""
        if self._collection.keep_up() in (None, self._rules.change):
            return self._rules
        with self._switching:
            if self._collection.store.standing()[1] != self._rules.change:
                at = known_at_microseconds(self._clock())
                with self._configuration.changing(at):
                    change = self._collection.follow_profile()
                    table = bytes.fromhex(self.profile.table.sha256)
                    self._configuration.policy(table, at=at, accept=False)
                    kept = self._configuration.gate()
                self._take_gate(kept)
                self._rules = self._rules_at(change)
            return self._rules

    def _rules_at(self, change: str) -> Rules:
        collection = self._collection
        return Rules.of(change, collection.profile, collection.catalogue.declared, intents=self._intents)

    def _search(self, request: Request, decision: Decision, k: int, models: Models) -> Searched:
        if self._collection.embedder.remote:
            self._recorder.begin(request, models)
        begin = partial(self._recorder.begin, request, models)
        evidence = self._retriever.retrieve(request.text, decision, k, request.where, before_remote=begin)
        return proven(self._collection.state, request, evidence)
