"""No random policy is broken by a search, and a broken one would be seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.evaluation.safety.trials import run_trials
from carag.index import Index
from carag.policy import NEVER, VERSION_WORD, Mask, Policy
from carag.store.values import Labels
from tests.sizes import examples

if TYPE_CHECKING:
    from tests.evaluation.conftest import Small


@pytest.mark.parametrize("plan", ["auto", "certified"])
@pytest.mark.parametrize(
    "count", [examples(4_000, least=2_000), pytest.param(1_000_000, marks=pytest.mark.full)]
)
def test_no_random_policy_is_broken(small: Small, plan: str, count: int) -> None:
    with Index.load(small.built.store / "index.carag") as index:
        trials = run_trials(index, small.truth.store, plan=plan, count=count, seed=3)
    assert (trials.pairs, trials.violating) == (count, 0)
    assert trials.chunks > count  # a draw that admits nothing would prove nothing


def test_the_trials_see_an_index_that_was_not_told(small: Small) -> None:
    """A word changed in the index alone: hits now break the policy by the store's word."""
    with Index.load(small.built.store / "index.carag") as index:
        assert index.relabel_where(Policy(Mask()), set=0x21, clear=0x7FF_FFDE, as_of=NEVER - 1)
        trials = run_trials(
            index, small.truth.store, plan="certified", count=examples(2_000, least=1_000), seed=3, batch=16
        )
    assert trials.violating > 0


def test_an_instant_drawn_of_what_is_never_public_is_one_that_can_be_asked() -> None:
    keys = np.arange(64)
    labels = Labels(
        keys,
        np.full(64, VERSION_WORD, np.uint32),
        *(np.full(64, minute, np.uint32) for minute in (NEVER, NEVER, 0)),
        keys,
        np.zeros(64, np.uint32),
    )
    index = Index(8)
    index.add(np.eye(64, 8, dtype=np.float32) + 1, labels.words, keys, public_at=labels.public_at)
    store = SimpleNamespace(labels=SimpleNamespace(open=lambda: keys, of=lambda _: labels))
    trials = run_trials(index, store, plan="auto", count=200, seed=0, batch=4)  # type: ignore[arg-type]
    assert (trials.pairs, trials.violating, trials.chunks) == (200, 0, 0)
