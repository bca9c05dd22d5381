"""Several hosts make one mirror: those that are named, each asked as politely as if it were alone, and no other."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.http import NoAnswer
from carag.sources import http
from carag.sources.address import Address, Scope
from carag.sources.http import Sender
from tests.sources.site import Answer, Clock, Site, moved, page, plain, published, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Two:
    """Pages at 127.0.0.1, and the files that they link to at localhost."""

    pages: Site
    files: Site

    @property
    def other(self) -> str:
        return f"localhost:{self.files.port}"

    def link(self, path: str) -> str:
        return f"http://{self.other}{path}"


@pytest.fixture
def two(clock: Clock) -> Iterator[Two]:
    with published(clock, {}) as pages, published(clock, {}) as files:
        two = Two(pages, files)
        pages.pages["/c/"] = page(two.link("/docs/1.txt"), two.link("/docs/2.txt"), "here.txt")
        pages.pages["/c/here.txt"] = plain("here")
        files.pages |= {"/docs/1.txt": plain("one", ETag='"1"'), "/docs/2.txt": plain("two")}
        yield two


def urls(folder: Path) -> set[str]:
    return {
        json.loads(line)["url"].split("/", 3)[3]
        for line in (folder / "metadata.jsonl").read_text().splitlines()
    }


# --- which hosts are asked ---


def test_another_host_is_asked_only_if_it_is_named(two: Two, tmp_path: Path) -> None:
    run(two.pages, tmp_path / "alone")
    assert two.files.asked == []
    report = run(two.pages, tmp_path / "m", also=(two.other,))
    assert (report.added, report.problems) == (4, [])
    assert urls(tmp_path / "m") == {"c/", "c/here.txt", "docs/1.txt", "docs/2.txt"}


def test_a_host_is_named_exactly(two: Two, tmp_path: Path) -> None:
    """Neither another port of it, nor a name below it or above."""
    run(two.pages, tmp_path / "m", also=("localhost", "files.localhost:1"))
    assert two.files.asked == []


def test_a_redirect_to_a_named_host_is_followed_and_one_to_another_is_not(two: Two, tmp_path: Path) -> None:
    two.pages.pages["/c/"] = page("moved.txt")
    two.pages.pages["/c/moved.txt"] = moved(two.link("/docs/1.txt"))
    assert "outside what is mirrored" in run(two.pages, tmp_path / "alone").problems[0]
    report = run(two.pages, tmp_path / "m", also=(two.other,))
    assert report.problems == []
    assert urls(tmp_path / "m") == {"c/", "docs/1.txt"}


@pytest.mark.parametrize(
    "wrong", ["", "*.example.org", "http://h", "h/docs", "h?x", "a@h", "h h", "h:x", "h:99999"]
)
def test_what_is_no_host_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidArgument, match=r"host|address"):
        Scope.of(Address.of("http://example.org/c/"), also=(wrong,))


def test_the_host_of_the_start_is_no_other() -> None:
    """It would lift the bound of the prefix."""
    for host in ("example.org", "EXAMPLE.org:443"):
        with pytest.raises(InvalidArgument, match="host of the start"):
            Scope.of(Address.of("https://example.org/c/"), also=(host,))


@given(
    st.sampled_from(["http", "https"]),
    st.sampled_from(["h", "f", "f:8080"]),
    st.sampled_from(["h", "f", "g"]),
)
def test_https_stays_https_on_every_host(scheme: str, also: str, host: str) -> None:
    scope = Scope.of(Address.of(f"{scheme}://x/c/"), also=(also,))
    plainly, safely = (Address.of(f"{one}://{host}/c/d") for one in ("http", "https"))
    assert scope.covers(safely) == (host == also)
    assert scope.covers(plainly) == (host == also and scheme == "http")
    led = scope.of_link(plainly)
    assert led is None or led.scheme == scheme


# --- each is asked as if it were alone ---


def test_each_host_has_rules_of_its_own(two: Two, tmp_path: Path) -> None:
    two.files.pages["/robots.txt"] = plain("User-agent: *\nDisallow: /docs/2")
    two.pages.pages["/robots.txt"] = plain("User-agent: *\nDisallow: /docs/1")
    report = run(two.pages, tmp_path / "m", also=(two.other,))
    assert report.disallowed == [two.link("/docs/2.txt")]
    assert urls(tmp_path / "m") == {"c/", "c/here.txt", "docs/1.txt"}


def test_each_host_has_a_pace_of_its_own(two: Two, tmp_path: Path) -> None:
    two.files.pages["/robots.txt"] = plain("User-agent: *\nCrawl-delay: 30")
    run(two.pages, tmp_path / "m", also=(two.other,), limits={"interval": 2.0})
    for site, least in ((two.pages, 2.0), (two.files, 30.0)):
        times = [one.at for one in site.asked if one.path != "/robots.txt"]
        assert all(later - earlier >= least for earlier, later in pairwise(times))
    assert len(two.files.asked) == 3


@pytest.mark.parametrize("trouble", ["busy", "no rules"])
def test_a_host_that_wants_to_be_left_alone_stops_no_other(two: Two, tmp_path: Path, trouble: str) -> None:
    """What is left of it comes in a later run, and not before it said."""
    busy = Answer(status=503, headers={"Retry-After": "7200"})
    at = "/docs/1.txt" if trouble == "busy" else "/robots.txt"
    good = two.files.pages.get(at, Answer(status=404))
    two.files.pages[at] = busy
    report = run(two.pages, tmp_path / "m", also=(two.other,))
    assert "localhost asks for a longer pause" in report.paused
    assert (report.added, report.left) == (2, 2)
    asked = len(two.files.asked)
    two.files.pages[at] = good
    two.pages.clock.now += 7100
    report = run(two.pages, tmp_path / "m", also=(two.other,))
    assert "localhost asked for no requests" in report.paused
    assert len(two.files.asked) == asked
    two.pages.clock.now += 200
    assert run(two.pages, tmp_path / "m", also=(two.other,)).paused == ""
    assert urls(tmp_path / "m") == {"c/", "c/here.txt", "docs/1.txt", "docs/2.txt"}


def test_a_host_that_is_down_stops_no_other(two: Two, tmp_path: Path) -> None:
    links = [two.link(f"/down/{number}") for number in range(9)]
    two.files.pages |= {f"/down/{number}": Answer(status=502) for number in range(9)}
    two.pages.pages["/c/"] = page(*links, "here.txt")
    report = run(two.pages, tmp_path / "m", also=(two.other,))
    assert "of localhost in a row gave no answer" in report.paused
    assert (report.added, report.left) == (2, 4)


def test_a_start_on_the_internet_opens_no_machine_within() -> None:
    """Though one is named: strangers write the links of its pages."""
    scope = Scope.of(Address.of("http://example.org/"), also=("127.0.0.1", "localhost"))
    sender = Sender({}, private=scope.private)
    for one in scope.also:
        with pytest.raises(NoAnswer, match="not a public address"):
            sender.get(one, {}, kinds=None, most=10)


# --- what a folder mirrors is on record ---


def test_a_run_with_other_hosts_is_told_and_finds_their_documents(two: Two, tmp_path: Path) -> None:
    """Though the page that links to them has not changed since, which its server would say."""
    two.pages.pages["/c/"].headers["ETag"] = '"same"'  # type: ignore[union-attr]
    assert run(two.pages, tmp_path / "m").notes == []
    report = run(two.pages, tmp_path / "m", also=(two.other,))
    (note,) = report.notes
    assert note.endswith(
        f"so far; from now on it mirrors {two.pages.origin} below /c/, and http://{two.other}"
    )
    assert (report.added, report.unchanged) == (2, 2)
    assert run(two.pages, tmp_path / "m", also=(two.other,)).notes == []
    two.files.asked.clear()
    report = run(two.pages, tmp_path / "m")
    assert len(report.notes) == 1
    assert (two.files.asked, report.documents) == ([], 4)


# --- www. ---


@pytest.fixture
def www(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Site]:
    """One server of this machine that is found under every name, as if it were public, at the port of http."""
    with published(clock, {}) as site:
        connect = socket.create_connection

        def found(_: str, port: int, *__: Any, **___: Any) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))]

        monkeypatch.setattr(socket, "getaddrinfo", found)
        monkeypatch.setattr(
            socket, "create_connection", lambda _, wait: connect(("127.0.0.1", site.port), wait)
        )
        monkeypatch.setattr(http, "_is_public", lambda _: True)
        yield site


def by_host(site: Site, pages: dict[str, Answer]) -> None:
    """Let each host answer for itself: the server is told its name."""
    for path in {one.partition("/")[2] for one in pages}:
        site.pages["/" + path] = lambda path=path: pages.get(  # type: ignore[misc]
            f"{site.asked[-1].headers['host']}/{path}", Answer(status=404)
        )


@pytest.mark.parametrize(
    ("start", "to"), [("example.org", "www.example.org"), ("www.example.org", "example.org")]
)
def test_a_start_that_redirects_to_its_own_name_with_or_without_www_is_followed(
    www: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, to: str
) -> None:
    """It is told and no problem; the next run knows it, whatever it begins with."""
    by_host(
        www,
        {
            f"{start}/c/": moved(f"http://{to}/c/"),
            f"{to}/c/": page("1.txt", "/press"),
            f"{to}/c/1.txt": plain("one"),
        },
    )
    monkeypatch.setattr(Site, "origin", f"http://{start}")
    report = run(www, tmp_path / "m")
    assert (report.problems, report.added, report.paused) == ([], 2, "")
    assert [to in note for note in report.notes] == [True]
    again = run(www, tmp_path / "m")
    assert (again.problems, again.notes, again.unchanged) == ([], [], 2)
    assert "/press" not in www.paths()


@pytest.mark.parametrize(
    "to", ["m.example.org", "www.example.com", "example.org.evil.test", "www.www.example.org"]
)
def test_a_start_that_redirects_to_any_other_name_is_a_problem(
    www: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    by_host(www, {"example.org/c/": moved(f"http://{to}/c/"), f"{to}/c/": page()})
    monkeypatch.setattr(Site, "origin", "http://example.org")
    report = run(www, tmp_path / "m")
    assert (len(report.problems), report.added, report.notes) == (1, 0, [])
    assert to in report.problems[0]


def test_a_page_that_redirects_to_www_later_on_widens_nothing(
    www: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_host(www, {"example.org/c/": page("1"), "example.org/c/1": moved("http://www.example.org/c/1")})
    monkeypatch.setattr(Site, "origin", "http://example.org")
    report = run(www, tmp_path / "m")
    assert (len(report.problems), report.notes) == (1, [])
