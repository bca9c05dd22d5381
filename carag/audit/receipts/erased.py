"""Show that the record of an erasure is about one document: a statement of its id and salt, checked offline.

The record names each document by SHA-256 of a salt and its id, so that neither record nor receipt tells which documents
they were. A statement tells it of one document and of no other. ``docs/reference/receipts.md`` has the rules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple, Self

from carag.audit.receipts.verify import Verdict, Verification, verify_receipt
from carag.audit.records import _fields
from carag.audit.records.custody import ERASED_SALT_BYTES, DocumentErasure, salted_id
from carag.audit.tlog import encoding
from carag.errors import CorruptFile, InvalidArgument
from carag.limits import shown

FORMAT: Final = "carag-erased/v1"


class ErasureStatement(NamedTuple):
    """What shows that the record of an erasure is about a document.

    Examples
    --------
    >>> said = ErasureStatement(17, "memo/7", bytes(16))
    >>> ErasureStatement.parse(said.to_bytes()) == said
    True
    """

    record: int
    """Sequence number of the record."""
    id: str
    """The document's id."""
    salt: bytes
    """16 bytes."""

    def to_json(self) -> dict[str, Any]:
        """Return the members of the file."""
        return {"format": FORMAT, **self._asdict(), "salt": encoding.b64url(self.salt)}

    def to_bytes(self) -> bytes:
        """Return the file: canonical JSON and one newline."""
        return encoding.encode(self.to_json()) + b"\n"

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read the file; CorruptFile if it is anything else."""
        if not data.endswith(b"\n"):
            raise CorruptFile("a statement of an erasure ends in a newline")
        said = encoding.decode(data[:-1])
        names = {"format", *cls._fields}
        if not (isinstance(said, dict) and said.keys() == names and said["format"] == FORMAT):
            raise CorruptFile("a statement of an erasure has format, id, record and salt, and nothing else")
        try:
            _fields.label("id", said["id"])
            _fields.integer("record", said["record"], 0)
        except InvalidArgument as error:
            raise CorruptFile(f"not a statement of an erasure: {error}") from error
        return cls(said["record"], said["id"], encoding.unb64url(said["salt"], ERASED_SALT_BYTES))


def verify_erasure(receipt: bytes, statement: bytes, vkey: str) -> Verification:
    """Verify offline that a receipt is about the erasure of the document that a statement names.

    VERIFIED: the receipt verifies (:func:`verify_receipt`), and its record erases this document; ``erases`` has its id.
    FAILED: the receipt fails, or its record does not erase it. UNDECIDED: the receipt is undecided, or the statement
    cannot be read or is about another record.

    Parameters
    ----------
    receipt, statement : bytes
        The contents of the two files.
    vkey : str
        The log's public key, as for :func:`verify_receipt`.

    Raises
    ------
    InvalidArgument
        If ``vkey`` is not an Ed25519 vkey or several vkeys of one log.

    Examples
    --------
    >>> import tempfile, carag
    >>> memo = carag.Document(id="memo/7", text="Ana asked for a loan on the fifth of May.", bits=())
    >>> with carag.Engine.open(tempfile.mkdtemp(), embedder="wordllama") as engine:
    ...     _ = engine.add([memo])
    ...     done = engine.erase(["memo/7"], basis="GDPR_17_1", by="dpo", approver="cco")
    ...     vkey = engine.log.vkey
    >>> receipt, said = done.receipts[0].to_bytes(), done.statements[0]
    >>> verify_erasure(receipt, said.to_bytes(), vkey).verdict
    <Verdict.VERIFIED: 'verified'>
    >>> verify_erasure(receipt, said._replace(id="memo/8").to_bytes(), vkey).reason
    'record 4 does not erase document memo/8'
    """
    checked = verify_receipt(receipt, vkey)
    record = checked.record
    if checked.verdict is not Verdict.VERIFIED or record is None:
        return checked
    try:
        said = ErasureStatement.parse(statement)
    except CorruptFile as error:
        return _not(checked, Verdict.UNDECIDED, str(error))
    if said.record != record.seq:
        about = f"the statement is about record {said.record}, and the receipt about record {record.seq}"
        return _not(checked, Verdict.UNDECIDED, f"{about}; give the receipt of record {said.record}")
    event = record.event
    if not (isinstance(event, DocumentErasure) and salted_id(said.id, said.salt) in event.ids):
        wrong = f"record {record.seq} does not erase document {shown(said.id)}"
        return _not(checked, Verdict.FAILED, wrong)
    return replace(checked, erases=said.id)


def _not(checked: Verification, verdict: Verdict, reason: str) -> Verification:
    return replace(checked, verdict=verdict, reason=reason, values={}, passages=())
