"""Classify EDGAR form types into the families that labelling rules use.

The list of families is closed: a form that is in none of them is unknown, and its filings are quarantined. A form may
be in several families (``F-1`` is an offering and foreign).
"""

from __future__ import annotations

import re
from datetime import date
from enum import Enum, auto
from fnmatch import translate
from functools import lru_cache
from typing import Final


class FormFamily(Enum):
    """Families of forms that the labelling rules distinguish."""

    ANNUAL = auto()
    """Annual report with audited statements: 10-K, 20-F, 40-F and their old names."""
    INTERIM = auto()
    """Quarterly report with unaudited statements: 10-Q."""
    CURRENT = auto()
    """8-K, whose items state what it reports."""
    FOREIGN_CURRENT = auto()
    """6-K, which has no items."""
    ANNUAL_TO_HOLDERS = auto()
    """ARS: furnished."""
    OFFERING = auto()
    PROXY = auto()
    """Schedule 14A: proxy solicitation."""
    TENDER = auto()
    """Schedule 14C, tender offers, going-private transactions."""
    OWNERSHIP = auto()
    INSIDER = auto()
    """Section 16 reports and Form 144."""
    LETTER = auto()
    """Staff letters and replies, released to the public some time after their date."""
    DRAFT = auto()
    """Draft registration statement: confidential until the public filing."""
    CONFIDENTIAL_TREATMENT = auto()
    FOREIGN = auto()
    """Forms that only a foreign private issuer files."""
    LATE_NOTICE = auto()
    DELISTING = auto()
    """Removal from listing or registration."""
    OTHER = auto()
    """A known form that sets no bit."""


# Shell patterns for the form without "/A". Forms that EDGAR renamed are listed under both names.
_PATTERNS: Final = {
    FormFamily.ANNUAL: "10-K 10-K405 10-KT 10-KT405 10-KSB 10-KSB40 10KSB 10KSB40 10KT405 20-F 40-F",
    FormFamily.INTERIM: "10-Q 10-QT 10-QSB 10QSB 10QT",
    FormFamily.CURRENT: "8-K 8-K12B 8-K12G3 8-K15D5",
    FormFamily.FOREIGN_CURRENT: "6-K",
    FormFamily.ANNUAL_TO_HOLDERS: "ARS",
    FormFamily.OFFERING: (
        "S-[0-9]* S-B* F-[0-9]* SF-[0-9]* SB-[0-9]* 424[ABH]* 425 FWP POS* DRS "
        # Funds: registration statements and prospectuses under the Securities Act
        "N-1 N-1A N-2* N-3* N-4* N-5* N-6* N-14* 485* 486* 497* "
        # Regulation A and crowdfunding
        "1-A* 253G* 1-Z-W C C-U C-AR C-TR"
    ),
    FormFamily.PROXY: "*14A PX14A6*",
    FormFamily.TENDER: "*14C SC?TO-* SCHEDULE?TO* SC?14D* SC14D* SC?14F* SC14F* SC?14N* SCHEDULE?14N* "
    "SC?13E* SC13E*",
    FormFamily.OWNERSHIP: "SC?13D SC?13G SCHEDULE?13D SCHEDULE?13G 13F-*",
    FormFamily.INSIDER: "3 4 5 144",
    FormFamily.LETTER: "UPLOAD CORRESP LETTER DRSLTR SEC?STAFF?LETTER",
    FormFamily.DRAFT: "DRS DRSLTR",
    FormFamily.CONFIDENTIAL_TREATMENT: "CT?ORDER",
    FormFamily.FOREIGN: "20-F 40-F 6-K F-[0-9]* 20FR* 40FR*",
    FormFamily.LATE_NOTICE: "NT?* NTN?*",
    FormFamily.DELISTING: "25 25-NSE 15-12B 15-12G 15-15D 15F-* REVOKED",
    FormFamily.OTHER: (
        "1-E 1-K 1-SA 1-U 1-Z 10 10-12B 10-12G 10-C 10-D 10-M 10SB12B 10SB12G 11-K 11-KT 13H* 17AD* 18-K "
        "2-E 24F-2* 305B2 34-12H 35-* 40-[0-9]* 40-APP 40-OIP 40FR* 8-A12B 8-A12G 8A12B* 8A12G* 8-B12B "
        "8-B12G 8-M ABS-* ADV-* ADV-H* ANNLRPT APP?* ATS-N* AW AW?WD CB CERT* CFPORTAL* CORRECT* D "
        "DEL?AM DOS DSTRBRPT EFFECT F-N F-X FOCUSN IRANNOTICE MA MA-* MSD* N-8* N-17* N-18* N-23* N-27* "
        "N-30* N-54* N-CEN N-CR N-CSR* N-MFP* N-PX* N-Q N-RN NO?ACT NPORT* N-PORT* NRSRO* NSAR* N-VP* "
        "NVP* OIP* QRTLYRPT QUALIF REGDEX RW RW?WD SBSE* SD SDR* SE SEC?STAFF?ACTION SL SP?15D2 STOP?ORDER SUPPL "
        "T-[0-9]* T-3 TA-* TTW U-* U5* WDL-* X-17A-5"
    ),
}


def _compile(patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns.split()))


_FAMILIES: Final = {family: _compile(patterns) for family, patterns in _PATTERNS.items()}


@lru_cache(maxsize=4096)
def form_families(base_form: str) -> frozenset[FormFamily]:
    """Return the families of a form without ``/A``; empty for a form that EDGAR does not have.

    Examples
    --------
    >>> sorted(family.name for family in form_families("F-1"))
    ['FOREIGN', 'OFFERING']
    """
    return frozenset(family for family, pattern in _FAMILIES.items() if pattern.fullmatch(base_form))


def periodic_family(base_form: str) -> str:
    """Return the periodic report that a form is a variant of, or an empty string.

    Small-business and ``405`` variants report the same periods as the plain form, so they amend and supersede one
    another.

    Examples
    --------
    >>> periodic_family("10-K405"), periodic_family("10QSB"), periodic_family("8-K")
    ('10-K', '10-Q', '')
    """
    families = form_families(base_form)
    if not families & {FormFamily.ANNUAL, FormFamily.INTERIM}:
        return ""
    if FormFamily.INTERIM in families:
        return "10-Q"
    return base_form if base_form in {"20-F", "40-F"} else "10-K"


def renamed_form(form: str) -> str:
    """Return a form in capitals, under its older name if EDGAR renamed it.

    Schedules 13D and 13G became XML forms with full names, mandatory since 18 December 2024.

    Examples
    --------
    >>> renamed_form("SCHEDULE 13D/A"), renamed_form("sc 13d/a"), renamed_form("10-K")
    ('SC 13D/A', 'SC 13D/A', '10-K')
    """
    return re.sub(r"^SCHEDULE (?=13[DG]\b|14|TO\b)", "SC ", " ".join(form.upper().split()))


_UNTIL_TEN: Final = (
    (re.compile(r"[345]"), date(2003, 6, 30)),  # Release 33-8230: reports under section 16
    (re.compile(r"[A-Z0-9-]+MEF|POS 462B"), date(1995, 6, 7)),  # Rule 462(b)
    (re.compile(r"SC 14N.*"), date(2010, 11, 15)),
    (re.compile(r"144"), date(2023, 3, 20)),  # Release 33-11159
    (re.compile(r"SC 13[DG]"), date(2024, 2, 5)),  # Release 33-11253
)


def accepted_until_ten(base_form: str, day: date) -> bool:
    """Tell whether a form sent by 22:00 Eastern is filed and disseminated the same day (17 CFR 232.13(a)(3), (4)).

    ``base_form`` is without ``/A``; ``day`` is when the form was sent, which matters because the rule was extended to
    more forms over time.
    """
    form = renamed_form(base_form)
    return any(pattern.fullmatch(form) and day >= since for pattern, since in _UNTIL_TEN)
