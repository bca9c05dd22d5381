"""Simulate a question to many machines from what one shard was measured to take.

A question first reads the epoch, one round trip; then every node is asked at once, and an answer is one of all
nodes: the slowest decides. A node has several shards and shares them out among its cores. A replica is asked
besides, where a node has not answered by a time (Dean and Barroso, *The tail at scale*, 2013), or is lost. What no
replica answers is refused.

Drawn from measurement: what a shard takes. Assumed, and stated with every result: :class:`Assumptions`. Left out:
that questions wait for each other, so a figure holds at low use; and that nodes are slow together, so that a hedge
helps more here than where they are. Nothing but numpy, and the same seed gives the same figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

__all__ = ["UNTROUBLED", "Assumptions", "Cluster", "Outcome", "Piece", "simulate"]

_AT_ONCE: Final = 4_000_000
"""Draws in memory at a time."""


class Piece(NamedTuple):
    """What one shard was measured to take for one question."""

    place: str
    rows: int
    dim: int
    admissible: float
    """Mean number of admissible rows in the shard."""
    ms: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cluster:
    """How shards lie on machines."""

    shards: int
    shards_a_node: int = 8
    cores_a_node: int = 8
    replicas: int = 2
    hedge: float | None = 0.95
    """The part of a node's answers by whose time a replica is asked besides; None: only where a node is lost."""

    @property
    def nodes(self) -> int:
        """Nodes that a question needs: one of each group of replicas."""
        return -(-self.shards // self.shards_a_node)


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What was not measured."""

    network_ms: float = 0.5
    """Of a round trip, at least."""
    network_tail_ms: float = 0.1
    """Mean of what an exponential draw adds to it."""
    slow_share: float = 0.01
    """Nodes that are slow, drawn anew each minute."""
    slow_times: float = 10.0
    """By how much."""
    straggle_share: float = 0.001
    """Calls that are held up, whichever node."""
    straggle_ms: float = 50.0
    """For how long."""
    seconds_between_losses: float = 60.0
    """Some node is lost so often."""
    down_seconds: float = 30.0
    """And is back after so many."""
    noticed_ms: float = 1.0
    """Until a caller knows that a node is lost: its connection is reset or refused."""
    seconds_between_flips: float = 10.0
    """A writer moves the epoch so often."""
    replays: bool = True
    """Whether a question goes on at its own epoch then; otherwise it is asked anew."""
    seconds: float = 36_000.0
    """Over which questions are spread: long enough that what is rare happens as often as it should."""


UNTROUBLED: Final = Assumptions(
    network_ms=0.0,
    network_tail_ms=0.0,
    slow_share=0.0,
    straggle_share=0.0,
    seconds_between_losses=float("inf"),
    seconds_between_flips=float("inf"),
)
"""Nothing but what was measured."""


class Outcome(NamedTuple):
    """What became of the questions."""

    ms: NDArray[np.float64]
    """Of each question; infinite where it was refused."""
    parts: NDArray[np.int64]
    """Nodes that answered it, of those that it needs."""
    asked_twice: float
    """Share of calls to a node for which a replica was asked, too."""
    asked_anew: int
    """Questions that began again because the epoch moved."""
    core_seconds: float
    """Of a question, mean, replicas included."""

    @property
    def refused(self) -> int:
        """Questions without an answer."""
        return int(np.isinf(self.ms).sum())

    def quantile(self, at: float) -> float:
        """Return a quantile of the time of the answers, in milliseconds."""
        return float(np.quantile(self.ms[np.isfinite(self.ms)], at))


class _Loss(NamedTuple):
    """A node that is lost: seconds, which replica and which node."""

    start: float
    end: float
    replica: int
    node: int


class _Call(NamedTuple):
    """Calls to one replica of every node, (questions, nodes): how long they take, and the work of all cores."""

    ms: NDArray[np.float64]
    work: NDArray[np.float64]


def simulate(
    piece: Piece,
    cluster: Cluster,
    assumed: Assumptions | None = None,
    *,
    questions: int = 20_000,
    seed: int = 0,
) -> Outcome:
    """Ask as many questions, at random instants.

    Examples
    --------
    >>> piece = Piece("native", 1_000, 64, 100, np.array([1.0, 2.0]))
    >>> outcome = simulate(piece, Cluster(4, shards_a_node=1, cores_a_node=1), UNTROUBLED, questions=1_000)
    >>> outcome.quantile(0.5), outcome.refused, outcome.asked_twice
    (2.0, 0, 0.0)
    """
    assumed = assumed or Assumptions()
    rng = np.random.default_rng(seed)
    when = np.sort(rng.random(questions) * assumed.seconds)
    minutes = int(assumed.seconds // 60) + 1
    slow = rng.random((minutes, cluster.replicas, cluster.nodes)) < assumed.slow_share
    losses = _losses(rng, cluster, assumed)
    # Of draws of its own, so that the same seed draws the same whether it hedges or not.
    after = _hedge_after(np.random.default_rng([seed, 1]), piece, cluster, assumed)
    answers: list[tuple[NDArray[np.float64], NDArray[np.bool_]]] = []
    works: list[NDArray[np.float64]] = []
    for some in np.array_split(when, max(1, questions * cluster.shards // _AT_ONCE)):
        ms, twice, work = _asked(rng, piece, cluster, assumed, some, slow, losses, after)
        answers.append((ms, twice))
        works.append(work)
    nodes = np.concatenate([ms for ms, _ in answers])
    ms = nodes.max(axis=1) + _network(rng, assumed, questions)
    ms, anew = _moved(rng, ms, when, assumed)
    return Outcome(
        ms,
        np.isfinite(nodes).sum(axis=1),
        float(np.concatenate([twice for _, twice in answers]).mean()),
        anew,
        float(np.concatenate(works).mean()) / 1000,
    )


def _losses(rng: Generator, cluster: Cluster, assumed: Assumptions) -> list[_Loss]:
    """Lose a node again and again, at equal distances, whichever it is."""
    count = int(assumed.seconds // assumed.seconds_between_losses)
    starts = (np.arange(count) + 0.5) * assumed.seconds_between_losses
    return [
        _Loss(
            start,
            start + assumed.down_seconds,
            int(rng.integers(cluster.replicas)),
            int(rng.integers(cluster.nodes)),
        )
        for start in starts.tolist()
    ]


def _hedge_after(rng: Generator, piece: Piece, cluster: Cluster, assumed: Assumptions) -> float:
    """Return the milliseconds after which a replica is asked: a quantile of what untroubled nodes take."""
    if cluster.hedge is None or cluster.replicas < 2:
        return float("inf")
    few = 2_000
    ms = _call(rng, piece, cluster, few)[0][:, 0] + _network(rng, assumed, few)
    return float(np.quantile(ms, cluster.hedge))


def _asked(
    rng: Generator,
    piece: Piece,
    cluster: Cluster,
    assumed: Assumptions,
    when: NDArray[np.float64],
    slow: NDArray[np.bool_],
    losses: list[_Loss],
    after: float,
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Return what each node takes, whether it was asked twice, and the work of every question."""
    size, minute = (len(when), cluster.nodes), (when // 60).astype(int)
    first = rng.integers(cluster.replicas, size=size)
    calls, lost = [], []
    # Both are drawn always, for the same reason.
    for which in (first, (first + 1) % cluster.replicas):
        call = _call(rng, piece, cluster, len(when))
        ms = call.ms * np.where(
            slow[minute[:, None], which, np.arange(cluster.nodes)], assumed.slow_times, 1.0
        )
        ms += assumed.straggle_ms * (rng.random(size) < assumed.straggle_share)
        ms += _network(rng, assumed, size)
        calls.append(_Call(ms, call.work))
        lost.append(_lost_after(ms, which, when, losses))
    own = np.where(lost[0] < calls[0].ms, np.inf, calls[0].ms)
    begins = np.minimum(after, lost[0] + assumed.noticed_ms)
    twice = (own > begins) & (cluster.replicas > 1)
    # A replica that goes away meanwhile counts as away, although it may have been asked before.
    other = np.where(np.isfinite(lost[1]) | ~twice, np.inf, begins + calls[1].ms)
    work = calls[0].work + np.where(twice, calls[1].work, 0.0)
    return np.minimum(own, other), twice, work.sum(axis=1)


def _call(rng: Generator, piece: Piece, cluster: Cluster, questions: int) -> _Call:
    """Draw what the shards of every node take, and share them out among its cores, one after the other."""
    cores, of_node = cluster.cores_a_node, cluster.shards_a_node
    rounds = -(-of_node // cores)
    drawn = rng.choice(piece.ms, (questions, cluster.nodes, of_node))
    drawn.reshape(questions, -1)[:, cluster.shards :] = 0.0  # the last node has fewer
    padded = np.zeros((questions, cluster.nodes, rounds * cores))
    padded[:, :, :of_node] = drawn
    ms = padded.reshape(questions, cluster.nodes, rounds, cores).sum(axis=2).max(axis=2)
    return _Call(ms, drawn.sum(axis=2))


def _network(rng: Generator, assumed: Assumptions, size: int | tuple[int, int]) -> NDArray[np.float64]:
    return assumed.network_ms + assumed.network_tail_ms * rng.standard_exponential(size)


def _lost_after(
    ms: NDArray[np.float64], which: NDArray[np.int64], when: NDArray[np.float64], losses: list[_Loss]
) -> NDArray[np.float64]:
    """Return the milliseconds after which each call's node is gone; infinite if it is not, while the call lasts."""
    found = np.full(ms.shape, np.inf)
    for loss in losses:
        begun = when + ms[:, loss.node] / 1000
        hit = (which[:, loss.node] == loss.replica) & (when < loss.end) & (begun > loss.start)
        gone = np.maximum(0.0, 1000 * (loss.start - when[hit]))
        found[hit, loss.node] = np.minimum(found[hit, loss.node], gone)
    return found


def _moved(
    rng: Generator, ms: NDArray[np.float64], when: NDArray[np.float64], assumed: Assumptions
) -> tuple[NDArray[np.float64], int]:
    """Ask anew what the epoch moved under, unless it goes on at its own."""
    if assumed.replays:
        return ms, 0
    every = assumed.seconds_between_flips
    under = np.isfinite(ms) & (when // every != (when + np.where(np.isfinite(ms), ms, 0.0) / 1000) // every)
    return np.where(under, ms + rng.permutation(ms), ms), int(under.sum())
