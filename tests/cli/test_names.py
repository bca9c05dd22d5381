"""``carag names``: a store is given a public table of companies, or is left as it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from carag import Engine
from carag.cli import Exit
from carag.cli.app import run
from carag.retrieval.public_names import PublicNames
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from pathlib import Path

TABLE = json.dumps({"0": {"cik_str": 320193, "ticker": "AAPL", "title": "Apple Inc."}})


def kept(home: Path) -> PublicNames:
    with CorpusStore.open(home / "corpus.db", create=False) as store:
        return PublicNames.kept_in(store)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    Engine.open(tmp_path / "store", embedder="wordllama").close()
    return tmp_path / "store"


def give(home: Path, text: str) -> int:
    file = home.parent / "tickers.json"
    file.write_text(text)
    return run(["names", str(file), "--store", str(home)])


def test_a_table_is_kept_and_takes_the_place_of_the_one_before(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the store opens with it."""
    assert give(home, TABLE) == Exit.OK
    table = kept(home)
    said = capsys.readouterr().out
    assert "1 names of 1 companies are kept in" in said.replace("\n", " ")
    assert table.sha256 in said.replace("\n", "")
    assert [row.name for row in table.rows] == ["Apple Inc."]
    assert give(home, '{"cik": 7, "name": "Amcor plc"}') == Exit.OK
    assert [row.cik for row in kept(home).rows] == [7]
    Engine.open(home).close()


def test_a_table_that_is_not_valid_changes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does a missing file, or a store that another process holds."""
    assert give(home, TABLE) == Exit.OK
    before = kept(home)
    assert give(home, TABLE.replace("320193", "-1")) == Exit.BAD_INPUT
    assert "tickers.json, entry '0': cik is -1" in capsys.readouterr().err.replace("\n", " ")
    assert run(["names", str(home.parent / "none"), "--store", str(home)]) == Exit.BAD_INPUT
    with Engine.open(home):
        assert give(home, '{"cik": 7, "name": "Amcor plc"}') == Exit.BAD_INPUT
    assert kept(home) == before


def test_a_store_that_reads_no_companies_takes_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does a directory that is not a store."""
    office = tmp_path / "office"
    Engine.open(office, profile="generic", embedder="wordllama").close()
    assert give(office, TABLE) == Exit.BAD_INPUT
    assert "reads no companies in questions" in capsys.readouterr().err.replace("\n", " ")
    assert not kept(office).rows
    assert give(tmp_path / "nothing", TABLE) == Exit.BAD_INPUT
    assert not (tmp_path / "nothing").exists()
