"""CARAG: compliance-aware vector search with a native core, and a receipt for every answer.

:class:`Index` is the filtered vector index (keys and scores, unaudited), :class:`TextIndex` that of words.
:class:`Engine` answers questions over regulated documents, so that what a person may not use for this purpose never
reaches them, the model, or a log.

Names are loaded on first use: ``Index`` needs numpy alone, an auditor's ``carag.audit`` neither numpy nor the native
core, and a name whose extra is not installed says which one that is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from carag.audit import Outcome
    from carag.engine import Answer, Engine, Explanation, Retrieval
    from carag.index import Index, TextIndex
    from carag.labelling.document import Document
    from carag.policy import Mask, Policy, PolicyBit, Session, policy_word
    from carag.service.client import AsyncClient, Client

__version__ = "0.3.0"

__all__ = [
    "Answer",
    "AsyncClient",
    "Client",
    "Document",
    "Engine",
    "Explanation",
    "Index",
    "Mask",
    "Outcome",
    "Policy",
    "PolicyBit",
    "Retrieval",
    "Session",
    "TextIndex",
    "policy_word",
]

_HOMES = {
    "carag.audit": ("Outcome",),
    "carag.engine": ("Answer", "Engine", "Explanation", "Retrieval"),
    "carag.index": ("Index", "TextIndex"),
    "carag.labelling.document": ("Document",),
    "carag.policy": ("Mask", "Policy", "PolicyBit", "Session", "policy_word"),
    "carag.service.client": ("AsyncClient", "Client"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            try:
                return getattr(import_module(home), name)
            except ModuleNotFoundError:
                from carag.extras import require

                require(f"carag.{name}", "engine")
                raise
    raise AttributeError(f"module 'carag' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
