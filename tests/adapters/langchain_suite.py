"""LangChain's own suites over our classes, unmodified; ``test_langchain_suite.py`` runs them in another process."""

from __future__ import annotations

from tempfile import mkdtemp
from typing import Any

import pytest
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from carag import Document, Engine, Index, Mask, Session, policy_word
from carag.adapters.langchain import CaragRetriever
from carag.adapters.unaudited import UnauditedVectorStore
from tests.engine.documents import Counting

ENGINE = Engine.open(mkdtemp(), profile="generic", embedder=Counting())
"""Never closed, as often in notebooks."""
ENGINE.add(Document(id=f"d/{n}", text=f"Branches report on day {n}.", bits=()) for n in range(9))


class TestRetriever(RetrieversIntegrationTests):
    """Five tests: number by constructor and by call, sync and async, and none of them replaced."""

    @property
    def retriever_constructor(self) -> type[CaragRetriever]:
        return CaragRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"engine": ENGINE, "session": Session(role="public", purpose="read")}

    @property
    def retriever_query_example(self) -> str:
        return "When do branches report?"


class TestUnauditedVectorStore(VectorStoreIntegrationTests):
    """Every test of the suite for stores, sync and async."""

    @pytest.fixture
    def vectorstore(self) -> UnauditedVectorStore:
        embedding = self.get_embeddings()
        return UnauditedVectorStore(Index(6), embedding, Mask(), words=lambda _: policy_word(0))
