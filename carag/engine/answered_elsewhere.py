"""Put on record an answer that was generated elsewhere, from the passages of an earlier retrieval.

The record of such an answer is a query's: the same question, session, policy, index state and passages as the
retrieval's record, and the answer as a salted commitment. Of its models, ``prompt`` names that earlier record by number
and hash, because what was retrieved is what the other model was prompted with. (``begun`` cannot name it: it ends a
begin record, which an ended request no longer has.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from carag.audit import Outcome, RecordKind, Verdict, verify_receipt
from carag.audit.tlog.merkle import leaf_hash
from carag.engine.recorder import Finding, shortened
from carag.engine.results import Retrieval
from carag.errors import InvalidArgument
from carag.generation import citation_of, cited_positions
from carag.limits import check_label, check_text

if TYPE_CHECKING:
    from carag.audit import AuditLog, Models, Receipt
    from carag.engine.recorder import Recorder, Retrieved

__all__ = ["record_answer"]


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
    answered = replace(request, kind=RecordKind.QUERY, begun=None)
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


def _checked(log: AuditLog, recorder: Recorder, retrieval: Retrieval) -> Retrieved:
    """Return what the engine knows of a retrieval of its own that nobody has altered."""
    if type(retrieval) is not Retrieval:
        raise InvalidArgument(
            f"retrieval is a {type(retrieval).__name__}; want what Engine.retrieve returned: an answer of "
            "Engine.ask is on record already"
        )
    asked = retrieval.asked
    if asked is None or asked.by is not recorder.mark:
        raise InvalidArgument(
            "this retrieval was not made by this engine since it was opened; retrieve again, and answer from that"
        )
    if (retrieval.receipt, retrieval.passages, retrieval.outcome) != (
        asked.receipt,
        asked.searched.evidence.passages,
        Outcome.ANSWER,
    ):
        raise InvalidArgument(
            "this retrieval has no passages, or was altered since it was returned; want one that found some, as it is"
        )
    try:
        on_record = log.record(asked.receipt.seq).to_bytes() == asked.receipt.record
        checked = verify_receipt(asked.receipt.to_bytes(), log.vkey)
    except InvalidArgument as error:  # the log has no such record
        raise InvalidArgument(f"the receipt of this retrieval is not of this log: {error}") from error
    if not on_record or checked.verdict is not Verdict.VERIFIED:
        raise InvalidArgument(
            f"the receipt of this retrieval does not verify: {checked.reason}; retrieve again"
        )
    return asked
