"""Committed rows, read back: what each engine reaches in each cell, and what was asked of CARAG there."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bench.ann.curves import Point, qps_at
from bench.ann.run import Row
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


CARAG: Final = "carag"
GOAL_RECALL: Final = 0.99
GOAL_P1: Final = 0.9
GOALS: Final[dict[str, tuple[tuple[float, float, float, float], ...]]] = {
    "mixture-1m-128": ((0.2, 1.7, 3.0, 2.0), (0.05, 4.0, 4.0, 2.0), (0.01, 3.0, 3.0, 3.0)),
    "mixture-200k-384": (
        (1.0, 1.2, 1.2, 1.2),
        (0.2, 4.0, 3.0, 1.5),
        (0.05, 3.0, 3.0, 2.0),
        (0.01, 3.0, 3.0, 3.0),
    ),
    "mixture-26k-1024": (
        (1.0, 2.5, 2.5, 2.5),
        (0.2, 4.0, 3.0, 1.5),
        (0.05, 3.0, 3.0, 1.5),
        (0.01, 1.5, 1.5, 1.5),
    ),
    "text-26k-384": ((0.01, 1.5, 1.5, 1.5),),
}
"""Times the best peer's throughput that is wanted: for shares from so much up, under a neutral, an anti-correlated and
a correlated policy."""
NEVER_BEHIND: Final = 1.0
"""Wanted of every cell, whatever else is."""
CALL_BOUND: Final = 5_000.0
"""Queries a second of a peer above which the call itself is the cost."""
CALL_GOAL: Final = 1.2
"""Wanted where it is, and of shares too small for the table above."""
SESSION_PART: Final = 0.8
"""Of a goal that is wanted where a policy has an instant and a deny list."""
NARROW_PART: Final = 0.8
"""Of a goal that is wanted of a kernel without AVX-512."""


@dataclass(frozen=True, slots=True, order=True)
class CellKey:
    """Which cell of a data set."""

    variant: str
    closed: float
    """Minus the share asked for, so that cells sort from open to tight."""
    correlation: str

    @property
    def share(self) -> float:
        """The share asked for."""
        return -self.closed

    @property
    def label(self) -> str:
        """Name it in a table."""
        share = "empty" if not self.share else f"{100 * self.share:g} %"
        return share if self.correlation == "neutral" else f"{share} {self.correlation}"


@dataclass(frozen=True, slots=True)
class Reached:
    """An engine and its throughput at a recall."""

    engine: str
    qps: float


@dataclass(frozen=True, slots=True)
class CellResult:
    """The rows of one cell: those of the rounds where an engine took part in them, else of the scout."""

    key: CellKey
    rows: tuple[Row, ...]
    machine: dict[str, Any]
    """Where they were measured."""

    def of(self, engine: str) -> list[Row]:
        """List the rows of one engine."""
        return [row for row in self.rows if row.engine == engine]

    @property
    def engines(self) -> list[str]:
        """Name the engines, in the order they were measured in."""
        return list(dict.fromkeys(row.engine for row in self.rows))

    @property
    def auto(self) -> Row:
        """CARAG as it comes."""
        return self.of(CARAG)[0]

    def reached(self, engine: str, recall: float) -> float | None:
        """Return an engine's throughput at a recall, or None if its sweep does not reach it."""
        return qps_at([Point(row.effort, row.recall, row.qps) for row in self.of(engine)], recall)

    def best_peer(self, recall: float) -> Reached | None:
        """Find the fastest peer at a recall."""
        found = [
            Reached(engine, qps)
            for engine in self.engines
            if self.of(engine)[0].is_peer and (qps := self.reached(engine, recall)) is not None
        ]
        return max(found, key=lambda reached: reached.qps, default=None)

    @property
    def sound(self) -> bool:
        """Whether the answers of ``auto`` are as good as they have to be, whatever their speed."""
        row = self.auto
        return row.recall >= GOAL_RECALL and row.recall_p1 >= GOAL_P1 and not row.short and not row.violations

    def ratio(self) -> float | None:
        """Divide the throughput of ``auto`` by the best peer's at recall 0.99."""
        best = self.best_peer(GOAL_RECALL)
        return self.auto.qps / best.qps if best else None

    @property
    def goal(self) -> float:
        """How many times the best peer's throughput is wanted here."""
        return goal(self.auto.set, self.key, self.machine["kernel"], self.best_peer(GOAL_RECALL))

    @property
    def met(self) -> bool:
        """Whether the goal of the cell is met."""
        ratio = self.ratio()
        return self.sound and (ratio is None or ratio >= self.goal)


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that was read."""

    machines: tuple[dict[str, Any], ...]
    cells: dict[str, list[CellResult]]
    """By data set, and by kernel unless that is one of AVX-512."""
    others: tuple[dict[str, Any], ...]
    """Records of builds, of the policy tax, of passes over classes and of large indexes."""


def goal(name: str, key: CellKey, kernel: str, best: Reached | None) -> float:
    """Return how many times the best peer's throughput is wanted in a cell of a data set; one without goals wants 1."""
    column = ("neutral", "anti", "corr").index(key.correlation)
    stated = (some for least, *some in GOALS.get(name, ()) if key.share >= least)
    wanted = next(stated, [CALL_GOAL if name in GOALS else NEVER_BEHIND] * 3)[column]
    if best and best.qps > CALL_BOUND:
        wanted = min(wanted, CALL_GOAL)
    wanted *= SESSION_PART if key.variant == "session" else 1.0
    wanted *= 1.0 if is_wide(kernel) else NARROW_PART
    return max(NEVER_BEHIND, round(wanted, 3))


def is_wide(kernel: str) -> bool:
    """Tell whether a kernel uses AVX-512."""
    return kernel.startswith("avx512")


def read(paths: Iterable[Path]) -> Results:
    """Read result files; of two rows of the same engine, cell and effort, the later one counts.

    Raises
    ------
    InvalidArgument
        If a file holds something else, or none holds a measured cell.
    """
    machines: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    rows: dict[tuple[object, ...], tuple[Row, dict[str, Any]]] = {}
    for path in paths:
        for number, record in enumerate(_records(path), start=1):
            match record.pop("kind", None):
                case "machine":
                    machines.append(record)
                case "left out":
                    pass  # said on the terminal
                case "cell":
                    row = Row(**record)
                    name = (row.set, row.variant, row.share, row.correlation, row.engine, row.effort)
                    rows[*name, row.phase, _label(row.set, machines[-1])] = row, machines[-1]
                case "build" | "tax" | "classes" | "large build" | "large" as kind:
                    others.append({"kind": kind, **record, "set": _label(record["set"], machines[-1])})
                case kind:
                    raise InvalidArgument(
                        f"{path}:{number} is a record of kind {kind!r}; is it a result file?"
                    )
    if not rows:
        raise InvalidArgument("the files hold no measured cell; first run python -m bench.ann --out FILE")
    return Results(tuple(machines), _cells(list(rows.values())), tuple(others))


def _records(path: Path) -> list[dict[str, Any]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        return [json.loads(line) for line in content.splitlines()]
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"{path} is not a file of JSON lines: {error}") from error


def _label(name: str, machine: dict[str, Any]) -> str:
    return name if is_wide(machine["kernel"]) else f"{name}, {machine['kernel']}"


def _cells(rows: Sequence[tuple[Row, dict[str, Any]]]) -> dict[str, list[CellResult]]:
    grouped: dict[str, dict[CellKey, list[Row]]] = {}
    machines: dict[str, dict[str, Any]] = {}
    for row, machine in rows:
        key, label = CellKey(row.variant, -row.share, row.correlation), _label(row.set, machine)
        machines[label] = machine
        grouped.setdefault(label, {}).setdefault(key, []).append(row)
    cells: dict[str, list[CellResult]] = {}
    for name, by_key in grouped.items():
        for key in sorted(
            by_key, key=lambda key: (key.variant != "word", key.closed, key.correlation != "neutral", key)
        ):
            some = by_key[key]
            final = {row.engine for row in some if row.phase == "rounds"}
            order = list(dict.fromkeys(row.engine for row in some))
            kept = [row for row in some if row.phase == "rounds" or row.engine not in final]
            kept.sort(key=lambda row: order.index(row.engine))
            if any(row.engine == CARAG for row in kept):
                cells.setdefault(name, []).append(CellResult(key, tuple(kept), machines[name]))
    return cells
