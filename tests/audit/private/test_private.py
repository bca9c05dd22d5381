"""The private half: sealed openings, batches, keys that go with what they sealed."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.audit import Opening
from carag.audit._sqlite import SqliteLink
from carag.audit.private.store import VALUE_TABLES, PrivateStore, Target
from carag.errors import AuditUnavailable, CorruptFile
from tests.audit.connections import failing
from tests.sizes import examples

SALT = bytes(range(32))


def opening(value, salt=SALT):
    return Opening(salt, value)


@contextlib.contextmanager
def private(directory):
    with contextlib.closing(opened(directory)) as link:
        yield kept(link)


def opened(directory):
    return SqliteLink(directory / "audit.db", VALUE_TABLES, create=True)


def kept(link):
    """Open the values, founded on first use as by a log without records."""
    is_new = link.execute("SELECT NOT EXISTS (SELECT 1 FROM state)").fetchone() == (1,)
    store = PrivateStore(link, may_lose=is_new)
    if is_new:
        store.start_over()
    return store


def bytes_of(directory):
    return b"".join(path.read_bytes() for path in sorted(directory.iterdir()) if path.is_file())


def copy(directory, to):
    return shutil.copytree(directory, to)


# -- keeping


def test_a_batch_comes_back_as_it_was_put(tmp_path):
    """Openings of several records are kept in one call, also those of a record that has none."""
    rows = {
        4: {"query": opening("why?"), "subject": opening("ana")},
        5: {},
        6: {"subject": opening("ana"), "answer": opening("… because \U0001f600")},
    }
    with private(tmp_path) as store:
        store.put(rows)
    with private(tmp_path) as store:
        assert {seq: store.openings(seq) for seq in rows} == rows
        assert store.of_record(6) == [Target(6, "answer"), Target(6, "subject")]
        assert store.of_subject("ana") == [
            Target(4, "query"),
            Target(4, "subject"),
            Target(6, "answer"),
            Target(6, "subject"),
        ]
        assert (store.of_subject("Ana"), store.openings(7)) == ([], {})


@pytest.mark.parametrize("statement", ["INSERT INTO holder", "INSERT INTO value"])
def test_a_batch_is_kept_whole_or_not_at_all(tmp_path, statement):
    """After a failed statement the old values are there, and the keys of the failed attempt are gone."""
    with private(tmp_path) as store:
        store.put({0: {"subject": opening("ana")}})
        store._link._db = failing(store._link._db, statement)
        with pytest.raises(AuditUnavailable):
            store.put({1: {"subject": opening("bo")}, 2: {"subject": opening("ana")}})
        assert [len(store.openings(n)) for n in range(3)] == [1, 0, 0]
        store.put({1: {"subject": opening("bo")}})
    with private(tmp_path) as store:
        assert store.openings(1)["subject"].value == "bo"


def test_nothing_is_in_clear_in_any_file(tmp_path):
    """Neither a value, nor a salt, nor the subject; and the files are the owner's alone."""
    with private(tmp_path) as store:
        store.put({0: {"subject": opening("ana@bank.example"), "query": opening("about the deal")}})
        data = bytes_of(tmp_path)
        assert not any(secret in data for secret in (b"ana@bank.example", b"about the deal", SALT))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        assert set(modes.values()) == {0o600}
        assert {"audit.db", "audit.db-wal", "private.key"} <= set(modes)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE value SET box = (SELECT box FROM value WHERE seq = 1) WHERE seq = 0",
        "UPDATE value SET field = 'answer' WHERE seq = 0",
        "UPDATE value SET seq = 7 WHERE seq = 0",
        "UPDATE holder SET wrapped = (SELECT wrapped FROM holder WHERE id = 2) WHERE id = 1",
        "UPDATE shelf SET wrapped = zeroblob(60)",
        "UPDATE value SET box = x'00'",
    ],
)
def test_a_sealed_value_opens_in_its_own_place_only(tmp_path, statement):
    """A box moved to another record, field or holder does not open as if it belonged there."""
    with private(tmp_path) as store:
        store.put({0: {"query": opening("zero")}, 1: {"query": opening("one")}})
    with sqlite3.connect(tmp_path / "audit.db") as db:
        db.execute(statement)
    db.close()
    with private(tmp_path) as store, pytest.raises(CorruptFile, match="altered"):
        store.openings(7 if "seq = 7" in statement else 0)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda key: key.unlink(),
        lambda key: key.write_text("carag-private-key/v2\n"),
        lambda key: key.write_bytes(b"\xff\xfe"),
        lambda key: key.write_text(key.read_text().replace("wrap", "warp")),
        lambda key: key.write_text(key.read_text()[:-6]),
        lambda key: key.write_text("\n".join(key.read_text().splitlines()[:2])),
        lambda key: key.chmod(0o644),
    ],
    ids=["missing", "version", "bytes", "name", "cut", "without wrap", "readable by others"],
)
def test_a_key_file_that_is_not_in_order_is_refused(tmp_path, spoil):
    """The values are not lost by opening: with the right file back they are there."""
    with private(tmp_path) as store:
        store.put({0: {"query": opening("zero")}})
    key = tmp_path / "private.key"
    saved = key.read_bytes()
    spoil(key)
    with contextlib.closing(opened(tmp_path)) as link, pytest.raises((CorruptFile, AuditUnavailable)):
        kept(link)
    key.write_bytes(saved)
    key.chmod(0o600)
    with private(tmp_path) as store:
        assert store.openings(0)["query"].value == "zero"


def test_another_logs_key_is_refused(tmp_path):
    """A key file that never wrapped this file's keys cannot be put under it."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with private(tmp_path / name) as store:
            store.put({0: {"query": opening(name)}})
    shutil.copy(tmp_path / "two" / "private.key", tmp_path / "one" / "private.key")
    with (
        contextlib.closing(opened(tmp_path / "one")) as link,
        pytest.raises(CorruptFile, match="belongs to another log"),
    ):
        kept(link)


# -- erasing


def test_erasing_a_subject_leaves_everybody_else(tmp_path):
    """What is deleted is gone; the rest opens as before, also after reopening."""
    rows = {n: {"subject": opening("ana" if n % 2 else "bo"), "query": opening(f"q{n}")} for n in range(8)}
    with private(tmp_path) as store:
        store.put({**rows, 8: {"query": opening("other")}})
        store.erase(store.of_subject("ana"), 9)
        store.erase([Target(1, "query")], 9)  # again: harmless
    with private(tmp_path) as store:
        for n in range(8):
            assert store.openings(n) == ({} if n % 2 else rows[n])
            assert store.erased_by(n) == ({"query": 9, "subject": 9} if n % 2 else {})
        assert store.openings(8)["query"].value == "other"
        assert store.of_subject("ana") == []


def test_a_record_whose_subject_is_erased_is_no_longer_tied_to_it(tmp_path):
    """The rest of that record moves to a key of its own; the subject's other records stay where they are."""
    with private(tmp_path) as store:
        store.put({n: {"subject": opening("ana"), "query": opening(f"q{n}")} for n in range(3)})
        store.erase([Target(1, "subject")], 3)
        assert {target.seq for target in store.of_subject("ana")} == {0, 2}
        assert store.openings(1)["query"].value == "q1"
        holders = store._db.execute("SELECT seq, holder FROM value WHERE field = 'query'").fetchall()
        assert len({holder for _, holder in holders}) == 2


def test_a_record_without_a_subject_keeps_what_was_not_erased(tmp_path):
    """Under another key, in the process that wrote it as in the next; of its neighbours nothing changes."""
    with private(tmp_path) as store:
        store.put({n: {"query": opening(f"q{n}"), "answer": opening("yes")} for n in range(3)})
        keys = dict(store._db.execute("SELECT id, wrapped FROM holder").fetchall())
        store.erase([Target(1, "query")], 3)
        assert not {*keys.values()} & {key for (key,) in store._db.execute("SELECT wrapped FROM holder")}
        assert [set(store.openings(n)) for n in range(3)] == [
            {"query", "answer"},
            {"answer"},
            {"query", "answer"},
        ]
    with private(tmp_path) as store:
        assert store.openings(1)["answer"].value == "yes"


def test_a_copy_from_before_an_erasure_opens_no_more(tmp_path):
    """Crypto-shredding: no key that is left anywhere unwraps what a copy of the file still has."""
    (tmp_path / "live").mkdir()
    with private(tmp_path / "live") as store:
        store.put({n: {"subject": opening(f"s{n}"), "query": opening(f"q{n}")} for n in range(3)})
    before = copy(tmp_path / "live", tmp_path / "before")
    with private(tmp_path / "live") as store:
        store.erase([Target(1, "query")], 3)
        live_keys = all_live_keys(store)
    shutil.copy(tmp_path / "live" / "private.key", before / "private.key")  # as a restored backup would be
    with contextlib.closing(opened(before)) as link, pytest.raises(CorruptFile, match="before an erasure"):
        kept(link)
    assert opened_with(before / "audit.db", live_keys) == {(0, "query"), (0, "subject")} | {
        (2, "query"),
        (2, "subject"),
    }


def all_live_keys(store):
    """Unwrap every key the store still can: the strongest attacker after the fact."""
    keys = [store._wrapping]
    keys += [
        store._shelf(store._db, shelf) for (shelf,) in store._db.execute("SELECT id FROM shelf").fetchall()
    ]
    rows = store._db.execute("SELECT id, wrapped FROM holder").fetchall()
    return keys + [store._holder_key(store._db, *row) for row in rows]


def opened_with(path, keys):
    """Return what a copy of the file gives away to a holder of these keys, unwrapping as far as they lead."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from carag.audit.private.keys import unseal, unwrap

    with contextlib.closing(sqlite3.connect(path)) as db:
        for table in ("shelf", "holder"):
            for number, wrapped in db.execute(f"SELECT id, wrapped FROM {table}").fetchall():  # noqa: S608
                for key in keys:
                    with contextlib.suppress(CorruptFile):
                        keys = [*keys, AESGCM(unwrap(key, wrapped, f"{table} {number}"))]
        found = set()
        for seq, field, box in db.execute("SELECT seq, field, box FROM value").fetchall():
            for key in keys:
                with contextlib.suppress(CorruptFile):
                    unseal(key, box, seq, field)
                    found.add((seq, field))
        return found


def test_the_attacker_of_these_tests_can_open_a_copy(tmp_path):
    """With the keys as they were, the copy opens: so above it is the erasure that stops it."""
    with private(tmp_path) as store:
        store.put({0: {"query": opening("zero")}})
        keys = [store._wrapping]
    assert opened_with(tmp_path / "audit.db", keys) == {(0, "query")}


@pytest.mark.parametrize("step", ["UPDATE shelf", "UPDATE state SET wrapping", "COMMIT"])
def test_a_failed_erasure_can_be_done_again(tmp_path, step):
    """Wherever and however often it stops, every value is still there or gone, and the key file has the right key."""
    with private(tmp_path) as store:
        store.put({n: {"query": opening(f"q{n}")} for n in range(3)})
        for _ in range(2):
            store._link._db = failing(store._link._db, step)
            with pytest.raises(AuditUnavailable):
                store.erase([Target(1, "query")], 3)
    with private(tmp_path) as store:
        assert [len(store.openings(n)) for n in range(3)] == [1, 1, 1]
        store.erase([Target(1, "query")], 3)
        assert [len(store.openings(n)) for n in range(3)] == [1, 0, 1]
    assert (tmp_path / "private.key").read_text().count("wrap ") == 1


def test_a_crash_before_the_old_key_goes_is_finished_at_opening(tmp_path, monkeypatch):
    """Between the commit and the key file, both keys are there; the next opening keeps the one in force."""
    with private(tmp_path) as store:
        store.put({n: {"query": opening(f"q{n}")} for n in range(2)})

        def crash(key_id):
            raise KeyboardInterrupt

        store._keys.keep_only = crash
        with pytest.raises(KeyboardInterrupt):
            store.erase([Target(1, "query")], 2)
    assert (tmp_path / "private.key").read_text().count("wrap ") == 2
    with private(tmp_path) as store:
        assert [len(store.openings(n)) for n in range(2)] == [1, 0]
    assert (tmp_path / "private.key").read_text().count("wrap ") == 1


def test_a_reader_in_the_way_is_told_of(tmp_path):
    """Another program's open read keeps the write-ahead log, so the erasure is not reported as done."""
    with private(tmp_path) as store:
        store.put({0: {"query": opening("zero")}})
        with contextlib.closing(sqlite3.connect(tmp_path / "audit.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM value").fetchall()
            store._link.execute("PRAGMA busy_timeout=50")
            with pytest.raises(AuditUnavailable, match="another program"):
                store.erase([Target(0, "query")], 1)
        store.erase([Target(0, "query")], 1)
        assert (tmp_path / "audit.db-wal").stat().st_size == 0


SUBJECTS = st.sampled_from(["ana", "bo", None])


@settings(max_examples=examples(40), deadline=None)
@given(
    people=st.lists(SUBJECTS, min_size=1, max_size=8),
    erased=st.lists(
        st.lists(st.tuples(st.integers(0, 7), st.sampled_from(["subject", "query"])), min_size=1), max_size=4
    ),
)
def test_whatever_is_erased_the_rest_opens(tmp_path_factory, people, erased):
    """For any records and any erasures: what was not erased opens, what was does not, with any key left."""
    directory = tmp_path_factory.mktemp("private")
    rows = {
        n: {"query": opening(f"q{n}"), **({} if who is None else {"subject": opening(who)})}
        for n, who in enumerate(people)
    }
    with private(directory) as store:
        store.put(rows)
    before = copy(directory, directory / "before")
    gone = set()
    with private(directory) as store:
        for number, targets in enumerate(erased, len(rows)):
            there = [Target(*t) for t in targets if t[0] in rows and t[1] in rows[t[0]] and t not in gone]
            store.erase(there, number)
            gone |= set(there)
            for seq, fields in rows.items():
                left = {name: value for name, value in fields.items() if (seq, name) not in gone}
                assert store.openings(seq) == left
            for who in set(people) - {None}:
                theirs = {
                    seq
                    for seq, fields in rows.items()
                    if "subject" in fields and fields["subject"].value == who
                }
                assert {seq for seq, _ in store.of_subject(who)} == theirs - {
                    n for n, name in gone if name == "subject"
                }
            assert not opened_with(before / "audit.db", all_live_keys(store)) & gone


def test_a_checkpoint_that_was_cut_off_is_mended_from_the_log(tmp_path):
    """Half a page in the file does no harm while the write-ahead log has the whole one."""
    (tmp_path / "live").mkdir()
    with private(tmp_path / "live") as store:
        store.put({0: {"query": opening("zero")}})
        crashed = copy(tmp_path / "live", tmp_path / "crashed")
    file = crashed / "audit.db"
    data = file.read_bytes()
    file.write_bytes(data[:100] + b"\xff" * (len(data) - 100))
    with private(crashed) as store:
        assert store.openings(0)["query"].value == "zero"
