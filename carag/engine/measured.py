"""Record that a store was measured, calibrate its confidence gate on its own questions, and watch the gate."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.audit import Access, Evaluation, Outcome, Record, RecordKind
from carag.audit.tlog.encoding import encode
from carag.engine.configuration import GATE_SUITE
from carag.errors import InvalidArgument, Refused
from carag.generation import GuardedGenerator
from carag.limits import quoted
from carag.policy import infer, known_at_microseconds
from carag.readers.gate_questions import read_gate_questions
from carag.retrieval import (
    BASELINE,
    ConfidenceGate,
    Drift,
    conformal_threshold,
    gate_for,
    questions_wanted,
    selective_threshold,
    top_similarity,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from os import PathLike

    from carag.audit import AuditLog, Models, Receipt
    from carag.audit.tlog.encoding import Json
    from carag.engine.collection import Collection
    from carag.engine.configuration import ConfigurationLog
    from carag.engine.results import Answer, GateReport, Retrieval
    from carag.engine.rules import Rules
    from carag.policy import Decision, Session
    from carag.readers.gate_questions import GateQuestion
    from carag.store.values import StoredChunk

__all__ = ["READ_SUITE", "Measured", "gate_in_force"]

READ_SUITE: Final = "corpus-read"
"""Suite in the record that all of a session's passages were read at once."""
_MILLION: Final = 1_000_000
"""A cosine of 1, as records hold it."""
_NOTHING: Final = -2.0
"""Below every cosine: the similarity of no passage at all, which no gate passes."""
_TENTH: Final = Fraction(1, 10)
"""The greatest share of answerable questions to decline, if no promise is asked for."""
_MAX_SCORES: Final = 1_000
"""Scores of a calibration that are kept, of the first questions in the file, so that scores do not choose them."""
_STRETCH: Final = 1_000
"""Records after which the search for drift starts over, and over which a false alarm has its stated probability."""
_MINUTE: Final = 60_000_000
_NAMED: Final = 5
"""Lines that one message names."""
_AT_ONCE: Final = 500
"""Labels read from the store at a time."""


def gate_in_force(
    kept: GateReport | None, collection: Collection, configuration: ConfigurationLog
) -> ConfidenceGate:
    """Return the gate that a store keeps for its embedder, else what its profile ships for it, else the baseline."""
    embedder = collection.embedder
    if kept is not None and kept.fingerprint == embedder.fingerprint:
        return _shut(kept) if configuration.has_drifted(kept) else ConfidenceGate(kept.threshold / _MILLION)
    return gate_for(collection.profile, embedder.name)


class Measured(ABC):
    """The part of :class:`carag.Engine` that records evaluations, and calibrates the gate."""

    _log: AuditLog
    _keeps_gate: bool
    _collection: Collection
    _configuration: ConfigurationLog
    _guarded: GuardedGenerator
    _clock: Callable[[], datetime]
    _rules: Rules
    _watch: Watch | None = None
    """None if the gate in force is not the one calibrated on this store, or has drifted already."""

    @abstractmethod
    def _check_open(self) -> None:
        """Raise if the engine is closed."""

    @abstractmethod
    def _keep_up(self) -> Rules:
        """Take over what other processes brought and put in force."""

    @property
    @abstractmethod
    def _models(self) -> Models: ...

    @abstractmethod
    def retrieve(self, question: str, session: Session) -> Retrieval:
        """Return what the gate tests, on record."""

    @abstractmethod
    def _answer(
        self, question: str, session: Session, where: Mapping[str, Any] | None, guarded: GuardedGenerator
    ) -> Answer:
        """Answer behind the given gate, on record, as :meth:`ask` does behind the one in force."""

    @property
    def gate(self) -> ConfidenceGate:
        """The gate before the generator."""
        return self._guarded.gate

    @property
    def gate_report(self) -> GateReport | None:
        """How the store's own gate was calibrated; None if it was not."""
        self._check_open()
        return self._configuration.gate()

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

        ``suite`` is a code; ``suite_hash`` and ``result`` are the SHA-256 of its questions and settings, and of the
        complete result, which is kept elsewhere. ``thresholds`` are integers, such as millionths.
        """
        self._check_open()
        event = Evaluation(
            started=known_at_microseconds(started),
            ended=known_at_microseconds(self._clock()),
            suite=suite,
            suite_hash=suite_hash,
            snapshot=self._collection.state.root,
            table=bytes.fromhex(self._rules.table.sha256),
            result=result,
            passed=passed,
            thresholds=thresholds or {},
        )
        return self._log.append(event)

    def readable(self, session: Session) -> tuple[Decision, list[StoredChunk]]:
        """Return what a session may use, and every passage of it in the order of documents and places.

        For a metric that compares answers with all passages. First an evaluation of the suite ``corpus-read`` goes on
        record, with the hash of who asked and what for, and that of the passages.
        """
        self._check_open()
        started, rules = self._clock(), self._keep_up()
        try:
            decision = infer(session, rules.table, now=started)
        except Refused:
            self.retrieve("all that may be read", session)  # which puts the refusal on record
            raise
        store, known_at = self._collection.store, decision.known_at
        keys = store.open_labels(known_at=known_at).tolist()
        found = [
            one
            for start in range(0, len(keys), _AT_ONCE)
            for one in store.chunks(keys[start : start + _AT_ONCE], known_at=known_at)
            if decision.admits_labelled(one)
        ]
        found.sort(key=lambda one: (one.document_id, int(one.chunk_id.rpartition(":")[2])))
        asked: Json = [session.role, session.purpose, decision.as_of, known_at]
        read: Json = [[one.chunk_id, one.text_sha256.hex()] for one in found]
        self.evaluated(
            READ_SUITE,
            hashlib.sha256(encode(asked)).digest(),
            hashlib.sha256(encode(read)).digest(),
            started=started,
            passed=True,
            thresholds={"passages": len(found)},
        )
        return decision, found

    def calibrate_gate(
        self,
        questions: str | PathLike[str],
        session: Session,
        *,
        error: Fraction | None = None,
        wrong: Fraction | None = None,
    ) -> GateReport:
        """Calibrate the confidence gate on questions with known answers, and put it in force, on record.

        A question is answerable if the session may use one of the documents that hold its answer. For ``error`` each
        question is retrieved as :meth:`ask` does, on record, and :func:`carag.retrieval.conformal_threshold` chooses
        the threshold. For ``wrong`` each is answered without a gate, on record, which calls the generator, and
        :func:`carag.retrieval.selective_threshold` chooses: an answer is right if it cites a document that holds it, or
        one of the passages if some are given; any answer to a question that is not answerable is wrong. The store keeps
        the threshold for its embedder, in place of the one that ships. :class:`carag.retrieval.Drift` notices if other
        questions are asked; then a stricter threshold takes its place, on record, until the gate is calibrated again.

        Each line of ``questions`` is ``{"question": "…", "documents": ["id", …]}``: the documents hold the answer, and
        an empty list says that none in the store does; ``"passages": ["id:00000", …]`` may name their chunks that do.
        ``error`` is the greatest share of new answerable questions to decline, 1/10 by default; ``wrong``, instead,
        that of wrong answers among new ones.

        Raises InvalidArgument, before anything is asked, if a line is not such a question, a document is not in the
        store (hidden ones count as absent if the session may not know of them) or there are too few questions;
        afterwards, if no threshold keeps the share of wrong answers. Then the gate stays.
        """
        self._check_open()
        if error is not None and wrong is not None:
            raise InvalidArgument(
                "error and wrong are two promises, and one threshold can keep only one; give one of them"
            )
        if error is None:
            error = _TENTH if wrong is None else wrong
        started, wanted = self._clock(), questions_wanted(error)
        read, digest = read_gate_questions(questions)
        asked, hidden = self._open_to(session, read)
        answerable = sum(1 for one in asked if one.documents)
        if (count := answerable if wrong is None else len(asked)) < wanted:
            raise InvalidArgument(
                f"{count} of these questions can be {'answered' if wrong is None else 'asked'} for "
                f"{session.role}/{session.purpose}; want {wanted} or more for an error of {error}: add questions, "
                "or allow a larger error"
            )
        tried = [self._tried(one, session, is_answered=wrong is not None) for one in asked]
        answers = [one for one in tried if one.is_right is not None]
        if wrong is None:
            threshold = conformal_threshold([one.similarity for one in tried if one.documents], error)
        else:
            threshold = _selected(answers, wrong)
        gate = ConfidenceGate(threshold / _MILLION)
        passed = [one for one in answers if one.similarity >= gate.threshold]
        declined = [one for one in tried if one.similarity < gate.threshold]
        fields: dict[str, Json] = {
            "threshold": threshold,
            "error": str(error),
            "promise": "declined" if wrong is None else "wrong",
            "answered": len(passed),
            "answered_wrong": sum(1 for one in passed if not one.is_right),
            "answerable": answerable,
            "answerable_declined": sum(1 for one in declined if one.documents),
            "unanswerable": len(asked) - answerable,
            "unanswerable_declined": sum(1 for one in declined if not one.documents),
            "hidden": hidden,
            "role": session.role,
            "purpose": session.purpose,
            "embedder": self._collection.embedder.name,
            "fingerprint": self._collection.embedder.fingerprint,
            "questions": digest.hex(),
            "closed": _closed(threshold, [one.similarity for one in tried if one.documents]),
            "scores": [one.score for one in tried[:_MAX_SCORES]],
        }
        text = encode(fields)
        receipt = self.evaluated(
            GATE_SUITE,
            digest,
            hashlib.sha256(text).digest(),
            started=started,
            passed=True,
            thresholds={"similarity_millionths": threshold},
        )
        report = self._configuration.keep_gate(text, receipt.seq)
        at = known_at_microseconds(self._clock())
        self._configuration.models(self._models, gate=threshold, at=at, kept=report)
        self._guarded.gate = gate
        self._watch = Watch(report, self._log)
        return report

    def _tried(self, one: GateQuestion, session: Session, *, is_answered: bool) -> _Tried:
        """Ask a question on record: retrieve for it, or answer it without a gate."""
        if not is_answered:
            found = self.retrieve(one.question, session)
            return _Tried(_nearest(found), _score(found.receipt), bool(one.documents), None)
        ungated = GuardedGenerator(self._guarded.generator, ConfidenceGate(-1.0, calibrated=False))
        answer = self._answer(one.question, session, None, ungated)
        best = _NOTHING if answer.top_similarity is None else answer.top_similarity
        is_right = None
        if answer.outcome is Outcome.ANSWER:
            is_right = any(
                cited.chunk_id in one.passages if one.passages else cited.document_id in one.documents
                for cited in answer.citations
            )
        return _Tried(best, _score(answer.receipt), bool(one.documents), is_right)

    def _take_gate(self, kept: GateReport | None) -> None:
        """Take over the gate that the store keeps now, unless another one was given for this opening."""
        gate = gate_in_force(kept, self._collection, self._configuration)
        if self._keeps_gate and gate != self._guarded.gate:
            self._guarded.gate, self._watch = gate, None
            self._watch_over(kept)

    def _watch_over(self, kept: GateReport | None) -> None:
        """Begin to watch for drift, if the gate in force is the one that the store keeps; continue from the log."""
        gate = self._guarded.gate
        if kept is None or gate != ConfidenceGate(kept.threshold / _MILLION) or not kept.scores:
            return
        self._watch = Watch(kept, self._log)
        if self._watch.has_drifted():
            self._shut_gate(self._watch.report)

    def _watched(self, answer: Answer) -> Answer:
        """Look at what was asked, and tighten the gate, on record, if the questions have drifted; return the answer."""
        watch = self._watch
        if watch is not None and watch.sees(answer.receipt.seq, answer.receipt.record):
            self._shut_gate(watch.report)
        return answer

    def _shut_gate(self, kept: GateReport) -> None:
        self._guarded.gate, self._watch = _shut(kept), None
        at = known_at_microseconds(self._clock())
        self._configuration.models(self._models, gate=kept.closed, at=at, kept=kept, has_drifted=True)

    def _open_to(self, session: Session, read: Sequence[GateQuestion]) -> tuple[list[GateQuestion], int]:
        """Return the questions to ask, and how many were left out because their documents are hidden."""
        asked: list[GateQuestion] = []
        closed: list[int] = []
        hidden, rules = 0, self._keep_up()
        for one in read:
            said = rules.listener.said(one.question)
            try:
                decision = infer(
                    session, rules.table, now=self._clock(), intents=said.intents, days=said.days
                )
            except Refused as refusal:
                self.retrieve(one.question, session)  # which puts the refusal on record
                raise Refused(refusal.code, f"line {one.line}: {refusal}") from None
            if decision.may_know_existence:
                self._check_known(one)
            if not one.documents or any(self._is_open(document, decision) for document in one.documents):
                asked.append(one)
            elif decision.may_know_existence:
                hidden += 1
            else:
                closed.append(one.line)
        if closed:
            more = f" and {len(closed) - _NAMED} more" if len(closed) > _NAMED else ""
            raise InvalidArgument(
                f"line {', '.join(map(str, closed[:_NAMED]))}{more}: {session.role}/{session.purpose} may use none of "
                "the documents named there, which are hidden from it or not in the store; leave these questions out, "
                "or calibrate with a role that may know of hidden documents"
            )
        return asked, hidden

    def _check_known(self, one: GateQuestion) -> None:
        store = self._collection.store
        for document in one.documents:
            if store.content_hash(document) is None:
                raise InvalidArgument(
                    f"line {one.line}: the document {quoted(document)} is not in the store; give the id that it was "
                    "added with"
                )

    def _is_open(self, document: str, decision: Decision) -> bool:
        store, known_at = self._collection.store, decision.known_at
        keys = store.document_labels(document, known_at=known_at).tolist()
        return any(
            decision.admits_labelled(label)
            for start in range(0, len(keys), _AT_ONCE)
            for label in store.labels_as_of(keys[start : start + _AT_ONCE], decision.as_of, known_at=known_at)
        )


class Watch:
    """Watches the requests on record since a calibration for drift of the questions.

    It counts only questions that the promise covers: of the gate's role and purpose, about the present, not narrowed.
    Drift raises the threshold to the median of the calibration's answerable questions, at least ``BASELINE``, so that a
    few odd questions do not silence the store.
    """

    def __init__(self, report: GateReport, log: AuditLog) -> None:
        self.report = report
        self._log = log
        self._lock = threading.Lock()
        self._stretch = -1
        self._drift = Drift(report.scores)

    def has_drifted(self) -> bool:
        """Read the log's current stretch again, and tell whether the questions have drifted."""
        first, size = self.report.record + 1, self._log.size
        begin = first + (size - first) // _STRETCH * _STRETCH
        return any(self.sees(number, None) for number in range(begin, size))

    def sees(self, number: int, record: bytes | None) -> bool:
        """Take a record by its number, and tell whether the questions have drifted."""
        read = self._log.record(number) if record is None else Record.parse(record)
        if not self._counts(read):
            return False
        with self._lock:
            stretch = (number - self.report.record - 1) // _STRETCH
            if stretch != self._stretch:
                self._stretch, self._drift = stretch, Drift(self.report.scores)
            return self._drift.sees(_score_of(read))

    def _counts(self, record: Record) -> bool:
        event = record.event
        return (
            isinstance(event, Access)
            and event.kind is RecordKind.QUERY
            and event.outcome in (Outcome.ANSWER, Outcome.DECLINE)
            and (event.role, event.purpose) == (self.report.role, self.report.purpose)
            and not event.where
            and event.policy.entities is None
            and event.as_of >= event.started // _MINUTE
        )


class _Tried(NamedTuple):
    similarity: float
    """What the gate tests."""
    score: int
    """What drift is measured by, in millionths."""
    documents: bool
    """Whether the session may use a document that holds the answer."""
    is_right: bool | None


def _shut(kept: GateReport) -> ConfidenceGate:
    return ConfidenceGate(kept.closed / _MILLION, calibrated=False, promised=kept.threshold / _MILLION)


def _closed(threshold: int, answerable: Sequence[float]) -> int:
    """Return the threshold that replaces a calibrated one when the questions drift, in millionths."""
    middle = median(answerable) if answerable else BASELINE
    return min(max(threshold, round(max(middle, BASELINE) * _MILLION)), _MILLION)


def _selected(answers: Sequence[_Tried], wrong: Fraction) -> int:
    right = [one.is_right is True for one in answers]
    threshold = selective_threshold([one.similarity for one in answers], right, wrong)
    if threshold is None:
        raise InvalidArgument(
            f"no threshold keeps the share of wrong answers at {wrong}: of {len(answers)} answers {right.count(False)} "
            "are wrong, including some with the nearest passages; the gate stays as it was: allow a larger share, "
            "or add questions"
        )
    return threshold


def _score(receipt: Receipt) -> int:
    return _score_of(Record.parse(receipt.record))


def _score_of(record: Record) -> int:
    return max((hit.similarity for hit in record.hits), default=round(_NOTHING * _MILLION))


def _nearest(retrieval: Retrieval) -> float:
    nearest = None if retrieval.asked is None else retrieval.asked.searched.evidence.nearest
    best = top_similarity(retrieval.passages, nearest)
    return _NOTHING if best is None else best
