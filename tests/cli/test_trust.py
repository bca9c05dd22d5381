"""``carag trust`` pins the user's own code to one store, outside it and on record."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

from carag.cli import Exit
from carag.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODELS = """
class Lengths:
    name, dim, fingerprint = "lengths", 2, "1"

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return [len(text), 1 + text.count("e")]


class Newer(Lengths):
    fingerprint = "2"
"""
SESSION = ("--role", "public", "--purpose", "read")
OWN = "trusted_models:Lengths"


@pytest.fixture
def home(own_settings: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current directory with a store of an own embedder, which nothing names any more."""
    (own_settings / "notes").mkdir()
    (own_settings / "notes" / "a.md").write_text(
        "---\nclassification: public\n---\nThe canteen opens at noon.\n"
    )
    (own_settings / "models").mkdir()
    (own_settings / "models" / "trusted_models.py").write_text(MODELS)
    monkeypatch.syspath_prepend(str(own_settings / "models"))
    assert run(["init", "--profile", "generic", "--store", "store", "--embedder", OWN]) == Exit.OK
    assert run(["ingest", "notes"]) == Exit.OK
    (own_settings / "carag.toml").unlink()
    yield own_settings
    sys.modules.pop("trusted_models", None)


@pytest.fixture
def pins(home: Path) -> Path:
    return home / "config" / "carag" / "trusted.toml"


def asks(store: str = "store") -> int:
    return run(["ask", "When does the canteen open?", "--store", store, *SESSION])


def changes(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the reasons of the records of models, the oldest first."""
    capsys.readouterr()
    assert run(["audit", "list", "--store", "store", "--json"]) == Exit.OK
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [one["code"] for one in reversed(said) if one["kind"] == "model"]


def test_a_trusted_embedder_needs_no_name_until_it_is_withdrawn(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To ask and to ingest."""
    assert asks() == Exit.BAD_INPUT
    assert run(["trust", OWN, "--store", "store"]) == Exit.OK
    (home / "notes" / "b.md").write_text("---\nclassification: public\n---\nIt closes at two.\n")
    assert (asks(), run(["ingest", "notes", "--store", "store"])) == (Exit.OK, Exit.OK)
    assert run(["trust", "--withdraw", "--store", "store"]) == Exit.OK
    assert asks() == Exit.BAD_INPUT
    assert run(["trust", "--withdraw", "--store", "store"]) == Exit.BAD_INPUT


def test_trust_is_on_record_and_leaves_the_models_as_they_are(
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No opening writes that they changed; and the log replays."""
    run(["trust", OWN, "--store", "store"])
    asks()
    run(["trust", "--withdraw", "--store", "store"])
    asks()
    assert changes(capsys) == ["FIRST_MODELS", f"TRUSTED:{OWN}", f"UNTRUSTED:{OWN}"]
    assert run(["audit", "verify", "--store", "store"]) == Exit.OK
    assert run(["audit", "replay", "--store", "store"]) == Exit.OK


def test_the_pin_is_the_users_alone_and_listed(
    home: Path, pins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two stores, two pins; trusted again, still one each."""
    shutil.copy(home / "models" / "trusted_models.py", home / "models" / "others.py")
    run(["init", "--profile", "generic", "--store", "second", "--embedder", OWN])
    for store in ("store", "second", "store"):
        assert run(["trust", OWN, "--store", store]) == Exit.OK
    assert pins.stat().st_mode & 0o777 == 0o600
    capsys.readouterr()
    assert run(["trust", "--list"]) == Exit.OK
    assert capsys.readouterr().out.count(f"{OWN} makes lengths for the log carag.local/") == 2


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        ("wordllama", "is not MODULE:FACTORY"),
        ("trusted_models:Newer", "an earlier state"),
        ("trusted_models:none", "no callable"),
        ("no_such_module:Lengths", "No module named"),
    ],
)
def test_what_did_not_make_the_store_is_not_trusted(
    factory: str, why: str, pins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And leaves no record and no pin."""
    assert run(["trust", factory, "--store", "store"]) == Exit.BAD_INPUT
    assert why in capsys.readouterr().err
    assert not pins.exists()
    assert changes(capsys) == ["FIRST_MODELS"]


def test_a_name_that_no_record_holds_is_refused(
    home: Path, pins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is trusted."""
    long = "m" * 60
    shutil.copy(home / "models" / "trusted_models.py", home / "models" / f"{long}.py")
    assert run(["trust", f"{long}:Lengths", "--store", "store"]) == Exit.BAD_INPUT
    assert "want a code of up to 64" in capsys.readouterr().err
    assert not pins.exists()


def test_what_cannot_be_put_on_record_is_not_trusted(
    pins: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from carag.audit import AuditLog
    from carag.errors import AuditUnavailable

    def fails(*_: Any) -> None:
        raise AuditUnavailable("the disk is full")

    monkeypatch.setattr(AuditLog, "append", fails)
    assert run(["trust", OWN, "--store", "store"]) == Exit.INTERNAL
    assert "the disk is full" in capsys.readouterr().err
    assert not pins.exists()


def test_a_pin_counts_for_its_own_store_only(home: Path) -> None:
    """Another store of the same embedder is not opened by it."""
    run(["init", "--profile", "generic", "--store", "second", "--embedder", OWN])
    (home / "carag.toml").unlink()
    run(["trust", OWN, "--store", "store"])
    assert (asks(), asks("second")) == (Exit.OK, Exit.BAD_INPUT)


def test_a_pin_counts_after_the_logs_key_was_rotated(home: Path) -> None:
    run(["trust", OWN, "--store", "store"])
    assert run(["audit", "rotate", "--store", "store"]) == Exit.OK
    assert asks() == Exit.OK


@pytest.mark.parametrize("note", ["embedder", "embedder_fingerprint"])
def test_of_a_store_of_another_embedder_nothing_is_imported(
    note: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Though it has the key of the store that the pin is for."""
    import sqlite3
    from contextlib import closing

    run(["trust", OWN, "--store", "store"])
    with closing(sqlite3.connect(home / "store" / "corpus.db")) as sql:
        sql.execute("UPDATE meta SET value = 'other' WHERE name = ?", (note,))
        sql.commit()
    sys.modules.pop("trusted_models")
    (home / "models" / "trusted_models.py").write_text("raise SystemExit('it ran')")
    assert asks() == Exit.BAD_INPUT
    assert "carag trust --withdraw" in capsys.readouterr().err
    assert "trusted_models" not in sys.modules


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_pins_that_others_may_write_are_not_believed(
    mode: int, pins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor any in a store."""
    run(["trust", OWN, "--store", "store"])
    pins.chmod(mode)
    assert asks() == Exit.BAD_INPUT
    assert "is writable by others" in capsys.readouterr().err
    pins.chmod(0o600)
    assert asks() == Exit.OK


def test_pins_in_a_store_are_not_believed(
    home: Path, pins: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither read nor written, even if the environment leads there."""
    run(["trust", OWN, "--store", "store"])
    shutil.copytree(pins.parent, home / "store" / "carag")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "store"))
    assert asks() == Exit.BAD_INPUT
    assert "inside a store are never read" in capsys.readouterr().err


def test_a_path_that_is_not_absolute_is_not_where_pins_are(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ignored, as the XDG specification has it; or the current directory would say what is trusted."""
    run(["trust", OWN, "--store", "store"])
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    monkeypatch.setenv("HOME", str(home / "models"))
    assert asks() == Exit.BAD_INPUT
    (home / "config").rename(home / "models" / ".config")
    assert asks() == Exit.OK


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("trust",), "give exactly one of"),
        (("trust", OWN, "--list"), "give exactly one of"),
        (("trust", OWN), "no store is given"),
        (("trust", OWN, "--store", "none"), "name a store"),
    ],
)
def test_a_command_that_says_too_little_or_too_much_is_refused(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words]) == Exit.BAD_INPUT
    assert why in capsys.readouterr().err
