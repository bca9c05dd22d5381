"""Answer questions over one store, with every request on record: ``Engine`` and the results that it returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.engine.corpus import NO_EMBEDDER as NO_EMBEDDER
    from carag.engine.engine import Engine as Engine
    from carag.engine.factories import made_by_name as made_by_name
    from carag.engine.results import AddReport as AddReport
    from carag.engine.results import Answer as Answer
    from carag.engine.results import Explanation as Explanation
    from carag.engine.results import GateReport as GateReport
    from carag.engine.results import IngestReport as IngestReport
    from carag.engine.results import Retrieval as Retrieval
    from carag.engine.results import SyncReport as SyncReport
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "engine": "Engine",
            "corpus": "NO_EMBEDDER",
            "factories": "made_by_name",
            "results": "AddReport Answer Explanation GateReport IngestReport Retrieval SyncReport",
        },
    )
