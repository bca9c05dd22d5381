"""Keep documents in a bare ``carag.Index`` as a LangChain vector store, under one policy and without any record."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from carag.errors import InvalidArgument
from carag.extras import require
from carag.policy import Mask, Policy

require(__name__, "langchain")

from langchain_core.documents import Document  # noqa: E402 - after the message that says what to install
from langchain_core.vectorstores import VectorStore  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

    from langchain_core.embeddings import Embeddings

    from carag.index import Index

__all__ = ["UnauditedVectorStore"]


class UnauditedVectorStore(VectorStore):
    """Documents in memory, and their vectors and policy words in an index.

    **Nothing is recorded, callers are not identified, and there is no second test**: anyone who holds the store can
    read everything that its one policy admits. For any other use take :class:`carag.adapters.langchain.CaragRetriever`.
    The policy is fixed, and no call takes a filter: one that does is a ``TypeError``.

    Parameters
    ----------
    index : Index
        Empty; the store alone adds to it.
    embedding : Embeddings
        LangChain's; of the index's dimension.
    policy : Policy or Mask
        What may be found or read.
    words : callable
        Returns the policy word of each added document. If it raises, nothing is added.
    """

    def __init__(
        self,
        index: Index,
        embedding: Embeddings,
        policy: Policy | Mask,
        *,
        words: Callable[[Document], int],
    ) -> None:
        if len(index):
            raise InvalidArgument(
                f"the index holds {len(index)} rows, whose texts the store lacks; give an empty index"
            )
        if not isinstance(policy, Policy | Mask):
            raise InvalidArgument(f"policy is a {type(policy).__name__}; want a carag.Policy or a carag.Mask")
        self._index, self._embedding, self._words = index, embedding, words
        self._policy = Policy(policy) if isinstance(policy, Mask) else policy
        self._documents: dict[int, Document] = {}
        self._keys: dict[str, int] = {}
        self._lock = threading.RLock()

    @property
    def embeddings(self) -> Embeddings:
        """LangChain's embedding of texts."""
        return self._embedding

    def add_documents(
        self, documents: list[Document], *, ids: Sequence[str | None] | None = None
    ) -> list[str]:
        """Add documents; those with existing ids replace them."""
        given = [one.id for one in documents] if ids is None else [*ids]
        if len(given) != len(documents):
            raise InvalidArgument(
                f"{len(given)} ids were given for {len(documents)} documents; want one for each"
            )
        named = [one or str(uuid4()) for one in given]
        last = {
            name: Document(id=name, page_content=one.page_content, metadata=dict(one.metadata))
            for name, one in zip(named, documents, strict=True)
        }
        if not last:
            return []
        words = [self._words(one) for one in last.values()]
        vectors = self._embedding.embed_documents([one.page_content for one in last.values()])
        with self._lock:
            keys = self._index.add(vectors, words).tolist()
            self._forget([*last])  # only now, so that refused vectors remove no old documents
            self._documents.update(zip(keys, last.values(), strict=True))
            self._keys.update(zip(last, keys, strict=True))
        return named

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
    ) -> list[str]:
        """Add texts as documents."""
        held = [*texts]
        pairs = zip(held, metadatas or [{} for _ in held], strict=True)
        return self.add_documents([Document(page_content=text, metadata=one) for text, one in pairs], ids=ids)

    def delete(self, ids: list[str] | None = None) -> bool:
        """Delete documents; unknown ids are ignored. Without ids it is an error, and nothing is deleted."""
        if ids is None:
            raise InvalidArgument("ids is None; want the ids of the documents to delete")
        with self._lock:
            self._forget(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the given documents that the policy admits."""
        with self._lock:
            keys = [self._keys[one] for one in ids if one in self._keys]
            words = self._index.words(keys).tolist() if keys else []
            return [
                self._copy(key) for key, word in zip(keys, words, strict=True) if self._policy.admits(word)
            ]

    def similarity_search(self, query: str, k: int = 4) -> list[Document]:
        """Return the most similar documents that the policy admits."""
        return [document for document, _ in self.similarity_search_with_score(query, k)]

    def similarity_search_with_score(self, query: str, k: int = 4) -> list[tuple[Document, float]]:
        """Return the most similar documents that the policy admits, with their cosine similarities."""
        return self._search(self._embedding.embed_query(query), k)

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4) -> list[Document]:
        """Return the documents most similar to a vector."""
        return [document for document, _ in self._search(embedding, k)]

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str | None] | None = None,
        index: Index,
        policy: Policy | Mask,
        words: Callable[[Document], int],
    ) -> Self:
        """Make a store of texts."""
        store = cls(index, embedding, policy, words=words)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def _search(self, vector: list[float], k: int) -> list[tuple[Document, float]]:
        with self._lock:
            (hits,) = self._index.search([vector], k, self._policy)
            return [(self._copy(key), similarity) for key, similarity in hits]

    def _copy(self, key: int) -> Document:
        return self._documents[key].model_copy(deep=True)

    def _forget(self, ids: Iterable[str]) -> None:
        gone = [self._keys.pop(one) for one in dict.fromkeys(ids) if one in self._keys]
        if gone:
            self._index.delete(gone)
        for key in gone:
            del self._documents[key]
