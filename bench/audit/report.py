"""Write the figures of the audit log as a Markdown page."""

from __future__ import annotations

from typing import Any, Final

from carag.audit.log.opening import REHASHED_AT_OPENING

__all__ = ["page"]

_TARGETS: Final = {1: 300, 8: 1000, 64: 5000}

_PAGE: Final = """\
# What a durable record costs

Written by `python -m bench.audit` on {when}; do not edit.
{machine}. Before the rounds {idle:.0%} to {idlest:.0%} of the machine was idle:
where that is little, others had it, and only the ratios mean much.
pymerkle is release 7's `SqliteTree`, on the same disk with the same bytes. Best of the rounds,
for either.

## Durable appends, {sync} ms added to every sync

An append is a whole answered question: committed to, encoded, hashed, signed, on the disk, with its receipt.

| clients | appends/s | target | p50 ms | p99 ms | syncs an append | pymerkle appends/s | p50 ms | syncs | ratio |
|---|---|---|---|---|---|---|---|---|---|
{appends}

## A log of {records:,} records

| | CARAG | target | pymerkle | ratio |
|---|---|---|---|---|
{log}

{sizes}

## What was lost

Written by `python -m bench.audit.faults`. A fraction of it runs in `./scripts/test`, all of it with `--full`. The last
two rows are a log with a wait left out: they must lose something, or the others say nothing.

| fault | times | acknowledged records looked for | lost | not opened | damaged logs |
|---|---|---|---|---|---|
{faults}
"""


def page(figures: dict[str, Any], faults: dict[str, Any]) -> str:
    """Write the page."""
    losses = [
        f"| {name} | {found.get('rounds', found.get('cuts')):,} | {found['acknowledged']:,} | {found['lost']:,} "
        f"| {found['unopened']:,} | {found.get('corrupt', 0)} |"
        for name, found in faults.items()
    ]
    log, peer = figures["log"]["carag"], figures["log"]["pymerkle"]
    pairs = zip(figures["appends"]["carag"], figures["appends"]["pymerkle"], strict=True)
    rows = [
        f"| {ours['clients']} | {ours['appends_s']:,.0f} | {_TARGETS[ours['clients']]:,} | {ours['p50_ms']:.1f} "
        f"| {ours['p99_ms']:.1f} | {ours['syncs_an_append']:.3f} | {theirs['appends_s']:,.0f} "
        f"| {theirs['p50_ms']:.1f} | {theirs['syncs_an_append']:.2f} "
        f"| {ours['appends_s'] / theirs['appends_s']:.1f} |"
        for ours, theirs in pairs
    ]
    lines = [
        _line("opened and checked, ms", log, peer, "open_ms", "≤ 10"),
        _line("the same from a cold disk, ms", log, peer, "open_cold_ms", ""),
        _line("inclusion proof, ms", log, peer, "inclusion_ms", "≤ 1"),
        _line("consistency proof, ms", log, peer, "consistency_ms", "≤ 1"),
        f"| full audit, records/s | {log['audit_records_s']:,.0f} | ≥ 80,000 | | |",
        _line("appends in batches of 512, records/s", log, peer, "batched_appends_s", ""),
        f"| bytes a record on disk | {log['disk_bytes_a_record']:,.0f} | | {peer['disk_bytes_a_record']:,.0f} | |",
    ]
    sizes = (
        f"A record with eight hits has {log['record_bytes']:,} bytes, {log['evidence_bytes_a_record']:,.0f} in the "
        f"evidence with its nodes; an inclusion proof with its checkpoint {log['proof_bytes']:,}. Opening re-hashes "
        f"the newest {REHASHED_AT_OPENING} records; pymerkle's opening computes its root."
    )
    return _PAGE.format(
        when=figures["when"],
        machine=figures["machine"],
        idle=min(figures["idle"]),
        idlest=max(figures["idle"]),
        sync=figures["sync_us"] / 1000,
        appends="\n".join(rows),
        records=log["records"],
        log="\n".join(lines),
        sizes=sizes,
        faults="\n".join(losses),
    )


def _line(name: str, ours: dict[str, Any], theirs: dict[str, Any], key: str, target: str) -> str:
    a, b = ours[key], theirs[key]
    many = a >= 1000
    shown = [f"{value:,.0f}" if many else f"{value:,.2f}" for value in (a, b)]
    ratio = a / b if many else b / a
    return f"| {name} | {shown[0]} | {target} | {shown[1]} | {ratio:.1f} |"
