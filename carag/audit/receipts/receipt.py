"""Write and open receipts: all that is needed to prove one record later, in one JSON file.

::

    {"format":   "carag-receipt/v1",
     "hits":     [{"chunk": id, "text": passage,              bound by the digests in the record
                   "proof": {...} or null}, ...],             leads from both and the word to the record's index state
     "openings": {"query": {"salt": ..., "value": ...}, ...}, bound by the commitments in the record
     "proof":    "c2sp.org/tlog-proof@v1...",                 bound by its signature and its root hash
     "record":   "{...}"}                                     bound by the proof

The file is canonical JSON (RFC 8785) and one newline, so every byte of it is determined. A hit's proof holds
``{"from", "path", "sides", "until"}`` (:mod:`carag.audit.state.proof`). A receipt holds the question and the answer in
clear: it belongs to the person who asked. A receipt that the log reissued holds neither, and has null for each hit's
proof.

The holder may omit parts (:mod:`carag.audit.receipts.redact`): an opening, a hit's proof (null), the opening of an
``until`` (its seal), or a whole hit (null). ``docs/reference/receipts.md`` has the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.audit._files import write_atomically
from carag.audit.tlog import encoding
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.encoding import b64url
from carag.audit.tlog.note import Note
from carag.audit.tlog.proof import ConsistencyProof, InclusionProof
from carag.errors import CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from carag.audit.records.commitment import Opening
    from carag.audit.state.proof import StateProof


RECEIPT_FORMAT: Final = "carag-receipt/v1"
"""Name and version of the format."""
MAX_RECEIPT_BYTES: Final = 64 << 20  # 64 MiB


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of one record, for the person who asked.

    Parameters
    ----------
    seq : int
        The record's index in the log.
    record : bytes
        The record, verbatim.
    proof : str
        Inclusion proof with checkpoint.
    openings : mapping of str to Opening
        Salts and values of the record's commitments.
    passages : tuple of (chunk id, text)
        The passages, in the order of the record's hits.
    proofs : tuple of StateProof
        One per passage, or none at all.
    """

    seq: int
    record: bytes
    proof: str
    openings: Mapping[str, Opening] = field(default_factory=dict)
    passages: tuple[tuple[str, str], ...] = ()
    proofs: tuple[StateProof, ...] = ()

    def __repr__(self) -> str:
        opened = ", ".join(self.openings) or "nothing"
        return f"Receipt(record={self.seq}, opens {opened}, passages={len(self.passages)})"

    def _repr_html_(self) -> str | None:
        from carag.audit.receipts.card import card

        facts = {
            "record": self.seq,
            "opens": ", ".join(self.openings) or "nothing",
            "proofs": len(self.proofs),
        }
        return card("Receipt", facts, columns=("passage", "text"), rows=self.passages)

    def __post_init__(self) -> None:
        if self.proofs and len(self.proofs) != len(self.passages):
            raise InvalidArgument(
                f"{len(self.proofs)} proofs for {len(self.passages)} passages; want one each, or none"
            )

    def to_bytes(self) -> bytes:
        """Return the content of the receipt's file."""
        proofs = [proof.to_json() for proof in self.proofs] or [None] * len(self.passages)
        openings = {
            name: {"salt": b64url(opening.salt), "value": opening.value}
            for name, opening in self.openings.items()
        }
        receipt: dict[str, encoding.Json] = {
            "format": RECEIPT_FORMAT,
            "hits": [
                {"chunk": chunk, "proof": proof, "text": text}
                for (chunk, text), proof in zip(self.passages, proofs, strict=True)
            ],
            "openings": openings,
            "proof": self.proof,
            "record": self.record.decode("utf-8"),
        }
        return encoding.encode(receipt) + b"\n"

    def write(self, path: str | PathLike[str]) -> None:
        """Write the file atomically, readable by its owner only.

        Raises
        ------
        InvalidArgument
            If the file cannot be written. The record stays in the log, which can reissue the receipt.
        """
        write_receipt(path, self.to_bytes())


def write_receipt(path: str | PathLike[str], data: bytes) -> None:
    """Write a receipt's bytes atomically; InvalidArgument if that fails."""
    try:
        write_atomically(path, data)
    except OSError as error:
        raise InvalidArgument(f"cannot write the receipt to {path}: {error}; choose another place") from error


class Envelope(NamedTuple):
    """The parts of a receipt, not yet verified: only the outermost types are checked."""

    record: str
    proof: str
    openings: dict[str, Any]
    hits: list[Any]
    """None for each hit that was redacted."""


def open_envelope(data: bytes) -> Envelope:
    """Split a receipt into its parts.

    Raises CorruptFile if it is not canonical JSON with exactly the keys of a receipt of this format, and one newline.
    """
    if len(data) > MAX_RECEIPT_BYTES:
        raise CorruptFile(f"a receipt has at most {MAX_RECEIPT_BYTES} bytes, got {len(data)}")
    if not data.endswith(b"\n"):
        raise CorruptFile("a receipt ends in a newline")
    fields = encoding.decode(data[:-1])
    if not isinstance(fields, dict) or fields.get("format") != RECEIPT_FORMAT:
        raise CorruptFile(f"not a receipt of format {RECEIPT_FORMAT}")
    match fields:
        case {
            "format": str(),
            "record": str(record),
            "proof": str(proof),
            "openings": dict(openings),
            "hits": list(hits),
            **rest,
        } if not rest:
            return Envelope(record, proof, openings, hits)
    raise CorruptFile("a receipt must have a record, a proof, openings and hits, and nothing else")


def checkpoint_in(data: bytes) -> Note:
    """Extract the checkpoint from a receipt, a proof or a checkpoint's own file; CorruptFile for any other bytes."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptFile(f"neither receipt, proof, evidence nor checkpoint: {error}") from error
    if text.startswith("{"):
        return InclusionProof.parse(open_envelope(data).proof).checkpoint
    if text.startswith("c2sp.org/tlog-proof@"):
        return InclusionProof.parse(text).checkpoint
    if text.startswith("old "):
        return ConsistencyProof.parse(text).checkpoint
    note = Note.parse(text)
    Checkpoint.parse(note.text)
    return note
