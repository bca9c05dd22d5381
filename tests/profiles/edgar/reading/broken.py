"""Strategies for rows, tables, headers and submissions: built correctly, and then broken somewhere."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hypothesis import strategies as st

from tests.profiles.edgar.reading.headers import header

if TYPE_CHECKING:
    from collections.abc import Callable


COLUMNS: Final = ("accession", "form", "cik", "filed", "period", "accepted", "items", "is_xbrl")


class Case(NamedTuple):
    """One thing to read: ``row``, ``table`` and ``header`` are lines of a file, ``submission`` is one."""

    kind: str
    content: bytes


_numbers = st.integers(0, 999_999).map("0009999999-24-{:06d}".format)
_good_days = st.dates(date(1994, 1, 1), date(2025, 12, 31)).map(str)
_days = st.one_of(
    _good_days, _good_days, _good_days, st.sampled_from(["1969-12-31", "9999-12-31", "2024-02-30"])
)
_forms = st.sampled_from(
    [
        "10-K",
        "10-K/A",
        "10-Q",
        "8-K",
        "8-K/A",
        "4",
        "S-1",
        "DEF 14A",
        "UPLOAD",
        "25-NSE",
        "20-F",
        "6-K",
        "ZZ",
        "",
    ]
)
_NASTY: Final = (
    "", " ", "\0", "\x1b[31m", "\x1b]0;title\x07", "\ud800", "a\udfff", "\u202e", "\u2028", "\u200b", "\xa0", "\xad",
    "[/red]", "<script>", "'; DROP TABLE filings; --", "a.v2", "a:00000", "../../etc/passwd", "²", "٣٣٣", "1e999",
    "nan", "0000-00-00", "9" * 30, "9" * 5000, "a" * 159, "a" * 160, "a" * 201, "é" * 70_000, "\U0001f9ea", "10-K",
    "<TYPE>S-1", "=== EX-99.1 ===", "<?xml version='1.0'?><a><b>1</b></a>", "<html><p>Item 1</p><table><tr><td>2<td>3",
)  # fmt: skip
_values: Final[tuple[Any, ...]] = (
    *_NASTY, None, True, False, 0, -1, 1, 7, 10**10, 1 << 63, 1 << 200, -(1 << 64), 0.5, float("nan"), float("inf"),
    [], {}, [None], ["2.02", 5], {"a": "b"}, [[]], json.loads("[" * 40 + "]" * 40), ["\ud800"], {"\ud800": "\ud800"},
    [{"type": "10-K"}], [{"type": "\x1b"}], [{"type": "EX-32", "sequence": 10**30}],
)  # fmt: skip
_nasty = st.sampled_from(_NASTY) | st.text(max_size=30)
_PIECES: Final = (
    "Item 1. Business\n", "Item 2.02 Results of Operations\n", "Item 5.02 Departure of Directors\n", "PART II\n",
    "Net sales rose by 5 per cent to $7 million in the quarter. ", "\n\n", "=== EX-99.1 ===\n", "December 31, 2023\n",
    "=== EX-32 certificate ===\n", "Report of Independent Registered Public Accounting Firm\n", "\u202eabc\n", "\f",
    "<html><body>", "<table><tr><td>1", "</p>", "<!--", "&#xD800;", "<?xml ", "\v", "x" * 2000, "\u200b" * 50, "🧪",
    "\u0301" * 20, "<ix:nonNumeric name='dei:DocumentType'>10-K", "<TYPE>EX-32\n",
)  # fmt: skip
_MARKS: Final = ("</TEXT>", "<DOCUMENT>\n", "</DOCUMENT>\n", "<SEC-HEADER>\n", "<SUBMISSION>\n")
_prose = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=8).map("".join)


@st.composite
def _rows(draw: Callable[..., Any]) -> dict[str, Any]:
    """A row with its text, or without."""
    row: dict[str, Any] = {"accession": draw(_numbers), "form": draw(_forms), "cik": draw(st.integers(1, 9))}
    row |= {"company": "Example Holdings plc", "filed": draw(_days), "period": draw(_days)}
    if draw(st.integers(0, 3)):
        row["text"] = draw(_prose)
    if draw(st.booleans()):
        row["id"] = draw(st.sampled_from(["ours-1", "ours-2", "ours-3"]))
    if draw(st.booleans()):
        row["documents"] = [{"type": row["form"]}, {"type": "EX-99.1"}]
    if draw(st.booleans()):
        row["items"] = draw(st.lists(st.sampled_from(["2.02", "5.02", "9.01", "12"]), max_size=3))
    return row


_BREAKABLE: Final = (
    "id", "accession", "accessionNumber", "accession_year", "form", "text", "cik", "company", "filed", "period",
    "accepted", "released", "items", "items_in_text", "business_state", "state_of_inc", "sic", "roles", "n_parties",
    "file_number", "exchanges", "dei", "documents", "meta_src", "header", "question", "anything",
)  # fmt: skip


@st.composite
def _row_lines(draw: Callable[..., Any]) -> bytes:
    row = draw(_rows())
    if draw(st.booleans()):
        return json.dumps(row).encode()
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        key = draw(st.sampled_from(_BREAKABLE))
        how = draw(st.integers(0, 4))
        if how == 0:
            row.pop(key, None)
        elif how == 1:
            row[key] = draw(st.text(max_size=20))
        else:
            row[key] = draw(st.sampled_from(_values))
    return draw(_broken_bytes(json.dumps(row).encode()))


@st.composite
def _broken_bytes(draw: Callable[..., Any], content: bytes) -> bytes:
    """Unchanged three times out of four; else cut, repeated in part, or with other bytes inside."""
    if draw(st.booleans()) or draw(st.booleans()):
        return content
    how = draw(st.integers(0, 3))
    at = draw(st.integers(0, len(content)))
    if how == 0:
        return content[:at]
    if how == 1:
        return content[:at] + draw(st.binary(max_size=4)) + content[at:]
    if how == 2:
        return content.replace(b'"form"', b'"form": "S-1", "form"', 1)
    return content[:at] + content[at // 2 :]


@st.composite
def _table_lines(draw: Callable[..., Any]) -> bytes:
    cells = [draw(_numbers), draw(_forms), "7", draw(_days), draw(_days), "", "2.02,9.01", "1"]
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        cells[draw(st.integers(0, 7))] = draw(_nasty)
    text = "\t".join(
        cells[: draw(st.sampled_from([8] * 8 + [2, 1]))] + ["more"] * draw(st.sampled_from([0] * 9 + [1]))
    )
    return draw(_broken_bytes(text.encode("utf-8", "surrogatepass")))


@st.composite
def _headers(draw: Callable[..., Any], form: str | None = None) -> str:
    form = form or draw(_forms)
    second = draw(st.sampled_from([form] * 9 + ["S-1"]))
    text = header(form, "20231231", extra=f"\tFILING VALUES:\n\t\tFORM TYPE:\t\t{second}\n")
    text = text.replace("0009999999-24-000007", draw(_numbers))
    lines = text.splitlines()
    lines.insert(1, f"PUBLIC DOCUMENT COUNT:\t{draw(st.sampled_from([1, 2, 3, 3, 3]))}")
    for _ in range(draw(st.sampled_from([0, 0, 1, 3]))):
        at = draw(st.integers(0, len(lines) - 1))
        how = draw(st.integers(0, 3))
        if how == 0:
            del lines[at]
        elif how == 1:
            lines.insert(at, draw(st.sampled_from(lines)))
        else:
            name, colon, _ = lines[at].partition(":")
            lines[at] = name + colon + draw(_nasty)
        lines = lines or ["FILER:"]
    return "\n".join(lines) + "\n"


@st.composite
def _submissions(draw: Callable[..., Any]) -> bytes:
    form = draw(_forms)
    parts = [draw(_headers(form))]
    for _ in range(draw(st.sampled_from([0, 1, 1, 2, 3]))):
        exhibits = st.sampled_from(["EX-32", "EX-99.1", "GRAPHIC", ""])
        kind = draw(st.one_of(st.just(form), st.just(form), _forms, exhibits, exhibits, _nasty))
        sequence = draw(st.sampled_from(["1", "2", "²", "9" * 5000, ""]))
        mark = draw(st.sampled_from(["\n"] * 20 + list(_MARKS)))
        parts.append(
            f"<DOCUMENT>\n<TYPE>{kind}\n<SEQUENCE>{sequence}\n<TEXT>\n{draw(_prose)}{mark}</TEXT>\n</DOCUMENT>\n"
        )
    if not draw(st.integers(0, 29)):
        parts.append(draw(_headers()))
    return draw(_broken_bytes("".join(parts).encode("utf-8", "replace")))


def _line(kind: str) -> Callable[[bytes], Case]:
    def case(content: bytes) -> Case:
        one = content.replace(b"\n", b" ").replace(b"\r", b" ")
        return Case(kind, one if one.strip() else b"{")

    return case


def cases() -> st.SearchStrategy[Case]:
    """Any one thing, whole or broken."""
    rows, submissions = (
        _row_lines().map(_line("row")),
        _submissions().map(lambda text: Case("submission", text)),
    )
    beside = _headers().map(lambda text: json.dumps({"header": text}).encode()).flatmap(_broken_bytes)
    return st.one_of(rows, rows, submissions, _table_lines().map(_line("table")), beside.map(_line("header")))
