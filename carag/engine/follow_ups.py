"""Follow up a request: explain a passage, record an answer generated elsewhere, or name what replaced cited documents.

An explanation reveals nothing whose existence the session may not know of. The questions that a follow-up leans on are
those in the log, sealed under the caller's key: they survive a restart, hold for every service that writes to the log,
and are gone once they are erased. Nothing else is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.audit import Access, Models, Outcome, RecordKind, SessionSource, Verdict, verify_receipt
from carag.audit.tlog.merkle import leaf_hash
from carag.engine.recorder import Finding, no_text_in_traceback, proven, shortened
from carag.engine.results import Retrieval, Superseded
from carag.errors import InvalidArgument
from carag.generation import citation_of, cited_positions
from carag.limits import ERASED, check_label, check_text, document_of_chunk
from carag.policy import as_of_minutes, bit_names, explained, infer, known_at_microseconds
from carag.policy.explain import FORBIDDEN_ELSEWHERE
from carag.retrieval.successors import successors

if TYPE_CHECKING:
    from datetime import datetime

    from carag.audit import AuditLog, Receipt
    from carag.engine.collection import Collection
    from carag.engine.recorder import Recorder, Request, Retrieved
    from carag.policy import Decision, Session
    from carag.retrieval.authority import Inquiry
    from carag.store.store import CorpusStore
    from carag.store.values import StoredChunk


# How many earlier questions a follow-up can lean on.
TURNS: Final = 8
# A conversation ends when it was silent for longer, in microseconds.
_LASTS: Final = 2 * 3600 * 1_000_000
# Records of the caller, in all conversations, among which the questions are.
_LOOKED_AT: Final = 64
# Codes of records that follow up a question, and repeat its text.
_NOT_ASKED: Final = frozenset({"ANSWERED_ELSEWHERE", "SUCCESSORS"})
# Codes of a listing with something, and of one with nothing; a question may have them too, a retrieval may not.
LISTED: Final = ("LISTED", "NONE_LISTED")


class Turn(NamedTuple):
    """An earlier question of a conversation, as asked."""

    record: int
    question: str
    outcome: Outcome


def turns_of(log: AuditLog, session: Session, now: datetime) -> tuple[Turn, ...]:
    """Return the questions that this caller asked in this conversation, role and purpose, oldest first.

    A session without a subject or a conversation has none, because it cannot be told whose they are. Requests that were
    refused or failed do not count.
    """
    if session.subject is None or session.conversation is None:
        return ()
    glass = None if session.glass is None else session.glass.record
    source = SessionSource(session.source.value)
    caller = session.role, session.purpose, source, session.issuer, session.audience, glass
    last, found = known_at_microseconds(now), list[Turn]()
    for seq, openings in log.private.newest_of(session.subject, ("conversation", "query"), _LOOKED_AT):
        event = log.record(seq).event
        if not isinstance(event, Access):
            continue
        if len(found) == TURNS or last - event.started > _LASTS:
            break
        said = {name: opening.value for name, opening in openings.items()}
        if (
            said.get("conversation") == session.conversation
            and "query" in said
            and (event.role, event.purpose, event.source, event.issuer, event.audience, event.glass) == caller
            and event.kind in (RecordKind.QUERY, RecordKind.RETRIEVE)
            and event.outcome in (Outcome.ANSWER, Outcome.DECLINE)
            and event.why not in _NOT_ASKED
            and not (event.kind is RecordKind.RETRIEVE and event.why in LISTED)
        ):
            found.append(Turn(seq, said["query"], event.outcome))
            last = event.started
    return tuple(reversed(found))


def explain(store: CorpusStore, chunk_id: str, decision: Decision, inquiry: Inquiry | None = None) -> Finding:
    """Say which rules hide a passage, which bits it carries and where they come from; never its text."""
    document = document_of_chunk(chunk_id)[0]
    is_forbidden = inquiry is not None and not inquiry.allows([document])
    is_open = _is_open(store, chunk_id, decision) & (not is_forbidden)
    if chunk_id.startswith(ERASED) or not (is_open or decision.may_know_existence):
        return _nothing_to_explain(chunk_id)
    try:
        chunk = store.chunk(chunk_id, as_of=decision.as_of, known_at=decision.known_at)
    except InvalidArgument:  # there is no such passage, and a session that may know is told so
        return _nothing_to_explain(chunk_id)
    hidden = (*decision.reasons_for(chunk), *((FORBIDDEN_ELSEWHERE,) if is_forbidden else ()))
    verdict = "hidden from" if hidden else "admissible for"
    return Finding(
        Outcome.ANSWER,
        "HIDDEN" if hidden else "ADMISSIBLE",
        f"{chunk.chunk_id} is {verdict} {decision.role}/{decision.purpose}",
        reasons=tuple(explained(reason, decision, chunk.subjects) for reason in hidden),
        causes=_causes(store, chunk, decision),
        regulation=decision.regulation,
    )


def _nothing_to_explain(chunk_id: str) -> Finding:
    """Decline in the same words for a hidden passage and an absent one, so that they cannot be told apart."""
    text = f"there is nothing this session may know about {chunk_id}"
    return Finding(Outcome.DECLINE, "NOTHING_TO_EXPLAIN", text)


def _is_open(store: CorpusStore, chunk_id: str, decision: Decision) -> bool:
    label = store.labels.at_or_after(chunk_id, as_of=decision.as_of, known_at=decision.known_at)
    return label is not None and (decision.admits_labelled(label) & (label.chunk_id == chunk_id))


def _causes(store: CorpusStore, chunk: StoredChunk, decision: Decision) -> tuple[str, ...]:
    """Name the rule or the documents behind each bit of the passage's document, and the source of its time."""
    document = store.documents.document(chunk.document_id, version=chunk.version)
    held = bit_names(chunk.word, decision.policy.flags)
    own = (f"{bit}: {name}: {rule}" for bit, name, rule in document.causes["bits"] if bit in held)
    state = (f"{bit}: set by {_named(store, id_, decision)}" for bit, id_ in chunk.causes)
    return (*own, *state, f"public at: {document.public_at_source}")


def _named(store: CorpusStore, document_id: str, decision: Decision) -> str:
    """Name a document to a session that may know of it, and say so if its text is not known."""
    if not decision.may_know_existence:
        keys = store.labels.of_document(document_id, known_at=decision.known_at).tolist()
        labels = store.labels.as_of(keys, decision.as_of, known_at=decision.known_at)
        if not any(decision.admits_labelled(label) for label in labels):
            return "a later filing"
    alone = not store.documents.document(document_id).version
    return f"{document_id}, known by its facts alone" if alone else document_id


def record_answer(
    collection: Collection,
    recorder: Recorder,
    retrieval: Retrieval,
    text: str,
    *,
    model: str,
    searched: Models,
) -> Receipt:
    """Append the record; see :meth:`carag.Engine.record_answer`. ``searched`` names the models of the retrieval."""
    check_text("answer", text)
    if not text.strip():
        raise InvalidArgument("answer is empty; want the text that was shown to the asker")
    check_label("model", model)
    asked = _checked(recorder.log, recorder, retrieval)
    receipt, request, passages = asked.receipt, asked.request, retrieval.passages
    cited = [position for position in cited_positions(text) if 0 <= position < len(passages)]
    answered = replace(request, kind=RecordKind.QUERY)
    finding = Finding(
        Outcome.ANSWER,
        "ANSWERED_ELSEWHERE",
        text,
        replace(
            searched,
            generate=model,
            prompt=f"record {receipt.seq} {shortened(leaf_hash(receipt.record).hex())}",
        ),
        asked.searched,
        citations=tuple(citation_of(position, passages[position]) for position in cited),
        carried=request.carried,
    )
    with collection.unerased(-1, finding.chunk_ids):
        return recorder.access(answered, finding)


@no_text_in_traceback
def record_successors(
    collection: Collection, recorder: Recorder, asked: tuple[Finding, Receipt, Request]
) -> tuple[tuple[Superseded, ...], Receipt | None]:
    """Name what has replaced, withdrawn or amended the cited documents since the instant of an answer, on record."""
    found, receipt, request = asked
    then, citations = request.decision, found.citations
    if (
        collection.catalogue.declared.as_of is None
        or then is None
        or not citations
        or then.known_at is not None
    ):
        return (), None
    if then.as_of >= as_of_minutes(request.started):
        return (), None
    session = replace(request.session, as_of=None)
    today = replace(
        infer(
            session,
            request.rules.table,
            now=request.started,
            intents=request.rules.listener.said(request.text, request.read).intents,
        ),
        identity=collection.store.groups.identity(request.session, as_of_minutes(request.started)),
    )
    later = replace(request, kind=RecordKind.RETRIEVE, decision=today)
    with recorder.failures(later):
        ids = [one.document_id for one in citations]
        evidence, news = successors(
            collection, ids, today, request.where, after=then.as_of, authority=request.inquiry
        )
        if not news:
            return (), None
        models = Models(prompt=f"record {receipt.seq} {shortened(leaf_hash(receipt.record).hex())}")
        searched = proven(collection.state, later, evidence)
    finding = Finding(Outcome.ANSWER, "SUCCESSORS", models=models, searched=searched)
    with collection.unerased(-1, finding.chunk_ids):
        follows = recorder.access(later, finding)
    cited = {one.document_id: one for one in citations}
    places = {one.chunk_id: len(citations) + place for place, one in enumerate(evidence.passages)}
    return tuple(
        Superseded(one.act.value, cited[one.of], citation_of(places[one.passage.chunk_id], one.passage))
        for one in news
    ), follows


def _checked(log: AuditLog, recorder: Recorder, retrieval: Retrieval) -> Retrieved:
    if type(retrieval) is not Retrieval:
        raise InvalidArgument(
            f"retrieval is a {type(retrieval).__name__}; want what Engine.retrieve returned (an answer of "
            "Engine.ask is on record already)"
        )
    asked = retrieval.asked
    if asked is None or asked.by is not recorder.mark:
        raise InvalidArgument(
            "this retrieval was not made by this engine since it was opened; retrieve again, and answer from the result"
        )
    if (retrieval.receipt, retrieval.passages, retrieval.outcome) != (
        asked.receipt,
        asked.searched.evidence.passages,
        Outcome.ANSWER,
    ):
        raise InvalidArgument(
            "this retrieval has no passages, or was altered after it was returned; give an unaltered one with passages"
        )
    try:
        on_record = log.record(asked.receipt.seq).to_bytes() == asked.receipt.record
        checked = verify_receipt(asked.receipt.to_bytes(), log.vkey)
    except InvalidArgument as error:  # the log has no such record
        raise InvalidArgument(
            f"the receipt of this retrieval does not belong to this log: {error}"
        ) from error
    if not on_record or checked.verdict is not Verdict.VERIFIED:
        raise InvalidArgument(
            f"the receipt of this retrieval does not verify: {checked.reason}; retrieve again"
        )
    return asked
