"""Write the section of the page from result files: what was measured side by side, and what was simulated from it."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from bench.distributed.places import NATIVE, PLACES
from bench.distributed.simulate import Assumptions
from bench.distributed.sizes import USED
from bench.sections import replaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["BEGIN", "END", "read", "section", "with_section"]

PAGE: Final = "docs/explanation/which-backend.md"
BEGIN: Final = f"<!-- bench.distributed: written by `python -m bench.distributed report --page {PAGE}` -->"
END: Final = "<!-- /bench.distributed -->"
_MEANING: Final = {
    "network_ms": "a round trip takes {} ms at least",
    "network_tail_ms": "and an exponential draw of {} ms, mean, more",
    "slow_share": "{:.0%} of the nodes are slow, drawn anew each minute",
    "slow_times": "by a factor of {:g}",
    "straggle_share": "{:.1%} of the calls are held up",
    "straggle_ms": "for {:g} ms",
    "seconds_between_losses": "a node is lost every {:g} s",
    "down_seconds": "and is back after {:g} s",
    "noticed_ms": "which a caller knows after {:g} ms",
    "seconds_between_flips": "the epoch moves every {:g} s",
    "replays": "and a question goes on at its own ({})",
    "seconds": "{:g} s are simulated",
}


def read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Read records of result files; what was measured again later counts."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for path in paths:
        for line in path.read_text("utf-8").splitlines():
            record = json.loads(line)
            found[_name(record)] = record
    return list(found.values())


def _name(record: dict[str, Any]) -> tuple[object, ...]:
    kind = "load" if record["kind"] == "left out" else record["kind"]
    what = (
        "set",
        "place",
        "share",
        "rows",
        "dim",
        "admissible",
        "admissible_a_shard",
        "fan_out",
        "trouble",
        "shards",
    )
    named = what if record["kind"] != "cell" else ("set", "place", "share")
    return kind, *(record.get(name) for name in named)


def with_section(page: str, records: list[dict[str, Any]]) -> str:
    """Put the section between the marks of a page."""
    return replaced(page, BEGIN, END, section(records))


def section(records: list[dict[str, Any]]) -> str:
    """Write the section, without its marks."""
    of = {kind: [one for one in records if one["kind"] == kind] for kind in {one["kind"] for one in records}}
    sets = dict.fromkeys(one["set"] for one in of.get("cell", ()))
    return "\n\n".join(
        [
            "### Side by side, on one machine",
            _places({one["place"] for one in records if "place" in one}),
            *(_side_by_side([one for one in of["cell"] if one["set"] == name]) for name in sets),
            _loads(of.get("load", []), of.get("left out", [])),
            "### One shard of the native index",
            _pieces(of.get("piece", []), of.get("shard", [])),
            _small(of.get("small end", [])),
            "### Simulated",
            _assumed(),
            _sizes(of.get("simulated size", [])),
            _fan_outs(of.get("simulated fan-out", [])),
        ]
    )


def _places(named: set[str]) -> str:
    told = "; ".join(f"`{name}`: {place.what}" for name, place in PLACES.items() if name in named)
    return (
        f"{told}. One question at a time and one processor for all, in turn; a call is timed from the policy to the "
        f"checked ids. `{NATIVE}` runs the certified plan, `{NATIVE} auto` the cheapest, `{NATIVE} checked` the "
        "first with all that is checked of a backend."
    )


def _side_by_side(cells: list[dict[str, Any]]) -> str:
    first = cells[0]
    names = list(dict.fromkeys(one["place"] for one in cells))
    at = {(one["share"], one["place"]): one for one in cells}
    shares = sorted({one["share"] for one in cells}, reverse=True)
    rows = [[f"{100 * share:g} %", *(_cell(at.get((share, name))) for name in names)] for share in shares]
    bad = sum(one["short"] + one["violations"] for one in cells)
    return (
        f"{first['set']}: {first['rows']:,} rows × {first['dim']}, k 10, seed {first['seed']}; {_made(cells)}. "
        f"Milliseconds p50 (p95), times those of `{NATIVE}`, recall@10. Short lists and inadmissible rows: {bad}.\n\n"
        + _table(["admissible", *names], rows)
    )


def _cell(one: dict[str, Any] | None) -> str:
    if one is None:
        return ""
    own = f"{_ms(one['p50_ms'])} ({_ms(one['p95_ms'])})"
    if one["place"] == NATIVE:
        return f"{own}, {one['recall']:.3f}"
    times = one["times_native_p50"]
    told = f"{times:,.0f}" if times >= 10 else f"{times:.2g}"
    return f"{own}, {told} ×, {one['recall']:.3f}"


def _loads(loads: list[dict[str, Any]], left_out: list[dict[str, Any]]) -> str:
    told = [f"{one['place']} {one['seconds']:,.0f} s for {one['set']}" for one in loads]
    lines = [f"Loading took: {'; '.join(told)}."] if told else []
    lines += [f"- Left out of {one['set']}: {one['why']}." for one in left_out]
    return "\n".join(lines)


def _pieces(pieces: list[dict[str, Any]], shards: list[dict[str, Any]]) -> str:
    lines = []
    for shard in shards:
        own = [one for one in pieces if (one["rows"], one["dim"]) == (shard["rows"], shard["dim"])]
        lines.append(
            f"{shard['rows']:,} rows × {shard['dim']} without structure, plan `certified`, CPU time of its thread, "
            f"seed {shard['seed']}; {_made(own)}. In memory it takes {shard['bytes_a_row']:,} bytes a row, as a file "
            f"{shard['file_bytes_a_row']:,}; mapped, it opens in {_ms(shard['open_ms'])} ms."
        )
        rows = [
            [
                f"{one['admissible']:,}",
                *_quantiles(one["ms"]),
                _ms(shard["first_cold_ms"][str(one["admissible"])]),
            ]
            for one in own
        ]
        headings = ["admissible", "p50, ms", "p95", "p99", "first question, nothing in the page cache"]
        lines.append(_table(headings, rows))
    return "\n\n".join(lines)


def _quantiles(ms: list[float]) -> list[str]:
    import numpy as np

    return [_ms(float(np.quantile(ms, at))) for at in (0.5, 0.95, 0.99)]


def _small(found: list[dict[str, Any]]) -> str:
    if not found:
        return ""
    first = found[0]
    off = [one[f"{at}_simulated_ms"] / one[f"{at}_real_ms"] - 1 for one in found for at in ("p50", "p95")]
    rows = [
        [
            f"{one['admissible']:,}",
            *(
                _ms(one[f"{at}_{name}_ms"])
                for at in ("p50", "p95")
                for name in ("alone", "real", "simulated")
            ),
        ]
        for one in found
    ]
    headings = [
        "admissible a shard",
        *(f"{at} {what}" for at in ("p50", "p95") for what in ("alone", "real", "simulated")),
    ]
    return (
        f"{first['shards']} such shards of {first['rows']:,} rows, a process each, on {first['cores']} "
        f"{'core' if first['cores'] == 1 else 'cores'}, asked through pipes, beside what the simulation makes of one "
        f"such process alone; {_made(found)}. The simulation is off by {min(off):+.0%} to {max(off):+.0%}, most where "
        "a search takes less than it takes to wake a process.\n\n" + _table(headings, rows)
    )


def _assumed() -> str:
    told = "; ".join(_MEANING[one.name].format(one.default) for one in fields(Assumptions))
    return (
        f"Assumed, not measured: {told}. Nodes are slow or lost independently of each other, and questions do not "
        f"wait for each other, which holds while they keep {USED:.0%} of the cores busy or less. 20,000 questions "
        "each, seed 0."
    )


def _sizes(found: list[dict[str, Any]]) -> str:
    """One row a size and share; of places with their own pieces."""
    order = sorted(found, key=lambda one: (one["place"], one["rows"], -one["admissible_a_shard"]))
    rows = [
        [
            one["place"],
            f"{one['rows']:,}",
            f"{100 * one['admissible_a_shard'] / one['shard_rows']:.3g} %",
            *(_ms(one[f"p{at}_ms"]) for at in (50, 95, 99)),
            f"{one['refused']:,}",
            _ms(one["core_seconds"]),
            f"{one['machines']:,}",
            f"{one['memory_gb']:g}, {one['disk_gb']:g}" if "memory_gb" in one else "not measured",
            _ms(one["per_second"]),
        ]
        for one in order
    ]
    headings = [
        *("place", "rows", "admissible", "p50, ms", "p95", "p99", "refused", "core-s a question", "machines"),
        *("GB a machine: memory, disk", f"questions/s at {USED:.0%}"),
    ]
    return (
        "Machines have 8 cores and 8 shards, each shard is on two machines, and a replica is asked once a machine "
        "takes longer than 95 % of its answers do.\n\n" + _table(headings, rows)
    )


def _fan_outs(found: list[dict[str, Any]]) -> str:
    if not found:
        return ""
    first = found[0]
    rows = [
        [
            f"{one['fan_out']}",
            one["trouble"],
            *(_ms(one[f"p{at}_ms"]) for at in (50, 95, 99)),
            f"{one['refused']:,}",
            f"{one['asked_twice']:.1%}",
            f"{one['asked_anew']:,}",
        ]
        for one in found
    ]
    headings = [
        "nodes",
        "trouble",
        "p50, ms",
        "p95",
        "p99",
        "refused",
        "calls asked twice",
        "questions asked anew",
    ]
    return (
        f"How each trouble adds up with the fan-out, of nodes with one shard of {first['shard_rows']:,} rows, "
        f"{first['admissible_a_shard']:,} of them admissible, and one core:\n\n" + _table(headings, rows)
    )


def _made(records: list[dict[str, Any]]) -> str:
    """Say at which commit, on which processor and beside what load records were made, and of how many questions."""
    if not records:
        return "not measured"
    commits = ", ".join(dict.fromkeys(one["commit"] for one in records))
    cpus = ", ".join(dict.fromkeys(one["cpu"] for one in records))
    numbers = sorted({one["n"] for one in records})
    many = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    load = max(one["load"] for one in records)
    return f"n {many}, commit {commits}, {cpus}, load up to {load:.1f}"


def _ms(value: float) -> str:
    """Write three digits, or all before the point."""
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
