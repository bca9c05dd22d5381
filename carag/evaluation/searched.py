"""Decide where the stores of a run are searched: each in its index file, or each in its own collection of a backend.

A run copies stores, attacks a copy and rebuilds others. Rows of two stores must not mix, so every store gets a
collection with a random name; it remains after the run, because a backend cannot drop one.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, Self

from carag.backends import Checked, backend_by_url
from carag.backends.urls import in_collection
from carag.engine.rows import NATIVE, leave_backend
from carag.index import Index
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from carag.backends import VectorBackend


class Searched:
    """Where stores are searched.

    - ``new``: returns the URL of an empty collection, or an empty backend, for each new store. By default every store
      is searched in its index file.
    """

    def __init__(self, new: Callable[[], str | VectorBackend] | None = None) -> None:
        self._new = new
        self._place: dict[Path, str | VectorBackend] = {}

    @classmethod
    def beside(cls, url: str | None) -> Self:
        """Search each store in its own collection next to the one that a URL names or, without a URL, in its file."""
        if url in (None, NATIVE):
            return cls()
        return cls(lambda: in_collection(str(url), f"bench{secrets.token_hex(8)}"))

    @classmethod
    def already(cls, store: Path, url: str | None) -> Self:
        """Search one store, and no other, where its rows are now; with None, in its file."""
        made = cls()
        if url is not None:
            made._place[store] = url
        return made

    @property
    def is_elsewhere(self) -> bool:
        """Whether new stores are searched in a backend."""
        return self._new is not None

    def is_in_backend(self, store: Path) -> bool:
        """Tell whether a store that has been opened is searched in a backend."""
        return store in self._place

    def settings(self, store: Path) -> dict[str, Any]:
        """Return the arguments of :meth:`carag.Engine.open` for searching a store there."""
        if store not in self._place and self._new is not None:
            with CorpusStore.open(store / "corpus.db", create=False) as copied:
                leave_backend(copied)  # its notes belong to the store it was copied from
            self._place[store] = self._new()
        return {"backend": self._place[store]} if store in self._place else {}

    @contextmanager
    def index(self, store: Path, corpus: CorpusStore, dim: int) -> Iterator[Index | Checked]:
        """Lend the index of a store that has been opened, whose open corpus store is ``corpus``."""
        place = self._place.get(store)
        if place is None:
            with Index.load(store / "index.carag") as index:
                yield index
            return
        with ExitStack() as resources:
            backend = (
                resources.enter_context(closing(backend_by_url(place))) if isinstance(place, str) else place
            )
            yield Checked(backend, corpus.labels, dim)
