"""CARAG: compliance-aware vector search with a native core, and a receipt for every answer.

:class:`Index` searches vectors and :class:`TextIndex` searches words, both under a policy; neither keeps an audit
record. :class:`Engine` answers questions over regulated documents: text that a person may not use for the stated
purpose never reaches that person, the model or a log.

Names are loaded on first use, so that ``Index`` needs only numpy, and ``carag.audit`` needs neither numpy nor the
native core. A name whose extra is not installed raises an error that names the extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.audit import Outcome as Outcome
    from carag.engine import Answer as Answer
    from carag.engine import Engine as Engine
    from carag.engine import Explanation as Explanation
    from carag.engine import Retrieval as Retrieval
    from carag.index import Index as Index
    from carag.index import TextIndex as TextIndex
    from carag.labelling.document import Document as Document
    from carag.policy import Mask as Mask
    from carag.policy import Policy as Policy
    from carag.policy import PolicyBit as PolicyBit
    from carag.policy import Session as Session
    from carag.policy import policy_word as policy_word
    from carag.service.client import AsyncClient as AsyncClient
    from carag.service.client import Client as Client
else:
    _on_first_use, __dir__, __all__ = lazily(
        __name__,
        {
            "audit": "Outcome",
            "engine": "Answer Engine Explanation Retrieval",
            "index": "Index TextIndex",
            "labelling.document": "Document",
            "policy": "Mask Policy PolicyBit Session policy_word",
            "service.client": "AsyncClient Client",
        },
    )

    def __getattr__(name: str) -> Any:
        try:
            return _on_first_use(name)
        except ModuleNotFoundError:
            from carag.extras import require

            require(f"carag.{name}", "engine")
            raise


__version__ = "0.3.0"
