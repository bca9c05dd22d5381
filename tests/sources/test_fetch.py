"""A site is mirrored: nothing is asked twice, nothing sent that did not change, and nothing lost that was kept."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from carag.errors import InvalidArgument, StoreLocked
from carag.readers import Problem, read_folder
from carag.sources import Limits, mirror, polite
from carag.sources.state import State
from tests.sources.site import WHO, Answer, Site, held, moved, page, plain, run

if TYPE_CHECKING:
    from pathlib import Path

DATE = "Thu, 02 May 2024 10:00:00 GMT"


# --- what is fetched ---


def test_a_site_becomes_a_folder_that_ingest_reads_with_the_facts_of_each_file(
    site: Site, tmp_path: Path
) -> None:
    """Address, instant and Last-Modified stand in the sidecar, which the reader of folders takes as it is."""
    site.pages |= {
        "/c/": page(
            "1.txt", "two?Id=2&x=%C3%BC", "#top", "mailto:a@b.example", "1.txt#again", "javascript:void(0)"
        ),
        "/c/1.txt": plain("The limit is 5.", Last_Modified=DATE),
        "/c/two?Id=2&x=%C3%BC": page(text="Second."),
    }
    report = run(site, tmp_path / "m")
    assert (report.added, report.problems, report.paused, report.left) == (3, [], "", 0)
    assert site.paths() == ["/robots.txt", "/c/", "/c/1.txt", "/c/two?Id=2&x=%C3%BC"]
    read = list(read_folder(tmp_path / "m"))
    assert not [one for one in read if isinstance(one, Problem)]
    (one,) = [one for one in read if not isinstance(one, Problem) and one.text == "The limit is 5."]
    assert one.facts == {
        "url": site.origin + "/c/1.txt",
        "fetched": "2025-06-15T15:06:42+00:00",
        "last_modified": "2024-05-02T10:00:00+00:00",
    }


def test_every_request_says_who_asks_and_how_to_reach_them(site: Site, tmp_path: Path) -> None:
    site.pages["/c/"] = page()
    run(site, tmp_path / "m")
    for one in site.asked:
        assert one.headers["user-agent"].startswith("carag/")
        assert WHO in one.headers["user-agent"]
        assert one.headers["from"] == WHO
        assert "cookie" not in one.headers


# --- what has changed ---


def test_what_has_not_changed_is_asked_by_its_validators_and_left_untouched(
    site: Site, tmp_path: Path
) -> None:
    site.pages |= {
        "/c/": page("a.txt", "b.txt", "c.txt"),
        "/c/a.txt": plain("a", ETag='"v1"'),
        "/c/b.txt": plain("b", Last_Modified=DATE),
        "/c/c.txt": plain("c"),
    }
    run(site, tmp_path / "m")
    before = {one: (one.stat().st_mtime_ns, one.stat().st_ino) for one in (tmp_path / "m").iterdir()}
    del site.asked[:]
    site.clock.now += 86400
    report = run(site, tmp_path / "m")
    assert (report.added, report.changed, report.unchanged) == (0, 0, 4)
    sent = {one.path: one.headers for one in site.asked}
    assert sent["/c/a.txt"]["if-none-match"] == '"v1"'
    assert sent["/c/b.txt"]["if-modified-since"] == DATE
    assert before == {one: (one.stat().st_mtime_ns, one.stat().st_ino) for one in (tmp_path / "m").iterdir()}


def test_a_changed_document_takes_the_place_of_the_old_one(site: Site, tmp_path: Path) -> None:
    """In the same file, with the new facts."""
    site.pages |= {"/c/": page("a.txt"), "/c/a.txt": plain("old", ETag='"1"')}
    run(site, tmp_path / "m")
    site.pages["/c/a.txt"] = plain("new", ETag='"2"')
    site.clock.now += 86400
    report = run(site, tmp_path / "m")
    assert (report.added, report.changed, report.unchanged) == (0, 1, 1)
    assert held(tmp_path / "m")["c/a.txt"] == "new"
    rows = [json.loads(line) for line in (tmp_path / "m" / "metadata.jsonl").read_text().splitlines()]
    assert {row["url"].removeprefix(site.origin): row["fetched"][:10] for row in rows} == {
        "/c/": "2025-06-15",
        "/c/a.txt": "2025-06-16",
    }


def test_a_page_of_which_only_what_nobody_sees_has_changed_is_unchanged(site: Site, tmp_path: Path) -> None:
    """As the state of a form, which differs with each answer."""
    site.pages["/c/"] = page(text='Text<input type="hidden" value="1">')
    run(site, tmp_path / "m")
    site.pages["/c/"] = page(text='Text<input type="hidden" value="2"><a href="1.txt"></a>')
    site.pages["/c/1.txt"] = plain("new")
    report = run(site, tmp_path / "m")
    assert (report.added, report.changed, report.unchanged) == (1, 0, 1)
    assert 'value="1"' in held(tmp_path / "m")["c/"]


def test_a_file_that_somebody_changed_or_removed_is_fetched_again(site: Site, tmp_path: Path) -> None:
    """No validator is sent: a server would say that nothing changed."""
    site.pages |= {
        "/c/": page("a.txt", "b.txt"),
        "/c/a.txt": plain("a", ETag='"a"'),
        "/c/b.txt": plain("b", ETag='"b"'),
    }
    run(site, tmp_path / "m")
    (mine,) = (tmp_path / "m").glob("a-*")
    mine.write_text("mine")
    (gone,) = (tmp_path / "m").glob("b-*")
    gone.unlink()
    run(site, tmp_path / "m")
    assert (held(tmp_path / "m")["c/a.txt"], held(tmp_path / "m")["c/b.txt"]) == ("a", "b")


@pytest.mark.parametrize("answer", [Answer(status=404), Answer(status=410), moved("/c/"), moved("/c/", 302)])
def test_what_is_gone_stays_and_is_reported_until_it_is_back(
    site: Site, tmp_path: Path, answer: Answer
) -> None:
    """In every run, and in a list beside the folder; a document that is linked no more is asked for all the same."""
    kept = plain("a", ETag='"a"')
    site.pages |= {"/c/": page("a.txt"), "/c/a.txt": kept}
    run(site, tmp_path / "m")
    site.pages |= {"/c/": page(text="No link."), "/c/a.txt": answer}
    for _ in range(2):
        (one,) = run(site, tmp_path / "m").gone
        assert (one.url, one.since[:10]) == (site.origin + "/c/a.txt", "2025-06-15")
        (listed,) = (tmp_path / "m.fetch" / "gone.jsonl").read_text().splitlines()
        assert json.loads(listed)["file"] == one.file
        assert held(tmp_path / "m")["c/a.txt"] == "a"
        site.clock.now += 86400
    site.pages["/c/a.txt"] = kept
    assert run(site, tmp_path / "m").gone == []
    assert (tmp_path / "m.fetch" / "gone.jsonl").read_text() == ""


def test_a_page_in_the_place_of_a_document_does_not_take_it(site: Site, tmp_path: Path) -> None:
    """Such as one that says "not found" with status 200."""
    site.pages |= {
        "/c/": page("a.pdf"),
        "/c/a.pdf": Answer(b"%PDF-1.7", headers={"Content-Type": "application/pdf"}),
    }
    run(site, tmp_path / "m")
    site.pages["/c/a.pdf"] = page(text="Sorry!")
    (problem,) = run(site, tmp_path / "m").problems
    assert "had the content type application/pdf" in problem
    assert held(tmp_path / "m")["c/a.pdf"] == "%PDF-1.7"


# --- servers in trouble ---


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("date", [False, True])
def test_a_server_that_asks_for_a_pause_is_given_it(
    site: Site, tmp_path: Path, status: int, date: bool
) -> None:
    """In seconds, or until a date."""
    wait = "Sun, 15 Jun 2025 15:08:40 GMT" if date else "120"
    site.pages["/c/"] = [Answer(status=status, headers={"Retry-After": wait}), page()]
    assert run(site, tmp_path / "m").added == 1
    _, first, second = site.asked
    assert 110 <= second.at - first.at <= 121


def test_a_pause_that_is_too_long_is_kept_by_later_runs(site: Site, tmp_path: Path) -> None:
    site.pages["/c/"] = [Answer(status=503, headers={"Retry-After": "7200"}), page()]
    assert "a longer pause" in run(site, tmp_path / "m").paused
    site.clock.now += 7100
    assert "asked for no requests" in run(site, tmp_path / "m").paused
    assert site.paths() == ["/robots.txt", "/c/"]
    site.clock.now += 100
    assert run(site, tmp_path / "m").added == 1


def test_a_server_that_stays_busy_is_left_alone_after_some_tries(site: Site, tmp_path: Path) -> None:
    """The waits grow, have a bound, and are drawn by lot."""
    site.pages["/c/"] = Answer(status=503)
    report = run(site, tmp_path / "m")
    assert report.paused
    assert report.left == 1
    assert site.paths() == ["/robots.txt"] + ["/c/"] * polite.TRIES
    assert max(site.clock.slept) <= polite.MAX_WAIT


def test_one_page_that_fails_is_a_problem_and_the_rest_is_fetched(site: Site, tmp_path: Path) -> None:
    site.pages |= {"/c/": page("bad", "good.txt"), "/c/bad": Answer(status=500), "/c/good.txt": plain("good")}
    report = run(site, tmp_path / "m")
    assert (report.added, len(report.problems), report.paused) == (2, 1, "")
    assert "status 500" in report.problems[0]


def test_a_site_that_is_down_ends_the_run(site: Site, tmp_path: Path) -> None:
    """After a few addresses, not after all."""
    site.pages["/c/"] = page(*(f"{number}" for number in range(50)))
    site.pages |= {f"/c/{number}": Answer(status=502) for number in range(50)}
    report = run(site, tmp_path / "m")
    assert "gave no answer" in report.paused
    assert report.left == 45


# --- where it may go ---


@pytest.mark.parametrize(
    "link",
    [
        "/elsewhere.txt",
        "../d.txt",
        "/c/%2e%2e/d.txt",
        "/c/..%2Fd.txt",
        "/c/..%5Cd.txt",
        "http://example.org/c/x.txt",
        "//example.org/c/x.txt",
        "http://127.0.0.1:1/c/x.txt",
        "http://localhost/c/x.txt",
        "http://user:word@127.0.0.1/c/x.txt",
        "file:///etc/passwd",
        "ftp://127.0.0.1/c/x",
        "http://[::1",
        "/c/" + "x" * 3000,
    ],
)
def test_nothing_outside_is_asked_neither_by_link_nor_by_redirect(
    site: Site, tmp_path: Path, link: str
) -> None:
    site.pages |= {"/c/": page(link, "r"), "/c/r": moved(link)}
    report = run(site, tmp_path / "m")
    assert site.paths() == ["/robots.txt", "/c/", "/c/r"]
    assert "redirects" in report.problems[0]


def test_a_redirect_within_leads_to_one_document(site: Site, tmp_path: Path) -> None:
    site.pages |= {"/c/": page("old", "new.txt"), "/c/old": moved("/c/new.txt"), "/c/new.txt": plain("new")}
    report = run(site, tmp_path / "m", limits={"depth": 1})
    assert (report.added, report.problems) == (2, [])
    assert site.paths().count("/c/new.txt") == 1


def test_a_redirect_is_under_the_rules_of_robots_txt(site: Site, tmp_path: Path) -> None:
    site.pages |= {
        "/robots.txt": plain("User-agent: *\nDisallow: /c/secret"),
        "/c/": moved("/c/secret"),
        "/c/secret": plain("secret"),
    }
    assert run(site, tmp_path / "m").disallowed == [site.origin + "/c/secret"]
    assert site.paths() == ["/robots.txt", "/c/"]


def test_loops_and_endless_redirects_end(site: Site, tmp_path: Path) -> None:
    site.pages |= {"/c/": page("a", "r0"), "/c/a": page("/c/", "a", "b"), "/c/b": moved("a")}
    site.pages |= {f"/c/r{number}": moved(f"r{number + 1}") for number in range(50)}
    report = run(site, tmp_path / "m")
    assert len(site.asked) == len({*site.paths()})
    assert [one for one in site.paths() if one.startswith("/c/r")] == [f"/c/r{number}" for number in range(6)]
    assert "more than 5 times" in report.problems[-1]


def test_depth_and_number_have_limits_and_what_is_left_is_told(site: Site, tmp_path: Path) -> None:
    """As in a calendar, of which each page leads to the next."""
    site.pages |= {f"/c/{number}": page(f"{number + 1}") for number in range(50)} | {"/c/": page("0")}
    run(site, tmp_path / "a", limits={"depth": 4})
    assert site.paths()[-1] == "/c/3"
    report = run(site, tmp_path / "b", limits={"depth": 50, "addresses": 10})
    assert (report.added, report.beyond) == (10, 1)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(b"x" * 2000, headers={"Content-Type": "text/plain"}), "more than 1000 bytes"),
        (
            Answer(b"x", headers={"Content-Type": "text/plain", "Content-Length": "2000"}),
            "more than 1000 bytes",
        ),
        (Answer(b"x", headers={"Content-Type": "image/png"}), "image/png"),
        (Answer(b"x"), "''"),
        (Answer(b"x", headers={"Content-Type": "text/plain", "Content-Encoding": "br"}), "'br'"),
        (Answer(b"x", headers={"Content-Type": "text/plain", "Content-Encoding": "gzip"}), "gzip is damaged"),
        (Answer(b"x", 206, {"Content-Type": "text/plain"}), "206"),
        (Answer(b"", 304, {"Content-Type": "text/plain"}), "304"),
        (Answer(b"x", 403, {"Content-Type": "text/plain"}), "403"),
    ],
)
def test_what_is_no_document_is_a_problem_and_nothing_is_written(
    site: Site, tmp_path: Path, answer: Answer, why: str
) -> None:
    site.pages |= {"/c/": page("bad"), "/c/bad": answer}
    report = run(site, tmp_path / "m", limits={"size": 1000})
    (problem,) = report.problems
    assert why in problem
    assert [*held(tmp_path / "m")] == ["c/"]


def test_gzip_is_unpacked_and_a_bomb_is_not(site: Site, tmp_path: Path) -> None:
    """Neither one that is too large, nor one that grows too much."""
    packed = {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
    site.pages |= {
        "/c/": page("good.txt", "bomb", "large"),
        "/c/good.txt": Answer(gzip.compress(b"fine"), headers=packed),
        "/c/bomb": Answer(gzip.compress(bytes(1 << 23), 9), headers=packed),
        "/c/large": Answer(gzip.compress(b"ab" * (1 << 20) + bytes(range(256)) * 300, 1), headers=packed),
    }
    report = run(site, tmp_path / "m", limits={"size": 1 << 20})
    assert held(tmp_path / "m")["c/good.txt"] == "fine"
    assert len(report.problems) == 2
    report = run(site, tmp_path / "n", limits={"size": 1 << 26})
    assert [one for one in report.problems if "more than 200 times" in one]


def test_the_documents_together_have_a_limit(site: Site, tmp_path: Path) -> None:
    site.pages |= {"/c/": page("a.txt", "b.txt"), "/c/a.txt": plain("a" * 500), "/c/b.txt": plain("b" * 500)}
    (problem,) = run(site, tmp_path / "m", limits={"total": 1000}).problems
    assert "more than 1000 bytes" in problem
    assert [*held(tmp_path / "m")] == ["c/a.txt", "c/"]


def test_a_text_whose_encoding_only_the_header_states_is_read(site: Site, tmp_path: Path) -> None:
    """The file says it then by its byte order mark; what states its own is kept as it came."""
    site.pages |= {
        "/c/": Answer(
            "<p>Größe</p>".encode("cp1252"), headers={"Content-Type": "text/html; charset=windows-1252"}
        )
    }
    run(site, tmp_path / "m")
    (one,) = read_folder(tmp_path / "m")
    assert not isinstance(one, Problem)
    assert one.text == "Größe"


# --- one folder, one mirror ---


def test_a_folder_of_other_files_or_of_another_site_is_refused(site: Site, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "memo.txt").write_text("mine")
    (tmp_path / "file").write_text("")
    for name in ("mine", "file"):
        with pytest.raises(InvalidArgument, match="empty or"):
            run(site, tmp_path / name)
    site.pages["/c/"] = page()
    run(site, tmp_path / "m")
    with pytest.raises(InvalidArgument, match="mirrors"):
        run(site, tmp_path / "m", "/d/")
    assert {*site.paths()} == {"/robots.txt", "/c/"}


def test_what_the_keeper_states_of_a_file_is_left_alone_and_read(site: Site, tmp_path: Path) -> None:
    """In the other sidecar, by the document's id, which is its file's name; the two are read together."""
    site.pages |= {"/c/": page("a.txt"), "/c/a.txt": plain("old")}
    run(site, tmp_path / "m")
    (file,) = (tmp_path / "m").glob("a-*")
    (tmp_path / "m" / "metadata.csv").write_text(f"id,number\n{file.name},BAE/2024-25/7\n")
    site.pages["/c/a.txt"] = plain("new")
    assert run(site, tmp_path / "m").changed == 1
    (one,) = [
        one for one in read_folder(tmp_path / "m") if not isinstance(one, Problem) and one.text == "new"
    ]
    assert (one.facts["number"], one.facts["url"]) == ("BAE/2024-25/7", site.origin + "/c/a.txt")


def test_two_runs_into_one_folder_are_refused(site: Site, tmp_path: Path) -> None:
    with State(tmp_path / "m", site.origin + "/c/"), pytest.raises(StoreLocked, match="another process"):
        run(site, tmp_path / "m")
    assert site.asked == []


@pytest.mark.parametrize(
    "wrong", [{"depth": -1}, {"interval": 0.0}, {"interval": float("nan")}, {"depth": True}]
)
def test_a_limit_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        Limits(**wrong)


def test_documents_come_into_the_folder_during_a_long_run(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their facts, so that a run of hours is useful before it ends."""
    monkeypatch.setattr(mirror, "_BATCH", 3)
    seen = []

    def last() -> Answer:
        seen.append(held(tmp_path / "m"))
        return plain("last")

    site.pages |= {"/c/": page("1.txt", "2.txt", "3.txt"), "/c/1.txt": plain("1"), "/c/2.txt": plain("2")}
    site.pages["/c/3.txt"] = last
    run(site, tmp_path / "m")
    assert [{*one} for one in seen] == [{"c/", "c/1.txt", "c/2.txt"}]
