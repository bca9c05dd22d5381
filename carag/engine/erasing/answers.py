"""Find the answers that cite erased passages, and erase those that no hold and no duty keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from carag.audit import Access, Outcome
from carag.audit.operations.erasure import destroy, kept_by
from carag.audit.records.custody import Target

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from carag.audit import AuditLog, Basis

_FIELD = "answer"


class Answers(NamedTuple):
    """Records whose answers cite a passage that is erased, by what happens to the answer."""

    erased: tuple[int, ...]
    kept: dict[int, str]
    """Those that a hold covers, or that must be kept by law for longer, with the reason."""


def citing(log: AuditLog, digests: Collection[bytes], basis: Basis, among: Iterable[int]) -> Answers:
    """Find the answers of some records that cite one of the passages with these digests and are still there."""
    erased, kept = list[int](), dict[int, str]()
    for seq in among:
        record = log.record(seq)
        event = record.event
        if not isinstance(event, Access) or event.outcome is not Outcome.ANSWER:
            continue
        if not any(hit.cited and hit.digest in digests for hit in record.hits):
            continue
        target = Target(seq, _FIELD)
        if target in log.private.of_record(seq):
            if why := kept_by(log, [target], basis):
                kept[seq] = why
            else:
                erased.append(seq)
    return Answers(tuple(erased), kept)


def erase_answers(log: AuditLog, seqs: Collection[int], basis: Basis, *, actor: str, approver: str) -> None:
    """Erase the answers of some records, on record."""
    if seqs:
        targets = [Target(seq, _FIELD) for seq in seqs]
        destroy(log, targets, basis, actor=actor, approver=approver, named=True)
