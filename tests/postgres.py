"""The one PostgreSQL server of a run: every process that runs tests has databases of its own on it.

The first process that asks starts the server, and the last one to leave stops it.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.backends.postgres_servers import Server, psycopg_or_skip, reach_programs, user

if TYPE_CHECKING:
    from collections.abc import Iterator


_NUMBERS = itertools.count()
_MEMORY = Path("/dev/shm")  # noqa: S108 - where syncing costs nothing
_ROOM = 2 << 30


class Database:
    """A database, which a test may take away from its connections and give back."""

    def __init__(self, directory: Path, name: str) -> None:
        self.directory, self.name = directory, name
        self.url = f"postgresql://postgres@/{name}?host={directory}"

    def as_account(self, account: str) -> str:
        return self.url.replace("//postgres@", f"//{account}@")

    def connect(self) -> Any:
        """Connect as the administrator; every statement is committed at once."""
        import psycopg

        return psycopg.connect(self.url, autocommit=True)

    def kill(self) -> None:
        """End all connections, and let nobody connect."""
        with _administrator(self.directory) as admin:
            admin.execute(f"ALTER DATABASE {self.name} ALLOW_CONNECTIONS false")
            admin.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
                (self.name,),
            )

    def start(self) -> None:
        """Undo :meth:`kill`."""
        with _administrator(self.directory) as admin:
            admin.execute(f"ALTER DATABASE {self.name} ALLOW_CONNECTIONS true")


class PostgresRun:
    """The server, as one process of the run sees it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def database(self) -> Database:
        """Create a database; the template has pgvector."""
        name = f"db_{os.getpid()}_{next(_NUMBERS)}"
        with _administrator(self._directory) as admin:
            admin.execute(f"CREATE DATABASE {name}")
        return Database(self._directory, name)

    @classmethod
    @contextlib.contextmanager
    def joined(cls, place: Path) -> Iterator[PostgresRun]:
        """Use the server that is noted in a directory, or start it and note it there."""
        psycopg_or_skip()
        with _noted(place) as note:
            if not note:
                note.update(directory=str(_started()), users=0)
            note["users"] += 1
            made = cls(Path(note["directory"]))
        try:
            yield made
        finally:
            with _noted(place) as note:
                note["users"] -= 1
                if not note["users"]:
                    note.clear()
                    Server(made._directory).run("pg_ctl", "-D", made._data, "-m", "immediate", "stop")
                    shutil.rmtree(made._directory, ignore_errors=True)

    @property
    def _data(self) -> str:
        return str(self._directory / "data")


@contextlib.contextmanager
def _noted(place: Path) -> Iterator[dict[str, Any]]:
    """Lend the note to one process at a time, and write what it changed."""
    with (place / "postgres.json").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        note = json.loads(file.read() or "{}")
        yield note
        file.truncate(0)
        file.write(json.dumps(note))


def _started() -> Path:
    reach_programs()
    in_memory = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM
    directory = Path(tempfile.mkdtemp(prefix="carag-pg-", dir=_MEMORY if in_memory else None))
    if user() is not None:
        shutil.chown(directory, user())
    server = Server(directory, syncs=True, settings=("max_connections=200",))
    server.create()
    settings = " ".join(f"-c {one}" for one in (*server.settings, f"unix_socket_directories={directory}"))
    log = str(directory / "log")
    server.run("pg_ctl", "-D", str(directory / "data"), "-w", "-l", log, "-o", settings, "start")
    import psycopg

    with psycopg.connect(f"postgresql://postgres@/template1?host={directory}", autocommit=True) as admin:
        admin.execute("CREATE EXTENSION vector")
    return directory


def _administrator(directory: Path) -> Any:
    import psycopg

    return psycopg.connect(f"postgresql://postgres@/postgres?host={directory}", autocommit=True)
