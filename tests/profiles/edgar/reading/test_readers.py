"""Nothing is skipped silently, and nothing stops the reading."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from carag.errors import InvalidArgument
from carag.profiles.edgar.reading.readers import ReadKind, ReadOutcome, read_filings, total_bytes
from tests.profiles.edgar.reading.headers import document

if TYPE_CHECKING:
    from pathlib import Path

SUBMISSION = f"""<SEC-DOCUMENT>0009999999-24-000001.txt : 20240502
<SEC-HEADER>0009999999-24-000001.hdr.sgml : 20240502
ACCESSION NUMBER:\t\t0009999999-24-000001
CONFORMED SUBMISSION TYPE:\t10-K
FILED AS OF DATE:\t\t20240502
</SEC-HEADER>
{document()}</SEC-DOCUMENT>
"""
ROW = {"id": "a", "accession": "0009999999-24-000002", "form": "10-Q", "text": "Item 2."}


def rows(*objects: object) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in objects)


def summary(outcomes: list[ReadOutcome]) -> list[tuple[str, str]]:
    return [(one.kind.name, one.where) for one in outcomes]


def test_a_directory_is_read_in_order_and_every_file_accounted_for(tmp_path: Path) -> None:
    """Filings, questions, headers, pictures and subdirectories: one outcome each, or one a row."""
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(rows(ROW, ROW | {"id": "b", "accession": None})))
    (tmp_path / "c.txt").write_text(SUBMISSION)
    (tmp_path / "qa.jsonl.gz").write_bytes(gzip.compress(rows(ROW)))
    (tmp_path / "qa_contexts.jsonl").write_bytes(rows(ROW))
    (tmp_path / "headers.jsonl.gz").write_bytes(b"not even read")
    (tmp_path / "logo.png").write_bytes(b"\x89PNG")
    (tmp_path / "notes.txt").write_text("no filing")
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "d.txt.gz").write_bytes(gzip.compress(SUBMISSION.encode()))
    outcomes = list(read_filings(tmp_path))
    assert summary(outcomes) == [
        ("FILING", "b.jsonl.gz:1"),
        ("FILING", "b.jsonl.gz:2"),
        ("FILING", "c.txt"),
        ("SKIPPED", "headers.jsonl.gz"),
        ("SKIPPED", "logo.png"),
        ("SKIPPED", "notes.txt"),
        ("SKIPPED", "qa.jsonl.gz"),
        ("SKIPPED", "qa_contexts.jsonl"),
        ("FILING", "z/d.txt.gz"),
    ]
    assert all(one.reason for one in outcomes if one.kind is not ReadKind.FILING)
    assert outcomes[-1].bytes_read == total_bytes(tmp_path)
    assert [one.bytes_read for one in outcomes] == sorted(one.bytes_read for one in outcomes)


@pytest.mark.parametrize("name", ["qa.jsonl.gz", "renamed.jsonl.gz"])
def test_questions_are_never_documents(tmp_path: Path, name: str) -> None:
    """Neither by their usual name nor under another."""
    question = ROW | {"question": "What was revenue?", "answer": "5"}
    (tmp_path / name).write_bytes(gzip.compress(rows(question, question)))
    (outcome,) = read_filings(tmp_path / name)
    assert outcome.kind is ReadKind.SKIPPED
    assert "question" in outcome.reason


def test_a_question_among_filings_is_skipped_alone(tmp_path: Path) -> None:
    """The rows around it are read."""
    (tmp_path / "a.jsonl").write_bytes(rows(ROW, ROW | {"question": "?"}, ROW))
    assert [one.kind.name for one in read_filings(tmp_path)] == ["FILING", "SKIPPED", "FILING"]


def test_broken_rows_and_files_do_not_stop_the_reading(tmp_path: Path) -> None:
    """What is broken is named with its place and reason; the next row and file follow."""
    whole = gzip.compress(rows(*(ROW | {"text": str(n) * 50} for n in range(99))), mtime=0)
    (tmp_path / "a.jsonl").write_bytes(
        rows(ROW) + b'{"id": \n' + b"\xff\n\n" + rows(ROW | {"filed": 1.5}, ROW)
    )
    (tmp_path / "b.jsonl.gz").write_bytes(whole[:-20])
    (tmp_path / "c.jsonl.gz").write_bytes(b"no gzip")
    (tmp_path / "d.txt").write_bytes(b"<SEC-HEADER>\0\0" + SUBMISSION.encode())
    (tmp_path / "e.txt").write_text(SUBMISSION.split("</DOCUMENT>")[0])
    (tmp_path / "f.txt.gz").write_bytes(gzip.compress(SUBMISSION.encode())[:-9])
    (tmp_path / "g.txt").write_text(SUBMISSION)
    outcomes = [one for one in read_filings(tmp_path) if not one.where.startswith("b") or one.filing is None]
    assert summary(outcomes) == [
        ("FILING", "a.jsonl:1"),
        ("BROKEN", "a.jsonl:2"),
        ("BROKEN", "a.jsonl:3"),
        ("BROKEN", "a.jsonl:5"),
        ("FILING", "a.jsonl:6"),
        ("BROKEN", outcomes[5].where),
        ("BROKEN", "c.jsonl.gz:1"),
        ("BROKEN", "d.txt"),
        ("BROKEN", "e.txt"),
        ("BROKEN", "f.txt.gz"),
        ("FILING", "g.txt"),
    ]
    assert outcomes[5].where.startswith("b.jsonl.gz:")
    reasons = " / ".join(one.reason for one in outcomes)
    for wanted in (
        "the text is not JSON",
        "field filed",
        "unreadable from here on",
        "the file is binary",
        "ends inside a document",
    ):
        assert wanted in reasons


def test_old_filings_in_windows_1252_are_read(tmp_path: Path) -> None:
    """Before UTF-8, filers sent what their word processor wrote."""
    (tmp_path / "a.txt").write_bytes(SUBMISSION.replace("Business", "Company’s caf\xe9").encode("cp1252"))
    (outcome,) = read_filings(tmp_path)
    assert outcome.filing is not None
    assert outcome.filing.documents[0].text == "Item 1. Company’s caf\xe9"


def test_a_path_that_does_not_exist_is_the_callers_mistake(tmp_path: Path) -> None:
    """It is not an empty corpus."""
    with pytest.raises(InvalidArgument, match="does not exist"):
        list(read_filings(tmp_path / "none"))
