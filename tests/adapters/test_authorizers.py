"""Cedar and Rego decide about the documents that an engine finds, and what cannot be evaluated is not allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.adapters.authorizers import CedarAuthorizer, RegoAuthorizer
from carag.errors import AuthorizerUnavailable, InvalidArgument
from tests.retrieval.test_authority import ANA, NAMES, found, opened, store  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytest.importorskip("cedarpy")
pytest.importorskip("regopy")

SHARED = 'permit(principal, action, resource) when { resource.shared.contains("x") && principal in Group::"desk" };'
BARRED = 'forbid(principal, action, resource) when { resource.shared.contains("y") };'
RULE = """
package sharing
import rego.v1
allowed contains id if {
    some id in input.documents
    "x" in data.shared[id]
    not "y" in data.shared[id]
    "group:desk" in input.principals
}
"""


def cedar(shared: dict[str, list[str]], policies: str = SHARED + BARRED) -> CedarAuthorizer:
    def entities(ids: Sequence[str]) -> list[dict[str, Any]]:
        return [
            {"uid": {"type": "Document", "id": one}, "attrs": {"shared": shared[one]}, "parents": []}
            for one in ids
            if one in shared
        ]

    return CedarAuthorizer(policies, entities)


def rego(shared: dict[str, list[str]]) -> RegoAuthorizer:
    return RegoAuthorizer(RULE, "data.sharing.allowed", {"shared": shared})


@given(
    st.dictionaries(st.sampled_from("abcd"), st.lists(st.sampled_from("xyz"), unique=True)),
    st.frozensets(st.sampled_from(["group:desk", "group:other"])),
)
def test_both_decide_as_plain_sets_do(shared: dict[str, list[str]], groups: frozenset[str]) -> None:
    who, ids = groups | {"user:ana"}, list("abcd")
    expected = [
        "group:desk" in groups and "x" in shared.get(one, ()) and "y" not in shared.get(one, ())
        for one in ids
    ]
    assert cedar(shared).allowed(who, ids) == expected
    assert rego(shared).allowed(who, ids) == expected


@pytest.mark.parametrize("engine_of", [cedar, rego])
def test_an_engine_returns_only_what_they_allow(engine_of: Any, store: Path) -> None:  # noqa: F811
    shared = {name: ["x", *("y" * (number % 3 == 0))] for number, name in enumerate(NAMES)}
    with opened(store, engine_of(shared)) as engine:
        assert found(engine, ANA, 20) == []
        named = type(ANA)(role=ANA.role, purpose=ANA.purpose, principals={"user:ana", "group:desk"})
        assert sorted(found(engine, named, 20)) == sorted(
            name for number, name in enumerate(NAMES) if number % 3
        )


def test_a_forbidding_policy_that_cannot_be_evaluated_forbids() -> None:
    """Cedar 4 skips a policy that fails, so that the request is allowed although the policy might forbid it."""
    open_to_all = (
        "permit(principal, action, resource);forbid(principal, action, resource) when { resource.level > 3 };"
    )
    assert cedar({"a": []}, open_to_all).allowed(frozenset({"user:ana"}), ["a"]) == [False]


def test_a_session_without_one_user_is_shown_nothing(store: Path) -> None:  # noqa: F811
    both = type(ANA)(role=ANA.role, purpose=ANA.purpose, principals={"user:ana", "user:bo"})
    with opened(store, cedar({})) as engine, pytest.raises(AuthorizerUnavailable, match="InvalidArgument"):
        engine.retrieve("When do branches report?", both)


def test_policies_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="not valid Cedar"):
        CedarAuthorizer("permit(", lambda _: [])
    with pytest.raises(InvalidArgument, match="not valid Rego"):
        RegoAuthorizer("package x\nallowed contains id if {", "data.x.allowed", {})
    with pytest.raises(InvalidArgument, match="did not make a set"):
        RegoAuthorizer(RULE, "data.sharing.misspelt", {}).allowed(frozenset(), ["a"])


def test_an_id_that_rego_returns_as_another_allows_neither() -> None:
    """regopy 1.5.2 returns the six characters of an escape as the letter that they stand for."""
    ids = ["A", "\\u0041", 'the "Blue" fund', "plain"]
    everything = "package sharing\nimport rego.v1\nallowed contains one if { some one in input.documents }\n"
    only = 'package sharing\nimport rego.v1\nallowed contains one if { some one in input.documents; one != "A" }\n'
    for module, expected in ((everything, [True, False, False, True]), (only, [False, False, False, True])):
        assert RegoAuthorizer(module, "data.sharing.allowed", {}).allowed(frozenset(), ids) == expected


PLACES = ["resource", 'resource == Document::"a"', 'resource in Folder::"f"']
WHOM = [
    "principal",
    "principal is User",
    'principal == User::"ana"',
    'principal == Group::"desk"',
    'principal in Group::"desk"',
    'principal is User in Group::"other"',
]
WHEN = [
    "",
    'when { principal in [Group::"desk", User::"bo"] }',
    'when { principal in Group::"desk" || principal == User::"bo" }',
    'when { principal in Group::"desk" && principal in Group::"other" }',
    "unless { resource.closed }",
    'unless { principal in Group::"other" }',
    "when { principal has level && principal.level > 3 }",
]
POLICIES = st.lists(
    st.builds(
        "{}({}, action, {}) {};".format,
        *map(st.sampled_from, (["permit", "forbid"], WHOM, PLACES, WHEN)),
    ),
    min_size=1,
    max_size=5,
)


@given(POLICIES, st.lists(st.booleans(), min_size=2, max_size=2))
def test_lists_made_of_policies_admit_those_whom_the_policies_admit(
    policies: list[str], closed: list[bool]
) -> None:
    """Every user in every set of groups; a document without lists is one whose policies ask for more than lists say."""

    def entities(ids: Sequence[str]) -> list[dict[str, Any]]:
        folder = {"type": "Folder", "id": "f"}
        found: list[dict[str, Any]] = [{"uid": folder, "attrs": {}, "parents": []}]
        for one, is_closed in zip("ab", closed, strict=True):
            uid, parents = {"type": "Document", "id": one}, [folder] if one == "b" else []
            found.append({"uid": uid, "attrs": {"closed": is_closed}, "parents": parents})
        return found

    cedar = CedarAuthorizer("\n".join(policies), entities)
    lists = cedar.audiences(["a", "b"])
    for user in ("user:ana", "user:bo"):
        for groups in (set(), {"group:desk"}, {"group:other"}, {"group:desk", "group:other"}):
            who = frozenset({user, *groups})
            for is_allowed, one in zip(cedar.allowed(who, ["a", "b"]), lists, strict=True):
                assert one is None or one.admits(who) is is_allowed, (policies, who)
    if not any("&&" in policy or "unless { principal" in policy for policy in policies):
        hard = [one for one in policies if "in [" in one or "||" in one]
        assert None not in lists or hard


@pytest.mark.parametrize(
    ("policy", "stated"),
    [
        ('permit(principal == Group::"desk", action, resource);', '{"allow":[],"deny":[]}'),
        ("permit(principal, action, resource);", '{"allow":null,"deny":[]}'),
        ("forbid(principal, action, resource);", '{"allow":[],"deny":[]}'),
        ('permit(principal in Group::"two\\nlines", action, resource);', None),
        ("permit(principal, action, resource) when { principal.level > 3 };", None),
    ],
)
def test_what_lists_say_and_cannot_say(policy: str, stated: str | None) -> None:
    """A user equals no group; a name that is not one of a principal here, or an attribute, is left to the policies."""
    (found,) = cedar({"a": []}, policy).audiences(["a"])
    assert (None if found is None else found.text) == stated
