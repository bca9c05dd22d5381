"""Loads on an engine without transactions: versions of the next epoch, and a note of how far they are written.

A load is a batch written in many steps. Its versions belong to the next epoch, which nothing asks for yet; the note of
what is under way has the load's position and the register that will hold. So each block takes two writes, and a block
whose second write was lost is written over itself.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from carag.backends.loads import is_new, load_is_open, no_load
from carag.backends.protocol import Admitted
from carag.backends.versioned.backend import OPEN, VersionedBackend, batch_name
from carag.backends.versioned.register import BegunBatch, Load
from carag.backends.versioned.versions import Versions, check_rows, no_rows, row_keys
from carag.errors import InvalidArgument
from carag.policy import NEVER as LAST_MINUTE
from carag.policy import Mask, Policy
from carag.policy.mask import ANY_AUDIENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.backends.protocol import IndexState, Rows
    from carag.backends.versioned.register import Register


class VersionedLoads(VersionedBackend):
    """A :class:`VersionedBackend` that is a :class:`~carag.backends.LoadingBackend`."""

    def loaded(self, batch: str) -> int | None:
        """See :class:`~carag.backends.LoadingBackend`."""
        name = batch_name(batch)
        current, opened, done = self._current(OPEN, name)
        if done and int(done) <= current.epoch:
            return None
        load = _own(BegunBatch.read(opened), name, current)
        return 0 if load is None else load.position

    def load(self, rows: Rows, *, batch: str, begin: int, end: int) -> None:
        """See :class:`~carag.backends.LoadingBackend`."""
        name = batch_name(batch)
        with self._writing:
            current, opened, done = self._current(OPEN, name)
            if done and int(done) <= current.epoch:
                return
            load = _own(BegunBatch.read(opened), name, current)
            if load is None and begin > 0:
                raise no_load()
            if load is None:
                register = current._replace(epoch=current.epoch + 1, dim=current.dim or rows.vectors.shape[1])
                self._tidy(current, opened)
                self._prepare(register.dim)
                load = Load(0, register)
                self._note(name, load)
            if is_new(load.position, begin, end):
                self._write_block(name, load, rows, end, current)

    def _write_block(self, name: str, load: Load, rows: Rows, end: int, current: Register) -> None:
        check_rows(rows, load.register.dim)
        if len(self._live(rows.keys.tolist(), current).e0):
            raise InvalidArgument("a key of the load is in use; delete its row first, or relabel it")
        nothing = Versions.of(no_rows(load.register.dim), 0)
        grown = self._following(load.register, rows, nothing)._replace(epoch=load.register.epoch)
        if len(rows.keys):
            self._put(Versions.of(rows, grown.epoch))
        self._note(name, Load(end, grown))

    def _note(self, name: str, load: Load) -> None:
        self._keep_texts({OPEN: BegunBatch(load.register.epoch, name, load).text()})

    def count_loaded(self, batch: str) -> int:
        """See :class:`~carag.backends.LoadingBackend`."""
        load, current = self._open(batch)
        words = tuple(load.register.words)
        if not words:
            return 0
        # Any times, entity and audience: the latest ``as_of``, and an ``alive_at`` before every expiry.
        everything = Admitted(words, LAST_MINUTE, -1, None, (), None, Policy(Mask(), audiences=ANY_AUDIENCE))
        return self._counted(everything, load.register) - sum(current.rows)

    def get_loaded(self, keys: Sequence[int], *, batch: str) -> Rows:
        """See :class:`~carag.backends.LoadingBackend`."""
        load, _ = self._open(batch)
        found = self._live(row_keys(dict.fromkeys(keys)), load.register)
        is_loaded = found.e0 == load.register.epoch
        return type(found.rows)(*(column[is_loaded] for column in found.rows))

    def publish(self, batch: str) -> IndexState:
        """See :class:`~carag.backends.LoadingBackend`."""
        name = batch_name(batch)
        with self._writing:
            current, opened, done = self._current(OPEN, name)
            if done and int(done) <= current.epoch:
                return self._done(int(done), current)
            load = _own(BegunBatch.read(opened), name, current)
            if load is None:
                raise no_load()
            epoch = load.register.epoch
            sweep = current.sweep.moved(epoch, time.time(), self._keep)
            return self._confirm(name, load.register._replace(sweep=sweep))

    def unload(self) -> None:
        """See :class:`~carag.backends.LoadingBackend`."""
        with self._writing:
            current, opened = self._current(OPEN)
            left = BegunBatch.read(opened)
            if left.load_after(current) is not None:
                self._undo(current.epoch, left.name)
                self._drop_texts([OPEN])

    def _open(self, batch: str) -> tuple[Load, Register]:
        name = batch_name(batch)
        current, opened = self._current(OPEN)
        load = _own(BegunBatch.read(opened), name, current)
        if load is None:
            raise no_load()
        return load, current


def _own(opened: BegunBatch, name: str, current: Register) -> Load | None:
    """Return the load of this name, if it is open; refuse if another load is open."""
    load = opened.load_after(current)
    if load is not None and opened.name != name:
        raise load_is_open()
    return load
