"""CARAG: compliance-aware vector search with a native core, and a receipt for every answer.

:class:`Index` searches vectors and :class:`TextIndex` words under a policy; neither keeps an audit record.
:class:`Engine` answers questions over regulated documents: text that a person may not use for the stated purpose never
reaches that person, the model or a log.

Names are loaded on first use, so that ``Index`` needs numpy alone and ``carag.audit`` neither numpy nor the native
core. A name whose extra is not installed raises an error that names the extra.
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
