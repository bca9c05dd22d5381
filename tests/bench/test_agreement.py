"""The report of two derivations: on constructed data it finds what contradicts, and keeps no text."""

from __future__ import annotations

import csv
import gzip
import json
from typing import TYPE_CHECKING

import pytest

from bench.labels.agreement import COLUMNS, main
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

NUMBER = "0009999999-24-000007"
HEADER = f"""<SEC-HEADER>
ACCESSION NUMBER: {NUMBER}
CONFORMED SUBMISSION TYPE: 10-Q
CONFORMED PERIOD OF REPORT: 20240331
FILED AS OF DATE: 20240502
FILER:
COMPANY DATA:
CENTRAL INDEX KEY: 0009000001
BUSINESS ADDRESS:
STATE: L2
</SEC-HEADER>"""
INDEX = ["accession", "cik", "form", "filed", "period", "accepted", "file_number", "items"]


def test_a_contradiction_becomes_a_row_of_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The submissions row dates the filing otherwise, the company has moved, the cover says another form."""
    edgar = tmp_path / "edgar"
    edgar.mkdir()

    def write(name: str, *objects: object) -> None:
        (edgar / name).write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in objects).encode()))

    write(
        "headers.jsonl.gz", {"accession": NUMBER, "header": HEADER}, {"accession": "other", "header": HEADER}
    )
    write("companies.jsonl.gz", {"cik": 9000001, "business_state": "CA"})
    dei = {"DocumentType": "10-K", "AmendmentFlag": "false"}
    write("filings-00.jsonl.gz", {"accession": NUMBER, "form": "10-Q", "text": "SECRET", "dei": dei})
    write("filings_meta_only.jsonl.gz")
    values = [NUMBER, "9000001", "10-Q", "2024-05-03", "2024-03-31", "", "", ""]
    lines = "\n".join("\t".join(line) for line in (INDEX, values))
    (edgar / "edgar_index.tsv.gz").write_bytes(gzip.compress(f"{lines}\n".encode()))
    monkeypatch.setenv("CARAG_SHARED_DATA", str(tmp_path))
    assert main(["--out", str(tmp_path)]) == 0
    out = tmp_path / "disagreements.csv"
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [
        (row["pair"], row["field"], row["header_value"], row["row_value"], row["verdict"]) for row in rows
    ] == [
        ("header / XBRL cover", "form", "10-Q", "10-K", "DISAGREE"),
        ("header / company today", "business", "L2", "CA", "DIFFER"),
        ("header / submissions row", "filed", "2024-05-02", "2024-05-03", "DISAGREE"),
    ]
    printed = capsys.readouterr().out
    assert printed in (tmp_path / "AGREEMENT.md").read_text()
    assert "SECRET" not in out.read_text() + printed
    assert "Accessions whose header has a second opinion: 1" in printed
    assert f"Misfiled: other holds the header of {NUMBER}" in printed


def test_without_data_it_says_what_it_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    """No directory, no report."""
    monkeypatch.delenv("CARAG_SHARED_DATA", raising=False)
    with pytest.raises(InvalidArgument, match="CARAG_SHARED_DATA"):
        main([])
