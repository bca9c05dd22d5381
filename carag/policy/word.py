"""Define the policy word, one ``uint32`` per chunk, and the flag types that name its bits.

==========  =====================================================================
bits 0-26   the policy vector, one fact about the passage per bit (:class:`PolicyFlag`)
bits 27-29  schema version; 0 means *unlabelled*, which no policy admits
bit 30      quarantine: the facts needed for a label are missing or disagree
bit 31      tombstone: deleted
==========  =====================================================================
"""

from __future__ import annotations

from enum import STRICT, IntFlag
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

from carag.errors import InvalidArgument
from carag.limits import quoted, shown

if TYPE_CHECKING:
    from collections.abc import Sequence


POLICY_BITS: Final = (1 << 27) - 1
"""The policy vector, bits 0-26 of a word."""
SCHEMA_VERSION: Final = 1
"""The version of the word's layout."""
VERSION_WORD: Final = SCHEMA_VERSION << 27
"""The schema version in its place in a word, bits 27-29."""
QUARANTINE: Final = 1 << 30
"""Set on a passage whose label lacks facts or rests on contradictory facts."""
TOMBSTONE: Final = 1 << 31
"""Set on a deleted passage."""
CONTROL: Final = 0xF800_0000
"""Version, quarantine and tombstone together: every test of admissibility compares all five bits."""


_Flags = TypeVar("_Flags", bound="type[PolicyFlag]")


class PolicyFlag(IntFlag, boundary=STRICT):
    """The policy bits of a profile. A member *is* its bit, so ``|`` joins several and ``&`` finds them in a word.

    InvalidArgument is raised for a number with bits other than these; by ``|``, ``&`` and ``^`` with a bit of another
    profile; by ``~``, which could mean the other policy bits or all other bits of a word; and by ``1 << bit``, which
    mistakes the bit for its number.
    """

    if TYPE_CHECKING:
        vocabulary: ClassVar[Any]
        """What the bits of a profile mean; a class attribute that reading the profile sets."""

        # A member's name is None only if no bit is set.
        @property
        def name(self) -> str:
            """The name of the bit; for a union, the names joined by ``|``."""

    @property
    def number(self) -> int:
        """The number of a single bit in the word, from 0."""
        return self.value.bit_length() - 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        if isinstance(value, int) and 0 <= value <= POLICY_BITS:
            return super()._missing_(value)  # a union of members
        came = shown(hex(value)) if isinstance(value, int) else quoted(value)
        raise InvalidArgument(
            f"{came} is not a union of policy bits; want 0 <= bits < 2**27; to set a bit in a word: word | bit.value"
        )

    def __rlshift__(self, number: int) -> NoReturn:
        raise InvalidArgument(
            f"{number} << {self!r} shifts by a bit, but {self.name} is already the bit; use it directly"
        )


def _guarded(flags: _Flags) -> _Flags:
    """Refuse misleading operators; Python gives every flag type operators of its own, so each type is guarded."""

    def invert(self: PolicyFlag) -> NoReturn:
        raise InvalidArgument(
            f"~{self!r} is ambiguous; for the other policy bits write POLICY_BITS ^ bits, to clear them in a word "
            "word & ~bits.value"
        )

    def own_bits_only(operator: str) -> Any:
        apply = getattr(IntFlag, operator)

        def checked(self: PolicyFlag, other: Any) -> Any:
            if isinstance(other, PolicyFlag) and not same_bits(type(other), type(self)):
                raise InvalidArgument(f"{self!r} and {other!r} are bits of two profiles; want bits of one")
            return apply(self, other)

        return checked

    for operator in ("__or__", "__and__", "__xor__", "__ror__", "__rand__", "__rxor__"):
        setattr(flags, operator, own_bits_only(operator))
    setattr(flags, "__invert__", invert)  # noqa: B010 - mypy would take an assignment for a method of another type
    return flags


@_guarded
class PolicyBit(PolicyFlag):
    """The policy bits of EDGAR filings, whose names need no profile.

    Examples
    --------
    >>> PolicyBit.J_EU | PolicyBit.PD_INSIDER
    <PolicyBit.J_EU|PD_INSIDER: 2050>
    >>> 0x0800_0802 & PolicyBit.PD_INSIDER
    <PolicyBit.PD_INSIDER: 2048>
    """

    J_US = 1 << 0
    J_EU = 1 << 1
    J_UK = 1 << 2
    J_CA = 1 << 3
    J_OTHER = 1 << 4
    FS_AUDITED = 1 << 5
    FS_UNAUDITED = 1 << 6
    FURNISHED = 1 << 7
    OFFERING = 1 << 8
    PROXY_TENDER = 1 << 9
    OWNERSHIP = 1 << 10
    PD_INSIDER = 1 << 11
    PD_COMP = 1 << 12
    PD_NATURAL = 1 << 13
    PD_SPECIAL = 1 << 14
    PRIV2PUB = 1 << 15
    CONF_TREAT = 1 << 16
    MATERIAL = 1 << 17
    AMENDED = 1 << 18
    SUPERSEDED = 1 << 19
    NON_RELIANCE = 1 << 20
    NOT_LATEST = 1 << 21
    LATE = 1 << 22
    DELISTED = 1 << 23
    EGC = 1 << 24
    SHELL = 1 << 25
    FPI = 1 << 26


def same_bits(one: type[PolicyFlag], other: type[PolicyFlag]) -> bool:
    """Tell whether two flag types name the same bits, as those of a profile and its variant with other roles do."""
    return one is other or list(one.__members__) == list(other.__members__)


def flags_named(profile: str, names: Sequence[str]) -> type[PolicyFlag]:
    """Make the flag type of a profile from the names of its bits, in the order of their numbers."""
    members = [(name, 1 << number) for number, name in enumerate(names)]
    title = "".join(part.title() for part in profile.split("_")) + "Bit"
    made: type[PolicyFlag] = PolicyFlag(title, members)  # type: ignore[call-arg,arg-type,assignment] # a functional enum
    return _guarded(made)
