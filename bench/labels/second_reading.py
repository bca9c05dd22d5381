"""Explain each disagreement of labels and audit by what a second reading of it found.

``fault`` is *rule* where the rule is wrong or coarser than the definition, *data* where the source does not hold
the fact that the rule reads, *judgement* where the reader was wrong. An empty field of a row stands for any;
the first row that fits explains. An explanation outlives its error without harm.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.policy import PolicyBit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bench.labels.table import Audited

__all__ = ["UNREAD", "Explanation", "explain", "read_explanations"]

_COLUMNS: Final = ["bit", "ours", "accession", "document", "fault", "explanation"]
_FAULTS: Final = {"rule", "data", "judgement"}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a second reading found."""

    bit: PolicyBit | None
    ours: str
    accession: str
    document: str
    fault: str
    text: str


UNREAD: Final = Explanation(None, "", "", "", "data", "the filing that sets the bit is not among those read")


def read_explanations(path: Path) -> list[Explanation]:
    """Read the explanations.

    Raises
    ------
    InvalidArgument
        If a row breaks the format; the message names the row.
    """
    found = []
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        if list(rows.fieldnames or ()) != _COLUMNS:
            raise InvalidArgument(f"{path}: columns are {rows.fieldnames}; want {', '.join(_COLUMNS)}")
        for number, row in enumerate(rows, start=2):
            fault = row["fault"]
            if (
                row["bit"] not in PolicyBit.__members__
                or row["ours"] not in {"set", "clear"}
                or not row["explanation"]
            ):
                raise InvalidArgument(
                    f"{path}, row {number}: {row}; want a bit by name, set or clear, and why"
                )
            if fault not in _FAULTS:
                raise InvalidArgument(f"{path}, row {number}: fault {fault!r}; want rule, data or judgement")
            found.append(
                Explanation(
                    PolicyBit[row["bit"]],
                    row["ours"],
                    row["accession"],
                    row["document"],
                    fault,
                    row["explanation"],
                )
            )
    return found


def explain(bit: PolicyBit, one: Audited, known: Iterable[Explanation]) -> Explanation | None:
    """Return the first explanation that fits a disagreement, or None."""
    ours = "clear" if bit in one.true else "set"
    return next(
        (
            why
            for why in known
            if (why.bit, why.ours) == (bit, ours)
            and why.accession in {"", one.accession}
            and why.document in {"", one.document}
        ),
        None,
    )
