"""Keep the index state of a store up to date (:mod:`carag.audit.state.proof`), and prove passages in it."""

from __future__ import annotations

import hashlib
import secrets
import threading
from typing import TYPE_CHECKING, Final

from carag.audit import Access, Label, StateProof, StateTree, place
from carag.audit.tlog.merkle import HASH_SIZE
from carag.errors import CorruptFile
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from carag.audit import Record, StateView
    from carag.store.store import CorpusStore


_logger = logger(__name__)

_BATCH_LEAVES: Final = 200_000
"""How many leaves one transaction writes to the tree's file."""
_KEY_NOTE: Final = "state_key"
"""The store's note of the key of the seals, in hexadecimal."""


class StoreState:
    """The state at a store's last instant and, on demand, at earlier ones; its tree is kept at ``path``."""

    def __init__(self, store: CorpusStore, path: Path) -> None:
        self._store = store
        self._path = path
        self._lock = threading.RLock()
        self._tree = StateTree(path)
        self._store.labels.check_complete()
        self._key = self._store_key()
        self._past: tuple[int, StateView] | None = None

    @property
    def root(self) -> bytes:
        """Root hash over every open label: chunk id, text hash, word, window and audience."""
        return self._tree.view().root

    @property
    def known_at(self) -> int:
        """The instant of the state, in microseconds since 1970; -1 before the first."""
        return int(self._tree.note("known") or -1)

    def refresh(self, now: int | None = None) -> None:
        """Bring the state up to the store, or to an instant of its labels in microseconds."""
        with self._lock:
            known, now = self.known_at, self._store.known() if now is None else now
            named = hashlib.sha256(self._key).hexdigest()
            is_ours = self._tree.note("placed_by") == named and self._store.known(known) == known
            if not is_ours:
                if self._tree.note("known") is not None:
                    _logger.warning(
                        "%s belongs to another store, or to a state this one never had; building it again",
                        self._path,
                    )
                self._tree.clear()
                known = -1
            if known == now and is_ours:
                return
            self._past = None
            batch: dict[int, bytes | None] = {}
            for where, leaf in self._leaves(self._store.labels.changes(known, now)):
                if len(batch) == _BATCH_LEAVES:
                    # Until the last batch is written, the file names no store, so it is rebuilt after a kill in
                    # between.
                    self._tree.apply(batch, {"placed_by": ""})
                    batch = {}
                batch[where] = leaf
            self._tree.apply(batch, {"known": str(now), "placed_by": named})

    def root_at(self, known_at: int) -> bytes:
        """Return the root hash of the state at an instant in microseconds."""
        with self._lock:
            return self._view(known_at).root

    def prove(self, labels: Iterable[Label], known_at: int) -> tuple[bytes, list[StateProof]]:
        """Return the root of the state at an instant, and a proof of each label; CorruptFile if it lacks one."""
        with self._lock:
            view, proofs, proved = self._view(known_at), [], list(labels)
            paths = view.paths([place(self._key, label.chunk, label.since) for label in proved])
            for label, path in zip(proved, paths, strict=True):
                seal, leaf = label.seal_and_leaf(self._key)
                if (
                    leaf != path.leaf
                ):  # whose path leads to the root, because buckets are checked as they are read
                    raise CorruptFile(
                        f"the index state holds another label of {label.chunk} than the store; delete "
                        f"{self._path}, and the next opening builds it again from the store"
                    )
                proofs.append(StateProof(label.since, seal, path.siblings, path.sides))
            return view.root, proofs

    def chunk_ids(self, record: Record) -> tuple[str | None, ...]:
        """Find the chunk that each hit of a record names, or None, from log and store alone, without a receipt.

        The chunk of an erased passage has an id that begins with ``erased:``.
        """
        event, found = record.event, dict[int, str]()
        if isinstance(event, Access) and event.index is not None:
            for chunk, text_sha256, *_ in self._store.labels.snapshot(known_at=event.index.known_at):
                for at, hit in enumerate(record.hits):
                    if at not in found and (hit.is_of(chunk, text_sha256) or hit.digest == text_sha256):
                        found[at] = chunk
        return tuple(found.get(at) for at in range(len(record.hits)))

    def close(self) -> None:
        """Close the file."""
        self._tree.close()

    def _view(self, known_at: int) -> StateView:
        known, now = self._store.known(known_at), self.known_at
        if known == now:
            return self._tree.view()
        if self._past is None or self._past[0] != known:
            back = self._leaves(self._store.labels.changes(known, now), backwards=True)
            self._past = known, self._tree.view().with_changes(dict(back))
        return self._past[1]

    def _leaves(
        self, changes: Iterable[tuple[Any, ...]], *, backwards: bool = False
    ) -> Iterator[tuple[int, bytes | None]]:
        found = list(changes) if backwards else changes
        for is_open, *stated, where, leaf in sorted(found, key=lambda one: -one[0]) if backwards else found:
            at, whole = self.kept_of(stated) if where is None else (where, leaf)
            yield int.from_bytes(at), whole if is_open != backwards else None

    def kept_of(self, stated: Sequence[Any]) -> tuple[bytes, bytes]:
        """Return place and leaf of a label in the state, from the fields of a :class:`~carag.audit.Label`."""
        label = Label(*stated)
        return place(self._key, label.chunk, label.since).to_bytes(HASH_SIZE), label.leaf(self._key)

    def _store_key(self) -> bytes:
        """Return the store's key for the seals, made once and kept with the labels, which are equally secret."""
        if (kept := self._store.meta_get(_KEY_NOTE)) is None:
            self._store.meta_set(_KEY_NOTE, kept := secrets.token_hex(32))
        return bytes.fromhex(kept)
