"""Documents are erased from a store that engines share in PostgreSQL, over the administrator's connection."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from carag import Engine, Session
from carag.audit import Verdict, verify_receipt
from carag.audit.records.custody import DocumentErasure
from carag.engine.erasing import documents as erasing
from carag.errors import InvalidArgument, StoreLocked
from tests.engine.documents import Counting
from tests.remains import as_stored, remains, remains_in_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.sharing import SharedServer

CANARIES = 20
ASKER = Session(role="employee", purpose="work", principals=frozenset({"user:all"}))
QUESTION = "When do branches report?"
WHO = {"basis": "GDPR_17_1", "by": "dpo", "approver": "cco"}


class Home(NamedTuple):
    """Two directories that share one store, with documents to erase and one that stays."""

    sharing: SharedServer
    schema: str
    one: Path
    other: Path

    def engine(self, directory: Path) -> Engine:
        return Engine.open(directory, profile="generic", embedder=Counting())

    def names(self) -> list[str]:
        return [f"zq{self.tag}file{number:02}.md" for number in range(CANARIES)]

    @property
    def tag(self) -> str:
        """What tells these documents from another test's in the same database."""
        return f"n{self.schema.rpartition('_')[2]}x"

    def canaries(self, numbers: range = range(CANARIES)) -> set[bytes]:
        kinds = ("file", "title", "user", "word")
        return {f"zq{self.tag}{kind}{number:02}".encode() for kind in kinds for number in numbers}

    def remaining(self, wanted: set[bytes]) -> set[bytes]:
        with self.sharing.admin() as db:
            return remains_in_database(wanted, db) | remains(wanted, self.one, self.other)


@pytest.fixture
def home(sharing: SharedServer, tmp_path: Path) -> Home:
    made = Home(sharing, sharing.shared(tmp_path / "one"), tmp_path / "one", tmp_path / "two")
    folder = tmp_path / "folder"
    folder.mkdir()
    own = f"zq{made.tag}"
    for number, name in enumerate(made.names()):
        (folder / name).write_text(
            f"---\nclassification: internal\ntitle: Of {own}title{number:02}\n"
            f"allow: [user:{own}user{number:02}, user:all]\n---\n"
            f"Branches report to {own}word{number:02} in May, {own}file00.md says."
        )
    (folder / "stays.md").write_text("---\nclassification: internal\n---\nBranches report in June.")
    with made.engine(made.one) as engine:
        engine.sync(folder)
    sharing.joined(made.other, made.one, made.schema)
    shutil.rmtree(folder)
    return made


def vectors(engine: Engine) -> list[np.ndarray]:
    store = engine._collection.store
    keys = [label for name in engine_names(engine) for label in store.labels.of_document(name).tolist()]
    return list(store.labels.rows(np.array(keys, np.int64))[1])


def engine_names(engine: Engine) -> list[str]:
    names = dict.fromkeys(row[1] for row in engine._collection.store.documents.described())
    return [name for name in names if name != "stays.md"]


def found(engine: Engine) -> list[str]:
    return [one.text for one in engine.retrieve(QUESTION, ASKER, 50).passages]


def test_nothing_is_left_in_the_database_or_in_the_files_of_two_engines(home: Home) -> None:
    """Texts, rare words, titles, ids, file names, users and vectors: all are there before, and none is there after."""
    wanted = home.canaries()
    with home.engine(home.one) as one, home.engine(home.other) as other:
        assert len(found(one)) == len(found(other)) == CANARIES + 1
        stored = [as_stored(vector) for vector in vectors(one)]
        single, half = ({pair[at] for pair in stored} for at in (0, 1))
        assert len(single) == CANARIES
    tables = ", ".join(f"{home.schema}.{name}" for name in ("vectors", "chunks", "principals", "embedded"))
    home.sharing.alter(f"ANALYZE {tables}")  # the server samples values, too
    assert wanted | single <= home.remaining(wanted | single)
    for directory in (home.one, home.other):
        assert remains(single | half, directory) >= single or remains(half, directory) >= half

    with home.engine(home.one) as one, home.engine(home.other) as other:
        asked = one.ask(QUESTION, ASKER)
        done = one.erase(home.names(), admin=home.sharing.url, **WHO)
        assert (done.documents, done.passages) == (CANARIES, CANARIES)
        assert {"postgresql-wal", "other-engines"} < set(done.beyond)
        assert found(other) == found(one) == ["Branches report in June."]
        for engine in (one, other):
            engine._collection.check()
            assert verify_receipt(asked.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        assert home.remaining(wanted | single | half) == set()
        one.log.verify()


def test_an_engine_that_was_closed_rewrites_its_files_at_its_next_opening(home: Home) -> None:
    """It needs no administrator for that."""
    with home.engine(home.other) as other:
        single = {as_stored(vector)[0] for vector in vectors(other)}
        half = {as_stored(vector)[1] for vector in vectors(other)}
    with home.engine(home.one) as one:
        one.erase(home.names(), admin=home.sharing.url, **WHO)
    assert remains(single | half, home.other)
    home.engine(home.other).close()
    assert not remains(home.canaries() | single | half, home.one, home.other)


def test_the_administrator_is_needed(home: Home) -> None:
    """Without the owner's address of this very database nothing is put on record, and nothing is withdrawn."""
    other = home.sharing.a_schema()
    home.sharing.alter(f"CREATE DATABASE {other}")
    elsewhere = home.sharing.url.replace(f"/{home.sharing.database.name}?", f"/{other}?")
    with home.engine(home.one) as engine:
        size = engine.log.size
        for admin, said in (
            (None, "give the address of the administrator"),
            (home.sharing.address(home.schema).partition("&")[0], "does not own the store's tables"),
            (elsewhere, "a different database"),
        ):
            with pytest.raises(InvalidArgument, match=said):
                engine.erase(home.names(), admin=admin, **WHO)
        assert engine.log.size == size
        assert len(found(engine)) == CANARIES + 1


def test_an_administrator_who_may_not_clear_statistics_says_so(home: Home) -> None:
    """The tables' owner erases all the same; the record names what the server sampled."""
    owner = f"{home.schema}_owner"
    tables = f"FROM pg_class WHERE relnamespace = '{home.schema}'::regnamespace AND relkind IN ('r', 'v')"
    objects = home.sharing.alter(
        f"CREATE ROLE {owner} LOGIN",
        f"GRANT ALL ON SCHEMA {home.schema} TO {owner}",
        f"SELECT relname {tables}",
    )
    for (name,) in objects:
        home.sharing.alter(f"ALTER TABLE {home.schema}.{name} OWNER TO {owner}")
    with home.engine(home.one) as engine:
        done = engine.erase(home.names(), admin=home.sharing.database.as_account(owner), **WHO)
        assert "postgresql-statistics" in done.beyond
        assert found(engine) == ["Branches report in June."]
    home.sharing.alter(
        f"DELETE FROM pg_statistic WHERE starelid IN (SELECT oid {tables})",  # noqa: S608
        "VACUUM FULL pg_statistic",
    )
    home.engine(home.other).close()
    assert home.remaining(home.canaries()) == set()


def test_a_store_in_files_takes_no_administrator(tmp_path: Path) -> None:
    """It is refused before anything is put on record."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        size = engine.log.size
        with pytest.raises(InvalidArgument, match="leave admin out"):
            engine.erase(["a"], admin="postgresql://dba@localhost/carag", **WHO)
        assert engine.log.size == size


@pytest.mark.parametrize("at", ["_carry_out", "refresh"])
def test_an_interrupted_erasure_is_finished_by_the_next_call(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, at: str
) -> None:
    """After the record, or after the tables: other engines open and say so; with an address the same call finishes."""

    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    @contextmanager
    def unfinished() -> Iterator[None]:
        yield
        raise Killed

    with home.engine(home.one) as engine:
        size = engine.log.size
        with monkeypatch.context() as broken:
            if at == "_carry_out":
                broken.setattr(erasing.DocumentErasures, at, killed)
            else:
                broken.setattr(engine._collection, "erasing", unfinished)
            with pytest.raises(Killed):
                engine.erase(home.names()[:1], admin=home.sharing.url, **WHO)
    with home.engine(home.other) as other:
        assert "was interrupted; erase one of its documents again" in caplog.text
        assert len(found(other)) == CANARIES
        done = other.erase(home.names()[:2], admin=home.sharing.url, **WHO)
        assert (done.documents, len(done.receipts)) == (2, 2)
        erasures = [
            seq
            for seq in range(size, other.log.size)
            if isinstance(other.log.record(seq).event, DocumentErasure)
        ]
        assert [one.seq for one in done.receipts] == erasures
    in_others = {f"zq{home.tag}file00".encode()}  # whose texts name it
    caplog.clear()
    with home.engine(home.one) as engine:
        assert "was interrupted" not in caplog.text
        assert len(found(engine)) == CANARIES - 1
    assert home.remaining(home.canaries(range(2)) - in_others) == set()


def test_rows_that_a_transaction_can_still_read_are_not_said_to_be_gone(home: Home) -> None:
    """The call fails and tells why; repeated after that transaction, it finishes."""
    with home.engine(home.one) as engine:
        with home.sharing.admin() as reader, reader.transaction():
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT count(*) FROM pg_class")
            with pytest.raises(StoreLocked, match="an earlier transaction"):
                engine.erase(home.names(), admin=home.sharing.url, **WHO)
        assert home.remaining(home.canaries(range(1)))
        assert engine.erase(home.names()[:1], admin=home.sharing.url, **WHO).documents == CANARIES
        assert home.remaining(home.canaries()) == set()
