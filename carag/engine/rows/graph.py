"""Build the graph of a backend, once its rows are there."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from carag.backends import GraphBackend, backend_by_url
from carag.errors import InvalidArgument

__all__ = ["Built", "build_graph"]


class Built(NamedTuple):
    """A graph."""

    rows: int
    """Number of rows in it."""
    recall: float | None
    """Recall that the backend declares for its plan ``graph``."""


def build_graph(url: str, *, memory_mb: int | None = None) -> Built:
    """Make the backend at a URL build its graph: :class:`~carag.backends.GraphBackend`."""
    with closing(backend_by_url(url)) as place:
        if not isinstance(place, GraphBackend):
            raise InvalidArgument("this kind of backend does not build a graph; name one in PostgreSQL")
        place.build_graph(memory_mb=memory_mb)
        return Built(sum(shard.rows for shard in place.state().shards), place.capabilities.recall)
