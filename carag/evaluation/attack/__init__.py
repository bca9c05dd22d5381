"""Attack any retrieval system with documents planted in it, and report what got out: ``carag attack``.

A target is an object with ``add`` and ``search`` (:class:`Target`), or a service behind a mapping. Each check plants
documents of its own, first makes sure that it could fail, and says what came and what would have been right.
"""

from carag.evaluation.attack.findings import Finding, Outcome, Report
from carag.evaluation.attack.probe import QUICK, THOROUGH, Bounds
from carag.evaluation.attack.run import CHECKS, attack
from carag.evaluation.attack.target import Answer, Document, Found, Target, Where, vector_of

__all__ = [
    "CHECKS",
    "QUICK",
    "THOROUGH",
    "Answer",
    "Bounds",
    "Document",
    "Finding",
    "Found",
    "Outcome",
    "Report",
    "Target",
    "Where",
    "attack",
    "vector_of",
]
