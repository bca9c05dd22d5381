"""The clerk: turns what happened to a request into an audit event, in the plain values the log takes.

Roles and purposes the policy table does not know are recorded as unknown, never as typed: a record holds no
free text. Question, answer and subject go in as salted commitments.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from carag.audit import (
    Access,
    Begin,
    EntityRule,
    IndexState,
    Ingest,
    ListKind,
    Models,
    Outcome,
    Passage,
    PolicyApplied,
    SessionSource,
)
from carag.errors import AuditUnavailable, CaragError
from carag.policy import as_of_minutes, known_at_microseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import datetime

    from carag.audit import AuditLog, Receipt, RecordKind
    from carag.ingest import IngestReport
    from carag.policy import Decision, Policy, PolicyTable, Session
    from carag.retrieval import Evidence

__all__ = ["Recorder", "Request"]


@dataclass(slots=True)
class Request:
    """One call of the engine, from the moment it came in."""

    kind: RecordKind
    text: str
    """The question, or the id of the chunk to explain."""
    session: Session
    started: datetime
    begun: int | None = None
    """Its begin record, once it has one."""


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

    def access(
        self,
        request: Request,
        decision: Decision | None,
        *,
        outcome: Outcome,
        why: str,
        models: Models | None = None,
        evidence: Evidence | None = None,
        snapshot: bytes = b"",
        answer: str | None = None,
        cited: Collection[str] = (),
    ) -> Receipt:
        """Record what a request led to. Return nothing to the asker before this returns.

        Parameters
        ----------
        request : Request
        decision : Decision or None
            None when the session was refused.
        evidence : Evidence, optional
            If a search was made; ``snapshot`` is then the root hash of what it searched.
        answer : str, optional
            The text handed out.
        cited : collection of str
            Chunk ids the answer cites.

        Raises
        ------
        AuditUnavailable
            If the record cannot be made durable.
        """
        session = request.session
        event = Access(
            kind=request.kind,
            started=known_at_microseconds(request.started),
            ended=known_at_microseconds(self._clock()),
            role=session.role if session.role in self._table.roles else None,
            purpose=session.purpose if session.purpose in self._table.purposes else None,
            source=SessionSource(session.source.value),
            as_of=as_of_minutes(session.as_of or request.started) if decision is None else decision.as_of,
            policy=_applied(self._table_hash, decision),
            index=(
                None
                if evidence is None
                else IndexState(snapshot, evidence.admissible, evidence.plan, evidence.known_at)
            ),
            withheld=() if evidence is None else tuple(kind.code for kind in evidence.withheld.kinds),
            intents=() if decision is None else tuple(intent.value for intent in decision.intents),
            outcome=outcome,
            why=why,
            models=models or Models(),
            begun=request.begun,
        )
        passages = () if evidence is None else evidence.passages
        return self._log.append(
            event,
            secrets={
                "query": request.text,
                "answer": answer,
                "subject": session.subject,
                "entities": None if decision is None else _lists(decision),
            },
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

    def begin(self, request: Request, decision: Decision, models: Models) -> None:
        """Record that question and passages are about to leave this machine; the request's record will name it.

        Raises
        ------
        AuditUnavailable
            If the record cannot be made durable. Call no remote model.
        """
        session = request.session
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

    @contextmanager
    def failures(self, request: Request, decision: Decision) -> Iterator[None]:
        """Record whatever goes wrong inside, then let it go on.

        Raises
        ------
        AuditUnavailable
            If the failure cannot be recorded; it is the cause.
        """
        try:
            yield
        except Exception as error:
            why = _code_of(error) if isinstance(error, CaragError) else "INTERNAL_ERROR"
            try:
                self.access(request, decision, outcome=Outcome.ERROR, why=why)
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
            quarantined=report.set_aside,
            rows=rows,
            snapshot=snapshot,
            table=self._table_hash,
            embed=embedder,
            why=why,
        )
        return self._log.append(event)


def _applied(table: bytes, decision: Decision | None) -> PolicyApplied:
    if decision is None:
        return PolicyApplied(table)
    more = decision.reopened
    return PolicyApplied(
        table,
        _pairs(decision.policy),
        entities=_rule(decision.policy),
        reopened=() if more is None else _pairs(more),
        reopened_entities=None if more is None else _rule(more),
        cooling=decision.cooling,
    )


def _pairs(policy: Policy) -> tuple[tuple[int, int], ...]:
    return tuple((mask.required, mask.forbidden) for mask in policy.masks)


def _rule(policy: Policy) -> EntityRule | None:
    if policy.allow_entities is not None:
        return EntityRule(ListKind.ALLOW, len(policy.allow_entities))
    return EntityRule(ListKind.DENY, len(policy.deny_entities)) if policy.deny_entities else None


def _lists(decision: Decision) -> str | None:
    """Write the lists in force as one canonical text, to be committed to; None where there is none."""
    rules = [_rule(policy) for policy in decision.policies]
    if not any(rules):
        return None
    lists = [
        {} if rule is None else {rule.kind.value: policy.deny_entities or policy.allow_entities}
        for rule, policy in zip(rules, decision.policies, strict=True)
    ]
    return json.dumps(lists, sort_keys=True, separators=(",", ":"))


def _code_of(error: CaragError) -> str:
    """ModelUnavailable becomes MODEL_UNAVAILABLE."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).upper()
