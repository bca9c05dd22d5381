"""Calibrate a store's confidence gate on the store's own questions, and watch whether questions have drifted since."""

from __future__ import annotations

import hashlib
import threading
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.audit import Access, Outcome, Record, RecordKind
from carag.audit.tlog.encoding import encode
from carag.engine.configuration import GATE_SUITE
from carag.errors import InvalidArgument, Refused
from carag.generation import UNGATED, GuardedGenerator
from carag.limits import quoted
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
    from collections.abc import Sequence
    from os import PathLike

    from carag.audit import AuditLog, Receipt
    from carag.audit.tlog.encoding import Json
    from carag.engine.collection import Collection
    from carag.engine.configuration import ConfigurationLog
    from carag.engine.directory import Lifetime
    from carag.engine.evaluations import Evaluations
    from carag.engine.requests import Requests
    from carag.engine.results import Answer, GateReport, Retrieval
    from carag.policy import Decision, Session
    from carag.readers.gate_questions import GateQuestion


_MILLION: Final = 1_000_000
"""A cosine of 1, as records hold it."""
_NOTHING: Final = -2.0
"""Below every cosine: the similarity of no passage at all, which no gate passes."""
_TENTH: Final = Fraction(1, 10)
"""The greatest share of answerable questions to decline, if no promise is asked for."""
_MAX_SCORES: Final = 1_000
"""How many scores of a calibration are kept: those of the file's first questions, so that scores do not decide."""
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


class Calibration:
    """A store's gate: calibrated on the store's own questions, and watched for questions of another kind."""

    def __init__(
        self,
        requests: Requests,
        evaluations: Evaluations,
        configuration: ConfigurationLog,
        lifetime: Lifetime,
        *,
        keeps_gate: bool,
    ) -> None:
        self._requests = requests
        self._evaluations = evaluations
        self._configuration = configuration
        self._lifetime = lifetime
        self._keeps_gate = keeps_gate
        self._watch: Watch | None = None
        """None if the gate in force is not the one calibrated on this store, or if questions have drifted already."""

    @property
    def report(self) -> GateReport | None:
        """How the store's own gate was calibrated; None if it was not."""
        self._lifetime.check()
        return self._configuration.gate()

    def calibrate(
        self,
        questions: str | PathLike[str],
        session: Session,
        *,
        error: Fraction | None = None,
        wrong: Fraction | None = None,
    ) -> GateReport:
        """See :meth:`carag.Engine.calibrate_gate`."""
        self._lifetime.check()
        if error is not None and wrong is not None:
            raise InvalidArgument(
                "error and wrong are two promises, and one threshold can keep only one; give one of them"
            )
        if error is None:
            error = _TENTH if wrong is None else wrong
        started, wanted = self._requests.recorder.clock(), questions_wanted(error)
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
            "embedder": self._requests.collection.embedder.name,
            "fingerprint": self._requests.collection.embedder.fingerprint,
            "questions": digest.hex(),
            "closed": _closed(threshold, [one.similarity for one in tried if one.documents]),
            "scores": [one.score for one in tried[:_MAX_SCORES]],
        }
        text = encode(fields)
        receipt = self._evaluations.record(
            GATE_SUITE,
            digest,
            hashlib.sha256(text).digest(),
            started=started,
            passed=True,
            thresholds={"similarity_millionths": threshold},
        )
        report = self._configuration.keep_gate(text, receipt.seq)
        at = self._requests.recorder.now()
        self._configuration.models(self._requests.models, gate=threshold, at=at, kept=report)
        self._requests.guarded.gate = gate
        self._watch = Watch(report, self._requests.recorder.log)
        return report

    def _tried(self, one: GateQuestion, session: Session, *, is_answered: bool) -> _Tried:
        """Ask a question, on record: retrieve passages for it, or answer it without a gate."""
        if not is_answered:
            found = self._requests.retrieve(one.question, session)
            return _Tried(_nearest(found), _score(found.receipt), bool(one.documents), None)
        guarded = self._requests.guarded
        ungated = GuardedGenerator(guarded.generator, ConfidenceGate(-1.0, calibrated=False), guarded.check)
        answer = self._requests.answer(one.question, session, guarded=ungated)
        best = _NOTHING if answer.top_similarity is None else answer.top_similarity
        is_right = None
        if answer.outcome is Outcome.ANSWER:
            is_right = any(
                cited.chunk_id in one.passages if one.passages else cited.document_id in one.documents
                for cited in answer.citations
            )
        return _Tried(best, _score(answer.receipt), bool(one.documents), is_right)

    def take(self, kept: GateReport | None) -> None:
        """Take over the gate that the store keeps now, unless another one was given for this opening."""
        gate = gate_in_force(kept, self._requests.collection, self._configuration)
        if self._keeps_gate and gate != self._requests.guarded.gate:
            self._requests.guarded.gate, self._watch = gate, None
            self.watch_over(kept)

    def watch_over(self, kept: GateReport | None) -> None:
        """Begin to watch for drift, if the gate in force is the one that the store keeps; continue from the log."""
        gate = self._requests.guarded.gate
        if kept is None or gate != ConfidenceGate(kept.threshold / _MILLION) or not kept.scores:
            return
        self._watch = Watch(kept, self._requests.recorder.log)
        if self._watch.has_drifted():
            self._shut_gate(self._watch.report)

    def watched(self, answer: Answer) -> Answer:
        """Look at what was asked, and tighten the gate, on record, if the questions have drifted; return the answer."""
        watch = self._watch
        if watch is not None and watch.sees(answer.receipt.seq, answer.receipt.record):
            self._shut_gate(watch.report)
        return answer

    def _shut_gate(self, kept: GateReport) -> None:
        self._requests.guarded.gate, self._watch = _shut(kept), None
        at = self._requests.recorder.now()
        self._configuration.models(
            self._requests.models, gate=kept.closed, at=at, kept=kept, has_drifted=True
        )

    def _open_to(self, session: Session, read: Sequence[GateQuestion]) -> tuple[list[GateQuestion], int]:
        """Return the questions to ask, and how many were left out because their documents are hidden."""
        asked: list[GateQuestion] = []
        closed: list[int] = []
        hidden, rules = 0, self._requests.in_force.keep_up()
        for one in read:
            try:
                decision = rules.decide(one.question, session, self._requests.recorder.clock())
            except Refused as refusal:
                self._requests.retrieve(one.question, session)  # which puts the refusal on record
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
        store = self._requests.collection.store
        for document in one.documents:
            if store.documents.content_hash(document) is None:
                raise InvalidArgument(
                    f"line {one.line}: the document {quoted(document)} is not in the store; give the id that it was "
                    "added with"
                )

    def _is_open(self, document: str, decision: Decision) -> bool:
        store, known_at = self._requests.collection.store, decision.known_at
        keys = store.labels.of_document(document, known_at=known_at).tolist()
        return any(
            decision.admits_labelled(label)
            for start in range(0, len(keys), _AT_ONCE)
            for label in store.labels.as_of(keys[start : start + _AT_ONCE], decision.as_of, known_at=known_at)
        )


class Watch:
    """Watches the requests recorded since a calibration for drift in the questions.

    It counts only questions that the promise covers: those with the gate's role and purpose, about the present, not
    narrowed. Drift raises the threshold to the median of the calibration's answerable questions, at least ``BASELINE``,
    so that a few odd questions do not silence the store.
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
            and event.why not in UNGATED
            and (event.role, event.purpose) == (self.report.role, self.report.purpose)
            and not event.where
            and event.policy.entities is None
            and event.as_of >= event.started // _MINUTE
        )


class _Tried(NamedTuple):
    similarity: float
    """What the gate tests."""
    score: int
    """The score by which drift is measured, in millionths."""
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
            f"no threshold keeps the share of wrong answers at {wrong}: of {len(answers)} answers, "
            f"{right.count(False)} are wrong, including some with the nearest passages; the gate stays as it was: "
            "allow a larger share, or add questions"
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
