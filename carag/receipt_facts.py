"""What a verified receipt shows, in plain values for a person or a program: the same for both.

Only what was proved stands here. Names of bits come from the policy room's vocabulary; all else from the record, so
that an auditor needs no store, no engine and no table of roles.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from carag.audit import Access, Begin, HitV1, Verdict

if TYPE_CHECKING:
    from carag.audit import PolicyApplied, Verification

__all__ = ["NOT_SHOWN", "WITHHELD", "facts"]

WITHHELD: Final = "withheld from this receipt"
NOT_SHOWN: Final = (
    "A receipt does not show that the log still holds this record, that nothing else should have been found, that the "
    "labels were right when they were given, who a person with an asserted session really was, or that the log told "
    "the truth when it wrote the record."
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLION: Final = 1_000_000
_CODES: Final = {
    "ANSWERED": "answered from the passages below",
    "RETRIEVED": "the passages below were handed out",
    "ADMISSIBLE": "explained: the passage may be used",
    "HIDDEN": "explained: the passage is hidden",
    "NOTHING_TO_EXPLAIN": "there is nothing that this session may know about",
    "NO_ADMISSIBLE_EVIDENCE": "the session may use nothing that answers",
    "BELOW_GATE": "the best admissible passage is not similar enough",
    "MODEL_DECLINED": "the generator said that it has no answer",
    "BAD_CITATION": "the generated text cited nothing, or what it was not given",
    "UNKNOWN_ROLE": "the policy table has no such role",
    "UNKNOWN_PURPOSE": "the policy table has no such purpose",
    "NO_SUCH_CELL": "this role may not ask for this purpose",
    "CONFLICT": "the session contradicts what its role and purpose demand",
    "TOO_MANY_MASKS": "the session splits its policy too far",
    "INTERNAL_ERROR": "the system failed",
}


def facts(checked: Verification) -> dict[str, Any]:
    """Return what a verification shows; of one that is not verified, only verdict and reason.

    Examples
    --------
    >>> from carag.audit import Check
    >>> from carag.audit.verify import Verification
    >>> facts(Verification(Verdict.UNDECIDED, "a receipt ends in a newline", (), Check.FORMAT))["verdict"]
    'undecided'
    """
    said: dict[str, Any] = {
        "verdict": checked.verdict.value,
        "reason": checked.reason,
        "undisclosed": list(checked.undisclosed),
        "unproved": list(checked.unproved),
        "withheld": list(checked.withheld),
    }
    record = checked.record
    if checked.verdict is not Verdict.VERIFIED or record is None:
        return said
    said |= {
        "log": record.log,
        "record": record.seq,
        "kind": record.kind.value,
        "committed": _instant(record.committed),
    }
    event = record.event
    if isinstance(event, Access | Begin):
        said |= {
            "who": _value(checked, "subject"),
            "role": event.role,
            "purpose": event.purpose,
            "session": event.source.value,
            "asked": _instant(event.started),
            "as_of": _minute(event.as_of),
            "question": _value(checked, "query"),
            "rules": _rules(event.policy),
        }
    if isinstance(event, Access):
        said |= {
            "issuer": event.issuer,
            "audience": event.audience,
            "known_at": None
            if event.index is None or event.index.known_at is None
            else _instant(event.index.known_at),
            "outcome": event.outcome.value,
            "code": event.why,
            "code_in_words": _CODES.get(event.why),
            "answer": _value(checked, "answer"),
            "passages": _passages(checked),
        }
    if not isinstance(event, Access | Begin):
        said |= {"event": event.to_json(), "values": dict(checked.values)}
    return said | {"not_shown": NOT_SHOWN}


def _value(checked: Verification, name: str) -> dict[str, str | None]:
    """Say what a commitment hides, or why that cannot be seen."""
    if name in checked.values:
        return {"value": checked.values[name], "because": None}
    return {"value": None, "because": WITHHELD if name in checked.withheld else "none is on record"}


def _passages(checked: Verification) -> list[dict[str, Any]]:
    from carag.policy import bit_names

    hits = () if checked.record is None else checked.record.hits
    found: list[dict[str, Any]] = []
    for number, (hit, shown) in enumerate(zip(hits, checked.passages, strict=True), start=1):
        chunk, text = shown or (hit.chunk if isinstance(hit, HitV1) else None, None)
        found.append(
            {
                "passage": number,
                "chunk": chunk,
                "text": text,
                "because": None if shown else WITHHELD,
                "bits": list(bit_names(hit.word)),
                "similarity": hit.similarity / _MILLION,
                "cited": hit.cited,
                "proved_in_state": shown is not None and chunk not in checked.unproved,
            }
        )
    return found


def _rules(policy: PolicyApplied) -> dict[str, Any]:
    """Say what a passage must carry and must not: each pair of lists admits by itself."""
    from carag.policy import PolicyBit, bit_names, meaning

    pairs = {"admits": policy.masks, "admits_besides": policy.reopened}
    rules: dict[str, Any] = {
        name: [{"requires": list(bit_names(need)), "hides": list(bit_names(ban))} for need, ban in masks]
        for name, masks in pairs.items()
    }
    named = {bit for masks in pairs.values() for pair in masks for mask in pair for bit in bit_names(mask)}
    for name, rule in (("entities", policy.entities), ("entities_besides", policy.reopened_entities)):
        rules[name] = None if rule is None else rule.to_json()
    rules["cooling_minutes"] = policy.cooling
    rules["meaning"] = {bit.name: meaning(bit).document for bit in PolicyBit if bit.name in named}
    return rules


def _instant(microseconds: int) -> str:
    return _written(timedelta(microseconds=microseconds), f"{microseconds} microseconds since 1970 UTC")


def _minute(minutes: int) -> str:
    return _written(timedelta(minutes=minutes), f"{minutes} minutes since 1970 UTC")


def _written(since: timedelta, otherwise: str) -> str:
    """Write a time; Python's calendar ends before a record's integers do."""
    try:
        return (_EPOCH + since).isoformat(sep=" ", timespec="seconds")
    except OverflowError:
        return otherwise
