"""Write what storing and opening cost as a Markdown page."""

from __future__ import annotations

import statistics
from typing import Any, Final

from bench.harness import described, table

MOST_REST: Final = 300
"""Microseconds a document that everything but embedder and index may take."""
MOST_OPENING: Final = 2.0
"""Seconds from opening a store of a million documents to the first answer."""

_PAGE: Final = """\
# What storing a document and opening a store cost

Written by `python -m bench.documents`; do not edit.

## Adding {documents:,} documents

Each has 200 to 400 characters under the generic profile: facts with a classification of four values, two fields of
metadata, up to two entities, and a day of publication. Median of n = {rounds} and, in brackets, the best and the worst.

{add}

*Index* is the time inside `Index.add`, `relabel`, `delete` and `consolidate`. *All else* is what is left of the total:
checking, labelling, cutting, hashing, the transactions of the store with every sync, the index state, the record in the
audit log, and writing the index file. Its CPU time leaves out waiting for the disk and for a busy
processor: beside other work (see the load in the settings) times by the clock mean little. *Saving* is the part of
it that writes the index file. The total leaves out making the `Document` objects, {making:.0f} µs a document. A
document takes {bytes:,.0f} bytes on the disk, with the log.

## Opening a store of {rows:,} documents

From `Engine.open` in a new process, with everything imported, to the first answer of `Engine.retrieve`.

{open}

An index file above 64 MiB is mapped: words, times and keys are checked before the first search; vectors and graph are
checked in a thread of their own, whose time is not counted here.

## Settings

- Seed {seed}; vectors of {dim} dimensions from a hash of the text, without neighbourhoods. The store lies on a
  local disk.
- {described} Load {load_end:.1f} at the end; SQLite {sqlite}.
"""


def report(found: dict[str, Any]) -> str:
    """Lay the page out."""
    calls = sorted({run["a_call"] for run in found["add"]}, reverse=True)
    documents = found["about"]["documents"]
    return _PAGE.format(
        **found["about"],
        load_end=found["load_end"],
        described=described(found["about"]),
        add=table(
            ["documents a call", "total s", "embedder s", "index s", *_REST],
            (
                _added(a_call, [run for run in found["add"] if run["a_call"] == a_call], documents)
                for a_call in calls
            ),
        ),
        making=1e6 * statistics.median(run["making_s"] for run in found["add"]) / documents,
        bytes=statistics.median(run["bytes_a_document"] for run in found["add"]),
        open=table(
            [
                "files",
                "n",
                "until open, s",
                "of that, the index",
                "first answer, s",
                "target",
                "peak memory, MB",
            ],
            (
                _opened(called, [run for run in found["open"] if run["step"] == step])
                for step, called in (("open", "in the page cache"), ("open-cold", "dropped from it"))
            ),
        ),
    )


_REST: Final = ("all else, µs a document", "target", "its CPU, µs", "saving, µs")


def _added(a_call: int, runs: list[dict[str, float]], documents: int) -> list[str]:
    saving = 1e6 * statistics.median(run["saving_s"] for run in runs) / documents
    times = [_shown(runs, name, ".1f") for name in ("total_s", "embedder_s", "index_s")]
    rest, cpu = (_shown(runs, name, ".0f") for name in ("rest_us", "rest_cpu_us"))
    return [f"{a_call:,}", *times, rest, f"≤ {MOST_REST}", cpu, f"{saving:.0f}"]


def _opened(called: str, runs: list[dict[str, float]]) -> list[str]:
    times = [_shown(runs, name, ".2f") for name in ("open_s", "index_load_s", "answer_s")]
    return [called, str(len(runs)), *times, f"≤ {MOST_OPENING:.0f}", _shown(runs, "peak_mb", ".0f")]


def _shown(runs: list[dict[str, float]], name: str, digits: str) -> str:
    values = [run[name] for run in runs]
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:{digits}} [{least:{digits}}, {most:{digits}}]"
