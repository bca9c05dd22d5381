"""The 27-bit policy vocabulary: one ``uint32`` word per chunk.

==========  =====================================================================
bits 0-26   the policy vector, one fact about the passage a bit (:class:`PolicyBit`)
bits 27-29  schema version; 0 means *unlabelled*, which no policy admits
bit 30      quarantine: the facts needed for a label are missing or disagree
bit 31      tombstone: deleted
==========  =====================================================================

The mapping from bits to regulations is an engineering control, not legal advice: all EDGAR filings are
public, and most rules named here restrict *use*, not access.

What lives here is the language of the words. How a filing earns its bits is the corpus room's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, overload

import numpy as np

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = [
    "CONTROL",
    "POLICY_BITS",
    "QUARANTINE",
    "SCHEMA_VERSION",
    "TOMBSTONE",
    "VERSION_WORD",
    "BitMeaning",
    "PolicyBit",
    "bit_names",
    "bits_of",
    "meaning",
    "policy_word",
]

POLICY_BITS: Final = (1 << 27) - 1
SCHEMA_VERSION: Final = 1
VERSION_WORD: Final = SCHEMA_VERSION << 27
QUARANTINE: Final = 1 << 30
TOMBSTONE: Final = 1 << 31
CONTROL: Final = 0xF800_0000
"""Version, quarantine and tombstone together: every admissibility test compares all five bits."""


class PolicyBit(IntEnum):
    """Position of each policy bit in the word."""

    J_US = 0
    J_EU = 1
    J_UK = 2
    J_CA = 3
    J_OTHER = 4
    FS_AUDITED = 5
    FS_UNAUDITED = 6
    FURNISHED = 7
    OFFERING = 8
    PROXY_TENDER = 9
    OWNERSHIP = 10
    PD_INSIDER = 11
    PD_COMP = 12
    PD_NATURAL = 13
    PD_SPECIAL = 14
    PRIV2PUB = 15
    CONF_TREAT = 16
    MATERIAL = 17
    AMENDED = 18
    SUPERSEDED = 19
    NON_RELIANCE = 20
    NOT_LATEST = 21
    LATE = 22
    DELISTED = 23
    EGC = 24
    SHELL = 25
    FPI = 26

    @property
    def flag(self) -> int:
        """The word with this bit alone set."""
        return 1 << self.value


@dataclass(frozen=True, slots=True)
class BitMeaning:
    """What a set bit says of a passage, and the rules it serves."""

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
    """Say what a bit means and which rules it serves."""
    return _MEANINGS[bit]


@overload
def policy_word(bits: int) -> int: ...
@overload
def policy_word(bits: NDArray[np.integer]) -> NDArray[np.uint32]: ...


def policy_word(bits: int | NDArray[np.integer]) -> int | NDArray[np.uint32]:
    """Add the schema version to a 27-bit policy vector.

    Parameters
    ----------
    bits : int or (n,) integer array
        Policy vectors, each in ``0 <= bits < 2**27``.

    Returns
    -------
    int or (n,) uint32 array
        Words that policies can admit.

    Raises
    ------
    InvalidArgument
        If a value is no integer or has a bit outside 0-26.

    Examples
    --------
    >>> hex(policy_word(PolicyBit.J_US.flag | PolicyBit.FS_AUDITED.flag))
    '0x8000021'
    """
    array = np.asarray(bits)
    if array.dtype.kind not in "iu":
        raise InvalidArgument(f"policy bits are {array.dtype}; want integers in 0 <= bits < 2**27")
    if array.size and (int(array.min()) < 0 or int(array.max()) > POLICY_BITS):
        raise InvalidArgument(
            f"policy bits range over [{array.min()}, {array.max()}]; want 0 <= bits < 2**27: version, "
            "quarantine and tombstone are not the caller's to set"
        )
    if array.ndim == 0:
        return int(array) | VERSION_WORD
    return array.astype(np.uint32) | np.uint32(VERSION_WORD)


def bits_of(names: Iterable[str]) -> int:
    """Pack bit names into a 27-bit vector.

    Raises
    ------
    InvalidArgument
        On a name that is not in :class:`PolicyBit`.

    Examples
    --------
    >>> hex(bits_of(["PD_SPECIAL", "OFFERING"]))
    '0x4100'
    """
    bits = 0
    for name in names:
        try:
            bits |= PolicyBit[name].flag
        except KeyError:
            raise InvalidArgument(
                f"unknown policy bit {name!r}; want one of {', '.join(PolicyBit.__members__)}"
            ) from None
    return bits


def bit_names(word: int) -> tuple[str, ...]:
    """Name the policy bits set in a word, lowest first.

    Examples
    --------
    >>> bit_names(0x0800_0021)
    ('J_US', 'FS_AUDITED')
    """
    return tuple(bit.name for bit in PolicyBit if word & bit.flag)
