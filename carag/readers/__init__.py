"""Read a folder of ordinary files into documents: PDF, DOCX, HTML, Markdown, plain text and JSON Lines.

A room of its own: it knows nothing of stores, profiles or engines, and a classification is a field as any other here.
The parsers are the extra ``readers``.
"""

from __future__ import annotations

from carag.readers.folder import read_folder
from carag.readers.outcome import Fact, Problem, ProblemKind, ReadDocument

__all__ = ["Fact", "Problem", "ProblemKind", "ReadDocument", "read_folder"]
