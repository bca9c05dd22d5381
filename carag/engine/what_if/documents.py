"""Tell which documents another policy table would open and close for each cell.

The labels that hold at one minute are judged, whatever their audience, for sessions that add no restriction to their
cell. A passage counts by itself: a document opens if any of its passages does, and may close with another.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from itertools import chain, product
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from carag.engine.corpus import stated_facts
from carag.labelling.widening import relabelled
from carag.policy import as_of_minutes
from carag.policy.diff import compare

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from carag.policy import Cell, Policy, PolicyTable
    from carag.store.store import CorpusStore


class Effect(NamedTuple):
    """The ids of the documents that open, and of those that close, ascending."""

    opened: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()

    @classmethod
    def of(cls, opened: Iterable[str], closed: Iterable[str]) -> Self:
        """Sort ids, each once."""
        return cls(tuple(sorted({*opened})), tuple(sorted({*closed})))

    @classmethod
    def all_of(cls, several: Iterable[Effect]) -> Self:
        """Return what opens, and what closes, in any of several effects."""
        opened, closed = zip(cls(), *several, strict=True)
        return cls.of(chain(*opened), chain(*closed))

    def __str__(self) -> str:
        """How many documents."""
        return f"documents opened: {len(self.opened)}, closed: {len(self.closed)}"


class CellEffect(NamedTuple):
    """What a change does to one cell."""

    role: str
    purpose: str
    at_once: Effect
    """With the labels that are stored."""
    added_again: Effect
    """Once the documents have been added again, and have the labels of the new rules."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        said = {"role": self.role, "purpose": self.purpose}
        return {**said, "at_once": self.at_once._asdict(), "added_again": self.added_again._asdict()}


def this_minute() -> int:
    """Return the time in minutes since 1970."""
    return as_of_minutes(datetime.now(UTC))


def policy_effects(
    store: CorpusStore, old: PolicyTable, new: PolicyTable, minute: int
) -> tuple[CellEffect, ...]:
    """Return the cells in which another table opens or closes stored documents, in the order of the new table.

    ``minute`` is in minutes since 1970. A cell that needs an allow list, or opens by breaking the glass, is judged both
    for sessions that have done so, whose list names everything, and for those that have not; a cell with masks that
    depend on the firm's deals, for sessions with no deals and for those that do not state them.

    Raises InvalidArgument if the tables belong to profiles whose bits differ.
    """
    changed = {(one.role, one.purpose) for one in compare(old, new)}
    words = {name: (was, now) for name, was, now in relabelled(old, new, stated_facts(store))}
    documents: dict[tuple[int, int], list[str]] = defaultdict(list)
    for name, word, _ in store.labels.standing(minute):
        was, now = words.get(name, (0, 0))
        documents[word, (word & ~was) | now].append(name)
    pairs = dict.fromkeys((cell.role, cell.purpose) for cell in (*new.cells, *old.cells))
    found = (
        _effect(old.get(*pair), new.get(*pair), pair, documents) for pair in pairs if words or pair in changed
    )
    return tuple(one for one in found if any((*one.at_once, *one.added_again)))


def policies(cell: Cell | None, *, has_glass: bool, has_list: bool, has_deals: bool) -> tuple[Policy, ...]:
    """Return the policies, any of which may admit, of a session that has what a cell may ask for; none if refused."""
    if cell is None or (cell.break_glass and not has_glass):
        return ()
    if cell.allow_list == "mandatory" and not has_list:
        return ()
    return (cell.policy, cell.reopened) if has_deals and cell.reopened else (cell.policy,)


def _effect(
    old: Cell | None,
    new: Cell | None,
    pair: tuple[str, str],
    documents: Mapping[tuple[int, int], Sequence[str]],
) -> CellEffect:
    sides: dict[tuple[tuple[Policy, ...], ...], None] = {}
    for glass, listed, deals in product((False, True), repeat=3):
        has: dict[str, bool] = {"has_glass": glass, "has_list": listed, "has_deals": deals}
        sides[policies(old, **has), policies(new, **has)] = None
    found: tuple[list[str], ...] = ([], [], [], [])
    for (word, renewed), names in documents.items():
        for was, now in sides:
            before, after, again = _admits(was, word), _admits(now, word), _admits(now, renewed)
            tests = (after > before, before > after, again > before, before > again)
            for holds, effect in zip(tests, found, strict=True):
                effect.extend(names if holds else ())
    return CellEffect(*pair, Effect.of(*found[:2]), Effect.of(*found[2:]))


def _admits(several: tuple[Policy, ...], word: int) -> bool:
    return any(policy.admits(word) for policy in several)
