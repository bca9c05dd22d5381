"""Hold what an import states about groups: each group once, in one spelling, and no group inside itself."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Final, NamedTuple, final

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.policy.audience import is_group, one_spelling, principal
from carag.policy.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

_SHOWN: Final = 5
"""Greatest number of groups of a cycle that a message names."""


class Window(NamedTuple):
    """When a membership is effective: minutes since 1970, ``since <= minute < until``."""

    since: int = 0
    until: int = NEVER


ALWAYS: Final = Window()


@final
@dataclass(frozen=True, slots=True, repr=False)
class GroupStatement:
    """What is stated about one group.

    Parameters
    ----------
    group : str
        A principal of the kind ``group``.
    members : mapping of str to Window
        Principals, and when each is a member.
    removed : iterable of str, optional
        If given, the statement is a change: these are no longer members, ``members`` are, and other members stay.
        Otherwise ``members`` are all members that the group has.

    Raises
    ------
    InvalidArgument
        If something is not a principal of the right kind, two principals are spellings of one, a window is empty, or
        one principal is both added and removed.

    Examples
    --------
    >>> GroupStatement("group:treasury", {"user:ana": ALWAYS})
    GroupStatement('group:treasury', members=1)
    >>> GroupStatement("user:ana", {})
    Traceback (most recent call last):
    carag.errors.InvalidArgument: group is 'user:ana'; want a principal of the kind group, such as 'group:treasury'
    """

    group: str
    members: Mapping[str, Window]
    removed: frozenset[str] | None = None

    def __init__(
        self, group: str, members: Mapping[str, Window], removed: Iterable[str] | None = None
    ) -> None:
        if not is_group(principal("group", group)):
            raise InvalidArgument(
                f"group is {quoted(group)}; want a principal of the kind group, such as 'group:treasury'"
            )
        held = {principal("members", one): Window(*window) for one, window in members.items()}
        ended = None if removed is None else frozenset(principal("remove", one) for one in removed)
        spelled: dict[str, str] = {}
        for one in (*held, *(ended or ())):
            other = spelled.setdefault(one_spelling(one), one)
            if other != one or (one in held and ended is not None and one in ended):
                raise InvalidArgument(
                    f"{group} has {quoted(other)} and {quoted(one)}; want one of them, once"
                )
        for one, (since, until) in held.items():
            if not 0 <= since < until <= NEVER:
                raise InvalidArgument(
                    f"the membership of {quoted(one)} in {group} would begin at minute {since} and end at {until}; "
                    "want an end after the beginning"
                )
        object.__setattr__(self, "group", str.__str__(group))
        object.__setattr__(self, "members", held)
        object.__setattr__(self, "removed", ended)

    def __repr__(self) -> str:  # as of an audience: never the members
        return f"GroupStatement({self.group!r}, members={len(self.members)})"

    @property
    def named(self) -> set[str]:
        """All principals that it names: the group itself, its members, and those that are removed."""
        return {self.group, *self.members, *(self.removed or ())}


@final
@dataclass(frozen=True, slots=True, repr=False)
class GroupImport:
    """Statements that are imported together, or not at all.

    Parameters
    ----------
    statements : sequence of GroupStatement
    places : sequence of str, optional
        Where each statement is, for messages; by default ``statement 1``, ``statement 2``, ...

    Raises
    ------
    InvalidArgument
        If there is no statement, a group is stated twice or is a member of itself, directly or through other groups of
        these statements, or a principal has two spellings.

    Examples
    --------
    >>> desk, bank = (GroupStatement(f"group:{name}", {}) for name in ("desk", "bank"))
    >>> len(GroupImport([desk, bank]).statements)
    2
    >>> GroupImport([desk, desk])
    Traceback (most recent call last):
    carag.errors.InvalidArgument: statement 2: group:desk is stated already, in statement 1; state each group once
    """

    statements: tuple[GroupStatement, ...]
    places: tuple[str, ...]

    def __init__(self, statements: Sequence[GroupStatement], places: Sequence[str] = ()) -> None:
        if not statements:
            raise InvalidArgument("nothing is stated about any group; state at least one")
        given = tuple(places) or tuple(f"statement {n}" for n in range(1, len(statements) + 1))
        object.__setattr__(self, "statements", tuple(statements))
        object.__setattr__(self, "places", given)
        self._check_once()
        check_no_cycle({one.group: list(filter(is_group, one.members)) for one in statements})

    def __repr__(self) -> str:
        return f"GroupImport(groups={len(self.statements)})"

    @property
    def sha256(self) -> str:
        """SHA-256 of the statements in canonical form, in hexadecimal; their order does not matter."""
        canonical = sorted(
            [one.group, sorted([member, *window] for member, window in one.members.items()), _ended(one)]
            for one in self.statements
        )
        return hashlib.sha256(json.dumps(canonical, separators=(",", ":")).encode()).hexdigest()

    @property
    def groups(self) -> frozenset[str]:
        """Every group that is named, as a group or as a member."""
        return frozenset(
            name for one in self.statements for name in (one.group, *one.members) if is_group(name)
        )

    def _check_once(self) -> None:
        stated: dict[str, str] = {}
        spelled: dict[str, str] = {}
        for one, place in zip(self.statements, self.places, strict=True):
            if (first := stated.setdefault(one.group, place)) is not place:
                raise InvalidArgument(
                    f"{place}: {one.group} is stated already, in {first}; state each group once"
                )
            for name in sorted(one.named):
                if (other := spelled.setdefault(one_spelling(name), name)) != name:
                    raise InvalidArgument(f"{place}: {two_spellings(other, name)}")


def two_spellings(known: str, given: str) -> str:
    """Return the message for a principal whose spelling differs from the one that is known."""
    return f"{quoted(given)} is another spelling of {quoted(known)}; write {quoted(known)}"


def check_no_cycle(members: Mapping[str, Collection[str]]) -> None:
    """Check that no group is a member of itself, directly or through others; ``members`` are those that are groups.

    Windows do not matter: two groups may not hold each other even at different times.

    Examples
    --------
    >>> check_no_cycle({"group:a": ["group:b"], "group:b": ["group:a"]})
    Traceback (most recent call last):
    carag.errors.InvalidArgument: the groups hold each other: group:a in group:b in group:a; remove one membership
    """
    try:
        TopologicalSorter(members).prepare()  # which finds a cycle without recursion
    except CycleError as error:
        cycle: list[str] = error.args[1]  # each is a member of the next; the first and the last are the same
        first = cycle.index(min(cycle))
        turned = [*cycle[first:-1], *cycle[:first], cycle[first]] if cycle[0] == cycle[-1] else cycle
        shown = turned if len(turned) <= _SHOWN + 1 else [*turned[:_SHOWN], f"... ({len(turned) - 1} groups)"]
        raise InvalidArgument(
            f"the groups hold each other: {' in '.join(shown)}; remove one membership"
        ) from error


def _ended(one: GroupStatement) -> list[str] | None:
    return None if one.removed is None else sorted(one.removed)
