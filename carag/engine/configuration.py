"""Know what is in force in a store, which other processes may change, and put every change of it on record.

A record is appended when the engine opens with a policy table or models that differ from the last ones recorded. Notes
in the store name the last record of each kind. Answers do not name their gate: putting the notes of gate and models
back to an earlier time puts that time's gate in force, and only reading the whole log shows it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from carag.audit import Access, Evaluation, IndexChange, Ingest, ModelChange, PolicyChange
from carag.engine.corpus import notes_of, open_corpus
from carag.engine.recorder import Rules
from carag.engine.results import GateReport
from carag.errors import MALFORMED, CorruptFile, InvalidArgument
from carag.policy import known_at_microseconds
from carag.store._notes import CHANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from carag.audit import AuditLog, Event, Models
    from carag.engine.collection import Collection
    from carag.engine.state import StoreState
    from carag.policy import Profile
    from carag.store.store import CorpusStore


_RECORDED_ROOT: Final = "recorded_snapshot"
"""The store's note of the last recorded root hash of the state, in hexadecimal."""
_RECORDED_INSTANT: Final = "recorded_known"
"""The store's note of the instant of that state, in microseconds since 1970."""
_GATE: Final = "gate"
"""The store's note of its calibrated gate, the canonical JSON that the record commits to; empty if it has none."""
_GATE_RECORD: Final = "gate_record"
"""The store's note of the number of the record that commits to the gate."""
GATE_SUITE: Final = "gate"
"""The suite's name in the record of a calibration."""
_BEGUN: Final = "policy_begun"
"""The store's note of a change of the policy that is not finished: the profile's notes and its table; else empty."""
_THE_KEPT: Final = frozenset({"GATE_CALIBRATED", "GATE_KEPT"})
"""Why models were recorded, if the gate in force is the one that the store keeps."""
_DRIFTED: Final = "GATE_DRIFTED"
"""Why models were recorded after the questions drifted: a stricter gate is in force in place of the store's."""
_SINCE_DRIFT: Final = frozenset({_DRIFTED, "DRIFTED_GATE_SET_ASIDE"})
_ASIDE: Final = frozenset({"GATE_SET_ASIDE", "DRIFTED_GATE_SET_ASIDE"})
_KEEPING: Final = _THE_KEPT | _ASIDE | {_DRIFTED}
"""Why models were recorded, if the store keeps a gate and a different one may have been given for one opening."""
_TRUSTED: Final = "TRUSTED"
_WITHDRAWN: Final = "UNTRUSTED"
"""Precedes ``module:factory`` in a record that withdraws trust."""

_Change = TypeVar("_Change", PolicyChange, ModelChange, IndexChange)


class ConfigurationLog:
    """Writes a record if table, models or labels are not those that the last record of the kind names."""

    def __init__(self, log: AuditLog, store: CorpusStore) -> None:
        self._log = log
        self._store = store

    @contextmanager
    def changing(self, at: int) -> Iterator[None]:
        """Let no other engine change or read what is in force; first finish any change that an ended process began."""
        with self._store.changing():
            self._log.checkpoint()  # which follows a log that other processes write
            if begun := self._store.meta_get(_BEGUN):
                self._finish(json.loads(begun), at)
            yield

    def put_in_force(self, profile: Profile, *, at: int) -> None:
        """Put a profile in force in every engine of this store, on record; only within :meth:`changing`.

        From the first note on, no request begins under the earlier profile: it waits in :meth:`changing`. The record
        comes before the notes that it commits to. If this process ends in between, the next engine finishes the change.
        """
        notes = notes_of(profile)
        if all(self._store.meta_get(name) == value for name, value in notes.items()):
            return
        begun: dict[str, Any] = {"notes": notes, "table": profile.table.sha256}
        change = f"begun {secrets.token_hex(16)}"
        self._store.meta_update({_BEGUN: json.dumps(begun), CHANGE: change})
        self._finish(begun, at)

    def _finish(self, begun: dict[str, Any], at: int) -> None:
        self.policy(bytes.fromhex(begun["table"]), at=at)
        change = f"done {secrets.token_hex(16)}"
        self._store.meta_update({**begun["notes"], _BEGUN: "", CHANGE: change})

    def policy(self, table: bytes, *, at: int, accept: bool = True) -> None:
        """Record the table unless the last record names it; CorruptFile if it names another and not ``accept``."""
        last = self._last(PolicyChange)
        if last is None or accept:
            if last is None or last.table != table:
                before, why = (None, "FIRST_TABLE") if last is None else (last.table, "TABLE_CHANGED")
                self._append(PolicyChange(at=at, table=table, before=before, why=why))
        elif last.table != table:
            raise CorruptFile(
                f"the policy in {self._store.path} is not the one on record: it was changed by another program, put "
                "back to an earlier copy, or shipped with another version of CARAG, which has opened the store "
                "since; restore the newest backup, use that version, or put a policy in force: carag policy apply "
                f"FOLDER --store {self._store.path.parent}"
            )

    def models(
        self,
        models: Models,
        *,
        gate: int,
        at: int,
        kept: GateReport | None = None,
        has_drifted: bool = False,
    ) -> None:
        """Record models, prompt, gate in millionths and whether the store keeps a gate, unless that is on record."""
        last, number = self._newest_models()
        was_drifted = kept is not None and self.has_drifted(kept)
        has_drifted |= was_drifted
        was_keeping = last is not None and last.why in _KEEPING
        if kept is not None:
            why = "GATE_KEPT" if kept.record < number else "GATE_CALIBRATED"
            if has_drifted:
                why = _DRIFTED if gate == kept.closed else "DRIFTED_GATE_SET_ASIDE"
            elif gate != kept.threshold:
                why = "GATE_SET_ASIDE"
        elif last is None:
            why = "FIRST_MODELS"
        else:
            why = "GATE_DROPPED" if was_keeping else "MODELS_CHANGED"
        is_other = last is None or (last.models, last.gate) != (models, gate)
        is_told = was_keeping == (kept is not None) and (kept is None or kept.record < number)
        is_told = is_told and has_drifted == was_drifted
        if is_other or not is_told or self._last(ModelChange) is None:
            self._append(
                ModelChange(
                    at=at,
                    models=models,
                    gate=gate,
                    before=None if last is None else last.models,
                    before_gate=None if last is None else last.gate,
                    why=why,
                )
            )

    def has_drifted(self, kept: GateReport) -> bool:
        """Tell whether a record says that the questions have drifted since a gate was calibrated."""
        last, number = self._newest_models()
        return last is not None and last.why in _SINCE_DRIFT and kept.record < number

    def gate(self, *, accept: bool = False) -> GateReport | None:
        """Return the gate calibrated on this store, or None; CorruptFile if it is not on record, unless ``accept``."""
        text, noted = (self._store.meta_get(name) or "" for name in (_GATE, _GATE_RECORD))
        last, number = self._newest_models()
        said = "MODELS_CHANGED" if last is None else last.why
        if not text and not noted and said not in _KEEPING:
            return None
        kept = self._evaluated(text, noted)
        # A calibration newer than the record of the models was killed before it wrote that record.
        if kept is not None and (
            kept.record > number
            or (said in _THE_KEPT and last is not None and last.gate == kept.threshold)
            or (said == _DRIFTED and last is not None and last.gate == kept.closed)
            or said in _ASIDE
        ):
            return kept
        if not accept:
            home = self._store.path.parent
            raise CorruptFile(
                f"the calibrated gate in {self._store.path} is not the one on record: it was changed or deleted "
                "by another program, or put back to an earlier copy; restore the newest backup, or drop it with: "
                f"carag audit accept --gate --store {home}, and calibrate it again with: carag gate calibrate"
            )
        self._store.meta_update({_GATE: "", _GATE_RECORD: ""})
        return None

    def keep_gate(self, text: bytes, record: int) -> GateReport:
        """Note a gate, as canonical JSON, and the record that commits to it; :meth:`models` records that it is kept."""
        report = GateReport.of(json.loads(text), record)
        with self._store.changing():
            self._store.meta_update(
                {_GATE: text.decode(), _GATE_RECORD: str(record), CHANGE: f"record {record}"}
            )
        return report

    def _evaluated(self, text: str, noted: str) -> GateReport | None:
        """Return the gate in a note if the record that it names commits to it."""
        if not noted.isdecimal() or int(noted) >= self._log.size:
            return None
        event = self._log.record(int(noted)).event
        if not isinstance(event, Evaluation) or event.suite != GATE_SUITE:
            return None
        if event.result != hashlib.sha256(text.encode()).digest():
            return None
        try:
            return GateReport.of(json.loads(text), int(noted))
        except MALFORMED as error:
            raise CorruptFile(
                f"{self._store.path} keeps a calibrated gate that this CARAG cannot read; use the CARAG that made it"
            ) from error

    def _newest_models(self) -> tuple[ModelChange | None, int]:
        """Return the last record of the models and its number, reading backwards if the store's note leads nowhere."""
        if (noted := self._last(ModelChange)) is not None and not _is_of_trust(noted):
            return noted, int(self._store.meta_get(_note(ModelChange)) or "")
        for number in reversed(range(self._log.size)):
            event = self._log.record(number).event
            if isinstance(event, ModelChange) and not _is_of_trust(event):
                return event, number
        return None, -1

    def trust(self, factory: str, *, withdrawn: bool, at: int) -> None:
        """Record that the user's code is trusted, or no longer trusted, to make the embedder; models and gate stay."""
        last = self._last(ModelChange)
        if last is None:
            raise InvalidArgument(
                f"{self._store.path} was never opened with its embedder; ingest something first"
            )
        why = f"{_WITHDRAWN if withdrawn else _TRUSTED}:{factory}"
        self._log.append(replace(last, at=at, before=last.models, before_gate=last.gate, why=why))

    def labels(self, state: StoreState, *, accept: bool, rows: int, at: int) -> None:
        """Compare the store's labels with the state last recorded; CorruptFile if they differ, unless ``accept``."""
        number, recorded, known_at = self._last_state(self._store.known())
        # An earlier state is computed only if the present state is not on record, such as after a killed run.
        if recorded is None or recorded == state.root or recorded == state.root_at(known_at):
            return
        if not accept:
            raise CorruptFile(
                f"the labels in {self._store.path} are not those that record {number} names: they were changed "
                "by another program, or put back to an earlier copy; restore the newest backup, or accept them with: "
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
        """Find the newest record that names a state; return its number, the root, and the instant of the state."""
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
        self._store.meta_update({_note(type(change)): str(receipt.seq), CHANGE: f"record {receipt.seq}"})

    def _last(self, kind: type[_Change]) -> _Change | None:
        noted = self._store.meta_get(_note(kind))
        if noted is None or not noted.isdecimal() or int(noted) >= self._log.size:
            return None
        event = self._log.record(int(noted)).event
        return event if isinstance(event, kind) else None


def record_trust(log: AuditLog, directory: Path, factory: str, *, withdrawn: bool = False) -> None:
    """Write to a store's log the record of :meth:`ConfigurationLog.trust`, as of now."""
    with open_corpus(directory) as store:
        at = known_at_microseconds(datetime.now(UTC))
        ConfigurationLog(log, store).trust(factory, withdrawn=withdrawn, at=at)


def _is_of_trust(change: ModelChange) -> bool:
    """Tell a record of trust, which says nothing about the gate, from a record of the models."""
    return change.why.partition(":")[0] in (_TRUSTED, _WITHDRAWN)


def _note(kind: type[Event]) -> str:
    return f"recorded_{kind.KINDS[0].value}"


class InForce:
    """What is in force in a store. Every part of an engine calls :meth:`keep_up` at the start of a public operation.

    - ``now``: returns the time in microseconds since 1970.
    - ``accept``: what the opening accepts; see :meth:`carag.Engine.open`.
    """

    take_gate: Callable[[GateReport | None], None]
    """Called to take over the gate that the store keeps after a change; an engine sets this once it has its parts."""

    def __init__(
        self,
        collection: Collection,
        configuration: ConfigurationLog,
        now: Callable[[], int],
        *,
        intents: bool,
        accept: frozenset[str],
    ) -> None:
        self._collection = collection
        self._configuration = configuration
        self._now = now
        self._intents = intents
        self._switching = threading.Lock()
        at = now()
        with configuration.changing(at):
            if "policy" in accept:
                configuration.put_in_force(collection.profile, at=at)
            self.rules = self._followed()
            is_expected = "policy" in accept or collection.profile.is_shipped
            configuration.policy(bytes.fromhex(self.rules.table.sha256), at=at, accept=is_expected)
            self.kept = configuration.gate(accept="gate" in accept)
            """How the gate that the store kept at the opening was calibrated; None if it kept none."""

    def keep_up(self) -> Rules:
        """Take over what other processes added and put in force; return what decides from now on."""
        if self._collection.keep_up() in (None, self.rules.change):
            return self.rules
        with self._switching:
            if self._collection.store.standing()[1] != self.rules.change:
                at = self._now()
                with self._configuration.changing(at):
                    rules = self._followed()
                    self._configuration.policy(bytes.fromhex(rules.table.sha256), at=at, accept=False)
                    kept = self._configuration.gate()
                self.take_gate(kept)
                self.rules = rules
            return self.rules

    def _followed(self) -> Rules:
        change, collection = self._collection.follow_profile(), self._collection
        return Rules.of(change, collection.profile, collection.catalogue.declared, intents=self._intents)
