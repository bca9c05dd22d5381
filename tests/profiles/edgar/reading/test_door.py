"""What is let in can be labelled, stored, found, recorded and shown; the rest is a problem with a place."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

import carag.profiles.edgar.reading.readers as readers_module
from carag.limits import MAX_ID, quoted
from carag.profiles.edgar.reading import bounded
from carag.profiles.edgar.reading.readers import ReadKind, ReadOutcome, read_filings
from carag.profiles.edgar.reading.submission import parse_submission
from carag.profiles.edgar.rules.labeller import label
from carag.profiles.edgar.rules.rules import QuarantineCode
from carag.readers.packed import MAX_GROWTH
from tests.profiles.edgar.reading.headers import NUMBER, document, header

if TYPE_CHECKING:
    from pathlib import Path

    from carag.labelling.label import Quarantine

ROW: dict[str, Any] = {
    "accession": "0009999999-24-000002",
    "form": "10-Q",
    "cik": 7,
    "company": "Example Holdings plc",
    "filed": "2024-05-02",
    "text": "Item 2. Management's discussion",
}
HEADER = header("10-K", "20240331", extra="\n\tFILING VALUES:\n\t\tFORM TYPE:\t\t10-K\n")


def line(**changes: object) -> bytes:
    return json.dumps(ROW | changes).encode() + b"\n"


def read(folder: Path, content: bytes, name: str = "a.jsonl") -> list[ReadOutcome]:
    (folder / name).write_bytes(content)
    return list(read_filings(folder / name))


def kinds(outcomes: list[ReadOutcome]) -> list[tuple[str, str]]:
    return [(one.kind.name, one.where) for one in outcomes]


def quarantine_in(text: str) -> Quarantine | None:
    return label(parse_submission(text)).quarantine


BAD = {
    "half a surrogate pair in the text": line(text="a\ud800"),
    "half a surrogate pair in a name": line(company="a\ud800"),
    "half a surrogate pair in the number": line(accession="a\ud800"),
    "half a surrogate pair in what is not read": line(note="\udfff"),
    "half a surrogate pair in a key": line(**{"\ud800": 1}),
    "NUL in the text": line(text="a\0b"),
    "a number too long for a record": line(accession="a" * (MAX_ID + 1)),
    "an id too long for a record": line(accession=None, id="a" * (MAX_ID + 1)),
    "a number that turns the line": line(accession="a\u202e"),
    "a number that colours the terminal": line(accession="\x1b[31m"),
    "a number of two lines": line(accession="a\nb"),
    "a number that ends like a version": line(accession="a.v2"),
    "a name that colours the terminal": line(company="\x1b]0;title\x07"),
    "a name too long": line(company="a" * 201),
    "a form of no EDGAR": line(form="10-K[/]"),
    "a document's type of no EDGAR": line(documents=[{"type": "10-Q"}, {"type": "EX-9\x1b"}]),
    "NaN": line(cik=float("nan")),
    "infinity": line(note=float("inf")),
    "a float beyond all": line(cik=1).replace(b'"cik": 1', b'"cik": 1e999'),
    "an integer beyond 64 bits": line(note=1 << 63),
    "an integer too long to read": line(cik=1).replace(b'"cik": 1', b'"cik": ' + b"9" * 5000),
    "a CIK of eleven digits": line(cik=10**10),
    "a negative CIK": line(cik=-1),
    "a day before EDGAR's clock": line(filed="1969-12-31"),
    "a day after it": line(period="9000-01-01"),
    "a year after it": line(accession_year=10**9),
    "brackets beyond the limit": line(note=json.loads("[" * 33 + "]" * 33)),
    "brackets beyond the parser": b"[" * 100_000 + b"\n",
    "a key twice": b'{"form": "10-K", ' + line()[1:],
    "no JSON": b'{"form": \n',
    "no UTF-8": b"\xff\n",
    "a line beyond the limit": line(text="a" * bounded.MAX_LINE),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_row_is_a_problem_with_its_place_and_the_next_is_read(tmp_path: Path, bad: bytes) -> None:
    """Nothing of it is handed on, its reason is printable and bounded, and labelling says the same as reading."""
    outcomes = read(tmp_path, line() + bad + line(accession="0009999999-24-000003"))
    assert [("FILING", "a.jsonl:1"), ("BROKEN", "a.jsonl:2"), ("FILING", "a.jsonl:3")] == kinds(outcomes)
    assert (None, None) == (outcomes[1].filing, outcomes[1].metadata)
    assert outcomes[1].reason.isprintable()
    assert 1000 > len(outcomes[1].reason) > 0
    given = list(read_filings(tmp_path / "a.jsonl", metadata=True))
    assert [False, True, False] == [one.kind is ReadKind.BROKEN for one in given]


@pytest.mark.parametrize(
    ("name", "first"), [("a.tsv", b"accession\tform\n"), ("a.json", b""), ("CIK0000000007.json", b"")]
)
def test_a_bad_row_of_facts_is_a_problem_with_its_place_and_the_next_is_read(
    tmp_path: Path, name: str, first: bytes
) -> None:
    """In tables and EDGAR's submissions as in rows with text."""
    numbers = ["0009999999-24-000002", "a\u202e", "0009999999-24-000003"]
    if first:
        content = first + "".join(f"{number}\t10-Q\n" for number in numbers).encode()
        content += b"too\tmany\tcells\n" + b"a" * (bounded.MAX_LINE + 1) + b"\n\xff\t10-Q\nlast\t8-K\n"
        wanted = ["METADATA", "BROKEN", "METADATA", "BROKEN", "BROKEN", "BROKEN", "METADATA"]
    else:
        columns = {"accessionNumber": numbers, "form": ["10-Q"] * 3}
        content = json.dumps({"cik": 7, "filings": {"recent": columns}}).encode()
        wanted = ["METADATA", "BROKEN", "METADATA"]
    outcomes = read(tmp_path, content, name)
    assert wanted == [one.kind.name for one in outcomes]
    assert [f"{name}:{number + bool(first)}" for number in range(1, len(wanted) + 1)] == [
        one.where for one in outcomes
    ]
    assert all(one.reason.isprintable() for one in outcomes)


def test_a_bad_header_beside_rows_is_told_and_the_next_counts(tmp_path: Path) -> None:
    """By its line number, like rows."""
    good = json.dumps({"header": HEADER}).encode()
    (tmp_path / "headers.jsonl").write_bytes(
        b"\n".join(
            [json.dumps({"header": HEADER.replace("EXAMPLE", "\x1b")}).encode(), b"[" * 10**5, b"x", good]
        )
    )
    outcomes = read(tmp_path, line(accession=NUMBER, form="10-K", filed="2024-05-02"))
    assert (9000001,) == outcomes[0].filing.ciks if outcomes[0].filing else None
    (told,) = [one.reason for one in read_filings(tmp_path) if one.where == "headers.jsonl"]
    assert "1 compared" in told
    assert all(f"line {number}: " in told for number in (1, 2, 3))
    assert told.isprintable()


# --- sizes ---


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every kind of file, growth beyond the limit is refused before that much is read."""
    monkeypatch.setattr(bounded, "MAX_LINE", 1 << 16)
    bomb = gzip.compress(b"\n" * (1 << 18), 9)
    for name in ("a.jsonl.gz", "a.txt.gz", "a.tsv.gz", "a.json.gz"):
        (outcome,) = read(tmp_path, bomb, name)
        assert outcome.kind is ReadKind.BROKEN
        assert f"more than {MAX_GROWTH} times" in outcome.reason
    (tmp_path / "headers.jsonl.gz").write_bytes(bomb)
    (_, told) = (*read(tmp_path, line()), *read_filings(tmp_path / "headers.jsonl.gz"))
    assert told.kind is ReadKind.SKIPPED


@pytest.mark.parametrize("name", ["a.txt", "CIK0000000007.json"])
def test_a_file_that_is_one_filing_has_a_largest_size(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read into memory whole, so it is refused as soon as the limit is reached."""
    monkeypatch.setattr(bounded, "MAX_FILE", 1000)
    (outcome,) = read(tmp_path, b"<SEC-HEADER>" + b" " * 989, name)
    assert outcome.kind is ReadKind.BROKEN
    assert "more than 1000 bytes" in outcome.reason


# --- faults of the program ---


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt", "a.tsv"])
def test_an_unexpected_error_is_reported_as_a_fault_and_the_rest_is_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its type and place; its message may quote the text, and is not shown."""

    def fails(*_: object, **__: object) -> None:
        raise IndexError("secret text")

    (tmp_path / "z.png").write_bytes(b"")
    content = {
        "a.jsonl": line(),
        "a.txt": (HEADER + document()).encode(),
        "a.tsv": b"accession\tform\na\t4\n",
    }
    (tmp_path / name).write_bytes(content[name])
    for function in ("filing_of_row", "filing_of_metadata", "parse_submission"):
        monkeypatch.setattr(readers_module, function, fails)
    failed, other = read_filings(tmp_path)
    assert (ReadKind.FAILED, ReadKind.SKIPPED) == (failed.kind, other.kind)
    assert failed.reason.startswith("IndexError at test_door.py:")
    assert "secret" not in failed.reason


# --- contradictions inside a submission ---


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEADER.replace("FORM TYPE:\t\t10-K", "FORM TYPE:\t\tS-1") + document(), "FORM TYPE states S-1"),
        (HEADER.replace("FORM TYPE:\t\t10-K", "FORM TYPE:\t\t10-K/A") + document(), "FORM TYPE states 10-K/A"),
        (HEADER + document("S-1"), "states S-1"),
        (HEADER + document("10-K/A"), "states 10-K/A"),
        (HEADER + document("EX-32"), "states EX-32"),
        (f"PUBLIC DOCUMENT COUNT:\t1\n{HEADER}{document()}{document('EX-32')}", "DOCUMENT COUNT states 1, the text"),
        (f"PUBLIC DOCUMENT COUNT:\t1\nPUBLIC DOCUMENT COUNT:\t2\n{HEADER}{document()}", "states 2"),
    ],
)  # fmt: skip
def test_a_submission_that_contradicts_itself_is_quarantined(text: str, told: str) -> None:
    """Two forms, a main document of another form, more documents than were filed: an uncertain filing is not shown."""
    found = quarantine_in(text)
    assert found is not None
    assert QuarantineCode.FACTS_DISAGREE is found.code
    assert told in found.text


@pytest.mark.parametrize(
    "text",
    [
        HEADER + document(),
        HEADER.replace("10-K", "10-K405") + document("10-K405"),
        HEADER.replace("10-K", "SC 13D/A") + document("SCHEDULE 13D/A"),
        HEADER.replace("10-K", "10-K405") + document("10-K"),
        f"PUBLIC DOCUMENT COUNT:\t2\n{HEADER}{document()}{document('EX-32')}",
        f"PUBLIC DOCUMENT COUNT:\t7\n{HEADER}{document()}",
    ],
)
def test_what_differs_in_spelling_or_was_left_out_is_no_contradiction(text: str) -> None:
    """EDGAR's own variants, and copies that keep fewer documents than were filed."""
    assert quarantine_in(text) is None


@pytest.mark.parametrize("mark", ["<SEC-HEADER>", "<SUBMISSION>", "<IMS-HEADER>"])
@pytest.mark.parametrize("documents", [0, 1, 2])
def test_a_second_submission_is_refused_wherever_it_begins(tmp_path: Path, mark: str, documents: int) -> None:
    """Before, between or behind the documents: the facts of one are not those of another's text."""
    parts = [document(), document("EX-32")]
    parts.insert(documents, f"{mark}\n")
    (outcome,) = read(tmp_path, (HEADER + "".join(parts)).encode(), "a.txt")
    assert ReadKind.BROKEN is outcome.kind
    assert "several submissions" in outcome.reason


# --- identity ---


def test_a_submission_without_a_number_is_known_by_its_bytes_and_shown_to_nobody(tmp_path: Path) -> None:
    """Other bytes under the same path are another filing; the same under another path, packed or not, are not."""
    text = (HEADER + document()).replace(NUMBER, "unknown")
    found = []
    for folder, name, content in (
        ("a", "10k.txt", text),
        ("b", "10k.txt", text.replace("EXAMPLE", "ANOTHER")),
        ("c", "10k-2.txt.gz", text),
    ):
        (tmp_path / folder).mkdir()
        packed = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
        (outcome,) = read(tmp_path / folder, packed, name)
        assert outcome.filing is not None
        found.append(outcome.filing)
    first, other, again = (filing.accession_number for filing in found)
    assert first == again != other
    for filing in found:
        said = label(filing).quarantine
        assert said is not None
        assert QuarantineCode.NO_ACCESSION_NUMBER is said.code
        assert filing.accession_year is None


def test_a_row_is_named_by_its_number_or_else_its_id(tmp_path: Path) -> None:
    """The maker of a data set answers for its ids; a row with neither is broken."""
    outcomes = read(tmp_path, line() + line(accession=None, id="ours-1") + line(accession=None))
    names = [one.filing.accession_number if one.filing else None for one in outcomes]
    assert ["0009999999-24-000002", "ours-1", None] == names
    assert ReadKind.BROKEN is outcomes[2].kind


def test_a_file_whose_name_cannot_be_printed_is_told_quoted(tmp_path: Path) -> None:
    """In every place a problem names it."""
    name = "a\x1b[31m\u202e.jsonl"
    (outcome,) = read(tmp_path, b"{\n", name)
    assert f"{quoted(name)}:1" == outcome.where
