"""A session's restrictions: each list and window closes what it is meant for, and opens nothing else."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument, Refused
from carag.policy import (
    NO_ENTITY,
    Basis,
    DealWindow,
    Decision,
    LawfulBasis,
    LegalBasis,
    Mask,
    Policy,
    PolicyBit,
    PolicyTable,
    Session,
    WallCrossing,
    as_of_minutes,
    bits_of,
    infer,
    policy_word,
)
from carag.policy.inference import _without_transfer

NOW = datetime(2026, 1, 2, 15, 0, tzinfo=UTC)
TABLE = PolicyTable.shipped()
PLAIN = policy_word(PolicyBit.J_US)
MINUTES = as_of_minutes(NOW)
ISSUER, OTHER = 320_193, 789_019


def decide(role: str, purpose: str, **more: Any) -> Decision:
    return infer(Session(role=role, purpose=purpose, **more), TABLE, now=NOW)


def codes(decision: Decision, word: int = PLAIN, public_at: int = 0, entity: int = OTHER) -> list[str]:
    return [reason.code for reason in decision.reasons(word, public_at, entity=entity)]


def test_a_deny_list_closes_passages_without_an_entity() -> None:
    """A passage that names no entity may be about the company on the list."""
    decision = decide("buy_side", "invest", restricted={ISSUER})
    assert decision.policy.deny_entities == (NO_ENTITY, ISSUER)
    assert [codes(decision, entity=one) for one in (ISSUER, NO_ENTITY, OTHER)] == [["ENTITY_DENIED"]] * 2 + [
        []
    ]


def test_a_list_closes_a_passage_about_several_if_one_of_them_is_on_it() -> None:
    """A filing belongs to each co-registrant; the reason names the listed number."""
    decision = decide("buy_side", "invest", restricted={ISSUER})
    (why,) = decision.reasons(PLAIN, 0, entity=(OTHER, ISSUER))
    assert (why.code, f"CIK {ISSUER}" in why.text, f"{OTHER}" in why.text) == ("ENTITY_DENIED", True, False)
    assert not decision.reasons(PLAIN, 0, entity=(OTHER, 5))
    (unsaid,) = decision.reasons(PLAIN, 0, entity=(0, OTHER))
    assert (unsaid.code, f"{ISSUER}" in unsaid.text) == ("ENTITY_DENIED", False)


def test_behind_a_wall_all_must_be_allowed() -> None:
    """A filing shared with another company belongs to that company too."""
    decision = decide("auditor", "assure", audit_clients={ISSUER, 5})
    assert not decision.reasons(PLAIN, 0, entity=(5, ISSUER))
    (why,) = decision.reasons(PLAIN, 0, entity=(OTHER, ISSUER))
    assert (why.code, f"CIK {OTHER}" in why.text) == ("ENTITY_NOT_ALLOWED", True)
    clients = decide("dpo", "dsar", allow_entities={ISSUER}, audit_clients={ISSUER})
    assert [one.code for one in clients.reasons(0x0800_2801, 0, entity=(OTHER, ISSUER))] == [
        "ENTITY_NOT_ALLOWED"
    ]


@pytest.mark.parametrize(
    ("now", "is_open"),
    [
        (datetime(2026, 6, 1, 3, 59, tzinfo=UTC), True),  # 23:59 Eastern on the day before
        (datetime(2026, 6, 1, 4, 0, tzinfo=UTC), False),
        (datetime(2026, 6, 12, 3, 59, tzinfo=UTC), False),
        (datetime(2026, 6, 12, 4, 0, tzinfo=UTC), True),
    ],
)
def test_a_quiet_period_holds_whole_eastern_days(now: datetime, is_open: bool) -> None:
    """From the first minute of its first day to the last minute of its last, for publishing only."""
    deals = (DealWindow(ISSUER, date(2026, 6, 1), date(2026, 6, 11)),)
    publish = infer(Session(role="sell_side", purpose="publish", deals=deals), TABLE, now=now)
    assert publish.policy.admits(PLAIN, ISSUER) == is_open
    invest = infer(Session(role="buy_side", purpose="invest", deals=deals), TABLE, now=now)
    assert invest.policy.admits(PLAIN, ISSUER)


def test_asking_about_the_past_does_not_evade_a_quiet_period() -> None:
    """A publication happens now."""
    deals = (DealWindow(ISSUER, date(2026, 1, 1), date(2026, 1, 10)),)
    assert codes(decide("sell_side", "publish", deals=deals, as_of=date(2025, 1, 1)), entity=ISSUER) == [
        "ENTITY_DENIED"
    ]


def test_an_egc_offering_reopens_for_a_firm_that_takes_no_part_in_it() -> None:
    """By the specified pair; never for an issuer on the deal list, inside or outside its window."""
    offering = policy_word(bits_of(["OFFERING", "EGC", "J_US"]))
    assert codes(decide("sell_side", "publish"), offering) == ["FORBIDDEN:OFFERING"]  # no deal list known
    deals = (DealWindow(ISSUER, date(2020, 1, 1), date(2020, 1, 11)),)
    decision = decide("sell_side", "publish", deals=deals)
    assert decision.reopened is not None
    assert decision.reopened.masks == (Mask(0x1000100, 0x019C000),)
    assert codes(decision, offering) == []
    assert codes(decision, offering, entity=ISSUER) != []
    assert codes(decision, offering, entity=NO_ENTITY) != []
    assert codes(decision, PLAIN, entity=ISSUER) == []  # its window is over
    assert codes(decision, policy_word(bits_of(["OFFERING"]))) != []
    assert codes(decision, policy_word(bits_of(["OFFERING", "EGC", "PRIV2PUB"]))) != []
    assert decide("buy_side", "invest", deals=()).reopened is None


@pytest.mark.parametrize("purpose", ["invest", "publish"])
def test_a_crossing_for_advice_is_refused_whatever_is_asked_for(purpose: str) -> None:
    """It would lift the restricted list for exactly the purpose that a crossing closes."""
    crossed = {"wall_crossings": (WallCrossing(ISSUER, "draft"), WallCrossing(OTHER, purpose))}
    for role, asked in (("buy_side", "invest"), ("counsel", "draft")):
        with pytest.raises(Refused) as refused:
            decide(role, asked, **crossed)
        assert refused.value.code == "CROSSED_FOR_ADVICE"


def test_a_wall_crossing_opens_the_deal_and_closes_advice() -> None:
    """The restricted list is lifted for the crossing's own purpose; investing and publishing are closed."""
    crossed = {"wall_crossings": (WallCrossing(ISSUER, "draft"),), "restricted": {ISSUER, OTHER}}
    draft = decide("counsel", "draft", **crossed)
    assert [codes(draft, entity=one) for one in (ISSUER, OTHER)] == [[], ["ENTITY_DENIED"]]
    assert codes(decide("counsel", "surveil", **crossed), entity=ISSUER) == ["ENTITY_DENIED"]
    only = {"wall_crossings": (WallCrossing(ISSUER, "draft"),)}
    for role, purpose in (("buy_side", "invest"), ("sell_side", "publish")):
        assert decide(role, purpose, **only).bases(ISSUER) == (Basis.WALL_CROSSED,)
        assert codes(decide(role, purpose, **only), entity=ISSUER) == ["ENTITY_DENIED"]


def test_audit_clients_are_the_only_ones_and_meet_an_allow_list() -> None:
    """Given both lists, only entities on both are allowed."""
    decision = decide("auditor", "assure", audit_clients={1, 2}, allow_entities={2, 3})
    assert decision.policy.allow_entities == (2,)
    assert codes(decision, entity=1) == ["ENTITY_NOT_ALLOWED"]


@pytest.mark.parametrize("kind", ["PD_INSIDER", "PD_COMP", "PD_NATURAL", "PD_SPECIAL"])
def test_without_a_transfer_basis_every_kind_of_personal_data_is_closed(kind: str) -> None:
    """That of EU filers alone, and nothing else of theirs."""
    policy = _without_transfer(Policy(Mask()))
    words = [policy_word(bits_of(names)) for names in (["J_EU", kind], ["J_US", kind], ["J_EU"])]
    assert [False, True, True] == [policy.admits(word) for word in words]


def test_without_a_transfer_basis_personal_data_of_eu_filers_is_closed() -> None:
    """By the two specified pairs, with the specification's example of an Irish proxy."""
    decision = decide("buy_side", "invest", eu_transfer_basis=False)
    assert decision.policy == Policy(Mask(0, 0x0194002), Mask(0, 0x0197800))
    assert codes(decision, 0x0800_1202) != []
    assert codes(decide("buy_side", "invest", eu_transfer_basis=True), 0x0800_1202) == []
    dsar = decide("dpo", "dsar", allow_entities={OTHER}, eu_transfer_basis=False)
    assert codes(dsar, policy_word(bits_of(["PD_COMP", "J_EU"]))) == ["FORBIDDEN:J_EU"]
    assert codes(dsar, policy_word(bits_of(["PD_COMP", "J_US"]))) == []


@pytest.mark.parametrize(("count", "code"), [(4, None), (5, "TOO_MANY_MASKS")])
def test_a_cell_is_split_into_as_many_masks_as_a_policy_holds(count: int, code: str | None) -> None:
    """Without a transfer basis each mask becomes two: eight are searched, and more refuse the session."""
    masks = ", ".join(f'{{ forbidden = ["{bit.name}"] }}' for bit in list(PolicyBit)[5 : 5 + count])
    head = 'schema = 1\n[[cell]]\nrole = "r"\npurpose = "p"\nregulation = "x"\nmay_know_existence = false\n'
    table = PolicyTable.from_toml(f'{head}past = "none"\nmasks = [{masks}]')
    session = Session(role="r", purpose="p", eu_transfer_basis=False)
    if code is None:
        assert len(infer(session, table, now=NOW).policy.masks) == 2 * count
        return
    with pytest.raises(Refused, match="too far") as refusal:
        infer(session, table, now=NOW)
    assert refusal.value.code == code


def test_residency_forbids_jurisdictions_and_nothing_else() -> None:
    """Given as bits or names."""
    decision = decide("buy_side", "invest", residency={"J_EU", PolicyBit.J_UK})
    assert decision.policy == Policy(Mask(0, 0x0194000 | 0x6))
    for bad in ({"EGC"}, {"J_MARS"}, {1}, "J_MARS"):
        with pytest.raises(InvalidArgument, match="residency"):
            Session(role="r", purpose="p", residency=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("basis", "purpose", "code"),
    [
        (LegalBasis(LawfulBasis.CONSENT, frozenset({"invest"})), "invest", None),
        (LegalBasis(LawfulBasis.CONSENT, frozenset({"public_qa"})), "invest", "NO_LEGAL_BASIS"),
        (LegalBasis(LawfulBasis.LEGAL_OBLIGATION), "invest", "NO_LEGAL_BASIS"),
        (LegalBasis(LawfulBasis.LEGITIMATE_INTERESTS), "invest", None),
    ],
)
def test_a_basis_that_does_not_cover_the_purpose_refuses(
    basis: LegalBasis, purpose: str, code: str | None
) -> None:
    """GDPR Art. 6(1)(a), (c), (f)."""
    if code is None:
        assert decide("buy_side", purpose, legal_basis=basis)
        return
    with pytest.raises(Refused) as refusal:
        decide("buy_side", purpose, legal_basis=basis)
    assert refusal.value.code == code


@pytest.mark.parametrize(("role", "purpose"), [("compliance", "surveil"), ("auditor", "assure")])
def test_a_legal_obligation_covers_surveillance_and_assurance(role: str, purpose: str) -> None:
    """GDPR Art. 6(1)(c)."""
    assert decide(role, purpose, legal_basis=LegalBasis(LawfulBasis.LEGAL_OBLIGATION))


def test_objection_and_restriction_close_a_person_but_not_to_that_person() -> None:
    """Art. 18 and 21: an access request is still answered, and a legal obligation overrides an objection."""
    said_no = {"objections": frozenset({1}), "restrictions": frozenset({2})}
    interests = LegalBasis(LawfulBasis.LEGITIMATE_INTERESTS, **said_no)
    invest = decide("buy_side", "invest", legal_basis=interests)
    assert [invest.bases(who) for who in (1, 2, 3)] == [(Basis.OBJECTION,), (Basis.RESTRICTION,), ()]
    assert [codes(invest, entity=who) for who in (1, 2, 3)] == [["ENTITY_DENIED"], ["ENTITY_DENIED"], []]
    surveil = decide("compliance", "surveil", legal_basis=LegalBasis(LawfulBasis.LEGAL_OBLIGATION, **said_no))
    assert [codes(surveil, entity=who) for who in (1, 2)] == [[], ["ENTITY_DENIED"]]
    dsar = decide("dpo", "dsar", legal_basis=interests, allow_entities={1, 2})
    assert [codes(dsar, policy_word(bits_of(["PD_COMP"])), entity=who) for who in (1, 2)] == [[], []]


def test_all_reasons_to_deny_an_entity_add_up() -> None:
    """The firm's lists and persons' objections form one deny list."""
    said_no = LegalBasis(LawfulBasis.LEGITIMATE_INTERESTS, objections=frozenset({1}))
    both = decide("buy_side", "invest", legal_basis=said_no, restricted={2}, watched={3})
    assert both.policy.deny_entities == (0, 1, 2, 3)


def test_dsar_opens_with_a_list_and_for_that_list_only() -> None:
    """For example, a Form 4 is shown only to the person whose number is listed."""
    form_4 = 0x0800_2801
    for role in ("dpo", "counsel"):
        decision = decide(role, "dsar", allow_entities={ISSUER})
        assert [codes(decision, form_4, entity=who) for who in (ISSUER, OTHER)] == [
            [],
            ["ENTITY_NOT_ALLOWED"],
        ]
        assert [codes(decision, form_4, entity=who) for who in ((ISSUER, OTHER), (OTHER, 5))] == [  # type: ignore[arg-type]
            [],
            ["ENTITY_NOT_ALLOWED"],
        ]
    for empty in (None, frozenset()):
        with pytest.raises(Refused) as refusal:
            decide("dpo", "dsar", allow_entities=empty)
        assert refusal.value.code == "ALLOW_LIST_REQUIRED"


def test_material_news_cools_to_the_minute_for_advice_only() -> None:
    """For example, an earnings release is usable for investing once it has been public for the firm's window."""
    release, window = 0x0802_00C1, timedelta(minutes=30)
    cooled = decide("buy_side", "invest", cooling=window)
    assert [codes(cooled, release, MINUTES - age) for age in (29, 30)] == [["COOLING:MATERIAL"], []]
    assert codes(cooled, PLAIN, MINUTES) == []
    assert codes(cooled, release, MINUTES + 1) == ["NOT_YET_PUBLIC"]
    assert codes(decide("compliance", "surveil", cooling=window), release, MINUTES) == []
    assert decide("buy_side", "invest", cooling=timedelta(seconds=61)).cooling == 2  # longer is tighter
    for bad in (timedelta(0), timedelta(minutes=-1), timedelta(days=400), 30):
        with pytest.raises(InvalidArgument, match="cooling"):
            Session(role="buy_side", purpose="invest", cooling=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mask", "instants"),
    [(Mask(), [(100, None), (70, 100)]), (Mask(0, 0x20000), [(100, None)]), (Mask(0x20000), [(70, 100)])],
    ids=["either", "never material", "always material"],
)
def test_a_pair_is_searched_only_where_it_can_admit(
    mask: Mask, instants: list[tuple[int, int | None]]
) -> None:
    """A pair that requires or forbids material news needs one search, not a contradiction."""
    decision = Decision("r", "p", Policy(mask), 100, None, False, "", cooling=30)
    assert [(search.as_of, search.alive_at) for search in decision.searches] == instants


def test_an_empty_deal_list_lists_no_company() -> None:
    """A firm that takes part in no offering takes part in none of an unstated company either."""
    offering = policy_word(bits_of(["OFFERING", "EGC"]))
    assert codes(decide("sell_side", "publish", deals=()), offering, entity=NO_ENTITY) == []


def test_a_cooling_time_longer_than_history_gives_no_negative_instant() -> None:
    """No material news can be old enough."""
    decision = decide("buy_side", "invest", cooling=timedelta(days=300), as_of=date(1970, 1, 2))
    assert len(decision.searches) == 1
    assert not decision.searches[0].policy.admits(0x0802_0000)


MATERIAL = PolicyBit.MATERIAL.value
COOLED_MASKS = st.sampled_from(
    [(0, 0), (1, 0), (MATERIAL, 0), (0, MATERIAL), (1 | MATERIAL, 2), (2, 1 | MATERIAL)]
)


@given(
    st.lists(COOLED_MASKS, max_size=3, unique=True),
    st.sampled_from([None, {"allow_entities": [5]}, {"deny_entities": [5]}]),
    st.integers(0, 4),
    st.integers(0, 4),
)
def test_the_searches_together_are_what_is_admissible(
    pairs: list[tuple[int, int]], lists: dict[str, Any] | None, as_of: int, cooling: int
) -> None:
    """Each passage is found by exactly one search if the decision admits it, and by none otherwise."""
    policy = Policy(*(Mask(*pair) for pair in pairs), **(lists or {}))
    decision = Decision("r", "p", policy, as_of, None, False, "", cooling=cooling)
    searches = decision.searches
    assert searches
    assert all(search.as_of >= 0 for search in searches)
    for bits, public_at, expires_at, entity in itertools.product((0, 1, 2, 3), range(5), range(6), (5, 6)):
        for word in (policy_word(bits), policy_word(bits | MATERIAL)):
            found = [
                one
                for one in searches
                if one.policy.admits(word, entity)
                and public_at <= one.as_of
                and (one.as_of if one.alive_at is None else one.alive_at) < expires_at
            ]
            assert bool(found) is decision.admits(word, public_at, entity=entity, expires_at=expires_at)
            assert len(found) <= 1


def test_what_has_not_cooled_at_the_first_minutes_is_searched_by_nothing() -> None:
    """A policy that requires material reports admits nothing before any could have cooled."""
    decision = Decision("r", "p", Policy(Mask(required="MATERIAL")), 10, None, False, "", cooling=30)
    assert [(search.policy, search.as_of) for search in decision.searches] == [(Policy(), 10)]
