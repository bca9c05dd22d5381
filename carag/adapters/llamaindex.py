"""Retrieve from LlamaIndex: ``CaragRetriever`` is a ``BaseRetriever`` bound to an engine and a session.

LlamaIndex passes question and nodes to every registered event handler and callback. This module registers none, but any
that your program registers see the passages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.adapters.binding import Binding, metadata_of
from carag.extras import require

require(__name__, "llamaindex")

from llama_index.core.base.base_retriever import BaseRetriever  # noqa: E402 - after the message that says what to install
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.adapters.binding import Source
    from carag.engine import Retrieval
    from carag.policy import Session

__all__ = ["CaragRetriever"]


class CaragRetriever(BaseRetriever):
    """Returns, as nodes, the passages that a session may use, in the engine's order.

    A call takes the question alone: the ``query_str`` of a ``QueryBundle``, not its embedding. A copied, pickled or
    loaded retriever has neither engine nor session, and refuses. Nodes are plain ``TextNode`` objects, because
    LlamaIndex would follow an ``IndexNode`` to the object it names; their metadata is excluded from models.

    Parameters
    ----------
    engine, client, session, k, strict, sink
        As :class:`carag.adapters.Binding` takes them: one of the first two, and a session that server code made.
    """

    def __init__(
        self,
        *,
        engine: Source | None = None,
        client: Source | None = None,
        session: Session | None = None,
        k: int = 8,
        strict: bool = False,
        sink: Callable[[Retrieval], object] | None = None,
    ) -> None:
        super().__init__()
        self._binding = Binding(
            self, engine=engine, client=client, session=session, k=k, strict=strict, sink=sink
        )

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._binding.retrieve(self, query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._binding.aretrieve(self, query_bundle.query_str))


def _nodes(found: Retrieval) -> list[NodeWithScore]:
    nodes = []
    for one in found.passages:
        metadata = metadata_of(found, one)
        hidden = {"excluded_llm_metadata_keys": [*metadata], "excluded_embed_metadata_keys": [*metadata]}
        node = TextNode(id_=one.chunk_id, text=one.text, metadata=metadata, **hidden)
        nodes.append(NodeWithScore(node=node, score=one.similarity))
    return nodes
