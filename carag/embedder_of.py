"""Which embedder a store has: one for all its days, or its vectors could not be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.errors import InvalidArgument
from carag.retrieval import DEFAULT_EMBEDDER, embedder_by_name

if TYPE_CHECKING:
    from carag.corpus.store import CorpusStore
    from carag.retrieval import Embedder

__all__ = ["embedder_of"]


def embedder_of(store: CorpusStore, wanted: str | Embedder | None) -> Embedder:
    """Take the store's own embedder, or for a new store the one wanted; never two in one store."""
    kept = store.meta_get("embedder")
    if wanted is None:
        wanted = kept or DEFAULT_EMBEDDER
    chosen = embedder_by_name(wanted) if isinstance(wanted, str) else wanted
    if kept is None:
        store.meta_update({"embedder": chosen.name, "embedder_fingerprint": chosen.fingerprint})
    elif (kept, store.meta_get("embedder_fingerprint")) != (chosen.name, chosen.fingerprint):
        raise InvalidArgument(
            f"the store was written with {kept!r}, and its vectors cannot be compared with those of "
            f"{chosen.name!r}; leave the embedder out, or ingest into a new store"
        )
    return chosen
