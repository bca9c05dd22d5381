"""Read the patterns by which questions are read, which are data: ``patterns.tsv``."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TypeAlias

Place: TypeAlias = tuple[int, int]  # the start and end of some words in a question


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of the table.

    Examples
    --------
    >>> pattern("BOTH").search("Did it grow?")[0], pattern("count").match("How many are there?")[0]
    ('grow', 'How many')
    """
    return re.compile(_table()[name], re.IGNORECASE if name.islower() else 0)


@cache
def _table() -> dict[str, str]:
    text = files("carag").joinpath("retrieval", "reading", "patterns.tsv").read_text("utf-8")
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, expression = line.partition("\t")
            found[name] = re.sub("<<([A-Za-z_]+)>>", lambda one: f"(?:{found[one[1]]})", expression)
    return found
