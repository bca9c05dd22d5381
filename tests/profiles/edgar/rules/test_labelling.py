"""From header facts to policy words: the worked examples, the traps, and what must hold of any filing."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from carag.policy import (
    EASTERN,
    NEVER,
    QUARANTINE,
    PolicyBit,
    PolicyTable,
    as_of_minutes,
    bit_names,
    bits_of,
    reasons,
)  # fmt: skip
from carag.profiles.edgar.facts.filing import Filing, FilingDocument
from carag.profiles.edgar.facts.publication import PublicAtSource
from carag.profiles.edgar.reading.readers import read_filings
from carag.profiles.edgar.reading.submission import parse_submission
from carag.profiles.edgar.rules.filing_events import state_bits
from carag.profiles.edgar.rules.filing_facts import FilingFacts
from carag.profiles.edgar.rules.labeller import chunk_word, label
from carag.profiles.edgar.rules.rules import QuarantineCode
from tests.profiles.edgar.drawn import FILINGS, TEXTS
from tests.profiles.edgar.reading.headers import document

if TYPE_CHECKING:
    from pathlib import Path

    from carag.labelling.label import Label

TABLE = PolicyTable.shipped()
ANYWHERE = {"J_US", "J_EU", "J_UK", "J_CA", "J_OTHER"}
JURISDICTIONS = bits_of(["J_US", "J_EU", "J_UK", "J_CA", "J_OTHER"])


def submission(
    form: str,
    *,
    state: str = "NY",
    filed: str = "20240315",
    accepted: str = "20240315161500",
    party: str = "FILER",
    extra: str = "",
    documents: tuple[str, ...] = (),
    number: int = 1,
    text: str = "Item 1. Business",
) -> Filing:
    """A full submission of our own making, with EDGAR's field names."""
    header = f"""<SEC-HEADER>0009999999-24-{number:06}.hdr.sgml : {filed}
<ACCEPTANCE-DATETIME>{accepted}
ACCESSION NUMBER:\t\t0009999999-24-{number:06}
CONFORMED SUBMISSION TYPE:\t{form}
{extra}FILED AS OF DATE:\t\t{filed}

{party}:

\tCOMPANY DATA:
\t\tCOMPANY CONFORMED NAME:\t\tEXAMPLE CORP
\t\tCENTRAL INDEX KEY:\t\t0009000001

\tBUSINESS ADDRESS:
\t\tSTATE:\t\t\t{state}
</SEC-HEADER>
"""
    bodies = [(form, text), *((kind, f"Text of {kind}") for kind in documents)]
    return parse_submission(header + "".join(document(kind, body) for kind, body in bodies))


def word_after_events(first: Filing, *others: Filing) -> int:
    """A filing's word once the other filings are known."""
    facts = [FilingFacts.of(one, label(one)) for one in (first, *others)]
    return label(first).word | state_bits(facts)[first.accession_number].bits


def admits(word: int) -> set[str]:
    return {f"{cell.role}/{cell.purpose}" for cell in TABLE.cells if cell.policy.admits(word)}


PERIOD = "CONFORMED PERIOD OF REPORT:\t{}\n"


def test_example_1_an_annual_report_with_a_part_iii_amendment() -> None:
    """0x08040021: amended, not superseded. The naive rule would give 0x080c0021 and hide the year's filing."""
    annual = submission("10-K", extra=PERIOD.format("20231231"), documents=("EX-31.1", "EX-32.1"))
    part_iii = submission(
        "10-K/A", extra=PERIOD.format("20231231"), accepted="20240429120000", documents=("EX-31.1",), number=2
    )
    assert word_after_events(annual, part_iii) == 0x0804_0021
    assert "sell_side/publish" in admits(0x0804_0021)
    restated = submission(
        "10-K/A", extra=PERIOD.format("20231231"), accepted="20240429120000", documents=("EX-32.1",), number=3
    )
    assert word_after_events(annual, part_iii, restated) == 0x080C_0021
    assert chunk_word(label(part_iii), part_iii, part_iii.documents[0], "Item 10. Directors") == 0x0800_1001
    assert label(restated).word == 0x0800_0021


def test_example_2_a_quarterly_report_not_to_be_relied_upon() -> None:
    """0x08300041: closed to publishing and investing, open to surveillance; the reason names the 8-K."""
    quarter = submission("10-Q", extra=PERIOD.format("20240331"), accepted="20240502163000")
    later = submission("10-Q", extra=PERIOD.format("20240930"), accepted="20241114163000", number=2)
    warning = submission(
        "8-K",
        extra="ITEM INFORMATION:\t\tNon-Reliance on Previously Issued Financial Statements or a Related Audit "
        "Report or Completed Interim Review\n",
        accepted="20241101170000",
        number=3,
    )
    word = word_after_events(quarter, later, warning)
    assert word == 0x0830_0041
    assert admits(word).isdisjoint({"sell_side/publish", "buy_side/invest"})
    assert "compliance/surveil" in admits(word)
    facts = [FilingFacts.of(one, label(one)) for one in (quarter, later, warning)]
    assert ("NON_RELIANCE", warning.accession_number) in state_bits(facts)[quarter.accession_number].causes
    invest = TABLE.get("buy_side", "invest")
    assert invest is not None
    assert [r.code for r in reasons(word, 0, invest.policy, 1)] == ["FORBIDDEN:NON_RELIANCE"]


def test_example_3_a_draft_registration_statement() -> None:
    """0x09008101, public at 09:30 Eastern on the session after its release, not at its acceptance."""
    html = '<html><p>Draft <ix:nonNumeric name="dei:EntityEmergingGrowthCompany" format="ixt:booleantrue">☒'
    draft = submission(
        "DRS/A",
        filed="20240806",
        accepted="20240806143000",
        extra="<PRIVATE-TO-PUBLIC>\n<PUBLIC-REL-DATE>20250401\n",
        text=html + "</ix:nonNumeric></p></html>",
    )
    said = label(draft)
    assert said.word == 0x0900_8101
    assert said.public_at == as_of_minutes(datetime(2025, 4, 2, 9, 30, tzinfo=EASTERN))
    assert said.public_at_source is PublicAtSource.RELEASE
    assert said.public_at > as_of_minutes(date(2024, 12, 1))
    assert admits(said.word) >= {"counsel/draft", "buy_side/invest"}
    assert admits(said.word).isdisjoint({"sell_side/publish", "retail_adviser/advise", "public/public_qa"})


MATRIX = "Board Diversity Matrix (As of April 1, 2024)\nPart I: Gender Identity | Female | Male"
AUDIT_FEES = "Fees billed by the independent registered public accounting firm for the fiscal years"


def test_example_4_a_proxy_statement_of_the_matrix_years() -> None:
    """0x08005202 for the passage with the matrix, 0x08001202 for its neighbours."""
    proxy = submission("DEF 14A", state="L2", filed="20240415", accepted="20240415080000")
    said = label(proxy)
    (document,) = proxy.documents
    assert chunk_word(said, proxy, document, MATRIX) == 0x0800_5202
    assert chunk_word(said, proxy, document, AUDIT_FEES) == 0x0800_1202
    assert admits(0x0800_5202) == {"dpo/dsar", "counsel/dsar"}
    assert "buy_side/invest" in admits(0x0800_1202)


@pytest.mark.parametrize(
    ("changes", "special"),
    [
        ({}, True),  # an unknown exchange may be Nasdaq
        ({"exchanges": ("Nasdaq Global Select Market",)}, True),
        ({"exchanges": ("NYSE",)}, False),
        ({"filed": date(2022, 8, 7)}, False),
        ({"filed": date(2022, 8, 8)}, True),
        ({"filed": date(2024, 12, 12)}, False),
        ({"filed": None, "accession_year": 2023}, True),
        ({"filed": None, "accession_year": 2021}, False),
        ({"filed": None}, True),  # an unknown date may be in the window
        ({"form": "10-K/A"}, True),  # Part III
        ({"form": "10-K"}, False),
    ],
)
def test_the_window_of_the_matrices(changes: dict[str, Any], special: bool) -> None:
    """Nasdaq issuers' proxy statements and Part III amendments while Rule 5606 applied; doubt closes."""
    given_facts = {"accession_number": "a", "form": "DEF 14A", "filed": date(2024, 4, 15)} | changes
    assert bool(label(Filing(**given_facts)).word & PolicyBit.PD_SPECIAL) is special


@pytest.mark.parametrize(
    "row",
    ["LGBTQ+ | 1", "Did Not Disclose Demographic Background | 2", "Two or More Races or Ethnicities | 0"],
)
def test_the_second_half_of_a_matrix_stays_special(row: str) -> None:
    """A table cut in two is known by its rows."""
    proxy = submission("DEF 14A", filed="20240415")
    assert chunk_word(label(proxy), proxy, proxy.documents[0], row) & PolicyBit.PD_SPECIAL


def test_example_5_an_insiders_report() -> None:
    """0x08002801: the reporting owner is a natural person, and the issuer's address decides where."""
    issuer = submission("4", party="ISSUER")
    owner = "REPORTING-OWNER:\n\tOWNER DATA:\n\t\tCENTRAL INDEX KEY:\t0009000002\n\tMAIL ADDRESS:\n\t\tSTATE:\tL2\n"
    text = f"<SEC-HEADER>\nACCESSION NUMBER: 0009999999-24-000001\nCONFORMED SUBMISSION TYPE: 4\n{owner}\nISSUER:\n"
    text += "COMPANY DATA:\nCENTRAL INDEX KEY: 0009000001\nBUSINESS ADDRESS:\nSTATE: NY\n</SEC-HEADER>\n"
    filing = parse_submission(text)
    assert filing.ciks == (9000002, 9000001)
    assert label(filing).word & ~QUARANTINE == label(issuer).word == 0x0800_2801
    assert admits(0x0800_2801) >= {"compliance/surveil", "buy_side/invest", "sell_side/publish", "dpo/dsar"}
    assert admits(0x0800_2801).isdisjoint({"public/public_qa", "retail_adviser/advise"})


def test_example_6_an_earnings_release() -> None:
    """0x080200c1: unaudited, furnished and material; the auditor may not use it."""
    items = "ITEM INFORMATION:\t\tResults of Operations and Financial Condition\nITEM INFORMATION:\t\t9.01\n"
    release = submission("8-K", extra=items, documents=("EX-99.1",))
    assert label(release).word == 0x0802_00C1
    assert "auditor/assure" not in admits(0x0802_00C1)


LETTER = QuarantineCode.LETTER_RELEASE_UNKNOWN
FILED = date(2024, 1, 2)


def saying(text: str, kind: str = "x") -> tuple[FilingDocument, ...]:
    return (FilingDocument(kind, text),)


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"form": None, "filed": FILED}, QuarantineCode.NO_FORM),
        ({"form": "10-X", "filed": FILED}, QuarantineCode.UNKNOWN_FORM),
        ({"form": "UPLOAD", "accepted": datetime(2024, 1, 2, tzinfo=UTC)}, LETTER),
        ({"form": "CORRESP", "filed": FILED}, LETTER),
        ({"form": "DRSLTR", "accession_year": 2024}, LETTER),
        ({"form": "DRS", "filed": FILED}, QuarantineCode.PRIVATE_RELEASE_UNKNOWN),
        ({"form": "10-K", "filed": FILED, "private_to_public": True}, QuarantineCode.PRIVATE_RELEASE_UNKNOWN),
        ({"form": "10-K"}, QuarantineCode.NO_TIME),
        ({"form": "424B4", "documents": saying("year ended May 1, 2020")}, QuarantineCode.NO_TIME),
        # a meeting of the past, the year a proxy looks back on, a date in a 6-K's text, another prospectus
        ({"form": "DEF 14A", "documents": saying("At the meeting held on May 7, 2022; year ended May 1, 2020")},
         QuarantineCode.NO_TIME),
        ({"form": "6-K", "documents": saying("FORM 6-K\nFICTION N.V.\n(Name of registrant)\nMay 7, 2023\n")},
         QuarantineCode.NO_TIME),
        ({"form": "424B5", "documents": saying("SUPPLEMENT\n(To prospectus dated May 7, 2023)")},
         QuarantineCode.NO_TIME),
        ({"form": "10-K", "filed": FILED, "documents": saying(" \n", "10-K")}, QuarantineCode.NO_TEXT),
    ],
)  # fmt: skip
def test_what_cannot_be_labelled_is_quarantined(facts: dict[str, Any], code: QuarantineCode) -> None:
    """Each missing fact has its own reason, and no policy admits the word."""
    documents = (FilingDocument("x", "text"),)
    said = label(Filing(**{"accession_number": "a", "documents": documents} | facts))
    assert said.quarantine is not None
    assert said.quarantine.code is code
    assert admits(said.word) == set()


def bits(**facts: Any) -> set[str]:
    return set(bit_names(label(Filing(**{"accession_number": "a", "business_codes": ("NY",)} | facts)).word))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        # T4: location codes are EDGAR's; a Delaware charter says nothing of where the business is
        ({"business_codes": ("L2",), "incorporation_codes": ("DE",)}, {"J_EU"}),
        ({"business_codes": ("CA",), "incorporation_codes": ("L2",)}, {"J_US", "J_EU"}),
        ({"business_codes": ("CA",), "incorporation_codes": ("E9",)}, {"J_US", "J_OTHER"}),
        ({"business_codes": (), "incorporation_codes": ("DE",)}, ANYWHERE),
        ({"business_codes": (), "address_countries": ("DE",)}, {"J_EU"}),
        ({"business_codes": ("NY", "")}, ANYWHERE),  # a co-registrant that states nothing
        # T7: co-registrants are united
        ({"business_codes": ("X0", "A6")}, {"J_UK", "J_CA"}),
    ],
)
def test_jurisdictions(facts: dict[str, Any], expected: set[str]) -> None:
    """Business addresses and foreign charters, over all registrants."""
    assert bits(form="D", **facts) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"form": "10-K405"}, {"FS_AUDITED"}),
        ({"form": "20-F"}, {"FS_AUDITED", "FPI"}),
        ({"form": "20-F/A", "documents": saying("", "EX-13.1")}, {"FS_AUDITED", "FPI"}),
        ({"form": "20-F/A", "documents": saying("", "EX-32")}, {"FPI"}),
        # A financial data schedule proves no statements, before section 906 or after
        ({"form": "10-K/A", "filed": date(1996, 1, 5), "documents": saying("", "EX-27")}, {"PD_COMP"}),
        ({"form": "10-K/A", "documents": saying("", "EX-27")}, {"PD_COMP"}),
        ({"form": "10-Q/A"}, {"FS_UNAUDITED"}),
        ({"form": "6-K"}, {"FURNISHED", "MATERIAL", "FPI"}),
        ({"form": "ARS"}, {"FURNISHED"}),
        ({"form": "8-K", "items": ("8.01", "9.01")}, set()),
        ({"form": "8-K", "items": ("7.01",)}, {"FURNISHED"}),
        ({"form": "8-K", "items": ("4.01",)}, {"MATERIAL"}),
        ({"form": "8-K", "items": ("5.02",)}, {"PD_COMP"}),
        # An 8-K that cannot be read may be any
        ({"form": "8-K"}, {"FURNISHED", "MATERIAL", "PD_COMP"}),
        ({"form": "8-K", "items": ("8.01", "99.1")}, {"FURNISHED", "MATERIAL", "PD_COMP"}),
        ({"form": "10-K", "items": ("2.02",)}, {"FS_AUDITED"}),  # items are an 8-K's
        ({"form": "f-1"}, {"OFFERING", "FPI"}),
        ({"form": "SC TO-T/A"}, {"PROXY_TENDER"}),
        # T5: both names of the same schedule
        ({"form": "SC 13D", "reporting_person_types": ("HC", "IN")}, {"OWNERSHIP", "PD_NATURAL"}),
        ({"form": "SCHEDULE 13D", "reporting_person_types": ("HC",)}, {"OWNERSHIP"}),
        ({"form": "144"}, {"PD_INSIDER", "PD_NATURAL"}),
        ({"form": "CT ORDER"}, {"CONF_TREAT"}),
        ({"form": "CORRESP"}, {"PRIV2PUB"}),
        ({"form": "DRS"}, {"PRIV2PUB", "OFFERING"}),
        ({"form": "485BPOS", "private_to_public": True}, {"PRIV2PUB", "OFFERING"}),
        ({"form": "10-Q", "filer_category": "Accelerated filer; Emerging growth company"}, {"FS_UNAUDITED", "EGC"}),
        ({"form": "10-Q", "filer_category": "Emerging growth company", "emerging_growth": False}, {"FS_UNAUDITED"}),
        # T7: the category is today's; before the JOBS Act there were no such companies
        ({"form": "10-Q", "filer_category": "Emerging growth company", "filed": date(2012, 4, 4)}, {"FS_UNAUDITED"}),
        ({"form": "10-Q", "sics": ("6770",)}, {"FS_UNAUDITED", "SHELL"}),
        ({"form": "10-Q", "shell_company": True}, {"FS_UNAUDITED", "SHELL"}),
    ],
)  # fmt: skip
def test_static_bits(facts: dict[str, Any], expected: set[str]) -> None:
    """One rule at a time, over a filer in the United States."""
    given_facts = {"filed": date(2015, 1, 5), "exchanges": ("NYSE",)} | facts
    assert bits(**given_facts) == expected | {"J_US"}


def test_every_set_bit_has_its_cause() -> None:
    """Bit, EDGAR field and rule, for each bit of the word."""
    said = label(submission("8-K", extra="ITEM INFORMATION:\t\t2.02\n"))
    assert tuple(cause.bit for cause in said.causes) == bit_names(said.word)
    assert ("FURNISHED", "ITEM INFORMATION") in {(cause.bit, cause.field) for cause in said.causes}
    assert all(cause.rule for cause in said.causes)


@given(FILINGS, TEXTS)
def test_any_filing_has_a_closed_label(filing: Filing, text: str) -> None:
    """Labelling never fails, always states where and in which vocabulary, and quarantine is never admitted."""
    said = label(filing)
    assert said.word & JURISDICTIONS
    assert said.word & 7 << 27 == 1 << 27
    assert 0 <= said.public_at <= NEVER
    assert bool(said.word & QUARANTINE) is (said.quarantine is not None)
    assert (said.public_at == NEVER) is (said.public_at_source is PublicAtSource.UNKNOWN)
    words = {said.word} | {chunk_word(said, filing, document, text) for document in filing.documents}
    for word in words:
        assert word & ~said.word == 0
        if said.quarantine:
            assert admits(word) == set()
    assert FilingFacts.of(filing, said).since <= said.public_at


@pytest.fixture(scope="module")
def real(shared_data: Path) -> dict[str, tuple[str | None, Label]]:
    """Form and label of every real filing."""
    found = {}
    for outcome in read_filings(shared_data / "edgar"):
        if outcome.filing is not None:
            found[outcome.filing.source_id] = (outcome.filing.form, label(outcome.filing))
    return found


def test_few_real_filings_are_quarantined(real: dict[str, tuple[str | None, Label]]) -> None:
    """Except for letters at most one in a hundred, each with its reason."""
    codes = Counter(said.quarantine.code for _, said in real.values() if said.quarantine)
    letters = codes.pop(LETTER)
    others = len(real) - letters
    assert letters == sum(form in {"UPLOAD", "CORRESP", "SEC STAFF LETTER"} for form, _ in real.values())
    assert codes.keys() <= {
        QuarantineCode.NO_FORM,
        QuarantineCode.NO_TIME,
        QuarantineCode.PRIVATE_RELEASE_UNKNOWN,
    }
    assert codes.total() <= 0.01 * others


def test_the_evidence_of_real_questions_stays_searchable(
    shared_data: Path, real: dict[str, tuple[str | None, Label]]
) -> None:
    """At least 95 % of the questions whose evidence is in the corpus keep all of it."""
    kept = []
    with gzip.open(shared_data / "edgar" / "qa.jsonl.gz", "rt") as lines:
        for line in lines:
            evidence = {one.get("doc_id") for one in json.loads(line).get("evidence") or []}
            if evidence and evidence <= real.keys():
                kept.append(all(real[one][1].quarantine is None for one in evidence))
    assert len(kept) >= 160
    assert sum(kept) >= 0.95 * len(kept)
