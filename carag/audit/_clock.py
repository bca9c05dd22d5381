"""Read the system's clock in microseconds since 1970 UTC, the unit of every instant in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Returns microseconds since 1970 UTC."""


def system_clock() -> int:
    """Return the current time."""
    return time.time_ns() // 1000
