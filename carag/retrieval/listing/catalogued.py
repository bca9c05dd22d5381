"""Define what lists and counts are made from: a store with the metadata of its documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from carag.retrieval.retriever import Searchable

if TYPE_CHECKING:
    from carag.retrieval.catalogue import Catalogue


class Catalogued(Searchable, Protocol):
    """A store with the metadata of its documents."""

    @property
    def catalogue(self) -> Catalogue:
        """The metadata."""
        ...
