"""A store moves from place to place: copied, compared to the last bit, switched, and back; each an act of its own."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carag.audit import AuditLog, Move, RowsIn, Verdict, verify_receipt
from carag.audit.auditor.describe import describe_record
from carag.backends import Checked, NativeBackend
from carag.cli import Exit
from carag.cli.app import run
from carag.engine import migration
from carag.engine.migration import compare_backend, copy_backend, switch_backend
from carag.errors import AuditUnavailable, BackendFault, BackendUnavailable, InvalidArgument, StoreLocked
from carag.policy import policy_word
from carag.store.store import CorpusStore
from tests.backends.in_memory import MemoryBackend, Store
from tests.engine.documents import DIM, document, ids
from tests.engine.test_backend import READER, REVIEW, filled, found, opened, script


class Kept(MemoryBackend):
    """Rows that stay when a command has closed what it opened."""

    def __init__(self, store: Store, collection: str = "rows") -> None:
        super().__init__(store)
        self._collection = collection


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with opened(tmp_path / "store") as engine:
        filled(engine)
        engine.add([document(0, text="Branches report on another day.")])
    return tmp_path / "store"


def answers(home: Path, backend: Any = None, **settings: Any) -> list[Any]:
    with opened(home, backend, **settings) as engine:
        engine._collection.check()
        return [found(engine, session) for session in (REVIEW, READER)]


def test_a_store_moves_there_and_back_with_one_root(home: Path) -> None:
    """From the file to one backend, to another, and to a file again: the answers stay, to the last bit."""
    before, places = answers(home), [Store(), Store()]
    roots = set()
    path = ["native", Kept(places[0], "one"), Kept(places[1], "two"), "native"]
    for here, there in itertools.pairwise(path):
        copied = copy_backend(home, here, there)
        assert before == answers(home, here)
        switched = switch_backend(home, there)
        assert (copied.rows, copied.root) == (switched.rows, switched.root)
        roots.add(copied.root)
        assert before == answers(home, there)
    assert 1 == len(roots)
    assert before == answers(home)
    assert not (home / "index.copy").exists()


def moves(home: Path) -> list[Move]:
    with AuditLog.open(home) as log:
        events = [log.record(seq).event for seq in range(log.size)]
    return [one for one in events if isinstance(one, Move)]


def test_a_switch_is_on_record_with_both_places(home: Path, tmp_path: Path) -> None:
    """Kind, collection, epoch and the root that was compared; its receipt verifies, and so does what is asked later."""
    one, two = Kept(Store(), "one"), Kept(Store(), "two")
    for here, there in (("native", one), (one, two), (two, "native")):
        copied = copy_backend(home, here, there)
        switch_backend(home, there)
        last = moves(home)[-1]
        assert (copied.rows, copied.root, "SWITCHED") == (last.rows, last.root.hex(), last.why)
    at = [one.state().epoch, two.state().epoch]
    assert [
        (None, RowsIn("memory 1", "one", at[0])),
        (RowsIn("memory", "one", at[0]), RowsIn("memory 1", "two", at[1])),
        (RowsIn("memory", "two", at[1]), None),
    ] == [(made.before, made.after) for made in moves(home)]
    with AuditLog.open(home) as log:
        said = describe_record(log.record(log.size - 1))
    assert {"name": "memory", "collection": "two", "epoch": at[1]} == said["before"]
    assert ("SWITCHED", copied.root, 12) == (said["code"], said["state_root"], said["rows"])
    with opened(home) as engine:
        log, asked = engine._log, engine.retrieve("What is on record?", REVIEW).receipt
        seqs = [seq for seq in range(log.size) if isinstance(log.record(seq).event, Move)]
        for number, receipt in enumerate([*(log.receipt(seq) for seq in seqs), asked]):
            assert Verdict.VERIFIED is verify_receipt(receipt.to_bytes(), engine.vkey).verdict
            kept = tmp_path / f"{number}.json"
            kept.write_bytes(receipt.to_bytes())
            assert 0 == script.main([str(kept), "--key", engine.vkey])


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("there", ["native", "two"])
def test_a_switch_that_was_killed_is_on_record_and_repeated(
    home: Path, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the record and the store's note nothing has moved; the same call again ends it, and says so again."""
    one = Kept(Store(), "one")
    to: Any = Kept(Store(), there) if there != "native" else there
    before = answers(home)
    copy_backend(home, "native", one)
    switch_backend(home, one)
    copy_backend(home, one, to)

    def killed(*_: object) -> None:
        raise _Killed

    with monkeypatch.context() as dying:
        dying.setattr(CorpusStore, "meta_update", killed)
        with pytest.raises(_Killed):
            switch_backend(home, to)
    assert 2 == len(moves(home))
    with pytest.raises(InvalidArgument, match="are in memory, collection one"):
        opened(home)
    assert before == answers(home, one)
    switch_backend(home, to)
    first, *both = moves(home)
    assert {(first.after.name if first.after else "", "one")} == {("memory 1", "one")}
    assert 1 == len({(made.before, made.after, made.root, made.rows) for made in both})
    assert before == answers(home, to)


def test_a_switch_to_a_file_that_was_killed_makes_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the note and before the copy takes the file's place: the next opening makes it from the store."""
    place, before = Kept(Store()), answers(home)
    copy_backend(home, "native", place)
    switch_backend(home, place)
    copy_backend(home, place, "native")
    replace = Path.replace

    def killed(path: Path, target: Any) -> Path:
        if path.name == "index.copy":
            raise _Killed
        return replace(path, target)

    with monkeypatch.context() as dying:
        dying.setattr(Path, "replace", killed)
        with pytest.raises(_Killed):
            switch_backend(home, "native")
    assert before == answers(home)


def test_without_its_record_nothing_moves(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the log cannot be written, the rows are searched where they were."""
    place, before = Kept(Store()), answers(home)
    copy_backend(home, "native", place)

    def refused(*_: object, **__: object) -> None:
        raise AuditUnavailable("the disk is full")

    with monkeypatch.context() as full:
        full.setattr(AuditLog, "append", refused)
        with pytest.raises(AuditUnavailable):
            switch_backend(home, place)
    assert [] == moves(home)
    assert before == answers(home)


def test_a_store_is_switched_only_to_a_copy_of_its_own(home: Path) -> None:
    """What was not copied is refused, and nothing is noted; a copy is not searched by naming it."""
    place = Kept(Store())
    for there in (place, "native"):
        with pytest.raises(InvalidArgument, match=r"no copy|searched in native already"):
            switch_backend(home, there)
    copy_backend(home, "native", place)
    with pytest.raises(InvalidArgument, match="carag backend switch"):
        opened(home, place)
    with pytest.raises(InvalidArgument, match="carag backend switch"):
        copy_backend(home, place, "native")
    switch_backend(home, place)
    with pytest.raises(InvalidArgument, match="searched in memory, collection rows already"):
        switch_backend(home, place)
    with pytest.raises(InvalidArgument, match="the same place"):
        copy_backend(home, place, Kept(Store()))
    with pytest.raises(InvalidArgument, match="name that backend with backend"):
        opened(home)


def _lost(versions: dict[Any, Any]) -> None:
    versions.pop(next(iter(versions)))


def _other_word(versions: dict[Any, Any]) -> None:
    at = next(iter(versions))
    versions[at] = (*versions[at][:2], policy_word(1 << 20), *versions[at][3:])


def _turned(versions: dict[Any, Any]) -> None:
    at = next(iter(versions))
    versions[at] = (versions[at][0], -versions[at][1], *versions[at][2:])


class _Elsewhere(Checked):
    """Finds each row one unit in the last place farther away in one collection."""

    def search(self, *asked: Any, **how: Any) -> Any:
        found = super().search(*asked, **how)
        if self.state().collection != "next":
            return found
        return replace(found, similarities=np.nextafter(found.similarities, np.float32(-2)))


@pytest.mark.parametrize("source", ["native", "backend"])
def test_a_copy_is_compared_row_by_row_and_search_by_search(
    home: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal rows and answers pass and change nothing; other rows, or other answers from the same rows, do not."""
    here: Any = "native"
    if source == "backend":
        here = Kept(Store(), "own")
        copy_backend(home, "native", here)
        switch_backend(home, here)
    before, place = answers(home, here), Store()
    copied = copy_backend(home, here, Kept(place, "next"))
    assert copied == compare_backend(home, here, Kept(place, "next"))
    with monkeypatch.context() as wrong:
        wrong.setattr(migration, "Checked", _Elsewhere)
        with pytest.raises(BackendFault, match="9 of 9 searches found other rows"):
            compare_backend(home, here, Kept(place, "next"), searches=9)
    assert before == answers(home, here)
    _other_word(place.versions)
    with pytest.raises(BackendFault, match="1 of 12 rows are missing or differ"):
        compare_backend(home, here, Kept(place, "next"))
    with pytest.raises(InvalidArgument, match="no copy"):
        compare_backend(home, here, Kept(Store(), "another"))
    with pytest.raises(InvalidArgument, match="already"):
        compare_backend(home, here, here)


@pytest.mark.parametrize("harm", [_lost, _other_word, _turned])
def test_a_copy_that_is_not_the_store_is_refused(home: Path, harm: Any) -> None:
    """A row that is gone, another word, another vector: the store stays where it is."""
    before, place = answers(home), Kept(Store())
    copy_backend(home, "native", place)
    harm(place.store.versions)
    for _ in range(2):
        with pytest.raises(BackendFault, match=r"returned|1 of 12 rows are missing or differ"):
            switch_backend(home, place)
    assert before == answers(home)


def test_a_store_that_changed_since_is_copied_again(home: Path) -> None:
    """The switch refuses what is behind; another copy brings it up."""
    place = Kept(Store())
    copy_backend(home, "native", place)
    with opened(home) as engine:
        engine.add([document("new")])
        engine.remove(["d/3"])
        engine.add([document(1, text="Branches report on a third day.")])
    with pytest.raises((InvalidArgument, BackendFault), match=r"returned|holds|differ"):
        switch_backend(home, place)
    copy_backend(home, "native", place)
    with opened(home) as engine:
        expected = ids(engine, REVIEW)
    switch_backend(home, place)
    with opened(home, place) as engine:
        assert expected == ids(engine, REVIEW)
        engine._collection.check()


def test_the_place_before_is_the_copy_after(home: Path) -> None:
    """It is brought up to date by a copy, and the store goes back to it."""
    one, two = Kept(Store(), "one"), Kept(Store(), "two")
    for here, there in (("native", one), (one, two)):
        copy_backend(home, here, there)
        switch_backend(home, there)
    with opened(home, two) as engine:
        engine.add([document("after")])
    copy_backend(home, two, one)
    switch_backend(home, one)
    with opened(home, one) as engine:
        assert "d/after" in ids(engine, REVIEW)


@pytest.mark.parametrize("death", [1, 1.5, 4, 9.5, 14, 15, 15.5, 16, 16.5, 17, 17.5])
def test_a_copy_that_was_killed_is_finished_by_the_next(home: Path, death: float) -> None:
    """Nothing is searched there meanwhile, and the store stays where it is."""
    before, store = answers(home), Store()
    store.dies_at = death
    with pytest.raises(BackendUnavailable):
        copy_backend(home, "native", Kept(store))
    store.dies_at = None
    assert before == answers(home)
    copied = copy_backend(home, "native", Kept(store))
    assert (copied.rows, copied.root) == switch_backend(home, Kept(store))[:2]
    assert len(store.versions) == copied.rows
    assert before == answers(home, Kept(store))


def test_a_store_is_moved_by_nobody_else_meanwhile(home: Path) -> None:
    """An engine holds the lock."""
    with opened(home):
        for move in (
            lambda: copy_backend(home, "native", Kept(Store())),
            lambda: switch_backend(home, "native"),
        ):
            with pytest.raises(StoreLocked):
                move()


def test_rows_that_are_not_the_stores_are_not_taken_for_a_copy(home: Path) -> None:
    """A collection of another store, were it as large."""
    other = NativeBackend(DIM, collection="other")
    with opened(home.parent / "other", other) as engine:
        filled(engine)
    with pytest.raises((InvalidArgument, BackendFault), match=r"differ|returned"):
        copy_backend(home, "native", other)
    with pytest.raises(InvalidArgument, match="no copy"):
        switch_backend(home, other)


def test_the_commands_say_what_was_moved(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows, root and place, never an address; one that cannot be done is bad input."""
    place, before = Store(), answers(home)
    monkeypatch.setattr(migration, "backend_by_url", lambda _: Kept(place))
    store, to = ("--store", str(home)), ("--to", "redis://:secret@node")
    assert Exit.BAD_INPUT == run(["backend", "switch", *store, *to])
    assert Exit.OK == run(["backend", "copy", *store, "--from", "native", *to, "--json"])
    said = capsys.readouterr()
    copied = json.loads(said.out)
    assert {"backend": "memory 1", "collection": "rows", "rows": 12} == {
        name: value for name, value in copied.items() if name != "root"
    }
    assert Exit.OK == run(
        ["backend", "compare", *store, "--from", "native", *to, "--searches", "7", "--json"]
    )
    assert copied == json.loads(capsys.readouterr().out)
    assert Exit.OK == run(["backend", "switch", *store, *to])
    after = capsys.readouterr()
    assert f"12 rows are searched in memory 1, collection rows\n  state root {copied['root']}\n" == after.out
    assert "secret" not in said.err + after.err
    assert before == answers(home, Kept(place))
