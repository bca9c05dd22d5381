"""What is in force, on record: whenever an engine opens under another policy table or other models than the log knows.

The last record of each kind is found by a note in the store that holds its number, and then read. Whoever alters the
note can have a record left out or written twice; but every answer names its own table, models and state besides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from carag.audit import IndexChange, ModelChange, PolicyChange

if TYPE_CHECKING:
    from carag.audit import AuditLog, Event, Models
    from carag.corpus import CorpusStore

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

    def index(self, snapshot: bytes, *, before: bytes, rows: int, at: int) -> None:
        """Put an index state on record that no new document explains."""
        self._append(IndexChange(at=at, snapshot=snapshot, before=before, rows=rows, why="INDEX_CHANGED"))

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
