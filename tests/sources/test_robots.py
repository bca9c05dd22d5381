"""What the rules of a site forbid is never asked, nothing is asked too soon, and without rules nothing is."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from carag.errors import InvalidArgument
from carag.sources import fetch
from tests.sources.site import Answer, Site, moved, page, plain, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "contact", ["", "me", "a@b", "https://", "a@b.example\r\nX: y", "(a@b.example)", "a" * 300]
)
def test_without_a_contact_nothing_is_asked(site: Site, tmp_path: Path, contact: str) -> None:
    with pytest.raises(InvalidArgument, match="contact"):
        fetch(site.origin + "/c/", tmp_path / "m", contact=contact)
    assert site.asked == []
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ("User-agent: *\nDisallow: /c/a", {"/c/", "/c/b.txt"}),
        (
            "User-agent: *\nDisallow: /\nAllow: /c/$\nAllow: /c/b",
            {"/c/", "/c/b.txt"},
        ),  # the longest match wins
        ("User-agent: *\nDisallow: /c/*.txt$", {"/c/"}),
        (
            "User-agent: *\nAllow: /\nUser-agent: CARAG\nDisallow: /c/b",
            {"/c/", "/c/a.txt"},
        ),  # its own group alone
        ("User-agent: other\nDisallow: /", {"/c/", "/c/a.txt", "/c/b.txt"}),
        ("\ufeffUser-agent: *\nDisallow: /", set()),
        ("User-agent: carag\nUser-agent: x\n\nDisallow: /c/%61", {"/c/", "/c/b.txt"}),
    ],
)
def test_what_robots_txt_forbids_is_never_asked(
    site: Site, tmp_path: Path, rules: str, allowed: set[str]
) -> None:
    """And is told."""
    site.pages |= {
        "/robots.txt": plain(rules),
        "/c/": page("a.txt", "b.txt"),
        "/c/a.txt": plain("a"),
        "/c/b.txt": plain("b"),
    }
    report = run(site, tmp_path / "m")
    assert {*site.paths()} - {"/robots.txt"} == allowed
    known = {"/c/", "/c/a.txt", "/c/b.txt"} if "/c/" in allowed else {"/c/"}
    assert {one.removeprefix(site.origin) for one in report.disallowed} == known - allowed


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_without_a_robots_txt_all_may_be_asked(site: Site, tmp_path: Path, status: int) -> None:
    site.pages |= {"/robots.txt": Answer(b"Disallow: /", status), "/c/": page()}
    assert run(site, tmp_path / "m").added == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"", 500),
        Answer(b"", 501),
        Answer(b"", 503),
        Answer(b"", 429),
        Answer(b"", 304),
        moved("/robots.txt"),
        moved("ftp://example.org/robots.txt"),
        moved("http://10.0.0.1/robots.txt"),
        Answer(b"User-agent: *\nAllow: /\n" + b"#" * (1 << 20)),
        Answer(b"short", headers={"Content-Length": "100"}),
        Answer(b"no gzip", headers={"Content-Encoding": "gzip"}),
    ],
)
def test_where_robots_txt_cannot_be_read_nothing_is_asked(site: Site, tmp_path: Path, answer: Answer) -> None:
    """RFC 9309, 2.3.1.4: all is disallowed; the next run asks for it again."""
    site.pages |= {"/robots.txt": answer, "/c/": page()}
    report = run(site, tmp_path / "m")
    assert {*site.paths()} == {"/robots.txt"}
    assert report.paused
    assert report.left == 1
    site.pages["/robots.txt"] = plain("")
    site.clock.now += 86400
    assert run(site, tmp_path / "m").added == 1


def test_robots_txt_is_followed_where_it_moved(site: Site, tmp_path: Path) -> None:
    site.pages |= {"/robots.txt": moved("/r"), "/r": plain("User-agent: *\nDisallow: /"), "/c/": page()}
    assert len(run(site, tmp_path / "m").disallowed) == 1
    assert site.paths() == ["/robots.txt", "/r"]


def test_robots_txt_is_asked_for_again_after_a_day(site: Site, tmp_path: Path) -> None:
    """Within one run too: what it says then counts."""
    site.pages |= {
        "/robots.txt": [plain("User-agent: *\nCrawl-delay: 86400"), plain("User-agent: *\nDisallow: /c/2")],
        "/c/": page("1.txt", "2.txt"),
        "/c/1.txt": plain("1"),
        "/c/2.txt": plain("2"),
    }
    run(site, tmp_path / "m", limits={"seconds": 30 * 86400.0})
    assert site.paths() == ["/robots.txt", "/c/", "/robots.txt", "/c/1.txt"]


@pytest.mark.parametrize(
    ("rules", "interval", "least"),
    [
        ("", 1.0, 1.0),
        ("", 5.0, 5.0),
        ("User-agent: *\nCrawl-delay: 7.5", 1.0, 7.5),
        ("User-agent: *\nCrawl-delay: 0.1", 1.0, 1.0),
        ("User-agent: *\nCrawl-delay: nan", 1.0, 1.0),
        ("User-agent: *\nCrawl-delay: -3", 1.0, 1.0),
        ("User-agent: *\nRequest-rate: 2/1m", 1.0, 30.0),
    ],
)
def test_no_two_requests_are_nearer_than_agreed(
    site: Site, tmp_path: Path, rules: str, interval: float, least: float
) -> None:
    """Redirects, refusals and retries are requests, too."""
    site.pages |= {
        "/robots.txt": plain(rules),
        "/c/": page(*(f"{number}.txt" for number in range(6)), "old", "none"),
        "/c/old": moved("new.txt"),
        "/c/5.txt": [Answer(status=500), plain("five")],
        **{f"/c/{number}.txt": plain(str(number)) for number in range(5)},
    }
    run(site, tmp_path / "m", limits={"interval": interval})
    gaps = [after.at - before.at for before, after in pairwise(site.asked[1:])]
    assert len(gaps) == 10
    assert min(gaps) >= least


def test_a_delay_that_is_longer_than_a_run_ends_it(site: Site, tmp_path: Path) -> None:
    site.pages |= {"/robots.txt": plain("User-agent: *\nCrawl-delay: 999999"), "/c/": page()}
    assert "time is over" in run(site, tmp_path / "m").paused
    assert site.paths() == ["/robots.txt"]
