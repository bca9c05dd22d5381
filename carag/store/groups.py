"""Keep who is in which group, and find the groups that hold a session's principals, directly or through others."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.policy import NEVER, NOBODY, Identity
from carag.policy.audience import one_spelling
from carag.policy.audience import principals as checked
from carag.policy.groups.statements import Window
from carag.store._audiences import spelled
from carag.store._group_import import import_groups
from carag.store.values import EVER

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    from carag.policy import Session
    from carag.policy.groups.statements import GroupImport
    from carag.store.values import GroupReport, Reading

_KNOWN: Final = "known_from <= :u AND (known_to IS NULL OR known_to > :u)"
_ABOVE: Final = f"""
    SELECT member, name, valid_from, valid_to FROM memberships JOIN groups ON number = group_number
    WHERE member IN (SELECT CAST(value AS TEXT) FROM json_each(:members)) AND {_KNOWN}"""  # noqa: S608 - constants
"""Groups that directly hold some principals, effective or not, as known at an instant."""
_MEMBERS: Final = f"""
    SELECT member, valid_from, valid_to FROM memberships JOIN groups ON number = group_number
    WHERE name = :name AND {_KNOWN} ORDER BY member"""  # noqa: S608
_DIFFERING: Final = "SELECT DISTINCT member FROM memberships WHERE known_from = :k OR known_to = :k"
"""The members of whom an import opened or closed a membership."""
_BELOW: Final = """
    SELECT DISTINCT member FROM memberships JOIN groups ON number = group_number
    WHERE name IN (SELECT CAST(value AS TEXT) FROM json_each(:groups)) AND (known_to IS NULL OR known_to = :k)"""
"""The direct members that groups have after an import, or had before it."""
_COUNTED: Final = """
    SELECT name, count(member) FROM groups LEFT JOIN memberships ON group_number = number AND known_to IS NULL
    WHERE since IS NOT NULL GROUP BY name ORDER BY name"""
_KEPT: Final = 4096
"""Greatest number of resolutions in the cache; sessions recur."""


@dataclass(frozen=True, slots=True, repr=False)
class Resolution:
    """The groups that hold some principals between two minutes in which no membership begins or ends."""

    held: frozenset[str]
    """The principals themselves, and all groups that hold them."""
    memberships: tuple[tuple[str, str, int, int], ...]
    """The memberships that led there: member, group, and its minutes; in order."""
    window: Window
    """The minutes in which all of this is the same."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the memberships as canonical JSON, in hexadecimal."""
        return hashlib.sha256(json.dumps(self.memberships, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True, slots=True, repr=False)
class Trial:
    """What an import changes, found by writing it and undoing that."""

    report: GroupReport
    known: tuple[frozenset[str], frozenset[str]]
    """The names of the groups that were stated: before the import, and after it."""
    held: dict[str, tuple[frozenset[str], frozenset[str]]]
    """What some of the principals concerned are, with the groups that hold them: before the import, and after it."""
    concerned: int
    """How many principals have other groups, or may have: members of a changed membership, and those below them."""


class _Undone(Exception):
    """Ends the transaction of a trial, so that nothing of it is kept."""


class Groups:
    """The groups of a :class:`~carag.store.store.CorpusStore`.

    Instants at which something is known are in microseconds since 1970, and by default now; minutes are since 1970.
    """

    def __init__(self, path: Path, reading: Reading, writing: Reading, clock: Callable[[], int]) -> None:
        self._path = path
        self._reading = reading
        self._writing = writing
        self._clock = clock
        self._resolved: dict[tuple[frozenset[str], int], Resolution] = {}
        self._names: tuple[int, frozenset[str]] = -1, frozenset()

    def import_(
        self,
        stated: GroupImport,
        *,
        dry_run: bool = False,
        record: Callable[[GroupReport], object] = lambda _: None,
    ) -> GroupReport:
        """Bring the groups that an import names to what it states, in one transaction; other groups stay.

        The changes are effective at once, also for minutes in the past. If nothing differs, nothing is written; the
        content that was imported last is recognised by its hash. With ``dry_run``, nothing is written. ``record`` is
        called with the report of a change right before it takes effect, and an exception from it undoes the change.

        Raises InvalidArgument if a group is known under another spelling, or would become a member of itself, directly
        or through others; StoreLocked if another writer holds the store. Nothing is written then.
        """
        with self._writing() as sql:
            report = import_groups(sql, stated, now=self._clock(), dry_run=dry_run)
            if report.known_at is not None:
                record(report)
        return report

    def tried(self, stated: GroupImport, at_minute: int, *, most: int) -> Trial:
        """Return what an import would change for its principals at a minute, for at most ``most`` of them.

        The same statements run as in :meth:`import_`, in a transaction that is rolled back. Raises as that does.
        """
        with suppress(_Undone), self._writing() as sql:
            trial = _trial(sql, stated, at_minute, self._clock(), most)
            raise _Undone
        return trial

    def memberships(self) -> list[tuple[str, str, bool]]:
        """Return every group and member that was ever stated, and whether the last import that named it still did."""
        query = (
            "SELECT name, member, max(CASE WHEN known_to IS NULL THEN 1 ELSE 0 END) FROM memberships "
            "JOIN groups ON number = group_number GROUP BY name, member ORDER BY name, member"
        )
        with self._reading() as sql:
            return [(name, member, bool(now)) for name, member, now in sql.execute(query).fetchall()]

    @staticmethod
    def epoch(sql: sqlite3.Connection, known_at: int | None = None) -> int:
        """Return the instant of the last import that changed something, or the last by an instant; -1 before it.

        Memberships that are known at two instants with the same epoch are the same.
        """
        until = EVER if known_at is None else known_at
        query = "SELECT coalesce(max(known_at), -1) FROM group_changes WHERE known_at <= ?"
        return int(sql.execute(query, (until,)).fetchone()[0])

    def held_by(
        self, principals: Iterable[str], at_minute: int, known_at: int | None = None
    ) -> frozenset[str]:
        """Return the principals themselves and all groups that hold them at a minute, directly or through others.

        Raises InvalidArgument if a principal is not of the form ``kind:id``, or the minute is not in 32 bits.
        """
        return self.resolved(principals, at_minute, known_at).held

    def memberships_hash(self, principals: Iterable[str], at_minute: int, known_at: int | None = None) -> str:
        """Return the SHA-256, in hexadecimal, of the memberships that :meth:`held_by` followed."""
        return self.resolved(principals, at_minute, known_at).sha256

    def resolved(self, principals: Iterable[str], at_minute: int, known_at: int | None = None) -> Resolution:
        """Return what :meth:`held_by` finds, with the memberships that led there, and for how long they do."""
        own = checked("principals", principals)
        if type(at_minute) is not int or not 0 <= at_minute < NEVER:
            raise InvalidArgument(f"at_minute is {quoted(at_minute)}; want minutes since 1970, below {NEVER}")
        with self._reading() as sql:
            return self._resolved_in(sql, own, at_minute, self.epoch(sql, known_at))

    def identity(self, session: Session, at_minute: int) -> Identity:
        """Return who a session is at a minute, all of it after the same import."""
        stated = session.principals
        if not stated:
            return NOBODY
        given = {one_spelling(one): one for one in stated}
        with self._reading() as sql:
            epoch = self.epoch(sql)
            known = spelled(sql, stated)
            others = frozenset(name for spelling, name in known.items() if name != given[spelling])
            kept, whole = (self._resolved_in(sql, own, at_minute, epoch) for own in (session.held, stated))
            respelt = self._resolved_in(sql, others, at_minute, epoch).held if others else others
            used = whole.sha256 if whole.memberships else ""
            return Identity(kept.held, whole.held, self._names_in(sql, epoch), used, respelt)

    def known(self, at: int | None = None) -> Collection[str]:
        """Return the names of the groups that were stated by an instant; groups that are only members are not."""
        with self._reading() as sql:
            return self._names_in(sql, self.epoch(sql, at))

    def _resolved_in(
        self, sql: sqlite3.Connection, own: frozenset[str], at_minute: int, epoch: int
    ) -> Resolution:
        kept = self._resolved.get((own, epoch))
        if kept is None or not kept.window.since <= at_minute < kept.window.until:
            kept = _resolve(sql, own, at_minute, epoch)
            if len(self._resolved) >= _KEPT:
                self._resolved.clear()
            self._resolved[own, epoch] = kept
        return kept

    def _names_in(self, sql: sqlite3.Connection, epoch: int) -> frozenset[str]:
        since, names = self._names  # read once, because threads of a shared store replace it
        if since != epoch:
            names = _stated(sql, epoch)
            self._names = epoch, names
        return names

    def listed(self) -> list[tuple[str, int]]:
        """Return the groups that were stated, by name, and how many direct members each has at any minute."""
        with self._reading() as sql:
            return [(name, int(count)) for name, count in sql.execute(_COUNTED).fetchall()]

    def members(self, group: str, known_at: int | None = None) -> Sequence[tuple[str, Window]]:
        """Return the direct members of a group, by name, each with the minutes in which it is one.

        Raises InvalidArgument if the group was not stated by then.
        """
        if group not in self.known(known_at):
            raise InvalidArgument(
                f"there is no group {quoted(group)} in {self._path}; see: carag groups list"
            )
        with self._reading() as sql:
            about = {"name": group, "u": EVER if known_at is None else known_at}
            return [
                (member, Window(since, until))
                for member, since, until in sql.execute(_MEMBERS, about).fetchall()
            ]


def _trial(sql: sqlite3.Connection, stated: GroupImport, at: int, now: int, most: int) -> Trial:
    before = Groups.epoch(sql)
    report = import_groups(sql, stated, now=now, dry_run=False)
    after = Groups.epoch(sql)
    due = {member for (member,) in sql.execute(_DIFFERING, {"k": after})} if after != before else set()
    concerned = set(due)
    while due:
        below = sql.execute(_BELOW, {"groups": json.dumps(sorted(due)), "k": after})
        due = {member for (member,) in below} - concerned
        concerned |= due

    def held(one: str, epoch: int) -> frozenset[str]:
        return _resolve(sql, frozenset({one}), at, epoch).held

    both = {one: (held(one, before), held(one, after)) for one in sorted(concerned)[:most]}
    known = _stated(sql, before), _stated(sql, after)
    return Trial(report._replace(known_at=None), known, both, len(concerned))


def _stated(sql: sqlite3.Connection, epoch: int) -> frozenset[str]:
    return frozenset(name for (name,) in sql.execute("SELECT name FROM groups WHERE since <= ?", (epoch,)))


def _resolve(sql: sqlite3.Connection, own: frozenset[str], at: int, epoch: int) -> Resolution:
    """Follow memberships upward, level by level; rows are never deleted, so all levels are those of the epoch."""
    held, due = set(own), set(own)
    used: list[tuple[str, str, int, int]] = []
    begin, end = 0, NEVER
    while due:
        above = sql.execute(_ABOVE, {"members": json.dumps(sorted(due)), "u": epoch}).fetchall()
        effective = [
            (member, group, since, until) for member, group, since, until in above if since <= at < until
        ]
        edges = [edge for _, _, *edges in above for edge in edges]
        begin = max([begin, *(edge for edge in edges if edge <= at)])
        end = min([end, *(edge for edge in edges if edge > at)])
        used += effective
        due = {group for _, group, *_ in effective} - held
        held |= due
    return Resolution(frozenset(held), tuple(sorted(used)), Window(begin, end))
