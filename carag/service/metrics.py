"""Count requests for the second listener, in the text format of Prometheus: names from fixed lists, and no content.

Nothing that a person wrote, holds or may find is a label: not the subject, a role, a path or a message.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final

from carag.service.problems import TITLES

__all__ = ["OPERATIONS", "Metrics"]

OPERATIONS: Final = (
    "ask",
    "ask_stream",
    "retrieve",
    "explain",
    "receipt",
    "policy",
    "checkpoint",
    "tile",
    "openapi",
    "console_home",
    "console_login",
    "console_logout",
    "console_ask",
    "console_records",
    "console_record",
    "console_open",
    "console_receipts",
    "console_chunk",
    "console_policy",
    "console_health",
    "console_benchmarks",
    "console_verify",
    "console_static",
    "other",
)
"""What is counted; all else is ``other``."""
_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of durations, in seconds."""


class Metrics:
    """Counts; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._codes: Counter[str] = Counter()
        self._durations: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()

    def request(self, operation: str, status: int, seconds: float) -> None:
        """Count a request that has ended."""
        named = operation if operation in OPERATIONS else "other"
        bound = next((one for one in _BOUNDS if seconds <= one), float("inf"))
        with self._lock:
            self._requests[named, status] += 1
            self._durations[named, bound] += 1
            self._seconds[named] += seconds  # type: ignore[assignment] # a Counter holds floats as well

    def problem(self, code: str) -> None:
        """Count a problem by its code."""
        with self._lock:
            self._codes[code if code in TITLES else "INTERNAL"] += 1

    def text(self, **gauges: float) -> str:
        """Return all counts, and gauges as they are now.

        Examples
        --------
        >>> metrics = Metrics()
        >>> metrics.request("ask", 200, 0.004)
        >>> print(metrics.text(records=7).splitlines()[1])
        carag_requests_total{operation="ask",status="200"} 1
        """
        with self._lock:
            lines = ["# TYPE carag_requests_total counter"]
            for (operation, status), count in sorted(self._requests.items()):
                lines.append(f'carag_requests_total{{operation="{operation}",status="{status}"}} {count}')
            lines.append("# TYPE carag_problems_total counter")
            lines += [f'carag_problems_total{{code="{code}"}} {n}' for code, n in sorted(self._codes.items())]
            lines.append("# TYPE carag_request_seconds histogram")
            for operation in sorted(self._seconds):
                total = 0
                for bound in (*_BOUNDS, float("inf")):
                    total += self._durations[operation, bound]
                    shown = "+Inf" if bound == float("inf") else f"{bound:g}"
                    lines.append(
                        f'carag_request_seconds_bucket{{operation="{operation}",le="{shown}"}} {total}'
                    )
                lines.append(
                    f'carag_request_seconds_sum{{operation="{operation}"}} {self._seconds[operation]:.6f}'
                )
                lines.append(f'carag_request_seconds_count{{operation="{operation}"}} {total}')
        for name, value in sorted(gauges.items()):
            lines += [f"# TYPE carag_{name} gauge", f"carag_{name} {value:g}"]
        return "\n".join(lines) + "\n"
