"""The engine: one store, all rooms wired, every answer on record before it leaves.

Each public method that returns text follows one path: infer the policy or refuse, do the work, append the audit
record durably, return. If the record cannot be written nothing is returned (``AuditUnavailable``); if the work
fails, the failure is recorded and then raised.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from carag.answers import Answer, Explanation, Retrieval
from carag.audit import DEFAULT_CLASS, AuditLog, Evaluation, Models, Outcome, RecordKind
from carag.audit.anchors import Anchoring
from carag.corpus.store import CorpusStore
from carag.denials import Denials
from carag.embedder_of import embedder_of
from carag.errors import CorruptFile, InvalidArgument, Refused
from carag.explaining import causes, is_open
from carag.generation import Answered, GuardedGenerator, generator_by_name
from carag.in_force import InForce
from carag.ingest import Ingestor, IngestReport, no_progress
from carag.lifetime import Lifetime
from carag.limits import check_question, quoted
from carag.policy import PolicyTable, Session, explained, infer, known_at_microseconds
from carag.policy import intents as intents_of
from carag.recorder import Recorder, Request, proven, shortened
from carag.retrieval import ConfidenceGate, Retriever, threshold_for
from carag.sealed import sealed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from carag.audit import Receipt
    from carag.audit.anchors import Anchor, Exposure, Window
    from carag.generation import Generator
    from carag.ingest import Progress, Selection
    from carag.policy import Decision, TokenVerifier
    from carag.recorder import Proven
    from carag.retrieval import Embedder, Evidence

__all__ = ["Engine"]

_K: Final = 8
"""Passages for one question, as in the paper."""
_MAX_K: Final = 400


class Engine(Lifetime):
    """Answers questions over one store. Use :meth:`open`.

    Examples
    --------
    >>> import tempfile, carag
    >>> store = tempfile.mkdtemp()
    >>> with carag.Engine.open(store, embedder="wordllama") as engine:
    ...     answer = engine.ask("Anything?", carag.Session(role="nobody", purpose="invest"))
    >>> answer.outcome.value, answer.why
    ('refuse', 'UNKNOWN_ROLE')
    """

    def __init__(
        self,
        *,
        log: AuditLog,
        anchoring: Anchoring,
        store: CorpusStore,
        ingestor: Ingestor,
        guarded: GuardedGenerator,
        table: PolicyTable,
        clock: Callable[[], datetime],
        intents: bool,
        resources: ExitStack,
    ) -> None:
        self._log = log
        self._anchoring = anchoring
        self._store = store
        self._ingestor = ingestor
        self._guarded = guarded
        self._table = table
        self._clock = clock
        self._intents = intents
        self._recorder = Recorder(log, table, clock)
        self._in_force = InForce(log, store)
        self._denials = Denials(log, lambda: known_at_microseconds(clock()))
        resources.callback(self._denials.flush)
        self._retriever = Retriever(ingestor.embedder, ingestor.index, store, ingestor.reading)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        create: bool = True,
        embedder: str | Embedder | None = None,
        generator: str | Generator = "extractive",
        gate: ConfidenceGate | None = None,
        clock: Callable[[], datetime] | None = None,
        intents: bool = True,
        anchors: Sequence[Anchor] = (),
        window: Window | None = None,
        retain: str = DEFAULT_CLASS,
        not_before: str | None = None,
        scrub_every: float | None = None,
        accept_labels: bool = False,
        accept_lost_values: bool = False,
    ) -> Self:
        """Open a store, or found one.

        Parameters
        ----------
        path : path
            A directory; one engine at a time.
        create : bool
            Whether a directory that holds no store becomes one.
        embedder : str or Embedder, optional
            For a new store; an existing one keeps its own, and another is refused. Default ``"minilm"``.
        generator : str or Generator
            A generator or its name: ``"extractive"`` quotes and cannot invent; ``"local"``, ``"bedrock:MODEL_ID"``.
        gate : ConfidenceGate, optional
            Default: the embedder's calibrated threshold.
        clock : callable, optional
            Returns an aware datetime; the system clock if absent.
        intents : bool
            Whether the words of a question tighten the policy: "audited", "latest", "as amended", ... They never
            widen it.
        anchors : sequence of Anchor
            Where the log's checkpoints are confirmed outside, every minute or 1,000 records
            (``carag.audit.anchors``); none by default.
        window : Window, optional
            How much may be logged, and for how long, that no anchor confirmed; past it no answer leaves. Default:
            50,000 records, 15 minutes.
        retain : str
            The retention class of the records written, as ``carag.audit.RETENTION`` names it.
        not_before : str, optional
            A checkpoint or receipt of this store that was kept elsewhere: a log put back behind it is not opened.
        scrub_every : float, optional
            Seconds between passes that re-hash the log in the background; what is damaged lets no more answers out.
        accept_labels : bool
            Whether labels that are not those the last record names (an earlier copy put back, a change outside) are
            accepted, on record; they are refused otherwise.
        accept_lost_values : bool
            Whether the log goes on without the values its records commit to, on record, when ``private.db`` is lost.

        Raises
        ------
        InvalidArgument
            If there is no store and ``create`` is false, the store was written with another embedder, or a setting
            is none: the message names those there are.
        StoreLocked
            If another engine holds the store.
        CorruptFile
            If text, index or log fail their own checks, or the labels are not those on record.
        AuditUnavailable
            If the log cannot be written.
        """
        home = Path(path)
        database = home / "corpus.db"
        if not create and not database.exists():
            raise InvalidArgument(f"{home} holds no store; make one with: carag ingest PATH --store {home}")
        if database.exists() and not (home / "vkey").exists():
            raise CorruptFile(
                f"{home} has documents and no audit log: its history is gone; restore audit.db, audit.key and "
                "vkey from a backup, or ingest into a new store"
            )
        now = clock or _system_clock
        table = PolicyTable.shipped()
        with ExitStack() as resources:
            # The log's lock is the store's: one writer, and a store without a writable log stays shut.
            log = resources.enter_context(
                AuditLog.open(
                    home,
                    clock=lambda: known_at_microseconds(now()),
                    retain=retain,
                    not_before=not_before,
                    accept_lost_values=accept_lost_values,
                )
            )
            if scrub_every is not None:
                log.scrub_in_background(every=scrub_every)
            anchoring = resources.enter_context(
                Anchoring(
                    log, anchors, home / "anchors", window=window, clock=lambda: known_at_microseconds(now())
                )
            )
            store = resources.enter_context(
                CorpusStore.open(database, create=create, clock=lambda: known_at_microseconds(now()))
            )
            ingestor = Ingestor(store, embedder_of(store, embedder), home / "index.carag")
            resources.callback(ingestor.close)
            gate = gate or ConfidenceGate(threshold_for(ingestor.embedder.name))
            if isinstance(generator, str):
                generator = generator_by_name(generator)
            engine = cls(
                log=log,
                anchoring=anchoring,
                store=store,
                ingestor=ingestor,
                guarded=GuardedGenerator(generator, gate),
                table=table,
                clock=now,
                intents=intents,
                resources=resources,
            )
            opened = known_at_microseconds(now())
            rows = len(ingestor.index)
            engine._in_force.labels(ingestor.state, accept=accept_labels, rows=rows, at=opened)
            engine._in_force.policy(bytes.fromhex(table.sha256), at=opened)
            engine._in_force.models(engine._models, gate=round(gate.threshold * 1_000_000), at=opened)
            engine._settle(IngestReport(), now(), "INGEST_RESUMED")
            engine._begin(resources)
            return engine

    @property
    def vkey(self) -> str:
        """The public key that this store's receipts are verified with."""
        return self._log.vkey

    @property
    def exposure(self) -> Exposure:
        """How much of the log no anchor has confirmed yet."""
        return self._anchoring.exposure()

    def ingest(
        self,
        path: str | PathLike[str],
        *,
        progress: Progress = no_progress,
        only: Selection | None = None,
    ) -> IngestReport:
        """Read filings, label, chunk, embed and store them, and bring the index up to date.

        What is stored and unchanged (by content hash) is skipped, so that a killed run is resumed by running it
        again.

        Parameters
        ----------
        path : path
            A filing, a JSONL file of filings, or a directory of either.
        progress : callable, optional
            Called in this thread with (stage, done, total, note): ``"filings"`` counts bytes read, ``"index"`` rows;
            a total of 0 is unknown; the note tells how far it is, without names. What it raises ends the run.
        only : mapping, optional
            By accession number, the passages wanted: (type of the document, where in it the passage starts). All others
            are left out, and all filings not named; for a corpus of a stated part.
        """
        self._check_open()
        started = self._clock()
        report = self._ingestor.run(Path(path), progress=progress, only=only)
        self._settle(report, started, "INGESTED")
        return report

    def session(self, token: str, verifier: TokenVerifier) -> Session:
        """Make a session from a signed token; a token that is refused is on record, though nothing it says.

        Of many refusals for one reason the first is recorded at once, those of the following minute as a number, at the
        latest when the engine is closed.

        Raises
        ------
        Refused
            With a code that starts with ``TOKEN_``.
        AuditUnavailable
            If the refusal cannot be recorded.
        """
        self._check_open()
        try:
            return Session.from_token(token, verifier)
        except Refused as refusal:
            issuer, audience = (getattr(verifier, name, None) for name in ("issuer", "audience"))
            self._denials.add(refusal.code, issuer=issuer, audience=audience)
            raise

    def evaluated(
        self,
        suite: str,
        suite_hash: bytes,
        result: bytes,
        *,
        started: datetime,
        passed: bool,
        thresholds: Mapping[str, int] | None = None,
    ) -> Receipt:
        """Record that this store was measured.

        Parameters
        ----------
        suite : str
            Its name, a code.
        suite_hash, result : bytes
            SHA-256 of its questions and settings, and of the whole result, which is kept elsewhere.
        started : datetime
            Aware.
        passed : bool
        thresholds : mapping of str to int, optional
            By measure; integers, such as millionths.

        Raises
        ------
        InvalidArgument
            If a value is not of its kind.
        AuditUnavailable
            If the record cannot be written.
        """
        self._check_open()
        event = Evaluation(
            started=known_at_microseconds(started),
            ended=known_at_microseconds(self._clock()),
            suite=suite,
            suite_hash=suite_hash,
            snapshot=self._ingestor.snapshot,
            table=bytes.fromhex(self._table.sha256),
            result=result,
            passed=passed,
            thresholds=thresholds or {},
        )
        return self._log.append(event)

    @sealed
    def ask(self, question: str, session: Session) -> Answer:
        """Answer a question from what the session may use.

        Returns
        -------
        Answer
            ``outcome`` is ``answer``; ``decline`` when the admissible evidence is too weak or the generator finds no
            answer in it; ``refuse`` when the session alone decides.

        Raises
        ------
        InvalidArgument
            If the question is empty or longer than 8,192 characters.
        AuditUnavailable
            If the record cannot be written; nothing is returned.
        ModelUnavailable
            If embedder or generator fail; the failure is on record.
        """
        request = self._request(RecordKind.QUERY, question, session)
        with self._recorder.failures(request):
            decision = self._decide(request)
            if isinstance(decision, Refused):
                receipt = self._recorder.access(request, outcome=Outcome.REFUSE, why=decision.code)
                return Answer(Outcome.REFUSE, decision.code, receipt, text=str(decision))
            evidence, state = self._search(request, decision, _K, self._models)
            result = self._guarded.answer(
                request.text, evidence, before_remote=lambda: self._recorder.begin(request, self._models)
            )
            if isinstance(result, Answered):
                outcome, why, text, handed_out = Outcome.ANSWER, "ANSWERED", result.text, result.text
                citations, complete = result.citations, result.complete
            else:
                outcome, why, text, handed_out = Outcome.DECLINE, result.code.value, result.message, None
                citations, complete = (), True
            receipt = self._recorder.access(
                request,
                outcome=outcome,
                why=why,
                models=self._models,
                evidence=evidence,
                state=state,
                answer=handed_out,
                cited={citation.chunk_id for citation in citations},
            )
        return Answer(
            outcome,
            why,
            receipt,
            passages=evidence.passages,
            withheld=evidence.withheld,
            text=text,
            citations=citations,
            complete=complete,
        )

    @sealed
    def retrieve(self, question: str, session: Session, k: int = _K) -> Retrieval:
        """Return the ``min(k, admissible)`` nearest admissible passages, without generating.

        Raises
        ------
        InvalidArgument
            If the question is empty or too long, or ``k`` is not in 1 to 400.
        AuditUnavailable
            If the record cannot be written; nothing is returned.
        """
        if type(k) is not int or not 1 <= k <= _MAX_K:
            raise InvalidArgument(f"k is {quoted(k)}; want 1 to {_MAX_K}, what one record can hold")
        request = self._request(RecordKind.RETRIEVE, question, session)
        with self._recorder.failures(request):
            decision = self._decide(request)
            if isinstance(decision, Refused):
                receipt = self._recorder.access(request, outcome=Outcome.REFUSE, why=decision.code)
                return Retrieval(Outcome.REFUSE, decision.code, receipt)
            models = Models(embed=self._ingestor.embedder.name)
            evidence, state = self._search(request, decision, k, models)
            outcome, why = Outcome.ANSWER, "RETRIEVED"
            if not evidence.passages:
                outcome, why = Outcome.DECLINE, "NO_ADMISSIBLE_EVIDENCE"
            receipt = self._recorder.access(
                request, outcome=outcome, why=why, models=models, evidence=evidence, state=state
            )
        return Retrieval(outcome, why, receipt, passages=evidence.passages, withheld=evidence.withheld)

    @sealed
    def explain(self, chunk_id: str, session: Session) -> Explanation:
        """Say why a chunk is admissible or hidden for a session; never its text.

        Raises
        ------
        AuditUnavailable
            If the record cannot be written; nothing is returned.
        """
        request = self._request(RecordKind.EXPLAIN, chunk_id, session)
        with self._recorder.failures(request):
            decision = self._decide(request)
            if isinstance(decision, Refused):
                receipt = self._recorder.access(request, outcome=Outcome.REFUSE, why=decision.code)
                return Explanation(Outcome.REFUSE, decision.code, receipt, text=str(decision))
            if not (is_open(self._store, request.text, decision) or decision.may_know_existence):
                return self._nothing_to_explain(request)
            try:
                chunk = self._store.chunk(request.text, as_of=decision.as_of, known_at=decision.known_at)
            except InvalidArgument:  # no such chunk: for explain that is an answer
                return self._nothing_to_explain(request)
            hidden = decision.reasons(
                chunk.word, chunk.public_at, entity=chunk.subjects, expires_at=chunk.expires_at
            )
            verdict = "hidden from" if hidden else "admissible for"
            text = f"{chunk.chunk_id} is {verdict} {decision.role}/{decision.purpose}"
            why = "HIDDEN" if hidden else "ADMISSIBLE"
            why_so = causes(self._store, chunk, decision)
            receipt = self._recorder.access(request, outcome=Outcome.ANSWER, why=why, answer=text)
        return Explanation(
            Outcome.ANSWER,
            why,
            receipt,
            text=text,
            reasons=tuple(explained(reason, decision, chunk.subjects) for reason in hidden),
            causes=why_so,
            regulation=decision.regulation,
        )

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._ingestor.index)} rows, open"
        return f"Engine({str(self._store.path.parent)!r}, {self._ingestor.embedder.name}, {state})"

    @property
    def _models(self) -> Models:
        generator = self._guarded.generator
        return Models(
            embed=self._ingestor.embedder.name,
            generate=generator.name,
            prompt=shortened(generator.fingerprint),
        )

    def _request(self, kind: RecordKind, text: str, session: Session) -> Request:
        self._check_open()
        check_question("chunk id" if kind is RecordKind.EXPLAIN else "question", text)
        if type(session) is not Session:  # a subclass could answer differently each time it is read
            raise InvalidArgument(f"session is a {type(session).__name__}; want a carag.Session itself")
        request = Request(kind, text, session, self._clock())
        self._recorder.check(request, self._models)
        return request

    def _settle(self, report: IngestReport, started: datetime, why: str) -> None:
        """Record the state that will be searched, unless it already is: also after a run that was killed."""
        snapshot = self._ingestor.snapshot
        if not self._store.epoch or self._store.meta_get("recorded_snapshot") == snapshot.hex():
            return
        rows, embedder = len(self._ingestor.index), self._ingestor.embedder.name
        self._recorder.ingested(report, started, rows=rows, snapshot=snapshot, embedder=embedder, why=why)
        self._in_force.recorded(self._ingestor.state)

    def _nothing_to_explain(self, request: Request) -> Explanation:
        """Decline in one wording for hidden and for absent: the difference is what this role may not learn."""
        why, text = "NOTHING_TO_EXPLAIN", f"there is nothing this session may know about {request.text}"
        receipt = self._recorder.access(request, outcome=Outcome.DECLINE, why=why)
        return Explanation(Outcome.DECLINE, why, receipt, text=text)

    def _search(
        self, request: Request, decision: Decision, k: int, models: Models
    ) -> tuple[Evidence, Proven]:
        if self._ingestor.embedder.remote:
            self._recorder.begin(request, models)
        evidence = self._retriever.retrieve(request.text, decision, k)
        return evidence, proven(self._ingestor.state, request, evidence)

    def _decide(self, request: Request) -> Decision | Refused:
        asked = request.kind is not RecordKind.EXPLAIN and self._intents
        found = intents_of(request.text) if asked else ()
        try:
            request.decision = infer(request.session, self._table, now=request.started, intents=found)
        except Refused as refusal:
            return refusal
        return request.decision


def _system_clock() -> datetime:
    return datetime.now(UTC)
