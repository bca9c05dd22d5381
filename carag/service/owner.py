"""Let the store owner's commands ask the service that holds the store, over a Unix socket in the store's directory.

A connection carries one command and one answer. Each is one line of JSON, after which its sender closes its direction,
so that a message without its line feed was cut.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import stat
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import ValidationError

from carag.errors import (
    AuditUnavailable,
    CaragError,
    CorruptFile,
    InvalidArgument,
    ModelUnavailable,
    Refused,
    ServiceUnavailable,
    StoreLocked,
    type_and_place,
)
from carag.policy import Session, parse_moment
from carag.service.requests import Strict
from carag.service.wire import answer_json, encoded, explanation_json
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

    from carag.engine import Engine


_logger = logger(__name__)
NAME: Final = "owner.sock"
IS_THERE: Final = hasattr(socket, "SO_PEERCRED")
"""Whether the system reports the other process's user, as Linux does; elsewhere there is no such socket."""
_MAX_COMMAND: Final = 1 << 20
_MAX_REPLY: Final = 64 << 20
"""Most bytes of a command and of an answer; an answer may be as large as a client accepts."""
_SECONDS: Final = 10.0
"""Longest wait between two pieces of a message, and for the first of a command."""
_PIECE: Final = 64 << 10
_ANSWERED: Final = b"answered "
_FAILED: Final = b"failed "
"""How a reply begins."""
_MOST: Final = 4
"""Requests handled at once; further requests wait."""
_CREDENTIALS: Final = struct.Struct("3i")
"""``struct ucred``: process, user, group."""
_ERRORS: Final = {
    kind.__name__: kind for kind in (InvalidArgument, AuditUnavailable, ModelUnavailable, CorruptFile)
}
"""Errors of the engine whose message the caller may read."""


class _Command(Strict):
    operation: Literal["ask", "explain"]
    text: str
    role: str
    purpose: str
    subject: str | None
    as_of: str | None
    entities: list[int] | None
    principals: list[str]
    conversation: str | None
    where: dict[str, Any] | None
    breaking: dict[str, str] | None
    """The words of ``Engine.break_glass``, if the question is asked under it."""
    stated: dict[str, str]

    def session(self) -> Session:
        return Session(
            role=self.role,
            purpose=self.purpose,
            subject=self.subject,
            as_of=None if self.as_of is None else parse_moment(self.as_of),
            allow_entities=None if self.entities is None else frozenset(self.entities),
            principals=frozenset(self.principals),
            conversation=self.conversation,
        )


class _Failed(Strict):
    error: str
    code: str
    message: str


def digests(settings: Mapping[str, object]) -> dict[str, str]:
    """Return a hash of each setting, so that two processes can compare them; one of them may hold a password."""
    return {name: hashlib.sha256(repr(value).encode()).hexdigest() for name, value in settings.items()}


class OwnerSocket:
    """Answer the owner's commands until closed.

    - ``engine``: the caller closes it, after :meth:`close`.
    - ``home``: the engine's store.
    - ``settings``: what the engine was opened with, by the commands' names.

    Raises InvalidArgument if anything but a socket that a service left behind is in the socket's place.
    """

    def __init__(self, engine: Engine, home: Path, settings: Mapping[str, object]) -> None:
        self._engine, self._home, self._settings = engine, home, digests(settings)
        self._threads = ThreadPoolExecutor(_MOST, thread_name_prefix="carag-owner-request")
        self._closed = False
        with _directory(home) as place:
            _clear(home / NAME)
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                # Linux creates the file with the socket's mode, so it is never open to others.
                os.fchmod(self._listener.fileno(), 0o600)
                self._listener.bind(place)
                self._listener.listen(_MOST)
            except OSError as error:
                self._listener.close()
                raise InvalidArgument(
                    f"cannot listen on {home / NAME}: {error.strerror}; keep the store on a local file system"
                ) from error
            self._inode = (home / NAME).lstat().st_ino
        self._thread = threading.Thread(target=self._accept, name="carag-owner")
        self._thread.start()

    def close(self) -> None:
        """Accept no more, finish the requests in progress, and remove the socket; idempotent."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._thread.join()
        self._listener.close()
        self._threads.shutdown()
        with contextlib.suppress(OSError):
            if (self._home / NAME).lstat().st_ino == self._inode:
                (self._home / NAME).unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._closed:
            with contextlib.suppress(OSError):  # closed, or the other side has gone
                self._threads.submit(self._serve, self._listener.accept()[0])

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                if _peer(connection) != os.geteuid():
                    _logger.warning("refused a process of another user at the owner's socket")
                    return
                connection.settimeout(_SECONDS)
                _send(connection, self._reply(_received(connection, _MAX_COMMAND)))
        except OSError as error:
            _logger.info("a connection to the owner's socket was closed: %s", type(error).__name__)

    def _reply(self, command: bytes) -> bytes:
        try:
            return _ANSWERED + encoded(self._found(command))
        except CaragError as error:
            kind = type(error).__name__
            told = str(error) if kind in _ERRORS or isinstance(error, Refused) else ""
            said = _Failed(error=kind, code=getattr(error, "code", ""), message=told)
        except Exception as error:  # noqa: BLE001 - its message could contain unrecorded text
            _logger.error("INTERNAL: %s", type_and_place(error))  # noqa: TRY400 - a traceback quotes it
            said = _Failed(error=type_and_place(error), code="", message="")
        return _FAILED + said.model_dump_json().encode()

    def _found(self, command: bytes) -> dict[str, Any]:
        try:
            asked = _Command.model_validate_json(command)
        except ValidationError:
            raise InvalidArgument(
                "the command and the service have different versions; use the same version of carag for both"
            ) from None
        if differ := [name for name, one in asked.stated.items() if self._settings.get(name) != one]:
            raise InvalidArgument(
                f"the service that holds the store runs with a different {', '.join(sorted(differ))} from what this "
                "command states; leave that out to ask the service, or stop the service"
            )
        if asked.operation == "explain":
            return explanation_json(self._engine.explain(asked.text, asked.session()))
        session = asked.session()
        if asked.breaking is not None:
            session = self._engine.break_glass(session, **asked.breaking)  # type: ignore[arg-type]
        answer = self._engine.ask(asked.text, session, where=asked.where)
        return {**answer_json(answer), "profile": self._engine.profile.name}


def asked_there(
    home: Path,
    operation: Literal["ask", "explain"],
    text: str,
    session: Session,
    *,
    where: Mapping[str, Any] | None = None,
    breaking: Mapping[str, str] | None = None,
    stated: Mapping[str, object],
) -> bytes | None:
    """Ask the service that holds a store; return its answer, or None if none is listening.

    - ``operation``: ``ask`` or ``explain``.
    - ``text``: the question or the chunk's id.
    - ``session``: only the fields that a command can state are sent.
    - ``breaking``: purpose, reason and approver, if the glass is to be broken for the question.
    - ``stated``: settings that the service must share.

    Raises StoreLocked if the listening process belongs to another user; ServiceUnavailable if the service ends before
    it has answered, or fails; CaragError as the engine raised it there.
    """
    if not IS_THERE:
        return None
    as_of: Any = session.as_of
    asked = _Command(
        operation=operation,
        text=text,
        role=session.role,
        purpose=session.purpose,
        subject=session.subject,
        as_of=None if as_of is None else as_of.isoformat(),
        entities=None if session.allow_entities is None else sorted(session.allow_entities),
        principals=sorted(session.principals),
        conversation=session.conversation,
        where=None if where is None else dict(where),
        breaking=None if breaking is None else dict(breaking),
        stated=digests(stated),
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        with _directory(home) as place:
            try:
                connection.connect(place)
            except OSError:
                return None
        if _peer(connection) != os.geteuid():
            raise StoreLocked(f"a process of another user holds {home}; ask as that user, or stop it first")
        try:
            _send(connection, encoded(asked.model_dump()))
            reply = _received(connection, _MAX_REPLY)
        except OSError:
            raise ServiceUnavailable(
                f"the service that holds {home} ended before it answered; ask again"
            ) from None
    if reply.startswith(_ANSWERED):
        return reply.removeprefix(_ANSWERED)
    try:
        failed = _Failed.model_validate_json(reply.removeprefix(_FAILED))
    except ValidationError:
        raise ServiceUnavailable(
            f"the process that holds {home} is not a service of this version; use the same version of carag for both"
        ) from None
    if failed.error == Refused.__name__:
        raise Refused(failed.code, failed.message)
    if failed.error in _ERRORS:
        raise _ERRORS[failed.error](failed.message)
    raise ServiceUnavailable(f"the service that holds {home} failed: {failed.error}; its own log says more")


def _send(connection: socket.socket, message: bytes) -> None:
    connection.sendall(message + b"\n")
    connection.shutdown(socket.SHUT_WR)


def _received(connection: socket.socket, most: int) -> bytes:
    """Read the one message from the other side; OSError if it is cut, too slow or too long."""
    data = bytearray()
    while piece := connection.recv(_PIECE):
        connection.settimeout(_SECONDS)
        data += piece
        if len(data) > most:
            raise OSError("the message is too long")
    if not data.endswith(b"\n"):
        raise OSError("the message was cut")
    return bytes(data[:-1])


@contextlib.contextmanager
def _directory(home: Path) -> Iterator[str]:
    """Give a short path to the socket: an address holds 107 bytes (unix(7)), and a store's path may be longer."""
    number = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{number}/{NAME}"
    finally:
        os.close(number)


def _clear(path: Path) -> None:
    """Remove the socket of a killed service; the caller holds the store's lock, so no service is running."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        raise InvalidArgument(
            f"{path} is not a socket of this user; find out where it comes from, and remove it"
        )
    path.unlink()


def _peer(connection: socket.socket) -> int:
    """Return the user id of the process at the other end."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(data)[1])
