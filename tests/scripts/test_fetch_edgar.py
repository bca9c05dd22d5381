"""Fetching from EDGAR, against a server on this machine that is as strict as the SEC's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.scripts.edgar import AGENT, Sec, fetch_edgar, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def sec() -> Iterator[Sec]:
    with serving() as served:
        yield served


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


def _manifest(*lines: object) -> str:
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def test_a_manifest_is_fetched_and_nothing_else(
    sec: Sec, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is on disk is kept, and each filing that is gone, or that no path leads to, is named."""
    numbers = [f"{number:010d}-24-000001" for number in range(1, 5)]
    paths = [f"edgar/data/{at}/{name}.txt" for at, name in enumerate(numbers, start=1)]
    lines = [{"accession_number": name, "path": path} for name, path in zip(numbers, paths, strict=True)]
    given, out = tmp_path / "manifest.jsonl", tmp_path / "edgar"
    given.write_text(_manifest(*lines))
    call = ["--user-agent", AGENT, "--out", str(out), "--host", sec.url, "--manifest", str(given)]
    call += ["--per-second", "10"]
    sec.gone.add(f"/Archives/{paths[2]}")
    assert fetch_edgar.main(call) == 65
    assert numbers[2] in capsys.readouterr().err
    assert sec.asked == [f"/Archives/{path}" for path in paths]
    sec.asked.clear()
    sec.gone.clear()
    given.write_text(_manifest(*lines[:3]))
    assert fetch_edgar.main(call) == 0
    assert sec.asked == [f"/Archives/{paths[2]}"]
    assert sorted(path.stem for path in (out / "filings").iterdir()) == numbers
    assert not (out / "missing.txt").exists()
    given.write_text(_manifest(lines[0], {"accession_number": "a row of a data set", "path": None}))
    assert fetch_edgar.main(call) == 65
    assert "a row of a data set" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "[]\n",
        "{}\n",
        "not JSON\n",
        _manifest({"accession_number": "a", "path": "edgar/data/1/../../../etc/passwd"}),
        _manifest({"accession_number": "a", "path": 5}),
    ],
)
def test_a_broken_manifest_fetches_nothing(
    text: str, sec: Sec, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifest.jsonl").write_text(text)
    call = ["--user-agent", AGENT, "--out", str(tmp_path), "--host", sec.url]
    assert fetch_edgar.main([*call, "--manifest", str(tmp_path / "manifest.jsonl")]) == 65
    assert "copy the file again" in capsys.readouterr().err
    assert not sec.asked
