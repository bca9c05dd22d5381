"""A store in files moves into PostgreSQL: one log, the same answers, and wherever it is killed all of it or nothing."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Session
from carag.audit import AuditLog, Hold, Verdict, erase, place_hold, release_hold, verify_receipt
from carag.audit._notes import MOVED_TO, remember
from carag.audit.auditor.examine import examine_log, kept_receipt
from carag.audit.operations.rotation import rotate
from carag.backends import NativeBackend
from carag.engine import sharing as moving
from carag.engine.directory import upgrade
from carag.engine.sharing import share, shared_place
from carag.errors import CorruptFile, InvalidArgument, Refused, StoreLocked
from tests.audit.log.earlier import laid_out_as_earlier
from tests.loaded import loaded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.engine.sharing import Moved
    from tests.sharing import SharedServer

script = loaded(Path(__file__).parents[2] / "scripts" / "verify_receipt.py", "scripts.verify_receipt")
ASKER = Session(role="compliance", purpose="review")
QUESTION = "When does the canteen open?"
TABLES = sum(map(len, moving._TABLES.values()))
"""Tables that a store has."""


def memo(text: str, name: str = "memo/7") -> Document:
    return Document(id=name, text=text, bits=("INTERNAL",))


class Source:
    """A store in files: a document replaced, one removed, one erased value, a hold, another key, and receipts."""

    def __init__(self, home: Path) -> None:
        self.home = home
        with Engine.open(home, profile="generic", embedder="wordllama") as engine:
            engine.add(
                [memo("The canteen opens at noon."), memo("The canteen opens for a moment.", "memo/8")]
            )
            self.noon = engine._collection.known_at
            engine.add([memo("The canteen opens at one.")])
            engine.remove(["memo/8"])
            given = [engine.ask(QUESTION, ASKER).receipt for _ in range(3)]
            erase(engine.log, actor="ana", approver="bo", basis="GDPR_17_1_D", records=[given[0].seq])
            place_hold(engine.log, "MATTER-1", actor="ana")
        with AuditLog.open(home) as log:
            rotate(log, overlap=0)
        with Engine.open(home, embedder="wordllama") as engine:
            given.append(engine.ask(QUESTION, ASKER).receipt)
            self.before = said(engine, self.noon)
            self.questions = [opened(engine.log, one.seq) for one in given]
        self.seqs, self.receipts = [one.seq for one in given], [one.to_bytes() for one in given]
        self.vkey = (home / "vkey").read_text()  # both keys, one a line
        self.rows, self.checkpoint = rows_of(home), examine_log(home).checkpoint


def said(engine: Engine, noon: int) -> list[Any]:
    """What is found now, and what was before the first document was replaced."""
    then = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=noon)
    past = Session(role="compliance", purpose="review", known_at=then)
    found = [engine.retrieve(QUESTION, session) for session in (ASKER, past)]
    return [[(one.chunk_id, one.text, one.similarity) for one in each.passages] for each in found]


def opened(log: AuditLog, seq: int) -> str | None:
    """The question of a record, if it was not erased."""
    kept = log.private.openings(seq).get("query")
    return None if kept is None else str(kept.value)


def rows_of(home: Path) -> dict[str, list[Any]]:
    """Everything in the files of a store."""
    found = {}
    for name in ("audit.db", "corpus.db"):
        with contextlib.closing(sqlite3.connect(home / name)) as db:
            tables = [table for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for one in tables:
                found[f"{name} {one}"] = sorted(map(repr, db.execute(f"SELECT * FROM {one}")))  # noqa: S608
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source(tmp_path_factory.mktemp("made") / "store")


@pytest.fixture
def source(made: Source, tmp_path: Path) -> Iterator[Source]:
    """A copy of the store, for a test to move."""
    home = made.home
    shutil.copytree(home, tmp_path / "own")
    made.home = tmp_path / "own"
    yield made
    made.home = home


def moved(source: Source, sharing: SharedServer, schema: str, to: str = "new") -> Moved:
    return moving.move(source.home, source.home.parent / to, sharing.address(schema), admin=sharing.url)


def counts(sharing: SharedServer, schema: str) -> dict[str, int]:
    """How many rows each table of the server has."""
    return {
        table: sharing.alter(f"SELECT count(*) FROM {schema}{part}.{table}")[0][0]  # noqa: S608
        for part, tables in moving._TABLES.items()
        for table in tables
    }


# -- what moves


def test_a_store_that_was_moved_goes_on_as_one_log(source: Source, sharing: SharedServer) -> None:
    """The same passages, now and of the past; receipts of before and after verify with both, erased is erased."""
    new = source.home.parent / "new"
    done = moved(source, sharing, sharing.a_schema())
    assert source.checkpoint == examine_log(new).checkpoint
    with Engine.open(new, embedder="wordllama") as engine:
        assert done.records == engine.log.size
        assert source.before == said(engine, source.noon)
        assert source.before[0] != source.before[1]
        assert source.questions == [opened(engine.log, seq) for seq in source.seqs]
        assert [True, False, False, False] == [one is None for one in source.questions]
        engine.add([memo("The canteen opens at two.")])
        later = engine.ask(QUESTION, ASKER).receipt
        assert engine.log.verify().size == later.seq + 1 > done.records
        engine._collection.check()
        with pytest.raises(Refused, match="a legal hold"):
            erase(engine.log, actor="ana", approver="bo", basis="GDPR_17_1_D", records=[source.seqs[1]])
    for number, receipt in enumerate([*source.receipts, later.to_bytes()]):
        assert Verdict.VERIFIED is verify_receipt(receipt, source.vkey).verdict
        (file := new.parent / f"{number}.json").write_bytes(receipt)
        assert 0 == script.main([str(file), "--key", str(new / "vkey")])
    kept = [kept_receipt(receipt, source.vkey) for receipt in (source.receipts[-1], later.to_bytes())]
    assert Verdict.VERIFIED is examine_log(new, kept=kept).verdict


def test_the_source_stays_and_is_only_read(source: Source, sharing: SharedServer) -> None:
    """Not a row of it has changed, its log verifies, and nothing opens it for writing."""
    moved(source, sharing, sharing.a_schema())
    assert source.rows == rows_of(source.home)
    assert source.checkpoint == examine_log(source.home).checkpoint
    for open_it in (Engine.open, AuditLog.open, upgrade):
        with pytest.raises(InvalidArgument, match=f"{source.home} was moved to postgresql://carag_app@"):
            open_it(source.home)


# -- a run that ends in between


class Killed(BaseException):
    """Stands for the end of a process."""


@pytest.mark.parametrize("number", range(TABLES))
def test_a_run_that_fails_leaves_nothing_on_the_server(
    source: Source, sharing: SharedServer, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """At whichever table: the store opens as before, and the next run moves it."""
    schema, copy, left = sharing.a_schema(), moving._copy, [number]

    def dying(*given: Any) -> None:
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        copy(*given)

    with monkeypatch.context() as patched:
        patched.setattr(moving, "_copy", dying)
        with pytest.raises(Killed):
            moved(source, sharing, schema)
    assert {"meta": 1} == {table: count for table, count in counts(sharing, schema).items() if count}
    AuditLog.open(source.home).close()
    assert not (source.home.parent / "new").exists()
    moved(source, sharing, schema)
    assert source.checkpoint == examine_log(source.home.parent / "new").checkpoint


@pytest.mark.parametrize("by", ["this version", "an earlier one"])
def test_a_run_that_was_killed_keeps_the_store_shut_until_it_is_finished(
    source: Source, sharing: SharedServer, by: str
) -> None:
    """Before its transaction ended: the mark is there, and the server has nothing. To another place it is refused."""
    schema, other = sharing.a_schema(), sharing.a_schema()
    if by == "an earlier one":
        laid_out_as_earlier(source.home)
    remember(source.home, shared_place(sharing.address(schema)), MOVED_TO)
    with pytest.raises(InvalidArgument, match="run it again"):
        Engine.open(source.home)
    with pytest.raises(InvalidArgument, match="give the first of the two"):
        moved(source, sharing, other)
    moved(source, sharing, schema)
    assert source.checkpoint == examine_log(source.home.parent / "new").checkpoint


def test_a_run_that_was_killed_after_its_transaction_copies_nothing_again(
    source: Source, sharing: SharedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds all of it there, also when the log has gone on, and replaces no key that an erasure replaced."""
    schema, new = sharing.a_schema(), source.home.parent / "new"

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(moving, "_let_share", killed)
        with pytest.raises(Killed):
            moved(source, sharing, schema)
    monkeypatch.setattr(moving, "_copy", killed)
    first = moved(source, sharing, schema)
    with Engine.open(new, embedder="wordllama") as engine:
        released = release_hold(engine.log, hold_of(engine.log), actor="ana", approver="bo")
        erase(engine.log, actor="ana", approver="bo", basis="GDPR_17_1_D", records=[source.seqs[1]])
    again = moved(source, sharing, schema)
    assert first == again
    with Engine.open(new, embedder="wordllama") as engine:
        assert engine.log.size > released.seq
        assert [True, True, False, False] == [opened(engine.log, seq) is None for seq in source.seqs]


def hold_of(log: AuditLog) -> int:
    return next(seq for seq in range(log.size) if isinstance(log.record(seq).event, Hold))


# -- what is refused


def test_what_the_server_changes_on_the_way_is_found(source: Source, sharing: SharedServer) -> None:
    """A trigger alters one text, and drops one label: nothing is there then, and the store opens as before."""
    for body, table in (("NEW.text := 'altered'; RETURN NEW", "chunks"), ("RETURN NULL", "labels")):
        schema = sharing.shared(source.home.parent / table)
        sharing.alter(
            f"CREATE FUNCTION {schema}.spoil() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {body}; END$$",
            f"CREATE TRIGGER spoil BEFORE INSERT ON {schema}.{table} FOR EACH ROW EXECUTE FUNCTION {schema}.spoil()",
        )
        with pytest.raises(CorruptFile, match=f"other rows of {table}"):
            moved(source, sharing, schema)
        assert {"meta": 1} == {name: count for name, count in counts(sharing, schema).items() if count}
        AuditLog.open(source.home).close()


def test_a_place_that_has_a_store_takes_no_other(source: Source, sharing: SharedServer) -> None:
    """Nor one that was only begun, or is open; the source is not marked."""
    schema, begun = sharing.shared(source.home.parent / "begun"), source.home.parent / "begun"
    with AuditLog.open(begun), pytest.raises(StoreLocked, match="end the processes"):
        moved(source, sharing, schema)
    with pytest.raises(InvalidArgument, match=r"has a store already, with rows in (checkpoint|record)"):
        moved(source, sharing, schema)
    with pytest.raises(InvalidArgument, match="a store of its own"):
        moving.move(source.home, source.home, sharing.address(schema), admin=sharing.url)
    with pytest.raises(InvalidArgument, match="does not hold a store in files"):
        moving.move(begun, source.home.parent / "new", sharing.address(schema), admin=sharing.url)
    AuditLog.open(source.home).close()


def test_an_administrator_of_another_database_moves_nothing(source: Source, sharing: SharedServer) -> None:
    """Neither at first, nor where another run has moved it: there would be two logs by one key."""
    schema = sharing.a_schema()
    sharing.alter(f"CREATE DATABASE {schema}")
    other = sharing.url.replace(f"/{sharing.database.name}?", f"/{schema}?")
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="a different database from the store's"):
            moving.move(source.home, source.home.parent / "new", sharing.address(schema), admin=other)
        moved(source, sharing, schema)


def test_a_store_that_cannot_be_shared_is_not_moved(source: Source, sharing: SharedServer) -> None:
    """Open, with rows in a backend, or with a note of a second copy; what is refused is not marked."""
    schema = sharing.a_schema()
    with AuditLog.open(source.home), pytest.raises(StoreLocked):
        moved(source, sharing, schema)
    with Engine.open(source.home, embedder="wordllama", backend=NativeBackend(256)):
        pass
    with pytest.raises(InvalidArgument, match="move them back first"):
        moved(source, sharing, schema)
    with Engine.open(source.home, embedder="wordllama", backend="native"):
        pass
    (source.home / "evidence.url").write_text("postgresql://stranger@localhost:1/none\n")
    with pytest.raises(InvalidArgument, match="which is no longer written"):
        moved(source, sharing, schema)
    (source.home / "evidence.url").unlink()
    assert not (source.home / MOVED_TO).exists()
    AuditLog.open(source.home).close()


@pytest.mark.parametrize("is_marked", [False, True], ids=["first", "again"])
def test_a_log_that_was_altered_is_not_moved(source: Source, sharing: SharedServer, is_marked: bool) -> None:
    """Neither by the first run nor by one that goes on with another's."""
    schema = sharing.a_schema()
    with contextlib.closing(sqlite3.connect(source.home / "audit.db")) as db, db:
        db.execute("UPDATE rec SET body = CAST(replace(body, '\"v\":1', '\"v\":2') AS BLOB) WHERE seq = 3")
    if is_marked:
        remember(source.home, shared_place(sharing.address(schema)), MOVED_TO)
    with pytest.raises(CorruptFile, match="record 3 was altered"):
        moved(source, sharing, schema)
    assert is_marked == (source.home / MOVED_TO).exists()
    assert not (source.home.parent / "new").exists()


def test_shared_and_own_tables_have_the_same_columns(made: Source, sharing: SharedServer) -> None:
    """What a file has the server has, in whichever order; a column that only one of them has would be lost."""
    schema = sharing.a_schema()
    share(made.home.parent / "columns", sharing.address(schema), admin=sharing.url)
    for part, tables in moving._TABLES.items():
        found = sharing.alter(
            f"SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = '{schema}{part}'"  # noqa: S608
        )
        with contextlib.closing(moving._file(made.home, part)) as file:
            own = {(table, column) for table in tables for column in columns_of(file, table)}
        assert own == {
            (table, column)
            for table, column in found
            if table not in ("ended", "requests", "current_filings", "successor")  # of the server alone
        }


def columns_of(file: sqlite3.Connection, table: str) -> list[str]:
    rows = file.execute(f"SELECT * FROM {moving._IN_FILE.get(table, table)}")  # noqa: S608
    return [name for name, *_ in rows.description]
