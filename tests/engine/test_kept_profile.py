"""A store keeps its profile permanently, opens under it without being told, and under no other."""

from __future__ import annotations

import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest

from carag import Engine, Session
from carag.audit import PolicyChange
from carag.errors import CorruptFile, InvalidArgument
from carag.policy import Profile
from carag.policy.shipped import shipped_text

if TYPE_CHECKING:
    from pathlib import Path

ROLES = shipped_text("generic", "roles.toml")


def write(folder: Path, roles: str = ROLES, *, name: str = "office") -> Path:
    """Write a profile with the generic bits."""
    folder.mkdir(exist_ok=True)
    text = shipped_text("generic", "profile.toml").replace('"generic"', f'"{name}"')
    (folder / "profile.toml").write_text(text)
    (folder / "roles.toml").write_text(roles)
    return folder


def opened(store: Path, **more: object) -> Engine:
    return Engine.open(store, embedder="wordllama", **more)  # type: ignore[arg-type]


def refused(engine: Engine, role: str, purpose: str) -> bool:
    return engine.retrieve("Anything?", Session(role=role, purpose=purpose)).outcome.value == "refuse"


def test_a_new_store_is_edgars_unless_it_says_otherwise(tmp_path: Path) -> None:
    """And stays what it is."""
    with opened(tmp_path / "filings") as engine:
        assert not refused(engine, "buy_side", "invest")
    with opened(tmp_path / "office", profile="generic") as engine:
        assert refused(engine, "buy_side", "invest")
        assert not refused(engine, "employee", "work")
    for store, other in (("filings", "generic"), ("office", "edgar")):
        with pytest.raises(InvalidArgument, match="its bits and metadata never change"):
            opened(tmp_path / store, profile=other)


def test_a_profile_of_ones_own_opens_where_its_folder_is_gone(tmp_path: Path) -> None:
    """Its texts are kept with the store; the folder may be given again, and must say the same."""
    folder = write(tmp_path / "office")
    opened(tmp_path / "store", profile=folder).close()
    with opened(tmp_path / "store", profile=folder) as engine:
        assert engine._collection.profile.name == "office"
    wider = write(tmp_path / "wider", ROLES.replace('"SECRET", "PERSONAL", "LEGAL"', '"SECRET", "LEGAL"'))
    with pytest.raises(InvalidArgument, match="carag policy apply"):
        opened(tmp_path / "store", profile=wider)
    with opened(tmp_path / "store") as engine:
        assert engine.profile.table.sha256 == Profile.open(folder).table.sha256
        assert not refused(engine, "employee", "work")


def test_other_roles_are_put_in_force_on_record(tmp_path: Path) -> None:
    """If the caller accepts them; the next opening needs no argument."""
    opened(tmp_path / "store", profile=write(tmp_path / "office")).close()
    wider = write(tmp_path / "wider", ROLES.replace('"SECRET", "PERSONAL", "LEGAL"', '"SECRET", "LEGAL"'))
    opened(tmp_path / "store", profile=wider, accept={"policy"}).close()
    with opened(tmp_path / "store") as engine:
        events = [engine._log.record(number).event for number in range(engine._log.size)]
    changes = [event for event in events if isinstance(event, PolicyChange)]
    assert [change.why for change in changes] == ["FIRST_TABLE", "TABLE_CHANGED"]
    assert changes[-1].table.hex() == Profile.open(wider).table.sha256


def test_roles_changed_in_the_file_do_not_open(tmp_path: Path) -> None:
    """Widened behind the log's back, they are not those on record."""
    opened(tmp_path / "store", profile=write(tmp_path / "office")).close()
    with sqlite3.connect(tmp_path / "store" / "corpus.db") as connection:
        (texts,) = connection.execute("SELECT value FROM meta WHERE name = 'profile_texts'").fetchone()
        widened = texts.replace('\\"PERSONAL\\", \\"LEGAL\\"', '\\"LEGAL\\"')
        assert widened != texts
        connection.execute("UPDATE meta SET value = ? WHERE name = 'profile_texts'", (widened,))
    with pytest.raises(CorruptFile, match="not the one on record"):
        opened(tmp_path / "store")


@pytest.mark.parametrize(
    ("note", "value"),
    [
        ("profile", "generic"),
        ("profile", "unknown"),
        ("profile_bits", "00" * 32),
        ("profile_texts", "[1, 2]"),
    ],
)
def test_a_note_that_was_changed_does_not_open(tmp_path: Path, note: str, value: str) -> None:
    """What a bit means never changes under a store."""
    opened(tmp_path / "store", profile=write(tmp_path / "office")).close()
    with sqlite3.connect(tmp_path / "store" / "corpus.db") as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = ?", (value, note))
    with pytest.raises(CorruptFile):
        opened(tmp_path / "store")


READING = 'schema = 1\nkind = "kind"\nkinds = "kinds.tsv"\n'


def with_tables(folder: Path, table: str) -> Path:
    write(folder)
    (folder / "reading.toml").write_text(READING)
    (folder / "kinds.tsv").write_text(table)
    return folder


def test_tables_for_reading_questions_are_kept_and_replaced_on_the_same_word(tmp_path: Path) -> None:
    """They are not policy, so its hash stays; but opening a store does not change them either."""
    first, second = (with_tables(tmp_path / name, f"\\b{name}\\b\tmemo\n") for name in ("notes", "minutes"))
    opened(tmp_path / "store", profile=first).close()
    shutil.rmtree(first)
    assert Profile.open(second).table.sha256 == Profile.open(write(tmp_path / "bare")).table.sha256
    for other in (second, tmp_path / "bare"):
        with pytest.raises(InvalidArgument, match="tables for reading questions than the profile given"):
            opened(tmp_path / "store", profile=other)
    with opened(tmp_path / "store") as engine:
        assert "notes" in engine.profile.reading["kinds.tsv"]
    opened(tmp_path / "store", profile=second, accept={"policy"}).close()
    with opened(tmp_path / "store", profile=second) as engine:
        assert engine.profile.reading == Profile.open(second).reading


def test_a_table_that_is_not_valid_makes_no_store(tmp_path: Path) -> None:
    """And one that was damaged in a store opens none."""
    with pytest.raises(InvalidArgument, match=r"kinds\.tsv, line 1"):
        opened(tmp_path / "store", profile=with_tables(tmp_path / "office", "(\tmemo\n"))
    opened(tmp_path / "other", profile=with_tables(tmp_path / "office", "a\tmemo\n")).close()
    with sqlite3.connect(tmp_path / "other" / "corpus.db") as connection:
        connection.execute(
            "UPDATE meta SET value = replace(value, 'kinds.tsv', 'kin') WHERE name = 'profile_reading'"
        )
    with pytest.raises(CorruptFile, match="the file 'kin' is not part of a profile"):
        opened(tmp_path / "other")


def test_a_store_from_before_tables_were_kept_opens(tmp_path: Path) -> None:
    """Its profile reads nothing of questions."""
    opened(tmp_path / "store", profile=write(tmp_path / "office")).close()
    with sqlite3.connect(tmp_path / "store" / "corpus.db") as connection:
        connection.execute("DELETE FROM meta WHERE name = 'profile_reading'")
    with opened(tmp_path / "store", profile=tmp_path / "office") as engine:
        assert engine.profile.reading == {}
