"""Lay out what the attacks found as a page."""

from __future__ import annotations

from typing import Any, Final

from bench.harness import described, table

_METHOD: Final = """# What `carag attack` finds in ten retrieval systems

Written by `python -m bench.attack` from `results.json`.

## Method

Each target is one file in `bench/attack/targets/`: a system at the version stated, with a filter of its own, in a
set-up as small as possible. `carag attack` plants documents for made-up readers in it, asks, and
[says what came and what would have been right](../../docs/how-to/attack-your-retrieval.md). A quick run plants 60
hidden documents in most checks; a thorough one has three rounds and plants 600. Vectors are sums of a random vector for
each word, so that no model decides what is near; our engine and service embed with WordLlama.

What the page says of a system is what was run and seen in this set-up, and nothing more:

- *not tried* says that the target has no such method, or that the check could not fail there. It is not a pass.
- *forgotten* asks without naming a reader. Where a filter is an argument of each call, the target then gives no filter,
  as a caller who forgets it would. That such a system then returns everything is its design, which leaves the filter to
  each caller.
- *files* looks for texts and vectors after the calls in the target's file. Other steps that an operator could take,
  such as `chroma vacuum`, were not taken.
- *time* is one timing on one machine. That nothing was found does not prove that nothing is there.
- Chroma, Redis, `pgvector_hnsw` and `pgvector_iterative` search a graph; the other targets scan. PostgreSQL was told
  not to scan the tables of these two, because its planner would scan so few rows.

"""


_KEYS: Final = ("check", "question", "came", "right", "sure")


def report(rows: list[dict[str, Any]]) -> str:
    """Write the page: methods, one table, then each target."""
    lines = [_METHOD, "## Outcomes", ""]
    lines.append(table(["target", "versions", "run", "found", "nothing found", "not tried"], map(_row, rows)))
    for one in rows:
        lines += ["", f"## {one['target']}", "", one["what"].partition("\n")[0], ""]
        run = f"Seed {one['seed']}, {one['requests']} requests in {one['seconds']:.0f} s."
        lines.append(f"{run} {described(one['about'])}")
        found = [[f[key] for key in _KEYS] for o in one["outcomes"] for f in o["findings"]]
        if found:
            lines += ["", table(["check", "asked", "came", "right", "how sure"], found)]
        lines += [
            "",
            *(f"- {o['check']} was not tried: {o['not_tried']}" for o in one["outcomes"] if o["not_tried"]),
        ]
        lines += [one["left"]] if one["left"] else []
    return "\n".join(lines).rstrip() + "\n"


def _row(one: dict[str, Any]) -> list[str]:
    states: dict[str, list[str]] = {"found": [], "nothing found": [], "not tried": []}
    for outcome in one["outcomes"]:
        states[outcome["state"]].append(outcome["check"])
    versions = ", ".join(f"{name} {number}" for name, number in one["versions"].items())
    run = "thorough" if one["thorough"] else "quick"
    counts = [str(len(states["nothing found"])), str(len(states["not tried"]))]
    return [one["target"], versions, run, ", ".join(states["found"]) or "nothing", *counts]
