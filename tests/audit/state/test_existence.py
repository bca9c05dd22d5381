"""A person's own receipts do not reveal that a hidden passage exists."""

from __future__ import annotations

import hashlib
import random

import pytest

from carag.audit import Label, StateProof, StateView, place
from tests.auc import area_under_curve
from tests.audit.state.trie_attack import Known, TrieAttack

OPEN, HIDDEN, STORES = 360, 60, 34
"""Labels a public session is shown, labels of the one filing it is not, and stores: 2,040 guesses a class."""
MINUTE = 29_000_000


def bare_place(chunk: str, since: int) -> int:
    """The place anybody can compute: what the tree must not use."""
    return int.from_bytes(hashlib.sha256(f"{chunk}\n{since}".encode()).digest())


def labels_of(accession: str, count: int) -> list[Label]:
    return [
        Label(
            f"{accession}:{n:05d}", hashlib.sha256(f"{accession}{n}".encode()).digest(), 0x0800_0001, MINUTE
        )
        for n in range(count)
    ]


def accession(draw: random.Random) -> str:
    return f"{draw.randrange(10**10):010d}-24-{draw.randrange(10**6):06d}"


def scores(place_of, seed: int) -> tuple[list[float], list[float]]:
    """Attack one store: what hidden guesses score, and absent ones."""
    draw = random.Random(seed)  # noqa: S311
    key = draw.randbytes(32)
    shown = [label for _ in range(OPEN // 30) for label in labels_of(accession(draw), 30)]
    hidden, absent = (labels_of(accession(draw), HIDDEN) for _ in range(2))
    view = StateView.of({place_of(key, one): one.leaf(key) for one in [*shown, *hidden]})
    known = [
        Known(one.chunk, StateProof(one.since, one.seal(key), *view.paths([place_of(key, one)])[0][1:]))
        for one in shown
    ]
    attack = TrieAttack(known, bare_place)
    return tuple([attack.score(one.chunk, one.since) for one in guesses] for guesses in (hidden, absent))


def area(place_of):
    found = [scores(place_of, seed) for seed in range(STORES)]
    return area_under_curve(*([one for store in found for one in store[at]] for at in (0, 1)))


def test_receipts_tell_hidden_labels_from_absent_ones_no_better_than_a_coin() -> None:
    """The tree rebuilt from all proofs of a public session scores 2,040 guesses of either class alike."""
    assert area(lambda key, one: place(key, one.chunk, one.since)).at_most < 0.55


def test_the_attack_works_on_a_tree_whose_places_anybody_can_compute() -> None:
    """So that the law above can fail."""
    assert area(lambda _, one: bare_place(one.chunk, one.since)).low > 0.75


@pytest.mark.parametrize("bit", [0, 17])
def test_the_area_of_equal_scores_is_a_half(bit: int) -> None:
    """Ties count half, so a constant tells nothing."""
    assert 0.5 == area_under_curve([bit] * 40, [bit] * 40).value
