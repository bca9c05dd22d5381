"""Answer questions over one store: connect the rooms, and put every request on record before its result leaves.

Calls that return text go through :class:`carag.engine.requests.Requests`; without a record nothing is returned.
"""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar

from carag.audit import DEFAULT_CLASS
from carag.engine.break_glass import BreaksGlass
from carag.engine.calibration import Calibration, gate_in_force
from carag.engine.collection import no_progress
from carag.engine.configuration import ConfigurationLog, InForce
from carag.engine.contents import Contents
from carag.engine.directory import Ending, Lifetime, close_dropped, opened
from carag.engine.evaluations import Evaluations
from carag.engine.listing import Listings
from carag.engine.recorder import Denials, Recorder
from carag.engine.requests import DEFAULT_K, Requests
from carag.engine.writer import never
from carag.errors import InvalidArgument, Refused
from carag.generation import GuardedGenerator, generator_by_name
from carag.limits import quoted
from carag.policy import Session, known_at_microseconds
from carag.retrieval import Retriever, any_reranker, ranker_by_name
from carag.retrieval.authority import any_authority
from carag.store.erasures import UNFINISHED
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Collection as Several
    from fractions import Fraction
    from os import PathLike

    from carag.audit import AuditLog, Basis, Receipt
    from carag.audit.anchors import Anchor, Anchoring, Window
    from carag.backends import VectorBackend
    from carag.engine.break_glass import Broken
    from carag.engine.collection import Collection, Progress
    from carag.engine.erasing.documents import DocumentErasures, ErasureReport
    from carag.engine.results import (
        AddReport,
        Answer,
        Explanation,
        GateReport,
        IngestReport,
        Retrieval,
        SyncReport,
    )
    from carag.generation import Generator, Reader
    from carag.labelling.document import Document
    from carag.policy import Profile, TokenVerifier
    from carag.profiles.edgar.documents import Selection
    from carag.retrieval import ConfidenceGate, Embedder, Passage, Reranker, Withheld
    from carag.retrieval.authority import Authority, Authorizer


_logger = logger(__name__)

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_MAY_ACCEPT: Final = ("gate", "labels", "lost_values", "policy")
"""What an opening may accept: the words of ``accept``."""
_MOVED: Final = {
    "counts": "contents.counts",
    "evaluated": "evaluations.record",
    "exposure": "anchoring.exposure()",
    "gate_report": "calibration.report",
    "keep_to_admissible_rows": "requests.keep_to_admissible_rows",
    "label_history": "contents.label_history",
    "paces": "requests.paces",
    "readable": "evaluations.readable",
}
"""Names in 0.3.0, and what takes the place of each."""


class Engine:
    """Answers questions over one store. Use :meth:`open`.

    Its parts: ``contents`` (documents and labels), ``requests`` (questions, each on record), ``listings`` (what is in
    the store for a session, on record; also as ``documents``, ``document``, ``passages`` and ``quarantine``),
    ``calibration`` (of the gate), ``evaluations`` (records that the store was measured), ``break_glass`` (opens a cell
    for a time, for a written reason), ``log``, and ``anchoring`` (what confirms the log elsewhere).

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
        configuration: ConfigurationLog,
        in_force: InForce,
        guarded: GuardedGenerator,
        keeps_gate: bool,
        retriever: Retriever,
        authority: Authority | None,
        on_break_glass: Callable[[Broken], None] | None,
        clock: Callable[[], datetime],
    ) -> None:
        recorder = Recorder(log, clock)
        self._log = log
        self._collection = collection
        self._lifetime = lifetime = Lifetime()
        self._configuration = configuration
        self._in_force = in_force
        self._denials = Denials(log, recorder.now)
        self.anchoring = anchoring
        self.requests = Requests(collection, recorder, in_force, retriever, guarded, lifetime, authority)
        self.listings = Listings(self.requests)
        self.documents, self.document = self.listings.documents, self.listings.document
        self.passages, self.quarantine = self.listings.passages, self.listings.quarantine
        self.break_glass = BreaksGlass(recorder, in_force, lifetime, on_break_glass)
        self.contents = Contents(collection, recorder, configuration, in_force, lifetime)
        self.evaluations = Evaluations(self.requests, lifetime)
        self.calibration = Calibration(
            self.requests, self.evaluations, configuration, lifetime, keeps_gate=keeps_gate
        )
        in_force.take_gate = self.calibration.take

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
        reader: str | Reader | object | None = None,
        authorizer: Authorizer | Authority | None = None,
        on_break_glass: Callable[[Broken], None] | None = None,
        gate: ConfidenceGate | None = None,
        clock: Callable[[], datetime] | None = None,
        intents: bool = True,
        anchors: Sequence[Anchor] = (),
        window: Window | None = None,
        retain: str = DEFAULT_CLASS,
        not_before: str | None = None,
        scrub_every: float | None = None,
        backend: str | VectorBackend | None = None,
        accept: Several[str] = (),
        **accepts: bool,
    ) -> Self:
        """Open a store, or make a new one.

        Raises InvalidArgument if there is no store and ``create`` is false, the store has another embedder or profile,
        or a setting is not valid; StoreLocked if another engine holds the store; CorruptFile if text, index or log fail
        their own checks, or labels or gate are not those on record.

        Parameters
        ----------
        path : path
            A directory, used by one engine at a time. Several engines share a store through
            :func:`carag.engine.sharing`.
        create : bool
            Whether a directory without a store becomes one.
        profile : str, path or Profile, optional
            For a new store, which keeps it: a profile that ships with the package, or a folder; default ``"edgar"``.
        embedder : str or object, optional
            For a new store, which keeps it and refuses others; default ``"minilm"``. An object of your own has
            ``name``, ``dim``, ``embed_documents``, ``embed_query`` (:mod:`carag.retrieval.own`).
        generator : str, Generator or callable
            A generator or its name: ``"extractive"`` quotes and cannot invent; ``"local"``, ``"bedrock:MODEL_ID"``. A
            callable of your own takes (question, passages, withheld) and returns text (:mod:`carag.generation.own`).
        ranker : str, optional
            ``"fused-1"``: similarity, words, and what the question names (:mod:`carag.retrieval.ranking`); ``"dense"``:
            similarity alone; followed by ``"+mmr-0.7-20"``: passages that differ. By default, what the profile says.
        reranker : str or object, optional
            Puts the passages found in order (:mod:`carag.retrieval.reranker`); none by default.
        reader : str or object, optional
            Reads the first three passages beside a question that the gate passes, and declines what they are unlikely
            to answer: ``"carag-reader-1"``, ``"onnx:FOLDER"``, or an object of your own
            (:mod:`carag.generation.reader`); none by default. If a model file is missing, :meth:`ask` raises.
        authorizer : Authorizer or Authority, optional
            Asked about the documents found before any text leaves (:mod:`carag.retrieval.authority`); it can only
            remove. An ``Authority`` also states a time limit, and for how long a verdict is used again.
        on_break_glass : callable, optional
            Told at once, with a :class:`carag.engine.break_glass.Broken`, whenever the glass is broken.
        gate : ConfidenceGate, optional
            By default, the one calibrated on this store (:meth:`carag.Engine.calibrate_gate`), else what the profile
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
            Where vectors are: ``"native"`` (here) or a URL (:mod:`carag.backends.urls`). By default, here, if they are
            here.
        accept : set of str
            What is accepted, on record, although it differs from what the log says; without this the store is not
            opened. ``"gate"``: a calibrated gate that is not the one on record is dropped. ``"labels"``: labels that
            are not those on record stay, and all rows are written again. ``"policy"``: different roles, intents and
            words for the same bits are put in force. ``"lost_values"``: the log continues without the values that its
            records commit to, if ``private.key`` is lost.
        **accepts : bool
            ``accept_gate=True`` is the older way to say ``accept={"gate"}``, and likewise for the others; deprecated.
        """
        from carag.generation.reader.check import (
            check_for,
        )  # reads gates and languages: loaded when a store is opened

        accepted = _accepted(accept, accepts)
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
                accept=accepted,
            )
            authority = None if authorizer is None else any_authority(authorizer)
            if authority is not None:
                resources.callback(authority.close)
            configuration = ConfigurationLog(log, collection.store)
            in_force = InForce(collection, configuration, microseconds, intents=intents, accept=accepted)
            opening_gate = gate or gate_in_force(in_force.kept, collection, configuration)
            engine = cls(
                log=log,
                anchoring=anchoring,
                collection=collection,
                configuration=configuration,
                in_force=in_force,
                guarded=GuardedGenerator(
                    _any_generator(generator), opening_gate, check_for(reader, collection.profile)
                ),
                keeps_gate=gate is None,
                retriever=Retriever(
                    collection, ranker_by_name(ranker, collection.catalogue), reranker=any_reranker(reranker)
                ),
                authority=authority,
                on_break_glass=on_break_glass,
                clock=now,
            )
            resources.callback(engine._denials.flush)
            engine._record_what_is_in_force(accepted, at=microseconds())
            if collection.store.meta_get(UNFINISHED):
                engine.erasures.finish()
            engine.contents.settle(now(), "INGEST_RESUMED")
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
        """The audit log, for proving what is in it and adding to it."""
        return self._log

    def session(self, token: str, verifier: TokenVerifier) -> Session:
        """Make a session from a signed token; a refusal goes on record, without anything that the token says.

        Of many refusals for one reason, the first is recorded at once, and those of the following minute as a count, at
        the latest when the engine is closed. Raises Refused with a code that starts with ``TOKEN_``.
        """
        self._lifetime.check()
        try:
            return Session.from_token(token, verifier)
        except Refused as refusal:
            issuer, audience = (getattr(verifier, name, None) for name in ("issuer", "audience"))
            self._denials.add(refusal.code, issuer=issuer, audience=audience)
            raise

    def ask(self, question: str, session: Session, *, where: Mapping[str, Any] | None = None) -> Answer:
        """Answer a question from what the session may use.

        Only documents whose declared metadata meets ``where`` are used. It maps a field to a value, a list of values or
        a range, such as ``{"gte": 2024}`` (:class:`carag.policy.Where`). It narrows what the session may use, and is on
        record.

        The outcome is ``decline`` if the admissible evidence is too weak or the generator finds no answer in it,
        ``refuse`` if the session alone decides. Raises InvalidArgument if the question is empty or longer than 8,192
        characters, or ``where`` does not fit; AuditUnavailable, and returns nothing, if the record cannot be written;
        ModelUnavailable if embedder or generator fail, on record.
        """
        return self.calibration.watched(self.requests.answer(question, session, where))

    def retrieve(
        self, question: str, session: Session, k: int = DEFAULT_K, *, where: Mapping[str, Any] | None = None
    ) -> Retrieval:
        """Return the ``min(k, admissible)`` best admissible passages, without an answer; ``where`` as in :meth:`ask`.

        Raises InvalidArgument if the question or ``where`` is not valid, or ``k`` is not in 1 to 400.
        """
        return self.requests.retrieve(question, session, k, where)

    def record_answer(self, retrieval: Retrieval, text: str, *, model: str) -> Receipt:
        """Record an answer that was generated elsewhere from what :meth:`retrieve` returned.

        The record holds the question, session, policy and passages of the retrieval, commits to the answer, and names
        the retrieval's own record. Passages that the text cites as ``[1]``, ``[2, 3]`` are marked as cited.

        Raises InvalidArgument, and records nothing, if the retrieval was made by another engine, was altered or has no
        passages, or if the text is empty. If it raises AuditUnavailable, do not show the answer.
        """
        return self.requests.record_answer(retrieval, text, model=model)

    def explain(self, chunk_id: str, session: Session) -> Explanation:
        """Say why a chunk is admissible or hidden for a session, never its text."""
        return self.requests.explain(chunk_id, session)

    def ingest(
        self,
        path: str | PathLike[str],
        *,
        progress: Progress = no_progress,
        only: Selection | None = None,
        reader: Callable[[Path], Iterable[Document | str]] | None = None,
    ) -> IngestReport:
        """Read documents, label, chunk, embed and store them, and bring the index up to date.

        A store with EDGAR's profile reads filings; any other store reads the files of a folder (:mod:`carag.readers`),
        whose stated fields are the facts that the profile's rules turn into bits. What is stored and unchanged, by
        content hash, is skipped, so repeating a killed run finishes it.

        ``path`` is a filing, a JSONL file of filings, or a directory of either; otherwise a file or a folder.
        ``progress`` is called in this thread with (stage, done, total, note); a total of 0 means unknown, and an
        exception from ``progress`` ends the run. ``only`` maps each accession number to the passages wanted, as (type
        of the document, start of the passage in it). ``reader`` reads ``path`` instead, and returns documents and, for
        each file that is not a document, a message.
        """
        return self.contents.ingest(path, progress=progress, only=only, reader=reader)

    def sync(
        self,
        path: str | PathLike[str],
        *,
        remove_vanished: bool = False,
        reader: Callable[[Path], Iterable[Document | str]] | None = None,
        stop: Callable[[], bool] = never,
    ) -> SyncReport:
        r"""Bring the store up to a folder, once, as :class:`carag.engine.freshness.Nightly` does each night.

        New documents are stored; documents whose content hash has changed replace the old ones; unchanged ones cost no
        write. In a changed document only passages whose text or heading is new to the store are embedded. The next run
        finishes one that was killed.

        What changes while it is read is read again, and finally left to the next run. With ``remove_vanished``,
        documents that this folder gave before and no longer gives are withdrawn, unless the folder gives no documents
        at all, as when it is not mounted. ``reader`` is as for :meth:`ingest`. ``stop`` is asked before each document
        is stored; once it returns true, what is stored is recorded, and the run ends.

        Examples
        --------
        >>> import tempfile, carag
        >>> from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.md").write_text("---\nclassification: internal\n---\nThe canteen opens at noon.")
        >>> with carag.Engine.open(tempfile.mkdtemp(), profile="generic", embedder="wordllama") as engine:
        ...     reports = [engine.sync(folder), engine.sync(folder)]
        >>> [(one.added, one.embedded, one.unchanged) for one in reports]
        [(1, 1, 0), (0, 0, 1)]
        """
        return self.contents.sync(path, remove_vanished=remove_vanished, reader=reader, stop=stop)

    def add(
        self, documents: Iterable[Document], *, by: str | None = None, stop: Callable[[], bool] = never
    ) -> AddReport:
        """Label, chunk, embed and store your own documents, and bring the index up to date.

        A document replaces the one that the store has under its id, whose passages are no longer found but stay for
        past questions and receipts. What is stored and unchanged is skipped, so repeating a killed call finishes it. A
        document that ``supersedes`` another ends it from its own ``public_at`` on.

        All ``documents`` are read and checked before the first is stored; the record commits to the person who adds
        them, ``by``. Raises InvalidArgument, and stores nothing, if two documents with the same id differ, if one
        supersedes an unknown document, or itself through others, if one has facts that no rule turns into bits, or if
        the store holds filings.

        Examples
        --------
        >>> import tempfile, carag
        >>> circular = carag.Document(id="circular/7", text="Branches report by the fifth of May.", bits=())
        >>> with carag.Engine.open(tempfile.mkdtemp(), embedder="wordllama") as engine:
        ...     engine.add([circular]).added, engine.add([circular]).unchanged
        (1, 1)
        """
        return self.contents.add(documents, by=by, stop=stop)

    def remove(self, ids: Iterable[str], *, by: str | None = None) -> int:
        """Withdraw documents so that only past questions still find them; return their number.

        What a removed document superseded stays superseded, so that removing makes nothing admissible. The record
        commits to the person who removes them, ``by``. Raises InvalidArgument, and removes nothing, if an id is not in
        the store.
        """
        return self.contents.remove(ids, by=by)

    def erase(
        self,
        ids: Iterable[str],
        *,
        basis: Basis | str,
        approver: str | None = None,
        by: str | None = None,
        dry_run: bool = False,
        admin: str | None = None,
    ) -> ErasureReport:
        """Erase documents for good, with all that was made of them, and the answers that cite them.

        Texts, vectors, words, names and metadata leave the tables and files before this returns. What stays is what
        proofs and replays need: hashes under a key, the history of policy words, and what the documents did to others.
        Earlier receipts still verify. Copies made before, such as backups, are out of reach, as the report names.

        Raises InvalidArgument, and erases nothing, if an id is not in the store or one person is named twice; Refused,
        on record, with ``LEGAL_HOLD`` if a legal hold covers a document, and with ``RETENTION`` if one must still be
        kept and the basis waits for that;
        AuditUnavailable if the erasure cannot be put on record. An erasure that is on record and was interrupted is
        finished when the store is next opened, or, in PostgreSQL, by the same call.

        Parameters
        ----------
        ids : iterable of str
            The documents, in the store or removed from it before.
        basis : Basis or str
            The legal basis (:class:`carag.audit.Basis`).
        approver : str
            The second person, who approved it; recorded as a commitment. May be left out under a profile with
            ``[erasure] two_persons = false``.
        by : str, optional
            The person who acts, recorded likewise; by default the account that runs this process.
        dry_run : bool
            Report only what would be erased and what would stay, and change nothing.
        admin : str, optional
            For a store in PostgreSQL, whose application's account may not erase: the address of the administrator that
            set it up, as for ``carag share``. Other engines of the store rewrite their files at their next question or
            opening.

        Examples
        --------
        >>> import tempfile, carag
        >>> memo = carag.Document(id="memo/7", text="Ana asked for a loan on the fifth of May.", bits=())
        >>> with carag.Engine.open(tempfile.mkdtemp(), embedder="wordllama") as engine:
        ...     _ = engine.add([memo])
        ...     done = engine.erase(["memo/7"], basis="GDPR_17_1", by="dpo", approver="cco")
        >>> done.documents, done.passages, done.beyond
        (1, 1, ('backups',))
        """
        return self.erasures.erase(ids, basis=basis, approver=approver, by=by, dry_run=dry_run, admin=admin)

    @cached_property
    def erasures(self) -> DocumentErasures:
        """Legal holds on documents, what is due to be erased, and reports on persons."""
        from carag.engine.erasing.documents import DocumentErasures

        return DocumentErasures(self._collection, self._log, self.contents, self._in_force, self._lifetime)

    @property
    def gate(self) -> ConfidenceGate:
        """The gate before the generator."""
        return self.requests.guarded.gate

    def calibrate_gate(
        self,
        questions: str | PathLike[str],
        session: Session,
        *,
        error: Fraction | None = None,
        wrong: Fraction | None = None,
    ) -> GateReport:
        """Calibrate the confidence gate on questions with known answers, and put it in force, on record.

        A question is answerable if the session may use one of the documents that hold its answer. For ``error``,
        passages are retrieved for each question as :meth:`ask` does, on record, and
        :func:`carag.retrieval.conformal_threshold` chooses the threshold. For ``wrong``, each is answered without a
        gate, on record, which calls the generator, and :func:`carag.retrieval.selective_threshold` chooses: an answer
        is right if it cites a document that holds the answer, or one of the passages if some are given; any answer to a
        question that is not answerable is wrong. The store keeps the threshold for its embedder, in place of the one
        that ships. :class:`carag.retrieval.Drift` notices if questions of another kind are asked; then a stricter
        threshold takes its place, on record, until the gate is calibrated again.

        Each line of ``questions`` is ``{"question": "…", "documents": ["id", …]}``: the documents hold the answer, and
        an empty list says that no document in the store does; ``"passages": ["id:00000", …]`` may name the chunks that
        hold it. ``error`` is the greatest share of new answerable questions to decline, 1/10 by default; ``wrong``,
        given instead, is the greatest share of wrong answers among new answers.

        Raises InvalidArgument, before anything is asked, if a line is not such a question, a document is not in the
        store (hidden ones count as absent if the session may not know of them) or there are too few questions;
        afterwards, if no threshold keeps to the share of wrong answers. In that case the gate stays as it was.
        """
        return self.calibration.calibrate(questions, session, error=error, wrong=wrong)

    async def aask(
        self, question: str, session: Session, *, where: Mapping[str, Any] | None = None
    ) -> Answer:
        """Await :meth:`ask`; a cancelled call continues to its record."""
        return await _in_thread(self.ask, question, session, where=where)

    async def aretrieve(
        self, question: str, session: Session, k: int = DEFAULT_K, *, where: Mapping[str, Any] | None = None
    ) -> Retrieval:
        """Await :meth:`retrieve`; a cancelled call continues to its record."""
        return await _in_thread(self.retrieve, question, session, k, where=where)

    async def aadd(self, documents: Iterable[Document]) -> AddReport:
        """Await :meth:`add`; the documents are read in the thread."""
        return await _in_thread(self.add, documents)

    def keep_up(self) -> None:
        """Take over what other processes added and put in force, as every request does first."""
        self._lifetime.check()
        self._in_force.keep_up()

    def close(self) -> None:
        """Close everything that this engine opened; idempotent."""
        self._lifetime.is_over = True
        self._ending.close()
        _logger.info("closed %r", self, extra={"event": "CLOSED"})

    def __enter__(self) -> Self:
        self._lifetime.check()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        collection = self._collection
        state = "closed" if self._lifetime.is_over else f"{len(collection.index)} rows, open"
        return f"Engine({str(collection.store.path.parent)!r}, {collection.embedder.name}, {state})"

    if not TYPE_CHECKING:  # a type checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            if name not in _MOVED:
                raise AttributeError(f"an Engine has no {name!r}")
            now = _MOVED[name]
            warnings.warn(f"Engine.{name} is now Engine.{now}; use that", DeprecationWarning, stacklevel=2)
            found = attrgetter(now.removesuffix("()"))(self)
            return found() if now.endswith("()") else found

    def _record_what_is_in_force(self, accepted: frozenset[str], *, at: int) -> None:
        """Put labels, models and gate on record unless they are there already, and watch the gate."""
        collection, configuration, kept = self._collection, self._configuration, self._in_force.kept
        configuration.labels(collection.state, accept="labels" in accepted, rows=len(collection.index), at=at)
        threshold = round(self.gate.threshold * 1_000_000)
        configuration.models(self.requests.models, gate=threshold, at=at, kept=kept)
        self.calibration.watch_over(kept)


def _any_generator(given: str | Generator | Callable[[str, tuple[Passage, ...], Withheld], str]) -> Generator:
    if isinstance(given, str):
        return generator_by_name(given)
    from carag.generation.own import own_generator

    return own_generator(given)


def _accepted(accept: Several[str], older: Mapping[str, bool]) -> frozenset[str]:
    """Return what an opening accepts, including what the keywords of 0.3.0 accept."""
    if isinstance(accept, str) or not set(accept) <= {*_MAY_ACCEPT}:
        raise InvalidArgument(f"accept is {quoted(accept)}; want a set of {', '.join(_MAY_ACCEPT)}")
    wanted = set(accept)
    for name, is_wanted in older.items():
        word = name.removeprefix("accept_")
        if word == name or word not in _MAY_ACCEPT:
            raise TypeError(f"Engine.open() got an unexpected keyword argument {name!r}")
        warnings.warn(f"{name} is deprecated; use accept={{{word!r}}}", DeprecationWarning, stacklevel=3)
        wanted |= {word} if is_wanted else set()
    return frozenset(wanted)


async def _in_thread(
    call: Callable[_Arguments, _Result], *given: _Arguments.args, **more: _Arguments.kwargs
) -> _Result:
    from asyncio import to_thread  # here, because most engines are asked without it

    return await to_thread(call, *given, **more)
