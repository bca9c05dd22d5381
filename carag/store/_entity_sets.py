"""Number what passages are about, because an index row has room for one 32-bit entity number.

A passage is about a set of CIKs and the metadata that the profile declares. One CIK below 2**31 (as all of EDGAR's are)
without metadata is its own number; nothing at all is 0; every other combination permanently gets the next number from
2**31 on. Before a search, CIKs expand to the numbers of all sets that contain one of them, and a narrowing to the
numbers of all sets whose metadata meets it; both are then tested in the inner loop, as the policy's word is.
"""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from operator import index as as_int
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.errors import CaragError, CorruptFile
from carag.labelling.canonical_json import canonical_json
from carag.policy import EVERYWHERE, MAX_ENTITY, NO_ENTITY, Policy
from carag.store.values import NO_METADATA

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from carag.policy import Value, Where

FIRST_SET: Final = 1 << 31
"""The first number of a set; smaller numbers are CIKs."""
_KEPT: Final = 256
"""Greatest number of expanded policies in the cache, each with up to three numbers per set; sessions recur."""


class About(NamedTuple):
    ciks: tuple[int, ...] = ()
    metadata: Mapping[str, Value] = NO_METADATA
    """Fields that the profile declares."""


def number_of(
    sql: sqlite3.Connection, subjects: Collection[int], metadata: Mapping[str, Value] = NO_METADATA
) -> int:
    ciks = sorted({as_int(cik) for cik in subjects})
    if len(ciks) < 2 and sum(ciks) < FIRST_SET and not metadata:
        return sum(ciks)
    stated = json.dumps(ciks), canonical_json(dict(metadata), "metadata of a passage")
    found = sql.execute("SELECT number FROM entity_sets WHERE ciks = ? AND metadata = ?", stated).fetchone()
    if found is None:
        found = sql.execute("SELECT coalesce(max(number) + 1, ?) FROM entity_sets", (FIRST_SET,)).fetchone()
        if found[0] > MAX_ENTITY:
            raise CaragError("the store has no numbers left for sets of CIKs; ingest into a second store")
        sql.execute("INSERT INTO entity_sets (number, ciks, metadata) VALUES (?, ?, ?)", (found[0], *stated))
    return int(found[0])


def about(number: int, ciks: str | None, metadata: str | None) -> About:
    """Return what a number stands for, from its row in ``entity_sets``; ValueError if that is missing or malformed."""
    if number < FIRST_SET:
        return About(() if number == NO_ENTITY else (number,))
    if ciks is None or metadata is None:
        raise ValueError(f"the members of set {number} are lost")
    found = About(tuple(json.loads(ciks)), json.loads(metadata))
    if (
        not all(isinstance(cik, int) for cik in found.ciks)
        or not isinstance(found.metadata, dict)
        or not (found.ciks or found.metadata)
    ):
        raise ValueError(f"set {number} holds {ciks} and {metadata}, which is not a valid set")
    return found


class EntitySets:
    """The sets of a store, in memory; new ones are read when needed. ``path`` is the store's file, for messages."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = FIRST_SET - 1
        self._members: dict[int, About] = {}
        self._numbers: dict[int, list[int]] = defaultdict(list)
        self._expanded: OrderedDict[tuple[Policy, Where], Policy] = OrderedDict()

    def expanded(self, sql: sqlite3.Connection, policy: Policy, where: Where = EVERYWHERE) -> Policy:
        """Return the policy with numbers of sets in place of CIKs, limited to sets that the narrowing admits."""
        if policy.allow_entities is None and not policy.deny_entities and not where:
            return policy
        self._read_on(sql)
        both = policy, where
        if both not in self._expanded:
            self._expanded[both] = self._narrowed(policy, where) if where else self._expand(policy)
        self._expanded.move_to_end(both)
        if len(self._expanded) > _KEPT:
            self._expanded.popitem(last=False)
        return self._expanded[both]

    def _narrowed(self, policy: Policy, where: Where) -> Policy:
        admitted = [
            number
            for number, one in self._members.items()
            if where.admits(one.metadata) and policy.admits_entity(one.ciks)
        ]
        return Policy(*policy.masks, allow_entities=admitted, audiences=policy.audience_list)

    def _expand(self, policy: Policy) -> Policy:
        if policy.allow_entities is None:
            denied = self._of(policy.deny_entities)
            return Policy(*policy.masks, deny_entities=denied, audiences=policy.audience_list)
        near = self._of(policy.allow_entities)
        admitted = [
            one
            for one in near
            if policy.admits_entity(self._members[one].ciks if one in self._members else one)
        ]
        return Policy(*policy.masks, allow_entities=admitted, audiences=policy.audience_list)

    def _of(self, ciks: Iterable[int]) -> set[int]:
        found: set[int] = set()
        for cik in ciks:
            found.update(self._numbers.get(cik, ()), (cik,) if cik < FIRST_SET else ())
        return found

    def _read_on(self, sql: sqlite3.Connection) -> None:
        query = "SELECT number, ciks, metadata FROM entity_sets WHERE number > ? ORDER BY number"
        for number, *stated in sql.execute(query, (self._last,)).fetchall():
            self._expanded.clear()
            try:
                one = about(number, *stated)
            except ValueError as error:
                raise CorruptFile(f"{self._path}: {error}; restore a backup") from error
            self._members[number] = one
            for cik in one.ciks or (NO_ENTITY,):
                self._numbers[cik].append(number)
            self._last = number
