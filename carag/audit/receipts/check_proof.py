"""Check one proof file by itself: a checkpoint, an inclusion proof or a consistency proof.

Each function returns a verdict and a reason. FAILED: the file is signed by the key and wrong, or claims to be signed by
it. UNDECIDED: it is not readable in its canonical form, or not signed by the given key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from carag.audit.receipts.verify import Verdict
from carag.audit.records.record import Record
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.log_verifier import signed_by_others
from carag.audit.tlog.merkle import leaf_hash, verify_consistency, verify_inclusion
from carag.audit.tlog.note import Note
from carag.audit.tlog.proof import ConsistencyProof, InclusionProof
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.audit.tlog.note import NoteKey

_S = TypeVar("_S")
_T = TypeVar("_T")


class Finding(NamedTuple):
    """A verdict and its reason in words."""

    verdict: Verdict
    reason: str


class _Found(Exception):  # control flow inside this module, never raised to a caller
    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.finding = Finding(verdict, reason)


def check_checkpoint(text: str, key: NoteKey) -> Finding:
    """Check that a checkpoint belongs to the key's log and is signed by the key; lines of other keys are ignored."""
    try:
        checkpoint = _signed(_read(Note.parse, text), key)
    except _Found as found:
        return found.finding
    return Finding(Verdict.VERIFIED, f"{key.name} signed a checkpoint of {checkpoint.size} records")


def check_inclusion(record: bytes, proof: str, key: NoteKey) -> Finding:
    """Check that a record is in a log, at the index that the proof and the record itself state."""
    try:
        parsed = _read(InclusionProof.parse, proof)
        checkpoint = _signed(parsed.checkpoint, key)
        leaf = leaf_hash(record)
        if not verify_inclusion(leaf, parsed.index, checkpoint.size, parsed.hashes, checkpoint.root):
            return Finding(
                Verdict.FAILED,
                f"the record is not entry {parsed.index} of the signed tree of {checkpoint.size}: "
                "it or its proof was altered",
            )
        log, seq, _ = _read(Record.place, record)
    except _Found as found:
        return found.finding
    if (log, seq) != (checkpoint.origin, parsed.index):
        return Finding(
            Verdict.FAILED,
            f"entry {parsed.index} of {checkpoint.origin} says it is entry {seq} of {log}",
        )
    return Finding(Verdict.VERIFIED, f"record {seq} of {log} is as the log signed it")


def check_consistency(
    old: str, proof: str, key: NoteKey, names: tuple[str, str] = ("the checkpoint kept", "the proof")
) -> Finding:
    """Check that the log of the proof's checkpoint extends the one of an older checkpoint.

    ``names`` are what the reason calls the two files.
    """
    name = names[0]
    try:
        before = _signed(_read(Note.parse, old), key)
        name = names[1]
        parsed = _read(ConsistencyProof.parse, proof)
        after = _signed(parsed.checkpoint, key)
    except _Found as found:
        return Finding(found.finding.verdict, f"{name}: {found.finding.reason}")
    if parsed.old != before.size:
        return Finding(
            Verdict.FAILED,
            f"the proof starts from {parsed.old} records, but the checkpoint kept covers {before.size}",
        )
    if not verify_consistency(before.size, after.size, parsed.hashes, before.root, after.root):
        return Finding(
            Verdict.FAILED,
            f"the log of {after.size} records does not extend the {before.size} of the checkpoint kept: "
            "history or proof was altered",
        )
    return Finding(Verdict.VERIFIED, f"the log of {after.size} records extends the {before.size} kept")


def _read(parse: Callable[[_S], _T], data: _S) -> _T:
    try:
        return parse(data)
    except CorruptFile as error:
        raise _Found(Verdict.UNDECIDED, str(error)) from error


def _signed(note: Note, key: NoteKey) -> Checkpoint:
    if key.signature_on(note) is None:
        raise _Found(Verdict.UNDECIDED, signed_by_others(note, key))
    if not key.verifies(note):
        raise _Found(Verdict.FAILED, "the checkpoint's signature is not valid")
    try:
        checkpoint = Checkpoint.parse(note.text)
    except CorruptFile as error:
        raise _Found(Verdict.UNDECIDED, f"the signed note is not a checkpoint: {error}") from error
    if checkpoint.origin != key.name:
        raise _Found(Verdict.FAILED, f"{key.name} signed a checkpoint of {checkpoint.origin}")
    return checkpoint
