"""LlamaIndex's SimpleVectorStore: names in the metadata of nodes, and MetadataFilters in each query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
    VectorStoreQuery,
)

from carag.evaluation.attack import Document, Where, vector_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class target:  # noqa: N801 - the factory that a command names
    """One store in memory."""

    def __init__(self) -> None:
        self._store = SimpleVectorStore()

    def add(self, documents: Sequence[Document]) -> None:
        """Delete nodes of the same ids, and add them."""
        self.delete([one.id for one in documents])
        self._store.add(
            [
                TextNode(
                    id_=one.id,
                    text=one.text,
                    metadata={"audience": sorted(one.audience)},
                    embedding=vector_of(one.text).tolist(),
                )
                for one in documents
            ]
        )

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Query with a filter on the audience; without a reader, as a caller who gives none."""
        return self._found(query, k, None if as_whom is None else MetadataFilters(filters=[_has(as_whom)]))

    def search_where(self, query: str, k: int, as_whom: str, where: Where) -> list[tuple[str, float]]:
        """Nest the caller's filter below the one on the audience."""
        condition = FilterCondition.NOT if where.negated else FilterCondition.OR
        theirs = MetadataFilters(filters=[_has(name) for name in sorted(where.names)], condition=condition)
        return self._found(query, k, MetadataFilters(filters=[_has(as_whom), theirs]))

    def _found(self, query: str, k: int, filters: MetadataFilters | None) -> list[tuple[str, float]]:
        asked = VectorStoreQuery(vector_of(query).tolist(), similarity_top_k=k, filters=filters)
        found = self._store.query(asked)
        return list(zip(found.ids or [], found.similarities or [], strict=True))

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes."""
        self._store.delete_nodes(list(ids))


def _has(name: str) -> MetadataFilter:
    return MetadataFilter(key="audience", value=name, operator=FilterOperator.CONTAINS)
