"""Measure how much of a log no anchor has confirmed yet (its exposure), and limit it.

Records after the newest confirmed checkpoint are exposed: an owner of the machine and the key could still rewrite them
unnoticed. ``anchor`` records do not count: otherwise each anchoring of an idle log would make another anchoring
necessary.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from carag.errors import InvalidArgument


class Standing(StrEnum):
    """The state of a log with respect to its anchors."""

    NO_ANCHOR = "no anchor"
    """No anchor is configured: only receipts kept outside prove anything against the log's own operator."""
    COVERED = "covered"
    """An anchor has confirmed every record that counts."""
    OPEN = "open"
    """Some records are exposed, within the window."""
    EXCEEDED = "exceeded"
    """Too many records are exposed, or for too long."""
    CONTRADICTED = "contradicted"
    """An anchor holds this log's signature on a different history."""


@dataclass(frozen=True, slots=True)
class Window:
    """The greatest exposure allowed.

    Parameters
    ----------
    seconds : float
        Maximum age allowed for the oldest exposed record.
    refuse : bool
        Whether to refuse further records beyond the window, so that no answer is given; otherwise warn.
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
        """Tell whether an exposure of this number and age exceeds the window."""
        return records > self.records or seconds > self.seconds


@dataclass(frozen=True, slots=True)
class Exposure:
    """A measurement of a log's exposure.

    Parameters
    ----------
    size : int
        Records in the log.
    anchored : int
        Records that the newest confirmed checkpoint covers.
    records : int
        Number of exposed records.
    seconds : float
        Age of the oldest exposed record.
    confirmed_at : int or None
        Time of the newest confirmation, in microseconds since 1970 UTC.
    failures : tuple of (place, reason)
        Anchors whose last attempt failed.
    """

    standing: Standing
    size: int
    anchored: int = 0
    records: int = 0
    seconds: float = 0.0
    confirmed_at: int | None = None
    failures: tuple[tuple[str, str], ...] = ()
