"""The SGML header in all its spellings, and the submissions that follow it."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from datetime import date, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import CorruptFile
from carag.policy import EASTERN
from carag.profiles.edgar.facts.publication import eastern
from carag.profiles.edgar.reading.header import parse_header
from carag.profiles.edgar.reading.submission import parse_submission
from tests.profiles.edgar.reading import headers

if TYPE_CHECKING:
    from pathlib import Path

HEADER = """<SEC-HEADER>0009999999-24-000007.hdr.sgml : 20240502
<ACCEPTANCE-DATETIME>20240502163105
ACCESSION NUMBER:\t\t0009999999-24-000007
CONFORMED SUBMISSION TYPE:\t8-K
PUBLIC DOCUMENT COUNT:\t\t14
CONFORMED PERIOD OF REPORT:\t20240501
ITEM INFORMATION:\t\tResults of Operations and Financial Condition
ITEM INFORMATION:\t\tDeparture of Directors or Certain Officers; Election of Directors: Arrangements
ITEM INFORMATION:\t\tFinancial Statements and Exhibits
FILED AS OF DATE:\t\t20240502
DATE AS OF CHANGE:\t\t20240502

FILER:

\tCOMPANY DATA:\t
\t\tCOMPANY CONFORMED NAME:\t\t\tEXAMPLE HOLDINGS PLC
\t\tCENTRAL INDEX KEY:\t\t\t0009000001
\t\tSTANDARD INDUSTRIAL CLASSIFICATION:\tSEMICONDUCTORS & RELATED DEVICES [3674]
\t\tIRS NUMBER:\t\t\t\t000000000
\t\tSTATE OF INCORPORATION:\t\t\tL2

\tFILING VALUES:
\t\tFORM TYPE:\t\t8-K
\t\tSEC FILE NUMBER:\t001-99999

\tBUSINESS ADDRESS:\t
\t\tSTREET 1:\t\t1 EXAMPLE STREET
\t\tSTATE:\t\t\tL2

\tMAIL ADDRESS:\t
\t\tSTREET 1:\t\tPO BOX 1
\t\tSTATE:\t\t\tNY

\tFORMER COMPANY:\t
\t\tFORMER CONFORMED NAME:\tEXAMPLE OLD INC
\t\tDATE OF NAME CHANGE:\t20100101
</SEC-HEADER>
"""

FEED = """<SUBMISSION>
<ACCESSION-NUMBER>0009999999-24-000007
<TYPE>8-K
<PUBLIC-DOCUMENT-COUNT>14
<PERIOD>20240501
<ITEMS>2.02
<ITEMS>5.02
<ITEMS>9.01
<FILING-DATE>20240502
<ACCEPTANCE-DATETIME>20240502163105
<FILER>
<COMPANY-DATA>
<CONFORMED-NAME>EXAMPLE HOLDINGS PLC
<CIK>0009000001
<ASSIGNED-SIC>3674
<STATE-OF-INCORPORATION>L2
</COMPANY-DATA>
<FILING-VALUES>
<FORM-TYPE>8-K
<FILE-NUMBER>001-99999
</FILING-VALUES>
<BUSINESS-ADDRESS>
<STATE>L2
</BUSINESS-ADDRESS>
<MAIL-ADDRESS>
<STATE>NY
</MAIL-ADDRESS>
</FILER>
"""


def submission(*documents: str) -> str:
    return HEADER + "".join(documents) + "</SEC-DOCUMENT>\n"


def document(kind: str, text: str, sequence: int = 1) -> str:
    return headers.document(kind, text, f"<SEQUENCE>{sequence}\n<DESCRIPTION>{kind} TEXT\n")


def facts(header: str) -> dict[str, object]:
    filing = parse_header(header).filing
    names = (
        "accession_number", "form", "company", "ciks", "filed", "period", "accepted", "items", "business_codes",
        "incorporation_codes", "sics", "party_roles", "file_numbers",
    )  # fmt: skip
    return {name: getattr(filing, name) for name in names}


EXPECTED = {
    "accession_number": "0009999999-24-000007",
    "form": "8-K",
    "company": "EXAMPLE HOLDINGS PLC",
    "ciks": (9000001,),
    "filed": date(2024, 5, 2),
    "period": date(2024, 5, 1),
    "accepted": datetime(2024, 5, 2, 16, 31, 5, tzinfo=EASTERN),
    "items": ("2.02", "5.02", "9.01"),
    "business_codes": ("L2",),
    "incorporation_codes": ("L2",),
    "sics": ("3674",),
    "party_roles": ("FILER",),
    "file_numbers": ("001-99999",),
}


@pytest.mark.parametrize(
    "respelled",
    [
        HEADER,
        HEADER.replace("\n", "\r\n"),
        HEADER.replace("\n", "\r"),
        HEADER.replace("\n", "\n\n"),
        HEADER.replace("\t", "    "),
        "\n".join(line.strip() for line in HEADER.splitlines()),
        HEADER.replace("ACCEPTANCE-DATETIME", "acceptance-datetime").replace("SEC-HEADER", "sec-header"),
        HEADER.replace("STATE OF INCORPORATION", "STATE\nOF INCORPORATION").replace(
            "FILED AS OF", "FILED\nAS OF"
        ),
        HEADER.replace("PUBLIC DOCUMENT", "PUBLIC\nDOCUMENT").replace(
            "BUSINESS ADDRESS", "BUSINESS\nADDRESS"
        ),
        HEADER.replace("& RELATED DEVICES", "& RELATED\nDEVICES"),
        HEADER.replace("CONFORMED SUBMISSION TYPE:\t8-K\n", ""),  # then FORM TYPE says it
        HEADER.replace("SEC-HEADER", "IMS-HEADER"),
        "-----BEGIN PRIVACY-ENHANCED MESSAGE-----\nProc-Type: 2001,MIC-CLEAR\n\n" + HEADER,
        FEED,
    ],
    ids=[
        "as filed", "CRLF", "CR", "blank lines", "spaces", "no indentation", "lower-case tags", "wrapped labels",
        "wrapped before a field", "wrapped value", "form in filing values", "IMS", "PEM", "feed",
    ],
)  # fmt: skip
def test_every_spelling_of_a_header_states_the_same_facts(respelled: str) -> None:
    """Line ends, indentation, case, wrapping and the feed's tags change nothing."""
    assert facts(respelled) == EXPECTED


@given(st.integers(0, len(HEADER)))
def test_a_truncated_header_states_less_but_nothing_else(end: int) -> None:
    """Cut anywhere, a header gives a prefix of the facts or an error naming what is missing."""
    if ".hdr.sgml : 20240502" not in HEADER[:end]:
        with pytest.raises(CorruptFile, match="ACCESSION NUMBER"):
            facts(HEADER[:end])
        return
    found = facts(HEADER[:end])
    for name in ("accession_number", "ciks", "filed", "period", "accepted", "sics"):
        assert found[name] in (EXPECTED[name], (), None, ""), name


def test_the_mailing_address_is_no_business_address() -> None:
    """Only BUSINESS ADDRESS says where a filer is."""
    without = HEADER.replace("\t\tSTATE:\t\t\tL2\n", "")
    assert parse_header(without).filing.business_codes == ()
    silent = without.replace("\t\tSTATE OF INCORPORATION:\t\t\tL2\n", "")
    assert parse_header(silent).filing.business_codes == ("",)


def test_co_registrants_are_united() -> None:
    """Each FILER block adds its CIK, location and industry."""
    second = HEADER[HEADER.index("FILER:") : HEADER.index("</SEC-HEADER>")]
    second = second.replace("0009000001", "0009000002").replace("\tL2", "\tCA").replace("[3674]", "[6770]")
    filing = parse_header(HEADER.replace("</SEC-HEADER>", second + "</SEC-HEADER>")).filing
    assert filing.ciks == (9000001, 9000002)
    assert filing.business_codes == ("L2", "CA")
    assert filing.incorporation_codes == ("L2", "CA")
    assert filing.sics == ("3674", "6770")


def test_the_exchange_that_files_a_delisting_is_not_delisted() -> None:
    """FILED BY adds no CIK; SUBJECT COMPANY does."""
    by = HEADER[HEADER.index("FILER:") : HEADER.index("</SEC-HEADER>")]
    by = by.replace("FILER:", "FILED BY:").replace("0009000001", "0009000009")
    filing = parse_header(HEADER.replace("FILER:", "SUBJECT COMPANY:").replace("</SEC-HEADER>", by)).filing
    assert filing.ciks == (9000001,)
    assert filing.party_roles == ("SUBJECT COMPANY", "FILED BY")


OWNER = "REPORTING-OWNER:\n\n\tOWNER DATA:\n\t\tCENTRAL INDEX KEY:\t0009000009\n"
BIDDER = "FILED BY:\n\n\tCOMPANY DATA:\n\t\tCENTRAL INDEX KEY:\t0009000009\n"
UNNAMED = "FILER:\n\n\tCOMPANY DATA:\n\t\tCOMPANY CONFORMED NAME:\tCUT OFF\n"


@pytest.mark.parametrize(
    ("form", "first", "second", "about"),
    [
        ("4", "ISSUER:", OWNER, (9000001, 9000009)),
        ("SC 13D", "SUBJECT COMPANY:", BIDDER, (9000001, 9000009)),
        ("SC TO-T", "SUBJECT COMPANY:", BIDDER, (9000001, 9000009)),
        ("25-NSE", "SUBJECT COMPANY:", BIDDER, (9000001,)),
        ("8-K", "FILER:", UNNAMED, (0, 9000001)),
        ("8-K", "FILER:", "", (9000001,)),
    ],
)
def test_a_filing_is_about_everybody_its_header_names(
    form: str, first: str, second: str, about: tuple[int, ...]
) -> None:
    """Owner and bidder too, but not the exchange that strikes a security; a party without a CIK is 0."""
    text = HEADER.replace("TYPE:\t8-K", f"TYPE:\t{form}").replace("FILER:", first)
    filing = parse_header(text.replace("</SEC-HEADER>", f"{second}</SEC-HEADER>")).filing
    assert (filing.form, filing.subjects) == (form, about)


def test_owner_blocks_have_one_name() -> None:
    """Old headers write REPORTING OWNER, new ones REPORTING-OWNER."""
    for spelled in ("REPORTING OWNER", "REPORTING-OWNER"):
        filing = parse_header(
            HEADER.replace("FILER:", f"{spelled}:").replace("COMPANY DATA", "OWNER DATA")
        ).filing
        assert filing.party_roles == ("REPORTING-OWNER",)
        assert filing.ciks == (9000001,)


def test_a_release_is_the_stated_date_or_the_date_of_the_header() -> None:
    """For a private filing, a header written after the filing date gives the latest time of release."""
    private = HEADER.replace("ACCESSION NUMBER:", "<PRIVATE-TO-PUBLIC>\nACCESSION NUMBER:")
    assert parse_header(private).filing.private_to_public
    assert (
        parse_header(private).filing.released is None
    )  # the header's date is the filing date: it tells nothing
    later = private.replace("hdr.sgml : 20240502", "hdr.sgml : 20240614")
    assert parse_header(later).filing.released == date(2024, 6, 14)
    stated = later.replace("FILED AS OF", "PUBLIC-REL-DATE: 20240610\nFILED AS OF")
    assert parse_header(stated).filing.released == date(2024, 6, 10)
    public = HEADER.replace("hdr.sgml : 20240502", "hdr.sgml : 20240614")
    assert parse_header(public).filing.released is None


def test_the_repeated_hour_is_the_second() -> None:
    """When clocks go back, the later reading is the restrictive one."""
    moment = eastern("20241103013000")
    assert moment is not None
    assert moment.utcoffset() == datetime(2024, 12, 1, tzinfo=EASTERN).utcoffset()


def test_documents_keep_order_type_and_text() -> None:
    """Prose becomes text; graphics, archives and XBRL keep their place without one."""
    html = "<html><body><p>Item 2.02</p><table><tr><td>Sales<td>5</tr></table></body></html>"
    filing = parse_submission(
        submission(
            document("8-K", html),
            document("EX-99.1", "<PAGE>\nPlain release\n<TABLE>\n<S>  <C>\nSales   5\n</TABLE>", 2),
            document("GRAPHIC", "begin 644 logo.jpg\nM_]C_\nend", 3),
            document("EX-32.1", "begin 644 sneaky\nM_]C_\nend", 4),
            document("EX-101.INS", "<XBRL>\n<?xml version='1.0'?><x>5</x>\n</XBRL>", 5),
        )
    )
    assert [(one.type, one.sequence, one.text) for one in filing.documents] == [
        ("8-K", 1, "Item 2.02\n\nSales | 5"),
        ("EX-99.1", 2, "Plain release\n\n  \nSales   5".replace("\n  \n", "\n\n").replace("\n\n\n", "\n\n")),
        ("GRAPHIC", 3, ""),
        ("EX-32.1", 4, ""),
        ("EX-101.INS", 5, ""),
    ]
    assert filing.documents[0].description == "8-K TEXT"


def test_an_ownership_form_in_xml_is_readable() -> None:
    """The primary document of Forms 3-5 and Schedule 13 is XML, and is the filing."""
    header = HEADER.replace("8-K", "SCHEDULE 13G")
    xml = "<XML>\n<?xml version='1.0'?><f><typeOfReportingPerson>IN</typeOfReportingPerson></f>\n</XML>"
    filing = parse_submission(header + document("SCHEDULE 13G", xml))
    assert filing.documents[0].text == "typeOfReportingPerson: IN"
    assert filing.reporting_person_types == ("IN",)


def test_cover_facts_are_read_and_contradictions_stay_unknown() -> None:
    """Inline XBRL says what kind of company files; a value and its opposite leave it unknown."""
    fact = '<ix:nonNumeric name="dei:{}" format="ixt:{}">x</ix:nonNumeric>'
    html = "<html><body>" + fact.format("EntityEmergingGrowthCompany", "booleantrue")
    html += fact.format("EntityShellCompany", "booleantrue") + fact.format(
        "EntityShellCompany", "booleanfalse"
    )
    html += '<ix:nonNumeric name="dei:SecurityExchangeName">NASDAQ</ix:nonNumeric></body></html>'
    filing = parse_submission(submission(document("8-K", html)))
    assert filing.emerging_growth is True
    assert filing.shell_company is None
    assert filing.exchanges == ("NASDAQ",)


def test_items_missing_in_the_header_are_read_from_the_headings() -> None:
    """Before ITEM INFORMATION existed, only the text tells."""
    header = "\n".join(line for line in HEADER.splitlines() if "ITEM INFORMATION" not in line).replace(
        "2024", "1999"
    )
    filing = parse_submission(header + "\n" + document("8-K", "Item 4. Changes in Certifying Accountant\n"))
    assert filing.items == ("4.01",)
    assert filing.provenance["items"] == "headings in the text"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (submission(document("8-K", "text")[:-30]), "ends inside a document"),
        (submission("</DOCUMENT>\n"), "has no partner"),
        (submission(document("8-K", "<DOCUMENT>")), "has no partner"),
        (submission(document("8-K", "a")) + submission(document("8-K", "b")), "several submissions"),
        ("<SEC-HEADER>\nFILER:\n" + document("8-K", "a"), "neither ACCESSION NUMBER nor"),
    ],
)
def test_a_damaged_submission_is_refused(text: str, wanted: str) -> None:
    """A document of another filing, or half of one, is never labelled with this header."""
    with pytest.raises(CorruptFile, match=wanted):
        parse_submission(text)


def test_all_real_headers_parse(shared_data: Path) -> None:
    """Every complete header gives accession, form, filing date and CIK; the cut ones too, as far as they go."""
    counts: Counter[str] = Counter()
    others = []
    with gzip.open(shared_data / "edgar" / "headers.jsonl.gz", "rt") as lines:
        for line in lines:
            row = json.loads(line)
            filing = parse_header(row["header"]).filing
            counts["headers"] += 1
            counts["complete"] += row["complete"]
            stated = bool(filing.accession_number and filing.form and filing.filed and filing.ciks)
            counts["stated"] += stated
            counts["located"] += bool(filing.business_codes)
            if filing.accession_number != row["accession"]:
                others.append(filing.form)
    assert counts["stated"] == counts["headers"] >= 3000
    assert counts["located"] == counts["headers"]
    assert others == ["UPLOAD", "UPLOAD"]  # two rows carry the header of a staff letter, not their own
