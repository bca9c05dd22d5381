"""Masks and words: one AND and one compare say exactly what the two-test form says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
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
        Mask(PolicyBit.OFFERING.flag, PolicyBit.OFFERING.flag | 1)


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


def test_numpy_integers_serve_as_bits() -> None:
    """Words come out of arrays, so their scalars must be welcome."""
    assert Mask(np.uint32(1), np.int64(2)) == Mask(1, 2)


def test_every_bit_has_a_meaning() -> None:
    """27 bits, each with the kind of document and the rules it serves."""
    assert list(range(27)) == [bit.value for bit in PolicyBit]
    assert all(meaning(bit).document and meaning(bit).regulation for bit in PolicyBit)
