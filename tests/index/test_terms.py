"""When a row is public, about which entity and for which audience: counted and searched by the policy."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.index import Index, Plan
from carag.policy import NEVER, QUARANTINE, Mask, Policy, policy_word
from carag.policy.mask import ANY_AUDIENCE

# Rows without a label are among those drawn.
pytestmark = pytest.mark.filterwarnings("ignore::carag.errors.UnlabelledWarning")

TIMES = (0, 10, 20, NEVER - 1, NEVER)
OPEN = policy_word(0)

rows = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 7).map(policy_word), st.sampled_from([3, OPEN | QUARANTINE])),
        st.sampled_from(TIMES),
        st.sampled_from(TIMES),
        st.integers(0, 5),
        st.sampled_from([0, 1, 2, 63, 64, 65, 1_000, 2**32 - 1]),
    ),
    max_size=40,
)
masks = st.builds(lambda r, f: Mask(r, f & ~r), st.integers(0, 7), st.integers(0, 7))
listed = st.sets(st.sampled_from([0, 1, 2, 3, 4, 5, 99, 2**32 - 1]))
shared = st.sets(st.sampled_from([0, 1, 2, 63, 64, 66, 1_000, 50_000])) | st.just(ANY_AUDIENCE)
policies = st.builds(
    lambda some, allow, deny, audiences: Policy(
        *some, allow_entities=allow, deny_entities=deny, audiences=audiences
    ),
    st.lists(masks, max_size=3),
    st.none() | listed,
    listed,
    shared,
)


def admits(policy, word, entity, audience):
    """Whether a policy admits a row, by its lists as plain sets."""
    is_shared = policy.any_audience or audience in {0, *policy.audiences}
    return is_shared and policy.admits_entity(entity) and any(mask.admits(word) for mask in policy.masks)


def filled(drawn):
    index = Index(3, M=3, ef_construction=5)
    columns = list(zip(*drawn, strict=True)) or [()] * 5
    index.add(
        np.random.default_rng(len(drawn)).standard_normal((len(drawn), 3)),
        columns[0],
        public_at=columns[1],
        expires_at=columns[2],
        entities=columns[3],
        audiences=columns[4],
        allow_quarantine=True,
    )
    return index


instants = st.sampled_from([0, 9, 10, 15, 20, NEVER - 2, NEVER - 1])


@given(rows, policies, instants, st.none() | instants, st.sampled_from(Plan))
def test_what_is_counted_and_found_is_what_the_policy_admits(drawn, policy, as_of, later, plan):
    """By word, window, entity and audience of each row: the count is exact and the answer is those rows."""
    index = filled(drawn)
    alive_at = None if later is None else max(as_of, later)
    admitted = {
        key
        for key, (word, public_at, expires_at, entity, audience) in enumerate(drawn)
        if admits(policy, word, entity, audience) and public_at <= as_of and (alive_at or as_of) < expires_at
    }
    found = index.search([1, 1, 1], len(drawn) + 1, policy, plan=plan, as_of=as_of, alive_at=alive_at)
    assert len(admitted) == index.count(policy, as_of=as_of, alive_at=alive_at) == found.stats.admissible
    assert admitted == set(found.keys[0][: found.counts[0]].tolist())
    assert len(admitted) == index.relabel_where(policy, set=8, as_of=as_of, alive_at=alive_at)
    assert admitted == {key for key in range(len(drawn)) if index.words([key])[0] & 8}


@given(rows)
def test_terms_are_kept(drawn):
    """The terms of a row can be read."""
    index = filled(drawn)
    columns = index.words, index.public_at, index.expires_at, index.entities, index.audiences
    for position, column in enumerate(columns):
        assert [row[position] for row in drawn] == column(np.arange(len(drawn))).tolist()


def test_by_default_a_row_is_always_public_about_no_entity_and_for_everybody():
    """Rows without terms are open at every instant; without an entity they pass any deny list and no allow list."""
    index = Index(2)
    index.add(np.eye(2), [OPEN] * 2)
    assert ([0, 0], [NEVER] * 2, [0, 0], [0, 0]) == (
        index.public_at([0, 1]).tolist(),
        index.expires_at([0, 1]).tolist(),
        index.entities([0, 1]).tolist(),
        index.audiences([0, 1]).tolist(),
    )
    assert 2 == index.count(Mask()) == index.count(Mask(), as_of=NEVER - 1)
    assert 2 == index.count(Policy(Mask(), deny_entities=range(1, 1_001)))
    assert 0 == index.count(Policy(Mask(), allow_entities=range(1, 1_001)))
    assert 0 == index.count(Policy(Mask(), allow_entities=()))


def test_one_value_serves_all_rows():
    """A scalar term goes to every row of the batch."""
    index = Index(2)
    index.add(np.eye(2), [OPEN] * 2, public_at=5, expires_at=9, entities=320193)
    assert [0, 2, 2, 0] == [index.count(Mask(), as_of=minute) for minute in (4, 5, 8, 9)]
    assert 2 == index.count(Policy(Mask(), allow_entities=[320193]), as_of=5)


def test_relabelling_leaves_the_terms():
    """A new word changes the word and nothing else."""
    index = Index(2)
    index.add(np.eye(2), [OPEN] * 2, public_at=5, expires_at=9, entities=7, audiences=3)
    index.relabel([0], [policy_word(1)])
    assert 0 == index.relabel_where(Mask(), set=4, as_of=6)
    index.relabel_where(Policy(Mask(), audiences=[3]), set=2, as_of=6)
    assert [policy_word(3), policy_word(2)] == index.words([0, 1]).tolist()
    assert ([5, 5], [9, 9], [7, 7], [3, 3]) == (
        index.public_at([0, 1]).tolist(),
        index.expires_at([0, 1]).tolist(),
        index.entities([0, 1]).tolist(),
        index.audiences([0, 1]).tolist(),
    )


def test_long_lists_of_entities():
    """A list of ten thousand is as exact as one of two."""
    entities = np.random.default_rng(0).integers(0, 20_000, 3_000)
    index = Index(2, M=2, ef_construction=1)
    index.add(np.random.default_rng(1).standard_normal((3_000, 2)), [OPEN] * 3_000, entities=entities)
    odd = range(1, 20_000, 2)
    assert (entities % 2 == 1).sum() == index.count(Policy(Mask(), allow_entities=odd))
    assert (entities % 2 == 0).sum() == index.count(Policy(Mask(), deny_entities=odd))


def test_long_lists_of_audiences():
    """A list of ten thousand is as exact as one of two, and is the same list however it is given."""
    audiences = np.random.default_rng(0).integers(0, 20_000, 3_000)
    index = Index(2, M=2, ef_construction=1)
    index.add(np.random.default_rng(1).standard_normal((3_000, 2)), [OPEN] * 3_000, audiences=audiences)
    odd = Policy(Mask(), audiences=range(1, 20_000, 2))
    assert (audiences % 2 == 1).sum() + (audiences == 0).sum() == index.count(odd)
    assert odd == Policy(Mask(), audiences=[*range(19_999, 0, -2), 0, 7]) != Policy(Mask())
    assert 3_000 == index.count(Policy(Mask(), audiences=ANY_AUDIENCE))
    with pytest.raises(InvalidArgument, match="audience 67108864"):
        index.count(Policy(Mask(), audiences=[1, 1 << 26]))


@pytest.mark.parametrize("plan", Plan)
def test_a_policy_may_be_asked_again_under_another_instant(plan):
    """The cache of compiled policies distinguishes instants."""
    index = Index(2)
    index.add(np.eye(2), [OPEN] * 2, public_at=[0, 100])
    policy = Policy(Mask(), deny_entities=[1])
    for as_of, wanted in ((0, 1), (100, 2), (0, 1), (99, 1), (100, 2)):
        assert [wanted] == index.search([1, 1], 2, policy, plan=plan, as_of=as_of).counts.tolist()


def test_what_was_public_then_and_has_not_expired_now():
    """Both instants are exact to the minute, in every form of an instant."""
    index = Index(2)
    index.add(np.eye(2), [OPEN] * 2, public_at=[5, 6], expires_at=[9, 9])
    assert [1, 1, 0] == [index.count(Mask(), as_of=5, alive_at=minute) for minute in (5, 8, 9)]
    assert [2, 0] == [index.count(Mask(), as_of=6, alive_at=minute) for minute in (8, 9)]
    moment = datetime(1970, 1, 1, 0, 8, tzinfo=UTC)
    assert 2 == index.count(Mask(), as_of=moment - timedelta(minutes=1), alive_at=moment)
    assert 0 == index.count(Mask(), as_of=moment, alive_at=date(1970, 1, 1))


@pytest.mark.parametrize(
    ("alive_at", "message"),
    [
        (8, r"alive_at \(minute 8\) is before as_of \(minute 9\)"),
        (None, ""),
        (NEVER, "alive_at is"),
        ("now", "alive_at is"),
        (True, "alive_at is"),
        (datetime(2024, 1, 1), "alive_at 2024.*no time zone"),  # noqa: DTZ001
    ],
)
def test_alive_at_is_an_instant_not_before_as_of(alive_at, message):
    """Otherwise rows that had already expired would be asked for."""
    index = Index(2)
    index.add(np.eye(2), [OPEN] * 2)
    calls = [
        lambda: index.count(Mask(), as_of=9, alive_at=alive_at),
        lambda: len(index.search([1, 0], 2, Mask(), as_of=9, alive_at=alive_at)),
        lambda: index.relabel_where(Mask(), set=1, as_of=9, alive_at=alive_at),
    ]
    for call in calls:
        if message:
            with pytest.raises(InvalidArgument, match=message):
                call()
        else:
            assert call() > 0
    assert (alive_at is None) == (index.words([0])[0] == policy_word(1))


@pytest.mark.parametrize("rule", ["allow_entities", "deny_entities"])
def test_a_list_of_numbers_that_no_row_can_have_is_refused(rule: str) -> None:
    """A CIK has ten digits, a row's entity 32 bits."""
    index = Index(2)
    index.add([[1, 0]], policy_word(1), entities=7)
    with pytest.raises(InvalidArgument, match="4294967296"):
        index.count(Policy(Mask(), **{rule: [7, 2**32]}))  # type: ignore[arg-type]
    assert index.count(Policy(Mask(), **{rule: [2**32 - 1]})) == (rule == "deny_entities")  # type: ignore[arg-type]
