"""Each adapter with the same handles: make it, ask it, await it, and every way to reach it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

QUESTION = "When do branches report?"


class Row(NamedTuple):
    """The parts of a document that are compared."""

    chunk_id: str
    score: float
    text: str
    record: int


class Face:
    """One adapter. An attacker's call gives the ids of what came out, or raises."""

    def make(self, **bound: Any) -> Any:
        raise NotImplementedError

    def ask(self, made: Any, question: str) -> list[Row]:
        raise NotImplementedError

    async def await_(self, made: Any, question: str) -> list[Row]:
        raise NotImplementedError

    def doors(self, made: Any) -> dict[str, Callable[[dict[str, Any]], list[str]]]:
        """Return by name the calls that take hostile parameters."""
        raise NotImplementedError


class Own(Face):
    """The engine itself, without a framework: the others are compared with it."""

    def make(self, **bound: Any) -> Any:
        return bound

    def ask(self, made: Any, question: str) -> list[Row]:
        source = made.get("engine") or made["client"]
        found = source.retrieve(question, made["session"], made.get("k", 8))
        return [Row(one.chunk_id, one.similarity, one.text, found.receipt.seq) for one in found.passages]

    async def await_(self, made: Any, question: str) -> list[Row]:
        return await asyncio.to_thread(self.ask, made, question)


class LangChain(Face):
    def __init__(self) -> None:
        from carag.adapters.langchain import CaragRetriever

        self.make = CaragRetriever  # type: ignore[method-assign]

    @staticmethod
    def rows(documents: list[Any]) -> list[Row]:
        return [
            Row(one.id, one.metadata["similarity"], one.page_content, one.metadata["carag.record"])
            for one in documents
        ]

    def ask(self, made: Any, question: str) -> list[Row]:
        return self.rows(made.invoke(question))

    async def await_(self, made: Any, question: str) -> list[Row]:
        return self.rows(await made.ainvoke(question))

    def doors(self, made: Any) -> dict[str, Callable[[dict[str, Any]], list[str]]]:
        from langchain_core.tools import create_retriever_tool

        tool = create_retriever_tool(made, "search", "Search.", response_format="content_and_artifact")
        call = {"type": "tool_call", "name": "search", "id": "1"}

        def ids(documents: list[Any]) -> list[str]:
            return [one.id for one in documents]

        return {
            "invoke": lambda given: ids(made.invoke(QUESTION, **given)),
            "ainvoke": lambda given: ids(asyncio.run(made.ainvoke(QUESTION, **given))),
            "batch": lambda given: ids(made.batch([QUESTION], **given)[0]),
            "bind": lambda given: ids(made.bind(**given).invoke(QUESTION)),
            "config": lambda given: ids(made.invoke(QUESTION, {"configurable": given, "metadata": given})),
            "configured": lambda given: ids(made.with_config(configurable=given).invoke(QUESTION)),
            "tool": lambda given: ids(tool.invoke({**call, "args": {"query": QUESTION, **given}}).artifact),
        }


class LlamaIndex(Face):
    def __init__(self) -> None:
        from carag.adapters.llamaindex import CaragRetriever

        self.make = CaragRetriever  # type: ignore[method-assign]

    @staticmethod
    def rows(nodes: list[Any]) -> list[Row]:
        return [Row(one.node_id, one.score, one.text, one.metadata["carag.record"]) for one in nodes]

    def ask(self, made: Any, question: str) -> list[Row]:
        return self.rows(made.retrieve(question))

    async def await_(self, made: Any, question: str) -> list[Row]:
        return self.rows(await made.aretrieve(question))

    def doors(self, made: Any) -> dict[str, Callable[[dict[str, Any]], list[str]]]:
        from llama_index.core.schema import QueryBundle
        from llama_index.core.tools import RetrieverTool

        tool = RetrieverTool.from_defaults(made)

        def ids(nodes: list[Any]) -> list[str]:
            return [one.node_id for one in nodes]

        return {
            "retrieve": lambda given: ids(made.retrieve(QUESTION, **given)),
            "aretrieve": lambda given: ids(asyncio.run(made.aretrieve(QUESTION, **given))),
            "_retrieve": lambda given: ids(made._retrieve(QueryBundle(QUESTION), **given)),
            "bundle": lambda given: ids(
                made.retrieve(QueryBundle(QUESTION, custom_embedding_strs=[json.dumps(given, default=str)]))
            ),
            "tool": lambda given: ids(tool.call(QUESTION, **given).raw_output),
            "atool": lambda given: ids(asyncio.run(tool.acall(QUESTION, **given)).raw_output),
        }


class Haystack(Face):
    def __init__(self) -> None:
        from carag.adapters.haystack import CaragRetriever

        self.make = CaragRetriever  # type: ignore[method-assign]

    @staticmethod
    def rows(given: dict[str, Any]) -> list[Row]:
        rows = [Row(one.id, one.score, one.content, one.meta["carag.record"]) for one in given["documents"]]
        assert {one.record for one in rows} <= {given["record"]}
        return rows

    def ask(self, made: Any, question: str) -> list[Row]:
        return self.rows(made.run(query=question))

    async def await_(self, made: Any, question: str) -> list[Row]:
        return self.rows(await made.run_async(query=question))

    def doors(self, made: Any) -> dict[str, Callable[[dict[str, Any]], list[str]]]:
        from haystack import Pipeline
        from haystack.tools import ComponentTool

        tool = ComponentTool(made, name="search", description="Search.")
        pipeline = Pipeline()
        pipeline.add_component("carag", self.make(**_again(made)))

        def ids(given: dict[str, Any]) -> list[str]:
            return [one.id for one in given["documents"]]

        return {
            "run": lambda given: ids(made.run(query=QUESTION, **given)),
            "run_async": lambda given: ids(asyncio.run(made.run_async(query=QUESTION, **given))),
            "tool": lambda given: ids(tool.invoke(query=QUESTION, **given)),
            "pipeline": lambda given: ids(
                pipeline.run({"carag": {"query": QUESTION, **given}}, include_outputs_from={"carag"})["carag"]
            ),
        }


def _again(made: Any) -> dict[str, Any]:
    """The arguments a component was made with: a component can be part of only one pipeline."""
    binding = made._binding
    return {"engine": binding._source, "session": binding._session, "k": binding.k}


FACES: dict[str, Callable[[], Face]] = {
    "engine": Own,
    "haystack": Haystack,
    "langchain": LangChain,
    "llamaindex": LlamaIndex,
}
