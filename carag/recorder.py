"""The clerk: turns what happened to a request into an audit event, in the plain values the log takes.

Roles and purposes the policy table does not know are recorded as unknown, never as typed: a record holds no
free text. Question, answer and subject go in as salted commitments.
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from carag.audit import (
    Access,
    Begin,
    EntityRule,
    IndexState,
    Ingest,
    Label,
    ListKind,
    Models,
    Outcome,
    Passage,
    PolicyApplied,
    SessionSource,
    text_hash,
)
from carag.audit.draft import Draft
from carag.errors import AuditUnavailable, CaragError, InvalidArgument
from carag.policy import as_of_minutes, known_at_microseconds
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import datetime

    from carag.audit import AuditLog, Receipt, RecordKind, StateProof
    from carag.ingest import IngestReport
    from carag.policy import Decision, Policy, PolicyTable, Session
    from carag.retrieval import Evidence
    from carag.snapshot import Snapshot

__all__ = ["Proven", "Recorder", "Request", "proven", "shortened"]

_logger = logger(__name__)


@dataclass(slots=True)
class Request:
    """One call of the engine, from the moment it came in."""

    kind: RecordKind
    text: str
    """The question, or the id of the chunk to explain."""
    session: Session
    started: datetime
    decision: Decision | None = None
    """What the session may use; None before that is known, and of a refused session."""
    begun: int | None = None
    """Its begin record, once it has one."""


@dataclass(frozen=True, slots=True)
class Proven:
    """The index state that was searched, and that each passage found stood in it."""

    root: bytes
    proofs: tuple[StateProof, ...]


def proven(state: Snapshot, request: Request, evidence: Evidence) -> Proven:
    """Prove what a search found, in the state it searched.

    Whoever asks about the past does not learn when a word ceased to hold, for it may have been later than that.

    Raises
    ------
    CorruptFile
        If the state does not hold a passage that was found.
    """
    labels = [
        Label(one.chunk_id, text_hash(one.text), one.word, one.public_at, one.expires_at)
        for one in evidence.passages
    ]
    root, proofs = state.prove(labels, -1 if evidence.known_at is None else evidence.known_at)
    if request.decision is None or request.decision.as_of < as_of_minutes(request.started):
        proofs = [proof.sealed() for proof in proofs]
    return Proven(root, tuple(proofs))


class Recorder:
    """Writes one record per request.

    Parameters
    ----------
    log : AuditLog
    table : PolicyTable
    clock : callable
        Returns an aware datetime.
    """

    def __init__(self, log: AuditLog, table: PolicyTable, clock: Callable[[], datetime]) -> None:
        self._log = log
        self._table = table
        self._table_hash = bytes.fromhex(table.sha256)
        self._clock = clock

    def check(self, request: Request, models: Models) -> None:
        """Check, before anything is searched, that a record can hold what came with a request.

        Raises
        ------
        InvalidArgument
            If question, subject, token or models cannot be recorded; nothing was done.
        """
        event = self._event(request, outcome=Outcome.ERROR, why="UNKNOWN", models=models)
        Draft.of(self._log.origin, event, self._secrets(request), ())

    def access(
        self,
        request: Request,
        *,
        outcome: Outcome,
        why: str,
        models: Models | None = None,
        evidence: Evidence | None = None,
        state: Proven | None = None,
        answer: str | None = None,
        cited: Collection[str] = (),
    ) -> Receipt:
        """Record what a request led to. Return nothing to the asker before this returns.

        Parameters
        ----------
        request : Request
        evidence : Evidence, optional
            If a search was made.
        state : Proven, optional
            What it searched; goes with the evidence.
        answer : str, optional
            The text handed out.
        cited : collection of str
            Chunk ids the answer cites.

        Raises
        ------
        AuditUnavailable
            If the record cannot be made durable.
        """
        index = (
            None
            if evidence is None or state is None
            else IndexState(state.root, evidence.admissible, evidence.plan, evidence.known_at)
        )
        event = self._event(request, outcome=outcome, why=why, models=models or Models(), index=index)
        passages = () if evidence is None else evidence.passages
        receipt = self._log.append(
            event,
            secrets=self._secrets(request, answer),
            passages=[
                Passage(
                    chunk=passage.chunk_id,
                    text=passage.text,
                    similarity=passage.similarity,
                    word=passage.word,
                    cited=passage.chunk_id in cited,
                )
                for passage in passages
            ],
        )
        took = (event.ended - event.started) // 1000
        _logger.info("%s: %s (%s), record %d, %d ms", event.kind, outcome, why, receipt.seq, took)
        return replace(receipt, proofs=() if state is None else state.proofs)

    def _event(
        self, request: Request, *, outcome: Outcome, why: str, models: Models, index: IndexState | None = None
    ) -> Access:
        session, decision = request.session, request.decision
        return Access(
            kind=request.kind,
            started=known_at_microseconds(request.started),
            ended=known_at_microseconds(self._clock()),
            role=session.role if session.role in self._table.roles else None,
            purpose=session.purpose if session.purpose in self._table.purposes else None,
            source=SessionSource(session.source.value),
            as_of=as_of_minutes(session.as_of or request.started) if decision is None else decision.as_of,
            policy=_applied(self._table_hash, decision),
            index=index,
            intents=() if decision is None else tuple(intent.value for intent in decision.intents),
            outcome=outcome,
            why=why,
            models=models,
            begun=request.begun,
            issuer=session.issuer,
            audience=session.audience,
        )

    def _secrets(self, request: Request, answer: str | None = None) -> dict[str, str | None]:
        return {
            "query": request.text,
            "answer": answer,
            "subject": request.session.subject,
            "entities": None if request.decision is None else _lists(request.decision),
        }

    def begin(self, request: Request, models: Models) -> None:
        """Record that a question, or passages with it, are about to leave this machine, once a request.

        The request's record will name it.

        Raises
        ------
        AuditUnavailable
            If the record cannot be made durable. Call no remote model.
        """
        session, decision = request.session, request.decision
        if request.begun is not None:
            return
        if decision is None:
            raise InvalidArgument("nothing may leave before the session is judged; decide first")
        event = Begin(
            started=known_at_microseconds(request.started),
            role=decision.role,
            purpose=decision.purpose,
            source=SessionSource(session.source.value),
            as_of=decision.as_of,
            policy=_applied(self._table_hash, decision),
            models=models,
        )
        receipt = self._log.append(event, secrets={"query": request.text, "subject": session.subject})
        request.begun = receipt.seq
        _logger.debug("%s begun, record %d", request.kind, receipt.seq)

    @contextmanager
    def failures(self, request: Request) -> Iterator[None]:
        """Record whatever goes wrong inside, then let it go on; an unwritable log has recorded nothing, and cannot.

        Raises
        ------
        AuditUnavailable
            If the failure cannot be recorded; it is the cause.
        """
        try:
            yield
        except AuditUnavailable:
            raise
        except Exception as error:
            why = _code_of(error) if isinstance(error, CaragError) else "INTERNAL_ERROR"
            try:
                self.access(request, outcome=Outcome.ERROR, why=why)
            except AuditUnavailable as unrecorded:
                raise unrecorded from error
            raise

    def ingested(
        self,
        report: IngestReport,
        started: datetime,
        *,
        rows: int,
        snapshot: bytes,
        embedder: str,
        why: str,
    ) -> Receipt:
        """Record that what can be found has changed."""
        event = Ingest(
            started=known_at_microseconds(started),
            ended=known_at_microseconds(self._clock()),
            documents=report.added + report.changed,
            chunks=report.chunks,
            quarantined=report.newly_quarantined,
            rows=rows,
            snapshot=snapshot,
            table=self._table_hash,
            embed=embedder,
            why=why,
        )
        return self._log.append(event)


def shortened(fingerprint: str) -> str:
    """Write a SHA-256 as records write theirs, in base64url instead of hex; anything else stays.

    Examples
    --------
    >>> shortened("00" * 32), shortened("extractive-1")
    ('AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'extractive-1')
    """
    if not re.fullmatch("[0-9a-f]{64}", fingerprint):
        return fingerprint
    return base64.urlsafe_b64encode(bytes.fromhex(fingerprint)).rstrip(b"=").decode()


def _applied(table: bytes, decision: Decision | None) -> PolicyApplied:
    if decision is None:
        return PolicyApplied(table)
    more = decision.reopened
    return PolicyApplied(
        table,
        decision.policy.pairs,
        entities=_rule(decision.policy),
        reopened=() if more is None else more.pairs,
        reopened_entities=None if more is None else _rule(more),
        cooling=decision.cooling,
    )


def _rule(policy: Policy) -> EntityRule | None:
    if policy.allow_entities is not None:
        return EntityRule(ListKind.ALLOW, len(policy.allow_entities), denied=len(policy.deny_entities))
    return EntityRule(ListKind.DENY, len(policy.deny_entities)) if policy.deny_entities else None


def _lists(decision: Decision) -> str | None:
    """Write the lists in force as one canonical text, to be committed to; None where there is none."""
    if not any(_rule(policy) for policy in decision.policies):
        return None
    lists: list[dict[str, tuple[int, ...]]] = []
    for policy in decision.policies:
        both = {
            ListKind.ALLOW.value: policy.allow_entities,
            ListKind.DENY.value: policy.deny_entities or None,
        }
        lists.append({kind: listed for kind, listed in both.items() if listed is not None})
    return json.dumps(lists, sort_keys=True, separators=(",", ":"))


def _code_of(error: CaragError) -> str:
    """ModelUnavailable becomes MODEL_UNAVAILABLE."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).upper()
