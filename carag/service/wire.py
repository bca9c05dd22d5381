"""Write results as JSON and read them back: a client returns objects equal to the engine's."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

from carag.audit import InclusionProof, Opening, Outcome, Receipt, StateProof
from carag.audit.receipts.receipt import open_envelope
from carag.audit.tlog.encoding import unb64url
from carag.engine.results import Answer, Explanation, Retrieval, Superseded
from carag.errors import MALFORMED, CorruptFile
from carag.generation import Citation, Unheld
from carag.policy import Explained, PolicyFlag, Reason, Rule
from carag.policy.asked_day import AskedDay, DayUse
from carag.policy.word import POLICY_BITS
from carag.retrieval import Hidden, Passage, Withheld
from carag.retrieval.evidence import Head

if TYPE_CHECKING:
    from collections.abc import Iterable


_DERIVED: Final = {"document_id", "version"}


class _Body(BaseModel):
    # A later service may send more fields, which clients ignore.
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class HeadBody(_Body):
    """The head rows of the table that a passage was cut from."""

    chunk_id: str
    start: int
    end: int
    text: str


class _PlaceBody(_Body):
    chunk_id: str
    accession_number: str
    form: str
    company: str
    filed: str
    document: str
    start: int
    end: int
    source: str
    document_id: str = ""
    version: int = 1
    """A part of the passage's id, like ``document_id``; an earlier service does not send them."""


class PassageBody(_PlaceBody):
    """A passage that the session may use."""

    text: str
    similarity: float
    word: int
    public_at: int
    expires_at: int
    head: HeadBody | None = None


class BitBody(_Body):
    """A bit of the store's profile."""

    name: str
    value: int


class ReasonBody(_Body):
    """A rule that hides a kind of passage."""

    code: str
    text: str
    rule: str
    bits: list[BitBody]


class HiddenBody(_Body):
    """A hidden passage, for roles that may know of it."""

    chunk_id: str
    reasons: list[ReasonBody]


class WithheldBody(_Body):
    """What the policy withholds."""

    kinds: list[ReasonBody]
    hidden: list[HiddenBody]


class ExplainedBody(ReasonBody):
    """A reason with its basis and its remedy."""

    basis: list[str]
    regulation: str
    lift: str


class CitationBody(_PlaceBody):
    """The source of a statement."""

    number: int


class SupersededBody(_Body):
    """A cited document, and what became of it."""

    act: str
    cited: int
    said: str
    by: CitationBody


class AskedDayBody(_Body):
    """The day that a question names."""

    use: str
    named: list[str]
    said: str


class RetrievalBody(_Body):
    """Passages and what is withheld, with a receipt."""

    outcome: str
    why: str
    understood: str
    asked_day: AskedDayBody | None
    passages: list[PassageBody]
    withheld: WithheldBody | None
    record: int
    receipt: str
    glass: int | None = None
    """Number of the record that says why the glass was broken, if it was."""


class AnswerBody(RetrievalBody):
    """An answer, a decline or a refusal, with a receipt."""

    text: str
    complete: bool
    left_out: list[str]
    top_similarity: float | None
    model_called: bool
    gate_calibrated: bool
    gate: str
    basis: str
    citations: list[CitationBody]
    superseded: list[SupersededBody]
    follows: int | None
    follows_receipt: str | None


class ExplanationBody(_Body):
    """Why a passage is admissible or hidden for a session."""

    outcome: str
    why: str
    text: str
    reasons: list[ExplainedBody]
    causes: list[str]
    regulation: str
    record: int
    receipt: str


class CellBody(_Body):
    """A role and purpose that a token grants."""

    role: str
    purpose: str
    regulation: str
    may_know_existence: bool
    past: str


class BrokenGlassBody(_Body):
    """A cell that is open for the person who broke the glass."""

    glass: str
    """The name by which that person's requests for this cell are under it."""
    role: str
    purpose: str
    until: int
    """Microseconds since 1970-01-01T00:00Z."""
    record: int
    """Number of the record that says who broke it, and why."""


class JobBody(_Body):
    """The state of a job: counts of documents by what became of them, and of passages; 0 until it has ended."""

    id: str
    state: Literal["queued", "running", "done", "failed"]
    code: str | None
    """The problem code of its failure."""
    added: int
    changed: int
    unchanged: int
    quarantined: int
    chunks: int
    embedded: int = 0
    reused: int = 0
    """As in :class:`carag.engine.results.AddReport`; an earlier service does not send them."""
    removed: int
    problems: list[str] | None = None
    """Documents that are stored but cannot be found, with the reason; None if that is not, or no longer, known."""


class PolicyBody(_Body):
    """What a token grants, and under which policy table and grants."""

    profile: str
    table: str
    grants: str
    slots: dict[str, int] | None = None
    """Milliseconds of the slots of sessions that may not know, by operation; None: responses do not wait."""
    cells: list[CellBody]


def retrieval_json(found: Retrieval) -> dict[str, Any]:
    """Return a retrieval as JSON values."""
    return {
        "outcome": found.outcome.value,
        "why": found.why,
        "understood": found.understood,
        "asked_day": None if found.asked_day is None else found.asked_day.to_json(),
        "passages": [_passage_json(passage) for passage in found.passages],
        "withheld": None if found.withheld is None else _withheld_json(found.withheld),
        "record": found.receipt.seq,
        "receipt": found.receipt.to_bytes().decode(),
        "glass": found.glass,
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON values: :meth:`carag.Answer.to_json`, the passages and the receipts."""
    follows = None if answer.follows is None else answer.follows.to_bytes().decode()
    return {**answer.to_json(), **retrieval_json(answer), "follows_receipt": follows}


def explanation_json(found: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON values: :meth:`carag.Explanation.to_json`, the details and the receipt."""
    reasons = [
        {**_reason_json(one.reason), "basis": list(one.basis), "regulation": one.regulation, "lift": one.lift}
        for one in found.reasons
    ]
    return {**found.to_json(), "reasons": reasons, "receipt": found.receipt.to_bytes().decode()}


def encoded(found: dict[str, Any]) -> bytes:
    """Encode as JSON; NaN and infinities become null, which no reader takes for a number."""
    return to_json(found, inf_nan_mode="null")  # seven times as fast as the standard library


def retrieval_of(said: RetrievalBody) -> Retrieval:
    """Make a retrieval from what a service sent; raise CorruptFile if its receipt is not valid."""
    return Retrieval(
        Outcome(said.outcome),
        said.why,
        receipt_of(said.receipt),
        tuple(_passage_of(one) for one in said.passages),
        None if said.withheld is None else _withheld_of(said.withheld),
        understood=said.understood,
        asked_day=_day_of(said.asked_day),
    )


def answer_of(said: AnswerBody) -> Answer:
    """Make an answer from what a service sent; errors as for :func:`retrieval_of`."""
    found = retrieval_of(said)
    citations = tuple(_citation_of(one) for one in said.citations)
    by_number = {one.number: one for one in citations}
    return Answer(
        found.outcome,
        found.why,
        found.receipt,
        found.passages,
        found.withheld,
        understood=found.understood,
        asked_day=found.asked_day,
        text=said.text,
        citations=citations,
        complete=said.complete,
        left_out=tuple(map(Unheld, said.left_out)),
        gate_calibrated=said.gate_calibrated,
        basis=said.basis,
        superseded=tuple(
            Superseded(one.act, by_number[one.cited], _citation_of(one.by)) for one in said.superseded
        ),
        follows=None if said.follows_receipt is None else receipt_of(said.follows_receipt),
        top_similarity=said.top_similarity,
        gate=said.gate,
    )


def explanation_of(said: ExplanationBody) -> Explanation:
    """Make an explanation from what a service sent; errors as for :func:`retrieval_of`."""
    reasons = tuple(
        Explained(_reason_of(one), tuple(one.basis), one.regulation, one.lift) for one in said.reasons
    )
    return Explanation(
        Outcome(said.outcome),
        said.why,
        receipt_of(said.receipt),
        text=said.text,
        reasons=reasons,
        causes=tuple(said.causes),
        regulation=said.regulation,
    )


def receipt_of(text: str) -> Receipt:
    """Read a receipt's file back into the object that wrote it, without verifying it."""
    data = text.encode()
    envelope = open_envelope(data)
    try:
        openings = {
            name: Opening(unb64url(one["salt"], 32), one["value"]) for name, one in envelope.openings.items()
        }
        proofs = [one["proof"] for one in envelope.hits]
        made = Receipt(
            InclusionProof.parse(envelope.proof).index,
            envelope.record.encode(),
            envelope.proof,
            openings,
            tuple((one["chunk"], one["text"]) for one in envelope.hits),
            () if None in proofs else tuple(StateProof.from_json(one) for one in proofs),
        )
    except MALFORMED as error:
        raise CorruptFile("the receipt has parts that are not valid; ask the service once more") from error
    if made.to_bytes() != data:
        raise CorruptFile("parts of the receipt are missing; ask the service once more")
    return made


def _passage_json(one: Passage) -> dict[str, Any]:
    said = {name: getattr(one, name) for name in PassageBody.model_fields if name != "head"}
    return said if one.head is None else {**said, "head": asdict(one.head)}


def _passage_of(said: PassageBody) -> Passage:
    fields = said.model_dump(exclude={"head", *_DERIVED})
    return Passage(**fields, head=None if said.head is None else Head(**said.head.model_dump()))


def _withheld_json(withheld: Withheld) -> dict[str, Any]:
    return {
        "kinds": [_reason_json(kind) for kind in withheld.kinds],
        "hidden": [
            {"chunk_id": one.chunk_id, "reasons": [_reason_json(reason) for reason in one.reasons]}
            for one in withheld.hidden
        ],
    }


def _withheld_of(said: WithheldBody) -> Withheld:
    hidden = (Hidden(one.chunk_id, tuple(map(_reason_of, one.reasons))) for one in said.hidden)
    return Withheld(tuple(map(_reason_of, said.kinds)), tuple(hidden))


def _reason_json(reason: Reason) -> dict[str, Any]:
    bits = [{"name": bit.name, "value": bit.value} for bit in reason.bits]
    return {"code": reason.code, "text": reason.text, "rule": reason.rule.value, "bits": bits}


def _reason_of(said: ReasonBody) -> Reason:
    return Reason(Rule(said.rule), tuple(_flags_of(said.bits)), said.text)


def _flags_of(bits: Iterable[BitBody]) -> Iterable[PolicyFlag]:
    """Make flags from the bits that the service names, without knowing the store's profile."""
    named = {one.name: one.value for one in bits}
    if any(not 0 < value <= POLICY_BITS or value.bit_count() > 1 for value in named.values()):
        raise CorruptFile(
            "a reason names bits that cannot exist; check what answers at the service's address"
        )
    made: Any = PolicyFlag("ServedBit", list(named.items())) if named else ()  # type: ignore[call-arg,arg-type]
    return tuple(made)


def _citation_of(said: CitationBody) -> Citation:
    return Citation(**said.model_dump(exclude=_DERIVED))


def _day_of(said: AskedDayBody | None) -> AskedDay | None:
    if said is None:
        return None
    return AskedDay(DayUse(said.use), tuple(date.fromisoformat(one) for one in said.named))
