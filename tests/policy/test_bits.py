"""Bits cannot be mistaken: every spelling means the same bits everywhere, and ambiguous ones are refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.index import Index
from carag.policy import (
    CONTROL,
    POLICY_BITS,
    QUARANTINE,
    TOMBSTONE,
    VERSION_WORD,
    Mask,
    Policy,
    PolicyBit,
    PolicyTable,
    Session,
    bits_of,
    infer,
    policy_word,
)

if TYPE_CHECKING:
    from collections.abc import Callable

VOCABULARY = """
J_US J_EU J_UK J_CA J_OTHER FS_AUDITED FS_UNAUDITED FURNISHED OFFERING PROXY_TENDER OWNERSHIP PD_INSIDER PD_COMP
PD_NATURAL PD_SPECIAL PRIV2PUB CONF_TREAT MATERIAL AMENDED SUPERSEDED NON_RELIANCE NOT_LATEST LATE DELISTED EGC SHELL
FPI
"""
NUMBERS = {name: number for number, name in enumerate(VOCABULARY.split())}
"""A second copy of the vocabulary, so that expected words do not depend on the type under test."""
PLACES = [name for name in NUMBERS if name.startswith("J_")]


class Sly(int):
    """An integer that pretends to be another, and to equal any."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1

    def __index__(self) -> int:
        return 0

    def __and__(self, other: int) -> int:
        return 0

    def __or__(self, other: int) -> int:
        return 0


def spellings(names: list[str]) -> dict[str, Any]:
    """Write the same bits in every possible way."""
    vector = sum(1 << NUMBERS[name] for name in names)
    members = [PolicyBit[name] for name in names]
    union = PolicyBit(0)
    for member in members:
        union |= member
    mixed = [name if n % 2 else PolicyBit[name] for n, name in enumerate(names)]
    ways: dict[str, Any] = {
        "vector": vector,
        "NumPy's integer": np.uint32(vector),
        "subclassed integer": Sly(vector),
        "union": union,
        "names": names,
        "names in a tuple": tuple(names),
        "names in a set": set(names),
        "names in turn": lambda: iter(names),
        "names, some twice": names * 2,
        "members in a set": set(members),
        "members in a frozen set": frozenset(members),
        "members as keys": dict.fromkeys(members).keys(),
        "members": members,
        "members in turn": lambda: iter(members),
        "both": mixed,
        "a union in a list": [union, *names],
    }
    if len(names) == 1:
        ways |= {"member": members[0], "name": names[0]}
    return ways


MANY = {"members", "members in turn", "both", "a union in a list"}
"""Spellings that could mean one word or several: :func:`policy_word` refuses them."""


def relabelled(**bits: Any) -> int:
    index = Index(2, M=2)
    index.add([[1, 0]], [policy_word(0b1010101)])
    assert index.relabel_where(Mask(), **bits) == 1
    return int(index.words([0])[0]) & POLICY_BITS


def closed_places(session: Session) -> int:
    return infer(session, TABLE, now=NOW).policy.masks[0].forbidden


TABLE = PolicyTable.from_toml(
    'schema = 1\n[[cell]]\nrole = "r"\npurpose = "p"\nregulation = "x"\nmay_know_existence = false\npast = "none"\n'
    "masks = [{}]\n"
)
NOW = datetime(2026, 11, 23, tzinfo=UTC)
ANYBODY = Session(role="r", purpose="p")

# Each place that takes bits: what it makes of a spelling, and what that should be of a vector.
ANY_BITS: dict[str, tuple[Callable[[Any], int], Callable[[int], int]]] = {
    "bits_of": (bits_of, lambda vector: vector),
    "Mask(required=)": (lambda bits: Mask(required=bits).required, lambda vector: vector),
    "Mask(forbidden=)": (lambda bits: Mask(forbidden=bits).forbidden, lambda vector: vector),
    "policy_word": (policy_word, lambda vector: vector | 1 << 27),
    "relabel_where(set=)": (lambda bits: relabelled(set=bits), lambda vector: 0b1010101 | vector),
    "relabel_where(clear=)": (lambda bits: relabelled(clear=bits), lambda vector: 0b1010101 & ~vector),
}
JURISDICTIONS: dict[str, tuple[Callable[[Any], int], Callable[[int], int]]] = {
    "Session(residency=)": (
        lambda bits: closed_places(Session(role="r", purpose="p", residency=bits)),
        lambda vector: vector,
    ),
    "narrow(residency=)": (
        lambda bits: closed_places(ANYBODY.narrow(residency=bits)),
        lambda vector: vector,
    ),
}
EVERYWHERE = ANY_BITS | JURISDICTIONS


@pytest.mark.parametrize("place", EVERYWHERE)
@given(data=st.data())
def test_every_spelling_means_its_bits_in_every_place(place: str, data: st.DataObject) -> None:
    """The expected value is computed from the numbers of the names alone."""
    known = PLACES if place in JURISDICTIONS else list(NUMBERS)
    names = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True))
    made, expected = EVERYWHERE[place]
    vector = sum(1 << NUMBERS[name] for name in names)
    for way, bits in spellings(names).items():
        written = bits() if callable(bits) else bits
        if place == "policy_word" and way in MANY:
            with pytest.raises(InvalidArgument, match="one word or"):
                made(written)
        else:
            assert expected(vector) == made(written), way


AMBIGUOUS: dict[str, Any] = {
    "a bit's number or a vector": [11],
    "numbers of bits or vectors": {11, 14},
    "a number among names": ["J_US", 3],
    "an array, of words or of bits": np.array([1, 2]),
    "which bits an array tells true of": np.array([True, False]),
    "a mapping, whatever it maps to": {"J_EU": False},
    "true": True,
    "NumPy's true": np.True_,
    "a fraction": 1.0,
    "nothing": None,
    "bytes": b"J_EU",
    "an unknown name": "J_MARS",
    "a name in small letters": "j_eu",
    "two names in one text": "J_EU|J_UK",
    "an unknown name among others": ["J_EU", "J_MARS"],
    "the number of a bit, as text": "11",
    "a list in a list": [["J_EU"]],
    "a negative number": -1,
    "an inverted number": ~PolicyBit.J_EU.value,
    "more than 27 bits": 1 << 27,
    "a word": VERSION_WORD | 1,
    "a bit shifted by a member's value": 1 << PolicyBit.PD_INSIDER.value,
}


@pytest.mark.parametrize("place", EVERYWHERE)
def test_what_could_mean_other_bits_is_refused_in_every_place(place: str) -> None:
    """The error says what is wanted; no reading is chosen, not even that of an equal value accepted just before."""
    EVERYWHERE[place][0](1)
    for what, bits in AMBIGUOUS.items():
        if place == "policy_word" and what == "an array, of words or of bits":
            continue  # there it can only be words
        with pytest.raises(InvalidArgument, match=r"want|could mean one word or"):
            EVERYWHERE[place][0](bits)


def test_an_array_of_vectors_is_as_many_words() -> None:
    """It is the only way to write several words; control bits and fractions are refused."""
    assert policy_word(np.array([0])) == VERSION_WORD
    words = policy_word(np.array([1, 1 << 11, POLICY_BITS]))
    assert words.dtype == np.uint32
    assert words.tolist() == [VERSION_WORD | bits for bits in (1, 1 << 11, POLICY_BITS)]
    for bad in (np.array([1, 1 << 30]), np.array([-1]), np.array([0.5])):
        with pytest.raises(InvalidArgument, match="want"):
            policy_word(bad)


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (lambda: ~PolicyBit.PD_INSIDER, "is ambiguous"),
        (lambda: ~(PolicyBit.J_US | PolicyBit.J_EU), "is ambiguous"),
        (lambda: 1 << PolicyBit.J_US, "is already the bit"),
        (lambda: PolicyBit(1 << 27), "not a union of policy bits"),
        (lambda: PolicyBit(-2), "not a union of policy bits"),
        (lambda: VERSION_WORD | PolicyBit.J_US, r"word \| bit.value"),
    ],
)
def test_a_member_is_its_bit_and_no_number_word_or_complement(mistake: Callable[[], Any], says: str) -> None:
    """Confusing a bit with its number, a word or a complement is an error."""
    with pytest.raises(InvalidArgument, match=says):
        mistake()


def test_a_misspelt_name_is_told_the_nearest_and_all_there_are() -> None:
    """The error lists all names and the nearest one."""
    with pytest.raises(InvalidArgument, match=r"want one of J_US, .*FPI; did you mean 'PD_INSIDER'"):
        Mask(forbidden="PD_INSIDERS")


def test_what_a_mask_keeps_is_a_plain_integer() -> None:
    """A subclass of int, an enumeration member or a NumPy integer could behave differently later."""
    mask = Mask(Sly(5), np.int64(2))
    assert (type(mask.required), type(mask.forbidden)) == (int, int)
    assert (mask.required, mask.forbidden) == (5, 2)
    assert type(Mask(PolicyBit.J_US).required) is int


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        ("Mask() <admits every labelled row>", Mask()),
        ("Mask(forbidden='PD_SPECIAL')", Mask(forbidden="PD_SPECIAL")),
        ("Mask(required=['J_US', 'J_EU'], forbidden='EGC')", Mask(["J_EU", "J_US"], "EGC")),
        ("Mask(forbidden=0x7ffffff)", Mask(forbidden=POLICY_BITS)),
        ("Policy() <admits nothing>", Policy()),
        ("Policy(Mask(required='EGC'), deny_entities=<listed>)", Policy(Mask("EGC"), deny_entities=[320193])),
        (
            "Policy(Mask() <admits every labelled row>, allow_entities=<listed>)",
            Policy(Mask(), allow_entities=[7]),
        ),
    ],
)
def test_a_repr_says_what_is_admitted_and_never_who_is_listed(shown: str, value: Mask | Policy) -> None:
    """Few bits are shown by name; the shortest expression, which admits most, says so."""
    assert shown == repr(value)


def test_no_subclass_is_taken_for_what_it_pretends_to_be() -> None:
    """A subclass that answers differently each time could be decided by one answer and recorded by another."""
    sub_mask, sub_policy, sub_session = (
        type("Sub", (one,), {"__slots__": ()}) for one in (Mask, Policy, Session)
    )
    index = Index(2)
    with pytest.raises(InvalidArgument, match="Mask objects"):
        Policy(sub_mask(1))
    for policy in (sub_mask(1), sub_policy(Mask())):
        for asks in (
            index.count,
            lambda one: index.search([1, 0], 1, one),
            lambda one: index.relabel_where(one, set=1),
        ):
            with pytest.raises(InvalidArgument, match=r"want a carag\.Policy or carag.Mask"):
                asks(policy)
    with pytest.raises(InvalidArgument, match=r"want a carag\.Session"):
        infer(sub_session(role="r", purpose="p"), TABLE, now=NOW)


def test_each_control_bit_has_one_place() -> None:
    """Above 27 policy bits: three of the version, the lowest of which is set, then quarantine and deletion."""
    version = 0b111 << 27
    assert (1 << 27, 1 << 30, 1 << 31) == (VERSION_WORD, QUARANTINE, TOMBSTONE)
    assert CONTROL == version | QUARANTINE | TOMBSTONE
    assert 0xFFFF_FFFF == CONTROL ^ POLICY_BITS
