"""Only commands of a store's owner are answered by the service that holds it, as if they held it themselves."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import stat
import threading
from typing import TYPE_CHECKING, Any

import pytest

from carag import Engine, Session
from carag.audit import SessionSource
from carag.cli import Exit
from carag.cli.app import run
from carag.errors import AuditUnavailable, InvalidArgument, ServiceUnavailable, StoreLocked
from carag.service import owner
from carag.service.owner import NAME, OwnerSocket, asked_there
from tests.service.conftest import CHUNK, QUESTION, events
from tests.service.test_serving import CONFIG, Command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(not owner.IS_THERE, reason="the system does not report the user of a process")

ANALYST = Session(role="buy_side", purpose="invest")
SETTINGS = {"generator": "extractive", "ranker": None}
ROLE = ["--role", "buy_side", "--purpose", "invest"]


@pytest.fixture
def held(engine: Engine, home: Path) -> Iterator[OwnerSocket]:
    with OwnerSocket(engine, home, SETTINGS) as opened:
        yield opened


def comparable(text: str) -> str:
    """Return printed output without the number of the record."""
    return re.sub(r'("record":\s*|record )\d+', r"\1N", text)


OFFICER_ROLE = ["--role", "compliance", "--purpose", "surveil"]
COMMANDS = [
    ["ask", QUESTION, *ROLE],
    ["ask", QUESTION, *ROLE, "--json"],
    ["ask", QUESTION, *ROLE, "--as-of", "1990-01-01", "--subject", "ana", "--session", "c1"],
    ["ask", QUESTION, *ROLE, "--entity", "9990001", "--entity", "2488"],
    ["ask", QUESTION, "--role", "wizard", "--purpose", "invest"],
    ["ask", QUESTION, *OFFICER_ROLE, "--as-of", "2024-06-30T10:00:00-04:00"],
    ["explain", CHUNK, *ROLE],
    ["explain", CHUNK, *OFFICER_ROLE, "--json"],
    ["explain", "0009999999-24-000777:00000", *ROLE],
    ["ask", "", *ROLE],
    ["ask", QUESTION, *ROLE, "--where", "no_such_field=1"],
]


def test_a_command_prints_the_same_while_a_service_holds_the_store(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Output, exit code and errors; one line on standard error says where it was asked."""
    told = "a running service holds the store; the question was sent to it"

    def ran() -> list[Any]:
        return [(run([*words, "--store", str(home)]), capsys.readouterr()) for words in COMMANDS]

    alone = ran()
    with Engine.open(home) as engine, OwnerSocket(engine, home, SETTINGS):
        there = ran()
    for words, (code, printed), (other, also) in zip(COMMANDS, alone, there, strict=True):
        assert (code, comparable(printed.out)) == (other, comparable(also.out)), words
        is_error = code == Exit.BAD_INPUT
        assert printed.err == also.err if is_error else told == " ".join(also.err.split()), words


def test_what_is_asked_there_is_recorded_as_stated(engine: Engine, home: Path, held: OwnerSocket) -> None:
    """The record says that the session was not verified."""
    found = asked_there(home, "ask", QUESTION, ANALYST, stated={})
    event = events(engine)[json.loads(found or b"")["record"]]
    assert (SessionSource.ASSERTED, "buy_side") == (event.source, event.role)


def test_without_a_service_a_held_store_is_locked(
    engine: Engine, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even if a killed service left its socket behind."""
    for _ in range(2):
        assert Exit.BAD_INPUT == run(["ask", QUESTION, "--store", str(home), *ROLE])
        assert "another writer holds" in " ".join(capsys.readouterr().err.split())
        assert None is asked_there(home, "ask", QUESTION, ANALYST, stated={})
        with socket.socket(socket.AF_UNIX) as left, owner._directory(home) as place:
            if not (home / NAME).exists():
                left.bind(place)
    assert (home / NAME).exists()


def test_a_setting_that_differs_from_the_service_s_is_refused(
    home: Path, held: OwnerSocket, capsys: pytest.CaptureFixture[str]
) -> None:
    """An answer by another generator than was requested would be a silent change."""
    command = ["ask", QUESTION, "--store", str(home), *ROLE]
    assert Exit.BAD_INPUT == run([*command, "--ranker", "dense"])
    assert "a different ranker from what this command states" in " ".join(capsys.readouterr().err.split())
    assert Exit.OK == run([*command, "--generator", "extractive"])


def test_other_users_are_not_answered(
    engine: Engine, home: Path, held: OwnerSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file's mode keeps them out; the service drops their connections, and a command refuses their service."""
    found = (home / NAME).lstat()
    assert (True, 0o600) == (stat.S_ISSOCK(found.st_mode), stat.S_IMODE(found.st_mode))
    size = engine.log.size
    here, there = threading.current_thread(), os.geteuid() + 1
    own = owner._peer
    monkeypatch.setattr(owner, "_peer", lambda one: own(one) if threading.current_thread() is here else there)
    with pytest.raises(ServiceUnavailable):
        asked_there(home, "ask", QUESTION, ANALYST, stated={})
    monkeypatch.setattr(owner, "_peer", lambda one: there if threading.current_thread() is here else own(one))
    with pytest.raises(StoreLocked, match="another user"):
        asked_there(home, "ask", QUESTION, ANALYST, stated={})
    monkeypatch.undo()
    assert size == engine.log.size
    assert asked_there(home, "ask", QUESTION, ANALYST, stated={})


def test_only_a_killed_service_s_socket_is_replaced(engine: Engine, home: Path) -> None:
    """A link or a file in its place is not followed, removed or used."""
    with socket.socket(socket.AF_UNIX) as left, owner._directory(home) as place:
        left.bind(place)
    with OwnerSocket(engine, home, SETTINGS):
        assert asked_there(home, "ask", QUESTION, ANALYST, stated={})
    assert not (home / NAME).exists()
    (home / "elsewhere").write_text("kept")
    for make in (
        lambda: (home / NAME).symlink_to(home / "elsewhere"),
        lambda: (home / NAME).symlink_to(home / "nowhere"),
        lambda: (home / NAME).write_text("kept"),
    ):
        make()
        with pytest.raises(InvalidArgument, match="is not a socket of this user"):
            OwnerSocket(engine, home, SETTINGS)
        assert (home / NAME).is_symlink() or (home / NAME).read_text() == "kept"
        (home / NAME).unlink()
    assert "kept" == (home / "elsewhere").read_text()


def test_an_invalid_command_is_refused(engine: Engine, home: Path, held: OwnerSocket) -> None:
    """One that is cut or too long without an answer; foreign bytes and a command of another version with an error."""
    size = engine.log.size
    for data, answer in (
        (b"", b""),
        (b'{"text": "x"}', b""),
        (b" " * (2 << 20), b""),
        (b"GET / HTTP/1.1\r\n\r\n", b"different versions"),
        (b'{"text": "x"}\n', b"different versions"),
    ):
        with socket.socket(socket.AF_UNIX) as one, owner._directory(home) as place:
            one.settimeout(10)
            one.connect(place)
            found = b""
            with contextlib.suppress(OSError):  # unread bytes reset the connection
                one.sendall(data)
                one.shutdown(socket.SHUT_WR)
                found = one.recv(1 << 16)
            assert answer in found if answer else not found
    assert size == engine.log.size
    assert asked_there(home, "explain", CHUNK, ANALYST, stated={})


def test_an_error_there_is_the_same_error_here(
    home: Path, engine: Engine, held: OwnerSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CARAG's own errors with their message; others by type and place, for their message may contain text."""

    def fails(error: Exception) -> Any:
        def raised(*_: Any, **__: Any) -> None:
            raise error

        return raised

    monkeypatch.setattr(engine, "ask", fails(AuditUnavailable("the disk is full")))
    with pytest.raises(AuditUnavailable, match="the disk is full"):
        asked_there(home, "ask", QUESTION, ANALYST, stated={})
    monkeypatch.setattr(engine, "ask", fails(KeyError("zwyqcanary")))
    with pytest.raises(ServiceUnavailable, match=r"KeyError at test_owner\.py") as failed:
        asked_there(home, "ask", QUESTION, ANALYST, stated={})
    assert "zwyqcanary" not in str(failed.value)


@pytest.mark.release
def test_a_running_service_answers_its_owner_s_commands(
    home: Path, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After it has ended, the command opens the store itself."""
    command = Command(home, files, config=CONFIG)
    assert command.ports()[0]
    asked = ["ask", QUESTION, "--store", str(home), *ROLE, "--receipt", str(files / "r.json")]
    assert Exit.OK == run(asked)
    assert "asked there" in " ".join(capsys.readouterr().err.split())
    assert Exit.OK == run(["verify", str(files / "r.json"), "--key", str(home / "vkey")])
    assert 0 == command.ended()[0]
    assert not (home / NAME).exists()
    capsys.readouterr()
    assert Exit.OK == run(asked)
    assert "" == capsys.readouterr().err


def test_a_command_that_stalls_keeps_no_place(
    home: Path, held: OwnerSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even as many as are answered at once."""
    monkeypatch.setattr(owner, "_SECONDS", 0.05)
    with contextlib.ExitStack() as silent:
        for _ in range(2 * owner._MOST):
            one = silent.enter_context(socket.socket(socket.AF_UNIX))
            with owner._directory(home) as place:
                one.connect(place)
            one.sendall(b"{")
        assert asked_there(home, "explain", CHUNK, ANALYST, stated={})
