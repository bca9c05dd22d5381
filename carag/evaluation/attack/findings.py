"""What an attack reports: a finding with what came and what was right, and the outcome of each check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a reader can learn and should not."""

    question: str
    came: str
    right: str
    sure: str = "certain: one such reply proves it"
    """How sure it is: certain, deterministic, or a p-value with the number of observations."""
    check: str = ""


class NotTried(Exception):
    """A check could not be made, and why; it is never counted as passed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one check: findings, nothing, or, if ``not_tried`` says why, no test."""

    check: str
    title: str
    findings: tuple[Finding, ...] = ()
    not_tried: str = ""
    requests: int = 0

    @property
    def state(self) -> str:
        """Return ``found``, ``not tried`` or ``nothing found``."""
        return "found" if self.findings else "not tried" if self.not_tried else "nothing found"


@dataclass(frozen=True, slots=True)
class Report:
    """An attack on one target."""

    target: str
    seed: int
    seconds: float
    requests: int
    outcomes: tuple[Outcome, ...] = field(repr=False)
    left: str = ""
    """Which planted documents remain, and why; empty if none does."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return all findings, in the order of the checks."""
        return tuple(finding for one in self.outcomes for finding in one.findings)

    @property
    def exit_code(self) -> int:
        """Return 1 if something was found, 2 if the first check could not be made, 0 otherwise."""
        return 1 if self.findings else 2 if self.outcomes[0].not_tried else 0


MOST_FINDINGS: Final = 3
"""Findings that one check reports; more of the same kind teach nothing."""
