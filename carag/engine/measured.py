"""Put on record that a store was measured, and calibrate its confidence gate on questions of its own.

An answer can be traced to the checks that its store passed, and a decline to the questions that set the threshold.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from carag.audit import Evaluation
from carag.audit.tlog.encoding import encode
from carag.engine.configuration import GATE_SUITE
from carag.errors import InvalidArgument, Refused
from carag.limits import quoted
from carag.policy import infer, known_at_microseconds
from carag.readers.gate_questions import read_gate_questions
from carag.retrieval import ConfidenceGate, conformal_threshold, gate_for, questions_wanted, top_similarity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from os import PathLike

    from carag.audit import AuditLog, Models, Receipt
    from carag.audit.tlog.encoding import Json
    from carag.engine.collection import Collection
    from carag.engine.configuration import ConfigurationLog
    from carag.engine.results import GateReport, Retrieval
    from carag.generation import GuardedGenerator
    from carag.policy import Decision, PolicyTable, Session
    from carag.readers.gate_questions import GateQuestion
    from carag.retrieval.reading import Listener
    from carag.store.values import StoredChunk

__all__ = ["READ_SUITE", "Measured", "gate_in_force"]

READ_SUITE: Final = "corpus-read"
"""Name of the record that all of a session's passages were read at once."""
_MILLION: Final = 1_000_000
"""A cosine of 1, as records hold it."""
_NOTHING: Final = -2.0
"""Below every cosine: the similarity of no passage at all, which no gate passes."""
_NAMED: Final = 5
"""Lines that one message names."""
_AT_ONCE: Final = 500
"""Labels read from the store at a time."""


def gate_in_force(kept: GateReport | None, collection: Collection) -> ConfidenceGate:
    """Return the gate that a store keeps for its embedder, else the one that ships for it, else an open one."""
    embedder = collection.embedder
    if kept is not None and kept.fingerprint == embedder.fingerprint:
        return ConfidenceGate(kept.threshold / _MILLION)
    return gate_for(embedder.name, on_filings=collection.profile.vocabulary.reader == "edgar")


class Measured(ABC):
    """The part of :class:`carag.Engine` that records evaluations, and calibrates the gate."""

    _log: AuditLog
    _table: PolicyTable
    _listener: Listener
    _collection: Collection
    _configuration: ConfigurationLog
    _guarded: GuardedGenerator
    _clock: Callable[[], datetime]

    @abstractmethod
    def _check_open(self) -> None:
        """Raise if the engine is closed."""

    @property
    @abstractmethod
    def _models(self) -> Models:
        """What the store is searched and answered with."""

    @abstractmethod
    def retrieve(self, question: str, session: Session) -> Retrieval:
        """Return what the gate tests, on record."""

    @property
    def gate(self) -> ConfidenceGate:
        """What stands before the generator."""
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
            snapshot=self._collection.state.root,
            table=bytes.fromhex(self._table.sha256),
            result=result,
            passed=passed,
            thresholds=thresholds or {},
        )
        return self._log.append(event)

    def readable(self, session: Session) -> tuple[Decision, list[StoredChunk]]:
        """Return what a session may use, and every passage of it in the order of documents and places.

        For a metric that compares answers with all of them. That they were read is on record before they are returned:
        an evaluation of the suite ``corpus-read``, with the hash of who asked and what for, and that of the passages.

        Raises
        ------
        Refused
            If the session may ask nothing; that is on record.
        AuditUnavailable
            If the record cannot be written; nothing is returned.
        """
        self._check_open()
        started = self._clock()
        try:
            decision = infer(session, self._table, now=started)
        except Refused:
            self.retrieve("all that may be read", session)  # which puts the refusal on record
            raise
        store, known_at = self._collection.store, decision.known_at
        keys = store.open_labels(known_at=known_at).tolist()
        found = [
            one
            for start in range(0, len(keys), _AT_ONCE)
            for one in store.chunks(keys[start : start + _AT_ONCE], known_at=known_at)
            if decision.admits(one.word, one.public_at, entity=one.subjects, expires_at=one.expires_at)
        ]
        found.sort(key=lambda one: (one.accession_number, int(one.chunk_id.rpartition(":")[2])))
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
        self, questions: str | PathLike[str], session: Session, *, error: Fraction = Fraction(1, 10)
    ) -> GateReport:
        """Calibrate the confidence gate on questions of known answer, and put it in force, on record.

        A question is answerable if the session may use one of the documents that hold its answer. Each is retrieved as
        :meth:`ask` does, on record; the threshold is chosen by :func:`carag.retrieval.conformal_threshold`. The store
        keeps it for its embedder, in place of the one that ships.

        Parameters
        ----------
        questions : path
            JSON Lines: ``{"question": "…", "documents": ["id", …]}``. The documents hold the answer; an empty list says
            that none in the store does.
        session : Session
            Who asks such questions, and what for.
        error : Fraction
            The greatest share of new answerable questions to decline, between 0 and 1.

        Raises
        ------
        InvalidArgument
            If a line is no such question or stands there twice, a document is not in the store, or there are too few
            questions. For a session that may not know of hidden documents, hidden and absent are one: a question is
            refused if it may use none of its documents. Nothing is asked and nothing changed.
        Refused
            If the session may ask nothing; that is on record.
        AuditUnavailable
            If a record cannot be written; a gate that is not on record is not in force.
        """
        self._check_open()
        started, wanted = self._clock(), questions_wanted(error)
        read, digest = read_gate_questions(questions)
        asked, hidden = self._open_to(session, read)
        answerable = sum(1 for one in asked if one.documents)
        if answerable < wanted:
            raise InvalidArgument(
                f"{answerable} of these questions can be answered for {session.role}/{session.purpose}; want {wanted} "
                f"or more for an error of {error}: add questions, or allow a larger error"
            )
        best = [_nearest(self.retrieve(one.question, session)) for one in asked]
        scored = [(_NOTHING if score is None else score, one) for score, one in zip(best, asked, strict=True)]
        threshold = conformal_threshold([score for score, one in scored if one.documents], error)
        gate = ConfidenceGate(threshold / _MILLION)
        declined = [one for score, one in scored if score < gate.threshold]
        fields: dict[str, Json] = {
            "threshold": threshold,
            "error": str(error),
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
        return report

    def _open_to(self, session: Session, read: Sequence[GateQuestion]) -> tuple[list[GateQuestion], int]:
        """Return the questions to ask, and how many were left out because their documents are hidden."""
        asked: list[GateQuestion] = []
        closed: list[int] = []
        hidden = 0
        for one in read:
            said = self._listener.said(one.question)
            try:
                decision = infer(
                    session, self._table, now=self._clock(), intents=said.intents, days=said.days
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
                "the documents named there: they are hidden from it, or not in the store; leave these questions out, "
                "or calibrate with a role that may know of hidden documents"
            )
        return asked, hidden

    def _check_known(self, one: GateQuestion) -> None:
        store = self._collection.store
        for document in one.documents:
            if store.content_hash(document) is None:
                raise InvalidArgument(
                    f"line {one.line}: the document {quoted(document)} is not in the store; want the id that it was "
                    "added with"
                )

    def _is_open(self, document: str, decision: Decision) -> bool:
        store, known_at = self._collection.store, decision.known_at
        keys = store.filing_labels(document, known_at=known_at).tolist()
        return any(
            decision.admits(label.word, label.public_at, entity=label.subjects, expires_at=label.expires_at)
            for start in range(0, len(keys), _AT_ONCE)
            for label in store.labels_as_of(keys[start : start + _AT_ONCE], decision.as_of, known_at=known_at)
        )


def _nearest(retrieval: Retrieval) -> float | None:
    """Return what the gate tests: the similarity of the nearest admissible passage."""
    nearest = None if retrieval.asked is None else retrieval.asked.searched.evidence.nearest
    return top_similarity(retrieval.passages, nearest)
