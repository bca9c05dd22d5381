"""A submission that has lost a line is read as before, or opens nothing: the loss is never silent."""

from __future__ import annotations

import gzip
import json
import random
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from carag.policy import PolicyTable
from carag.profiles.edgar.reading.readers import ReadKind, read_filings
from carag.profiles.edgar.rules.filing_facts import FilingFacts
from carag.profiles.edgar.rules.labeller import label
from tests.profiles.edgar.reading.headers import header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.labelling.label import Label
    from carag.profiles.edgar.facts.filing import Filing

CELLS: Final = PolicyTable.shipped().cells
COUNT: Final = "PUBLIC DOCUMENT COUNT"
UNSEEN: Final = re.compile(r"\s*(?:ITEM INFORMATION|STANDARD INDUSTRIAL CLASSIFICATION|<PRIVATE-TO-PUBLIC>)")
"""Facts that a whole header may lack, one of several items among them: nothing shows that a line stood there."""
LENGTH: Final = 2000
"""Characters of a real filing's text that are kept."""


def submission(head: str, form: str, body: str) -> tuple[str, int]:
    """A complete submission, and the number of lines in its header."""
    head = re.sub(rf"({COUNT}:\s*)\d+", r"\g<1>3", head.rstrip() + "\n")
    documents = [(form, body), ("EX-32", "Certified."), ("EX-99.1", "Sales table.")]
    return head + "".join(
        f"<DOCUMENT>\n<TYPE>{kind}\n<SEQUENCE>{number}\n<FILENAME>{number}.txt\n<DESCRIPTION>{kind}\n"
        f"<TEXT>\n{text}\n</TEXT>\n</DOCUMENT>\n"
        for number, (kind, text) in enumerate(documents, start=1)
    ), head.count("\n")


def shown(file: Path, text: str) -> tuple[Filing, Label] | None:
    """The filing and its label; None if it is a problem or in quarantine."""
    file.write_text(text, encoding="utf-8")
    (outcome,) = read_filings(file)
    if outcome.filing is None:
        assert outcome.kind in {ReadKind.BROKEN, ReadKind.SKIPPED}, outcome.reason
        assert outcome.reason
        return None
    said = label(outcome.filing)
    return None if said.quarantine else (outcome.filing, said)


def opened(before: tuple[Filing, Label], after: tuple[Filing, Label]) -> list[str]:
    """What is lost, or shown to a session, that was not before."""
    (filing, said), (other, word) = before, after
    facts, left = FilingFacts.of(filing, said), FilingFacts.of(other, word)
    found = [
        f"{cell.role}/{cell.purpose}"
        for cell in CELLS
        if cell.policy.admits(word.word) and not cell.policy.admits(said.word | word.word)
    ]
    texts = [[one.text for one in each.documents] for each in (filing, other)]
    found += ["its text"] if texts[0] != texts[1] else []
    found += ["an earlier minute"] if word.public_at < said.public_at else []
    found += ["a company"] if set(filing.subjects) - set(other.subjects) and 0 not in other.subjects else []
    found += ["its statements, as an event"] if facts.certified and not left.certified else []
    return found


def silent_losses(file: Path, text: str, head: int) -> Iterator[str]:
    """Every line of a header, and every tag of a document, whose loss silently opens something."""
    before = shown(file, text)
    assert before is not None
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.strip() and not UNSEEN.match(line) and (number < head or re.match(r"</?[A-Z]+>", line)):
            after = shown(file, "\n".join([*lines[:number], *lines[number + 1 :]]))
            if after and (lost := opened(before, after)):
                yield f"{line.strip()}: {', '.join(lost)}"


@pytest.mark.parametrize("form", ["10-K", "10-K/A", "10-Q", "8-K", "NT 10-K", "S-1"])
def test_no_line_of_a_submission_is_lost_in_silence(tmp_path: Path, form: str) -> None:
    """Without any one of its lines it is read the same, or is a problem or in quarantine, or opens nothing more."""
    head = header(
        form, "20231231", items=("Results of Operations and Financial Condition",), extra=f"{COUNT}: 3\n"
    )
    text, length = submission(head, form, "Item 1. Business. Net sales were $77 million.")
    assert list(silent_losses(tmp_path / "a.txt", text, length)) == []


def test_a_text_that_is_not_closed_goes_on_to_the_end_of_its_document(tmp_path: Path) -> None:
    head = header("10-Q", "20240331")
    text, _ = submission(head, "10-Q", "Net sales were $77 million.")
    read = shown(tmp_path / "a.txt", text.replace("</TEXT>\n", "", 1))
    assert read is not None
    assert [one.text for one in read[0].documents] == [
        "Net sales were $77 million.",
        "Certified.",
        "Sales table.",
    ]


def test_text_after_the_end_of_a_text_is_read_too(tmp_path: Path) -> None:
    text, _ = submission(header("10-Q", "20240331"), "10-Q", "Net sales rose.")
    read = shown(tmp_path / "a.txt", text.replace("</TEXT>\n", "</TEXT>\nCosts rose.\n", 1))
    assert read is not None
    assert read[0].documents[0].text.split() == ["Net", "sales", "rose.", "Costs", "rose."]


@pytest.mark.parametrize(
    "listed", ["CIK0009000012-submissions-001.json", "../CIK0009000012-submissions-001.json", 7]
)
def test_a_page_that_a_list_of_filings_names_and_that_is_not_there_is_a_problem(
    tmp_path: Path, listed: object
) -> None:
    """It has older amendments and delistings, which would be missed."""
    columns: dict[str, Any] = {
        "accessionNumber": ["0009000012-25-000002"],
        "form": ["10-K"],
        "filingDate": ["2025-03-01"],
    }
    filer = {"cik": "9000012", "filings": {"recent": columns, "files": [{"name": listed}]}}
    (tmp_path / "CIK0009000012.json").write_text(json.dumps(filer))
    broken = [one for one in read_filings(tmp_path) if one.kind is ReadKind.BROKEN]
    assert [str(listed) in one.reason for one in broken] == [True]
    page = {name: [value[0].replace("25-", "09-")] for name, value in columns.items()}
    with gzip.open(tmp_path / "CIK0009000012-submissions-001.json.gz", "wt") as stream:
        json.dump(page, stream)
    kinds = {one.kind for one in read_filings(tmp_path)}
    assert kinds == (
        {ReadKind.METADATA} if listed == "CIK0009000012-submissions-001.json" else {*kinds, ReadKind.BROKEN}
    )


@pytest.mark.full
def test_no_line_of_500_real_submissions_is_lost_in_silence(tmp_path: Path, shared_data: Path) -> None:
    """Real headers, with the beginning of the filing's text if there is one."""
    heads = {
        row["accession"]: row["header"]
        for row in _rows(shared_data / "edgar" / "headers.jsonl.gz")
        if row["complete"]
    }
    texts = {
        row["accession"]: row["text"][:LENGTH].replace("<", "(")
        for path in sorted((shared_data / "edgar").glob("filings-0*.jsonl.gz"))
        for row in _rows(path)
        if row.get("accession") in heads
    }
    names = sorted(heads)
    random.Random(1).shuffle(names)  # noqa: S311 - the same each time
    file, lost, read = tmp_path / "a.txt", [], 0
    for name in names:
        form = re.search(r"CONFORMED SUBMISSION TYPE:\s*(\S[^\n]*)", heads[name])
        text, length = submission(
            heads[name], form[1].strip() if form else "10-K", texts.get(name, "Item 1. Business.")
        )
        if shown(file, text) is None:
            continue
        lost += [f"{name}: {line}" for line in silent_losses(file, text, length)]
        read += 1
        if read == 500:
            break
    assert (read, lost) == (500, [])


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)
