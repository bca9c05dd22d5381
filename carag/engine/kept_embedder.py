"""Stand in for a store's embedder if nothing is embedded, so that no model, network or import is needed."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NoReturn

from carag.engine.sharing.corpus import open_corpus
from carag.errors import InvalidArgument
from carag.index import Index
from carag.limits import check_label

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from carag.store.store import CorpusStore


class _Chosen(Enum):
    NO_EMBEDDER = "no embedder"


NO_EMBEDDER: Final = _Chosen.NO_EMBEDDER
"""Value of ``embedder=`` for :meth:`carag.Engine.open` that opens a store to explain and administer, not to search."""


class KeptEmbedder:
    """What a store keeps about its embedder; it embeds nothing."""

    remote = False

    def __init__(self, store: CorpusStore, index_path: Path) -> None:
        self.name, self.fingerprint = _kept(store)
        self._store, self._index_path = store, index_path

    @property
    def dim(self) -> int:
        """The number of components of a vector, as stored."""
        if (dim := self._store.dim) is not None:
            return dim
        if not self._index_path.exists():
            raise InvalidArgument(
                f"{self._store.path} holds no passage and has no index; open it with its embedder, {self.name!r}"
            )
        index = Index.load(self._index_path)
        try:
            return index.dim
        finally:
            index.close()

    def embed_documents(self, texts: Sequence[str]) -> NoReturn:  # noqa: ARG002 - the port's name
        """Raise an error."""
        raise self._refusal()

    def embed_query(self, text: str) -> NoReturn:  # noqa: ARG002 - the port's name
        """Raise an error."""
        raise self._refusal()

    def _refusal(self) -> InvalidArgument:
        return InvalidArgument(
            f"this store was opened without its embedder; open it with {self.name!r} to search or to add"
        )


def embedder_kept_in(directory: Path) -> tuple[str, str]:
    """Return the name and the fingerprint of the embedder of a store that is only read."""
    with open_corpus(directory) as store:
        return _kept(store)


def _kept(store: CorpusStore) -> tuple[str, str]:
    name, fingerprint = store.meta_get("embedder"), store.meta_get("embedder_fingerprint")
    if name is None or fingerprint is None:
        raise InvalidArgument(f"{store.path} is new and has no embedder yet; ingest something first")
    check_label("the embedder that the store keeps", name)
    return name, fingerprint
