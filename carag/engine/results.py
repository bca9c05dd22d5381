"""Define what the engine returns. A ``repr`` is one line without text, so that logs and tracebacks show none."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from carag.audit import Outcome
from carag.generation import MODEL_CALLED
from carag.visible import visible_line

if TYPE_CHECKING:
    from carag.audit import Receipt
    from carag.engine.recorder import Finding, Retrieved
    from carag.generation import Citation, Unheld
    from carag.policy import AskedDay, Explained, Reason
    from carag.retrieval import ConfidenceGate, Passage, Withheld
    from carag.retrieval.evidence import Head
    from carag.store.values import Counts, PastAudience, PastLabel, StoredDocument


_NEAREST: Final = 3
"""How many passages a decline names."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Passages and what is withheld, with a receipt.

    ``outcome`` is ``DECLINE`` if nothing is admissible, ``REFUSE`` if the session alone decides. ``passages`` are best
    first; ``understood`` is what the question was understood to name, in its own words; ``asked_day`` is the day that
    it asks about, and whether the answer is as of that day.
    """

    outcome: Outcome
    why: str
    receipt: Receipt
    passages: tuple[Passage, ...] = ()
    withheld: Withheld | None = None
    understood: str = field(default="", kw_only=True)
    asked_day: AskedDay | None = field(default=None, kw_only=True)
    asked: Retrieved | None = field(default=None, repr=False, compare=False, kw_only=True)
    """What :meth:`carag.Engine.record_answer` needs to know; internal to the engine."""

    @property
    def glass(self) -> int | None:
        """Number of the record that says why the glass was broken, if the session was under it."""
        found: int | None = json.loads(self.receipt.record).get("glass")
        return found

    def __repr__(self) -> str:
        return _brief(self, passages=len(self.passages))

    def _repr_html_(self) -> str | None:
        rows = [(one.chunk_id, f"{one.similarity:.3f}", one.source, one.text) for one in self.passages]
        return _card(self, ("passage", "similarity", "source", "text"), rows, understood=self.understood)


@dataclass(frozen=True, slots=True)
class Superseded:
    """A cited document, and one that has replaced, withdrawn or amended it since the instant of the answer."""

    act: str
    """``replaces``, ``withdraws`` or ``amends``."""
    cited: Citation
    by: Citation
    """The first passage of the later document that the session may use today; numbered after those cited."""

    def described(self) -> str:
        """Say in one sentence what has become of the cited document."""
        source, by = (visible_line(one.source or one.document_id) for one in (self.cited, self.by))
        return f"Since then {_DONE[self.act]}: {source}; by [{self.by.number}] {by}."


_DONE: Final = {"replaces": "replaced", "withdraws": "withdrawn", "amends": "amended"}


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Retrieval):
    """An answer, a decline or a refusal, with a receipt.

    Attributes
    ----------
    citations : tuple of Citation
        From passage metadata, never from a model's words; empty unless answered.
    complete : bool
        False if the generator was cut off at its token limit, or a list, section or table was cut, as its text says.
    gate_calibrated : bool
        False if the confidence gate before the generator was not calibrated on documents such as these
        (:meth:`carag.Engine.calibrate_gate`).
    top_similarity : float or None
        Similarity of the admissible passage nearest to the question, which the gate tests; None without one.
    left_out : tuple of Unheld
        Why each sentence that the guard took out of the generator's draft did not hold: it has a figure that the
        passages it cites do not state, or not of this, for this time or in this unit.
    basis : str
        How many and which documents the answer is based on, and for what part of the question the session may use none;
        empty if the question names no party and no time. It is the same whatever is hidden.
    superseded : tuple of Superseded
        What has replaced, withdrawn or amended the cited documents since the past instant of the answer, as far as the
        session may use it today. Filled only if the profile reads days (``as_of``).
    follows : Receipt or None
        Receipt for the record that names these; None without them.
    """

    text: str = ""
    citations: tuple[Citation, ...] = ()
    complete: bool = True
    left_out: tuple[Unheld, ...] = ()
    gate_calibrated: bool = True
    basis: str = ""
    superseded: tuple[Superseded, ...] = ()
    follows: Receipt | None = None
    top_similarity: float | None = None
    gate: str = ""

    @classmethod
    def of(
        cls,
        found: Finding,
        receipt: Receipt,
        *,
        gate: ConfidenceGate,
        superseded: tuple[Superseded, ...] = (),
        follows: Receipt | None = None,
    ) -> Answer:
        """Make an answer from what a request led to."""
        return cls(
            found.outcome,
            found.why,
            receipt,
            found.passages,
            found.withheld,
            text=found.text,
            citations=found.citations,
            complete=found.complete,
            left_out=found.left_out,
            understood=found.understood,
            basis=found.basis,
            asked_day=found.asked_day,
            superseded=superseded,
            follows=follows,
            top_similarity=found.top_similarity,
            gate_calibrated=gate.calibrated,
            gate=gate.standing,
        )

    @property
    def model_called(self) -> bool:
        """Whether a generator ran, including the extractive one; below the gate no generator runs."""
        return self.why in MODEL_CALLED

    @property
    def left_out_said(self) -> str:
        """How many sentences were left out and why, in one sentence; empty without any."""
        many = len(self.left_out)
        why = ", ".join(f"{one.value} {count}" for one, count in Counter(self.left_out).items())
        left = "1 sentence was" if many == 1 else f"{many} sentences were"
        return (
            f"{left} left out, whose figures or names the cited passages do not state so: {why}."
            if many
            else ""
        )

    @property
    def nearest(self) -> tuple[Passage, ...]:
        """For a decline, up to three of its passages, the most similar first: admissible, and on record."""
        if self.outcome is not Outcome.DECLINE:
            return ()
        return tuple(sorted(self.passages, key=lambda passage: -passage.similarity)[:_NEAREST])

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return _brief(self, passages=len(self.passages), citations=len(self.citations))

    def _repr_html_(self) -> str | None:
        rows = [(one.number, one.chunk_id, one.source) for one in self.citations]
        return _card(self, ("", "passage", "source"), rows, self.text, understood=self.understood)

    def to_json(self) -> dict[str, Any]:
        """Return what ``carag ask --json`` prints; plain values only."""
        return {
            "outcome": self.outcome.value,
            "why": self.why,
            "text": self.text,
            "complete": self.complete,
            "left_out": [one.value for one in self.left_out],
            "top_similarity": self.top_similarity,
            "model_called": self.model_called,
            "gate_calibrated": self.gate_calibrated,
            "gate": self.gate,
            "understood": self.understood,
            "basis": self.basis,
            "asked_day": None if self.asked_day is None else self.asked_day.to_json(),
            "citations": [asdict(citation) | _place_json(citation) for citation in self.citations],
            "superseded": [
                {
                    "act": one.act,
                    "cited": one.cited.number,
                    "said": one.described(),
                    "by": asdict(one.by) | _place_json(one.by),
                }
                for one in self.superseded
            ],
            "nearest": [
                {"chunk_id": one.chunk_id, "source": one.source, "similarity": one.similarity}
                | _place_json(one)
                for one in self.nearest
            ],
            "passages": [
                {
                    "chunk_id": passage.chunk_id,
                    "similarity": passage.similarity,
                    "word": passage.word,
                    **_place_json(passage),
                    **({} if passage.head is None else {"head": _head_json(passage.head)}),
                }
                for passage in self.passages
            ],
            "withheld": _withheld_json(self.withheld),
            "record": self.receipt.seq,
            "glass": self.glass,
            "follows": None if self.follows is None else self.follows.seq,
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one chunk is admissible or hidden for a session.

    ``outcome`` is ``DECLINE`` for a role that may not know of hidden passages, whether the chunk is hidden or does not
    exist. ``causes`` say where the chunk's bits (bit, EDGAR field, rule) and its time of publication come from.
    """

    outcome: Outcome
    why: str
    receipt: Receipt
    text: str = ""
    reasons: tuple[Explained, ...] = ()
    causes: tuple[str, ...] = ()
    regulation: str = ""

    def __repr__(self) -> str:
        return _brief(self, reasons=len(self.reasons))

    def _repr_html_(self) -> str | None:
        rows = [(one.reason.code, one.reason.text) for one in self.reasons]
        return _card(self, ("reason", "in words"), rows, self.text, regulation=self.regulation)

    def to_json(self) -> dict[str, Any]:
        """Return what ``carag explain --json`` prints."""
        return {
            "outcome": self.outcome.value,
            "why": self.why,
            "text": self.text,
            "reasons": [reason.to_json() for reason in self.reasons],
            "causes": list(self.causes),
            "regulation": self.regulation,
            "record": self.receipt.seq,
        }


@dataclass(frozen=True, slots=True)
class LabelHistory:
    """Every label that a passage ever had, and its origin."""

    chunk_id: str
    document: str
    filing: StoredDocument
    """The passage's document, in its version, with the causes of its bits."""
    labels: tuple[PastLabel, ...]
    audiences: tuple[PastAudience, ...]
    """Who could see the document, in all of its versions."""


@dataclass(slots=True)
class AddReport:
    """What :meth:`carag.Engine.add` did."""

    added: int = 0
    """Documents that were not in the store, or had been removed."""
    changed: int = 0
    unchanged: int = 0
    quarantined: int = 0
    """Documents added or changed that got no label from the profile's rules: no session can find them."""
    chunks: int = 0
    """Passages that this run stored."""
    embedded: int = 0
    """Different texts among them, heading included, that had to be embedded."""
    reused: int = 0
    """Passages whose vector the store, or another passage of the run, already had."""
    problems: list[str] = field(default_factory=list)
    """Documents that are stored but cannot be found, with the reason."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class IngestReport:
    """What a run did, and what the store holds after it."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    chunks: int = 0
    """Passages that this run stored."""
    embedded: int = 0
    """Different texts among them, heading included, that had to be embedded."""
    reused: int = 0
    """Passages whose vector the store, or another passage of the run, already had."""
    newly_quarantined: int = 0
    """Filings that this run stored in quarantine."""
    relabelled: int = 0
    """Passages whose labels other filings changed."""
    events: int = 0
    """Rows of filings without text that brought new facts."""
    events_unchanged: int = 0
    """Rows of filings without text that brought no new facts."""
    problems: list[str] = field(default_factory=list)
    """Files and rows that could not be read, with place and reason."""
    failures: int = 0
    """Number of problems that are faults in the program, reported by type and place only."""
    quarantined: dict[str, int] = field(default_factory=dict)
    """Filings in quarantine by reason, in the whole store."""
    total_events: int = 0
    """Filings known by their facts only."""
    total_filings: int = 0
    total_chunks: int = 0

    @property
    def filings(self) -> int:
        """Filings read."""
        return self.added + self.changed + self.unchanged

    def of_store(self, counts: Counts) -> Self:
        """Fill in what the store holds now."""
        self.quarantined = dict(counts.quarantined)
        self.total_filings, self.total_chunks = counts.filings, counts.chunks
        self.total_events = counts.metadata_only
        return self

    def to_json(self) -> dict[str, Any]:
        """Return what ``carag ingest --json`` prints."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class SyncReport(IngestReport):
    """What one run of :meth:`carag.Engine.sync` did, and what it left."""

    vanished: list[str] = field(default_factory=list)
    """Ids of documents that the folder gave in an earlier run but no longer gives."""
    removed: int = 0
    """How many of them this run withdrew."""
    left: list[str] = field(default_factory=list)
    """Files that changed while they were read: nothing from them was stored, and the next run reads them."""
    stopped: bool = False
    """Whether the run was told to stop before it was done."""

    @property
    def is_done(self) -> bool:
        """Whether the store is now as the folder was, except for problems and vanished documents."""
        return not self.left and not self.stopped

    def to_json(self) -> dict[str, Any]:
        """Return what ``carag sync --json`` prints."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """A gate that was calibrated on a store's own questions, as the store keeps it."""

    threshold: int
    """Least similarity of the best admissible passage, in millionths."""
    error: str
    """The greatest share promised, as a fraction such as ``"1/10"``; ``promise`` says of what it is a share."""
    answerable: int
    """Questions that it was calibrated on."""
    answerable_declined: int
    """How many of these were declined; it is not an estimate for new questions."""
    unanswerable: int
    """Questions that no document answers; none of them affects the threshold."""
    unanswerable_declined: int
    hidden: int
    """Questions left out because the session may use none of their documents; 0 if it may not know of hidden ones."""
    role: str
    purpose: str
    embedder: str
    fingerprint: str
    questions: str
    """SHA-256 of the file of questions, in hexadecimal."""
    record: int
    promise: str = "declined"
    """``"declined"``: the share declined of new answerable questions; ``"wrong"``: the share wrong of new answers."""
    answered: int = 0
    """Questions of the calibration that it answers; counted for the promise ``"wrong"`` only."""
    answered_wrong: int = 0
    closed: int = 1_000_000
    """The threshold, in millionths, that replaces it when the questions drift."""
    scores: tuple[int, ...] = field(default=(), repr=False)
    """What drift is measured against: the best similarity found for each question, in millionths."""

    @classmethod
    def of(cls, kept: dict[str, Any], record: int) -> GateReport:
        """Read the canonical JSON that a store keeps."""
        return cls(**{**kept, "scores": tuple(kept.get("scores", ()))}, record=record)

    def to_json(self) -> dict[str, str | int]:
        """Return what ``carag gate calibrate --json`` prints: everything except the scores."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "scores"}


def _brief(what: Retrieval | Explanation, **counts: int) -> str:
    counted = "".join(f", {name}={count}" for name, count in counts.items())
    return f"{type(what).__name__}({what.outcome.value}, {what.why}{counted}, record={what.receipt.seq})"


def _card(
    what: Retrieval | Explanation,
    columns: tuple[str, ...],
    rows: list[tuple[Any, ...]],
    text: str = "",
    **facts: object,
) -> str | None:
    from carag.audit.receipts.card import card  # loaded in a notebook only

    said = {"outcome": what.outcome.value, "why": what.why, "record": what.receipt.seq}
    return card(type(what).__name__, said | facts, text=text, columns=columns, rows=rows)


def _place_json(one: Passage | Citation) -> dict[str, Any]:
    return {"document_id": one.document_id, "version": one.version}


def _head_json(head: Head) -> dict[str, Any]:
    return {"chunk_id": head.chunk_id, "start": head.start, "end": head.end}


def _withheld_json(withheld: Withheld | None) -> dict[str, Any] | None:
    if withheld is None:
        return None
    return {
        "kinds": [_reason_json(kind) for kind in withheld.kinds],
        "hidden": [
            {"chunk_id": hidden.chunk_id, "reasons": [_reason_json(reason) for reason in hidden.reasons]}
            for hidden in withheld.hidden
        ],
    }


def _reason_json(reason: Reason) -> dict[str, str]:
    return {"code": reason.code, "text": reason.text}
