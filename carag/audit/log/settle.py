"""Carry out recorded erasures and holds that the sealed values do not show yet, when a log is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.audit.records.custody import NO_RECORDS, Erasure, Hold, HoldAction, HoldScope, read_targets
from carag.audit.records.record import Record
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.audit.private.store import PrivateStore
    from carag.audit.records.custody import Target


_KIND_MARKS: Final = (b'"kind":"erasure"', b'"kind":"hold"')  # canonical JSON: nowhere else unescaped


def settle(private: PrivateStore, bodies: Iterable[tuple[int, bytes]], size: int) -> None:
    """Carry out the recorded erasures and holds that the sealed values do not show yet.

    These are the ones that a crash interrupted after they were recorded; all of them, if values were lost; and all
    since the backup, if an earlier version kept values in a file of their own and that file was restored. ``bodies``
    are numbers and bytes of the records from ``private.settled`` on. Raises CorruptFile if that file lacks the list of
    values to erase.
    """
    empty, found = private.is_empty(), bool(private.planned())
    for seq, body in [row for row in bodies if any(mark in row[1] for mark in _KIND_MARKS)]:
        found, event = True, Record.parse(body).event
        if isinstance(event, Erasure) and not empty:
            private.erase(_targets(private, seq, event), seq)
        elif isinstance(event, Hold):
            _apply(private, seq, event)
    private.settle(size, durably=found)


def _targets(private: PrivateStore, seq: int, event: Erasure) -> list[Target]:
    kept = private.openings(seq)
    if "targets" in kept:
        return read_targets(kept["targets"].value)
    if planned := private.planned():
        return planned
    if event.records:
        return [
            target
            for each in event.records
            for target in private.of_record(each)
            if target.field in event.fields
        ]
    raise CorruptFile(
        f"the sealed values are older than record {seq}, an erasure, and no longer say whose values to erase; restore "
        "a copy made after it, or move private.key away and accept the loss: then the values stay closed and every "
        "proof still holds"
    )


def _apply(private: PrivateStore, seq: int, event: Hold) -> None:
    if event.action is HoldAction.RELEASED and event.placed is not None:
        private.release(event.placed)
        return
    if event.scope is HoldScope.DOCUMENTS:
        private.hold(seq, first=NO_RECORDS[0], last=NO_RECORDS[1])
        return
    named = private.openings(seq).get("subject")
    subject = None if named is None else named.value
    # A hold on a subject whose name is lost covers everything: first and last are None then.
    private.hold(seq, subject=subject, first=event.first, last=event.last)
