"""The real server of Milvus, from the package ``milvus``, in a network of its own.

It listens on every interface, whatever its configuration says. So it runs in a network namespace with only a loopback,
and a relay on this machine's loopback connects to it from inside: a socket stays in the namespace where it was created.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

_CLONE_NEWNET: Final = 0x4000_0000
_PORT: Final = 19_530
_HEALTH: Final = 9_091
_PATIENCE: Final = 300
"""Seconds that the server may take to start."""
_TICK: Final = 20
"""Milliseconds between the ticks that a strong read waits for; the server's default is 200."""
_SESSION: Final = 300
"""Seconds without a sign of life after which a server counts as dead, also to itself on a busy machine; its default is
30. A killed one waits that long when it starts again."""


def milvus_or_skip() -> None:
    """Skip the tests of a module if the server is not available."""
    if not (find_spec("pymilvus") and find_spec("milvus")):
        pytest.skip(
            "needs a Milvus server and its client: pip install milvus pymilvus", allow_module_level=True
        )
    if os.geteuid() or not all(map(shutil.which, ("ip", "setpriv", "unshare"))):
        pytest.skip(
            "Milvus listens on every interface; isolating it needs root, ip, setpriv and unshare",
            allow_module_level=True,
        )


class MilvusServer:
    """One process, with its log and data in a directory; needs root to create a network namespace."""

    def __init__(self, directory: Path, *, tick: int = _TICK, session: int = _SESSION) -> None:
        import milvus

        config = milvus.MilvusServerConfig(data_dir=str(directory))
        settings = {
            "proxy.timeTickInterval": tick,
            "quotaAndLimits.flushRate.enabled": "false",
            "common.session.ttl": session,
        }
        for name, value in settings.items():
            config.set(name, value)
        config.resolve()
        self.directory, self.package = directory, Path(milvus.__file__).parent / "data"
        milvus._initialize_data_files(str(self.package))  # half a minute, once
        self.starts = 0
        self.process = self._start()
        self.relay = Relay(self)
        self.uri = f"http://127.0.0.1:{self.relay.port}"
        self.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        binary = self.package / "bin" / "milvus"
        environment = {
            **os.environ,
            "DEPLOY_MODE": "STANDALONE",
            "METRICS_PORT": str(_HEALTH),
            "MILVUS_RUN_DIR": str(self.directory / "run"),
            "LD_LIBRARY_PATH": str(binary.parent),
            "MILVUSCONF": str(self.directory / "configs"),
        }
        inside = 'ip link set lo up && exec "$0" run standalone'
        with (self.directory / "log").open("ab") as log:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", inside, binary],
                cwd=self.directory,
                env=environment,
                stdout=log,
                stderr=log,
            )

    def wait(self, *, starts: int = 1) -> None:
        """Wait until it is healthy; start it again, a limited number of times, if it ends before."""
        most = self.starts + starts - 1
        until = time.monotonic() + _PATIENCE
        with Relay(self, _HEALTH) as health:
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{health.port}/healthz", timeout=5) as said:
                        if b"OK" in said.read():
                            return
                except (OSError, urllib.error.URLError):
                    pass
                if self.process.poll() is not None:
                    assert self.starts < most, (self.directory / "log").read_text()[-3000:]
                    self.process = self._start()
                assert time.monotonic() < until, f"no Milvus after {_PATIENCE} s"
                time.sleep(0.2)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def restart(self, *, starts: int = 5) -> None:
        """Start it again, as often as necessary, like a supervisor."""
        self.process = self._start()
        self.wait(starts=starts)

    def stop(self) -> None:
        self.relay.close()
        if self.process.poll() is None:
            self.kill()


class Relay:
    """A port on this machine's loopback that is forwarded to one in the server's network."""

    def __init__(self, server: MilvusServer, port: int = _PORT) -> None:
        self._server, self._port = server, port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near:
            try:
                far = self._inside()
            except OSError:
                return
            with far, selectors.DefaultSelector() as ready:
                ready.register(near, selectors.EVENT_READ, (near, far))
                ready.register(far, selectors.EVENT_READ, (far, near))
                try:
                    while True:
                        for key, _ in ready.select():
                            source, target = key.data
                            if not (some := source.recv(1 << 16)):
                                return
                            target.sendall(some)
                except OSError:
                    return

    def _inside(self) -> socket.socket:
        """Connect inside the server's network; the calling thread stays there until its connection ends."""
        descriptor = os.open(f"/proc/{self._server.process.pid}/ns/net", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(descriptor)
        far = socket.create_connection(("127.0.0.1", self._port), timeout=5)
        far.settimeout(None)
        return far
