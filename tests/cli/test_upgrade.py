"""``carag upgrade``: a store of an earlier version gets what it lacks, without a model, however often it is killed."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine, Session
from carag.cli import Exit
from carag.cli.app import run
from carag.engine.directory import upgrade
from carag.errors import CorruptFile, InvalidArgument, StoreLocked
from carag.retrieval import words
from carag.retrieval.public_names import PublicNames
from carag.store.store import CorpusStore
from tests.audit.log.earlier import laid_out_as_earlier
from tests.store.test_store_file import LATER

if TYPE_CHECKING:
    from pathlib import Path

    from carag.index import TextIndex
    from carag.store.values import Labels

TABLE = json.dumps({"0": {"cik_str": 2488, "ticker": "AMD", "title": "Advanced Micro Devices Inc"}})
QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"
ANALYST = Session(role="buy_side", purpose="invest")


@pytest.fixture(scope="module")
def today(ingested: Path) -> Path:
    """A store as this version makes it."""
    return ingested


@pytest.fixture
def earlier(today: Path, tmp_path: Path) -> Path:
    """The store as 0.2.0 left it: tables of version 1, sealed values apart, no words, no note that it did not write.

    The tables of version 1 are those of today but for ``entity_sets``, which had no metadata (9f9d851 and before), and
    for ``embedded`` and those of groups and audiences, which there were not.
    """
    home = shutil.copytree(today, tmp_path / "store")
    (home / "index.words").unlink()
    laid_out_as_earlier(home)
    with closing(sqlite3.connect(home / "corpus.db")) as sql:
        sql.execute("DELETE FROM meta WHERE name LIKE 'words_%' OR name LIKE 'profile%' OR name = 'reader'")
        sql.execute("ALTER TABLE entity_sets RENAME TO sets_of_version_2")
        sql.execute(
            "CREATE TABLE entity_sets (number INTEGER PRIMARY KEY CHECK (number BETWEEN 0x80000000 AND 0xFFFFFFFF), "
            "ciks TEXT NOT NULL UNIQUE) STRICT"
        )
        sql.execute("INSERT INTO entity_sets SELECT number, ciks FROM sets_of_version_2")
        sql.execute("DROP TABLE sets_of_version_2")
        for table in ("embedded", *LATER):
            sql.execute(f"DROP TABLE {table}")
        sql.execute("PRAGMA user_version = 1")
        sql.commit()
    return home


def found(home: Path) -> list[tuple[str, float]]:
    with Engine.open(home, create=False) as engine:
        return [(one.chunk_id, one.similarity) for one in engine.retrieve(QUESTION, ANALYST).passages]


def test_a_store_of_an_earlier_version_finds_afterwards_what_one_of_today_finds(
    earlier: Path, today: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It reports what was there and what was made; a second run makes nothing."""
    vectors = (earlier / "index.carag").read_bytes()
    assert run(["upgrade", "--store", str(earlier)]) == Exit.OK
    said = " ".join(capsys.readouterr().out.split())
    assert "holds 51 documents in 273 passages" in said
    assert "words of 273 passages, 273 of them read now" in said
    assert "rows, 0 of them added now" in said
    assert "no public table" in said
    assert "its sealed values are in audit.db now" in said
    assert (earlier / "index.carag").read_bytes() == vectors
    assert run(["upgrade", "--store", str(earlier), "--json"]) == Exit.OK
    again = json.loads(capsys.readouterr().out)
    assert (again["words"], again["words_made"], again["rows_made"]) == (273, 0, 0)
    assert not again["moved_values"]
    assert found(earlier) == found(shutil.copytree(today, tmp_path / "today")) != []


def test_a_run_that_is_killed_goes_on_where_it_saved_last(
    earlier: Path, today: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is killed, and more than once; what was saved is not read again."""
    monkeypatch.setattr(words, "_BATCH", 32)
    monkeypatch.setattr(words, "_SAVE_PASSAGES", 64)
    add, calls = words.add_words, 0

    def killed(*given: object) -> int:
        nonlocal calls
        added = add(*given)  # type: ignore[arg-type]
        calls += added > 0
        if added and calls % 4 == 0:
            raise KeyboardInterrupt
        return added

    monkeypatch.setattr(words, "add_words", killed)
    kills = 0
    while True:
        try:
            done = upgrade(earlier)
            break
        except KeyboardInterrupt:
            kills += 1
            assert kills < 20, "it does not get on"
    assert kills > 1
    assert 0 < done.words_made < done.words == 273
    assert found(earlier) == found(shutil.copytree(today, tmp_path / "today"))


def test_nothing_is_embedded_and_no_model_is_loaded(earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the index is gone: its rows come from the vectors that the store keeps."""
    monkeypatch.setattr("carag.engine.collection.embedder_by_name", lambda name: pytest.fail(name))
    (earlier / "index.carag").unlink()
    done = upgrade(earlier)
    assert done.rows_made == done.rows == 312


def test_a_table_of_names_is_kept_before_anything_is_made(
    earlier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And one that is not valid leaves the store as it was."""
    table = tmp_path / "tickers.json"
    table.write_text(TABLE.replace("2488", "-1"))
    given = ["upgrade", "--store", str(earlier), "--names", str(table)]
    assert run(given) == Exit.BAD_INPUT
    assert "cik is -1" in capsys.readouterr().err.replace("\n", " ")
    assert not (earlier / "index.words").exists()
    table.write_text(TABLE)
    assert run(given) == Exit.OK
    with CorpusStore.open(earlier / "corpus.db", create=False) as store:
        kept = PublicNames.kept_in(store)
    assert [row.cik for row in kept.rows] == [2488]
    assert kept.sha256 in capsys.readouterr().out.replace("\n", "")


def test_what_is_no_store_is_refused_and_left_alone(earlier: Path, tmp_path: Path) -> None:
    """So is one that an engine holds, and one whose log is gone."""
    with pytest.raises(InvalidArgument, match="does not hold a store"):
        upgrade(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    with Engine.open(earlier), pytest.raises(StoreLocked):
        upgrade(earlier)
    (earlier / "vkey").unlink()
    with pytest.raises(CorruptFile, match="no audit log"):
        upgrade(earlier)


@pytest.mark.parametrize("what", ["words", "index"])
def test_a_copy_that_is_not_of_the_stores_labels_is_refused(
    today: Path, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is checked at the end, whatever made the copies."""
    home = shutil.copytree(today, tmp_path / "store")
    if what == "words":
        (home / "index.words").unlink()
        label = words.label_words

        def short(index: TextIndex, labels: Labels, **more: object) -> None:
            label(index, labels, **more)  # type: ignore[arg-type]
            index.close_labels(labels.keys[:1])

        monkeypatch.setattr(words, "label_words", short)
    else:
        with closing(sqlite3.connect(home / "corpus.db")) as sql:  # a label that no copy heard of
            (one,) = sql.execute(
                "SELECT min(label) FROM labels WHERE known_to IS NULL AND word & 2 = 0"
            ).fetchone()
            sql.execute("UPDATE labels SET word = word | 2 WHERE label = ?", (one,))
            sql.commit()
    with pytest.raises(CorruptFile, match=rf"index\.{'words' if what == 'words' else 'carag'} is not a copy"):
        upgrade(home)


def test_documents_that_an_earlier_reader_read_are_named_and_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By their names, pages or the reader that a store noted; a text that no reader took from a file is not."""
    home, folder = tmp_path / "store", tmp_path / "folder"
    folder.mkdir()
    (folder / "fees.html").write_text("<p>The fee is 2,500<sup>1</sup> a day.")
    (folder / "plain.md").write_text("Members report.")
    (folder / "metadata.csv").write_text("file,classification\nfees.html,public\nplain.md,public\n")
    with Engine.open(home, profile="generic") as engine:
        engine.add([Document(id="fees.html", text="The fee is 2,5001 a day.", bits=())])
        engine.add([Document(id="typed", text="The fee is high.", bits=())])
    assert ["fees.html"] == upgrade(home).read_before
    assert Exit.OK == run(["upgrade", "--store", str(home)])
    assert "1 documents were read from files by an earlier version" in capsys.readouterr().err
    assert Exit.OK == run(["upgrade", "--store", str(home), "--from", str(folder), "--json"])
    assert 1 == json.loads(capsys.readouterr().out)["read_again"]["changed"]
    assert [] == upgrade(home).read_before
    with Engine.open(home) as engine:
        found = engine.retrieve("What is the fee a day?", Session(role="employee", purpose="work"))
        assert "2,500[^1] a day" in found.passages[0].text
