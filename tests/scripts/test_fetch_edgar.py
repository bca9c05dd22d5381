"""Fetching from EDGAR, against a server on this machine that is as strict as the SEC's."""

from __future__ import annotations

import gzip
import importlib.util
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

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
            return f"<SEC-DOCUMENT>{path}\n<SEC-HEADER>\n".encode()
        return None


@pytest.fixture
def sec() -> Any:
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


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


def a_client(sec: Sec, time: Time | None = None, **more: Any) -> Any:
    time = time or Time()
    return fetch_edgar.Client(AGENT, host=sec.url, sleep=time.sleep, clock=time.clock, **more)


def run(sec: Sec, out: Path, **more: Any) -> Any:
    wanted = {
        "first": "2024Q3",
        "last": "2024Q3",
        "forms": ("10-K", "8-K"),
        "filings": 6,
        "filers": 4,
        "seed": 1,
    }
    return fetch_edgar.fetch(a_client(sec), out, **{**wanted, **more}, say=lambda _: None)


def test_it_fetches_what_it_draws_and_says_who_asks(sec: Sec, tmp_path: Path) -> None:
    assert run(sec, tmp_path)["fetched"] == 6
    files = sorted((tmp_path / "filings").iterdir())
    assert len(files) == 6
    assert all(file.read_text().startswith("<SEC-DOCUMENT>") for file in files)
    assert {AGENT} == sec.agents
    assert not any(name.endswith("2.txt") for name in sec.asked)  # the 13Gs were not wanted


def test_what_is_on_disk_is_not_fetched_again(sec: Sec, tmp_path: Path) -> None:
    run(sec, tmp_path)
    gone = next((tmp_path / "filings").iterdir())
    gone.unlink()
    sec.asked.clear()
    assert dict(run(sec, tmp_path)) == {"kept": 5, "fetched": 1}
    assert len(sec.asked) == 1
    assert gone.name in sec.asked[0]


def test_the_same_seed_draws_the_same(sec: Sec, tmp_path: Path) -> None:
    run(sec, tmp_path / "a")
    run(sec, tmp_path / "b")
    run(sec, tmp_path / "c", seed=2)
    drawn = {name: (tmp_path / name / "chosen.json").read_bytes() for name in "abc"}
    assert drawn["a"] == drawn["b"]
    assert drawn["a"] != drawn["c"]


def test_who_is_turned_away_waits_longer_each_time(sec: Sec) -> None:
    time = Time()
    path = "/Archives/edgar/full-index/2024/QTR3/master.idx"
    sec.turned_away[path] = 2
    assert a_client(sec, time).get(path[1:]).startswith(b"Description")
    assert [1.0, 2.0] == [slept for slept in time.slept if slept >= 1]


def test_it_gives_up_with_what_to_do(sec: Sec) -> None:
    path = "Archives/edgar/full-index/2024/QTR3/master.idx"
    sec.turned_away[f"/{path}"] = 99
    with pytest.raises(fetch_edgar.FetchError, match="run again"):
        a_client(sec).get(path)


def test_a_filing_that_is_not_there_is_named(sec: Sec, tmp_path: Path) -> None:
    run(sec, tmp_path)
    sec.gone |= {path for path in sec.asked if path.startswith("/Archives/edgar/data/")}
    done = run(sec, tmp_path / "again")
    assert {"missing": 6} == dict(done)
    assert len((tmp_path / "again" / "missing.txt").read_text().splitlines()) == 6


def test_the_pace_is_kept(sec: Sec) -> None:
    time = Time()
    client = a_client(sec, time, per_second=10.0)
    for _ in range(5):
        client.get("Archives/edgar/full-index/2024/QTR3/master.idx")
    assert time.now >= 0.4 - 1e-9


@pytest.mark.parametrize("agent", ["", "Mozilla/5.0", "name@nowhere", "a@b.c\r\nX: y"])
def test_an_agent_without_an_address_is_refused(agent: str) -> None:
    with pytest.raises(fetch_edgar.FetchError, match="mail address"):
        fetch_edgar.Client(agent)


@pytest.mark.parametrize("pace", [0.0, -1.0, 10.5])
def test_a_pace_beyond_the_limit_is_refused(pace: float) -> None:
    with pytest.raises(fetch_edgar.FetchError, match="at most 10"):
        fetch_edgar.Client(AGENT, per_second=pace)


def test_the_command_line_says_what_is_wrong(
    sec: Sec, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = ["--user-agent", AGENT, "--out", str(tmp_path), "--first", "2024-Q3", "--host", sec.url]
    assert fetch_edgar.main(wrong) == 65
    assert "2024Q3" in capsys.readouterr().err
