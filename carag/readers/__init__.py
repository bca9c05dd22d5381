"""Read a folder of ordinary files into documents: PDF, DOCX, HTML, Markdown, plain text and JSON Lines.

This package knows nothing of stores, profiles or engines; to it, a classification is a field like any other. The
parsers come with the extra ``readers``.
"""

from __future__ import annotations

from carag.readers.folder import read_folder
from carag.readers.outcome import Fact, Problem, ProblemKind, ReadDocument

__all__ = ["Fact", "Problem", "ProblemKind", "ReadDocument", "read_folder"]
