"""What is in force, on record: whenever an engine opens under another policy table or other models than the log knows.

The last record of each kind is found by a note in the store that holds its number, and then read. Whoever alters the
note can have a record left out or written twice; but every answer names its own table, models and state besides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from carag.audit import Access, IndexChange, Ingest, ModelChange, PolicyChange
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from carag.audit import AuditLog, Event, Models
    from carag.corpus.store import CorpusStore
    from carag.snapshot import Snapshot

__all__ = ["InForce"]

_Change = TypeVar("_Change", PolicyChange, ModelChange, IndexChange)


class InForce:
    """Writes a record where what is in force is not what the last record of its kind says.

    Parameters
    ----------
    log : AuditLog
    store : CorpusStore
    """

    def __init__(self, log: AuditLog, store: CorpusStore) -> None:
        self._log = log
        self._store = store

    def policy(self, table: bytes, *, at: int) -> None:
        """Put the table on record, if it is not."""
        last = self._last(PolicyChange)
        if last is None or last.table != table:
            before, why = (None, "FIRST_TABLE") if last is None else (last.table, "TABLE_CHANGED")
            self._append(PolicyChange(at=at, table=table, before=before, why=why))

    def models(self, models: Models, *, gate: int, at: int) -> None:
        """Put models, prompt and gate on record, if they are not."""
        last = self._last(ModelChange)
        if last is None or (last.models, last.gate) != (models, gate):
            self._append(
                ModelChange(
                    at=at,
                    models=models,
                    gate=gate,
                    before=None if last is None else last.models,
                    before_gate=None if last is None else last.gate,
                    why="FIRST_MODELS" if last is None else "MODELS_CHANGED",
                )
            )

    def labels(self, state: Snapshot, *, accept: bool, rows: int, at: int) -> None:
        """Compare the store's labels with the state that the last record names.

        Parameters
        ----------
        state : Snapshot
            Up to the store.
        accept : bool
            Whether labels that lead elsewhere are put on record, instead of refused.
        rows, at : int
            For the record: rows in the index, and microseconds since 1970.

        Raises
        ------
        CorruptFile
            If they were changed outside, or are those of an earlier copy.
        """
        number, recorded, known_at = self._last_state(self._store.known())
        # The state of an earlier instant is made only where the present one is not on record, as after a killed run.
        if recorded is None or recorded == state.root or recorded == state.root_at(known_at):
            return
        if not accept:
            raise CorruptFile(
                f"the labels in {self._store.path} are not those that record {number} names: they were changed "
                "outside, or put back to an earlier copy; restore the newest backup, or accept them, on record, with: "
                f"carag audit accept --labels --store {self._store.path.parent}"
            )
        self._append(
            IndexChange(at=at, snapshot=state.root, before=recorded, rows=rows, why="LABELS_ACCEPTED")
        )
        self.recorded(state)

    def recorded(self, state: Snapshot) -> None:
        """Note that a record names the state as it is."""
        notes = {"recorded_snapshot": state.root.hex(), "recorded_known": str(state.known_at)}
        self._store.meta_update(notes)

    def _last_state(self, known: int) -> tuple[int, bytes | None, int]:
        """Find the newest record that names a state: its number, the root, and of which instant it was.

        A question about the past names a state of then, and is passed over. A record of a change does not say its
        instant, but a note does: whoever alters the note makes the root another, and is found out.
        """
        for number in reversed(range(self._log.size)):
            event = self._log.record(number).event
            if isinstance(event, (Ingest, IndexChange)):
                noted = self._store.meta_get("recorded_known") or ""
                return number, event.snapshot, int(noted) if noted.isdecimal() else known
            if isinstance(event, Access) and event.index is not None and event.index.known_at == known:
                return number, event.index.snapshot, known
        return 0, None, known

    def _append(self, change: PolicyChange | ModelChange | IndexChange) -> None:
        receipt = self._log.append(change)
        self._store.meta_set(_note(type(change)), str(receipt.seq))

    def _last(self, kind: type[_Change]) -> _Change | None:
        noted = self._store.meta_get(_note(kind))
        if noted is None or not noted.isdecimal() or int(noted) >= self._log.size:
            return None
        event = self._log.record(int(noted)).event
        return event if isinstance(event, kind) else None


def _note(kind: type[Event]) -> str:
    return f"recorded_{kind.KINDS[0].value}"
