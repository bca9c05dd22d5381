"""A double of EDGAR on this machine, as strict as the SEC's, and the script that fetches from it."""

from __future__ import annotations

import gzip
import importlib.util
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = Path(__file__).parents[2] / "scripts" / "fetch_edgar.py"
AGENT = "A Tester tester@example.org"


def _load() -> Any:
    import sys

    spec = importlib.util.spec_from_file_location("fetch_edgar", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


fetch_edgar = _load()


class Sec:
    """What the double serves, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.agents: set[str] = set()
        self.turned_away: dict[str, int] = {}
        self.gone: set[str] = set()
        self.submissions: dict[str, bytes] = {}  # by path; any other filing is a header alone
        self.url = ""

    def body(self, path: str) -> bytes | None:
        if path.endswith("/QTR3/master.idx"):
            lines = ["Description: Master Index", "CIK|Company Name|Form Type|Date Filed|Filename", "-----"]
            lines += [
                f"{cik}|FILER {cik}|{form}|2024-08-0{at + 1}|edgar/data/{cik}/{cik:010d}-24-00000{at}.txt"
                for cik in range(1, 7)
                for at, form in enumerate(("10-K", "8-K", "SC 13G"))
            ]
            return "\n".join(lines).encode()
        if path.startswith("/Archives/edgar/data/") and path not in self.gone:
            if path in self.submissions:
                return self.submissions[path]
            return f"<SEC-DOCUMENT>{path}\n<SEC-HEADER>\n".encode()
        return None


@contextmanager
def serving() -> Iterator[Sec]:
    """Serve until the end."""
    served = Sec()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            served.agents.add(self.headers.get("User-Agent", ""))
            if served.turned_away.get(self.path, 0):
                served.turned_away[self.path] -= 1
                self.send_error(429)
                return
            body = served.body(self.path)
            if body is None:
                self.send_error(404)
                return
            packed = gzip.compress(body)
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(packed)))
            self.end_headers()
            self.wfile.write(packed)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}"
    yield served
    server.shutdown()
    thread.join()
    server.server_close()
