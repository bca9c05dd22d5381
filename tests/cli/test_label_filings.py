"""``carag policy label``: one JSON object for each filing, from any kind of source."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from carag.cli import Exit, _label_filings
from carag.cli.app import run
from carag.policy import QUARANTINE, VERSION_WORD, bits_of

if TYPE_CHECKING:
    from pathlib import Path

HEADER = """<SEC-HEADER>{accession}.hdr.sgml : 20240315
<ACCEPTANCE-DATETIME>20240315161500
ACCESSION NUMBER:\t\t{accession}
CONFORMED SUBMISSION TYPE:\t{form}
CONFORMED PERIOD OF REPORT:\t20231231
FILED AS OF DATE:\t\t20240315

FILER:

\tCOMPANY DATA:
\t\tCENTRAL INDEX KEY:\t\t0009000001

\tBUSINESS ADDRESS:
\t\tSTATE:\t\t\tNY
</SEC-HEADER>
"""
MIXED = "Item 2.02 Results\n{}\nItem 5.02 Officers\n{}\n".format(
    "Sales were up. " * 80, "Ms. Doe has resigned. " * 60
)
ROW = {"accession": "0009999999-24-000009", "form": "8-K", "filed": "2024-03-15", "business_state": "NY"}


def header(form: str, number: int) -> str:
    return HEADER.format(form=form, accession=f"0009999999-24-{number:06}")


def labelled(
    path: Path, capsys: pytest.CaptureFixture[str], exit_code: Exit = Exit.OK
) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run(["policy", "label", str(path), "--json"]) == exit_code
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def document(kind: str, text: str) -> str:
    return f"<DOCUMENT>\n<TYPE>{kind}\n<TEXT>\n{text}\n</TEXT>\n</DOCUMENT>\n"


def test_example_1_over_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A 10-K and its Part III amendment: the state bit, and the accession that causes it."""
    (tmp_path / "a.txt").write_text(header("10-K", 1) + document("10-K", "Item 1") + document("EX-32", "x"))
    (tmp_path / "b.txt").write_text(header("10-K/A", 2) + document("10-K/A", "Part III"))
    annual, amendment = labelled(tmp_path, capsys)
    assert (annual["accession"], annual["word"]) == ("0009999999-24-000001", 0x0804_0021)
    assert annual["bits"] == ["J_US", "FS_AUDITED", "AMENDED"]
    assert {"bit": "AMENDED", "accession": "0009999999-24-000002"} in annual["causes"]
    assert amendment["bits"][:2] == ["J_US", "PD_COMP"]
    assert annual["quarantined"] is None


def test_passages_are_told_where_words_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every passage, by document and offset, of a mixed report; none of a report of one kind."""
    rows = [ROW | {"items": ["2.02", "5.02"], "text": MIXED}, ROW | {"form": "10-Q", "text": MIXED}]
    (tmp_path / "filings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    mixed, plain = labelled(tmp_path / "filings.jsonl", capsys)
    assert {tuple(one["bits"]) for one in mixed["chunks"]} == {
        ("J_US", "FS_UNAUDITED", "FURNISHED", "MATERIAL"),
        ("J_US", "PD_COMP"),
    }
    assert all(
        MIXED[one["start"] : one["end"]].strip() and one["document"] == "8-K" for one in mixed["chunks"]
    )
    assert all(one["word"] == VERSION_WORD | bits_of(one["bits"]) for one in mixed["chunks"])
    assert plain["chunks"] == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("headers.jsonl", json.dumps({"accession": "x", "complete": True, "header": header("10-K", 1)})),
        ("one.sgml", header("10-K", 1)),
        (
            "rows.jsonl",
            json.dumps({**ROW, "accession": "0009999999-24-000001", "form": "10-K",
                        "accepted": "2024-03-15T16:15:00-04:00"}),
        ),
        (
            "submissions.jsonl",
            json.dumps({"accessionNumber": "0009999999-24-000001", "form": "10-K", "filingDate": "2024-03-15",
                        "acceptanceDateTime": "2024-03-15T16:15:00-04:00", "items": "", "reportDate": "",
                        "business_state": "NY"}),
        ),
        (
            "CIK0009000001.json",
            json.dumps({"cik": "9000001", "name": "X", "sic": "", "exchanges": [None], "stateOfIncorporation": "DE",
                        "addresses": {"business": {"stateOrCountry": "NY"}},
                        "filings": {"recent": {"accessionNumber": ["0009999999-24-000001"], "form": ["10-K"],
                                               "filingDate": ["2024-03-15"], "reportDate": [""], "items": [""],
                                               "acceptanceDateTime": ["2024-03-15T16:15:00-04:00"]}}}),
        ),
        (
            "index.tsv",
            "accession\tform\tfiled\taccepted\tbusiness_state\n"
            "0009999999-24-000001\t10-K\t2024-03-15\t2024-03-15T16:15:00-04:00\tNY\n",
        ),
    ],
)  # fmt: skip
def test_facts_are_labelled_without_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str
) -> None:
    """A header and every spelling of a submissions row give the same label, and a missing text is not an error."""
    for packed in (False, True):
        path = tmp_path / (name + ".gz" * packed)
        path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
        (said,) = labelled(path, capsys)
        assert (said["accession"], said["form"], said["word"]) == (
            "0009999999-24-000001",
            "10-K",
            0x0800_0021,
        )
        assert (said["quarantined"], said["public_at"]) == (None, "2024-03-15T20:15:00+00:00")


def test_a_filing_without_text_is_still_quarantined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only sources that cannot hold text are excused."""
    (tmp_path / "filings.jsonl").write_text(json.dumps(ROW | {"text": " "}))
    (said,) = labelled(tmp_path / "filings.jsonl", capsys)
    assert said["quarantined"]["code"] == "NO_TEXT"
    assert said["word"] & QUARANTINE


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "filings.jsonl",
            '{"accession": "0009999999-24-000009", "form": "8-K", "filed": "2024-13-99", "text": "x"}',
        ),
        ("rows.jsonl", '{"accession": "0009999999-24-000009", "form": "8-K", "filed": "2024-13-99"}'),
        ("rows.jsonl", "{not json"),
        ("headers.jsonl", '{"accession": "0009999999-24-000009", "header": "nothing of a header"}'),
        ("a.txt", "<SEC-HEADER>\nACCESSION NUMBER: 1\n<DOCUMENT>\n<TYPE>10-K\n<TEXT>\n"),
        ("CIK1.json", '{"filings": {"recent": {}}}'),
        ("rows.jsonl.gz", "not gzip"),
    ],
)
def test_what_cannot_be_read_is_told_and_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str
) -> None:
    """Nothing is lost: a word no policy admits, the reason, and exit code 65."""
    (tmp_path / name).write_text(content)
    (said,) = labelled(tmp_path / name, capsys, Exit.BAD_INPUT)
    assert said["quarantined"]["code"] == "UNREADABLE"
    assert said["quarantined"]["text"]
    assert said["word"] == VERSION_WORD | QUARANTINE


def test_questions_are_skipped_aloud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr, so that stdout stays one object a filing."""
    (tmp_path / "qa.jsonl").write_text('{"id": "q", "question": "?", "text": "t"}\n')
    assert run(["policy", "label", str(tmp_path), "--json"]) == Exit.OK
    told = capsys.readouterr()
    assert told.out == ""
    assert "a question, not a document" in told.err


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    """Bad input, not an empty answer."""
    assert run(["policy", "label", str(tmp_path / "no"), "--json"]) == Exit.BAD_INPUT


def test_without_json_a_line_a_filing(small_corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Accession, word in hex, bits."""
    assert run(["policy", "label", str(small_corpus)]) == Exit.OK
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 20
    assert all(line.split()[1].startswith("0x") for line in lines)


def test_the_page_is_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same page both ways."""
    assert run(["policy", "bits"]) == Exit.OK
    printed = capsys.readouterr().out
    assert run(["policy", "bits", "--out", str(tmp_path / "BITS.md")]) == Exit.OK
    assert (tmp_path / "BITS.md").read_text() == printed


def test_every_real_header_and_row_has_a_label(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many objects as rows; headers state all a label needs."""
    headers = labelled(shared_data / "edgar" / "headers.jsonl.gz", capsys)
    with gzip.open(shared_data / "edgar" / "headers.jsonl.gz") as lines:
        assert len(headers) == sum(1 for _ in lines)
    assert [
        said for said in headers if said["quarantined"] and said["quarantined"]["code"] == "UNREADABLE"
    ] == []
    rows = labelled(shared_data / "edgar" / "filings_meta_only.jsonl.gz", capsys)
    assert len(rows) > 3400
    assert sum(said["quarantined"] is not None for said in rows) <= 10


def test_a_fault_in_labelling_one_filing_is_told_and_the_rest_is_labelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As unreadable, with the type and place of the error; its message may hold text, and is not shown."""
    rows = [
        {"accession": f"0009999999-24-00000{n}", "form": "10-Q", "text": "Item 2.", "cik": n} for n in (1, 2)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    sound, calls = _label_filings.learn, iter(range(2))

    def fails_once(*given: Any, **named: Any) -> Any:
        if next(calls, 1) == 0:
            raise KeyError("secret text")
        return sound(*given, **named)

    monkeypatch.setattr(_label_filings, "learn", fails_once)
    failed, labelled = _label_filings.labelled(tmp_path)
    assert _label_filings.UNREADABLE == failed["quarantined"]["code"]
    assert failed["quarantined"]["text"].startswith("KeyError at ")
    assert "secret" not in failed["quarantined"]["text"]
    assert labelled["accession"] == "0009999999-24-000002"
