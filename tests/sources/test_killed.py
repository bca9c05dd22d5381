"""A run that is killed, at whatever point, is gone on with by the next: nothing is lost, and nothing there twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag.readers import Problem, read_folder
from carag.sources import Limits, fetch, mirror, state
from tests.sources.site import WHO, Answer, Site, page, plain, run

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]


class Killed(BaseException):
    """What no code expects."""


class Fuse:
    """Raises at the n-th moment between two durable steps, and at all after it, as nothing runs in a dead process."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed

    def before(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **named: Any) -> Any:
            self()
            return step(*args, **named)

        return stepped

    def torn(self, path: Path, content: bytes) -> None:
        """Write a file; killed within, half of it is there."""
        self()
        path.write_bytes(content[: len(content) // 2])
        self()
        path.write_bytes(content)


def first() -> dict[str, Answer]:
    return {
        "/c/": page("a.txt", "b.txt", "sub"),
        "/c/a.txt": plain("a", ETag='"1"'),
        "/c/b.txt": plain("b"),
        "/c/sub": page("c.txt"),
        "/c/c.txt": plain("c"),
    }


def second() -> dict[str, Answer]:
    """One changed, one new, one gone."""
    return {
        **first(),
        "/c/": page("a.txt", "b.txt", "sub", "d.txt"),
        "/c/a.txt": plain("a, amended", ETag='"2"'),
        "/c/b.txt": Answer(status=404),
        "/c/d.txt": plain("d"),
    }


def texts(folder: Path) -> dict[str, str]:
    """What ingest reads: each document by its address, with no problem and none twice."""
    found = list(read_folder(folder))
    assert not [one for one in found if isinstance(one, Problem)], found
    read = {str(one.facts["url"]).split("/", 3)[3]: one.text for one in found if not isinstance(one, Problem)}
    assert len(read) == len(found)
    return read


@pytest.mark.release
@pytest.mark.parametrize("is_first", [True, False])
def test_a_run_that_is_killed_at_any_point_is_gone_on_with(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    """What was noted is not requested again, and the folder ends as after an undisturbed run."""
    monkeypatch.setattr(mirror, "_BATCH", 2)

    def prepared(folder: Path) -> dict[str, str]:
        site.pages = {**first()}
        if not is_first:
            run(site, folder)
            site.pages |= second()
        return {} if is_first else texts(folder)

    begun = prepared(tmp_path / "whole")
    expected = run(site, tmp_path / "whole")
    wanted = texts(tmp_path / "whole")
    assert {"c/d.txt"} == wanted.keys() - begun.keys() or is_first
    points = 0
    while True:
        folder = tmp_path / f"{points}"
        prepared(folder)
        fuse = Fuse(points)
        with monkeypatch.context() as killed:
            killed.setattr(state, "_write", fuse.torn)
            killed.setattr(state, "_sync", fuse.before(state._sync))
            killed.setattr(Path, "replace", fuse.before(Path.replace))
            for name in ("put", "add", "done", "stage", "begin", "publish"):
                killed.setattr(state.State, name, fuse.before(getattr(state.State, name)))
            del site.asked[:]
            try:
                run(site, folder)
                break
            except Killed:
                pass
        # A reader of the folder now finds each document whole, with its facts, as it was or as it is.
        for url, text in _found(folder).items():
            assert text in {begun.get(url), wanted[url]}
        then = {*site.paths()}
        report = run(site, folder)
        assert wanted == texts(folder)
        assert [one.url for one in expected.gone] == [one.url for one in report.gone]
        asked = [one for one in site.paths() if one != "/robots.txt"]
        if not {*asked} <= then:  # it was killed within; afterwards the next run is one of its own
            assert len(asked) <= len({*asked}) + 1  # the one that was being dealt with
        points += 1
    assert points > 40


def _found(folder: Path) -> dict[str, str]:
    """As ``texts``, where a fact may be there before its document, and is then told."""
    found = list(read_folder(folder))
    assert {one.kind.value for one in found if isinstance(one, Problem)} <= {"broken"}
    assert all("which does not exist" in one.reason for one in found if isinstance(one, Problem))
    return {str(one.facts["url"]).split("/", 3)[3]: one.text for one in found if not isinstance(one, Problem)}


def test_a_run_whose_time_is_over_is_gone_on_with(site: Site, tmp_path: Path) -> None:
    """Each address is asked for once."""
    site.pages |= first()
    reports = []
    while not reports or reports[-1].left:
        limits = Limits(seconds=2.5)
        reports.append(
            fetch(
                site.origin + "/c/",
                tmp_path / "m",
                contact=WHO,
                clock=site.clock,
                sleep=site.clock.sleep,
                limits=limits,
            )
        )
    assert len(reports) > 1
    assert all("time is over" in one.paused for one in reports[:-1])
    assert sum(one.added for one in reports) == 5
    asked = [one for one in site.paths() if one != "/robots.txt"]
    assert len(asked) == len({*asked}) == 5


@pytest.mark.release
def test_a_process_that_is_killed_loses_nothing(site: Site, tmp_path: Path) -> None:
    """With SIGKILL, after one request more each time."""
    site.pages |= {f"/c/{number}.txt": plain(f"{number}") for number in range(6)}
    site.pages["/c/"] = page(*(f"{number}.txt" for number in range(6)))
    words = [
        "fetch",
        site.origin + "/c/",
        "--into",
        str(tmp_path / "m"),
        "--contact",
        WHO,
        "--interval",
        "0.1",
    ]
    command = [sys.executable, "-m", "carag", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for killed_after in (2, 3, 4):
        before = len(site.asked)
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while len(site.asked) < before + killed_after and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = subprocess.run([*command, "--json"], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["documents"] == 7
    assert len(texts(tmp_path / "m")) == 7
