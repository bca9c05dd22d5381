"""Read the patterns by which follow-ups are read, which are data: ``follow_up.tsv``."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TypeAlias

Place: TypeAlias = tuple[int, int]  # the start and end of some words in a question


def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of the table.

    Examples
    --------
    >>> pattern("BOTH").search("Did it grow?")[0]
    'grow'
    """
    return re.compile(_table()[name])


@cache
def _table() -> dict[str, str]:
    text = files("carag").joinpath("retrieval", "reading", "follow_up.tsv").read_text("utf-8")
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, expression = line.partition("\t")
            found[name] = re.sub(r"\{([A-Z_]+)\}", lambda said: found[said[1]], expression)
    return found
