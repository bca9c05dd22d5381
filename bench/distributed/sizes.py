"""Simulate sizes that no machine here holds, from pieces that were measured, and what they cost in machines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bench.distributed.simulate import UNTROUBLED, Assumptions, Cluster, Outcome, Piece, simulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FAN_OUTS", "ROWS", "USED", "Prices", "pieces_of", "simulated"]

ROWS: Final = (10_000_000, 100_000_000, 1_000_000_000)
FAN_OUTS: Final = (4, 16, 64, 256)
"""Nodes of one shard and one core each."""
USED: Final = 0.3
"""Part of the cores that questions may keep busy: beyond it they wait for each other, which is not simulated."""
_GB: Final = 1e9
_HOURS: Final = 730
"""Of a month."""
_DOCUMENTED: Final = ("native", "postgresql")
"""Places whose pieces are simulated: those that can be shards here."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What machines cost, for who knows it; nothing is assumed."""

    core_hour: float
    """In whatever currency."""
    gb_month: float
    """Of memory; disks are not counted."""


class _Bytes(NamedTuple):
    """What a row takes."""

    memory: float
    disk: float


def pieces_of(records: Iterable[dict[str, Any]]) -> list[Piece]:
    """Take the pieces from result records: of a shard, or of a place that was measured beside the native index.

    Where a place was measured at several sizes, the largest counts.
    """
    found: dict[tuple[str, float], Piece] = {}
    for one in records:
        is_piece = one["kind"] == "piece" or (one["kind"] == "cell" and one["place"] == "postgresql")
        if not is_piece:
            continue
        piece = Piece(one["place"], one["rows"], one["dim"], one["admissible"], np.array(one["ms"]))
        share = one.get("share", one["admissible"] / one["rows"])
        before = found.get((piece.place, share))
        if before is None or before.rows * before.dim <= piece.rows * piece.dim:
            found[piece.place, share] = piece
    return list(found.values())


def simulated(records: list[dict[str, Any]], prices: Prices | None, seed: int) -> Iterator[dict[str, Any]]:
    """Simulate every piece at every size, and fan-outs of one piece under one trouble after the other."""
    takes = {
        one["place"]: _Bytes(one["bytes_a_row"], one["file_bytes_a_row"])
        for one in records
        if one["kind"] == "shard"
    }
    pieces = [piece for piece in pieces_of(records) if piece.place in _DOCUMENTED]
    for piece in pieces:
        for rows in ROWS:
            cluster = Cluster(max(1, rows // piece.rows))
            outcome = simulate(piece, cluster, seed=seed)
            yield {
                "kind": "simulated size",
                "rows": rows,
                "seed": seed,
                **_told(piece, cluster, outcome),
                **_cost(piece, cluster, outcome, takes.get(piece.place), prices),
            }
    middle = [piece for piece in pieces if piece.place == "native" and 100 * piece.admissible == piece.rows]
    for piece in middle:
        for nodes in FAN_OUTS:
            for trouble, cluster, assumed in _troubles(nodes):
                outcome = simulate(piece, cluster, assumed, seed=seed)
                yield {
                    "kind": "simulated fan-out",
                    "fan_out": nodes,
                    "trouble": trouble,
                    "seed": seed,
                    "assumed": asdict(assumed),
                    **_told(piece, cluster, outcome),
                }


def _troubles(nodes: int) -> Iterator[tuple[str, Cluster, Assumptions]]:
    def cluster(replicas: int, hedge: float | None) -> Cluster:
        return Cluster(nodes, shards_a_node=1, cores_a_node=1, replicas=replicas, hedge=hedge)

    yield "none", cluster(1, None), UNTROUBLED
    yield "all, one replica", cluster(1, None), Assumptions()
    yield "all, two replicas, no hedge", cluster(2, None), Assumptions()
    yield "all, two replicas, hedged", cluster(2, 0.95), Assumptions()
    yield "all, hedged, asked anew at a flip", cluster(2, 0.95), Assumptions(replays=False)


def _told(piece: Piece, cluster: Cluster, outcome: Outcome) -> dict[str, Any]:
    return {
        "place": piece.place,
        "shard_rows": piece.rows,
        "dim": piece.dim,
        "admissible_a_shard": piece.admissible,
        **asdict(cluster),
        "n": len(outcome.ms),
        **{f"p{100 * at:g}_ms": round(outcome.quantile(at), 2) for at in (0.5, 0.95, 0.99)},
        "refused": outcome.refused,
        "asked_twice": round(outcome.asked_twice, 4),
        "asked_anew": outcome.asked_anew,
        "core_seconds": round(outcome.core_seconds, 4),
    }


def _cost(
    piece: Piece, cluster: Cluster, outcome: Outcome, takes: _Bytes | None, prices: Prices | None
) -> dict[str, Any]:
    """Count machines, what is on each, and how many questions a second they answer at :data:`USED`."""
    machines = cluster.nodes * cluster.replicas
    cores = machines * cluster.cores_a_node
    cost: dict[str, Any] = {
        "machines": machines,
        "per_second": round(USED * cores / outcome.core_seconds, 1),
    }
    if takes is None:
        return cost
    here = piece.rows * cluster.shards_a_node / _GB
    cost |= {"memory_gb": round(here * takes.memory, 1), "disk_gb": round(here * takes.disk, 1)}
    if prices is not None:
        a_month = cores * prices.core_hour * _HOURS + machines * cost["memory_gb"] * prices.gb_month
        cost["a_month"] = round(a_month, 2)
    return cost
