"""Backends beside the native index, and sizes simulated from what was measured: ``python -m bench.distributed``.

::

    python -m bench.distributed run --set mixture-200k-384 --out bench/distributed/results/side-by-side.jsonl
    python -m bench.distributed pieces --out bench/distributed/results/pieces.jsonl
    python -m bench.distributed small --out bench/distributed/results/small-end.jsonl
    python -m bench.distributed simulate --out bench/distributed/results/simulated.jsonl
    python -m bench.distributed report --page docs/explanation/which-backend.md

``run --set mixture-5k-64 --questions 5`` is a smoke run. Servers take part if their packages are installed; Milvus
needs root besides, for a network of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.ann.datasets import SETS, default_cache
from bench.commit import commit
from bench.distributed import measure, report, shard, sizes, small
from bench.distributed.places import PLACES
from carag.errors import CaragError
from carag.evaluation.run_metadata import processor_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

RESULTS: Final = Path(__file__).with_name("results")
_DEFAULT: Final = measure.Scope("", (), Path(), Path())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command."""
    given = _parser().parse_args(argv)
    try:
        given.command(given)
    except CaragError as error:
        print(error, file=sys.stderr)
        return 64
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.distributed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)

    def command(name: str, run: Callable[[argparse.Namespace], None], about: str) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=about)
        one.set_defaults(command=run)
        return one

    side = command("run", _run, "places side by side, every share of admissible rows")
    side.add_argument("--set", choices=SETS, default="mixture-200k-384")
    side.add_argument("--places", default=",".join(PLACES), help=", ".join(PLACES))
    side.add_argument("--cache", type=Path, default=default_cache())
    side.add_argument("--questions", type=int, default=_DEFAULT.questions, help="at most, a place and share")
    side.add_argument("--seconds", type=float, default=_DEFAULT.seconds, help="likewise")
    side.add_argument("--minutes", type=float, default=_DEFAULT.minutes, help="that loading a place may take")
    side.add_argument(
        "--graph", action="store_true", help="let PostgreSQL build its graph, and measure it too"
    )
    pieces = command("pieces", _pieces, "what one shard of the native index takes")
    few = command("small", _small, "a few real shards beside their simulation")
    few.add_argument("--shards", type=int, default=3)
    for one, rows in ((pieces, 1_000_000), (few, 100_000)):
        one.add_argument("--rows", type=int, default=rows, help="of a shard")
        one.add_argument("--dim", type=int, default=384)
        one.add_argument("--questions", type=int, default=200)
        one.add_argument("--seed", type=int, default=0)
    simulated = command("simulate", _simulate, "10^7 to 10^9 rows, from the results of the others")
    simulated.add_argument("--seed", type=int, default=0)
    simulated.add_argument("--core-hour", type=float, help="what a core costs an hour")
    simulated.add_argument("--gb-month", type=float, help="what a GB of memory costs a month; both, or none")
    for one in (side, pieces, few, simulated):
        one.add_argument("--out", type=Path, required=True, help="JSON lines; written anew")
    written = command("report", _report, "write the section of a page from result files")
    written.add_argument("--page", type=Path, help="by default it is printed")
    for one in (written, simulated):
        one.add_argument("--results", type=Path, default=RESULTS, help="their directory")
    return parser


def _run(given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="carag-bench-") as scratch:
        scope = measure.Scope(
            set=given.set,
            places=tuple(name for name in given.places.split(",") if name),
            cache=given.cache,
            scratch=Path(scratch),
            questions=given.questions,
            seconds=given.seconds,
            minutes=given.minutes,
            with_graph=given.graph,
        )
        with given.out.open("w", encoding="utf-8") as file:

            def write(record: dict[str, Any]) -> None:
                file.write(_line(record))
                file.flush()

            measure.run(scope, _about(), write)


def _pieces(given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="carag-bench-") as scratch:
        records = shard.measured(given.rows, given.dim, given.questions, given.seed, Path(scratch))
        _write(given.out, ({**one, **_about()} for one in records))


def _small(given: argparse.Namespace) -> None:
    records = small.compared(given.shards, given.rows, given.dim, given.questions, given.seed)
    _write(given.out, ({**one, **_about()} for one in records))


def _simulate(given: argparse.Namespace) -> None:
    is_priced = given.core_hour is not None and given.gb_month is not None
    prices = sizes.Prices(given.core_hour, given.gb_month) if is_priced else None
    measured = [one for one in report.read(_results(given)) if not one["kind"].startswith("simulated")]
    _write(given.out, sizes.simulated(measured, prices, given.seed))


def _report(given: argparse.Namespace) -> None:
    records = report.read(_results(given))
    if given.page is None:
        print(report.section(records))
    else:
        given.page.write_text(report.with_section(given.page.read_text("utf-8"), records), "utf-8")


def _results(given: argparse.Namespace) -> list[Path]:
    return sorted(given.results.glob("*.jsonl"))


def _about() -> dict[str, Any]:
    return {"commit": commit(), "cpu": processor_name(), "load": round(os.getloadavg()[0], 2)}


def _write(out: Path, records: Iterable[dict[str, Any]]) -> None:
    with out.open("w", encoding="utf-8") as file:
        for one in records:
            print({name: value for name, value in one.items() if name != "ms"}, flush=True)
            file.write(_line(one))
            file.flush()


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    sys.exit(main())
