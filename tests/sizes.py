"""How much a run of the tests tries: little by default, all that a release needs, or ten times that.

``scripts/test`` sets ``CARAG_TEST_SIZE``; a plain ``pytest`` is ``quick``.
"""

from __future__ import annotations

import os

SIZES = {"quick": 0.2, "release": 1.0, "full": 10.0}
SIZE = os.environ.get("CARAG_TEST_SIZE", "quick")


def examples(release: int, *, least: int = 5) -> int:
    """Return how many examples this run draws where a release draws ``release``; never fewer than ``least``."""
    return max(min(least, release), int(release * SIZES[SIZE]))
