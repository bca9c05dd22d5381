"""Search with random queries under random policies, and count the hits that break their policy.

The word and times of every hit are looked up in the store's labels and tested here in numpy, not by the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from carag.evaluation.row import K
from carag.evaluation.run_metadata import Trials
from carag.policy import NEVER, POLICY_BITS, Mask, Policy, Search
from carag.retrieval import EXACT_LIMIT, FUSED, ranker_by_name
from carag.retrieval.ranking import Question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from carag.backends import Checked
    from carag.index import Index, TextIndex
    from carag.retrieval import Catalogue
    from carag.store.store import CorpusStore
    from carag.store.values import Labels


QUERIES: Final = 1024
"""Queries in a batch, which share one random policy."""


def run_trials(
    index: Index | Checked, store: CorpusStore, *, plan: str, count: int, seed: int, batch: int = QUERIES
) -> Trials:
    """Draw queries and policies, search by ``plan`` (``auto`` or ``certified``), and count violations."""
    rng = np.random.default_rng(seed)
    keys = store.labels.open()
    labels = store.labels.of(keys)
    words = np.unique(labels.words)
    done = violating = chunks = 0
    while done < count:
        size = min(batch, count - done)
        picked = rng.choice(keys, size)
        queries = index.vectors(picked) + rng.normal(0, 0.3 / index.dim**0.5, (size, index.dim)).astype(
            np.float32
        )
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
        policy, as_of = _policy(rng, words), _instant(rng, labels)
        found = index.search(queries.astype(np.float32), K, policy, plan=plan, as_of=as_of)
        returned = np.arange(K) < found.counts[:, None]
        bad = np.zeros_like(returned)
        bad[returned] = ~_admits(labels, found.keys[returned], policy, as_of)
        violating += int(bad.any(axis=1).sum())
        chunks += int(returned.sum())
        done += size
    return Trials(f"carag-{plan}", done, violating, chunks, seed)


def run_fused_trials(
    index: Index | Checked,
    text: TextIndex,
    catalogue: Catalogue,
    store: CorpusStore,
    questions: Sequence[str],
    *,
    count: int,
    seed: int,
) -> Trials:
    """Draw questions and policies as :func:`run_trials` does, rank by the fused score, and count violations.

    ``index`` and ``text`` belong to the store's last instant. Each question is asked with a random vector, as if it
    meant something else.
    """
    rng = np.random.default_rng(seed)
    keys = store.labels.open()
    labels = store.labels.of(keys)
    words = np.unique(labels.words)
    ranker = ranker_by_name(FUSED, catalogue)
    violating = chunks = 0
    for _ in range(count):
        vector = index.vectors(rng.choice(keys, 1))[0]
        vector += rng.normal(0, 0.3 / index.dim**0.5, index.dim).astype(np.float32)
        question = Question(questions[int(rng.integers(len(questions)))], vector)
        search = Search(_policy(rng, words), _instant(rng, labels))
        ranked = ranker.rank(index, text, question, [search], K, exact_limit=EXACT_LIMIT // index.dim)
        good = _admits(labels, np.array(ranked.keys, np.int64), search.policy, search.as_of)
        violating += not good.all()
        chunks += good.size
    return Trials(f"carag-{FUSED}", count, violating, chunks, seed)


def _instant(rng: np.random.Generator, labels: Labels) -> int:
    as_of = int(rng.choice(labels.public_at)) + int(rng.integers(-1, 2)) * 60
    return min(max(as_of, 0), NEVER - 1)  # NEVER itself cannot be asked about


def _policy(rng: np.random.Generator, words: NDArray[np.uint32]) -> Policy:
    masks = []
    for _ in range(int(rng.integers(1, 4))):
        # Bits of a real word, so that a draw admits something.
        word = int(rng.choice(words)) & POLICY_BITS
        required = word & int(rng.integers(0, POLICY_BITS, endpoint=True)) & int(rng.integers(0, POLICY_BITS))
        some = [int(rng.integers(0, POLICY_BITS, endpoint=True)) for _ in range(2)]
        masks.append(Mask(required, some[0] & some[1] & ~word & POLICY_BITS))
    return Policy(*masks)


def _admits(labels: Labels, keys: NDArray[np.int64], policy: Policy, as_of: int) -> NDArray[np.bool_]:
    at = np.searchsorted(labels.keys, keys)
    words = labels.words[at].astype(np.int64)
    open_now: NDArray[np.bool_] = (
        (labels.public_at[at] <= as_of) & (as_of < labels.expires_at[at]) & (words >> 27 == 1)
    )
    fits = np.zeros(len(keys), bool)
    for mask in policy.masks:
        fits |= ((words & mask.required) == mask.required) & ((words & mask.forbidden) == 0)
    return np.logical_and(open_now, fits)
