"""Measure what an erasure leaves behind, and what it costs: ``python -m bench.erasing drift|files|cost|report``.

Each measurement writes its rows to ``results/`` beside this file, in the places of earlier ones of the same index, and
``report`` lays out ``RESULTS.md`` from all of them. A peer whose package is missing ends the run with an error.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bench.erasing import cost, drift, files
from bench.erasing.peers import Kept
from bench.erasing.report import report
from bench.harness import about, parser, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_Kind = TypeVar("_Kind", bound=Kept)
HERE: Final = Path(__file__).parent


def main() -> None:
    """Measure one thing, or write the page."""
    arguments = parser("bench.erasing", __doc__)
    arguments.add_argument("what", choices=["drift", "files", "cost", "report"])
    arguments.add_argument(
        "--peers", type=lambda text: text.split(","), help="names of classes; by default all"
    )
    arguments.add_argument(
        "--pairs", type=int, help="pairs of each peer; by default as many as were published"
    )
    arguments.add_argument("--chunks", type=int, default=22_000, help="chunks of the store of cost")
    arguments.add_argument("--store", type=Path, help="where that store is kept; made there if it is missing")
    arguments.add_argument("--out", type=Path, default=HERE / "results")
    given = arguments.parse_args()
    given.out.mkdir(exist_ok=True)
    if given.what == "report":
        write(
            report(*(_read(given.out / f"{what}.jsonl") for what in ("drift", "files", "cost"))),
            HERE / "RESULTS.md",
        )
    elif given.what == "cost":
        with tempfile.TemporaryDirectory() as scratch:
            store = given.store or Path(scratch) / "store"
            _write(given.out / "cost.jsonl", cost.measured(store, given.chunks, seed=7))
    elif given.what == "drift":
        for kind in _named(drift.PAIRS, given.peers):
            _write(given.out / "drift.jsonl", drift.measured(kind, given.pairs))
    else:
        for one in _named(files.KINDS, given.peers):
            _write(given.out / "files.jsonl", files.measured(one))


def _named(kinds: Iterable[type[_Kind]], names: Sequence[str] | None) -> list[type[_Kind]]:
    known = {kind.__name__: kind for kind in kinds}
    return [known[name] for name in names or known]


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    began = about()
    kept = {row["index"]: row for row in _read(path)} | {row["index"]: row | {"about": began} for row in rows}
    path.write_text("".join(json.dumps(row) + "\n" for row in kept.values()), encoding="utf-8")


if __name__ == "__main__":
    main()
