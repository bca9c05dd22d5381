"""A profile's data applies as EDGAR's does: its places, persons, times, purposes and time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from carag.errors import InvalidArgument, Refused
from carag.policy import (
    DealWindow,
    LawfulBasis,
    LegalBasis,
    PolicyBit,
    Profile,
    Session,
    infer,
    policy_word,
)

NOW = datetime(2026, 1, 2, 15, 0, tzinfo=UTC)
HEAD = """schema = 1
name = "firm"
time_zone = "Asia/Tokyo"
[words]
entity = "client"
entities = "clients"
cooling = "news"
[groups]
jurisdictions = ["HERE", "ABROAD"]
personal = ["PERSON"]
transfer = ["ABROAD"]
cooling = ["FRESH"]
[purposes]
advice = ["sell"]
publishing = ["sell"]
access_request = ["answer"]
obliged = ["check"]
[intents]
not_meant = ["no news"]
[[intent]]
name = "OLD"
forbidden = ["FRESH"]
phrases = ["news"]
"""
BITS = ("HERE", "ABROAD", "PERSON", "FRESH", "TENDER")
CELL = """[[cell]]
role = "clerk"
purpose = "{}"
regulation = "r"
may_know_existence = true
past = "as_of"
masks = [{{ forbidden = ["TENDER"] }}, {{ when = "not_participating", required = ["TENDER"] }}]
"""
FIRM = Profile.from_texts(
    HEAD + "".join(f'[[bit]]\nname = "{bit}"\ndocument = "{bit} files"\nregulation = "r"\n' for bit in BITS),
    "schema = 1\n" + "".join(CELL.format(purpose) for purpose in ("sell", "check", "answer")),
)
HERE, ABROAD, PERSON, FRESH, TENDER = FIRM.vocabulary.flags


def decided(purpose: str = "sell", **more: object):  # type: ignore[no-untyped-def]
    return infer(Session(role="clerk", purpose=purpose, **more), FIRM.table, now=NOW)  # type: ignore[arg-type]


def test_places_are_the_profiles() -> None:
    """They are members of its flags; plain names are EDGAR's."""
    decision = decided(residency=ABROAD)
    assert [decision.admits(policy_word(bit), 0) for bit in (HERE, ABROAD)] == [True, False]
    assert not decided(residency={HERE, ABROAD}).admits(policy_word(HERE), 0)
    with pytest.raises(InvalidArgument, match="among HERE, ABROAD"):
        Session(role="clerk", purpose="sell", residency=PERSON)
    with pytest.raises(Refused, match="another profile"):
        decided(residency="J_EU")


def test_a_request_adds_places_of_its_own_profile_alone() -> None:
    """A bit of another profile would exclude the wrong place, or none."""
    session = Session(role="clerk", purpose="sell", residency=HERE)
    assert session.narrow(residency=ABROAD).residency == {HERE, ABROAD}
    for granted, asked in ((HERE, PolicyBit.J_EU), (PolicyBit.J_EU, HERE)):
        with pytest.raises(InvalidArgument, match="two profiles"):
            Session(role="clerk", purpose="sell", residency=granted).narrow(residency=asked)


def test_without_a_basis_no_persons_leave_the_places_that_need_one() -> None:
    """A profile that cannot identify them refuses."""
    decision = decided(eu_transfer_basis=False)
    words = {
        bits: decision.admits(policy_word(bits), 0)
        for bits in (ABROAD, PERSON, ABROAD | PERSON, HERE | PERSON)
    }
    assert list(words.values()) == [True, True, False, True]
    for line in ('transfer = ["ABROAD"]\n', 'personal = ["PERSON"]\n'):
        lacking = Profile.from_texts(FIRM.texts[0].replace(line, ""), FIRM.texts[1])
        with pytest.raises(Refused, match="cannot tell"):
            infer(Session(role="clerk", purpose="sell", eu_transfer_basis=False), lacking.table, now=NOW)


def test_what_a_cooling_time_holds_back_is_the_profiles() -> None:
    """In the profile's words, and only for its advice."""
    decision = decided(cooling=timedelta(minutes=30))
    recent = decision.as_of - 10
    assert [decision.admits(policy_word(bit), recent) for bit in (FRESH, HERE)] == [False, True]
    (reason,) = decision.reasons(policy_word(FRESH), recent)
    assert (reason.code, reason.text.startswith("news public for less")) == ("COOLING:FRESH", True)
    assert {search.as_of for search in decision.searches} == {decision.as_of, decision.as_of - 30}
    assert decided("check", cooling=timedelta(minutes=30)).admits(policy_word(FRESH), recent)


def test_a_days_end_is_the_profiles() -> None:
    """For an as-of date, and for a deal's window."""
    last = int(datetime(2026, 1, 1, 14, 59, tzinfo=UTC).timestamp()) // 60
    assert decided(as_of=date(2026, 1, 1)).as_of == last
    # 15:00 UTC is midnight in Tokyo: the third of January has begun there, and the second is over.
    for ends, denied in ((date(2026, 1, 2), False), (date(2026, 1, 3), True)):
        deals = (DealWindow(7, date(2025, 12, 1), ends),)
        assert bool(decided(deals=deals).grounds) == denied


def test_purposes_are_the_profiles() -> None:
    """The purposes that an obligation covers, that answer a person's request, and that publish."""
    obliged = LegalBasis(LawfulBasis.LEGAL_OBLIGATION)
    assert decided("check", legal_basis=obliged)
    with pytest.raises(Refused, match="does not cover"):
        decided("sell", legal_basis=obliged)
    objecting = LegalBasis(LawfulBasis.LEGITIMATE_INTERESTS, objections=frozenset({7}))
    assert [bool(decided(purpose, legal_basis=objecting).grounds) for purpose in ("sell", "answer")] == [
        True,
        False,
    ]
    asked = {purpose: decided(purpose, allow_entities={7}, deals=()) for purpose in ("sell", "answer")}
    for word in (policy_word(0), policy_word(TENDER)):
        assert [asked[purpose].admits(word, 0, entity=(7, 8)) for purpose in ("sell", "answer")] == [
            False,
            True,
        ]
    deals = (DealWindow(7, date(2025, 12, 1), date(2026, 2, 1)),)
    assert [bool(decided(purpose, deals=deals).grounds) for purpose in ("sell", "check")] == [True, False]


@pytest.mark.parametrize("kind", ["advice", "publishing", "access_request", "obliged"])
def test_a_purpose_misspelt_is_refused(kind: str) -> None:
    """It would silently switch a rule off."""
    lines = FIRM.texts[0].splitlines()
    text = "\n".join(f'{kind} = ["sel"]' if line.startswith(f"{kind} =") else line for line in lines)
    with pytest.raises(InvalidArgument, match=r"'sel'.*did you mean 'sell'"):
        Profile.from_texts(text, FIRM.texts[1])


def test_entities_are_named_in_the_profiles_words() -> None:
    """In reasons, and in the list of withheld kinds."""
    decision = decided(restricted={7})
    (reason,) = decision.reasons(policy_word(0), 0, entity=7)
    assert "client 7" in reason.text
    assert "clients on the session's restricted list" in [kind.text for kind in decision.withheld]


def test_phrases_are_the_profiles() -> None:
    """Phrases that tighten, and phrases that only sound like it."""
    said = Profile.from_texts(*FIRM.texts).vocabulary.intents
    assert [said.found(text) for text in ("What is the NEWS?", "There is no news.", "x")] == [
        ("OLD",),
        (),
        (),
    ]
    assert not infer(Session(role="clerk", purpose="sell"), FIRM.table, now=NOW, intents=["OLD"]).admits(
        policy_word(FRESH), 0
    )
