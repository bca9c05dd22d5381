"""Groups from SCIM: ids become principals, and what a server left out never ends a membership."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.policy.groups.reading import read_groups
from carag.policy.groups.statements import ALWAYS

GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"


def a_group(id_: str = "4f2", *members: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"schemas": [GROUP], "id": id_, "displayName": "Treasury", "members": list(members), **more}


def a_page(groups: list[Any], total: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "schemas": [LIST],
        "totalResults": len(groups) if total is None else total,
        "Resources": groups,
        **more,
    }


ANA = {"value": "9ab", "type": "User", "$ref": "https://idp.example/scim/v2/Users/9ab", "display": "Ana"}
DESK = {"value": "77", "$ref": "../Groups/77"}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: [one], lambda one: a_page([one])])
def test_ids_become_principals(wrap: Any, indent: int | None) -> None:
    """Alone, in a list and in a list response; no display name is one."""
    (found,) = read_groups(json.dumps(wrap(a_group("4f2", ANA, DESK)), indent=indent)).statements
    assert (found.group, dict(found.members), found.removed) == (
        "group:4f2",
        {"user:9ab": ALWAYS, "group:77": ALWAYS},
        None,
    )


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.data())
def test_pages_are_one_list_and_a_missing_one_is_refused(sizes: list[int], data: st.DataObject) -> None:
    """All pages in order state every group; with one of them left out, nothing is read."""
    pages, first, total = [], 1, sum(sizes)
    for size in sizes:
        groups = [a_group(str(n)) for n in range(first, first + size)]
        pages.append(a_page(groups, total, startIndex=first, itemsPerPage=size))
        first += size
    if total:
        found = read_groups(json.dumps(pages)).statements
        assert [one.group for one in found] == [f"group:{n}" for n in range(1, total + 1)]
    if len(pages) > 1 and sizes[lost := data.draw(st.integers(0, len(pages) - 1))]:
        with pytest.raises(InvalidArgument, match=r"fetch all pages|give all pages"):
            read_groups(json.dumps(pages[:lost] + pages[lost + 1 :]))


FAULTS: dict[str, tuple[Any, str]] = {
    "a truncated page": (a_page([a_group()], 2), "has 1 of the 2 groups"),
    "a page with more than it counts": (a_page([a_group()], 0), "has 1 of the 0 groups"),
    "a page without its count": ({"schemas": [LIST], "Resources": []}, "totalResults is None"),
    "a count that is text": (a_page([], total="1"), "totalResults is '1'"),  # type: ignore[arg-type]
    "a second page alone": (a_page([a_group()], 2, startIndex=2), "begins at 2 of 2, but 1 of 2 is due"),
    "a cursor that leads on": (a_page([a_group()], nextCursor="x"), "field 'nextCursor'"),
    "resources that are not a list": ({**a_page([]), "Resources": {}}, "want a list of groups"),
    "a group without members": (
        {name: one for name, one in a_group().items() if name != "members"},
        "no list of members",
    ),
    "a group without an id": (a_group(""), "id is ''"),
    "an id that is a number": (a_group(7), "id is 7"),  # type: ignore[arg-type]
    "a user": (
        {**a_group(), "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"]},
        "its schemas are not",
    ),
    "an unknown field": (a_group(owner="9ab"), "field 'owner'"),
    "a member of no type": (a_group("4f2", {"value": "9ab"}), "want the type 'User' or 'Group'"),
    "a member of another type": (a_group("4f2", {"value": "9ab", "type": "Device"}), "want the type"),
    "a type that is a list": (a_group("4f2", {"value": "9ab", "type": ["User"]}), "want the type"),
    "a type that its path denies": (a_group("4f2", {**ANA, "type": "Group"}), "both if they agree"),
    "a path to elsewhere": (a_group("4f2", {"value": "9ab", "$ref": "Users"}), "want the type"),
    "a member without a value": (a_group("4f2", {"type": "User"}), "value is None"),
    "a member with an operation": (a_group("4f2", {**ANA, "operation": "delete"}), "field 'operation'"),
    "a member that is text": (a_group("4f2", "9ab"), "want an object"),  # type: ignore[arg-type]
    "a member twice": (a_group("4f2", ANA, ANA), "twice"),
    "a group twice": ([a_group(), a_group()], "stated already, in .*resource 1"),
    "a group inside itself": (a_group("77", DESK), "group:77 in group:77"),
    "an id with a line break": (a_group("a\nb"), "want a kind and an id"),
}


@pytest.mark.parametrize(("value", "why"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_resource_is_refused(value: Any, why: str) -> None:
    """By file and place; nothing is skipped."""
    with pytest.raises(InvalidArgument, match=why):
        read_groups(json.dumps(value, indent=1))
