"""Masks and words: one AND and one compare say exactly what the two-test form says."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carag.errors import InvalidArgument, PolicyConflict
from carag.policy import (
    CONTROL,
    POLICY_BITS,
    QUARANTINE,
    TOMBSTONE,
    VERSION_WORD,
    Mask,
    Policy,
    PolicyBit,
    bit_names,
    bits_of,
    meaning,
    policy_word,
)
from carag.policy.word import flags_named

vectors = st.integers(0, POLICY_BITS)


@st.composite
def masks(draw: st.DrawFn) -> Mask:
    required = draw(vectors)
    return Mask(required, draw(vectors) & ~required)


@given(masks(), vectors)
def test_one_compare_equals_the_two_test_form(mask: Mask, bits: int) -> None:
    """(word & mask) == value is: every required bit set and no forbidden bit set."""
    expected = bits & mask.required == mask.required and bits & mask.forbidden == 0
    assert expected == mask.admits(policy_word(bits))


@given(masks(), vectors, st.integers(0, 31))
def test_any_foreign_control_field_closes_a_word(mask: Mask, bits: int, control: int) -> None:
    """Only version 1, not quarantined, not deleted is ever admitted."""
    word = bits | control << 27
    if word & CONTROL != VERSION_WORD:
        assert not mask.admits(word)


@given(st.lists(masks(), max_size=8), vectors)
def test_a_policy_is_the_or_of_its_masks(parts: list[Mask], bits: int) -> None:
    """No mask admits nothing; several admit what any of them admits."""
    word = policy_word(bits)
    assert any(mask.admits(word) for mask in parts) == Policy(*parts).admits(word)


@given(vectors)
def test_names_and_bits_round_trip(bits: int) -> None:
    """bits_of(bit_names(word)) is the policy vector."""
    assert bits == bits_of(bit_names(policy_word(bits)))


def test_every_five_bit_universe_is_exhaustively_right() -> None:
    """All 32 words against all conflict-free pairs over five bits."""
    for required in range(32):
        for forbidden in range(32):
            if required & forbidden:
                continue
            mask = Mask(required, forbidden)
            for bits in range(32):
                expected = bits & required == required and not bits & forbidden
                assert expected == mask.admits(policy_word(bits))


def test_unlabelled_quarantined_and_deleted_words_stay_closed() -> None:
    """Mask(0, 0) admits every labelled, live word and nothing else."""
    everything = Mask()
    assert everything.admits(VERSION_WORD)
    for closed in (0, 1, VERSION_WORD | QUARANTINE, VERSION_WORD | TOMBSTONE, 2 << 27):
        assert not everything.admits(closed)


def test_a_bit_required_and_forbidden_is_a_conflict_that_names_it() -> None:
    """The message says which bit."""
    with pytest.raises(PolicyConflict, match="OFFERING"):
        Mask(PolicyBit.OFFERING, PolicyBit.OFFERING | 1)


@pytest.mark.parametrize("bad", [-1, 1 << 27, VERSION_WORD, 1.0, "1", None, True])
def test_masks_refuse_what_is_no_policy_vector(bad: object) -> None:
    """Control bits, floats, booleans and text are no policy."""
    with pytest.raises(InvalidArgument, match="want"):
        Mask(required=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1, 1 << 27, VERSION_WORD | 1, 1.5, np.array([1, 1 << 30]), np.array([0.5])])
def test_policy_word_refuses_control_bits_and_non_integers(bad: object) -> None:
    """The version is added, never passed through."""
    with pytest.raises(InvalidArgument, match="want"):
        policy_word(bad)  # type: ignore[call-overload]


def test_policy_word_takes_arrays() -> None:
    """A vector of bits becomes a vector of words."""
    words = policy_word(np.array([0, POLICY_BITS]))
    assert np.uint32 == words.dtype
    assert words.tolist() == [VERSION_WORD, VERSION_WORD | POLICY_BITS]


def test_a_policy_holds_eight_masks_and_no_ninth() -> None:
    """The native test takes up to eight pairs."""
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
    """Any mask, and among the allowed where there is a list of them, and not among the denied."""
    policy = Policy(*parts, allow_entities=allowed, deny_entities=denied)
    is_fitting = (allowed is None or entity in allowed) and entity not in denied
    word = policy_word(bits)
    assert (Policy(*parts).admits(word) and is_fitting) == policy.admits(word, entity)


@given(st.none() | entities, entities, entities, st.booleans())
def test_a_passage_about_several_is_read_as_its_list_says(
    allowed: set[int] | None, denied: set[int], about: set[int], any_is_enough: bool
) -> None:
    """None may be denied; of an allow list all must be on it, or any where that is enough."""
    policy = Policy(Mask(), allow_entities=allowed, deny_entities=denied, allow_if_any=any_is_enough)
    whom = about or {0}
    fits = allowed is None or (whom & allowed if any_is_enough else whom <= allowed)
    assert policy.admits_entity(tuple(about)) == (bool(fits) and not whom & denied)
    assert policy.with_masks(Mask(1, 2)).admits_entity(about) == policy.admits_entity(about)
    assert all(policy.admits_entity(one) == policy.admits_entity((one,)) for one in whom)


@given(st.none() | entities, entities, entities, st.booleans(), st.sampled_from([0, 1, 7, 320193]))
def test_denying_more_never_admits_more(
    allowed: set[int] | None, denied: set[int], about: set[int], any_is_enough: bool, more: int
) -> None:
    """Whoever is added to a deny list takes passages away, and brings none."""
    wide, narrow = (
        Policy(Mask(), allow_entities=allowed, deny_entities=names, allow_if_any=any_is_enough)
        for names in (denied, denied | {more})
    )
    assert wide.admits_entity(about) or not narrow.admits_entity(about)
    assert more not in (about or {0}) or not narrow.admits_entity(about)


def test_which_reading_of_an_allow_list_holds_is_part_of_a_policy() -> None:
    """They admit different passages, so no cache may take one for the other; without a list there is no reading."""
    of_all, of_any = (Policy(Mask(), allow_entities=[7], allow_if_any=one) for one in (False, True))
    assert of_all != of_any
    assert pickle.loads(pickle.dumps(of_any)) == of_any  # noqa: S301 - our own bytes
    assert Policy(Mask(), allow_if_any=True) == Policy(Mask())


@given(entities, entities)
def test_what_is_denied_is_taken_out_of_what_is_allowed(allowed: set[int], denied: set[int]) -> None:
    """Policies that admit the same entities are the same policy, however they were written."""
    both = Policy(Mask(), allow_entities=allowed, deny_entities=denied)
    folded = Policy(Mask(), allow_entities=sorted(allowed - denied, reverse=True))
    assert (folded, hash(folded), ()) == (both, hash(both), both.deny_entities)
    assert tuple(sorted(allowed - denied)) == both.allow_entities


def test_allowing_nobody_is_not_allowing_anybody() -> None:
    """An empty allow list admits nothing; none at all admits everything; they are different policies."""
    nobody, anybody = Policy(Mask(), allow_entities=()), Policy(Mask())
    assert nobody != anybody
    assert not nobody.admits(VERSION_WORD)
    assert not nobody.admits(VERSION_WORD, 7)
    assert anybody.admits(VERSION_WORD)
    assert anybody.admits(VERSION_WORD, 7)


def test_rows_about_nobody_carry_the_number_zero() -> None:
    """They pass any deny list that does not name 0, and only an allow list that does."""
    assert Policy(Mask(), deny_entities=[7]).admits(VERSION_WORD)
    assert not Policy(Mask(), allow_entities=[7]).admits(VERSION_WORD)
    assert Policy(Mask(), allow_entities=[0, 7]).admits(VERSION_WORD)
    assert not Policy(Mask(), deny_entities=[0]).admits(VERSION_WORD)


@pytest.mark.parametrize(
    "bad", [5, "320193", b"7", None, [-1], [10**10], [1.0], ["7"], [None], [True], [[1]], np.array([[1, 2]])]
)
def test_entities_are_numbers_of_ten_digits(bad: object) -> None:
    """A name, a fraction, a single number or a table is no set of entities."""
    for name in ("allow_entities", "deny_entities"):
        if bad is None and name == "allow_entities":
            continue
        with pytest.raises(InvalidArgument, match=f"{name} .*want integers"):
            Policy(Mask(), **{name: bad})  # type: ignore[arg-type]


def test_entities_come_from_anything_that_can_be_walked_through() -> None:
    """Arrays, ranges, sets and generators give the same policy, which is a frozen value."""
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


def test_numpy_integers_serve_as_bits() -> None:
    """Words come out of arrays, so their scalars must be welcome."""
    assert Mask(np.uint32(1), np.int64(2)) == Mask(1, 2)


def test_every_bit_has_a_meaning() -> None:
    """27 bits, each with the kind of document and the rules it serves."""
    assert [(n, 1 << n) for n in range(27)] == [(bit.number, bit.value) for bit in PolicyBit]
    assert all(meaning(bit).document and meaning(bit).regulation for bit in PolicyBit)


@given(
    st.lists(st.integers(1, 9), max_size=4),
    st.none() | st.lists(st.integers(1, 9), max_size=4),
    st.integers(0, 2**27 - 1),
)
def test_other_masks_keep_the_rule_about_entities(denied, allowed, forbidden):
    """Equal to a policy made whole, in value and in hash."""
    made = Policy(Mask(0, forbidden), allow_entities=allowed, deny_entities=denied)
    changed = Policy(Mask(1, 2), allow_entities=allowed, deny_entities=denied).with_masks(Mask(0, forbidden))
    assert made == changed
    assert hash(made) == hash(changed)
    assert [made.admits_entity(one) for one in range(11)] == [changed.admits_entity(one) for one in range(11)]


def test_a_list_holds_every_number_that_a_filer_can_have() -> None:
    """Ten digits, and not one more."""
    largest = 9_999_999_999
    assert Policy(Mask(), deny_entities=[0, largest]).deny_entities == (0, largest)
    for beyond in (-1, largest + 1):
        with pytest.raises(InvalidArgument, match="want integers from 0 to 9999999999"):
            Policy(Mask(), deny_entities=[beyond])


def test_a_pair_is_what_is_required_and_what_is_forbidden():
    """In this order, as a record has them."""
    assert ((1, 2), (4, 0)) == Policy(Mask(1, 2), Mask(4)).pairs


class Number(int):
    """An integer that takes itself for any other."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


OTHER = flags_named("office", ["INTERNAL", "SECRET"])


@pytest.mark.parametrize("bad", [True, np.True_, 1.0, "1", None, b"\1", {1: 1}, [1], OTHER.INTERNAL])
def test_what_was_right_of_one_type_is_refused_of_another(bad: object) -> None:
    """Equal to bits that were taken a moment ago is not enough."""
    assert Mask(1, 2) == Mask(PolicyBit.J_US, PolicyBit.J_EU) == Mask("J_US", ["J_EU"])
    for sides in ((bad, 2), (2, bad)):
        with pytest.raises(InvalidArgument, match="want"):
            Mask(*sides, flags=PolicyBit)  # type: ignore[arg-type]


def test_bits_are_the_numbers_that_they_are() -> None:
    """Those of a subclass, too, whatever it says of itself; kept as plain integers."""
    for number in (1, 2, 3):
        mask = Mask(Number(number), PolicyBit.OFFERING)
        assert number == mask.required
        assert {int} == {type(mask.required), type(mask.forbidden), type(bits_of("J_US"))}


def test_a_mask_is_of_the_profile_of_its_members() -> None:
    """The number that a member shares with one of another profile does not decide."""
    for bit, flags in ((PolicyBit.J_US, PolicyBit), (OTHER.INTERNAL, OTHER)) * 2:
        for several in (bit, [bit], (bit,), {bit}, frozenset([bit]), [bit, bit]):
            assert flags is Mask(several).flags is Mask(0, several).flags
            assert Mask(1) == Mask(several)
    with pytest.raises(InvalidArgument, match="another profile"):
        Mask(PolicyBit.J_US, OTHER.SECRET)


@given(st.lists(masks(), max_size=3), st.none() | entities, entities, st.booleans())
@example([Mask(1, 2)], None, set(), False)
@example([Mask(1), Mask(2)], None, set(), False)
@example([], {1, 2}, set(), False)
def test_policies_are_the_same_only_if_every_part_is(
    parts: list[Mask], allowed: set[int] | None, denied: set[int], any_is_enough: bool
) -> None:
    """A cache that knows them by value takes none for another."""

    def made(parts: list[Mask], allowed: set[int] | None, denied: set[int], any_is_enough: bool) -> Policy:
        return Policy(*parts, allow_entities=allowed, deny_entities=denied, allow_if_any=any_is_enough)

    policy = made(parts, allowed, denied, any_is_enough)
    again = made(list(parts), allowed, set(denied), any_is_enough)
    assert (policy, hash(policy)) == (again, hash(again))
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
