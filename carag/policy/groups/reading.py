r"""Read an import of groups, as JSON Lines or as SCIM; every error names the line or the resource.

A line of JSON Lines states one group::

    {"group": "group:treasury", "members": ["user:ana", "group:desk-fx"], "from": "2025-05-01", "until": null}

``members`` are then all members that the group has. With ``remove``, a list of principals, the line is a change
instead: those are no longer members, ``members`` (which may be left out) are, and all others stay. ``from`` and
``until`` are days, both included, or times in ISO 8601; they hold for every member of the line, except for one that has
its own: ``{"member": "user:ana", "until": "2025-12-31"}``.

A file that begins with a list, or with an object that has ``schemas``, is SCIM (:mod:`carag.policy.groups.scim`).
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.policy.groups.scim import scim_groups
from carag.policy.groups.statements import ALWAYS, GroupImport, GroupStatement, Window
from carag.policy.time import as_of_minutes, parse_moment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

_FIELDS: Final = frozenset({"group", "members", "remove", "from", "until"})
_MEMBER: Final = frozenset({"member", "from", "until"})
_DAY: Final = timedelta(days=1)


def read_groups(text: str, *, file: str = "the import", zone: tzinfo = UTC) -> GroupImport:
    r"""Read what a file states about groups.

    Parameters
    ----------
    text : str
        JSON Lines, or SCIM.
    file : str
        Its name, for messages.
    zone : tzinfo
        Where days begin and end.

    Raises
    ------
    InvalidArgument
        If anything in it is not understood, with the line; nothing is skipped.

    Examples
    --------
    >>> read_groups('{"group": "group:desk-fx", "members": ["user:ana"]}\n').statements
    (GroupStatement('group:desk-fx', members=1),)
    >>> read_groups('{"members": ["user:ana"]}')
    Traceback (most recent call last):
    carag.errors.InvalidArgument: the import, line 1: group is missing; want group, members, remove, from, until
    """
    text = text.removeprefix("\ufeff")
    scim = _scim(text, file)
    stated = list(_lines(text, file, zone) if scim is None else scim_groups(scim, file))
    return GroupImport([one for _, one in stated], [place for place, _ in stated])


def _scim(text: str, file: str) -> Any:
    """Return what a file of SCIM holds; None for JSON Lines."""
    start = text.lstrip()
    if not start:
        raise InvalidArgument(f"{file} is empty; state at least one group")
    line = text.count("\n", 0, len(text) - len(start)) + 1
    try:
        first, _ = json.JSONDecoder().raw_decode(start)
    except json.JSONDecodeError as error:
        raise _not_json(error, file, line) from error
    except (ValueError, RecursionError):  # a number or brackets too long; the strict parser says so
        return _parsed(start, file, line)
    is_scim = isinstance(first, list) or (isinstance(first, dict) and "schemas" in first)
    return _parsed(start, file, line) if is_scim else None


def _lines(text: str, file: str, zone: tzinfo) -> Iterator[tuple[str, GroupStatement]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{file}, line {number}"
            said = _parsed(line, file, number)
            try:
                yield place, _statement(said, zone)
            except InvalidArgument as error:
                raise InvalidArgument(f"{place}: {error}") from error


def _parsed(text: str, file: str, line: int) -> Any:
    """Parse strict JSON: each key once, and finite numbers."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_not_finite)
    except json.JSONDecodeError as error:
        raise _not_json(error, file, line) from error
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{file}, line {line}: not valid JSON: {error}") from error


def _not_json(error: json.JSONDecodeError, file: str, line: int) -> InvalidArgument:
    place = f"{file}, line {line + error.lineno - 1}"
    return InvalidArgument(
        f"{place}: not valid JSON: {error.msg}; write one object per line, or a file of SCIM"
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a field occurs twice; write each once")
    return found


def _not_finite(word: str) -> None:
    raise ValueError(f"{word} is not a number of JSON")


def _statement(said: Any, zone: tzinfo) -> GroupStatement:
    _check_fields(said, _FIELDS, "group")
    if not ("members" in said or "remove" in said):
        raise InvalidArgument("neither members nor remove is stated; write an empty list for no members")
    window = _window(said, ALWAYS, zone)
    members: dict[str, Window] = {}
    for one in _listed(said, "members"):
        member, its_own = _member(one, window, zone)
        if member in members:
            raise InvalidArgument(f"members holds {quoted(member)} twice; write it once")
        members[member] = its_own
    return GroupStatement(said["group"], members, _listed(said, "remove") if "remove" in said else None)


def _member(one: Any, window: Window, zone: tzinfo) -> tuple[str, Window]:
    if isinstance(one, str):
        return one, window
    _check_fields(one, _MEMBER, "member")
    if not isinstance(one["member"], str):
        raise InvalidArgument(f"member is {quoted(one['member'])}; want a principal, such as 'user:ana'")
    return one["member"], _window(one, window, zone)


def _check_fields(said: Any, allowed: frozenset[str], needed: str) -> None:
    order = ", ".join(
        one for one in ("group", "member", "members", "remove", "from", "until") if one in allowed
    )
    if not isinstance(said, dict):
        raise InvalidArgument(f"{quoted(said)} is not an object; want one with {order}")
    if unknown := sorted(said.keys() - allowed):
        raise InvalidArgument(f"there is a field {quoted(unknown[0])}; want {order}")
    if needed not in said:
        raise InvalidArgument(f"{needed} is missing; want {order}")


def _listed(said: dict[str, Any], name: str) -> list[Any]:
    found = said.get(name, [])
    if not isinstance(found, list):
        raise InvalidArgument(f"{name} is {quoted(found)}; want a list of principals")
    return found


def _window(said: dict[str, Any], default: Window, zone: tzinfo) -> Window:
    since, until = (_minute(said[name], name, zone) if name in said else None for name in ("from", "until"))
    return Window(
        (ALWAYS.since if since is None else since) if "from" in said else default.since,
        (ALWAYS.until if until is None else until) if "until" in said else default.until,
    )


def _minute(value: Any, name: str, zone: tzinfo) -> int | None:
    """Return the first minute of a membership, or the first minute after it; None if it has no such limit."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} is {quoted(value)}; want a day or a time in ISO 8601, or null")
    moment = parse_moment(value)
    if not isinstance(moment, datetime):
        try:
            day: date = moment + _DAY if name == "until" else moment
        except OverflowError as error:
            raise InvalidArgument(
                f"{name} is {quoted(value)}; for a membership without end, write null"
            ) from error
        moment = datetime.combine(day, time(), tzinfo=zone)
    return as_of_minutes(moment, name=name)
