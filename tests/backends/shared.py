"""Worlds of rows that are shared with groups of groups, and what plain sets say that a session finds in them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from carag.backends import rows_of
from carag.policy import EVERYWHERE, Audience, Mask, Policy, Session, policy_word
from carag.policy.groups.statements import ALWAYS, GroupImport, GroupStatement
from carag.store._audiences import number_of
from carag.store.store import CorpusStore
from tests.backends.worlds import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DIM = 4
LEVELS = 6
"""A group holds people and groups of lower levels, so that groups nest to this depth without a cycle."""
A_STORE = 20
"""Worlds that share the tables of one store, with names of their own; each world's rows are in a collection alone."""
ASKED = 2
"""Sessions of a world."""


@dataclass(frozen=True)
class Shared:
    """Rows, and for each session the policy that the store makes for it and the keys that plain sets admit."""

    world: World
    sessions: list[tuple[Policy, set[int]]]
    given_up: int
    """Sessions that would find something else, had they not given principals up."""


def shared_worlds(place: Path, seed: int, count: int) -> Iterator[Shared]:
    """Draw worlds."""
    rng = np.random.default_rng([seed, count])
    for first in range(0, count, A_STORE):
        with CorpusStore.open(place / f"{seed}-{first}.db") as store:
            for number in range(first, min(first + A_STORE, count)):
                yield _world(rng, store, number)
        (place / f"{seed}-{first}.db").unlink()


def _world(rng: np.random.Generator, store: CorpusStore, number: int) -> Shared:
    people = [f"user:{number}-{one}" for one in range(4)]
    levels = [[f"group:{number}-{level}{twin}" for twin in "xy"] for level in range(LEVELS)]
    named = [*people, *itertools.chain(*levels), f"group:{number}-unknown"]
    groups = {
        group: _some(rng, [*people, *itertools.chain(*levels[:level])], 3)
        | ({levels[level - 1][0]} if level else set())
        for level, both in enumerate(levels)
        for group in both
        if rng.random() < 0.9
    }
    statements = [GroupStatement(group, dict.fromkeys(members, ALWAYS)) for group, members in groups.items()]
    store.groups.import_(GroupImport(statements))
    lists = [
        Audience(
            None if rng.random() < 0.3 else _some(rng, named, 3),
            _some(rng, named, 2) if rng.random() < 0.4 else (),
        )
        for _ in range(int(rng.integers(1, 12)))
    ]
    with store._writing() as sql:
        numbers = np.array([0, *(number_of(sql, one) for one in lists)])
    n = int(rng.integers(1, 40))
    of = rng.integers(0, 1 + len(lists), n)
    bits = np.full(n, policy_word(1)) if rng.random() < 0.5 else policy_word(rng.integers(0, 3, n))
    rows = rows_of(rng.standard_normal((n, DIM)), bits, rng.permutation(n) * 3, audiences=numbers[of])
    sessions, given_up = [], 0
    for _ in range(ASKED):
        stated = _some(rng, named, 3)
        kept = {one for one in stated if rng.random() < 0.7}
        session = Session(role="public", purpose="read", principals=stated).narrow(principals=kept)
        policy = Policy(Mask(1) if rng.random() < 0.5 else Mask())
        asked = store.expanded(policy, EVERYWHERE, store.groups.identity(session, 1_000))
        by_word = [policy.admits(int(word)) for word in rows.words]
        found, otherwise = (
            {
                int(key)
                for key, at, is_open in zip(rows.keys, of, by_word, strict=True)
                if is_open and (at == 0 or admits(lists[at - 1], opening, stated, groups))
            }
            for opening in (kept, stated)
        )
        given_up += found != otherwise
        sessions.append((asked, found))
    return Shared(World.of(rows), sessions, given_up)


def _some(rng: np.random.Generator, names: list[str], most: int) -> set[str]:
    return {names[at] for at in rng.integers(0, len(names), int(rng.integers(0, most + 1)))}


def admits(one: Audience, kept: set[str], stated: set[str], groups: dict[str, set[str]]) -> bool:
    """Read both lists plainly."""
    if not stated and one:
        return False
    unknown = [group for group in one.deny if group.startswith("group:") and group not in groups]
    if unknown or above(stated, groups) & {*one.deny}:
        return False
    return one.allow is None or bool(above(kept, groups) & {*one.allow})


def above(principals: set[str], groups: dict[str, set[str]]) -> set[str]:
    """Return principals, and all groups that hold them, directly or through others."""
    held = set(principals)
    while more := {group for group, members in groups.items() if held & members} - held:
        held |= more
    return held
