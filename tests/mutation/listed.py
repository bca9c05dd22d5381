"""Read a list of mutants made by hand, and judge what became of them.

A mutant is [what is broken, the text as found, what it becomes], and, for one that means the same, the reason why it
does. The text stands exactly once in its file. ``tests`` are those that should notice.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one file, and the tests that should notice it."""

    file: str
    tests: tuple[str, ...]
    name: str
    found: str
    becomes: str
    same: str = ""
    """Why it means the same, where it does."""
    needs: str = ""
    """The kernel without which it cannot be run."""


class Outcome(StrEnum):
    """What became of a mutant; the first three are as they should be."""

    KILLED = "killed"
    SAME = "mean the same"
    ELSEWHERE = "not run here"
    SURVIVED = "survived"
    DIFFERS = "does not mean the same"


def read(path: Path, root: Path) -> list[Mutant]:
    """Read a list whose files are relative to ``root``, and see that it fits them."""
    mutants = [
        Mutant(block["name"], tuple(block["tests"]), *mutant, needs=block.get("needs", ""))
        for block in tomllib.loads(path.read_text())["file"]
        for mutant in block["mutants"]
    ]
    for one in mutants:
        if (times := (root / one.file).read_text().count(one.found)) != 1:
            raise ValueError(f"{one.file}: {one.name}: found {times} times, wanted once: {one.found!r}")
    return mutants


def outcome(mutant: Mutant, *, is_noticed: bool) -> Outcome:
    """Judge a mutant by whether a test noticed it."""
    if is_noticed:
        return Outcome.DIFFERS if mutant.same else Outcome.KILLED
    return Outcome.SAME if mutant.same else Outcome.SURVIVED


def counted(outcomes: list[Outcome]) -> str:
    """Count the outcomes there are, in a line."""
    many = Counter(outcomes)
    return ", ".join(f"{many[one]} {one}" for one in Outcome if many[one])


def unexplained(results: list[tuple[Mutant, Outcome]]) -> list[str]:
    """Name those that no test notices, and those of which the reason is wrong."""
    wrong = {Outcome.SURVIVED, Outcome.DIFFERS}
    return [f"{one.file}: {one.name}: {outcome}" for one, outcome in results if outcome in wrong]
