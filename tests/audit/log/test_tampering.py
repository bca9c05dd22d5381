"""What was done to the files of a closed log is noticed when it is opened, or by verify().

What only somebody outside can notice stands in ``test_attacks.py``.
"""

from __future__ import annotations

import shutil
import sqlite3

import pytest

from carag.audit import (
    Note,
    SigningKey,
)
from carag.audit.tlog.merkle import Frontier, leaf_hash, stored_hash_index
from carag.errors import AuditUnavailable, CorruptFile

# -- what is noticed at opening


@pytest.fixture(scope="module")
def five_records(tmp_path_factory, build):
    """Keep one closed log of five records, to be copied and tampered with."""
    directory = tmp_path_factory.mktemp("five")
    with build.open_log(directory) as log:
        build.grow(log, 5)
    return directory


def renumbered(seq, to):
    return ("UPDATE rec SET seq = ? WHERE seq = ?", (to, seq))


def edit_with_leaf_hash(connection):
    """Edit record 3 and put the hash of the edited body into the tree."""
    body = (
        connection.execute("SELECT body FROM rec WHERE seq = 3").fetchone()[0].replace(b"invest", b"advise")
    )
    connection.execute("UPDATE rec SET body = ? WHERE seq = 3", (body,))
    connection.execute("UPDATE node SET hash = ? WHERE i = 4", (leaf_hash(body),))


def rewrite_history(connection):
    """Edit record 3 and recompute every node; only the signature is out of reach."""
    edit_with_leaf_hash(connection)
    frontier = Frontier()
    for (body,) in connection.execute("SELECT body FROM rec ORDER BY seq").fetchall():
        for level, n, value in frontier.append(leaf_hash(body)):
            place = stored_hash_index(level, n)
            connection.execute("UPDATE node SET hash = ? WHERE i = ?", (value, place))


def resigned(tmp_path, key):
    """Rewrite the checkpoint over the same tree under another key."""
    note = sqlite3.connect(tmp_path / "audit.db").execute("SELECT note FROM cp").fetchone()[0]
    return ("UPDATE cp SET note = ?", (key.sign(Note.parse(note).text).to_text(),))


TAMPERED = {
    "a truncated tail": (["DELETE FROM rec WHERE seq = 4"], "there are 4 records"),
    "a tail truncated with its nodes": (
        ["DELETE FROM rec WHERE seq = 4", "DELETE FROM node WHERE i = 7"],
        "there are 4 records",
    ),
    "a deleted middle row": (["DELETE FROM rec WHERE seq = 2"], "record 2 is missing"),
    "a deleted first row": (["DELETE FROM rec WHERE seq = 0"], "record 0 is missing"),
    "an edited body": (
        ["UPDATE rec SET body = replace(body, 'buy_side', 'sell_side') WHERE seq = 1"],
        "record 1",
    ),
    "an edited body of the same length": (
        ["UPDATE rec SET body = CAST(replace(CAST(body AS TEXT), 'invest', 'advise') AS BLOB) WHERE seq = 1"],
        "record 1 was altered",
    ),
    "an edited body with its leaf hash": ([edit_with_leaf_hash], "was altered"),
    "a body that is not a record": (["UPDATE rec SET body = x'7b7d' WHERE seq = 3"], "not a record"),
    "two rows swapped": (
        [renumbered(1, 99), renumbered(2, 1), renumbered(99, 2)],
        "record 1 says it is record 2",
    ),
    "an altered leaf hash": (["UPDATE node SET hash = zeroblob(32) WHERE i = 4"], "was altered"),
    "an altered peak": (["UPDATE node SET hash = zeroblob(32) WHERE i = 6"], "tree's root is not"),
    "a record edited and the whole tree redone": ([rewrite_history], "tree's root is not"),
    "a missing peak": (["DELETE FROM node WHERE i = 7"], "tree node"),
    "a row appended outside": ([("INSERT INTO rec VALUES (5, ?)", (b"{}",))], "there are 6 records"),
    "no checkpoint": (["DELETE FROM cp"], "no checkpoint"),
    "an altered checkpoint": (["UPDATE cp SET note = replace(note, '5', '6')"], "not signed"),
    "an added trigger": (
        ["CREATE TRIGGER t AFTER INSERT ON rec BEGIN DELETE FROM rec WHERE seq = new.seq; END"],
        "tables",
    ),
    "a dropped table": (["DROP TABLE cp"], "tables"),
}


@pytest.mark.parametrize(("statements", "message"), TAMPERED.values(), ids=TAMPERED)
def test_tampering_is_noticed_at_opening(tmp_path, build, five_records, statements, message):
    """A log that does not hold together is not opened, and the message names what is wrong."""
    shutil.copytree(five_records, tmp_path, dirs_exist_ok=True)
    build.edit(tmp_path / "audit.db", *statements)
    with pytest.raises(CorruptFile, match=message):
        build.open_log(tmp_path)


def test_a_foreign_key_is_noticed(tmp_path, build):
    """A checkpoint signed by another key, or another log's name, is not this log's."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 2)
    build.edit(tmp_path / "audit.db", resigned(tmp_path, SigningKey(build.ORIGIN, b"f" * 32)))
    with pytest.raises(CorruptFile, match="not signed by the log's own key"):
        build.open_log(tmp_path)


def test_a_swapped_key_file_is_noticed(tmp_path, build):
    """Replacing key and checkpoint together still contradicts the published vkey."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 2)
    foreign = SigningKey(build.ORIGIN, b"f" * 32)
    build.edit(tmp_path / "audit.db", resigned(tmp_path, foreign))
    (tmp_path / "audit.key").write_text(foreign.to_skey())
    with pytest.raises(CorruptFile, match="different keys"):
        build.open_log(tmp_path)


@pytest.mark.parametrize("name", ["audit.db", "audit.key"])
def test_a_missing_file_is_never_made_again(tmp_path, build, name):
    """A log that lost its records or its key does not quietly start another history."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
    (tmp_path / name).unlink()
    with pytest.raises(CorruptFile, match=f"{name} is missing"):
        build.open_log(tmp_path)


def test_an_emptied_file_is_noticed(tmp_path, build):
    """An empty audit.db is not taken for a new log."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
    (tmp_path / "audit.db").write_bytes(b"")
    with pytest.raises(CorruptFile, match="tables"):
        build.open_log(tmp_path)


@pytest.mark.parametrize("content", [b"no key", b"PRIVATE+KEY+a+00000000+AAAA", b"\xff\xfe"])
def test_a_damaged_key_file_is_noticed(tmp_path, build, content):
    """A key that cannot be read is not replaced."""
    build.open_log(tmp_path).close()
    (tmp_path / "audit.key").write_bytes(content)
    with pytest.raises(CorruptFile):
        build.open_log(tmp_path)


def test_a_key_that_others_can_read_is_refused(tmp_path, build):
    """A copied key file with a wider mode is a key somebody else may have."""
    build.open_log(tmp_path).close()
    (tmp_path / "audit.key").chmod(0o644)
    with pytest.raises(AuditUnavailable, match="chmod 600"):
        build.open_log(tmp_path)


def test_a_file_that_is_no_database_is_noticed(tmp_path, build):
    """Garbage is corruption, not unavailability."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
    (tmp_path / "audit.db").write_bytes(b"garbage" * 1000)
    with pytest.raises(CorruptFile):
        build.open_log(tmp_path)


def test_founding_can_be_cut_short_anywhere(tmp_path, build):
    """Until vkey is written there is no log yet, and founding it again completes it."""
    with build.open_log(tmp_path) as log:
        vkey = log.vkey
    (tmp_path / "vkey").unlink()
    with build.open_log(tmp_path) as log:
        assert log.vkey == vkey
    for name in ("vkey", "audit.db"):
        (tmp_path / name).unlink()
    with build.open_log(tmp_path) as log:
        assert (log.vkey, log.size) == (vkey, 0)


HIDDEN = {
    "an edited body": (
        ["UPDATE rec SET body = CAST(replace(body, 'buy', 'bye') AS BLOB) WHERE seq = 1"],
        "record 1 was altered",
    ),
    "an edited body with its leaf hash": ([edit_with_leaf_hash], r"node \(1, 1\) was altered"),
    "an altered inner node": (
        ["UPDATE node SET hash = zeroblob(32) WHERE i = 2"],
        r"node \(1, 0\) was altered",
    ),
    "a missing inner node": (["DELETE FROM node WHERE i = 5"], r"node \(1, 1\) was altered, or is missing"),
    "a node too many": (["INSERT INTO node VALUES (99, zeroblob(32))"], "no record accounts for"),
    "a missing record": (["DELETE FROM rec WHERE seq = 1"], "record 1 is missing"),
    "two rows swapped": (
        [renumbered(1, 99), renumbered(2, 1), renumbered(99, 2)],
        "record 1 says it is record 2",
    ),
}


@pytest.mark.parametrize(("statements", "message"), HIDDEN.values(), ids=HIDDEN)
def test_verify_reads_what_opening_does_not(tmp_path, build, monkeypatch, five_records, statements, message):
    """Opening re-reads the newest records only; verify() finds an edit or a gap anywhere."""
    monkeypatch.setattr("carag.audit.log.opening.REHASHED_AT_OPENING", 1)
    shutil.copytree(five_records, tmp_path, dirs_exist_ok=True)
    build.edit(tmp_path / "audit.db", *statements)
    with build.open_log(tmp_path) as log, pytest.raises(CorruptFile, match=message):
        log.verify()


def test_the_oracle_of_the_stored_tree(tmp_path, build):
    """What the log stores is the tree over the records as they can be read back."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 6)
        frontier = Frontier()
        for seq in range(6):
            frontier.append(leaf_hash(log.record(seq).to_bytes()))
        assert log.verify().root == frontier.root()
