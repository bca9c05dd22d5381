"""Measure how much of a log is known to no anchor yet, and say how much of that is allowed.

Records after the newest confirmed checkpoint are exposed: an owner of the machine and the key could still
rewrite them unseen. A :class:`Window` says how many, and for how long, is acceptable; past it the log warns or
refuses further records. The records of the anchorings themselves do not count: they repeat what the evidence
says, and counting them would never let a quiet log rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from carag.errors import InvalidArgument

__all__ = ["Exposure", "Standing", "Window"]


class Standing(StrEnum):
    """How a log stands towards its anchors."""

    NO_ANCHOR = "no anchor"
    """None is configured: against its own operator the log proves only what receipts outside prove."""
    COVERED = "covered"
    """Every record that counts is known outside."""
    OPEN = "open"
    """Some records are not yet, within the window."""
    EXCEEDED = "exceeded"
    """Too many, or for too long."""
    CONTRADICTED = "contradicted"
    """An anchor holds this log's signature on a history that is not this one."""


@dataclass(frozen=True, slots=True)
class Window:
    """How much may be exposed.

    Parameters
    ----------
    seconds : float
        Age of the oldest exposed record.
    records : int
        Number of exposed records.
    refuse : bool
        Past either: refuse further records, so that no answer leaves; otherwise warn.
    """

    seconds: float = 900.0
    records: int = 50_000
    refuse: bool = True

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.records > 0):
            raise InvalidArgument(
                f"an exposure window of {self.seconds} seconds and {self.records} records; want more than 0"
            )

    def exceeded_by(self, records: int, seconds: float) -> bool:
        """Say whether so much is too much."""
        return records > self.records or seconds > self.seconds


@dataclass(frozen=True, slots=True)
class Exposure:
    """A measurement.

    Parameters
    ----------
    standing : Standing
    size : int
        Records in the log.
    anchored : int
        Records the newest confirmed checkpoint covers.
    records : int
        Exposed records.
    seconds : float
        Age of the oldest of them.
    confirmed_at : int or None
        When the newest confirmation came, in microseconds since 1970 UTC.
    failures : tuple of (place, reason)
        Anchors whose last try failed.
    """

    standing: Standing
    size: int
    anchored: int = 0
    records: int = 0
    seconds: float = 0.0
    confirmed_at: int | None = None
    failures: tuple[tuple[str, str], ...] = ()
