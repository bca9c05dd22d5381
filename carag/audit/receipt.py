"""The receipt: everything somebody needs to prove one record later, in one JSON file.

::

    {"format":   "carag-receipt/v1",
     "hits":     [{"chunk": id, "text": passage}, ...],       bound by the text hashes in the record
     "openings": {"query": {"salt": ..., "value": ...}, ...}, bound by the commitments in the record
     "proof":    "c2sp.org/tlog-proof@v1...",                 bound by its signature and its root hash
     "record":   "{...}"}                                     bound by the proof

The file is canonical JSON and one newline, so no byte of it is free. A receipt holds the question and the
answer in clear: it belongs to whoever asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.audit import canonical
from carag.audit._files import write_atomically
from carag.audit.canonical import b64url
from carag.errors import CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from carag.audit.commitment import Opening

__all__ = ["MAX_RECEIPT_BYTES", "RECEIPT_FORMAT", "Envelope", "Receipt", "open_envelope"]

RECEIPT_FORMAT: Final = "carag-receipt/v1"
MAX_RECEIPT_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of one record, ready to be handed out.

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
        In the order of the record's hits.
    """

    seq: int
    record: bytes
    proof: str
    openings: Mapping[str, Opening] = field(default_factory=dict, repr=False)
    passages: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def to_bytes(self) -> bytes:
        """Write the receipt as the file holds it."""
        openings = {
            name: {"salt": b64url(opening.salt), "value": opening.value}
            for name, opening in self.openings.items()
        }
        receipt: dict[str, canonical.Json] = {
            "format": RECEIPT_FORMAT,
            "hits": [{"chunk": chunk, "text": text} for chunk, text in self.passages],
            "openings": openings,
            "proof": self.proof,
            "record": self.record.decode("utf-8"),
        }
        return canonical.encode(receipt) + b"\n"

    def write(self, path: str | PathLike[str]) -> None:
        """Write the file, whole or not at all, readable by its owner only.

        Raises
        ------
        InvalidArgument
            If nothing can be written there. The record stays in the log, which can make the receipt again.
        """
        try:
            write_atomically(path, self.to_bytes())
        except OSError as error:
            raise InvalidArgument(
                f"cannot write the receipt to {path}: {error}; choose another place"
            ) from error


class Envelope(NamedTuple):
    """A receipt taken apart and not yet believed: only the outermost types are known to be right."""

    record: str
    proof: str
    openings: dict[str, Any]
    hits: list[Any]


def open_envelope(data: bytes) -> Envelope:
    """Take a receipt apart.

    Raises
    ------
    CorruptFile
        If it is not canonical JSON with exactly the keys of a receipt of this format, and one newline.
    """
    if len(data) > MAX_RECEIPT_BYTES:
        raise CorruptFile(f"a receipt has at most {MAX_RECEIPT_BYTES} bytes, got {len(data)}")
    if not data.endswith(b"\n"):
        raise CorruptFile("a receipt ends in a newline")
    fields = canonical.decode(data[:-1])
    if not isinstance(fields, dict) or fields.get("format") != RECEIPT_FORMAT:
        raise CorruptFile(f"not a receipt of format {RECEIPT_FORMAT}")
    match fields:
        case {
            "format": _,
            "record": str(record),
            "proof": str(proof),
            "openings": dict(openings),
            "hits": list(hits),
            **rest,
        } if not rest:
            return Envelope(record, proof, openings, hits)
    raise CorruptFile("a receipt has a record, a proof, openings and hits, and nothing else")
