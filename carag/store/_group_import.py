"""Bring the stored memberships to what an import states: only differences are written, and no row is deleted.

A membership that is no longer stated is closed: from then on it is not known to have held at any minute, while a
question about what was known before still finds it. All statements run inside the caller's transaction.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.errors import InvalidArgument
from carag.policy.audience import is_group, one_spelling
from carag.policy.groups.statements import Window, check_no_cycle, two_spellings
from carag.store._audiences import note_spellings, spelled
from carag.store.values import GroupReport

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

    from carag.policy.groups.statements import GroupImport, GroupStatement

_KNOWN: Final = """
    SELECT spelling, name, number, since FROM groups
    WHERE spelling IN (SELECT CAST(value AS TEXT) FROM json_each(:some))
    UNION ALL SELECT spelling, name, NULL, NULL FROM principals
    WHERE spelling IN (SELECT CAST(value AS TEXT) FROM json_each(:some))"""
"""Groups that were imported, and those that documents name, without a number."""
_MEMBERS: Final = """
    SELECT member, valid_from, valid_to FROM memberships WHERE group_number = ? AND known_to IS NULL"""
_NESTED: Final = """
    SELECT name, member FROM memberships JOIN groups ON number = group_number
    WHERE member >= 'group:' AND member < 'group;' AND known_to IS NULL"""
_CLOSE: Final = """
    UPDATE memberships SET known_to = ? WHERE member = ? AND group_number = ? AND known_to IS NULL"""
_OPEN: Final = """
    INSERT INTO memberships (member, group_number, valid_from, valid_to, known_from) VALUES (?, ?, ?, ?, ?)"""


class _Known(NamedTuple):
    number: int
    is_stated: bool
    """False while the group is only named as a member of others."""


@dataclass(slots=True)
class _Difference:
    opening: list[tuple[str, str, Window]] = field(default_factory=list)
    """Member, group and when."""
    closing: list[tuple[str, str]] = field(default_factory=list)
    """Member and group."""
    added: list[str] = field(default_factory=list)
    """Groups stated for the first time."""

    def __bool__(self) -> bool:
        return bool(self.opening or self.closing or self.added)


def import_groups(sql: sqlite3.Connection, stated: GroupImport, *, now: int, dry_run: bool) -> GroupReport:
    """Write what an import changes, unless it is a dry run, and report it; see :meth:`Groups.import_`."""
    known = _known(sql, stated)
    own = {one.group for one in stated.statements}
    undefined = tuple(
        sorted(one for one in stated.groups - own if one not in known or not known[one].is_stated)
    )
    sha256 = stated.sha256
    last = sql.execute("SELECT known_at, sha256 FROM group_changes ORDER BY known_at DESC LIMIT 1").fetchone()
    difference = _Difference()
    if last is None or bytes(last[1]).hex() != sha256:
        difference = _difference(sql, stated, known)
        named = {member for member, *_ in difference.opening}
        _check_spellings(sql, stated, named.union(*(one.removed or () for one in stated.statements)))
    opened, closed, added = len(difference.opening), len(difference.closing), len(difference.added)
    known_at = None
    if difference and not dry_run:
        known_at = now if last is None else max(now, last[0] + 1)
        sql.execute(
            "INSERT INTO group_changes (known_at, sha256, opened, closed, added) VALUES (?, ?, ?, ?, ?)",
            (known_at, bytes.fromhex(sha256), opened, closed, added),
        )
        _write(sql, difference, known, known_at)
    return GroupReport(opened, closed, added, undefined, sha256, known_at)


def _known(sql: sqlite3.Connection, stated: GroupImport) -> dict[str, _Known]:
    """Return the groups named that are stored; InvalidArgument if one is stored under another spelling."""
    given = {one_spelling(one): one for one in stated.groups}
    found = sql.execute(_KNOWN, {"some": json.dumps(list(given))}).fetchall()
    for spelling, name, *_ in found:
        _check_spelling(stated, given[spelling], name)
    return {name: _Known(number, since is not None) for _, name, number, since in found if number is not None}


def _check_spellings(sql: sqlite3.Connection, stated: GroupImport, names: Iterable[str]) -> None:
    """InvalidArgument if the store knows one of some principals by another spelling."""
    given = {one_spelling(one): one for one in names}
    for spelling, name in spelled(sql, given.values()).items():
        _check_spelling(stated, given[spelling], name)


def _check_spelling(stated: GroupImport, given: str, known: str) -> None:
    if given != known:
        pairs = zip(stated.statements, stated.places, strict=True)
        place = next(place for one, place in pairs if given in one.named)
        raise InvalidArgument(f"{place}: {two_spellings(known, given)}, as the store does")


def _difference(sql: sqlite3.Connection, stated: GroupImport, known: Mapping[str, _Known]) -> _Difference:
    found = _Difference()
    for one in stated.statements:
        if one.group not in known or not known[one.group].is_stated:
            found.added.append(one.group)
        held = _members(sql, known[one.group].number) if one.group in known else {}
        wanted = _wanted(one, held)
        found.opening += [
            (member, one.group, window) for member, window in wanted.items() if held.get(member) != window
        ]
        found.closing += [
            (member, one.group) for member, window in held.items() if wanted.get(member) != window
        ]
    if any(is_group(member) for member, *_ in found.opening):
        _check_nesting(sql, found)
    return found


def _members(sql: sqlite3.Connection, number: int) -> dict[str, Window]:
    return {
        member: Window(since, until) for member, since, until in sql.execute(_MEMBERS, (number,)).fetchall()
    }


def _wanted(one: GroupStatement, held: Mapping[str, Window]) -> Mapping[str, Window]:
    if one.removed is None:
        return one.members
    return {member: window for member, window in held.items() if member not in one.removed} | dict(
        one.members
    )


def _check_nesting(sql: sqlite3.Connection, difference: _Difference) -> None:
    nested: dict[str, set[str]] = defaultdict(set)
    for group, member in sql.execute(_NESTED).fetchall():
        nested[group].add(member)
    for member, group in difference.closing:
        nested[group].discard(member)
    for member, group, _ in difference.opening:
        if is_group(member):
            nested[group].add(member)
    check_no_cycle(nested)


def _write(
    sql: sqlite3.Connection, difference: _Difference, known: Mapping[str, _Known], known_at: int
) -> None:
    numbers = {name: one.number for name, one in known.items()}
    named = {name for member, group, _ in difference.opening for name in (member, group) if is_group(name)}
    fresh = sorted(named.union(difference.added) - numbers.keys())
    (first,) = sql.execute("SELECT coalesce(max(number) + 1, 0) FROM groups").fetchone()
    numbers.update({name: number for number, name in enumerate(fresh, start=first)})
    sql.executemany(
        "INSERT INTO groups (number, name, spelling) VALUES (?, ?, ?)",
        [(numbers[name], name, one_spelling(name)) for name in fresh],
    )
    note_spellings(sql, (member for member, *_ in difference.opening if not is_group(member)))
    sql.executemany(
        "UPDATE groups SET since = ? WHERE number = ?",
        [(known_at, numbers[name]) for name in difference.added],
    )
    sql.executemany(_CLOSE, [(known_at, member, numbers[group]) for member, group in difference.closing])
    sql.executemany(
        _OPEN,
        ((member, numbers[group], *window, known_at) for member, group, window in difference.opening),
    )
