"""LangChain's InMemoryVectorStore: names in the metadata, and a function as the filter of each call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core import documents as langchain
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from carag.evaluation.attack import Document, Where, vector_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Words(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = vector_of(text).tolist()
        return vector


class target:  # noqa: N801 - the factory that a command names
    """One store."""

    def __init__(self) -> None:
        self._store = InMemoryVectorStore(_Words())

    def add(self, documents: Sequence[Document]) -> None:
        """Add documents; those of the same ids are replaced."""
        self._store.add_documents([_made(one) for one in documents])

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Search with a filter on the audience; without a reader, as a caller who gives none."""
        return self._found(
            query, k, None if as_whom is None else lambda row: as_whom in row.metadata["audience"]
        )

    def search_where(self, query: str, k: int, as_whom: str, where: Where) -> list[tuple[str, float]]:
        """Join the caller's filter to the one on the audience with ``and``."""

        def allowed(row: Any) -> bool:
            names = {*row.metadata["audience"]}
            return as_whom in names and bool(names & where.names) != where.negated

        return self._found(query, k, allowed)

    def _found(self, query: str, k: int, allowed: Any) -> list[tuple[str, float]]:
        found = self._store.similarity_search_with_score(query, k, filter=allowed)
        return [(one.id, score) for one, score in found]

    def delete(self, ids: Sequence[str]) -> None:
        """Delete documents."""
        self._store.delete(list(ids))


def _made(one: Document) -> Any:
    return langchain.Document(id=one.id, page_content=one.text, metadata={"audience": sorted(one.audience)})
