"""Engines over one shared store: what one brings the other finds next, and there is one log.

Two engines over directories of their own stand for two processes: nothing in memory is common to them. Real processes
are killed in ``tests/service/test_shared.py``.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import carag
from carag import Document, Engine, Session
from carag.audit import AuditLog, Basis, Ingest, Verdict, erase, verify_receipt
from carag.engine.backup import back_up
from carag.engine.sharing import share
from carag.errors import AuditUnavailable, InvalidArgument, StoreLocked
from carag.policy import Profile
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.sharing import SharedServer

ASKER = Session(role="employee", purpose="work")
QUESTION = "When does the canteen open?"


def memo(text: str, *bits: str, name: str = "memo/7") -> Document:
    return Document(id=name, text=text, bits=bits or ("INTERNAL",))


class Homes:
    """Two directories that share one store."""

    def __init__(self, sharing: SharedServer, place: Path) -> None:
        self.sharing, self.one, self.other = sharing, place / "one", place / "two"
        self.schema = sharing.shared(self.one)
        with Engine.open(self.one, profile="generic", embedder="wordllama") as engine:
            engine.add([memo("The canteen opens at noon.")])
        sharing.joined(self.other, self.one, self.schema)

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[Engine, Engine]]:
        with Engine.open(self.one) as one, Engine.open(self.other) as other:
            yield one, other


@pytest.fixture
def homes(sharing: SharedServer, tmp_path: Path) -> Homes:
    return Homes(sharing, tmp_path)


def texts(engine: Engine) -> list[str]:
    return [passage.text for passage in engine.retrieve(QUESTION, ASKER).passages]


@pytest.mark.parametrize("turns", [20, pytest.param(2000, marks=pytest.mark.full)])
def test_a_new_audience_is_seen_by_the_next_search_of_the_other(homes: Homes, turns: int) -> None:
    """By turns each shares the document with one of three people, and no search of the other is stale."""
    people = [replace(ASKER, principals=frozenset({f"user:{name}"})) for name in ("ana", "bo", "cy")]
    with homes.opened() as engines:
        for turn in range(turns):
            writer, reader = engines[turn % 2], engines[1 - turn % 2]
            who = people[turn % 3]
            writer.add([replace(memo("The canteen opens at noon."), allow=who.principals)])
            assert [one for one in people if reader.retrieve(QUESTION, one).passages] == [who]


@pytest.mark.parametrize("turns", [examples(40), pytest.param(2000, marks=pytest.mark.full)])
def test_what_one_relabels_is_closed_for_the_next_question_of_the_other(homes: Homes, turns: int) -> None:
    """By turns each brings a version that the asker may use, or one that he may not: no answer is stale."""
    with homes.opened() as engines:
        for turn in range(turns):
            writer, reader = engines[turn % 2], engines[1 - turn % 2]
            text = f"The canteen opens at {turn}."
            writer.add([memo(text, *(["SECRET"] if turn % 3 == 2 else ["INTERNAL"]))])
            assert texts(reader) == ([] if turn % 3 == 2 else [text])
        one, other = engines
        other._collection.keep_up()
        for engine in engines:
            engine._collection.check()
        assert one._collection.state.root == other._collection.state.root


def test_receipts_of_both_are_of_one_log(homes: Homes) -> None:
    """Each verifies by the key of either, and the log as a whole."""
    with homes.opened() as (one, other):
        answers = [engine.ask(QUESTION, ASKER) for _ in range(5) for engine in (one, other)]
        assert {answer.outcome.value for answer in answers} == {"answer"}
        numbers = [answer.receipt.seq for answer in answers]
        assert numbers == list(range(numbers[0], numbers[0] + 10))
        for answer in answers:
            receipt = answer.receipt.to_bytes()
            assert verify_receipt(receipt, one.vkey).verdict is Verdict.VERIFIED
            assert verify_receipt(receipt, other.vkey).verdict is Verdict.VERIFIED
        assert one.log.verify() == other.log.verify()


def test_both_may_bring_documents_at_once(homes: Homes) -> None:
    """Each run is on record with its own counts, and both find all."""
    with homes.opened() as engines:
        size = engines[0].log.size

        def bring(engine: Engine, name: str) -> None:
            for n in range(5):
                engine.add([memo(f"Room {name}{n} is blue.", name=f"room/{name}{n}")])

        threads = [
            threading.Thread(target=bring, args=(engine, name))
            for engine, name in zip(engines, "ab", strict=True)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        end = engines[0].log.verify().size
        events = [engines[0].log.record(seq).event for seq in range(size, end)]
        brought = [event for event in events if isinstance(event, Ingest)]
        assert [event.documents for event in brought] == [1] * 10
        for engine in engines:
            assert len(engine.retrieve("Which room is blue?", ASKER, 20).passages) == 11
            engine._collection.check()


def test_questions_go_on_while_the_other_brings(homes: Homes) -> None:
    """No answer sees half a change: its passages belong to one instant, and its proofs verify."""
    with homes.opened() as (one, other):
        is_over = threading.Event()

        def bring() -> None:
            for n in range(15):
                one.add([memo(f"The canteen opens at {n}.", name=f"memo/{n}") for n in range(n + 1)])
            is_over.set()

        bringing = threading.Thread(target=bring)
        bringing.start()
        count = 0
        while not is_over.is_set():
            found = other.retrieve(QUESTION, ASKER, 20)
            assert verify_receipt(found.receipt.to_bytes(), other.vkey).verdict is Verdict.VERIFIED
            count += 1
        bringing.join()
        assert count > 3
        assert len(texts(other)) == 8


def test_a_process_that_comes_back_has_its_own_index(homes: Homes) -> None:
    """A directory's files are not rebuilt, unless another process changed the store meanwhile."""
    with homes.opened():
        pass
    with homes.opened() as (one, other):
        assert (one._collection.added, other._collection.added) == (0, 0)
        one.add([memo("The library opens at ten.", name="memo/8")])
        other._collection.keep_up()
        assert other._collection.added == 1


def test_other_labels_are_accepted_by_one_alone(homes: Homes) -> None:
    """They are what every process has searched in memory."""
    with Engine.open(homes.other), pytest.raises(StoreLocked, match="accepting other labels needs"):
        Engine.open(homes.one, accept={"labels"})
    Engine.open(homes.one, accept={"labels"}).close()


def test_the_profile_is_that_of_the_store(homes: Homes) -> None:
    """Another one is refused, in whichever directory."""
    with pytest.raises(InvalidArgument, match="the store's profile is 'generic'"):
        Engine.open(homes.other, profile=Profile.open("edgar"))


def test_its_rows_are_in_no_backend(homes: Homes) -> None:
    """Every process has an index of its own, which is as fast as one can be; a backend is not shared with it yet."""
    with pytest.raises(InvalidArgument, match="leave the backend out"):
        Engine.open(homes.one, backend="postgresql://a@b/c?collection=d")


def test_a_log_is_opened_while_another_process_writes(homes: Homes) -> None:
    """Its end is read as of one instant."""
    with Engine.open(homes.one) as one:
        is_over = threading.Event()

        def ask() -> None:
            while not is_over.is_set():
                one.retrieve(QUESTION, ASKER)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            for _ in range(5):
                AuditLog.open(homes.other).close()
        finally:
            is_over.set()
            asking.join()


def test_a_directory_is_one_engine_s(homes: Homes) -> None:
    """Its files are; the store is not."""
    with homes.opened(), pytest.raises(StoreLocked):
        Engine.open(homes.one)


def test_a_store_is_shared_from_its_beginning(sharing: SharedServer, homes: Homes, tmp_path: Path) -> None:
    """A store in files is moved to another directory or not at all; one that is shared stays with its store."""
    with Engine.open(tmp_path / "own", profile="generic", embedder="wordllama"):
        pass
    with pytest.raises(InvalidArgument, match="a store of its own; name an empty directory"):
        share(tmp_path / "own", sharing.address(homes.schema))
    with pytest.raises(InvalidArgument, match="shares the store at"):
        share(homes.one, sharing.address("another"))
    with pytest.raises(InvalidArgument, match="must be a PostgreSQL URL without a password"):
        share(tmp_path / "third", "postgresql://a:secret@b/c")
    with pytest.raises(InvalidArgument, match="longer than 50 characters"):
        share(tmp_path / "third", sharing.address("a" * 51))
    assert not (tmp_path / "third").exists()


def test_what_is_not_set_up_is_told(sharing: SharedServer, tmp_path: Path) -> None:
    """By an administrator, as the message says."""
    share(tmp_path / "one", sharing.address("nobody_made"))
    with pytest.raises(AuditUnavailable, match=r"there are no tables.*carag share --admin"):
        Engine.open(tmp_path / "one")
    with pytest.raises(carag.errors.CaragError):
        Engine.open(tmp_path / "two", create=False)


def test_a_backup_is_the_database_s(homes: Homes, tmp_path: Path) -> None:
    """The directory has no data."""
    with pytest.raises(InvalidArgument, match="back up its database"):
        back_up(homes.one, tmp_path / "backup")


def test_a_server_that_is_gone_lets_nothing_out(homes: Homes) -> None:
    """And when it is back, both go on."""
    with homes.opened() as (one, other):
        homes.sharing.alter(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE usename = 'carag_app' AND datname = current_database()"
        )
        for engine in (one, other):
            with pytest.raises(carag.errors.CaragError, match="cannot be"):
                engine.ask(QUESTION, ASKER)
            with contextlib.suppress(AuditUnavailable):  # its second connection was lost, too
                engine.ask(QUESTION, ASKER)
            assert engine.ask(QUESTION, ASKER).outcome.value == "answer"
        assert one.log.verify() == other.log.verify()


def test_a_conversation_goes_on_at_the_other(homes: Homes) -> None:
    """Its turns are in the one log, and an erasure at one ends it for both."""
    ana = replace(ASKER, subject="ana", conversation="c")
    with homes.opened() as (one, other):
        one.ask("How much did Acme Corp pay in dividends in 2020?", ana)
        read = other.ask("And the year before?", ana).understood
        assert read.endswith("read as: How much did Acme Corp pay in dividends in 2019?")
        erase(one.log, actor="dpo", approver="cco", basis=Basis.UNLAWFUL, subject="ana")
        assert other.requests.turns(ana) == ()
