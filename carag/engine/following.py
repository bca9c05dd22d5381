"""Put on record what follows a request: an answer generated elsewhere, or what has replaced the cited documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from carag.audit import Models, Outcome, RecordKind, Verdict, verify_receipt
from carag.audit.tlog.merkle import leaf_hash
from carag.engine.recorder import Finding, no_text_in_traceback, proven, shortened
from carag.engine.results import Retrieval, Superseded
from carag.errors import InvalidArgument
from carag.generation import citation_of, cited_positions
from carag.limits import check_label, check_text
from carag.policy import as_of_minutes, infer
from carag.retrieval.successors import successors

if TYPE_CHECKING:
    from carag.audit import AuditLog, Receipt
    from carag.engine.collection import Collection
    from carag.engine.recorder import Recorder, Request, Retrieved


def record_answer(
    log: AuditLog, recorder: Recorder, retrieval: Retrieval, text: str, *, model: str, searched: Models
) -> Receipt:
    """Append the record; see :meth:`carag.Engine.record_answer`. ``searched`` names the models of the retrieval."""
    check_text("answer", text)
    if not text.strip():
        raise InvalidArgument("answer is empty; want the text that was shown to the asker")
    check_label("model", model)
    asked = _checked(log, recorder, retrieval)
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
    )
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
    today = infer(
        session,
        request.rules.table,
        now=request.started,
        intents=request.rules.listener.said(request.text).intents,
    )
    later = replace(request, kind=RecordKind.RETRIEVE, decision=today)
    with recorder.failures(later):
        ids = [one.document_id for one in citations]
        evidence, news = successors(collection, ids, today, request.where, after=then.as_of)
        if not news:
            return (), None
        models = Models(prompt=f"record {receipt.seq} {shortened(leaf_hash(receipt.record).hex())}")
        searched = proven(collection.state, later, evidence)
    follows = recorder.access(later, Finding(Outcome.ANSWER, "SUCCESSORS", models=models, searched=searched))
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
