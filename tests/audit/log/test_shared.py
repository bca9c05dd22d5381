"""A log that several processes write: what holds of a log in a file holds of it, and there is one tree.

Two processes are two logs open over directories of their own; nothing in memory is common to them.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from pathlib import Path

import pytest

from carag.audit import AuditLog, Basis, Begin, Record, Recovery, erase, verify_receipt
from carag.audit.auditor.examine import examine, kept_receipt
from carag.audit.auditor.reader import LogReader
from carag.audit.log import shared as shared_log
from carag.audit.operations.rotation import rotate
from carag.audit.receipts.verify import Verdict
from carag.audit.tlog.encoding import b64
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument
from tests.loaded import loaded
from tests.sharing import ROLE

# -- the same tests as of a log in files


@pytest.fixture
def database(sharing, monkeypatch):
    """Let every log of the test be shared, though by one process."""
    opened = AuditLog.open.__func__

    def open_there(cls, directory, **more):
        if ":/" not in str(directory) and not (Path(directory) / "vkey").exists():
            sharing.shared(Path(directory))
        return opened(cls, directory, **more)

    monkeypatch.setattr(AuditLog, "open", classmethod(open_there))
    return sharing


def neutral(name, *, without):
    """Take over the tests of another file, apart from those about a file that is altered alone."""
    module = loaded(next(Path(__file__).parents[1].rglob(f"{name}.py")), f"postgres_{name}")
    tests = {key: value for key, value in vars(module).items() if key.startswith("test_")}
    assert set(without) <= set(tests), set(without) - set(tests)
    return {key: pytest.mark.usefixtures("database")(tests[key]) for key in tests if key not in without}


ABOUT_FILES = {
    "test_log": {
        "test_a_closed_connection_is_refused",
        "test_a_commit_waits_for_the_disk",
        "test_a_failed_commit_poisons_the_log",
        "test_a_failed_statement_leaves_the_log_as_it_was",
        "test_a_full_disk_is_refused_and_nothing_is_lost",
        "test_a_library_that_threads_cannot_share_is_refused",
        "test_a_replaced_file_is_refused",
        "test_an_unusable_path_is_an_unavailable_log",
        "test_files_are_the_owners_alone",
        "test_lost_values_are_never_made_anew_without_a_word",
        "test_proofs_outlive_the_private_values",
        "test_records_written_past_the_log_are_noticed",
        "test_a_loss_is_accepted_and_recorded_in_one_transaction",
        "test_an_error_between_values_and_record_leaves_neither",
    },
    "test_erasure": {
        "test_a_copy_of_both_files_from_before_is_erased_again_or_refused",
        "test_a_power_cut_that_takes_the_list_of_targets_does_not_take_the_erasure",
        "test_the_search_of_these_tests_would_find_it",
    },
    "test_hold": {
        "test_a_hold_goes_before_an_erasure",
        "test_a_hold_whose_person_is_lost_holds_everything",
    },
    "test_disclosure": set(),
    "test_begin": {
        "test_a_begin_struck_from_the_list_is_noticed",
        "test_a_missing_table_is_damage",
    },
}
"""Those that alter a file are not about a log on a server."""
for _name, _without in ABOUT_FILES.items():
    _tests = neutral(_name, without=_without)
    globals().update({f"{_name}_{key.removeprefix('test_')}": value for key, value in _tests.items()})


# -- one log of two processes


class Two:
    """Two directories that share one log, with the same keys; each is opened as a process would."""

    def __init__(self, sharing, place, build):
        self.sharing, self.build = sharing, build
        self.homes = place / "one", place / "two"
        self.schema = sharing.shared(self.homes[0])
        self.log = f"{self.schema}_log"
        AuditLog.open(self.homes[0], origin=build.ORIGIN).close()
        sharing.joined(self.homes[1], self.homes[0], self.schema)

    @contextlib.contextmanager
    def opened(self):
        with AuditLog.open(self.homes[0]) as one, AuditLog.open(self.homes[1]) as other:
            yield one, other

    def alter(self, *statements):
        """Do what the server's administrator can, after lifting the triggers."""
        tables = [f"{self.log}.{name}" for name in ("record", "node", "checkpoint", "begun", "ended")]
        return self.sharing.alter(
            *(f"ALTER TABLE {name} DISABLE TRIGGER carag_append_only" for name in tables),
            *(statement.format(self.log) for statement in statements),
            *(f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER carag_append_only" for name in tables),
        )


@pytest.fixture
def two(sharing, tmp_path, build):
    return Two(sharing, tmp_path, build)


def test_both_append_to_one_tree(two):
    """Numbers follow each other, receipts of either verify with the key of both, and under the head of either."""
    with two.opened() as (one, other):
        receipts = [two.build.ask(log) for _ in range(20) for log in (one, other)]
        assert [receipt.seq for receipt in receipts] == list(range(40))
        assert {verify_receipt(each.to_bytes(), one.vkey).verdict for each in receipts} == {Verdict.VERIFIED}
        assert one.vkey == other.vkey
        assert one.verify() == other.verify()
        assert one.checkpoint() == other.checkpoint()
        assert one.prove(39) == other.prove(39)
        assert one.record(39).to_bytes() == receipts[39].record
    for home in two.homes:
        kept = [kept_receipt(each.to_bytes(), (home / "vkey").read_text()) for each in receipts]
        with LogReader(home) as reader:
            assert examine(reader, kept).verdict is Verdict.VERIFIED


def test_many_at_once_lose_and_double_nothing(two):
    """Four threads of each process; every record that was acknowledged is there, once, as it was acknowledged."""
    receipts, guard = [], threading.Lock()

    def write(log):
        for _ in range(25):
            receipt = two.build.ask(log)
            with guard:
                receipts.append(receipt)

    with two.opened() as (one, other):
        threads = [threading.Thread(target=write, args=(log,)) for log in (one, other) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert sorted(receipt.seq for receipt in receipts) == list(range(200))
        assert one.verify().size == other.verify().size == 200
        assert all(other.record(each.seq).to_bytes() == each.record for each in receipts)


def test_values_of_either_are_opened_and_erased_by_either(two):
    """They are one store: an erasure replaces the key file of both, and one that was away takes over the new key."""
    with two.opened() as (one, other):
        receipt = two.build.ask(one)
        opened = other.private.openings(receipt.seq)
        assert all(
            each.opens(name, Record.parse(receipt.record).commitments[name]) for name, each in opened.items()
        )
        erase(other, records=[receipt.seq], basis=Basis.UNLAWFUL, actor="dpo", approver="cco")
        assert [log.private.openings(receipt.seq) for log in (one, other)] == [{}, {}]
        assert len({(home / "private.key").read_bytes() for home in two.homes}) == 1
    with AuditLog.open(two.homes[1]) as other:
        again = two.build.ask(other)
        erase(other, records=[again.seq], basis=Basis.UNLAWFUL, actor="dpo", approver="cco")
        kept = two.build.ask(other)
    with two.opened() as (one, other):
        assert one.private.openings(again.seq) == {}
        assert one.private.openings(kept.seq) == other.private.openings(kept.seq) != {}


def test_keys_that_lead_nowhere_open_nothing(two):
    """A key file of another log, or from after the database's backup, is refused."""
    with AuditLog.open(two.homes[0]) as one:
        two.build.ask(one)
    lines = (two.homes[1] / "private.key").read_text().splitlines()
    other = b64(bytes(32))
    (two.homes[1] / "private.key").write_text("\n".join([*lines[:2], f"wrap {other}", ""]))
    with pytest.raises(CorruptFile, match=r"private\.key does not have"):
        AuditLog.open(two.homes[1])


ASKED = {"query": "What did the filer do?", "subject": "ana@bank.example"}


def a_begin(build):
    one = build.access()
    return Begin(
        started=one.started,
        role="buy_side",
        purpose="invest",
        source=one.source,
        as_of=one.as_of,
        policy=one.policy,
        models=one.models,
    )


def test_who_opens_second_leaves_what_the_first_began_alone(two):
    """A begin is recorded as unended once the process that began it has left, and not before."""
    with AuditLog.open(two.homes[0]) as one:
        begun = one.append(a_begin(two.build), secrets=ASKED).seq
        with AuditLog.open(two.homes[1]) as other:
            assert other.size == begun + 1
            one.append(
                two.build.access(begun=begun), secrets=two.build.SECRETS, passages=two.build.passages()
            )
            left = one.append(a_begin(two.build), secrets=ASKED).seq
            assert other.verify().size == left + 1
    with AuditLog.open(two.homes[1]) as other:
        assert other.record(left + 1).event == Recovery("UNENDED_BEGINS", (left,))
        other.verify()


def test_a_directory_without_the_keys_is_refused(sharing, two, tmp_path):
    """A new key would begin another history."""
    sharing.shared(tmp_path / "third", two.schema)
    with pytest.raises(CorruptFile, match=r"copy audit\.key, vkey and private\.key"):
        AuditLog.open(tmp_path / "third")


def test_another_log_s_key_is_refused(sharing, two, tmp_path):
    """It did not sign the newest checkpoint."""
    sharing.shared(tmp_path / "other")
    AuditLog.open(tmp_path / "other").close()
    for name in ("audit.key", "vkey", "private.key"):
        shutil.copy(tmp_path / "other" / name, two.homes[1] / name)
    with pytest.raises(CorruptFile, match="not signed by the log's own key"):
        AuditLog.open(two.homes[1])


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (
            ["INSERT INTO {0}.record SELECT seq + 1, body FROM {0}.record ORDER BY seq DESC LIMIT 1"],
            "cannot be used for the audit log: duplicate key",
        ),
        (["DELETE FROM {0}.checkpoint WHERE size = 2"], "duplicate key|rollback: there are 1 records"),
        (
            ["INSERT INTO {0}.checkpoint SELECT 3, note FROM {0}.checkpoint WHERE size = 2"],
            "not signed by the log's own key|no longer ends",
        ),
        (
            [
                "INSERT INTO {0}.record SELECT seq + 1, body FROM {0}.record ORDER BY seq DESC LIMIT 1",
                "INSERT INTO {0}.checkpoint SELECT 3, replace(note, '\n2\n', '\n3\n') FROM {0}.checkpoint "
                "WHERE size = 2",
            ],
            "not signed by the log's own key",
        ),
    ],
)
def test_what_the_server_made_up_lets_nothing_out(two, statements, said):
    """A record, a checkpoint, or both, by an administrator: no process appends behind it."""
    with two.opened() as (one, other):
        two.build.ask(one)
        two.build.ask(other)
        two.alter(*statements)
        for log in (one, other):
            with pytest.raises((CorruptFile, AuditUnavailable), match=said):
                two.build.ask(log)


def test_a_turn_that_fails_is_undone_whole(two, monkeypatch):
    """Neither record nor values are there; the next one takes its number, in whichever process."""
    with two.opened() as (one, other):
        two.build.ask(one)

        def failing(*_):
            raise AuditUnavailable("no more")

        with monkeypatch.context() as broken:
            broken.setattr(shared_log, "_insert", failing)
            with pytest.raises(AuditUnavailable, match="no more"):
                two.build.ask(one)
        assert other.private.openings(1) == {}
        assert [two.build.ask(log).seq for log in (other, one)] == [1, 2]
        for log in (one, other):
            for seq in range(3):
                assert set(log.private.openings(seq)) == set(log.record(seq).commitments)
        one.verify()


def test_without_the_server_there_is_no_record_and_with_it_both_go_on(two, sharing):
    """A lost connection is replaced; what may or may not have been written is read first."""
    with two.opened() as (one, other):
        two.build.ask(one)
        two.build.ask(other)
        sharing.alter(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "  # noqa: S608
            f"WHERE usename = '{ROLE}' AND datname = current_database()"
        )
        for log in (one, other):
            with pytest.raises(AuditUnavailable, match="cannot be used for the audit log"):
                two.build.ask(log)
        assert [two.build.ask(log).seq for log in (one, other)] == [2, 3]
        one.verify()


def test_a_commit_in_doubt_is_found_by_the_next_turn(two, monkeypatch):
    """The caller got an error and nothing else; the record is there, and the log goes on behind it."""
    with two.opened() as (one, other):
        two.build.ask(one)
        turned = one._backend.turn

        @contextlib.contextmanager
        def doubtful(tip, key):
            with turned(tip, key) as end:
                yield end
            raise AuditUnavailable("the answer of the server was lost")

        with monkeypatch.context() as lost:
            lost.setattr(one._backend, "turn", doubtful)
            with pytest.raises(AuditUnavailable, match="was lost"):
                two.build.ask(one)
        assert [two.build.ask(log).seq for log in (one, other)] == [2, 3]
        assert set(one.private.openings(1)) == set(one.record(1).commitments)
        assert one.verify() == other.verify()


def test_an_account_with_other_rights_is_refused(two, sharing):
    """A role that could alter or delete a record is refused."""
    sharing.alter(f"GRANT DELETE ON {two.log}.record TO {ROLE}")
    with pytest.raises(AuditUnavailable, match="may DELETE in record"):
        AuditLog.open(two.homes[0])


def test_the_key_of_a_shared_log_stays(two):
    """Every process has a copy of it."""
    with AuditLog.open(two.homes[0]) as one, pytest.raises(InvalidArgument, match="a change of keys"):
        rotate(one)
