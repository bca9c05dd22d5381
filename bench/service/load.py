"""Send requests to a service from a process of its own: one command a line on standard input, times on standard output.

The requests are bytes made before and the sockets are plain, so that the client's own work is as little as Python's can
be: what is measured is the service.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Load:
    """Requests to one port, by as many connections at once, each in turn."""

    port: int
    connections: int
    requests: list[bytes]
    taken: list[float] = field(default_factory=list)
    failed: int = 0
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> float:
        """Send all; return the seconds that it took."""
        threads = [threading.Thread(target=self._send) for _ in range(self.connections)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - start

    def _send(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while (request := self._one()) is not None:
                start = time.perf_counter()
                connection.sendall(request)
                is_good = _answer(connection)
                self.taken.append(time.perf_counter() - start)
                self.failed += not is_good

    def _one(self) -> bytes | None:
        with self._lock:
            if self._next == len(self.requests):
                return None
            self._next += 1
            return self.requests[self._next - 1]


def _answer(connection: socket.socket) -> bool:
    """Read one answer to its end; tell whether it is one."""
    data = bytearray()
    while (end := data.find(b"\r\n\r\n")) < 0:
        data += _more(connection)
    head = bytes(data[:end]).lower()
    length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(data) < end + 4 + length:
        data += _more(connection)
    return head.startswith(b"http/1.1 200")


def _more(connection: socket.socket) -> bytes:
    if not (piece := connection.recv(1 << 18)):
        raise ConnectionError("the service closed the connection")
    return piece


def main() -> int:
    """Do what each line says."""
    for line in sys.stdin:
        said = json.loads(line)
        load = Load(said["port"], said["connections"], [one.encode() for one in said["requests"]])
        seconds = load.run()
        print(json.dumps({"seconds": seconds, "taken": load.taken, "failed": load.failed}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
