"""Make the statement of one erased document again, from the sealed values of the erasure's record; on record itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.audit.operations.disclosure import disclose
from carag.audit.receipts.erased import ErasureStatement
from carag.audit.records.custody import OPENERS, DocumentErasure, read_salts
from carag.errors import InvalidArgument
from carag.limits import shown

if TYPE_CHECKING:
    from carag.audit.log.log import AuditLog


def erasure_statement(
    log: AuditLog, document_id: str, *, role: str, actor: str, why: str
) -> ErasureStatement:
    """Return what shows that a document was erased, from its last erasure, after recording that it is opened.

    Parameters
    ----------
    role, actor, why : str
        As for :func:`disclose`.

    Raises
    ------
    Refused
        ``ROLE_MAY_NOT_OPEN``; the attempt is recorded, and nothing is said about the document.
    InvalidArgument
        If no document was erased; or not this one, which is known only after the last erasure's list was opened, on
        record.
    AuditUnavailable
        If the disclosure cannot be recorded; nothing is opened.

    Examples
    --------
    >>> import tempfile, carag
    >>> from carag.audit import erasure_statement
    >>> memo = carag.Document(id="memo/7", text="Ana asked for a loan on the fifth of May.", bits=())
    >>> with carag.Engine.open(tempfile.mkdtemp(), embedder="wordllama") as engine:
    ...     _ = engine.add([memo])
    ...     done = engine.erase(["memo/7"], basis="GDPR_17_1", by="dpo", approver="cco")
    ...     said = erasure_statement(engine.log, "memo/7", role="privacy_officer", actor="dpo", why="ANA-ASKED")
    >>> (said,) == done.statements
    True
    """
    erasures = [
        seq for seq in reversed(range(log.size)) if isinstance(log.record(seq).event, DocumentErasure)
    ]
    if not erasures:
        raise InvalidArgument("no document was erased from this store; there is no statement to make")
    looked_in = erasures if role in OPENERS else []
    seq = next((one for one in looked_in if document_id in _salts(log, one)), erasures[0])
    opened = disclose(log, seq, role=role, actor=actor, why=why, fields=("targets",))
    salts = read_salts(opened["targets"].value)
    if document_id not in salts:
        raise InvalidArgument(
            f"document {shown(document_id)} is in no list of erased documents that can be opened; check the id"
        )
    return ErasureStatement(seq, document_id, salts[document_id])


def _salts(log: AuditLog, seq: int) -> dict[str, bytes]:
    """Return the salts of the documents that a record erases, by id; empty if its sealed values were lost."""
    opened = log.private.openings(seq)
    return read_salts(opened["targets"].value) if "targets" in opened else {}
