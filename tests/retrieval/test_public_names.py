"""A public table of names is checked whole, and comes out of a store as it went in."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.retrieval import public_names
from carag.retrieval.public_names import PublicName, PublicNames
from carag.store.store import CorpusStore
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

SEC = {
    "0": {"cik_str": 320193, "ticker": "AAPL", "title": "Apple Inc."},
    "1": {"cik_str": 1652044, "ticker": "GOOGL", "title": "Alphabet Inc."},
    "2": {"cik_str": 1652044, "ticker": "GOOG", "title": "Alphabet Inc."},
}
TEXTS = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=9)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "cik": st.integers(1, 9_999_999_999),
            "name": TEXTS,
            "tickers": st.none() | st.lists(TEXTS, max_size=3),
        },
        optional={
            "fiscal_year_end": st.sampled_from(["0930", "1231", "0229", "", None]),
            "sic": st.just("3720"),
        },
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda row: row["cik"],
)


@given(ROWS, st.randoms())
@settings(max_examples=examples(20), deadline=None)
def test_a_table_is_kept_as_it_was_read_in_whatever_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]], random: object
) -> None:
    """One hash, whatever else the file holds."""
    table = PublicNames.parse("\n".join(map(json.dumps, rows)).encode())
    random.shuffle(rows)  # type: ignore[attr-defined]
    assert PublicNames.parse("\n\n".join(map(json.dumps, rows)).encode()) == table
    with CorpusStore.open(tmp_path_factory.mktemp("store") / "corpus.db") as store:
        assert PublicNames.kept_in(store) == PublicNames()
        table.keep(store)
        assert PublicNames.kept_in(store) == table
        assert PublicNames.hash_in(store) == table.sha256
    assert {row.cik for row in table.rows} == {row["cik"] for row in rows}


def test_secs_own_file_is_read() -> None:
    """A company with two tickers is listed twice."""
    table = PublicNames.parse(json.dumps(SEC).encode())
    assert table.rows == (
        PublicName(320193, "Apple Inc.", ("AAPL",)),
        PublicName(1652044, "Alphabet Inc.", ("GOOG", "GOOGL")),
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "has no rows; want SEC's company_tickers.json"),
        (b"{}", "has no rows"),
        (b"[]", "line 1 is '\\[\\]'"),
        (b"cik,name\n1,Apple", "line 1 is 'cik,name'"),
        (b"\xff\xfe", "is not a table of names: .*utf-8"),
        (b"\x1f\x8bnot gzip", "is not a table of names"),
        (gzip.compress(b"{}", mtime=0)[:-6], "is not a table of names"),
        (b'{"0": {"cik_str": 1}}', "entry '0' is .*want SEC's"),
        (b'{"0": 7}', "entry '0' is 7"),
        (
            b'{"0": {"cik_str": "1", "ticker": "A", "title": "A"}}',
            "entry '0': cik is '1'; want a positive integer",
        ),
        (b'{"cik": true, "name": "A"}', "line 1: cik is True"),
        (b'{"cik": 0, "name": "A"}', "line 1: cik is 0"),
        (b'{"cik": 10000000000, "name": "A"}', "want a positive integer of at most ten digits"),
        (b'{"cik": 1}', "line 1: name is None"),
        (b'{"cik": 1, "name": "  "}', "line 1: name is empty"),
        (b'{"cik": 1, "name": "a\\u0000"}', "line 1: name is"),
        (b'{"cik": 1, "name": "A", "tickers": "AB"}', "line 1: tickers are 'AB'; want a list"),
        (b'{"cik": 1, "name": "A", "tickers": [7]}', "line 1: a ticker is 7"),
        (
            b'{"cik": 1, "name": "A", "fiscal_year_end": "1331"}',
            "fiscal_year_end is '1331'; want month and day",
        ),
        (b'{"cik": 1, "name": "A", "fiscal_year_end": 930}', "fiscal_year_end is 930"),
        (b'{"cik": 1, "name": "A", "fiscal_year_end": "930"}', "fiscal_year_end is '930'"),
        (
            b'{"cik":1,"name":"A","fiscal_year_end":"0930"}\n{"cik":1,"name":"B","fiscal_year_end":"1231"}',
            "line 2: the fiscal year of CIK 1 ends 1231, but 0930 in an earlier row",
        ),
        (b'{"cik": 1, "name": "A"}\nsoon', "line 2 is 'soon'"),
        (b"[" * 100_000, "line 1 is"),
    ],
)
def test_what_is_no_table_is_refused_with_its_row(content: bytes, why: str) -> None:
    """All of it: no row is left out in silence."""
    with pytest.raises(InvalidArgument, match=why):
        PublicNames.parse(content, "FILE")


def test_a_table_is_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In bytes after unpacking, in rows, and in what a note holds."""
    rows = b'{"cik": 1, "name": "A"}\n{"cik": 2, "name": "B"}'
    with CorpusStore.open(tmp_path / "corpus.db") as store:
        monkeypatch.setattr(public_names, "_MAX_KEPT", 8)
        with pytest.raises(InvalidArgument, match="a store keeps at most 8"):
            PublicNames.parse(rows).keep(store)
        assert PublicNames.hash_in(store) is None
    monkeypatch.setattr(public_names, "_MAX_ROWS", 1)
    with pytest.raises(InvalidArgument, match="FILE has more than 1 rows"):
        PublicNames.parse(rows, "FILE")
    monkeypatch.setattr(public_names, "MAX_BYTES", 40)
    with pytest.raises(InvalidArgument, match="FILE has more than 40 bytes"):
        PublicNames.parse(gzip.compress(rows, mtime=0), "FILE")


def test_the_companies_of_the_benchmark_are_such_a_table(shared_data: Path) -> None:
    """7,917 of them."""
    table = PublicNames.parse((shared_data / "edgar" / "companies.jsonl.gz").read_bytes())
    assert len(table.rows) == 7_917
    assert PublicName(1750, "AAR CORP", ("AIR",), "0531") in table.rows
