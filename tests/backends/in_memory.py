"""An engine made of dictionaries that confirms one write at a time, and can be killed before or after any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from carag.backends.versioned import NEVER, Nearest, VersionedLoads, Versions, rows_from
from carag.errors import BackendUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable


class Store:
    """What is stored, for every connection; at write ``dies_at`` the engine dies."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.versions: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.writes = 0
        self.dies_at: float | None = None

    def write(self, do: Callable[[], None]) -> None:
        """Do one write; a death at ``n`` is before write ``n``, at ``n + 0.5`` after it but before its confirmation."""
        self.writes += 1
        if self.dies_at == self.writes:
            raise BackendUnavailable("killed")
        do()
        if self.dies_at == self.writes + 0.5:
            raise BackendUnavailable("killed")


class MemoryBackend(VersionedLoads):
    """Rows in a :class:`Store`."""

    _most_words = 64

    def __init__(self, store: Store, *, collection: str = "rows", keep: float | None = None) -> None:
        super().__init__(collection, "memory 1", keep)
        self.store = store
        self.asked = 0
        self.is_open = True

    def _prepare(self, dim):
        pass

    def _texts(self, *names):
        if not self.is_open:
            raise BackendUnavailable("closed")
        self.asked += 1
        return [self.store.texts.get(name, "") for name in names]

    def _keep_texts(self, texts):
        for name, text in texts.items():
            self.store.write(lambda name=name, text=text: self.store.texts.update({name: text}))

    def _drop_texts(self, names):
        for name in list(names):
            self.store.write(lambda name=name: self.store.texts.pop(name, None))

    def _put(self, versions):
        columns = [
            column.tolist() for column in (versions.rows.keys, *versions.rows[2:], versions.e0, versions.e1)
        ]
        for vector, (key, *fields) in zip(versions.rows.vectors, zip(*columns, strict=True), strict=True):
            new = {(key, fields[-2]): (key, vector, *fields)}
            self.store.write(lambda new=new: self.store.versions.update(new))

    def _end(self, versions, epoch):
        for at in zip(versions.rows.keys.tolist(), versions.e0.tolist(), strict=True):
            self._set(at, epoch)

    def _set(self, at, epoch):
        self.store.write(lambda: self.store.versions.update({at: (*self.store.versions[at][:8], epoch)}))

    def _drop(self, condition):
        for at, version in list(self.store.versions.items()):
            if condition(*version[7:]):
                self.store.write(lambda at=at: self.store.versions.pop(at, None))

    @property
    def beyond(self):
        return ()

    def _free(self):
        pass

    def _drop_after(self, epoch):
        self._drop(lambda e0, _: e0 > epoch)

    def _drop_ended(self, epoch):
        self._drop(lambda _, e1: e1 <= epoch)

    def _reopen_after(self, epoch):
        for at, version in list(self.store.versions.items()):
            if epoch < version[8] < NEVER:
                self._set(at, NEVER)

    def _live(self, keys, register):
        wanted = set(keys)
        return Versions.listed(
            [one for one in self._holding(register.epoch) if one[0] in wanted], register.dim
        )

    def _holding(self, epoch):
        return [one for one in list(self.store.versions.values()) if one[7] <= epoch < one[8]]

    def _admitted(self, admitted, epoch):
        allowed, denied = admitted.allow_entities, admitted.deny_entities
        return [
            one
            for one in self._holding(epoch)
            if one[2] in admitted.words
            and one[3] <= admitted.as_of
            and one[4] > admitted.alive_at
            and (allowed is None or one[5] in allowed)
            and one[5] not in denied
            and (admitted.audiences is None or one[6] in admitted.audiences)
        ]

    def _counted(self, admitted, register):
        return len(self._admitted(admitted, register.epoch))

    def _nearest(self, queries, k, admitted, register):
        rows = self._admitted(admitted, register.epoch)
        keys, scores, named = [], [], {}
        for query in queries:
            found = sorted((-float(np.dot(query, row[1])), row[0], row) for row in rows)[:k]
            keys.append([key for _, key, _ in found])
            scores.append([-distance for distance, _, _ in found])
            named.update({key: row for _, key, row in found})
        return Nearest(keys, scores, rows_from(list(named.values()), register.dim))

    def close(self):
        self.is_open = False
