"""Read a collection of Chroma from a copy of its folder, because the client writes to what it opens."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from carag.adopting.sources.port import AT_ONCE, Opened, Row, chosen, copied

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.adopting.sources.port import Wanted


@contextmanager
def opened(folder: Path, asked: str, _: Wanted) -> Iterator[Opened]:
    """Open a folder that a ``PersistentClient`` made."""
    import chromadb

    with copied(folder) as place:
        settings = chromadb.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(place, settings=settings)
        name = chosen(asked, [one.name for one in client.list_collections()])
        # Without an embedding function, which would be loaded, or downloaded.
        yield Opened(f"chroma:{name}", _rows(client.get_collection(name, embedding_function=None)))


def _rows(collection: Any) -> Iterator[Row]:
    for start in range(0, collection.count(), AT_ONCE):
        some = collection.get(limit=AT_ONCE, offset=start, include=["embeddings", "documents", "metadatas"])
        several = zip(some["ids"], some["documents"], some["embeddings"], some["metadatas"], strict=True)
        yield from (Row(id_, text, vector, dict(stated or {})) for id_, text, vector, stated in several)
