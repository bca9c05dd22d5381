"""Define the 27-bit policy vocabulary: one ``uint32`` word per chunk.

==========  =====================================================================
bits 0-26   the policy vector, one fact about the passage a bit (:class:`PolicyBit`)
bits 27-29  schema version; 0 means *unlabelled*, which no policy admits
bit 30      quarantine: the facts needed for a label are missing or disagree
bit 31      tombstone: deleted
==========  =====================================================================

The mapping from bits to regulations is an engineering control, not legal advice: all EDGAR filings are
public, and most rules named here restrict *use*, not access.

This module defines what the bits mean. :mod:`carag.policy.bits` reads them as callers write them;
:mod:`carag.labelling` and the profiles decide which bits a filing gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import STRICT, IntFlag
from typing import TYPE_CHECKING, Any, Final, NoReturn

from carag.errors import InvalidArgument
from carag.limits import quoted, shown

__all__ = [
    "CONTROL",
    "POLICY_BITS",
    "QUARANTINE",
    "SCHEMA_VERSION",
    "TOMBSTONE",
    "VERSION_WORD",
    "BitMeaning",
    "PolicyBit",
    "meaning",
]

POLICY_BITS: Final = (1 << 27) - 1
"""The policy vector, bits 0-26 of a word."""
SCHEMA_VERSION: Final = 1
"""The version of this vocabulary."""
VERSION_WORD: Final = SCHEMA_VERSION << 27
"""The schema version in its place in a word, bits 27-29."""
QUARANTINE: Final = 1 << 30
"""The bit of a passage whose label is missing facts or rests on contradictory ones."""
TOMBSTONE: Final = 1 << 31
"""The bit of a deleted passage."""
CONTROL: Final = 0xF800_0000
"""Version, quarantine and tombstone together: every admissibility test compares all five bits."""


class PolicyBit(IntFlag, boundary=STRICT):
    """The policy bits. A member *is* its bit, so ``|`` joins several and ``&`` finds them in a word.

    Raises
    ------
    InvalidArgument
        If a number has other bits than these; by ``~``, which could mean the other policy bits or all other bits of a
        word; and by ``1 << bit``, which mistakes the bit for its number.

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

    if TYPE_CHECKING:  # a member's name is None only if no bit is set

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
            f"{came} is no union of policy bits; want 0 <= bits < 2**27. To set a bit in a word: word | bit.value"
        )

    def __invert__(self) -> NoReturn:
        raise InvalidArgument(
            f"~{self!r} may mean the other policy bits, POLICY_BITS ^ bits, or all but these in a word, "
            "word & ~bits.value; say which"
        )

    def __rlshift__(self, number: int) -> NoReturn:
        raise InvalidArgument(f"{number} << {self!r} shifts by a bit; {self.name} is its bit already")


@dataclass(frozen=True, slots=True)
class BitMeaning:
    """What a set bit states of a passage, and the regulation it serves."""

    document: str
    """The kind of document that carries the bit, as a noun phrase."""
    regulation: str
    """The rules this control is designed for."""


_MEANINGS: Final[dict[PolicyBit, BitMeaning]] = {
    PolicyBit.J_US: BitMeaning(
        "documents of filers with a United States business address",
        "data residency; Regulation Best Interest",
    ),
    PolicyBit.J_EU: BitMeaning(
        "documents of filers established in the EU or EEA",
        "GDPR Art. 3, 44-49; EU Market Abuse Regulation",
    ),
    PolicyBit.J_UK: BitMeaning("documents of filers established in the United Kingdom", "UK GDPR; UK MAR"),
    PolicyBit.J_CA: BitMeaning("documents of filers established in Canada", "PIPEDA; NI 51-102"),
    PolicyBit.J_OTHER: BitMeaning(
        "documents of filers established elsewhere, or nowhere stated",
        "cross-border transfer rules",
    ),
    PolicyBit.FS_AUDITED: BitMeaning("audited financial statements", "SOX 302, 404; PCAOB AS 3101"),
    PolicyBit.FS_UNAUDITED: BitMeaning("unaudited financial statements", "PCAOB AS 4105"),
    PolicyBit.FURNISHED: BitMeaning(
        "information furnished, not filed",
        "Exchange Act s. 18; Form 8-K Gen. Instr. B.2; Regulation FD",
    ),
    PolicyBit.OFFERING: BitMeaning(
        "registration statements, prospectuses and other offering material",
        "Securities Act s. 5, 2(a)(10); Rules 137-139; FINRA 2241(b)(2)(I)",
    ),
    PolicyBit.PROXY_TENDER: BitMeaning(
        "proxy, information and tender-offer statements", "Regulation 14A, 14C, 14E; Rule 14e-3"
    ),
    PolicyBit.OWNERSHIP: BitMeaning(
        "beneficial-ownership and 13F reports, whose data lag", "Exchange Act s. 13(d), 13(f)"
    ),
    PolicyBit.PD_INSIDER: BitMeaning(
        "insiders' transaction reports (Forms 3, 4, 5, 144)",
        "GDPR Art. 4(1), 5(1)(b)-(c), 6(1)(f); s. 16",
    ),
    PolicyBit.PD_COMP: BitMeaning(
        "named officers' and directors' pay or appointment", "GDPR Art. 5, 6; Regulation S-K 402"
    ),
    PolicyBit.PD_NATURAL: BitMeaning("reports filed by or about a natural person", "GDPR Art. 4(1), 14, 21"),
    PolicyBit.PD_SPECIAL: BitMeaning(
        "special-category data of individuals, such as board diversity matrices",
        "GDPR Art. 9(1), 9(2)(e)",
    ),
    PolicyBit.PRIV2PUB: BitMeaning(
        "drafts and staff letters that were confidential before release",
        "JOBS Act s. 6(e); MAR Art. 7; Rule 10b-5",
    ),
    PolicyBit.CONF_TREAT: BitMeaning(
        "material under a confidential-treatment order",
        "Securities Act Rule 406; Exchange Act Rule 24b-2",
    ),
    PolicyBit.MATERIAL: BitMeaning("reports of material events", "Regulation FD 100; MAR Art. 17"),
    PolicyBit.AMENDED: BitMeaning("filings that a later amendment touches", "Exchange Act Rule 12b-15"),
    PolicyBit.SUPERSEDED: BitMeaning(
        "filings whose financial statements a later amendment replaces", "PCAOB AS 2820, AS 2905"
    ),
    PolicyBit.NON_RELIANCE: BitMeaning(
        "financial statements the filer says may not be relied upon",
        "Form 8-K Item 4.02; SOX 304; AS 2905",
    ),
    PolicyBit.NOT_LATEST: BitMeaning(
        "periodic reports with a later one of the same form",
        "FINRA 2210(d); Regulation Best Interest care",
    ),
    PolicyBit.LATE: BitMeaning("periodic reports announced as late", "Exchange Act Rule 12b-25"),
    PolicyBit.DELISTED: BitMeaning(
        "documents of filers that delisted or deregistered", "Exchange Act s. 12(d), 12(g)"
    ),
    PolicyBit.EGC: BitMeaning("documents of emerging growth companies", "FINRA 2241(b)(2)(I) exemption"),
    PolicyBit.SHELL: BitMeaning("documents of shell companies", "Securities Act Rules 419, 144(i)"),
    PolicyBit.FPI: BitMeaning("documents of foreign private issuers", "Regulation FD 101(b); IFRS reporting"),
}


def meaning(bit: PolicyBit) -> BitMeaning:
    """Return what one bit means and which regulation it serves."""
    return _MEANINGS[bit]
