"""The check of what time tells: a randomised experiment, so that its p-value is exact.

Topics are drawn in pairs, and a coin decides about which topic of each pair hidden documents are planted (Fisher's
randomisation test). If time does not depend on hidden documents, each difference is as likely with the opposite sign.
"""

from __future__ import annotations

import random
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.evaluation.attack.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from carag.evaluation.attack.probe import Probe

_PAIRS: Final = 16
"""The least p-value is 2 / 2**16 = 0.00003."""
ALPHA: Final = 1e-4
"""The chance of a false alarm in all rounds together."""


def time(probe: Probe) -> Iterator[Finding]:
    """See whether a search takes longer, or less long, if hidden documents match."""
    coin = random.Random(probe.word())  # noqa: S311 - a draw of an experiment, from the seed
    pairs = [(probe.word(), probe.word()) for _ in range(_PAIRS)]
    pairs = [pair if coin.random() < 0.5 else pair[::-1] for pair in pairs]  # hidden documents, none
    documents = [one for pair in pairs for topic in pair for one in probe.reports(topic, 2, probe.reader)]
    for topic, _ in pairs:
        documents += probe.reports(topic, max(20, probe.bounds.hidden // 4), probe.officer, near=True)
    probe.plant(documents)
    for pair in pairs:
        for topic in pair:
            probe.rows(topic, 5)  # a first search may fill caches
    differences: list[list[float]] = [[] for _ in pairs]
    for _ in range(probe.bounds.repeats):
        for taken, pair in zip(differences, pairs, strict=True):
            first = coin.randrange(2)
            times = {topic: _timed(probe, topic) for topic in (pair[first], pair[1 - first])}
            taken.append(times[pair[0]] - times[pair[1]])
    middles = [median(one) for one in differences]
    p = p_value(middles)
    if p <= ALPHA / probe.bounds.rounds:
        mean = 1000 * float(np.mean(middles))
        came = f"{abs(mean):.3f} ms {'longer' if mean > 0 else 'less'} with hidden documents, on average"
        sure = f"p = {p:.2g}, n = {_PAIRS} pairs of topics, each searched {probe.bounds.repeats} times (exact test)"
        yield Finding("topics with and without hidden documents", came, "no difference", sure)


def _timed(probe: Probe, topic: str) -> float:
    start = probe.clock()
    probe.seen(topic, 5, probe.reader)
    return probe.clock() - start


def p_value(differences: Sequence[float]) -> float:
    """Return how probable a mean as far from 0 is if every sign was drawn by a coin: all signs are tried.

    Parameters
    ----------
    differences : (n,) of float
        At most 20.

    Examples
    --------
    >>> p_value([1.0, 2.0, 3.0]), p_value([0.0, 0.0])
    (0.25, 1.0)
    """
    values = np.asarray(differences)
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    least = abs(values.sum()) - 1e-12 * np.abs(values).sum()
    return float(np.mean(np.abs(sums) >= least))
