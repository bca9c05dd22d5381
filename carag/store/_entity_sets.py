"""Number the sets of CIKs that passages are about, because an index row has room for one 32-bit entity number.

The number of a set of one CIK below 2**31, as EDGAR's are, is that CIK; that of the empty set is 0. Every other set
permanently gets the next number from 2**31 on. So no CIK and no set share a number. Before a search, a list of CIKs is
expanded to the numbers of all sets that contain one of them.
"""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from operator import index as as_int
from typing import TYPE_CHECKING, Final

from carag.errors import CaragError, CorruptFile
from carag.policy import MAX_ENTITY, NO_ENTITY, Policy

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable
    from pathlib import Path

FIRST_SET: Final = 1 << 31
"""The first number of a set; a smaller number is a CIK."""
_KEPT: Final = 256
"""Greatest number of expanded policies in the cache: one has up to three numbers per set, and sessions recur."""


def number_of(sql: sqlite3.Connection, subjects: Collection[int]) -> int:
    """Return the number of a set, a new one if it has none, inside the caller's transaction."""
    ciks = sorted({as_int(cik) for cik in subjects})
    if len(ciks) < 2 and sum(ciks) < FIRST_SET:
        return sum(ciks)
    stated = json.dumps(ciks)
    found = sql.execute("SELECT number FROM entity_sets WHERE ciks = ?", (stated,)).fetchone()
    if found is None:
        found = sql.execute("SELECT coalesce(max(number) + 1, ?) FROM entity_sets", (FIRST_SET,)).fetchone()
        if found[0] > MAX_ENTITY:
            raise CaragError("the store has no numbers left for sets of CIKs; ingest into a second store")
        sql.execute("INSERT INTO entity_sets (number, ciks) VALUES (?, ?)", (found[0], stated))
    return int(found[0])


def ciks_of(number: int, stated: str | None) -> tuple[int, ...]:
    """Return the CIKs that a number stands for, given the text that ``entity_sets`` has for it.

    Raises
    ------
    ValueError
        If it is the number of a set without a row.
    """
    if number < FIRST_SET:
        return () if number == NO_ENTITY else (number,)
    if stated is None:
        raise ValueError(f"whom set {number} holds is lost")
    ciks = tuple(json.loads(stated))
    if not ciks or not all(isinstance(cik, int) for cik in ciks):
        raise ValueError(f"set {number} holds {stated}")
    return ciks


class EntitySets:
    """The sets of a store, in memory; new ones are read when needed.

    Parameters
    ----------
    path : Path
        The store's file, for messages.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = FIRST_SET - 1
        self._members: dict[int, tuple[int, ...]] = {}
        self._numbers: dict[int, list[int]] = defaultdict(list)
        self._expanded: OrderedDict[Policy, Policy] = OrderedDict()

    def expanded(self, sql: sqlite3.Connection, policy: Policy) -> Policy:
        """Return the policy with lists of numbers in place of CIKs: of all sets that it denies or allows."""
        if policy.allow_entities is None and not policy.deny_entities:
            return policy
        self._read_on(sql)
        if policy not in self._expanded:
            self._expanded[policy] = self._expand(policy)
        self._expanded.move_to_end(policy)
        if len(self._expanded) > _KEPT:
            self._expanded.popitem(last=False)
        return self._expanded[policy]

    def _expand(self, policy: Policy) -> Policy:
        if policy.allow_entities is None:
            return Policy(*policy.masks, deny_entities=self._of(policy.deny_entities))
        near = self._of(policy.allow_entities)
        admitted = [one for one in near if policy.admits_entity(self._members.get(one, (one,)))]
        return Policy(*policy.masks, allow_entities=admitted)

    def _of(self, ciks: Iterable[int]) -> set[int]:
        """Return the numbers of all sets that contain any of some CIKs, sets of one CIK included."""
        found: set[int] = set()
        for cik in ciks:
            found.update(self._numbers.get(cik, ()), (cik,) if cik < FIRST_SET else ())
        return found

    def _read_on(self, sql: sqlite3.Connection) -> None:
        query = "SELECT number, ciks FROM entity_sets WHERE number > ? ORDER BY number"
        for number, stated in sql.execute(query, (self._last,)).fetchall():
            self._expanded.clear()
            try:
                ciks = ciks_of(number, stated)
            except ValueError as error:
                raise CorruptFile(f"{self._path}: {error}; restore a backup") from error
            self._members[number] = ciks
            for cik in ciks:
                self._numbers[cik].append(number)
            self._last = number
