"""A session's terms: narrowing only adds to them, malformed ones are refused, and lists are never shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from inspect import signature
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.policy import (
    DealWindow,
    LawfulBasis,
    LegalBasis,
    PolicyBit,
    PolicyTable,
    Session,
    SessionSource,
    WallCrossing,
    as_of_minutes,
    infer,
    policy_word,
)

NOW = datetime(2026, 1, 2, 15, 0, tzinfo=UTC)
TABLE = PolicyTable.shipped()
MINUTES = as_of_minutes(NOW)
ISSUER = 320_193

minutes = st.integers(0, MINUTES)
few = st.frozensets(st.integers(1, 5))
GRANTED = st.fixed_dictionaries(
    {},
    optional={
        "allow_entities": few,
        "restricted": few,
        "watched": few,
        "residency": st.frozensets(st.sampled_from(["J_US", "J_EU", "J_UK"])),
        "cooling": st.timedeltas(timedelta(minutes=1), timedelta(days=300)),
        "intents": st.lists(st.sampled_from(["LATEST", "AUDITED", "US_GAAP"])),
    },
)
CELLS = [cell for cell in TABLE.cells if cell.allow_list == "none"]


# Few bits and an old passage: most would be hidden by chance otherwise, and prove nothing.
few_bits = st.sets(st.sampled_from(list(PolicyBit)), max_size=2).map(sum)


@given(
    st.sampled_from(CELLS),
    GRANTED,
    GRANTED,
    few_bits,
    st.just(0) | minutes,
    st.frozensets(st.integers(0, 5), max_size=2),
)
def test_a_request_only_narrows(
    cell: Any,
    granted: dict[str, Any],
    asked: dict[str, Any],
    bits: int,
    public_at: int,
    entity: frozenset[int],
) -> None:
    """A request gets only what was granted, and only what it asked for."""
    session = Session(role=cell.role, purpose=cell.purpose, **granted)
    wide, narrow = (infer(one, TABLE, now=NOW) for one in (session, session.narrow(**asked)))
    word = policy_word(bits)
    if not narrow.reasons(word, public_at, entity=entity):
        assert not wide.reasons(word, public_at, entity=entity)
    alone = infer(Session(role=cell.role, purpose=cell.purpose, **asked), TABLE, now=NOW)
    if not narrow.reasons(word, public_at, entity=entity):
        assert not alone.reasons(word, public_at, entity=entity)


def test_narrowing_meets_an_allow_list_joins_the_others_and_keeps_the_longer_wait() -> None:
    """Each term is combined in its own way."""
    granted = Session(
        role="buy_side",
        purpose="invest",
        allow_entities={1, 2},
        restricted={3},
        watched={4},
        residency={"J_EU"},
        cooling=timedelta(hours=2),
        as_of=date(2025, 1, 1),
        intents=("LATEST",),
    )
    asked = granted.narrow(
        allow_entities=[2, 9],
        restricted=[5],
        watched=[6],
        residency=["J_UK"],
        cooling=timedelta(hours=1),
        intents=["AUDITED"],
    )
    assert (asked.allow_entities, asked.narrowed_to) == ({1, 2}, {2, 9})
    assert infer(asked, TABLE, now=NOW).policy.allow_entities == (2,)
    assert (asked.restricted, asked.watched) == ({3, 5}, {4, 6})
    assert (asked.residency, asked.cooling) == ({PolicyBit.J_EU, PolicyBit.J_UK}, timedelta(hours=2))
    assert (asked.as_of, asked.intents) == (date(2025, 1, 1), ("LATEST", "AUDITED"))
    assert granted.narrow() == granted
    assert granted.narrow(cooling=timedelta(hours=3)).cooling == timedelta(hours=3)


def test_a_request_cannot_change_who_asks() -> None:
    """``narrow()`` takes no role, purpose, subject, instant, deal, crossing or legal basis."""
    assert {*signature(Session.narrow).parameters} == {
        *(
            "self",
            "allow_entities",
            "principals",
            "restricted",
            "watched",
            "residency",
            "cooling",
            "intents",
            "conversation",
        )
    }


def test_a_changed_copy_of_a_session_is_asserted_again() -> None:
    """Only narrowing keeps a session verified."""

    class Trusting:
        def verify(self, token: str) -> dict[str, str]:
            return {"sub": "ana", "role": "buy_side", "purpose": "invest"}

    proved = Session.from_token("t", Trusting())
    assert proved.source is SessionSource.VERIFIED
    assert proved.narrow(restricted={7}).source is SessionSource.VERIFIED
    assert replace(proved, role="counsel").source is SessionSource.ASSERTED


def test_no_list_shows_itself() -> None:
    """A repr in a log file does not reveal a deal."""
    session = Session(
        role="counsel",
        purpose="draft",
        allow_entities={ISSUER},
        restricted={ISSUER},
        watched={ISSUER},
        audit_clients={ISSUER},
        deals=(DealWindow(ISSUER, date(2026, 1, 1), date(2026, 1, 2)),),
        wall_crossings=(WallCrossing(ISSUER, "draft"),),
        legal_basis=LegalBasis(LawfulBasis.LEGITIMATE_INTERESTS, objections={ISSUER}, restrictions={ISSUER}),
    )
    assert str(ISSUER) not in repr(session)
    assert str(ISSUER) not in repr([session.deals, session.wall_crossings])
    decided = infer(
        Session(role="sell_side", purpose="publish", restricted={ISSUER}, deals=session.deals), TABLE, now=NOW
    )
    assert str(ISSUER) not in repr([decided, decided.searches])


@pytest.mark.parametrize(
    "bad",
    [
        {"allow_entities": [0]},
        {"restricted": [-1]},
        {"restricted": "320193"},
        {"watched": [1.5]},
        {"deals": [(1, 2, 3)]},
        {"deals": 7},
        {"wall_crossings": ["x"]},
        {"eu_transfer_basis": 1},
        {"legal_basis": "consent"},
    ],
)
def test_a_malformed_list_is_never_an_empty_one(bad: dict[str, Any]) -> None:
    """The error states what came and what was wanted."""
    with pytest.raises(InvalidArgument, match="want"):
        Session(role="r", purpose="p", **bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DealWindow(ISSUER, date(2026, 1, 2), date(2026, 1, 1)),
        lambda: DealWindow(0, date(2026, 1, 1), date(2026, 1, 1)),
        lambda: DealWindow(ISSUER, datetime(2026, 1, 1), date(2026, 1, 1)),  # noqa: DTZ001
        lambda: DealWindow(ISSUER, "2026-01-01", date(2026, 1, 1)),
        lambda: WallCrossing(ISSUER, ""),
        lambda: LegalBasis("because"),
        lambda: LegalBasis(LawfulBasis.CONSENT),
        lambda: LegalBasis(LawfulBasis.LEGAL_OBLIGATION, frozenset({"invest"})),
        lambda: LegalBasis(LawfulBasis.CONSENT, "invest"),
    ],
)
def test_a_malformed_term_is_refused_when_it_is_made(make: Any) -> None:
    """Not only when it should close something."""
    with pytest.raises(InvalidArgument):
        make()


LISTS: dict[str, list[Any]] = {
    **{name: [1, 2] for name in ("allow_entities", "narrowed_to", "restricted", "watched", "audit_clients")},
    "deals": [DealWindow(1, NOW, NOW)],
    "wall_crossings": [WallCrossing(1, "draft")],
    "residency": ["J_EU"],
    "intents": ["LATEST"],
}


@pytest.mark.parametrize("name", LISTS)
def test_a_session_keeps_its_lists_when_the_originals_change(name: str) -> None:
    """Each is copied and frozen; anything but a list is an InvalidArgument, and no other error."""
    given_list = list(LISTS[name])
    session = Session(role="r", purpose="p", **{name: given_list})
    kept = getattr(session, name)
    given_list.clear()
    assert (len(kept), getattr(session, name)) == (len(LISTS[name]), kept)
    assert isinstance(kept, (tuple, frozenset))
    for bad in (1.5, object(), "x", b"x", [None], [[1]], True):
        with pytest.raises(InvalidArgument):
            Session(role="r", purpose="p", **{name: bad})


@pytest.mark.parametrize("purposes", [None, 5, "surveil", [None], [["a"]]])
def test_purposes_consented_to_are_texts(purposes: Any) -> None:
    """Anything but a set of strings is refused with InvalidArgument, and no other error."""
    with pytest.raises(InvalidArgument, match="want a set of strings"):
        LegalBasis(LawfulBasis.CONSENT, purposes=purposes)


def test_what_a_session_names_is_plain_text() -> None:
    """A subclass of ``str`` could name one role in the decision and another in the record."""

    class Changing(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "compliance"

    session = Session(role=Changing("public"), purpose=Changing("public_qa"), subject=Changing("ana"))
    assert [type(one) for one in (session.role, session.purpose, session.subject)] == [str] * 3
    assert (session.role, session.purpose, session.subject) == ("public", "public_qa", "ana")
