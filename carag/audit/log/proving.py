"""Read records of a log back, and prove them under its newest checkpoint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from carag.audit.receipts.receipt import Receipt
from carag.audit.records.record import Record, text_hash
from carag.audit.tlog import merkle
from carag.audit.tlog.proof import ConsistencyProof, InclusionProof
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.audit.log.backend import Backend
    from carag.audit.log.tip import Tip

__all__ = ["Proving"]


class Proving(ABC):
    """The part of :class:`~carag.audit.log.log.AuditLog` that reads and proves."""

    _backend: Backend
    _tip: Tip

    @property
    def size(self) -> int:
        """Number of records; in a log that several processes write, of those that this process knows."""
        return self._tip.frontier.size

    def consistency_hashes(self, old_size: int, size: int) -> tuple[bytes, ...]:
        """Prove that ``size`` records begin with ``old_size``: :meth:`consistency` between any two sizes.

        Raises InvalidArgument unless ``0 < old_size <= size`` and the log has ``size`` records.
        """
        self._check_open()
        if size > self.size:
            raise InvalidArgument(f"the log has only {self.size} records, not {size}")
        return tuple(merkle.consistency_proof(self._backend.node, old_size, size))

    def checkpoint(self) -> str:
        """Return the newest signed checkpoint. Kept elsewhere, it makes a later rollback detectable."""
        return self._followed().note.to_text()

    def record(self, seq: int) -> Record:
        """Read a record; InvalidArgument if there is no such record, CorruptFile if its bytes are not a record."""
        self._check_seq(seq)
        return Record.parse(self._backend.body(seq))

    def prove(self, seq: int) -> str:
        """Prove a record under the newest checkpoint, as a ``c2sp.org/tlog-proof@v1`` text."""
        tip = self._check_seq(seq)
        hashes = merkle.inclusion_proof(self._backend.node, seq, tip.frontier.size)
        return InclusionProof(seq, tuple(hashes), tip.note).to_text()

    def consistency(self, old_size: int) -> str:
        """Prove that the first ``old_size`` records are unchanged, as a ``c2sp.org/tlog-witness`` request body."""
        tip = self._tip
        self._check_open()
        hashes = merkle.consistency_proof(self._backend.node, old_size, tip.frontier.size)
        return ConsistencyProof(old_size, tuple(hashes), tip.note).to_text()

    def receipt(self, seq: int, passages: Sequence[tuple[str, str]] = ()) -> Receipt:
        """Make a receipt again, under the newest checkpoint, without openings of the record's commitments.

        ``passages`` are pairs of chunk id and text of the record's hits, in its order; the log keeps only their hashes.
        Opening question and answer needs a role and is recorded: see :func:`~carag.audit.disclose`, whose result can be
        added with ``dataclasses.replace(receipt, openings=...)``. Only the first receipt has proofs of the index state.
        Raises InvalidArgument if there is no such record or the passages are not its own.
        """
        proof = self.prove(seq)
        body = self._backend.body(seq)
        hits = Record.parse(body).hits
        named = zip(hits, passages, strict=False)
        if len(hits) != len(passages) or not all(
            hit.is_of(chunk, text_hash(text)) for hit, (chunk, text) in named
        ):
            raise InvalidArgument(
                f"the texts given are not those of the {len(hits)} passages of record {seq}"
            )
        return Receipt(seq, body, proof, passages=tuple(passages))

    def _check_seq(self, seq: int) -> Tip:
        self._check_open()
        tip = self._tip if seq < self.size else self._followed()
        if not 0 <= seq < tip.frontier.size:
            raise InvalidArgument(f"there is no record {seq}; the log has {tip.frontier.size}")
        return tip

    @abstractmethod
    def _followed(self) -> Tip:
        """Return the log's end, including what other processes have appended."""

    @abstractmethod
    def _check_open(self) -> None:
        """Refuse a log that is closed."""
