"""One AND and one compare decide exactly what the two-test form decides."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carag.errors import InvalidArgument, PolicyConflict
from carag.policy import (
    CONTROL,
    POLICY_BITS,
    VERSION_WORD,
    Mask,
    Policy,
    PolicyBit,
    bit_names,
    bits_of,
    policy_word,
)
from carag.policy.mask import check_policy
from carag.policy.word import flags_named

vectors = st.integers(0, POLICY_BITS)


@st.composite
def masks(draw: st.DrawFn) -> Mask:
    required = draw(vectors)
    return Mask(required, draw(vectors) & ~required)


@given(masks(), vectors)
def test_one_compare_equals_the_two_test_form(mask: Mask, bits: int) -> None:
    """(word & mask) == value means that every required bit is set and no forbidden bit is."""
    expected = bits & mask.required == mask.required and bits & mask.forbidden == 0
    assert expected == mask.admits(policy_word(bits))


def test_every_five_bit_universe_is_exhaustively_right() -> None:
    """All 32 words against all conflict-free pairs over five bits."""
    for required, forbidden in itertools.product(range(32), repeat=2):
        if not required & forbidden:
            mask = Mask(required, forbidden)
            admitted = [bits for bits in range(32) if mask.admits(policy_word(bits))]
            assert admitted == [bits for bits in range(32) if bits & (required | forbidden) == required]


@given(masks(), vectors)
def test_any_foreign_control_field_closes_a_word(mask: Mask, bits: int) -> None:
    """Only version 1, not quarantined and not deleted, is ever admitted."""
    words = [bits | control << 27 for control in range(32)]
    assert not any(mask.admits(word) for word in words if word & CONTROL != VERSION_WORD)
    assert Mask().admits(bits | VERSION_WORD)


@given(st.lists(masks(), max_size=8), vectors)
def test_a_policy_is_the_or_of_its_masks(parts: list[Mask], bits: int) -> None:
    """Without masks it admits nothing."""
    word = policy_word(bits)
    assert any(mask.admits(word) for mask in parts) == Policy(*parts).admits(word)


@given(vectors)
def test_names_and_bits_round_trip(bits: int) -> None:
    """bits_of(bit_names(word)) is the policy vector."""
    assert bits == bits_of(bit_names(policy_word(bits)))


def test_a_bit_required_and_forbidden_is_a_conflict_that_names_it() -> None:
    """The message says which bit."""
    with pytest.raises(PolicyConflict, match="OFFERING"):
        Mask(PolicyBit.OFFERING, PolicyBit.OFFERING | 1)


def test_a_policy_holds_eight_masks_and_no_ninth() -> None:
    """The native core takes up to eight pairs."""
    assert len(Policy(*[Mask(forbidden=1 << i) for i in range(8)]).masks) == 8
    with pytest.raises(InvalidArgument, match="at most 8"):
        Policy(*[Mask()] * 9)
    with pytest.raises(InvalidArgument, match="Mask objects"):
        Policy((0, 1))  # type: ignore[arg-type]


entities = st.sets(st.sampled_from([0, 1, 7, 320193, 2**32 - 1]))


@given(
    st.lists(masks(), max_size=2),
    vectors,
    st.none() | entities,
    entities,
    st.sampled_from([0, 1, 7, 2**32 - 1]),
)
def test_entities_narrow_what_the_masks_admit(
    parts: list[Mask], bits: int, allowed: set[int] | None, denied: set[int], entity: int
) -> None:
    """An entity must be on the allow list, if there is one, and not on the deny list."""
    policy = Policy(*parts, allow_entities=allowed, deny_entities=denied)
    is_fitting = (allowed is None or entity in allowed) and entity not in denied
    word = policy_word(bits)
    assert (Policy(*parts).admits(word) and is_fitting) == policy.admits(word, entity)


@given(st.none() | entities, entities, entities, st.booleans())
def test_a_passage_about_several_is_read_as_its_list_says(
    allowed: set[int] | None, denied: set[int], about: set[int], any_is_enough: bool
) -> None:
    """None may be denied; all must be on an allow list, or any if one is enough."""
    policy = Policy(Mask(), allow_entities=allowed, deny_entities=denied, allow_if_any=any_is_enough)
    whom = about or {0}
    fits = allowed is None or (whom & allowed if any_is_enough else whom <= allowed)
    assert policy.admits_entity(tuple(about)) == (bool(fits) and not whom & denied)
    assert policy.with_masks(Mask(1, 2)).admits_entity(about) == policy.admits_entity(about)
    assert all(policy.admits_entity(one) == policy.admits_entity((one,)) for one in whom)


@given(entities, entities)
def test_what_is_denied_is_taken_out_of_what_is_allowed(allowed: set[int], denied: set[int]) -> None:
    """Policies that admit the same entities are the same policy, however they were written."""
    both = Policy(Mask(), allow_entities=allowed, deny_entities=denied)
    folded = Policy(Mask(), allow_entities=sorted(allowed - denied, reverse=True))
    assert (folded, hash(folded), ()) == (both, hash(both), both.deny_entities)
    assert tuple(sorted(allowed - denied)) == both.allow_entities


@pytest.mark.parametrize(
    "bad", [5, "320193", b"7", None, [-1], [10**10], [1.0], ["7"], [None], [True], [[1]], np.array([[1, 2]])]
)
def test_entities_are_numbers_of_ten_digits(bad: object) -> None:
    """A name, a fraction, a single number or a table is not a set of entities."""
    assert Policy(Mask(), deny_entities=[0, 9_999_999_999]).deny_entities == (0, 9_999_999_999)
    for name in ("allow_entities", "deny_entities"):
        if bad is None and name == "allow_entities":
            continue
        with pytest.raises(InvalidArgument, match=f"{name} .*want integers"):
            Policy(Mask(), **{name: bad})  # type: ignore[arg-type]


def test_entities_come_from_anything_that_can_be_walked_through() -> None:
    """Arrays, ranges, sets and generators give the same policy, which is frozen."""
    wanted = Policy(Mask(), deny_entities=(1, 2, 3))
    for numbers in (
        np.array([3, 1, 2, 2]),
        range(1, 4),
        {3, 2, 1},
        (n for n in (1, 2, 3)),
        [np.uint32(2), 1, 3],
    ):
        assert wanted == Policy(Mask(), deny_entities=numbers)
    assert wanted == pickle.loads(pickle.dumps(wanted)) == copy.deepcopy(wanted)  # noqa: S301 - our own bytes
    assert hash(wanted) == hash(pickle.loads(pickle.dumps(wanted)))  # noqa: S301
    with pytest.raises(AttributeError):
        wanted.deny_entities = ()  # type: ignore[misc]


@given(
    st.lists(st.integers(1, 9), max_size=4),
    st.none() | st.lists(st.integers(1, 9), max_size=4),
    st.integers(0, 2**27 - 1),
)
def test_other_masks_keep_the_rule_about_entities(denied, allowed, forbidden):
    """The result equals a policy made directly, in value and in hash."""
    made = Policy(Mask(0, forbidden), allow_entities=allowed, deny_entities=denied)
    changed = Policy(Mask(1, 2), allow_entities=allowed, deny_entities=denied).with_masks(Mask(0, forbidden))
    assert made == changed
    assert hash(made) == hash(changed)
    assert [made.admits_entity(one) for one in range(11)] == [changed.admits_entity(one) for one in range(11)]


def test_a_pair_is_what_is_required_and_what_is_forbidden():
    """In this order, as in records."""
    assert ((1, 2), (4, 0)) == Policy(Mask(1, 2), Mask(4)).pairs


OTHER = flags_named("office", ["INTERNAL", "SECRET"])


def test_a_mask_is_of_the_profile_of_its_members() -> None:
    """Members of two profiles with the same number are not confused."""
    for bit, flags in ((PolicyBit.J_US, PolicyBit), (OTHER.INTERNAL, OTHER)) * 2:
        for several in (bit, [bit], (bit,), {bit}, frozenset([bit]), [bit, bit]):
            assert flags is Mask(several).flags is Mask(0, several).flags
            assert Mask(1) == Mask(several)
    for other in (lambda: Mask(PolicyBit.J_US, OTHER.SECRET), lambda: Mask(OTHER.INTERNAL, flags=PolicyBit)):
        with pytest.raises(InvalidArgument, match="another profile"):
            other()


@given(st.lists(masks(), max_size=3), st.none() | entities, entities, st.booleans())
@example([Mask(1, 2)], None, set(), False)
@example([Mask(1), Mask(2)], None, set(), False)
@example([], {1, 2}, set(), False)
def test_policies_are_the_same_only_if_every_part_is(
    parts: list[Mask], allowed: set[int] | None, denied: set[int], any_is_enough: bool
) -> None:
    """A cache keyed by value never confuses two policies."""

    def made(parts: list[Mask], allowed: set[int] | None, denied: set[int], any_is_enough: bool) -> Policy:
        return Policy(*parts, allow_entities=allowed, deny_entities=denied, allow_if_any=any_is_enough)

    policy = made(parts, allowed, denied, any_is_enough)
    again = made(list(parts), allowed, set(denied), any_is_enough)
    assert (policy, hash(policy)) == (again, hash(again))
    assert policy == pickle.loads(pickle.dumps(policy))  # noqa: S301 - our own bytes
    # Without an allow list there is nothing of which any or all could be on it.
    assert made(parts, None, denied, True) == made(parts, None, denied, False)
    swapped = [Mask(mask.forbidden, mask.required) for mask in parts]
    others = [
        made([*parts, Mask(4, 8)], allowed, denied, any_is_enough),
        made(parts[1:], allowed, denied, any_is_enough),
        made(swapped, allowed, denied, any_is_enough),
        made(parts, denied, allowed or set(), any_is_enough),
        made(parts, None, denied, any_is_enough),
        made(parts, allowed, denied | {5}, any_is_enough),
        made(parts, allowed, denied, not any_is_enough),
    ]

    def said(one: Policy) -> tuple[object, ...]:
        return one.pairs, one.allow_entities, one.deny_entities, one.allow_if_any

    for other in others:
        assert (said(policy) == said(other)) is (policy == other)


def test_a_policy_is_a_policy_or_a_mask_and_not_a_subclass_of_either() -> None:
    """It could admit more."""
    check_policy(Policy())
    check_policy(Mask())
    for bad in (None, Policy, type("Wider", (), {"masks": ()})()):
        with pytest.raises(InvalidArgument, match="nothing is searched without one"):
            check_policy(bad)
