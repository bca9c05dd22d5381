"""A site on this machine that records what it is asked, when by the test's clock, and answers as it is told."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from carag.sources import FetchReport, Limits, fetch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WHO = "keeper@example.org"


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self, now: float = 1_750_000_000.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    at: float


@dataclass
class Answer:
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def page(*links: str, text: str = "A page.") -> Answer:
    body = f"<title>T</title><p>{text}</p>" + "".join(f'<a href="{link}">x</a>' for link in links)
    return Answer(body.encode(), headers={"Content-Type": "text/html; charset=utf-8"})


def plain(text: str, **headers: str) -> Answer:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(text.encode(), headers={"Content-Type": "text/plain", **told})


def moved(to: str, status: int = 301) -> Answer:
    return Answer(status=status, headers={"Location": to})


@dataclass
class Site:
    """What is published, by path and query; a list answers in turn, and then with its last."""

    clock: Clock
    pages: dict[str, Answer | list[Answer] | Callable[[], Answer]]
    asked: list[Asked] = field(default_factory=list)
    port: int = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        return [one.path for one in self.asked]

    def answer(self, path: str) -> Answer:
        found = self.pages.get(path, Answer(status=404))
        if isinstance(found, list):
            return found.pop(0) if len(found) > 1 else found[0]
        return found if isinstance(found, Answer) else found()


@contextmanager
def published(clock: Clock, pages: dict[str, Answer | list[Answer] | Callable[[], Answer]]) -> Iterator[Site]:
    """Serve a site on a port of 127.0.0.1; ETags and dates of answers are kept to as a server should."""
    site = Site(clock, pages)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(
                Asked(self.path, {name.lower(): text for name, text in self.headers.items()}, clock())
            )
            answer = site.answer(self.path)
            status, body = answer.status, answer.body
            etag, date = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
            matches = self.headers.get("If-None-Match")
            since = self.headers.get("If-Modified-Since")
            if status == 200 and ((etag and etag == matches) or (not etag and date and date == since)):
                status, body = 304, b""
            self.send_response(status)
            for name, text in answer.headers.items():
                self.send_header(name, text)
            if "Content-Length" not in answer.headers and status != 304:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def run(site: Site, folder: Path, start: str = "/c/", **more: Any) -> FetchReport:
    limits = Limits(**{"depth": 3} | more.pop("limits", {}))
    return fetch(
        site.origin + start,
        folder,
        contact=WHO,
        clock=site.clock,
        sleep=site.clock.sleep,
        limits=limits,
        **more,
    )


def held(folder: Path) -> dict[str, str]:
    """The documents of a folder: their texts by the ends of their addresses."""
    rows = [json.loads(line) for line in (folder / "metadata.jsonl").read_text("utf-8").splitlines()]
    assert {row["file"] for row in rows} | {"metadata.jsonl"} == {one.name for one in folder.iterdir()}
    assert len({row["url"] for row in rows}) == len(rows)
    return {row["url"].split("/", 3)[3]: (folder / row["file"]).read_text("utf-8") for row in rows}
