"""Use an engine from LangChain, LlamaIndex, Haystack or MCP: each module converts, and decides nothing.

Server code binds an engine and a session; a model gives the question alone. Import the module that you use, whose extra
has its name: ``langchain``, ``llamaindex``, ``haystack``, ``mcp``.
"""

from __future__ import annotations

from carag.adapters.binding import Binding, Source

__all__ = ["Binding", "Source"]
