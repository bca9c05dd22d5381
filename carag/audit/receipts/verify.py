"""Verify a receipt with nothing but the receipt and the log's public key.

VERIFIED: every check holds, so the log signed a history that contains this record, and texts, question and answer are
those of the record. It does not mean that the record was true when it was written. FAILED: a check fails, so something
was altered or the log broke its own rules. UNDECIDED: the checks cannot be made, because the file cannot be read, has
an unknown format, or belongs to another log; that is never called tampering.

``docs/reference/receipts.md`` has the rules for a receipt and its record. ``scripts/verify_receipt.py`` follows the
same page and shares no code with this package.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from carag.audit.receipts.receipt import Envelope, open_envelope
from carag.audit.records.access import Access
from carag.audit.records.commitment import SALT_SIZE, Opening
from carag.audit.records.event import UNDISCLOSED
from carag.audit.records.hits import text_hash
from carag.audit.records.record import Record
from carag.audit.state.proof import StateProof
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.encoding import unb64url
from carag.audit.tlog.log_verifier import LogVerifier, parse_vkeys, signed_by_others
from carag.audit.tlog.merkle import leaf_hash, verify_inclusion
from carag.audit.tlog.proof import InclusionProof
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from carag.audit.tlog.note import NoteKey


class Verdict(StrEnum):
    """The result of a verification."""

    VERIFIED = "verified"
    FAILED = "failed"
    UNDECIDED = "undecided"


class Check(StrEnum):
    """The checks of a receipt, in this order."""

    FORMAT = "format"
    """The file and its proof are readable and canonical, byte for byte."""
    KEY = "key"
    """The checkpoint carries a signature by a given key. Other keys' are ignored (``c2sp.org/signed-note``)."""
    SIGNATURE = "signature"
    """Every signature by a given key is valid."""
    ORIGIN = "origin"
    """The checkpoint's origin is the key's name."""
    INCLUSION = "inclusion"
    """The record's hash leads to the signed root."""
    RECORD = "record"
    """The record is readable and canonical."""
    POSITION = "position"
    """The record itself states this log and this index."""
    COMMITMENTS = "commitments"
    """Every opened value matches its commitment."""
    PASSAGES = "passages"
    """Every passage has the digest of the record's hit in its place; a redacted passage is reported."""
    CONSISTENCY = "consistency"
    """The record does not contradict itself: every passage satisfies a mask, a refusal has no passages, ..."""
    STATE = "state"
    """Every passage was in the index state that the record names, with this text and under this word, at the instant
    asked about. Passed only if every passage has a proof."""


@dataclass(frozen=True, slots=True)
class Verification:
    """A verdict and the reasons for it.

    Parameters
    ----------
    stopped_at : Check or None
        The check that failed or could not be made.
    record : Record or None
        Set once its inclusion is proved.
    values : mapping of str to str
        Opened values (subject, query, answer); only if VERIFIED.
    passages : tuple of (chunk id, text), or None where one is left out
        One for each hit of the record. Only if VERIFIED.
    undisclosed : tuple of str
        Commitments of the record that no receipt opens: lists of companies, of erased records.
    withheld : tuple of str
        Parts redacted from this receipt: ``"answer"``, ``"passage 2"``, ``"until of passage 1"``.
    unproved : tuple of str
        Chunk ids of passages that are shown without a proof that they were in the index state.
    erases : str or None
        The document that the record was shown to erase, by a statement (:func:`carag.audit.verify_erasure`).
    """

    verdict: Verdict
    reason: str
    passed: tuple[Check, ...]
    stopped_at: Check | None = None
    record: Record | None = None
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    passages: tuple[tuple[str, str] | None, ...] = field(default=(), repr=False)
    undisclosed: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()
    erases: str | None = None


class _Stop(Exception):  # control flow inside this module, never raised to a caller
    def __init__(self, verdict: Verdict, check: Check, reason: str) -> None:
        super().__init__(reason)
        self.verdict, self.check = verdict, check


_ORDER: Final = tuple(Check)


def verify_receipt(data: bytes, vkey: str) -> Verification:
    """Verify a receipt offline.

    Parameters
    ----------
    data : bytes
        The receipt file's content.
    vkey : str
        The log's public key, from a source you trust, not from the receipt's sender. A log whose key was rotated
        has several, one per line; any of them may have signed the receipt.

    Raises
    ------
    InvalidArgument
        If ``vkey`` is not an Ed25519 vkey or several vkeys of one log.
    """
    return _verified(data, parse_vkeys(vkey))


def verify_unsigned(data: bytes) -> Verification:
    """Make every check that needs no key: the checkpoint's signatures are not verified."""
    return _verified(data, ())


def _verified(data: bytes, keys: tuple[NoteKey, ...]) -> Verification:
    record: Record | None = None
    try:
        envelope, proof = _read(data)
        if keys:
            _check_checkpoint(proof, keys)
        record = _check_record(envelope, proof, keys[0].name if keys else None)
        values = _check_commitments(envelope, record)
        passages = _check_passages(envelope, record)
        _check_consistency(record)
        unproved = _check_state(envelope, record)
    except _Stop as stop:
        passed = _ORDER[: _ORDER.index(stop.check)]
        return Verification(stop.verdict, str(stop), passed, stop.check, record)
    closed = sorted(set(record.commitments) - set(values))
    return Verification(
        Verdict.VERIFIED,
        f"record {record.seq} of {record.log} is as the log signed it",
        _ORDER[:-1] if unproved or None in passages else _ORDER,
        record=record,
        values=values,
        passages=passages,
        undisclosed=tuple(name for name in closed if name in UNDISCLOSED),
        withheld=(*(name for name in closed if name not in UNDISCLOSED), *_left_out(envelope.hits)),
        unproved=unproved,
    )


def _left_out(hits: list[Any]) -> Iterator[str]:
    for number, hit in enumerate(hits, start=1):
        if hit is None:
            yield f"passage {number}"
        elif hit["proof"] is not None and isinstance(hit["proof"]["until"], str):
            yield f"until of passage {number}"


def _read(data: bytes) -> tuple[Envelope, InclusionProof]:
    try:
        envelope = open_envelope(data)
        return envelope, InclusionProof.parse(envelope.proof)
    except CorruptFile as error:
        raise _Stop(Verdict.UNDECIDED, Check.FORMAT, str(error)) from error


def _check_checkpoint(proof: InclusionProof, keys: tuple[NoteKey, ...]) -> None:
    note = proof.checkpoint
    known = [key for key in keys if key.signature_on(note) is not None]
    if not known:
        raise _Stop(Verdict.UNDECIDED, Check.KEY, signed_by_others(note, LogVerifier(keys)))
    if not all(key.verifies(note) for key in known):
        raise _Stop(Verdict.FAILED, Check.SIGNATURE, "the checkpoint's signature is not valid")


def _check_record(envelope: Envelope, proof: InclusionProof, name: str | None) -> Record:
    try:
        checkpoint = Checkpoint.parse(proof.checkpoint.text)
    except CorruptFile as error:
        raise _Stop(
            Verdict.UNDECIDED, Check.ORIGIN, f"the signed note is not a checkpoint: {error}"
        ) from error
    if name is not None and checkpoint.origin != name:
        raise _Stop(Verdict.FAILED, Check.ORIGIN, f"{name} signed a checkpoint of {checkpoint.origin}")
    body = envelope.record.encode("utf-8")
    if not verify_inclusion(leaf_hash(body), proof.index, checkpoint.size, proof.hashes, checkpoint.root):
        raise _Stop(
            Verdict.FAILED,
            Check.INCLUSION,
            f"the record is not entry {proof.index} of the signed tree of {checkpoint.size}: "
            "it or its proof was altered",
        )
    try:
        record = Record.parse(body)
    except CorruptFile as error:
        raise _Stop(Verdict.UNDECIDED, Check.RECORD, str(error)) from error
    if (record.log, record.seq) != (checkpoint.origin, proof.index):
        raise _Stop(
            Verdict.FAILED,
            Check.POSITION,
            f"entry {proof.index} of {checkpoint.origin} says it is entry {record.seq} of {record.log}",
        )
    return record


def _check_commitments(envelope: Envelope, record: Record) -> dict[str, str]:
    values = {}
    for name, fields in envelope.openings.items():
        opening = _opening(fields)
        commitment = record.commitments.get(name)
        if opening is None or commitment is None or not opening.opens(name, commitment):
            raise _Stop(Verdict.FAILED, Check.COMMITMENTS, f"the {name} shown is not the one committed to")
        values[name] = opening.value
    return values


def _opening(fields: Any) -> Opening | None:
    try:
        opening = Opening(unb64url(fields["salt"], SALT_SIZE), fields["value"])
    except (CorruptFile, KeyError, TypeError):
        return None
    return opening if len(fields) == 2 and isinstance(opening.value, str) else None


def _check_passages(envelope: Envelope, record: Record) -> tuple[tuple[str, str] | None, ...]:
    if len(envelope.hits) != len(record.hits):
        raise _Stop(
            Verdict.FAILED,
            Check.PASSAGES,
            f"the record names {len(record.hits)} passages, but the receipt shows {len(envelope.hits)}",
        )
    passages: list[tuple[str, str] | None] = []
    for number, (shown, hit) in enumerate(zip(envelope.hits, record.hits, strict=True), start=1):
        match shown:
            case None:
                passages.append(None)
                continue
            case {"chunk": str(chunk), "text": str(text), "proof": _, **rest} if not rest:
                if hit.is_of(chunk, text_hash(text)):
                    passages.append((chunk, text))
                    continue
        raise _Stop(Verdict.FAILED, Check.PASSAGES, f"passage {number} is not the one of {hit.name}")
    for rows in record.event.heads if isinstance(record.event, Access) else ():
        lender = passages[rows.lender - 1 : rows.lender]  # empty if there is no such passage
        if lender != [None] and rows.end > sum(len(one[1]) for one in lender if one):
            said = f"passage {rows.lender} does not hold the heads of passage {rows.hit}"
            raise _Stop(Verdict.FAILED, Check.PASSAGES, said)
    return tuple(passages)


def _check_state(envelope: Envelope, record: Record) -> tuple[str, ...]:
    """Check all proofs that there are, and return the chunks that are shown without one."""
    unproved = []
    for number, (shown, hit) in enumerate(zip(envelope.hits, record.hits, strict=True), start=1):
        if shown is None:
            continue
        if shown["proof"] is None:
            unproved.append(shown["chunk"])
            continue
        wrong = _wrong_with(shown, hit.word, record)
        if wrong:
            raise _Stop(Verdict.FAILED, Check.STATE, f"the proof of passage {number} {wrong}")
    return tuple(unproved)


def _wrong_with(shown: Any, word: int, record: Record) -> str | None:
    event = record.event
    if not isinstance(event, Access) or event.index is None:
        return "cannot be checked: the record names no index state"
    try:
        proof = StateProof.from_json(shown["proof"])
    except CorruptFile as error:
        return f"is invalid: {error}"
    if proof.root(shown["chunk"], text_hash(shown["text"]), word) != event.index.snapshot:
        return "does not lead to the index state of the record"
    if not proof.holds_at(event.as_of):
        return "is for another time than the question's"
    return None


def _check_consistency(record: Record) -> None:
    if wrong := "; ".join(record.contradictions()):
        raise _Stop(Verdict.FAILED, Check.CONSISTENCY, f"the record contradicts itself: {wrong}")
