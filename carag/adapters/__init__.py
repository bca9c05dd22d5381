"""Use an engine from LangChain, LlamaIndex, Haystack or MCP: each module only converts, and decides nothing.

Server code binds an engine and a session; a model supplies only the question. Import the module that you use; its extra
has the same name: ``langchain``, ``llamaindex``, ``haystack``, ``mcp``.
"""

from __future__ import annotations

from carag.adapters.binding import Binding, Source

__all__ = ["Binding", "Source"]
