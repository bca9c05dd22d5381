"""Draw the passages to be audited: ``python -m bench.labels.sample --out WORK.jsonl``.

The strata look at raw metadata and at plain words, never at a label, so that a rule that errs cannot choose
what it is judged on. The work file holds passages of filings and belongs outside the repository; what is
judged from it is committed as facts in ``audited.csv``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import json
import os
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carag.labelling.chunking import chunk
from carag.profiles.edgar.reading.readers import read_filings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from carag.profiles.edgar.facts.filing import Filing

__all__ = ["SEED", "STRATA", "Stratum", "draw", "fingerprint"]

SEED: Final = 20261122
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stratum:
    """What to draw: `wanted` passages of the filings that `takes` accepts, at most `each` of one filing."""

    name: str
    wanted: int
    each: int
    takes: Callable[[Row], bool]
    words: str = ""
    """Where given, only passages in which this expression is found."""
    exhibits: bool | None = None
    """Only passages of exhibits (True), only of the main document (False)."""


def _form(*forms: str | None) -> Callable[[Row], bool]:
    return lambda row: row["form"] in forms


def _items(row: Row) -> set[str]:
    found = row.get("items") or row.get("items_in_text") or []
    return set(found) if row["form"] == "8-K" else set()


def _substance(row: Row) -> set[str]:
    """Items but that of the exhibit list, which every 8-K with an exhibit has."""
    return {item for item in _items(row) if not re.match(r"9\.0|7$|financial statements", item.lower())}


def _only(*items: str) -> Callable[[Row], bool]:
    return lambda row: bool(_substance(row)) and _substance(row) <= set(items)


def _mixed(*items: str) -> Callable[[Row], bool]:
    return lambda row: len(_substance(row)) > 1 and (not items or bool(_substance(row) & set(items)))


def _place(*codes: str) -> Callable[[Row], bool]:
    return lambda row: bool({row.get("business_state"), row.get("state_of_inc")} & set(codes))


def _both(*tests: Callable[[Row], bool]) -> Callable[[Row], bool]:
    return lambda row: all(test(row) for test in tests)


def _since(year: int) -> Callable[[Row], bool]:
    return lambda row: (row.get("accession_year") or 0) >= year


_ANNUAL: Final = ("10-K", "10-K405")
_MATERIAL: Final = (
    "1.01", "1.02", "1.03", "1.05", "2.01", "2.03", "2.04", "2.05", "2.06", "3.01", "3.03", "4.01", "5.01",
)  # fmt: skip
_PAY: Final = r"(?i)salary|compensation|appointed|director since|severance|equity award|bonus"
_EU: Final = ("2M", "G7", "H9", "I0", "J3", "L2", "L6", "N4", "P7", "R9", "S1", "U3", "V7", "C4", "C9", "Q8")
_CANADA: Final = ("A0", "A1", "A2", "A5", "A6", "A8", "A9", "Z4")
_ELSEWHERE: Final = ("K3", "F4", "L3", "E9", "D0", "M0", "V8", "U0", "K7", "C3", "D5", "O5", "1T", "Y9", "D8")
_OFFERS: Final = (
    "424B2",
    "424B4",
    "424B5",
    "S-1",
    "S-1/A",
    "S-3",
    "S-3ASR",
    "S-3/A",
    "F-3",
    "F-3/A",
    "POS AM",
)
_NON_RELIANCE: Final = (1001426, 1173313)
"""Filers of which the data hold the text of an 8-K with item 4.02."""
_WITHDRAWN: Final = {1001426: ("2005-08-03", "2006-08-16"), 1173313: ("2025-04-15",)}
"""When they filed it; the index names no other filings of theirs."""
_LEAVING: Final = ("25", "25-NSE", "15-12B", "15-12G", "15-15D", "REVOKED")

STRATA: Final = (
    Stratum("mixed 8-K, exhibits", 16, 2, _both(_mixed(), lambda r: bool(r.get("documents"))), exhibits=True),
    Stratum("mixed 8-K, body", 10, 1, _both(_mixed(), lambda r: bool(r.get("documents"))), exhibits=False),
    Stratum("mixed 8-K, results", 18, 2, _mixed("2.02", "Results of Operations and Financial Condition")),
    Stratum("mixed 8-K, officers", 18, 2, _mixed("5.02")),
    Stratum("mixed 8-K, agreement", 12, 2, _mixed("1.01", "2.03", "2.01")),
    Stratum("mixed 8-K, Reg FD", 8, 1, _mixed("7.01")),
    Stratum("8-K officers", 8, 1, _only("5.02")),
    Stratum("8-K results", 10, 1, _only("2.02")),
    Stratum("8-K Reg FD", 5, 1, _only("7.01")),
    Stratum("8-K other", 10, 1, _only("8.01", "5.07", "5.03", "3.02", "5.05", "5.08")),
    Stratum("8-K material", 14, 1, _only(*_MATERIAL)),
    Stratum("8-K before 2004", 6, 1, lambda r: bool(_items(r) & {"1", "2", "3", "4", "5", "12", "9"})),
    Stratum("8-K non-reliance", 9, 3, lambda r: any("non-reliance" in i.lower() for i in _items(r))),
    Stratum("8-K of a filer with non-reliance", 6, 1, lambda r: r["cik"] in _NON_RELIANCE),
    Stratum("8-K amended", 6, 1, _form("8-K/A")),
    Stratum("proxy, pay and lives", 24, 6, _form("DEF 14A"), words=_PAY),
    Stratum("proxy, anything", 22, 6, _form("DEF 14A")),
    Stratum("annual amendment", 18, 1, _form("10-K405/A")),
    Stratum("annual amendment, pay", 6, 6, _form("10-K/A"), words=_PAY),
    Stratum("annual amendment, anything", 5, 5, _form("10-K/A")),
    Stratum("annual, amended later", 12, 1, lambda r: r["form"] in _ANNUAL and bool(r["amended_by"])),
    Stratum(
        "annual, early", 10, 1, lambda r: r["form"] in _ANNUAL and (r.get("accession_year") or 9999) < 2001
    ),
    Stratum("annual, exhibits", 8, 1, _form(*_ANNUAL), exhibits=True),
    Stratum("annual, recent", 10, 1, _both(_form("10-K"), _since(2015))),
    Stratum("annual, pay", 5, 1, _form(*_ANNUAL), words=r"(?i)base salary|executive compensation"),
    Stratum("annual, odd", 4, 2, _form("10-KT", "10KSB")),
    Stratum("quarterly", 14, 1, _form("10-Q")),
    Stratum("late notice", 6, 1, _form("NT 10-K")),
    Stratum("insider", 14, 2, _form("4")),
    Stratum("holdings", 6, 2, _form("SC 13G/A", "13F-HR")),
    Stratum("foreign issuer", 10, 3, _form("20-F", "6-K")),
    Stratum("staff letter", 7, 1, _form("UPLOAD")),
    Stratum("company's answer", 7, 1, _form("CORRESP")),
    Stratum("private, then public", 4, 1, lambda r: bool(r.get("private_to_public"))),
    Stratum("offering", 18, 1, _form(*_OFFERS)),
    Stratum("shell", 10, 2, lambda r: str(r.get("sic")) == "6770"),
    Stratum("emerging growth", 8, 1, lambda r: "emerging" in (r.get("filer_category") or "").lower()),
    Stratum("Europe", 7, 1, _place(*_EU)),
    Stratum("United Kingdom", 4, 1, _place("X0")),
    Stratum("Canada", 5, 1, _place(*_CANADA)),
    Stratum("elsewhere", 6, 1, _place(*_ELSEWHERE)),
    Stratum(
        "other forms", 5, 1, _form("SEC STAFF LETTER", "SEC STAFF ACTION", "D", "497K", "ATS-N", "N-CEN")
    ),
    Stratum("before a non-reliance report", 16, 1, lambda r: bool(r["non_reliance_follows"])),
    Stratum("late report", 10, 1, lambda r: r["form"] in _ANNUAL and bool(r["late_notice"])),
    Stratum("filer that left", 8, 1, lambda r: bool(r["left"])),
    Stratum("holdings, again", 6, 3, _form("SC 13G/A", "13F-HR")),
    Stratum("foreign offering", 4, 1, _form("F-3", "F-3/A")),
    Stratum("United Kingdom, again", 6, 1, _place("X0")),
    Stratum("Canada, again", 6, 1, _place(*_CANADA)),
)


def draw(shared: Path) -> Iterator[dict[str, Any]]:
    """Draw every stratum, without repeating a passage."""
    rows = {row["id"]: row for row in _rows(shared)}
    _note_what_followed(rows, shared)
    filings = {
        outcome.filing.source_id: outcome.filing
        for outcome in read_filings(shared / "edgar")
        if outcome.filing is not None
    }
    seen: set[tuple[str, int, int]] = set()
    for number, stratum in enumerate(STRATA):
        rng = random.Random(SEED + number)  # noqa: S311 - a sample, not a secret
        fitting = sorted(name for name, row in rows.items() if name in filings and stratum.takes(row))
        rng.shuffle(fitting)
        taken = 0
        for name in fitting:
            drawn = 0
            for passage in _passages(filings[name], stratum, rng):
                key = (name, passage["place"], passage["start"])
                if taken == stratum.wanted or drawn == stratum.each:
                    break
                if key in seen:
                    continue
                seen.add(key)
                taken, drawn = taken + 1, drawn + 1
                facts = {field: value for field, value in rows[name].items() if field != "text"}
                yield {"stratum": stratum.name, "facts": facts} | passage


def fingerprint(passage: str) -> str:
    """Name a passage without repeating it."""
    return hashlib.sha256(passage.encode()).hexdigest()[:12]


def _passages(filing: Filing, stratum: Stratum, rng: random.Random) -> list[dict[str, Any]]:
    found = [
        {
            "accession": filing.accession_number,
            "document": document.type,
            "place": place,
            "start": piece.start,
            "end": piece.end,
            "sha256": fingerprint(piece.text),
            "passage": piece.text,
        }
        for place, document in enumerate(filing.documents)
        if stratum.exhibits is None or stratum.exhibits == (place > 0)
        for piece in chunk(document.text)
        if re.search(stratum.words, piece.text)
    ]
    rng.shuffle(found)
    return found


def _note_what_followed(rows: dict[str, Row], shared: Path) -> None:
    """Add to each row, from EDGAR's own index of its filer, what may have changed its standing."""
    index: dict[int, list[dict[str, str]]] = {}
    with gzip.open(shared / "edgar" / "edgar_index.tsv.gz", "rt", encoding="utf-8") as lines:
        for entry in csv.DictReader(lines, delimiter="\t"):
            index.setdefault(int(entry["cik"]), []).append(entry)
    notices = {(row["cik"], row["period"]) for row in rows.values() if (row["form"] or "").startswith("NT ")}
    for row in rows.values():
        others = index.get(row["cik"] or 0, [])
        filed = row["filed"] or row["period"] or ""
        withdrawn = [other["filed"] for other in others if "4.02" in other["items"]]
        withdrawn += [date for date in _WITHDRAWN.get(row["cik"] or 0, ()) if date not in withdrawn]
        reports = row["form"] in ("10-K", "10-Q") or "2.02" in _items(row)
        row["non_reliance_follows"] = (
            bool(filed)
            and reports
            and any(filed < date and int(date[:4]) - int(filed[:4]) <= 2 for date in withdrawn)
        )
        row["late_notice"] = bool(row["period"]) and (
            (row["cik"], row["period"]) in notices
            or any(o["form"].startswith("NT 10") and o["period"] == row["period"] for o in others)
        )
        row["left"] = bool(others) and max(others, key=lambda o: o["filed"])["form"] in _LEAVING


def _rows(shared: Path) -> Iterator[Row]:
    for file in sorted((shared / "edgar").glob("filings-*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def main() -> None:
    """Write the work file."""
    parser = argparse.ArgumentParser(prog="python -m bench.labels.sample", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="a file outside the repository")
    out = parser.parse_args().out
    drawn = list(draw(Path(os.environ["CARAG_SHARED_DATA"])))
    out.write_text("".join(json.dumps(passage) + "\n" for passage in drawn), encoding="utf-8")
    print(f"{len(drawn)} passages of {len({passage['accession'] for passage in drawn})} filings")


if __name__ == "__main__":
    main()
