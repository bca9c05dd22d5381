"""The tables of a report that are of no cell: builds, batches, the policy tax, opening, large indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.tax import VIEW_GOAL, tax_goal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["MET", "others", "table", "times"]

MET: Final = {True: "met", False: "**not met**", None: "-"}
"""What a table says of a goal; None: it was not measured."""


def others(records: Sequence[dict[str, Any]]) -> str:
    """Show builds and the policy tax as recorded, and of batches the throughput at recall 0.99."""
    of: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        of.setdefault(record["kind"], []).append(record)
    parts = [
        _recorded("Builds, taking turns", of.get("build", [])),
        _batches(of.get("batch", [])),
        _taxes(of.get("tax", [])),
        _opening(of.get("opening", [])),
        _recorded("Built from a stream", of.get("large build", [])),
        _recorded("A file of many rows, mapped and searched", of.get("large", [])),
    ]
    return "\n\n".join(part for part in parts if part)


def _recorded(title: str, records: list[dict[str, Any]]) -> str:
    if not records:
        return ""
    columns = [column for column in records[0] if column not in ("kind", "seed", "commit")]
    lines = ([_plain(record.get(column)) for column in columns] for record in records)
    return f"## {title}\n\n" + table([name.replace("_", " ") for name in columns], lines)


def _batches(records: list[dict[str, Any]]) -> str:
    if not records:
        return ""
    engines = list(dict.fromkeys(record["engine"] for record in records))
    found = {(record["set"], record["share"], record["engine"]): record["qps_at_0.99"] for record in records}
    places = list(dict.fromkeys((record["set"], record["share"]) for record in records))
    lines = (
        [name, f"{100 * share:g} %", *(_plain(found.get((name, share, engine), "-")) for engine in engines)]
        for name, share in places
    )
    about = f"Queries a second at recall 0.99, {records[0]['n']:,} queries a call, {records[0]['threads']} threads:"
    return f"## Batches on all cores\n\n{about}\n\n" + table(["set", "admissible", *engines], lines)


def _taxes(records: list[dict[str, Any]]) -> str:
    """Show throughput under a policy, and with a view of it, over that of an index of the admissible rows alone."""
    if not records:
        return ""

    def line(record: dict[str, Any]) -> list[str]:
        kept = ["set", "share", "admissible", "n", "qps_under_policy", "recall_under_policy", "plan"]
        judged = ((record["ratio"], tax_goal(record["share"])), (record.get("ratio_with_view"), VIEW_GOAL))
        return [
            *(_plain(record[name]) for name in [*kept, "qps_rows_alone", "recall_rows_alone", "plan_alone"]),
            *(text for ratio, wanted in judged for text in _against(ratio, wanted)),
        ]

    head = [
        "set",
        "share",
        "rows",
        "questions",
        "under policy q/s",
        "recall",
        "plan",
        "rows alone q/s",
        "recall",
    ]
    return "## Policy tax\n\n" + table(
        [*head, "plan", "ratio", "goal", "", "ratio with a view", "goal", ""], map(line, records)
    )


def _opening(records: list[dict[str, Any]]) -> str:
    """Show opening and searching, the file read and the file mapped, side by side."""
    if not records:
        return ""
    said = {
        (*(record[name] for name in ("set", "dtype", "what")), record["way"]): (
            f"{record['us']:,.1f} µs"
            if "us" in record
            else f"{record['ms']:,.1f} ms, first answer {record['first_answer_ms']:,.1f} ms"
        )
        for record in records
    }
    places = dict.fromkeys(place[:-1] for place in said)
    ways = list(dict.fromkeys(record["way"] for record in records))
    lines = ([*place, *(said.get((*place, way), "-") for way in ways)] for place in places)
    return "## A file read and a file mapped\n\n" + table(["set", "stored as", "", *ways], lines)


def _against(ratio: float | None, wanted: float) -> list[str]:
    return [times(ratio), f"{wanted:g} ×", MET[None if ratio is None else ratio >= wanted]]


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Write a table as Markdown."""
    rows = [
        "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in line) + " |" for line in lines
    ]
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *rows])


def times(ratio: float | None) -> str:
    """Write how many times."""
    return "-" if ratio is None else f"{ratio:.2f} ×"


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{np.round(value, 4):g}"
    return "never" if value is None else str(value)
