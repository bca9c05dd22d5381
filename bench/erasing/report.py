"""Lay out what erasures leave behind, and what they cost, as a Markdown page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bench.harness import described, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    Rows = Sequence[dict[str, Any]]

MOST_TIMES: Final = 2.0
"""What erasing a hundred documents may take, in times of one consolidation."""
MOST_AUC: Final = 0.52
"""What an attacker may reach on a plan that is exact."""

_PAGE: Final = """\
# What an erasure leaves behind, and what it costs

Written by `python -m bench.erasing report`; do not edit.

## In the answers

A pair of indexes holds the same 2,000 vectors (40 clusters, 32 dimensions, unit length) under the same ids. One of the
two also held 50 vectors around a secret point, inserted among the others, and erased them by the strongest means that
its engine offers. An attacker knows the 2,000 vectors and the point, and sees ids and scores of the 10 nearest rows of
500 probes near the point and of 500 elsewhere. The *guess* is the share of true neighbours that are missing near the
point, less that elsewhere. The *trained* score is a logistic regression over 15 such figures, fitted on half of the
pairs and judged on the other half. Both are areas under the curve with 95 % intervals, bootstrapped by pairs: 0.5 tells
nothing, and 0 tells as much as 1. *Equal* counts pairs whose two answers agree in every id and score. *Missing* is the
share of true neighbours near the point, with the erasure and without it. The settings are each library's defaults,
except that FAISS searches 4 of 45 lists, Qdrant's core builds a graph of so few rows and merges segments at once, and
PostgreSQL is kept from reading all rows. The goal for CARAG's exact and certified plans is at most {most_auc}.

{drift}

CARAG builds its graph again from the rows that are left, so that the two indexes of a pair answer alike on every plan.
hnswlib keeps a marked row as a way through the graph, and finds *more* near an erased point than it would without.
FAISS's lists keep centroids that were trained on the erased rows. Where FAISS removes nothing, the selector hides rows
that still fill the beam.

## In the files

100 of 2,000 such vectors are erased, and everything is saved. The table shows the share of them that is still in
the files, byte for byte: as 32-bit floats as given or of unit length, in CBOR, or as a pickle of Python's floats.
*Before* is the same search without an erasure. Compressed forms, and parts of vectors, are not searched for.

{files}

The local mode of Qdrant's client keeps rows in SQLite; here, as in Debian, SQLite is compiled to overwrite what is
deleted. The erased rows of Qdrant's core are in its journal (`wal/`), those of PostgreSQL in its own
(`pg_wal`) until that is recycled, and those of Chroma in its graph's file.
The byte scanner of tombstone-erase 0.1.1 (`tombstone.verify.physical`, five forms of floats), run over CARAG's
store of this table, found all 100 vectors before and none after, both open and closed. Its command `tombstone scan`
does not read a store of CARAG's: it looks for Chroma, FAISS, Qdrant and pgvector, says "nothing found" and ends
with status 2.

## What it takes

Stores of documents of one chunk each, vectors of {dim} dimensions from a hash of the text, which have no
neighbourhoods, so that graphs are costly to build. *Parts* are timed on copies: consolidating the index without these
rows, saving it, and one VACUUM of `corpus.db`. *Beside questions*: another thread asks `retrieve` without a pause; the
figures describe the questions that it met. The goal for 100 documents is {most_times:g} × one consolidation. Parts and
erasures alone are seconds of the processor; those of 22,000 chunks are by the clock, on an idle machine. The store of
221,000 chunks was measured beside other work, which lengthens what questions take.

{cost}

Nearly all of the time goes into building the graph again, beside which questions are answered; with thousands of
documents, as much again into taking them out of the tables, 500 in one transaction. Questions wait longest for such a
transaction, which looks through all documents for those that name an erased one.

## Settings

{settings}
"""


def report(drift: Rows, files: Rows, cost: Rows) -> str:
    """Lay the page out."""
    return _PAGE.format(
        most_auc=MOST_AUC,
        most_times=MOST_TIMES,
        dim=cost[0]["dim"],
        drift=table(
            ["index", "erased by", "pairs", "equal", "guess", "trained", "missing"], map(_drifted, drift)
        ),
        files=table(
            ["index", "erased by", "before", "after"],
            ([one["index"], one["means"], f"{one['before']:.0%}", _bold(one["after"])] for one in files),
        ),
        cost=table(
            [
                *(
                    "chunks",
                    "documents",
                    "consolidate s",
                    "save s",
                    "VACUUM s",
                    "erase, alone s",
                    "× one consolidation",
                ),
                *("beside questions s", "questions", "p50 ms", "longest ms", "before: p50 ms", "longest ms"),
            ],
            map(_took, cost),
        ),
        settings="\n".join(
            f"- {what}: {described(rows[-1]['about'])}"
            for what, rows in (("Answers", drift), ("Files", files), ("Cost", cost))
        ),
    )


def _drifted(row: dict[str, Any]) -> list[str]:
    had, never = row["missing"]
    return [
        *(row["index"], row["means"], str(row["pairs"]), str(row["same"])),
        *(f"{auc:.3f} ({low:.3f} .. {high:.3f})" for auc, low, high in (row["untrained"], row["trained"])),
        f"{had:.1%}, {never:.1%}",
    ]


def _bold(share: float) -> str:
    return f"**{share:.0%}**" if share else "0"


def _took(row: dict[str, Any]) -> list[str]:
    times = row["alone_s"] / row["consolidate_s"]
    missed = row["documents"] == 100 and times > MOST_TIMES
    return [
        *(f"{row[name]:,}" for name in ("chunks", "documents")),
        *(f"{row[name]:.1f}" for name in ("consolidate_s", "save_s", "vacuum_s", "alone_s")),
        f"**{times:.2f}**" if missed else f"{times:.2f}",
        f"{row['asked_s']:.1f}",
        str(row["asked"]["n"]),
        *(f"{row[when][name]:,.0f}" for when in ("asked", "before") for name in ("p50_ms", "max_ms")),
    ]
