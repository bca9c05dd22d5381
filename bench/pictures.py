"""Write what the console draws of the benchmarks: ``python -m bench.pictures``.

The figures are those of the sections of ``docs/benchmarks.md`` that are written from committed rows, and of the audit
log's results. They ship with the package as ``carag/service/console/benchmarks.json``; a test compares.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, Final

from carag.errors import InvalidArgument

_ROOT: Final = Path(__file__).parents[1]
PATH: Final = _ROOT / "carag" / "service" / "console" / "benchmarks.json"
_PAGE: Final = _ROOT / "docs" / "benchmarks.md"
_AUDIT: Final = _ROOT / "bench" / "audit" / "results" / "figures.json"
_SET: Final = "mixture-1m-128, word"
_NONE: Final = re.compile(r"0 of ([\d,]+)")
_SHARE: Final = re.compile(r"([\d.]+) % \(.*\)")
_SPEED: Final = re.compile(r"([\d,]+) \(\**([\d.]+) ×\**\)")


def pictures(page: str, audit: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what is drawn, from the text of the page and the results of the audit log.

    Raises
    ------
    InvalidArgument
        If the page has no such table, or a figure of another form.
    """
    return [_violations(page), _peers(page), _appends(audit)]


def written() -> str:
    """Return the file as it has to be."""
    found = pictures(_PAGE.read_text("utf-8"), json.loads(_AUDIT.read_text("utf-8")))
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def _violations(page: str) -> dict[str, Any]:
    rows = []
    for row in _table(page, "bench.edgar", "| system | CVR by query"):
        system, said = row[0], row[1]
        share = 0.0 if _NONE.fullmatch(said) else _number(_SHARE, said, 1)
        rows.append(
            _row(system, share, "0 %" if not share else f"{share:g} %", said, ours=system.startswith("carag"))
        )
    return {
        "id": "violations",
        "title": "Questions that bring an inadmissible passage",
        "note": "3,840 (question, session) pairs over real filings, adversaries among them; intervals of 95 %.",
        "command": "carag bench edgar --data DIR --out OUT",
        "of": "System",
        "unit": "% of the pairs",
        "most": 100,
        "line": None,
        "line_means": "",
        "rows": rows,
    }


def _peers(page: str) -> dict[str, Any]:
    rows = []
    table = _table(page, "bench.ann", "| admissible |", headed=True)
    place = table[0].index(_SET)
    for row in table[1:]:
        if row[place] and not row[0].endswith(("anti", "corr")):
            times = _number(_SPEED, row[place], 2)
            shown = row[place].replace("**", "")
            rows.append(_row(row[0], times, f"{times:g} ×", f"{shown} queries a second", ours=times >= 1))
    return {
        "id": "peers",
        "title": "Filtered search beside the best of all peers",
        "note": "1,000,000 rows of 128 dimensions, one thread, at a recall@10 of 0.99, by the share of rows that are "
        "admissible. Below 1 × a peer is faster.",
        "command": "python -m bench.ann --sets mixture-1m-128 --out FILE",
        "of": "Admissible",
        "unit": "times the best peer",
        "most": math.ceil(max(row["value"] for row in rows)),
        "line": 1,
        "line_means": "as fast as the best peer",
        "rows": rows,
    }


def _appends(audit: dict[str, Any]) -> dict[str, Any]:
    rows = [
        _row(
            f"{name}, {one['clients']} {'client' if one['clients'] == 1 else 'clients'}",
            round(one["appends_s"]),
            f"{one['appends_s']:,.0f}",
            f"{one['appends_s']:,.0f}",
            ours=name == "carag",
        )
        for name in ("carag", "pymerkle")
        for one in audit["appends"][name]
    ]
    return {
        "id": "appends",
        "title": "Durable records a second",
        "note": "Of the audit log, beside pymerkle's, with 2 ms added to every sync. The goal of 5,000 is missed.",
        "command": "python -m bench.audit",
        "of": "Log and clients",
        "unit": "appends a second",
        "most": 5000,
        "line": 5000,
        "line_means": "goal",
        "rows": rows,
    }


def _row(label: str, value: float, short: str, shown: str, *, ours: bool) -> dict[str, Any]:
    return {"label": label, "value": value, "short": short, "shown": shown, "ours": ours}


def _table(page: str, section: str, head: str, *, headed: bool = False) -> list[list[str]]:
    """Return the cells of the table with this head, in a section between its marks."""
    text = page.partition(f"<!-- {section}:")[2].partition(f"<!-- /{section} -->")[0]
    lines = text[max(0, text.find(head)) :].split("\n\n")[0].splitlines()
    if not lines or not lines[0].startswith(head):
        raise InvalidArgument(
            f"docs/benchmarks.md has no table {head!r} in its section {section}; run the command that writes it"
        )
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [*cells[:1], *cells[2:]] if headed else cells[2:]


def _number(form: re.Pattern[str], said: str, group: int) -> float:
    found = form.fullmatch(said)
    if found is None:
        raise InvalidArgument(f"docs/benchmarks.md says {said!r}, which does not match {form.pattern}")
    return float(found[group].replace(",", ""))


def main() -> None:
    """Write the file."""
    PATH.write_text(written(), "utf-8")


if __name__ == "__main__":
    main()
