"""Statements about groups: each group once and in one spelling, no group inside itself, nothing skipped in a file."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.policy import NEVER, as_of_minutes
from carag.policy.groups.reading import read_groups
from carag.policy.groups.statements import ALWAYS, GroupImport, GroupStatement, Window, check_no_cycle

NAMES = st.sampled_from("abcdef")
NESTED = st.dictionaries(NAMES, st.sets(NAMES, max_size=3), max_size=6)


def reached(start: str, members: dict[str, set[str]]) -> set[str]:
    """Everything below a group, by the definition."""
    found: set[str] = set()
    due = set(members.get(start, ()))
    while due - found:
        found |= due
        due = {one for group in found for one in members.get(group, ())}
    return found


@given(NESTED)
def test_a_group_inside_itself_is_refused_and_no_other(members: dict[str, set[str]]) -> None:
    """Directly or through others; the message names groups each of which is a member of the next."""
    if any(one in reached(one, members) for one in members):
        with pytest.raises(InvalidArgument, match="the groups hold each other") as caught:
            check_no_cycle(members)
        cycle = str(caught.value).partition(": ")[2].partition(";")[0].split(" in ")
        assert cycle[0] == cycle[-1]
        if "..." not in str(caught.value):
            assert all(one in members[group] for one, group in pairwise(cycle))
    else:
        check_no_cycle(members)


def test_a_chain_of_any_length_is_walked_without_recursion() -> None:
    """As is a cycle of any length, of which the message names a few groups."""
    chain = {f"group:{n}": [f"group:{n + 1}"] for n in range(5000)}
    check_no_cycle(chain)
    with pytest.raises(InvalidArgument, match=r"\(5001 groups\)"):
        check_no_cycle({**chain, "group:5000": ["group:0"]})


def test_the_hash_says_what_is_stated_and_not_in_which_order() -> None:
    """Every part counts: group, member, window, and whether others stay."""
    one, two = (
        GroupStatement("group:a", {"user:ana": ALWAYS, "user:bo": ALWAYS}),
        GroupStatement("group:b", {}),
    )
    again = GroupStatement("group:a", {"user:bo": ALWAYS, "user:ana": ALWAYS})
    assert GroupImport([one, two]).sha256 == GroupImport([two, again]).sha256
    others = [
        [one],
        [GroupStatement("group:a", {"user:ana": ALWAYS, "user:bo": Window(1)}), two],
        [GroupStatement("group:a", {"user:ana": ALWAYS, "user:bo": ALWAYS}, ()), two],
        [one, GroupStatement("group:b", {}, ["user:ana"])],
    ]
    assert len({GroupImport(stated).sha256 for stated in [[one, two], *others]}) == 5


def test_no_repr_names_a_member() -> None:
    """Logs show who is in no group."""
    stated = GroupStatement("group:a", {"user:ana": ALWAYS})
    assert "ana" not in repr(stated) + repr(GroupImport([stated]))


def test_a_line_states_one_group() -> None:
    """All of its members, or what changes; days are whole days of the zone, and a member may have its own."""
    text = (
        '{"group": "group:a", "members": ["user:ana", {"member": "user:bo", "until": null}], "from": "2025-05-01", '
        '"until": "2025-05-31"}\n\n{"group": "group:b", "remove": ["user:ana"]}\n'
        '{"group": "group:c", "members": ["group:b"], "from": "2025-05-01T09:30+02:00"}\r\n'
    )
    zone = ZoneInfo("Asia/Kolkata")
    full, change, timed = read_groups(text, zone=zone).statements
    since = as_of_minutes(datetime(2025, 5, 1, tzinfo=zone))
    until = as_of_minutes(date(2025, 5, 31), zone) + 1
    assert dict(full.members) == {"user:ana": (since, until), "user:bo": (since, NEVER)}
    assert (full.removed, dict(change.members), change.removed) == (None, {}, {"user:ana"})
    assert dict(timed.members) == {"group:b": (as_of_minutes(datetime(2025, 5, 1, 7, 30, tzinfo=UTC)), NEVER)}


FAULTS = {
    "a member without a kind": (
        '{"group": "group:a", "members": ["ana"]}',
        "members holds 'ana'; want a kind",
    ),
    "a user in place of a group": ('{"group": "user:a", "members": []}', "principal of the kind group"),
    "an unknown field": ('{"group": "group:a", "members": [], "till": null}', "field 'till'"),
    "an unknown field of a member": (
        '{"group": "group:a", "members": [{"member": "user:a", "as": 1}]}',
        "field 'as'",
    ),
    "a member that is a number": ('{"group": "group:a", "members": [7]}', "7 is not an object"),
    "a member that is an object of numbers": (
        '{"group": "group:a", "members": [{"member": 7}]}',
        "member is 7",
    ),
    "no members and no remove": ('{"group": "group:a"}', "neither members nor remove"),
    "null for a list": ('{"group": "group:a", "members": null}', "members is None; want a list"),
    "a text for a list": ('{"group": "group:a", "remove": "user:a"}', "remove is 'user:a'; want a list"),
    "a group that is a number": ('{"group": 7, "members": []}', "group holds 7"),
    "a member twice": ('{"group": "group:a", "members": ["user:a", "user:a"]}', "twice"),
    "a member in two spellings": (
        '{"group": "group:a", "members": ["user:a", "user:A"]}',
        "want one of them",
    ),
    "added and removed": (
        '{"group": "group:a", "members": ["user:a"], "remove": ["user:a"]}',
        "want one of them",
    ),
    "the group inside itself": ('{"group": "group:a", "members": ["group:a"]}', "group:a in group:a"),
    "a day that is not there": (
        '{"group": "group:a", "members": [], "from": "2025-02-30"}',
        "neither a date",
    ),
    "a time without a zone": ('{"group": "group:a", "members": [], "from": "2025-02-03T09:00"}', "time zone"),
    "a day that is a number": ('{"group": "group:a", "members": [], "from": 20250203}', "a day or a time"),
    "the last day of all": ('{"group": "group:a", "members": [], "until": "9999-12-31"}', "write null"),
    "an end before the beginning": (
        '{"group": "group:a", "members": ["user:a"], "from": "2025-02-03", "until": "2025-02-02"}',
        "want an end after",
    ),
    "a field twice": ('{"group": "group:a", "group": "group:b", "members": []}', "twice"),
    "a number that is not finite": ('{"group": "group:a", "members": [], "from": NaN}', "NaN"),
    "a line that is cut off": ('{"group": "group:a", "mem', "not valid JSON"),
    "a list in a line": ('["group:a"]', "is not an object"),
    "the same group again": ('{"group": "group:first", "members": []}', "stated already, in .*line 1"),
    "another spelling of a group": ('{"group": "group:First", "members": []}', "another spelling"),
    "another spelling as a member": ('{"group": "group:a", "members": ["group:FIRST"]}', "another spelling"),
    "deep brackets": ("[" * 100_000, "not valid JSON"),
}


@pytest.mark.parametrize(("line", "why"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_line_is_refused_by_its_number(line: str, why: str) -> None:
    """Whatever is wrong with it; nothing is skipped."""
    text = '{"group": "group:first", "members": []}\n\n' + line
    names_the_line = "" if "hold each other" in why or "group:a in group:a" in why else "line 3: "
    with pytest.raises(InvalidArgument, match=f"(?s){names_the_line}.*{why}"):
        read_groups(text)


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff", "7", "null", '"schemas"', "{", "[]"])
def test_a_file_that_states_nothing_is_refused(text: str) -> None:
    """Empty, or of another kind."""
    with pytest.raises(InvalidArgument):
        read_groups(text)


def test_a_cycle_over_several_lines_is_named() -> None:
    """From its first group by name, whatever the order of the lines."""
    lines = [
        json.dumps({"group": f"group:{n}", "members": [f"group:{(n + 1) % 3}", "user:ana"]}) for n in range(3)
    ]
    for _ in range(3):
        random.shuffle(lines)
        with pytest.raises(
            InvalidArgument, match=r"hold each other: group:0 in group:2 in group:1 in group:0;"
        ):
            read_groups("\n".join(lines))
