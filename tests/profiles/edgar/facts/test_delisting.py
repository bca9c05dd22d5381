"""A form that removes a class of securities removes that class."""

from __future__ import annotations

import pytest

from carag.policy import PolicyBit
from carag.profiles.edgar.facts.delisting import leaves_common_equity
from carag.profiles.edgar.facts.filing import Filing, FilingDocument
from carag.profiles.edgar.rules.filing_events import state_bits
from carag.profiles.edgar.rules.filing_facts import FilingFacts
from carag.profiles.edgar.rules.labeller import label

STRUCK = "Fiction Corp.\n(Exact name of Issuer)\n{}\n(Description of class of securities)\n"
COVERED = (
    "{}\n(Title of each class of securities covered by this Form)\n{}\n"
    "(Titles of all other classes of securities for which a duty to file reports under section 13(a) remains)\n"
)


@pytest.mark.parametrize(
    ("form", "text", "leaves"),
    [
        ("25-NSE", STRUCK.format("4.50% Senior Notes due 2021"), True),
        ("25-NSE", STRUCK.format("Series A Preferred Stock"), True),
        (
            "25",
            "descriptionClassSecurity: 2.625% Notes due 2026\nruleProvision: 17 CFR 240.12d2-2(a)(2)",
            True,
        ),
        ("25/A", STRUCK.format("Subordinated Debentures"), True),
        ("25-NSE", STRUCK.format("Common Stock, $0.01 par value"), False),
        ("25-NSE", STRUCK.format("Preferred Stock convertible into Common Stock"), False),  # may be either
        ("25-NSE", STRUCK.format("American Depositary Shares"), False),
        ("25-NSE", STRUCK.format("Securities"), False),  # neither kind
        ("25-NSE", STRUCK.format("Notes due 2021") + STRUCK.format("Common Stock"), False),
        ("25-NSE", "Notes due 2021", False),  # no field says that it is the class
        ("25-NSE", "", False),
        ("15-12B", COVERED.format("Notes due 2021", "Common Stock, $0.01 par value"), True),
        ("15-12B", COVERED.format("Common Stock, $0.01 par value", "None"), False),
        ("15-12G", COVERED.format("Notes due 2021", "Debentures due 2030"), False),
        ("REVOKED", STRUCK.format("Notes due 2021"), False),
        ("8-K", STRUCK.format("Notes due 2021"), False),
    ],
)
def test_only_what_a_form_says_leaves_common_equity(form: str, text: str, leaves: bool) -> None:
    """A form without text, or in other words, delists the filer."""
    filing = Filing(accession_number="b", form=form, ciks=(1,), documents=(FilingDocument(form, text),))
    assert leaves_common_equity(filing) is leaves
    report = FilingFacts(
        accession_number="a", form="10-K", is_amendment=False, ciks=(1,), period=None, since=5, public_at=5
    )
    facts = FilingFacts.of(filing, label(filing))
    assert FilingFacts.from_json(facts.to_json()) == facts
    delists = bool(state_bits([report, facts])["a"].bits & PolicyBit.DELISTED)
    assert delists is (not leaves and form != "8-K")
