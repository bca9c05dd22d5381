"""Write what a durable record costs, and what faults cost, as a Markdown page."""

from __future__ import annotations

from typing import Any, Final

from bench.harness import table
from carag.audit.log.opening import REHASHED_AT_OPENING

_TARGETS: Final = {1: 300, 8: 1000, 64: 5000}

_PAGE: Final = """\
# What a durable record costs

Written by `python -m bench.audit` on {when}; do not edit. {machine}.{idle}
pymerkle is release 7's `SqliteTree`, on the same disk with the same bytes. The best of the rounds is shown, for either.

## Durable appends, {sync} ms added to every sync

An append is a whole answered question: committed to, encoded, hashed, signed and on the disk, with its receipt.

{appends}

## A log of {records:,} records

{log}

{sizes}

## What was lost

Counted by `pytest tests/audit/log/test_crash.py tests/audit/log/test_disk.py -m full`; every test run counts a part of
it. The last two rows are about a log that leaves its waits or its values out: they must lose something, or the others
say nothing.

{faults}
"""


def page(figures: dict[str, Any], faults: dict[str, Any]) -> str:
    """Write the page."""
    ours, theirs = figures["log"]["carag"], figures["log"]["pymerkle"]
    rows = [
        ("opened and checked, ms", "open_ms", "≤ 10"),
        ("the same from a cold disk, ms", "open_cold_ms", ""),
        ("inclusion proof, ms", "inclusion_ms", "≤ 1"),
        ("consistency proof, ms", "consistency_ms", "≤ 1"),
        ("full audit, records/s", "audit_records_s", "≥ 80,000"),
        ("appends in batches of 512, records/s", "batched_appends_s", ""),
        ("bytes a record on disk", "disk_bytes_a_record", ""),
    ]
    idle = figures.get("idle")
    return _PAGE.format(
        when=figures["when"],
        machine=figures["machine"],
        idle=f" {min(idle):.0%} to {max(idle):.0%} of the machine was idle before the rounds."
        if idle
        else "",
        sync=figures["sync_us"] / 1000,
        appends=_appends(figures["appends"]),
        records=ours["records"],
        log=table(["", "CARAG", "target", "pymerkle", "ratio"], (_row(*row, ours, theirs) for row in rows)),
        sizes=(
            f"A record with eight hits has {ours['record_bytes']:,} bytes; an inclusion proof with its checkpoint "
            f"has {ours['proof_bytes']:,}. Opening hashes the newest {REHASHED_AT_OPENING} records again; pymerkle's "
            "opening computes its root."
        ),
        faults=table(
            ["fault", "times", "acknowledged records looked for", "lost", "not opened", "damaged logs"],
            (
                [
                    *(name, f"{found.get('rounds', found.get('cuts')):,}", f"{found['acknowledged']:,}"),
                    *(f"{found['lost']:,}", f"{found['unopened']:,}", found.get("corrupt", 0)),
                ]
                for name, found in faults.items()
            ),
        ),
    )


def _appends(found: dict[str, Any]) -> str:
    lines = [
        [
            *(ours["clients"], f"{ours['appends_s']:,.0f}", f"{_TARGETS[ours['clients']]:,}"),
            *(f"{ours['p50_ms']:.1f}", f"{ours['p99_ms']:.1f}", f"{ours['syncs_an_append']:.3f}"),
            *(f"{theirs['appends_s']:,.0f}", f"{theirs['p50_ms']:.1f}", f"{theirs['syncs_an_append']:.2f}"),
            f"{ours['appends_s'] / theirs['appends_s']:.1f}",
        ]
        for ours, theirs in zip(found["carag"], found["pymerkle"], strict=True)
    ]
    head = ["clients", "appends/s", "target", "p50 ms", "p99 ms", "syncs an append", "pymerkle appends/s"]
    return table([*head, "p50 ms", "syncs", "ratio"], lines)


def _row(name: str, key: str, target: str, ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    a, b = ours[key], theirs.get(key)
    many = a >= 1000
    shown = ["" if one is None else f"{one:,.0f}" if many else f"{one:,.2f}" for one in (a, b)]
    ratio = "" if b is None or key.startswith("disk") else f"{a / b if many else b / a:.1f}"
    return [name, shown[0], target, shown[1], ratio]
