"""Read and write the audited table: what a reader found in a passage, as facts and without its text.

One row a passage, named by accession number, place of the document in the filing (0 is the main document) and
character offsets in the document's text. ``true`` lists the bits that the passage has, ``unclear`` those that
can be judged either way; every other bit was judged false. ``causes`` names for a bit of state the filing
that sets it. The verdict on a jurisdiction, form, role, filer category or industry code rests on the header; on
statements, furnishing, personal data and material events on the passage; on bits of state on other filings;
``basis`` names what was decided otherwise. ``reason`` is the reader's own words.

Verdicts were given by the definitions of the policy chapter, from header and text, before any rule was run.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.policy import PolicyBit

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["COLUMNS", "LONGEST_REASON", "Audited", "read_table"]

COLUMNS: Final = (
    "accession", "document", "place", "start", "end", "sha256", "true", "unclear", "causes", "basis", "reason",
)  # fmt: skip
LONGEST_REASON: Final = 240


@dataclass(frozen=True, slots=True)
class Audited:
    """One passage and what a reader found in it."""

    accession: str
    document: str
    place: int
    start: int
    end: int
    sha256: str
    """Of the passage, the first twelve digits: shows that the offsets still mean the same text."""
    true: frozenset[PolicyBit]
    unclear: frozenset[PolicyBit]
    causes: tuple[tuple[PolicyBit, str], ...]
    basis: str
    reason: str

    def verdict(self, bit: PolicyBit) -> bool | None:
        """Whether the passage has the bit; None where that is unclear."""
        return None if bit in self.unclear else bit in self.true


def read_table(path: Path) -> list[Audited]:
    """Read the table.

    Raises
    ------
    InvalidArgument
        If a row breaks the format; the message names the row.
    """
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise InvalidArgument(f"{path}: columns are {rows.fieldnames}; want {', '.join(COLUMNS)}")
        found = [_audited(row, f"{path}, row {number}") for number, row in enumerate(rows, start=2)]
    keys = [(one.accession, one.place, one.start) for one in found]
    if len(set(keys)) != len(keys):
        double = sorted({key for key in keys if keys.count(key) > 1})
        raise InvalidArgument(f"{path}: judged twice: {double}; want one row a passage")
    return found


def _audited(row: dict[str, str], where: str) -> Audited:
    try:
        one = Audited(
            accession=row["accession"],
            document=row["document"],
            place=int(row["place"]),
            start=int(row["start"]),
            end=int(row["end"]),
            sha256=row["sha256"],
            true=_bits(row["true"].split()),
            unclear=_bits(row["unclear"].split()),
            causes=_causes(row["causes"]),
            basis=row["basis"],
            reason=row["reason"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgument(f"{where}: {error!r}; want {', '.join(COLUMNS)}, bits by name") from error
    if one.true & one.unclear:
        raise InvalidArgument(f"{where}: {_names(one.true & one.unclear)} both true and unclear; want one")
    if not (one.place >= 0 and 0 <= one.start < one.end and one.accession):
        raise InvalidArgument(f"{where}: place {one.place}, {one.start}-{one.end}; want 0 <= start < end")
    if stray := {bit for bit, _ in one.causes} - one.true:
        raise InvalidArgument(f"{where}: a cause for {_names(stray)}, which is not true; want causes of bits")
    if not 0 < len(one.reason) <= LONGEST_REASON:
        raise InvalidArgument(f"{where}: a reason of {len(one.reason)} characters; want 1-{LONGEST_REASON}")
    return one


def _bits(names: list[str]) -> frozenset[PolicyBit]:
    return frozenset(PolicyBit[name] for name in names)


def _causes(text: str) -> tuple[tuple[PolicyBit, str], ...]:
    """Read ``AMENDED SUPERSEDED accession; LATE accession``."""
    return tuple(
        (PolicyBit[name], accession)
        for one in text.split(";")
        if one.strip()
        for *names, accession in (one.split(),)
        for name in names
    )


def _names(bits: set[PolicyBit] | frozenset[PolicyBit]) -> str:
    return ", ".join(bit.name for bit in sorted(bits))
