"""Turn requests and refused tokens into audit records.

These hold no free text: question, answer and subject are salted commitments.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeVar

from carag.audit import (
    Access,
    BackendState,
    Begin,
    Denial,
    EntityRule,
    GroupChange,
    HeadRows,
    IndexState,
    Ingest,
    Label,
    ListKind,
    Models,
    Outcome,
    Passage,
    PolicyApplied,
    SessionSource,
)
from carag.audit.records.commitment import SALT_SIZE, commit
from carag.errors import AuditUnavailable, CaragError, InvalidArgument, without_frames
from carag.generation import UNGATED, basis_of
from carag.policy import EVERYWHERE, Intents, as_of_minutes, infer, known_at_microseconds
from carag.retrieval import top_similarity
from carag.retrieval.reading import Listener, Said
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from carag.audit import AuditLog, Receipt, RecordKind, StateProof
    from carag.engine.collection import Collection
    from carag.engine.state import StoreState
    from carag.generation import Citation, Reader, Unheld
    from carag.policy import (
        AskedDay,
        Audience,
        Decision,
        Explained,
        Policy,
        PolicyTable,
        Profile,
        Session,
        Where,
    )
    from carag.retrieval import Evidence, Reranker, Withheld
    from carag.retrieval import Passage as Found
    from carag.retrieval.authority import Inquiry
    from carag.retrieval.ranking import Ranker
    from carag.retrieval.reading import Declared
    from carag.retrieval.reading.follow_up import Carried
    from carag.store.values import GroupReport


class Rules(NamedTuple):
    """The policy in force at one change of the store's configuration."""

    change: str
    """The store's note of that change; see :meth:`carag.store.store.CorpusStore.standing`."""
    table: PolicyTable
    listener: Listener

    @classmethod
    def of(cls, change: str, profile: Profile, declared: Declared, *, intents: bool) -> Rules:
        """Return a profile's rules; without ``intents``, no word in a question tightens them."""
        heard = profile.vocabulary.intents if intents else Intents()
        return cls(change, profile.table, Listener(heard, declared))

    def decide(self, question: str | None, session: Session, now: datetime, *, read: str = "") -> Decision:
        """Infer what a session may use for a question, or for none; Refused if the session alone decides.

        - ``read``: the question as it is read after earlier ones, whose words can only tighten.
        """
        said = Said() if question is None else self.listener.said(question, read)
        return infer(session, self.table, now=now, intents=said.intents, days=said.days)


_logger = logger(__name__)

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Request:
    """One call of the engine, from the moment it came in."""

    kind: RecordKind
    text: str
    """The question, or the id of the chunk to explain."""
    session: Session
    started: datetime
    rules: Rules
    where: Where = EVERYWHERE
    decision: Decision | None = None
    """What the session may use; None until this is inferred, and for a refused session."""
    inquiry: Inquiry | None = None
    """What an authority outside the store is asked; None without one."""
    carried: Carried | None = None  # the question with what it takes over from earlier ones, if anything

    @property
    def read(self) -> str:
        """The question as it is read."""
        return self.text if self.carried is None else self.carried.text


@dataclass(frozen=True, slots=True)
class Searched:
    """Evidence for a record: the state that was searched, and everything that was read from it, with proofs."""

    evidence: Evidence
    index: IndexState
    hits: tuple[Passage, ...]
    """The passages found, followed by those that only lend their headings to some of these."""
    proofs: tuple[StateProof, ...]
    heads: tuple[HeadRows, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A retrieval, kept with its result so that an answer generated elsewhere can be recorded under it."""

    by: object
    """The ``mark`` of the recorder that made it."""
    request: Request
    searched: Searched
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Finding:
    """What a request led to, for its record and for the result that goes out with the receipt."""

    outcome: Outcome
    why: str
    text: str = ""
    """The text for the asker; the record commits to it if it is an answer."""
    models: Models = field(default_factory=Models)
    searched: Searched | None = None
    """None without a search."""
    citations: tuple[Citation, ...] = ()
    complete: bool = True
    left_out: tuple[Unheld, ...] = ()
    reasons: tuple[Explained, ...] = ()
    causes: tuple[str, ...] = ()
    regulation: str = ""
    carried: Carried | None = None  # what the question takes over from earlier ones
    asked_day: AskedDay | None = None
    """The day that the question names; None if it names none, or the session is refused."""

    @property
    def passages(self) -> tuple[Found, ...]:
        """The passages found; empty without a search."""
        return () if self.searched is None else self.searched.evidence.passages

    @property
    def chunk_ids(self) -> list[str]:
        """The passages that the record names."""
        return [] if self.searched is None else [one.chunk for one in self.searched.hits]

    @property
    def understood(self) -> str:
        """What the question was understood to name, and what it takes over; empty without a search."""
        if self.searched is None:
            return ""
        carried = "" if self.carried is None else self.carried.described()
        return "; ".join(filter(None, (self.searched.evidence.topic.understood, carried)))

    @property
    def basis(self) -> str:
        """Which documents an answer is based on; empty except for an answer about a named party or time."""
        return "" if self.searched is None else basis_of(self.searched.evidence.topic, self.citations)

    @property
    def withheld(self) -> Withheld | None:
        """What is withheld; None without a search."""
        return None if self.searched is None else self.searched.evidence.withheld

    @property
    def top_similarity(self) -> float | None:
        """What the gate tests: the similarity of the nearest admissible passage; None without one or without a gate."""
        if self.searched is None or self.why in UNGATED:
            return None
        return top_similarity(self.passages, self.searched.evidence.nearest)


def proven(state: StoreState, request: Request, evidence: Evidence) -> Searched:
    """Prove what a search found in the state that it searched; CorruptFile if that state lacks a passage."""
    recorded = [_label_and_hit(one, evidence.audiences.get(one.chunk_id)) for one in _read(evidence)]
    root, proofs = state.prove(
        (label for label, _ in recorded), -1 if evidence.known_at is None else evidence.known_at
    )
    if request.decision is None or request.decision.as_of < as_of_minutes(request.started):
        proofs = [proof.sealed() for proof in proofs]
    index = IndexState(root, evidence.admissible, evidence.plan, evidence.known_at, _backend(evidence))
    return Searched(
        evidence, index, tuple(hit for _, hit in recorded), tuple(proofs), tuple(_heads(evidence))
    )


def _backend(evidence: Evidence) -> BackendState | None:
    if (state := evidence.backend) is None:
        return None
    shards = tuple((shard.id, shard.at) for shard in state.shards)
    dictionary = bytes.fromhex(state.dictionary)
    return BackendState(state.backend, state.collection, state.epoch, dictionary, shards)


def _read(evidence: Evidence) -> tuple[Found, ...]:
    return (*evidence.passages, *evidence.lenders)


def _heads(evidence: Evidence) -> Iterator[HeadRows]:
    lenders = {one.chunk_id: (number, one.start) for number, one in enumerate(_read(evidence), start=1)}
    for number, one in enumerate(evidence.passages, start=1):
        if one.head is not None:
            lender, first = lenders[one.head.chunk_id]
            yield HeadRows(number, lender, one.head.start - first, one.head.end - first)


def _label_and_hit(one: Found, audience: Audience | None) -> tuple[Label, Passage]:
    """Return the label that the state must hold and the passage that the record keeps, both with the store's hash."""
    shared = "" if audience is None else audience.text
    label = Label(one.chunk_id, one.text_sha256, one.word, one.public_at, one.expires_at, shared)
    return label, Passage(one.chunk_id, one.text, one.similarity, one.word, text_sha256=one.text_sha256)


def no_text_in_traceback(call: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Raise errors without their frames, whose variables may hold a passage or an answer that is not on record."""

    @wraps(call)
    def wrapper(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return call(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - raised again below, without its frames
            raised = error
        without_frames(raised)
        raise raised

    return wrapper


class Recorder:
    """Writes one record per request; ``clock`` returns an aware datetime."""

    def __init__(self, log: AuditLog, clock: Callable[[], datetime]) -> None:
        self.log = log
        self.clock = clock
        self.mark = object()

    def now(self) -> int:
        """Return the time by the clock, in microseconds since 1970."""
        return known_at_microseconds(self.clock())

    def check(self, request: Request, models: Models) -> None:
        """Check before a search that a record can hold question, subject, token and models; InvalidArgument if not."""
        self._event(request, outcome=Outcome.ERROR, why="UNKNOWN", models=models)
        for name, value in self._secrets(request).items():
            if value is not None:
                commit(name, value, bytes(SALT_SIZE))

    def access(self, request: Request, finding: Finding, *, begun: int | None = None) -> Receipt:
        """Record what a request led to. Return nothing to the asker before this returns.

        - ``begun``: the number of its begin record, if it has one.
        """
        searched, outcome = finding.searched, finding.outcome
        event = self._event(
            request,
            outcome=outcome,
            why=finding.why,
            models=finding.models,
            index=None if searched is None else searched.index,
            heads=() if searched is None else searched.heads,
            begun=begun,
        )
        cited = {citation.chunk_id for citation in finding.citations}
        hits = () if searched is None else searched.hits
        receipt = self.log.append(
            event,
            secrets=self._secrets(
                request, (finding.text or None) if outcome is Outcome.ANSWER else None, finding.understood
            ),
            passages=[replace(hit, cited=True) if hit.chunk in cited else hit for hit in hits],
        )
        took = (event.ended - event.started) // 1000
        said = {"operation": event.kind, "code": finding.why, "record": receipt.seq, "ms": took}
        told = (event.kind, outcome, finding.why, receipt.seq, took)
        _logger.info("%s: %s (%s), record %d, %d ms", *told, extra={"event": "RECORD", **said})
        return replace(receipt, proofs=() if searched is None else searched.proofs)

    def _event(
        self,
        request: Request,
        *,
        outcome: Outcome,
        why: str,
        models: Models,
        index: IndexState | None = None,
        heads: tuple[HeadRows, ...] = (),
        begun: int | None = None,
    ) -> Access:
        session, decision, table = request.session, request.decision, request.rules.table
        return Access(
            kind=request.kind,
            started=known_at_microseconds(request.started),
            ended=self.now(),
            role=session.role if session.role in table.roles else None,
            purpose=session.purpose if session.purpose in table.purposes else None,
            source=SessionSource(session.source.value),
            as_of=_as_of(request) if decision is None else decision.as_of,
            policy=_applied(bytes.fromhex(table.sha256), decision),
            index=index,
            intents=() if decision is None else decision.intents,
            where=request.where.fields,
            heads=heads,
            day=None if decision is None or decision.asked_day is None else decision.asked_day.use.value,
            outcome=outcome,
            why=why,
            models=models,
            begun=begun,
            glass=None if session.glass is None else session.glass.record,
            issuer=session.issuer,
            audience=session.audience,
        )

    def _secrets(
        self, request: Request, answer: str | None = None, reading: str = ""
    ) -> dict[str, str | None]:
        return {
            "query": request.text,
            "answer": answer,
            "authority": None if request.inquiry is None else request.inquiry.text,
            "subject": request.session.subject,
            "conversation": request.session.conversation,
            "entities": None if request.decision is None else _lists(request.decision),
            "principals": _principals(request),
            "where": request.where.text if request.where else None,
            "reading": reading or None,
        }

    def begin(self, request: Request, models: Models) -> int:
        """Record that a request's question, or passages with it, are about to leave this machine; return the number."""
        session, decision = request.session, request.decision
        if decision is None:
            raise InvalidArgument("nothing may leave before the session's policy is decided; decide it first")
        event = Begin(
            started=known_at_microseconds(request.started),
            role=decision.role,
            purpose=decision.purpose,
            source=SessionSource(session.source.value),
            as_of=decision.as_of,
            policy=_applied(bytes.fromhex(request.rules.table.sha256), decision),
            models=models,
        )
        receipt = self.log.append(event, secrets={"query": request.text, "subject": session.subject})
        _logger.debug("%s begun, record %d", request.kind, receipt.seq)
        return receipt.seq

    @contextmanager
    def failures(self, request: Request, egress: Egress | None = None) -> Iterator[None]:
        """Record any error raised inside, except that the log cannot be written, and raise it again."""
        try:
            yield
        except AuditUnavailable:
            raise
        except Exception as error:
            why = _code_of(error) if isinstance(error, CaragError) else "INTERNAL_ERROR"
            try:
                self.access(
                    request, Finding(Outcome.ERROR, why), begun=None if egress is None else egress.begun
                )
            except AuditUnavailable as unrecorded:
                raise unrecorded from error
            raise

    def ingested(
        self,
        started: datetime,
        collection: Collection,
        *,
        why: str,
        documents: int,
        chunks: int,
        quarantined: int,
        by: str | None = None,
    ) -> Receipt:
        """Record that what can be found has changed, and by whom, as a commitment."""
        event = Ingest(
            started=known_at_microseconds(started),
            ended=self.now(),
            documents=documents,
            chunks=chunks,
            quarantined=quarantined,
            rows=len(collection.index),
            snapshot=collection.state.root,
            table=bytes.fromhex(collection.profile.table.sha256),
            embed=collection.embedder.name,
            why=why,
        )
        return self.log.append(event, secrets={"subject": by})

    def grouped(self, report: GroupReport, *, by: str | None = None) -> Receipt:
        """Record a change of groups that is about to take effect; it commits to what was stated, and by whom."""
        if report.known_at is None:
            raise InvalidArgument("nothing changed in any group, so there is nothing to record")
        event = GroupChange(
            at=report.known_at,
            opened=report.opened,
            closed=report.closed,
            added=report.added,
            why="GROUPS_IMPORTED",
        )
        return self.log.append(event, secrets={"statement": report.sha256, "subject": by})


class Egress:
    """What leaves this machine during one request, and for which models."""

    def __init__(self, recorder: Recorder, request: Request, models: Models) -> None:
        self.request = request
        self.models = models
        self.begun: int | None = None
        """The number of the begin record, if anything has left."""
        self._recorder = recorder

    def leaving(self) -> None:
        """Put on record, once, that question or passages are about to leave; if this raises, they must stay.

        It is called right before a remote model is, not before the search: a gate that declines transfers nothing.
        """
        if self.begun is None:
            self.begun = self._recorder.begin(self.request, self.models)


def shortened(fingerprint: str) -> str:
    """Write a SHA-256 as records do, in base64url instead of hex; leave anything else unchanged."""
    if not re.fullmatch("[0-9a-f]{64}", fingerprint):
        return fingerprint
    return base64.urlsafe_b64encode(bytes.fromhex(fingerprint)).rstrip(b"=").decode()


def stated(model: Ranker | Reranker | Reader | None) -> str | None:
    """Return the name and the fingerprint of a model for records; None for ordering by similarity alone."""
    fingerprint = None if model is None else model.fingerprint
    return None if model is None or fingerprint is None else f"{model.name} {shortened(fingerprint)}"


def _as_of(request: Request) -> int:
    """Return the instant that a refused session asked about; the table's profile says when a day ends."""
    return as_of_minutes(request.session.as_of or request.started, request.rules.table.vocabulary.zone)


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


def _principals(request: Request) -> str | None:
    """Return who asked and the memberships that were used; None for a session without principals."""
    session, decision = request.session, request.decision
    if not session.principals:
        return None
    said: dict[str, object] = {"stated": sorted(session.principals)}
    if session.acting_as is not None:
        said["acting_as"] = sorted(session.acting_as)
    if decision is not None and decision.identity.memberships:
        said["memberships"] = decision.identity.memberships
    return json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _code_of(error: CaragError) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).upper()


_WINDOW: Final = 60_000_000
"""For this many microseconds, further refusals of a kind are only counted."""
_Kind = tuple[str, str | None, str | None]


@dataclass(slots=True)
class _Waiting:
    opened: int
    first: int = 0
    last: int = 0
    count: int = 0


class Denials:
    """Counts and records refusals; safe to share between threads. ``clock`` returns microseconds since 1970."""

    def __init__(self, log: AuditLog, clock: Callable[[], int]) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[_Kind, _Waiting] = {}

    def add(self, why: str, *, issuer: str | None, audience: str | None, count: int = 1) -> None:
        """Count one refusal, or several that were counted elsewhere, and record what is due."""
        now, kind = self._clock(), (why, issuer, audience)
        with self._lock:
            self._write(opened_by=now - _WINDOW)
            if kind not in self._waiting:
                self._log.append(_denial(kind, now, now, count))
                self._waiting[kind] = _Waiting(opened=now)
                return
            one = self._waiting[kind]
            one.first = one.first or now
            one.last, one.count = max(one.last, now), one.count + count

    def flush(self) -> None:
        """Record everything that is counted and not recorded; AuditUnavailable if that is not possible."""
        with self._lock:
            self._write(opened_by=None)

    def _write(self, *, opened_by: int | None) -> None:
        for kind, one in list(self._waiting.items()):
            if opened_by is None or one.opened <= opened_by:
                if one.count:
                    last = one.first if one.count == 1 else one.last
                    self._log.append(_denial(kind, one.first, last, one.count))
                del self._waiting[kind]


def _denial(kind: _Kind, first: int, last: int, count: int) -> Denial:
    why, issuer, audience = kind
    return Denial(first=first, last=last, count=count, why=why, issuer=issuer, audience=audience)
