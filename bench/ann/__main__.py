"""Filtered search measured side by side: ``python -m bench.ann``.

::

    python -m bench.ann --sets mixture-26k-1024,text-26k-384 --out bench/ann/results/NAME.jsonl
    python -m bench.ann build --sets mixture-200k-384 --rounds 3 --out bench/ann/results/NAME.jsonl
    python -m bench.ann large --sets stream-10m-96 --variants word --dtypes int8 --out FILE
    python -m bench.ann audiences --sets mixture-1m-128 --out FILE
    python -m bench.ann report --out bench/ann/REPORT.md --page docs/benchmarks.md
    python -m bench.ann --fast --out FILE
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.ann import audiences
from bench.ann.datasets import SETS, default_cache
from bench.ann.peers import PEERS
from bench.ann.policies import SHARES
from bench.ann.report import plot, replace_section, report, summary
from bench.ann.results import read
from bench.ann.run import Settings
from bench.ann.session import Scope, run, run_audiences, run_builds, run_large, run_tax, writer
from carag.errors import CaragError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LIBRARIES: Final = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "RAYON")
_REEXECUTED: Final = "CARAG_BENCH_ENVIRONMENT"
_SLOW_BLAS: Final = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Set on some machines for old libraries' sake; they would slow the peers that use numpy."""

FAST: Final = Settings(seconds=0.4, scout_seconds=0.01, rounds=3, queries=60)
FAST_SCOPE: Final = {
    "sets": ("mixture-5k-64",),
    "peers": ("numpy-grouped", "hnswlib-callback"),
    "shares": (1.0, 0.1, 0.01, 0.0),
}
FAST_LISTS: Final = FAST_SCOPE | {"peers": ("pgvector-rls",), "shares": audiences.SHARES}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the environment is as it should be."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0].startswith("-"):
        words = ["run", *words]
    options = _parser().parse_args(words)
    try:
        options.command(options)
    except CaragError as error:
        print(error, file=sys.stderr)
        return 64
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.ann", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for name, measure, about in (
        ("run", run, "every cell, one query at a time on one core (the default)"),
        ("build", run_builds, "how long a graph takes to build, against hnswlib's"),
        ("tax", run_tax, "a policy against an index of the admissible rows alone"),
        (
            "audiences",
            run_audiences,
            "rows that are shared with groups, as a session with 300 groups finds them",
        ),
        ("large", run_large, "many rows from a stream: built, mapped and searched"),
    ):
        one = commands.add_parser(name, help=about)
        _add_options(one)
        one.set_defaults(command=partial(_measure, measure, FAST_SCOPE))
        if measure is run_audiences:
            one.set_defaults(command=partial(_measure, measure, FAST_LISTS), shares=audiences.SHARES)
    written = commands.add_parser(
        "report", help="write the report, and the section of a page, from result files"
    )
    written.set_defaults(command=_report)
    written.add_argument("results", type=Path, nargs="*", help="by default every file in bench/ann/results")
    written.add_argument("--out", type=Path, help="Markdown; by default it is printed")
    written.add_argument("--page", type=Path, help="whose section between the two markers is rewritten")
    written.add_argument("--plot", type=Path, help="SVG: times the best peer, by share")
    return parser


def _add_options(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--sets", type=_names, default=("mixture-26k-1024", "text-26k-384"), help=", ".join(SETS)
    )
    one.add_argument("--peers", type=_names, default=(), help=f"by default all: {', '.join(PEERS)}")
    one.add_argument("--variants", type=_names, default=("word", "session"))
    one.add_argument("--dtypes", type=_names, default=("float32",), help="how CARAG stores rows")
    one.add_argument("--shares", type=_shares, default=SHARES, help="admissible shares; 0 is an empty policy")
    one.add_argument("--queries", type=int, default=Settings().queries, help="at most, a cell")
    one.add_argument("--rounds", type=int, default=Settings().rounds)
    one.add_argument("--seconds", type=float, default=Settings().seconds, help="of a cell's rounds")
    one.add_argument(
        "--policy-inside",
        action=argparse.BooleanOptionalAction,
        default=Settings().policy_inside,
        help="make the policy inside every timed call of `run`, or once a session",
    )
    one.add_argument("--core", type=int, default=-1, help="processor to stay on; by default the last")
    one.add_argument("--threads", type=_counts, default=(), help="of builds; by default one, and all")
    one.add_argument("--cache", type=Path, default=default_cache(), help="data, graphs, truth")
    one.add_argument("--out", type=Path, required=True, help="JSON lines; records are appended")
    one.add_argument("--fast", action="store_true", help="a smoke run of less than a minute")


def _measure(
    measure: Callable[..., None], fast: dict[str, tuple[Any, ...]], options: argparse.Namespace
) -> None:
    settings = Settings(
        seconds=options.seconds,
        rounds=options.rounds,
        queries=options.queries,
        policy_inside=options.policy_inside,
    )
    chosen = {"sets": options.sets, "peers": options.peers, "shares": options.shares}
    scope = Scope(
        **(fast | ({"peers": options.peers} if options.peers else {}) if options.fast else chosen),
        cache=options.cache,
        variants=options.variants,
        dtypes=options.dtypes,
        core=options.core,
        threads=options.threads,
    )
    measure(scope, FAST if options.fast else settings, writer(options.out))


def _report(options: argparse.Namespace) -> None:
    committed = Path(__file__).with_name("results")
    results = read(options.results or sorted(committed.glob("*.jsonl*")))
    text = report(results)
    if options.plot:
        options.plot.write_text(plot(results), encoding="utf-8")
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    elif not options.page:
        print(text)
    if options.page:
        page = options.page.read_text(encoding="utf-8")
        options.page.write_text(replace_section(page, summary(results)), encoding="utf-8")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _shares(text: str) -> tuple[float, ...]:
    return tuple(float(share) for share in text.split(","))


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(count) for count in text.split(","))


def _start_over() -> None:
    """Start over with one thread a library: they read their numbers when they are loaded."""
    if os.environ.get(_REEXECUTED):
        return
    environment = {name: value for name, value in os.environ.items() if name not in _SLOW_BLAS}
    environment |= {f"{library}_NUM_THREADS": "1" for library in _LIBRARIES}
    environment[_REEXECUTED] = "1"
    os.execve(sys.executable, sys.orig_argv, environment)  # noqa: S606 - this very command again


if __name__ == "__main__":
    _start_over()
    sys.exit(main())
