"""Read policy bits in every form that a caller may write, and refuse ambiguous ones.

A number alone is always a vector; a name or a member of a flag type is always that bit. A list of numbers, which could
be vectors, bits or words, is refused, and so is a bit of another profile.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Set
from operator import index
from typing import TYPE_CHECKING, TypeAlias, TypeGuard, overload

import numpy as np

from carag.errors import InvalidArgument
from carag.limits import quoted, shown
from carag.policy.word import POLICY_BITS, VERSION_WORD, PolicyBit, PolicyFlag, same_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray


Bits: TypeAlias = "PolicyFlag | str | int | Iterable[PolicyFlag | str]"
"""A member or a union of members; a name; a 27-bit vector; or several members and names."""


def bits_of(bits: Bits, *, name: str = "bits", flags: type[PolicyFlag] = PolicyBit) -> int:
    """Read policy bits, in any accepted form, as a 27-bit vector.

    Bits may be ``PolicyBit.PD_COMP | PolicyBit.PD_NATURAL``, ``"PD_COMP"``, ``["PD_COMP", PolicyBit.PD_NATURAL]``, or a
    plain integer, which is the vector itself; ``flags`` is the profile of the names, EDGAR's by default. Raises
    InvalidArgument on an unknown name, a bit of another profile, a boolean or a fraction, and on plain integers in a
    list, which could be numbers of bits or vectors.

    Examples
    --------
    >>> hex(bits_of(["PD_SPECIAL", PolicyBit.OFFERING]))
    '0x4100'
    """
    if isinstance(bits, str):
        return _named(bits, name, flags)
    if isinstance(bits, PolicyFlag):
        return _member(bits, name, flags)
    if type(bits) is not int and _is_several(bits):
        found = 0
        for one in bits:
            found |= _one(one, name, flags)
        return found
    try:
        vector = whole_number(bits)
    except TypeError:
        raise InvalidArgument(
            f"{name} is {quoted(bits)}; want {flags.__name__} members, their names, or an integer in 0 <= bits < 2**27"
        ) from None
    if not 0 <= vector <= POLICY_BITS:
        raise InvalidArgument(
            f"{name} is {shown(hex(vector))}; want 0 <= bits < 2**27: callers cannot set version, quarantine and "
            "tombstone"
        )
    if unnamed := vector >> len(flags):
        raise InvalidArgument(
            f"{name} is {vector:#x}, with {unnamed.bit_count()} bits that {flags.__name__} does not name; want only "
            f"its {len(flags)} bits"
        )
    return vector


def flags_of(*several: Bits) -> type[PolicyFlag]:
    """Return the flag type of the members among the bits; EDGAR's if there are only names and numbers."""
    for bits in several:
        if isinstance(bits, PolicyFlag):
            return type(bits)
        if type(bits) is int:  # the most frequent case, without members
            continue
        for one in bits if _is_several(bits) and not isinstance(bits, Iterator) else ():
            if isinstance(one, PolicyFlag):
                return type(one)
    return PolicyBit


@overload
def policy_word(bits: NDArray[np.integer]) -> NDArray[np.uint32]: ...
@overload
def policy_word(bits: PolicyFlag | str | int | Set[PolicyFlag | str] | Iterable[str]) -> int: ...


def policy_word(bits: Bits | NDArray[np.integer]) -> int | NDArray[np.uint32]:
    """Add the schema version to a 27-bit policy vector: one word, or (n,) uint32 words from an array of vectors.

    Raises InvalidArgument as :func:`bits_of`; and on a sequence of members, which could be one word or several.

    Examples
    --------
    >>> hex(policy_word(PolicyBit.J_US | PolicyBit.FS_AUDITED))
    '0x8000021'
    """
    if isinstance(bits, np.ndarray) and bits.ndim:
        return _words(bits)
    if _is_several(bits) and not isinstance(bits, Set):
        bits = list(bits)
        if not all(isinstance(one, str) for one in bits):
            raise InvalidArgument(
                f"policy bits are {quoted(bits)}, which could mean one word or {len(bits)}; for one word, write A | "
                "B, a set or names; for several, an integer array of vectors"
            )
    return bits_of(bits, name="policy bits", flags=flags_of(bits)) | VERSION_WORD


def bit_names(word: int, flags: type[PolicyFlag] = PolicyBit) -> tuple[str, ...]:
    """Name the policy bits set in a word, lowest first.

    Examples
    --------
    >>> bit_names(0x0800_0021)
    ('J_US', 'FS_AUDITED')
    """
    return tuple(bit.name for bit in flags if word & bit.value)


def whole_number(value: object) -> int:
    """Return an integer, including NumPy's, as a plain ``int``: a subclass may override how it compares or prints."""
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{value!r} is not a number")
    return index(value)  # type: ignore[arg-type] # or it raises


def nearest(name: str, known: Iterable[str]) -> str:
    """List the known names for an error message, and suggest the one that was probably meant."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"want one of {', '.join(names)}" + "".join(f"; did you mean {one!r}?" for one in close)


def _is_several(bits: Bits) -> TypeGuard[Iterable[PolicyFlag | str]]:
    return not isinstance(bits, (int, str, bytes, np.ndarray, Mapping)) and isinstance(bits, Iterable)


def _one(bit: object, name: str, flags: type[PolicyFlag]) -> int:
    if isinstance(bit, PolicyFlag):
        return _member(bit, name, flags)
    if isinstance(bit, str):
        return _named(bit, name, flags)
    raise InvalidArgument(
        f"{name} holds {quoted(bit)}; a number in a list could be a bit's number or a vector: want {flags.__name__} "
        "members or their names"
    )


def _member(bit: PolicyFlag, name: str, flags: type[PolicyFlag]) -> int:
    if not same_bits(type(bit), flags):
        raise InvalidArgument(
            f"{name} holds {bit!r}, a bit of another profile, where the number means something else; want members of "
            f"{flags.__name__}"
        )
    return int(bit)


def _named(bit: str, name: str, flags: type[PolicyFlag]) -> int:
    try:
        return int(flags[bit])
    except KeyError:
        raise InvalidArgument(
            f"{name} names the unknown policy bit {quoted(bit)}; {nearest(bit, flags.__members__)}"
        ) from None


def _words(vectors: NDArray[np.integer]) -> NDArray[np.uint32]:
    if vectors.dtype.kind not in "iu":
        raise InvalidArgument(f"policy bits are {vectors.dtype}; want integers in 0 <= bits < 2**27")
    if vectors.size and (int(vectors.min()) < 0 or int(vectors.max()) > POLICY_BITS):
        raise InvalidArgument(
            f"policy bits range over [{vectors.min()}, {vectors.max()}]; want 0 <= bits < 2**27: version, "
            "quarantine and tombstone cannot be set by callers"
        )
    return vectors.astype(np.uint32) | np.uint32(VERSION_WORD)
