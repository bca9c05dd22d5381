"""Quote the paper's Table 2, and compute the numbers of queries that its percentages can be counted from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from carag.errors import InvalidArgument

SOURCE: Final = (
    "A. Bhardwaj, Compliance-Aware Retrieval-Augmented Generation for Regulated Financial-Reporting Corpora, "
    "working draft, 2026, Table 2 (Section 6.1), as its page shows it"
)
CLAIMED_QUERIES: Final = 600
"""Queries (n) that the table states."""


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One line of Table 2."""

    name: str
    ours: tuple[str, ...]  # systems of this benchmark that it is compared with
    cvr: str  # percentages as printed
    odr: str
    refusal: str
    f1: float
    p95_ms: int  # from question to answer


TABLE_2: Final = (
    PaperRow("B0 Vanilla RAG", ("vanilla",), "81.12", "21.29", "24.90", 0.096, 41_498),
    PaperRow(
        "B1 Post-filter",
        ("postfilter-1", "postfilter-4", "postfilter-16"),
        *("0.00", "0.00", "23.69"),
        *(0.085, 41_219),
    ),
    PaperRow("B2 Pre-filter (RBAC)", ("prefilter-rbac",), "32.53", "9.64", "22.89", 0.085, 41_944),
    PaperRow(
        "CARAG (full)",
        ("carag-withheld-text", "carag-auto", "carag-certified"),
        *("0.00", "0.00", "40.56"),
        *(0.048, 41_005),
    ),
)


def fits(rate: str, queries: int) -> bool:
    """Tell whether a printed percentage can be a whole number out of the given number of queries."""
    if queries < 1:
        raise InvalidArgument(f"queries is {queries}; want at least 1")
    places = len(rate.partition(".")[2])
    nearest = round(float(rate) / 100 * queries)
    return any(f"{100 * count / queries:.{places}f}" == rate for count in (nearest - 1, nearest, nearest + 1))


def common_count(*, below: int = 1_300) -> list[int]:
    """Return the numbers of queries from which every percentage of the table could have been counted."""
    rates = [rate for row in TABLE_2 for rate in (row.cvr, row.odr, row.refusal)]
    return [queries for queries in range(1, below) if all(fits(rate, queries) for rate in rates)]
