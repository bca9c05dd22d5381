"""Read a collection of Qdrant, from a server or from a copy of a local folder, in which the client writes."""

from __future__ import annotations

from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carag.adopting.sources.port import AT_ONCE, Opened, Row, chosen, copied
from carag.backends.qdrant import connected_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.adopting.sources.port import Wanted

_LOCAL = 20_000
"""Points asked of a local folder at a time, because its client goes through all of them each time."""


@contextmanager
def opened(place: Path | str, asked: str, wanted: Wanted) -> Iterator[Opened]:
    """Open ``qdrant:FOLDER`` or ``qdrant://HOST:PORT/COLLECTION``."""
    from qdrant_client import QdrantClient

    with copied(place) if isinstance(place, Path) else nullcontext(place) as where:
        if isinstance(place, Path):
            client, name, at_once = QdrantClient(path=where), None, _LOCAL
        else:
            (client, name), at_once = connected_to(where), AT_ONCE
        with closing(client):
            name = name or chosen(asked, [one.name for one in client.get_collections().collections])
            yield Opened(f"qdrant:{name}", _rows(client, name, wanted, at_once))


def _rows(client: Any, name: str, wanted: Wanted, at_once: int) -> Iterator[Row]:
    after = None
    while True:
        points, after = client.scroll(name, limit=at_once, offset=after, with_vectors=True, with_payload=True)
        for point in points:
            fields = dict(point.payload or {})
            vector = point.vector.get(wanted.vector) if isinstance(point.vector, dict) else point.vector
            yield Row(point.id, fields.pop(wanted.text, None), vector, fields)
        if after is None:
            return
