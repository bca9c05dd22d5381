"""Read items of Form 8-K: current numbers, the descriptions in EDGAR's headers, and the numbers before 2004.

On 23 August 2004 (Release 33-8400) the twelve items of Form 8-K were renumbered by section. An old ``4`` (change of
accountant) is now 4.01, never 4.02 (non-reliance).
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

# The beginning of each description in lower case, letters only; where one description begins with another, the longer
# comes first.
_DESCRIPTIONS: Final = (
    ("entry into a material definitive agreement", "1.01"),
    ("termination of a material definitive agreement", "1.02"),
    ("bankruptcy or receivership", "1.03"),
    ("mine safety", "1.04"),
    ("material cybersecurity incident", "1.05"),
    ("completion of acquisition or disposition of assets", "2.01"),
    ("acquisition or disposition of assets", "2.01"),
    ("results of operations and financial condition", "2.02"),
    ("creation of a direct financial obligation", "2.03"),
    ("triggering events that accelerate", "2.04"),
    ("cost associated with exit", "2.05"),
    ("costs associated with exit", "2.05"),
    ("material impairment", "2.06"),
    ("notice of delisting", "3.01"),
    ("unregistered sale", "3.02"),
    ("sales of equity securities pursuant to regulation s", "3.02"),
    ("material modification", "3.03"),
    ("changes in registrants certifying accountant", "4.01"),
    ("change in registrants certifying accountant", "4.01"),
    ("nonreliance on previously issued", "4.02"),
    ("non reliance on previously issued", "4.02"),
    ("changes in control of registrant", "5.01"),
    ("change in control of registrant", "5.01"),
    ("departure of director", "5.02"),
    ("resignations of registrants directors", "5.02"),
    ("resignation of registrants directors", "5.02"),
    ("amendments to articles of incorporation", "5.03"),
    ("amendment to articles of incorporation", "5.03"),
    ("change in fiscal year", "5.03"),
    ("temporary suspension of trading", "5.04"),
    ("amendments to the registrants code of ethics", "5.05"),
    ("amendment to registrants code of ethics", "5.05"),
    ("change in shell company status", "5.06"),
    ("submission of matters to a vote", "5.07"),
    ("shareholder director nominations", "5.08"),
    ("shareholder nominations", "5.08"),
    ("abs informational and computational", "6.01"),
    ("change of servicer or trustee", "6.02"),
    ("change in credit enhancement", "6.03"),
    ("failure to make a required distribution", "6.04"),
    ("securities act updating disclosure", "6.05"),
    ("static pool", "6.06"),
    ("regulation fd disclosure", "7.01"),
    ("other events", "8.01"),
    ("financial statements and exhibits", "9.01"),
)
ITEM_NUMBERS: Final = frozenset(number for _, number in _DESCRIPTIONS)
"""Every current item number of Form 8-K."""

_BEFORE_2004: Final = {
    "1": "5.01",  # changes in control
    "2": "2.01",  # acquisition or disposition of assets
    "3": "1.03",  # bankruptcy or receivership
    "4": "4.01",  # changes in certifying accountant
    "5": "8.01",  # other events
    "6": "5.02",  # resignations of directors
    "7": "9.01",  # financial statements and exhibits
    "8": "5.03",  # change in fiscal year
    "9": "7.01",  # Regulation FD disclosure
    "10": "5.05",  # code of ethics
    "11": "5.04",  # suspension of trading under benefit plans
    "12": "2.02",  # results of operations and financial condition
}
_REGULATION_FD: Final = date(2000, 10, 23)
"""From this day on, item 9 is Regulation FD disclosure; before, it was sales of equity securities under Regulation
S."""
_RENUMBERED: Final = date(2004, 8, 23)
"""The day from which the items have their current numbers (Release 33-8400)."""


def item_number(stated: str, filed: date | None = None) -> str:
    """Return the current number of an item, given by number or description, or the stated text if it cannot be read.

    On a filing made after the renumbering, an old number is unreadable.
    """
    text = re.sub(r"^item\s+", "", stated.strip(), flags=re.IGNORECASE).rstrip(".")
    if text in ITEM_NUMBERS:
        return text
    if text in _BEFORE_2004 and (filed is None or filed < _RENUMBERED):
        if text == "9" and filed is not None and filed < _REGULATION_FD:
            return "3.02"
        return _BEFORE_2004[text]
    letters = " ".join(re.sub(r"[^a-z ]", "", text.lower().replace("-", "")).split())
    for beginning, number in _DESCRIPTIONS:
        if letters.startswith(beginning):
            return number
    return stated.strip()
