"""Headers in the folder of the rows: the header's facts win, a contradiction closes the filing, and nothing is lost."""

from __future__ import annotations

import gzip
import json
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from carag.policy import EASTERN, QUARANTINE, bit_names
from carag.profiles.edgar.reading.readers import ReadKind, read_filings
from carag.profiles.edgar.reading.submission import parse_submission
from carag.profiles.edgar.rules.labeller import label
from carag.profiles.edgar.rules.rules import QuarantineCode
from tests.profiles.edgar.reading.headers import NUMBER, document, header

if TYPE_CHECKING:
    from pathlib import Path

    from carag.profiles.edgar.facts.filing import Filing

HEADER = header("10-Q", "20240331")
SUBMISSIONS_JSON = ["form", "filed", "accepted", "cik", "period"]


def row(**changes: Any) -> dict[str, Any]:
    """A submissions row made today: the company has since moved to California."""
    return {
        "id": NUMBER,
        "accession": NUMBER,
        "cik": 9000001,
        "form": "10-Q",
        "filed": "2024-05-02",
        "period": "2024-03-31",
        "accepted": "2024-05-02T20:31:05.000Z",
        "business_state": "CA",
        "state_of_inc": "DE",
        "sic": "7372",
        "exchanges": ["NYSE"],
        "meta_src": {
            "submissions_json": SUBMISSIONS_JSON,
            "submissions_json_company(as of crawl)": ["business_state", "state_of_inc", "sic", "exchanges"],
        },
        "text": "Item 2. Management's discussion",
    } | changes


def read(folder: Path, *rows: dict[str, Any], headers: list[Any] | None = None) -> list[Filing]:
    (folder / "filings.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    if headers is not None:
        lines = (
            one if isinstance(one, str) else json.dumps({"accession": NUMBER, "header": one[0]})
            for one in headers
        )
        (folder / "headers.jsonl").write_text("\n".join(lines) + "\n")
    return [one.filing for one in read_filings(folder) if one.filing is not None]


def test_the_headers_facts_are_those_of_the_filing(tmp_path: Path) -> None:
    """T1, T7: its time is exact, its address and industry of the day; the row keeps what it alone has."""
    (alone,) = read(tmp_path, row())
    assert alone.business_codes == ("CA",)
    assert alone.accepted == datetime(2024, 5, 2, 20, 31, 5, tzinfo=EASTERN)
    (filing,) = read(tmp_path, row(), headers=[(HEADER,)])
    assert filing.business_codes == filing.incorporation_codes == ("L2",)
    assert filing.sics == ("3674",)
    assert filing.accepted == datetime(2024, 5, 2, 16, 31, 5, tzinfo=EASTERN)
    assert (filing.exchanges, filing.documents, filing.source_id) == (
        ("NYSE",), alone.documents, alone.source_id,
    )  # fmt: skip
    assert filing.party_roles == ("FILER",)
    assert filing.provenance["business_codes"] == "SGML header"
    assert filing.provenance["exchanges"] == "submissions_json_company(as of crawl)"
    assert filing.disagreements == ()
    assert label(filing).quarantine is None
    assert bit_names(label(filing).word) == ("J_EU", "FS_UNAUDITED")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"form": "10-K"}, "form"),
        ({"filed": "2024-05-06"}, "filed"),
        ({"accepted": "2024-05-02T18:31:05.000Z"}, "accepted"),
        ({"period": "2023-12-31"}, "period"),
        ({"cik": 9000002}, "ciks"),
        ({"dei": {"DocumentType": "10-K", "AmendmentFlag": "false"}}, "form"),
        ({"dei": {"EntityAddressCountry": "GB"}}, "business"),
        # a copy of the header that differs from it
        (
            {"form": "10-K", "meta_src": {"sgml_header": ["form"], "submissions_json": SUBMISSIONS_JSON[1:]}},
            "form",
        ),
    ],
)
def test_a_contradiction_closes_the_filing_and_shows_both_values(
    tmp_path: Path, change: dict[str, Any], field: str
) -> None:
    """No policy admits it, and its quarantine says what each source states."""
    (filing,) = read(tmp_path, row(**change), headers=[(HEADER,)])
    (found,) = filing.disagreements
    assert found.field == field
    said = label(filing)
    assert said.word & QUARANTINE
    assert said.quarantine is not None
    assert said.quarantine.code is QuarantineCode.FACTS_DISAGREE
    assert said.quarantine.text == found.text
    assert found.first in said.quarantine.text
    assert found.second in said.quarantine.text


def test_a_copied_header_stands_for_one_that_is_not_at_hand(tmp_path: Path) -> None:
    """The row's own copy contradicts the cover; without a second source there is no contradiction."""
    copied = row(meta_src={"sgml_header": ["form", "cik", "period"]})
    cover = {"dei": {"DocumentType": "10-K", "AmendmentFlag": "false"}}
    (filing,) = read(tmp_path, copied | cover)
    assert [one.field for one in filing.disagreements] == ["form"]
    (filing,) = read(tmp_path, copied)
    assert filing.disagreements == ()


def test_two_headers_of_one_filing_must_agree(tmp_path: Path) -> None:
    """The same header twice is one; another one is a contradiction."""
    (filing,) = read(tmp_path, row(), headers=[(HEADER,), (HEADER,)])
    assert filing.disagreements == ()
    other = HEADER.replace("\t10-Q", "\t10-K")
    (filing,) = read(tmp_path, row(), headers=[(HEADER,), (other,)])
    assert [one.field for one in filing.disagreements] == ["form"]


def test_a_header_that_contradicts_itself_closes_its_row(tmp_path: Path) -> None:
    """The row agrees with one of the two values, and cannot say which is right."""
    twice = HEADER.replace("FILER:", "FILED AS OF DATE:\t\t20240506\n\nFILER:")
    (filing,) = read(tmp_path, row(), headers=[(twice,)])
    assert [(one.field, one.first, one.second) for one in filing.disagreements] == [
        ("filed", "20240502", "20240506")
    ]


def test_a_header_counts_for_the_number_it_states(tmp_path: Path) -> None:
    """If it is kept under another filing's number, that is reported, and does not touch that filing."""
    other = HEADER.replace("000007", "000008").replace("\t10-Q", "\tUPLOAD")
    (filing,) = read(tmp_path, row(), headers=[(other,)])
    assert (filing.form, filing.disagreements) == ("10-Q", ())
    (told,) = [one.reason for one in read_filings(tmp_path) if one.kind is ReadKind.SKIPPED]
    assert f"line 1: the key is {NUMBER!r}, but the header states 0009999999-24-000008" in told


def test_malformed_headers_are_told_and_the_rows_are_read(tmp_path: Path) -> None:
    """Line by line, with the reason; a sound header among them still counts."""
    broken = ["{", "[]", '{"accession": "x"}', '{"header": 5}', '{"header": "FILER:"}', "[" * 100_000]
    no_number = json.dumps({"header": "CONFORMED SUBMISSION TYPE:\t10-Q\n"})
    (filing,) = read(tmp_path, row(), headers=[*broken, no_number, (HEADER,)])
    assert filing.business_codes == ("L2",)
    (told,) = [one.reason for one in read_filings(tmp_path) if one.kind is ReadKind.SKIPPED]
    assert told.startswith("headers without their filings: 1 compared with this folder's rows; line 1: ")
    assert all(f"line {number}: " in told for number in range(1, 8))
    (tmp_path / "headers.jsonl").unlink()
    (tmp_path / "headers-2.jsonl.gz").write_bytes(
        gzip.compress(json.dumps({"header": HEADER}).encode() * 99)[:-9]
    )
    (told,) = [one.reason for one in read_filings(tmp_path) if one.kind is ReadKind.SKIPPED]
    assert "unreadable from here on" in told


def test_headers_belong_to_their_own_directory(tmp_path: Path) -> None:
    """They count for a file in their folder that is read alone, but not for folders below or above."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    read(tmp_path / "a", row(), headers=[(HEADER,)])
    read(tmp_path / "b", row())
    places = [one.filing.business_codes for one in read_filings(tmp_path) if one.filing]
    assert places == [("L2",), ("CA",)]
    (alone,) = read_filings(tmp_path / "a" / "filings.jsonl")
    assert alone.filing is not None
    assert alone.filing.business_codes == ("L2",)


def test_a_header_that_was_cut_leaves_the_row_what_it_does_not_state(tmp_path: Path) -> None:
    """Of a header cut before its address, the row's location stands."""
    cut = HEADER[: HEADER.index("\t\tSTATE OF INCORPORATION")]
    (filing,) = read(tmp_path, row(), headers=[(cut,)])
    assert (filing.business_codes, filing.incorporation_codes) == (("CA",), ("DE",))
    assert filing.accepted == datetime(2024, 5, 2, 16, 31, 5, tzinfo=EASTERN)


EIGHT_K = HEADER.replace("10-Q", "8-K").replace(
    "FILED AS OF",
    "ITEM INFORMATION:\t\t\nITEM INFORMATION:\t\tFinancial statements and exhibits\nFILED AS OF",
)


@pytest.mark.parametrize(
    ("items", "text", "expected"),
    [
        (["2.02", "9.01"], "no heading", ("2.02", "9.01")),
        (None, "no heading", ("9.01", "")),
        (None, "Item 12. Results\nItem 7. Exhibits", ("2.02", "9.01")),
    ],
)
def test_t8_an_item_the_header_does_not_name(
    tmp_path: Path, items: list[str] | None, text: str, expected: tuple[str, ...]
) -> None:
    """Until 2004 the header prints a blank line for item 12: the row or the headings name it, or it may be any."""
    old = EIGHT_K.replace("20240502", "20040714").replace("20240331", "20040714").replace("-24-", "-04-")
    number = NUMBER.replace("-24-", "-04-")
    changes = {"accession": number, "form": "8-K", "filed": "2004-07-14", "period": "2004-07-14"}
    meta = {"submissions_json": [*SUBMISSIONS_JSON, "items"]}
    said = row(**changes, accepted=None, items=items, text=text, meta_src=meta)
    (filing,) = read(tmp_path, said, headers=[(old,)])
    assert filing.items == expected
    assert filing.disagreements == ()
    assert {"FURNISHED", "MATERIAL"} <= set(bit_names(label(filing).word))
    submission = parse_submission(old + document("8-K", text))
    assert {"FURNISHED", "MATERIAL"} <= set(bit_names(label(submission).word))


def cover(**facts: str) -> str:
    tags = "".join(
        f'<p><ix:nonNumeric name="dei:{name}">{value}</ix:nonNumeric></p>' for name, value in facts.items()
    )
    return document("10-Q", f"<html><body>{tags}</body></html>")


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"DocumentType": "10-Q", "AmendmentFlag": "false", "DocumentPeriodEndDate": "March 31, 2024"}, None),
        ({"EntityCentralIndexKey": "0009000001", "EntityAddressCountry": "IE"}, None),
        ({"DocumentType": "10-Q", "AmendmentFlag": "true"}, "form"),
        ({"DocumentPeriodEndDate": "June 30, 2024"}, "period"),
        ({"EntityCentralIndexKey": "0009000002"}, "ciks"),
        ({"EntityAddressStateOrProvince": "DE"}, "business"),  # Delaware, not Germany (T4)
    ],
)
def test_a_submission_is_compared_with_the_cover_inside_it(facts: dict[str, str], field: str | None) -> None:
    """The header and the primary document's own tags; what the exhibits tag is another matter."""
    filing = parse_submission(HEADER + cover(**facts))
    assert [one.field for one in filing.disagreements] == ([field] if field else [])
    code = label(filing).quarantine
    assert (code is not None and code.code is QuarantineCode.FACTS_DISAGREE) is (field is not None)
    later = parse_submission(HEADER + cover(DocumentType="10-Q") + cover(**facts))
    assert later.disagreements == ()


def test_t7_eight_co_registrants_are_united(tmp_path: Path) -> None:
    """A row describes one of them; the header's other seven add their places and CIKs."""
    block = HEADER[HEADER.index("FILER:") : HEADER.index("</SEC-HEADER>")]
    codes = ["L2", "NY", "X0", "A6", "E9", "2M", "DE", "V8"]
    blocks = "".join(
        block.replace("0009000001", f"000900000{n}").replace("STATE:\t\t\tL2", f"STATE:\t\t\t{code}")
        for n, code in enumerate(codes, start=1)
    )
    header = HEADER[: HEADER.index("FILER:")] + blocks + "</SEC-HEADER>\n"
    (filing,) = read(tmp_path, row(cik=9000005), headers=[(header,)])
    assert filing.ciks == tuple(range(9000001, 9000009))
    assert filing.business_codes == tuple(codes)
    assert filing.disagreements == ()
    assert {"J_US", "J_EU", "J_UK", "J_CA", "J_OTHER"} < set(bit_names(label(filing).word))


def test_t3_a_draft_is_public_at_the_release_the_header_states(tmp_path: Path) -> None:
    """The row's acceptance is months early; the header knows that it was private, and until when."""
    draft = HEADER.replace("\t10-Q", "\tDRS/A").replace(
        "ACCESSION NUMBER", "<PRIVATE-TO-PUBLIC>\n<PUBLIC-REL-DATE>20250401\nACCESSION NUMBER"
    )
    (filing,) = read(tmp_path, row(form="DRS/A"), headers=[(draft,)])
    assert filing.private_to_public
    assert filing.released == date(2025, 4, 1)
    assert label(filing).public_at_source == "release"
    assert label(filing).quarantine is None
