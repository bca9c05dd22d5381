"""Who may see a document: an oracle in plain sets, what no list may do, and what no list tells."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.policy import NO_LISTS, NOBODY, Audience, Decision, Identity, Mask, Policy, Session
from carag.policy.audience import MAX_AUDIENCE, MAX_PRINCIPALS, one_spelling, principals

PEOPLE = [f"user:{name}" for name in "abc"] + [f"group:{name}" for name in "xyz"]
some = st.frozensets(st.sampled_from(PEOPLE))
WORD = 0x0800_0000


def oracle(allow: Any, deny: Any, allowed: Any, denied: Any, groups: Any) -> bool:
    if not denied and (deny or allow is not None):
        return False
    if denied & deny or any(one.startswith("group:") and one not in groups for one in deny):
        return False
    return allow is None or bool(allowed & allow)


@given(st.none() | some, some, some, some, some)
def test_denying_beats_allowing_and_an_unknown_group_hides(
    allow: Any, deny: Any, stated: Any, kept: Any, groups: Any
) -> None:
    identity = Identity(stated & kept, stated, groups)
    assert identity.admits(Audience(allow, deny)) == oracle(allow, deny, stated & kept, stated, groups)


@given(st.none() | some, some, some, some)
def test_giving_principals_up_opens_nothing(allow: Any, deny: Any, stated: Any, kept: Any) -> None:
    """A request that drops the group which a document is denied to is still denied."""
    groups = frozenset(PEOPLE)
    audience = Audience(allow, deny)
    if Identity(stated & kept, stated, groups).admits(audience):
        assert Identity(stated, stated, groups).admits(audience)


@given(st.none() | some, some, some, some)
def test_another_spelling_denies_and_opens_nothing(allow: Any, deny: Any, stated: Any, respelt: Any) -> None:
    groups, audience = frozenset(PEOPLE), Audience(allow, deny)
    admitted = Identity(stated, stated, groups, respelt=respelt).admits(audience)
    assert admitted == (Identity(stated, stated, groups).admits(audience) and not respelt & deny)


@given(st.none() | some, some)
def test_an_audience_is_read_from_its_text(allow: Any, deny: Any) -> None:
    one = Audience(allow, deny)
    assert Audience.read(one.text) == one
    assert bool(one) == (allow is not None or bool(deny))


def test_nobody_sees_what_is_shared_with_nobody() -> None:
    everybody = Identity(frozenset(PEOPLE), frozenset(PEOPLE), frozenset(PEOPLE))
    assert not everybody.admits(Audience(allow=[]))
    assert NOBODY.admits(NO_LISTS)
    assert not NOBODY.admits(Audience(deny=["user:a"]))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["ana"], "want a kind and an id"),
        (["user:"], "want a kind and an id"),
        (["user: ana"], "want a kind and an id"),
        (["user:ana "], "want a kind and an id"),
        (["User:ana"], "want a kind and an id"),
        (["user:a\nb"], "want a kind and an id"),
        ([7], "want a kind and an id"),
        ("user:ana", "want a list of principals"),
        (None, "want a list of principals"),
        (["group:Treasury", "group:treasury"], "two spellings of one principal"),
        (["group:\N{LATIN SMALL LETTER E WITH ACUTE}", "group:e\N{COMBINING ACUTE ACCENT}"], "two spellings"),
        ([f"user:{number}" for number in range(MAX_PRINCIPALS + 1)], "at most 10000"),
    ],
)
def test_a_list_that_cannot_be_read_for_certain_is_refused(values: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        principals("allow", values)


def test_one_principal_has_one_spelling_on_both_lists_together() -> None:
    with pytest.raises(InvalidArgument, match="two spellings"):
        Audience(allow=["group:Desk"], deny=["group:desk"])
    assert one_spelling("group:Straße") == one_spelling("group:STRASSE")


def test_no_list_shows_itself() -> None:
    shown = repr(Audience(["user:ana"], ["group:contractors"]))
    identity = Identity(frozenset({"user:ana"}), frozenset({"user:ana"}), frozenset({"group:x"}))
    session = Session(role="r", purpose="p", principals={"user:ana"}).narrow(principals=["user:ana"])
    for one in (shown, repr(identity), repr(session)):
        assert "ana" not in one
        assert "contractors" not in one


def test_a_reason_names_nobody_on_the_lists() -> None:
    decision = Decision("r", "p", Policy(Mask()), 0, None, True, "")
    audience = Audience(["group:project-kestrel"])
    (why,) = decision.reasons(WORD, 0, audience=audience)
    assert (why.code, "kestrel" in why.text) == ("AUDIENCE", False)
    assert not decision.admits(WORD, 0, audience=audience)
    assert decision.admits(WORD, 0)


def test_narrowing_keeps_what_deny_lists_test() -> None:
    session = Session(role="r", purpose="p", principals={"user:ana", "group:desk"})
    narrowed = session.narrow(principals=["user:ana", "user:bo"])
    assert (narrowed.principals, narrowed.acting_as) == (session.principals, {"user:ana"})
    assert narrowed.narrow(principals=["group:desk"]).acting_as == frozenset()
    with pytest.raises(InvalidArgument, match="not among the session's principals"):
        Session(role="r", purpose="p", principals={"user:ana"}, acting_as=frozenset({"user:bo"}))
    with pytest.raises(InvalidArgument, match="principals is"):
        session.narrow(principals="user:ana")


def test_narrowing_groups_requests_or_leaves_them_grouped() -> None:
    session = Session(role="r", purpose="p", conversation="a")
    assert [session.narrow().conversation, session.narrow(conversation="b").conversation] == ["a", "b"]


@given(st.frozensets(st.integers(0, 5)), st.integers(0, 6))
def test_a_policy_admits_its_audiences_and_everybody_s(audiences: frozenset[int], audience: int) -> None:
    """Whether they are given or taken over, and with any masks; the repr says only that there are some."""
    policy = Policy(Mask(1), deny_entities=[7], audiences=audiences)
    assert policy.admits_audience(audience) == (audience in {0, *audiences})
    assert policy == Policy(Mask(1), deny_entities=[7]).with_audiences(policy.audience_list)
    assert ("audiences=<listed>" in repr(policy)) == bool(audiences - {0})


def test_audiences_are_numbers_of_32_bits() -> None:
    assert Policy(audiences=[MAX_AUDIENCE]).audiences == (MAX_AUDIENCE,)
    for bad in ([MAX_AUDIENCE + 1], [1, MAX_AUDIENCE + 1], [-1]):
        with pytest.raises(InvalidArgument, match="audiences holds"):
            Policy(audiences=bad)


class Stored(NamedTuple):
    """A passage as a store gives it."""

    word: int
    public_at: int
    expires_at: int
    subjects: tuple[int, ...]
    audience: Audience


ANA = Identity(frozenset({"user:ana"}), frozenset({"user:ana"}))
OPEN = Stored(WORD, 5, 9, (3,), Audience(["user:ana"]))


@pytest.mark.parametrize(
    ("change", "is_admitted"),
    [
        ({}, True),
        ({"word": 0}, False),
        ({"public_at": 8}, False),
        ({"expires_at": 7}, False),
        ({"subjects": (4,)}, False),
        ({"audience": Audience(["user:bo"])}, False),
    ],
)
def test_a_stored_passage_is_judged_by_each_of_its_fields(
    change: dict[str, Any], *, is_admitted: bool
) -> None:
    """And explained by them."""
    policy = Policy(Mask(), allow_entities=[3])
    decision = Decision("r", "p", policy, 7, None, True, "", identity=ANA)
    one = OPEN._replace(**change)
    assert (decision.admits_labelled(one), decision.reasons_for(one) == ()) == (is_admitted, is_admitted)
