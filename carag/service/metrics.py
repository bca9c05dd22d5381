"""Count requests for the second listener, in Prometheus' text format, with labels from fixed lists and no content."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Final

from carag.audit import Outcome
from carag.service.problems import TITLES

if TYPE_CHECKING:
    from collections.abc import Callable, Container


INTERFACE: Final = (
    "ask",
    "retrieve",
    "explain",
    "break_glass",
    "ingest",
    "job",
    "erase",
    "erase_due",
    "due",
    "hold",
    "held",
    "subject_report",
    "import_groups",
    "receipt",
    "policy",
    "checkpoint",
    "tile",
)
"""Operations of a request: methods of :class:`carag.service.service.Service`, and :data:`carag.service.writes.WRITES`.
"""
OPERATIONS: Final = (
    *INTERFACE,
    "ask_stream",
    "openapi",
    "docs",
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
"""What is counted; anything else is ``other``."""
_OUTCOMES: Final = frozenset(one.value for one in Outcome)
_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets for durations, in seconds."""


class Metrics:
    """Counters. Thread-safe.

    - ``cells``: returns the cells of the policy in force, by which answers are counted; each cell has one series per
    outcome.
    """

    def __init__(self, cells: Callable[[], Container[tuple[str, str]]] = tuple) -> None:
        self._lock = threading.Lock()
        self._cells = cells
        self._answers: Counter[tuple[str, str, str]] = Counter()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._codes: Counter[str] = Counter()
        self._durations: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._overruns: Counter[str] = Counter()
        self._too_short: Counter[str] = Counter()

    def request(self, operation: str, status: int, seconds: float) -> None:
        """Count a completed request."""
        named = operation if operation in OPERATIONS else "other"
        bound = next((one for one in _BOUNDS if seconds <= one), float("inf"))
        with self._lock:
            self._requests[named, status] += 1
            self._durations[named, bound] += 1
            self._seconds[named] += seconds  # type: ignore[assignment] # a Counter holds floats as well

    def answer(self, role: str, purpose: str, outcome: str) -> None:
        """Count a recorded answer, decline or refusal; an unknown cell or outcome is ``other``."""
        cell = (role, purpose) if (role, purpose) in self._cells() else ("other", "other")
        with self._lock:
            self._answers[*cell, outcome if outcome in _OUTCOMES else "other"] += 1

    def problem(self, code: str) -> None:
        """Count a problem by its code."""
        with self._lock:
            self._codes[code if code in TITLES else "INTERNAL"] += 1

    def overrun(self, slot: str) -> None:
        """Count a response that was not ready within its operation's slot."""
        with self._lock:
            self._overruns[slot] += 1

    def too_short(self, slot: str) -> None:
        """Count that over 1 % of a role's responses missed a slot, which should therefore be longer."""
        with self._lock:
            self._too_short[slot] += 1

    def text(self, **gauges: float) -> str:
        """Return all counters, and the given gauges."""
        with self._lock:
            lines = ["# TYPE carag_requests_total counter"]
            for (operation, status), count in sorted(self._requests.items()):
                lines.append(f'carag_requests_total{{operation="{operation}",status="{status}"}} {count}')
            lines.append("# TYPE carag_problems_total counter")
            lines += [f'carag_problems_total{{code="{code}"}} {n}' for code, n in sorted(self._codes.items())]
            for name, counts in (("overruns", self._overruns), ("too_short", self._too_short)):
                lines.append(f"# TYPE carag_slot_{name}_total counter")
                lines += [f'carag_slot_{name}_total{{slot="{one}"}} {n}' for one, n in sorted(counts.items())]
            lines.append("# TYPE carag_answers_total counter")
            for (role, purpose, outcome), count in sorted(self._answers.items()):
                labels = f'role="{role}",purpose="{purpose}",outcome="{outcome}"'
                lines.append(f"carag_answers_total{{{labels}}} {count}")
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
