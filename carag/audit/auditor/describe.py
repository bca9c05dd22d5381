"""Describe records and verified receipts in plain values, to be printed as text, as JSON or on a page.

Times become ISO 8601, masks become the names of their bits, and hashes become hexadecimal; absent members are left out.
Everything but the names of bits comes from the record: an auditor has no store or engine.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from carag.audit.receipts.verify import Verdict
from carag.audit.records.access import Access, Begin
from carag.audit.records.retention import retain_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from carag.audit.receipts.verify import Verification
    from carag.audit.records.hits import Hit
    from carag.audit.records.record import Record


Meanings: TypeAlias = "Callable[[str], Mapping[str, str] | None]"
"""Takes a policy table's hash in hexadecimal; returns names and meanings of its bits, from bit 0, or None."""

WITHHELD: Final = "withheld from this receipt"
NOT_SHOWN: Final = (
    "A receipt does not show that the log still holds this record, that nothing else should have been found, that the "
    "labels were right when they were given, who a person with an asserted session really was, or that the log told "
    "the truth when it wrote the record."
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BITS: Final = 27
"""Bits of a policy vector."""
_SIMILARITY_UNIT: Final = 1_000_000
"""Records hold similarities in millionths: they have no floats."""
CODES: Final = {
    "ANSWERED": "answered from the passages below",
    "LISTED": "the documents of the passages below were listed",
    "COUNTED": "documents were counted, of which those of the passages below are named",
    "NONE_LISTED": "no document that the session may use meets the question",
    "SHOWN": "a section or table was shown from the passages below",
    "OUTLINED": "headings and first sentences were shown from the passages below",
    "COMPARED": "the same was asked about several names, and answered from the passages below",
    "RETRIEVED": "the passages below were handed out",
    "SUCCESSORS": "the passages below replaced, withdrew or amended what an earlier answer cites",
    "ADMISSIBLE": "explained: the passage may be used",
    "HIDDEN": "explained: the passage is hidden",
    "NOTHING_TO_EXPLAIN": "there is nothing that this session may know about",
    "NO_ADMISSIBLE_EVIDENCE": "nothing that the session may use answers the question",
    "NOTHING_ABOUT_IT": "nothing that the session may use is about the company, person or time that the question names",
    "BELOW_GATE": "the best admissible passage is not similar enough",
    "DRIFTED": "the questions asked had drifted, and the best admissible passage was below the raised threshold",
    "TOO_FEW_WORDS": "the passages that the session may use contain too few of the question's words",
    "ASKED_BACK": "several documents match a question that names none, so the asker was asked which one is meant",
    "READER_DECLINED": "the reader found it unlikely that the first passages answer the question",
    "MODEL_DECLINED": "the generator said that it has no answer",
    "BAD_CITATION": "the generated text cited nothing, or something it was not given",
    "FIGURES_NOT_STATED": "every sentence generated had a figure that the passages it cites do not state so",
    "UNKNOWN_ROLE": "the policy table has no such role",
    "UNKNOWN_PURPOSE": "the policy table has no such purpose",
    "NO_SUCH_CELL": "this role may not ask for this purpose",
    "EXISTENCE_NOT_GRANTED": "this role may not know for this purpose what is hidden, and asked for a list of it",
    "ALLOW_LIST_REQUIRED": "this purpose needs a list of companies or persons, and the session brought none",
    "NO_LEGAL_BASIS": "the legal basis of the session does not cover this purpose",
    "CROSSED_FOR_ADVICE": "the session was wall-crossed for advice, which no wall-crossing allows",
    "PAST_NOT_GRANTED": "this role may not ask about the past for this purpose",
    "UNKNOWN_INTENT": "the session asks for a restriction that the store's profile does not know",
    "FOREIGN_RESIDENCY": "the session's residency belongs to another profile than the store's",
    "CONFLICT": "the session contradicts what its role and purpose demand",
    "BREAK_GLASS_REQUIRED": "the cell opens only by breaking the glass",
    "BREAK_GLASS_CHANGED": "the policy for the cell had changed since the glass was broken",
    "BREAK_GLASS_ENDED": "the time for which the glass was broken had ended",
    "TOO_MANY_MASKS": "the session splits its policy too far",
    "MODEL_UNAVAILABLE": "a model did not answer",
    "AUTHORIZER_UNAVAILABLE": "the authority that is asked about documents gave no verdict",
    "CORRUPT_FILE": "what is stored fails its own checks",
    "INTERNAL_ERROR": "the system failed",
}


def describe_record(record: Record, meanings: Meanings | None = None) -> dict[str, Any]:
    """Return what a record says, in the order in which a person asks for it.

    ``meanings`` names the bits, which otherwise have only numbers. The result has ``record`` (its number), ``log``,
    ``kind`` and ``logged``; the members of its event; ``passages``, if it has any; and ``retained``.
    """
    said: dict[str, Any] = {
        "record": record.seq,
        "log": record.log,
        "kind": record.kind.value,
        "logged": instant(record.committed),
    }
    event = record.event.to_json()
    for key in sorted(event, key=_rank):
        name, read = _READ.get(key, (key, _itself))
        value = None if event[key] is None else read(event[key])
        if key == "policy" and value:
            value = _policy(value, _Bits(_hex(value["table"]), meanings))
        if value not in (None, [], {}):
            said[name] = value
    if record.hits:
        bits = _Bits(said["policy"]["table"], meanings)
        said["passages"] = [_passage(number, hit, bits) for number, hit in enumerate(record.hits, start=1)]
    said["retained"] = f"{record.retain}, until {retain_until(record.committed, record.retain).date()}"
    return said


def describe_receipt(checked: Verification, meanings: Meanings | None = None) -> dict[str, Any]:
    """Return what a verification shows; unless the receipt is verified, only verdict and reason.

    The result has ``verdict``, ``reason``, ``undisclosed``, ``unproved`` and ``withheld``; and, if verified, all of
    :func:`describe_record` with the openings: of a request ``who``, ``question`` and ``answer``, otherwise ``opened``.
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
    said |= describe_record(record, meanings)
    if checked.erases is not None:
        said["erases"] = checked.erases
    event = record.event
    if isinstance(event, Access | Begin):
        said |= {"who": _value(checked, "subject"), "question": _value(checked, "query")}
        said["policy"]["meaning"] = _meaning(said["policy"], _Bits(said["policy"]["table"], meanings))
    else:
        said["opened"] = dict(checked.values)
    if isinstance(event, Access):
        said |= {"code_in_words": CODES.get(event.why), "answer": _value(checked, "answer")}
        if event.where:
            said["narrowed"] = _value(checked, "where")
        if "reading" in record.commitments:
            said["understood"] = _value(checked, "reading")
        bits = _Bits(said["policy"]["table"], meanings)
        pairs = zip(record.hits, checked.passages, strict=True)
        said["passages"] = [
            _passage(number, hit, bits) | _text(checked, pair)
            for number, (hit, pair) in enumerate(pairs, start=1)
        ]
    return said | {"not_shown": NOT_SHOWN}


def _value(checked: Verification, name: str) -> dict[str, str | None]:
    """Return the value of a commitment, or the reason why it cannot be seen."""
    if name in checked.values:
        return {"value": checked.values[name], "because": None}
    return {"value": None, "because": WITHHELD if name in checked.withheld else "none is on record"}


class _Bits:
    """The bits of the table that a record names by its hash; only numbers if the table is not known."""

    def __init__(self, table: str, meanings: Meanings | None) -> None:
        self.meanings = (None if meanings is None else meanings(table)) or {}

    def names(self, word: int) -> list[str]:
        numbers = range(_BITS)
        names = list(self.meanings) or [f"bit {number}" for number in numbers]
        return [name for number, name in zip(numbers, names, strict=False) if word >> number & 1]


def _passage(number: int, hit: Hit, bits: _Bits) -> dict[str, Any]:
    return {
        "passage": number,
        "name": hit.name,
        "similarity": hit.similarity / _SIMILARITY_UNIT,
        "bits": bits.names(hit.word),
        "cited": hit.cited,
    }


def _text(checked: Verification, pair: tuple[str, str] | None) -> dict[str, Any]:
    chunk, text = pair or (None, None)
    return {
        "chunk": chunk,
        "text": text,
        "because": None if pair else WITHHELD,
        "proved_in_state": pair is not None and chunk not in checked.unproved,
    }


def _itself(value: Any) -> Any:
    return value


def _hex(text: str) -> str:
    return base64.urlsafe_b64decode(text + "=").hex()


def instant(microseconds: int) -> str:
    """Write microseconds since 1970 as ISO 8601 in UTC."""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()


def _minute(minutes: int) -> str:
    try:
        return (_EPOCH + timedelta(minutes=minutes)).isoformat()
    except OverflowError:  # Python's calendar ends before 32-bit minutes do
        return f"{minutes} minutes since 1970 UTC"


def _policy(said: dict[str, Any], bits: _Bits) -> dict[str, Any]:
    read: dict[str, Any] = {"table": _hex(said["table"]), "admits": _pairs(said["masks"], bits)}
    for key, name, reader in (
        ("reopened", "admits_besides", partial(_pairs, bits=bits)),
        ("entities", "entities", _itself),
        ("reopened_entities", "entities_besides", _itself),
        ("cooling", "cooling_minutes", _itself),
    ):
        if key in said:
            read[name] = reader(said[key])
    return read


def _pairs(masks: list[list[int]], bits: _Bits) -> list[dict[str, list[str]]]:
    return [{"requires": bits.names(need), "hides": bits.names(ban)} for need, ban in masks]


def _meaning(policy: dict[str, Any], bits: _Bits) -> dict[str, str]:
    pairs = [*policy["admits"], *policy.get("admits_besides", ())]
    named = {bit for pair in pairs for listed in pair.values() for bit in listed}
    return {bit: document for bit, document in bits.meanings.items() if bit in named}


def _heads(said: list[list[int]]) -> list[dict[str, int]]:
    return [dict(zip(("passage", "of_passage", "start", "end"), rows, strict=True)) for rows in said]


def _index(said: dict[str, Any]) -> dict[str, Any]:
    known = {"known_at": instant(said["known"])} if "known" in said else {}
    return {
        "state": _hex(said["snapshot"]),
        **known,
        "admissible_rows": said["admissible"],
        "plan": said["plan"],
        **({"backend": _backend(said["backend"])} if "backend" in said else {}),
    }


def _backend(said: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": said["name"],
        "collection": said["collection"],
        "epoch": said["epoch"],
        "words": _hex(said["dictionary"]),
        "shards": [{"shard": shard, "at": at} for shard, at in said["shards"]],
    }


def _given(said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None}


_READ: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "t0": ("started", instant),
    "t1": ("ended", instant),
    "role": ("role", _itself),
    "purpose": ("purpose", _itself),
    "source": ("session", _itself),
    "outcome": ("outcome", _itself),
    "why": ("code", _itself),
    "as_of": ("as_of", _minute),
    "policy": ("policy", _itself),
    "table": ("table", _hex),
    "index": ("index", _index),
    "models": ("models", _given),
    "at": ("changed", instant),
    "root": ("state_root", _hex),
    "seen": ("seen", instant),
    "until": ("until", instant),
    "record": ("of_record", _itself),
    "heads": ("heads", _heads),
    "passages": ("of_passages", _itself),  # how many were erased; the passages of an answer are a list
}
"""Printed name and conversion of members of an event, in the order of printing; other members follow unchanged."""


def _rank(key: str) -> tuple[int, str]:
    order = list(_READ)
    return (order.index(key) if key in _READ else len(order), key)
