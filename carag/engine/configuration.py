"""Append a record when the engine opens with a policy table or models that differ from the last ones recorded.

The same for the store's labels: if they are not those that the last record names, the store opens only on demand.

The last record of each kind is found by a note in the store that holds its number, and then read. An altered note can
have a record left out or written twice; but every answer names its own table, models and state as well.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from carag.audit import Access, IndexChange, Ingest, ModelChange, PolicyChange
from carag.errors import CorruptFile, InvalidArgument
from carag.policy import known_at_microseconds
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from pathlib import Path

    from carag.audit import AuditLog, Event, Models
    from carag.engine.state import StoreState

__all__ = ["ConfigurationLog", "record_trust"]

_RECORDED_ROOT: Final = "recorded_snapshot"
"""The store's note of the last recorded root hash of the state, in hexadecimal."""
_RECORDED_INSTANT: Final = "recorded_known"
"""The store's note of the instant of that state, in microseconds since 1970."""
_TRUSTED: Final = "TRUSTED"
_WITHDRAWN: Final = "UNTRUSTED"
"""What a record says of ``module:factory``, in front of it."""

_Change = TypeVar("_Change", PolicyChange, ModelChange, IndexChange)


class ConfigurationLog:
    """Writes a record where table, models or labels are not those that the last record of the kind names.

    Parameters
    ----------
    log : AuditLog
    store : CorpusStore
    """

    def __init__(self, log: AuditLog, store: CorpusStore) -> None:
        self._log = log
        self._store = store

    def policy(self, table: bytes, *, at: int, accept: bool = True) -> None:
        """Record the table, unless it is the last one recorded.

        Raises
        ------
        CorruptFile
            If it is another, and ``accept`` is false: it was changed in the store, and not by a command.
        """
        last = self._last(PolicyChange)
        if last is None or last.table != table:
            if last is not None and not accept:
                raise CorruptFile(
                    f"the policy in {self._store.path} is not the one on record: it was changed outside, or put back "
                    "to an earlier copy; restore the newest backup, or put one in force, on record: carag policy apply "
                    f"FOLDER --store {self._store.path.parent}"
                )
            before, why = (None, "FIRST_TABLE") if last is None else (last.table, "TABLE_CHANGED")
            self._append(PolicyChange(at=at, table=table, before=before, why=why))

    def models(self, models: Models, *, gate: int, at: int) -> None:
        """Record models, prompt and gate, unless they are the last ones recorded."""
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

    def trust(self, factory: str, *, withdrawn: bool, at: int) -> None:
        """Record that code of the user's own is trusted to make the embedder, or no longer.

        The note of the last models stays where it is, for neither models nor gate change.

        Raises
        ------
        InvalidArgument
            If the store was never opened, or the name is too long for a record.
        """
        last = self._last(ModelChange)
        if last is None:
            raise InvalidArgument(
                f"{self._store.path} was never opened with its embedder; ingest something first"
            )
        why = f"{_WITHDRAWN if withdrawn else _TRUSTED}:{factory}"
        self._log.append(replace(last, at=at, before=last.models, before_gate=last.gate, why=why))

    def labels(self, state: StoreState, *, accept: bool, rows: int, at: int) -> None:
        """Compare the store's labels with the state that the last record names.

        Parameters
        ----------
        state : StoreState
            Brought up to the store.
        accept : bool
            Whether labels that lead to another state are recorded instead of refused.
        rows, at : int
            For the record: rows in the index, and microseconds since 1970.

        Raises
        ------
        CorruptFile
            If they were changed outside, or are those of an earlier copy.
        """
        number, recorded, known_at = self._last_state(self._store.known())
        # The state of an earlier instant is computed only if the present one is not on record, as after a killed run.
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

    def is_recorded(self, state: StoreState) -> bool:
        """Tell whether a record names this index state."""
        return self._store.meta_get(_RECORDED_ROOT) == state.root.hex()

    def recorded(self, state: StoreState) -> None:
        """Note that a record names this index state."""
        self._store.meta_update({_RECORDED_ROOT: state.root.hex(), _RECORDED_INSTANT: str(state.known_at)})

    def _last_state(self, known: int) -> tuple[int, bytes | None, int]:
        """Find the newest record that names a state: its number, the root, and of which instant it was.

        A question about the past names an earlier state, and is passed over. A record of a change does not say its
        instant, but a note does: another instant there gives another root, so an altered note is found out.
        """
        for number in reversed(range(self._log.size)):
            event = self._log.record(number).event
            if isinstance(event, (Ingest, IndexChange)):
                noted = self._store.meta_get(_RECORDED_INSTANT) or ""
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


def record_trust(log: AuditLog, directory: Path, factory: str, *, withdrawn: bool = False) -> None:
    """Record in a store's log what :meth:`ConfigurationLog.trust` says, now."""
    with CorpusStore.open(directory / "corpus.db", create=False) as store:
        at = known_at_microseconds(datetime.now(UTC))
        ConfigurationLog(log, store).trust(factory, withdrawn=withdrawn, at=at)


def _note(kind: type[Event]) -> str:
    return f"recorded_{kind.KINDS[0].value}"
