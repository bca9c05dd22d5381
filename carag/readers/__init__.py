"""Read a folder of ordinary files into documents: PDF, office files, HTML, e-mails, tables, text and JSON Lines.

This package knows nothing of stores, profiles or engines; to it, a classification is a field like any other. The
parsers come with the extra ``readers``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.readers.folder import read_folder as read_folder
    from carag.readers.outcome import Fact as Fact
    from carag.readers.outcome import Problem as Problem
    from carag.readers.outcome import ProblemKind as ProblemKind
    from carag.readers.outcome import ReadDocument as ReadDocument
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "folder": "read_folder",
            "outcome": "Fact Problem ProblemKind ReadDocument",
        },
    )
