"""Say which passages hold the clause that answers a question on circulars, and which questions share a circular."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


HOME: Final = Path(__file__).parent
ENOUGH: Final = 2
"""A passage holds a clause if they share 1/2 of the clause's characters, or of the passage's."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the places that answer it alone; none where nothing in the circulars does."""

    id: str
    kind: str
    """``on``; ``near``: on the subject, and not answered; ``off``: on another subject."""
    question: str
    circular: str | None
    gold: tuple[tuple[str, int, int], ...]
    """Circular, start and end, in characters of its text: the clauses, and their twins in other circulars."""
    facts: tuple[str, ...]
    """Words of the clause that are the answer."""
    superseded: tuple[str, ...] = ()
    """Words of the circular that were the answer until the clause changed it."""

    @classmethod
    def of(cls, row: dict[str, Any]) -> Asked:
        """Read a line of ``questions.jsonl`` or ``fresh_questions.jsonl``."""
        own = [(row["circular"], start, end) for start, end in row["spans"]]
        twins = [(circular, start, end) for circular, start, end in row["also"]]
        return cls(
            row["id"],
            row["kind"],
            row["question"],
            row["circular"],
            (*own, *twins),
            tuple(row["facts"]),
            tuple(row.get("superseded", ())),
        )


def read_questions(path: Path = HOME / "questions.jsonl") -> list[Asked]:
    """Return the questions in the order of their file."""
    return [Asked.of(json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def holds(passage: tuple[str, int, int], gold: Iterable[tuple[str, int, int]]) -> bool:
    """Tell whether a passage holds one of the clauses: one rule for every system, found or cited.

    Examples
    --------
    >>> holds(("a", 0, 10), [("a", 5, 15)]), holds(("a", 0, 10), [("a", 6, 15)]), holds(("b", 0, 10), [("a", 0, 10)])
    (True, False, False)
    """
    circular, start, end = passage
    return any(
        circular == one and ENOUGH * (min(end, last) - max(start, first)) >= min(last - first, end - start)
        for one, first, last in gold
    )


def families(questions: Sequence[Asked]) -> dict[str, str]:
    """Return the family of each question, by its id: those whose clauses or twins share a circular are one.

    A question that nothing answers names no circular, and is a family of its own. A family's name is the least of its
    circulars, or the question's id.

    Examples
    --------
    >>> one = Asked("1", "on", "?", "b", (("b", 0, 1), ("a", 0, 1)), ("x",))
    >>> families([one, Asked("2", "on", "?", "a", (("a", 0, 1),), ("x",)), Asked("3", "off", "?", None, (), ())])
    {'1': 'a', '2': 'a', '3': '3'}
    """
    parent: dict[str, str] = {}

    def root(one: str) -> str:
        while parent.setdefault(one, one) != one:
            one = parent[one]
        return one

    for asked in questions:
        names = sorted({root(circular) for circular, _, _ in asked.gold} or {root(asked.id)})
        for other in names[1:]:
            parent[other] = names[0]
    return {one.id: root(one.gold[0][0] if one.gold else one.id) for one in questions}


def is_held_out(family: str) -> bool:
    """Tell whether a family belongs to the half that no choice was made on."""
    return bool(int(hashlib.sha256(family.encode()).hexdigest(), 16) % 2)
