"""``carag fetch`` mirrors, says what came of it, and ``carag ingest`` reads what it left."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from carag.cli import Exit
from carag.cli.app import run
from tests.sources.site import Answer, Clock, Site, page, plain, published

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WALLETS = (
    "BAE/2024-25/7\nMay 2, 2024\nAll Small Finance Banks\nDear Sir,\nLimits\nThe limit is 5 crowns a day."
)


@pytest.fixture
def site() -> Iterator[Site]:
    with published(Clock(), {"/c/": page("w.txt", "none"), "/c/w.txt": plain(WALLETS)}) as site:
        yield site


def fetched(site: Site, folder: Path, *more: str) -> int:
    words = ["fetch", site.origin + "/c/", "--into", str(folder), "--interval", "0.1", *more]
    return run([*words, "--contact", "keeper@example.org"])


def test_what_is_fetched_is_ingested_as_circulars(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetched(site, tmp_path / "m") == Exit.OK
    said = capsys.readouterr()
    assert "2 documents added, 0 changed, 0 unchanged" in said.out
    assert "/c/none: status 404" in said.err.replace("\n", " ")
    store = ["--store", str(tmp_path / "store"), "--profile", "circulars", "--embedder", "wordllama"]
    assert run(["ingest", str(tmp_path / "m"), *store, "--json"]) == Exit.OK
    report = json.loads(capsys.readouterr().out)
    assert (report["added"], report["problems"][1:]) == (2, [])


def test_what_is_gone_is_told(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fetched(site, tmp_path / "m")
    site.pages["/c/w.txt"] = Answer(status=410)
    capsys.readouterr()
    assert fetched(site, tmp_path / "m", "--json") == Exit.OK
    (one,) = json.loads(capsys.readouterr().out)["gone"]
    assert one["why"] == "status 410"
    fetched(site, tmp_path / "m")
    assert "gone since" in capsys.readouterr().err


def test_a_site_that_gives_nothing_is_bad_input(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.pages["/robots.txt"] = plain("User-agent: *\nDisallow: /")
    assert fetched(site, tmp_path / "m") == Exit.BAD_INPUT
    assert "robots.txt disallows them" in capsys.readouterr().out
    assert site.paths() == ["/robots.txt"]


def test_without_a_contact_nothing_is_asked(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is an option, or comes from the environment."""
    monkeypatch.delenv("CARAG_CONTACT", raising=False)
    words = ["fetch", site.origin + "/c/", "--into", str(tmp_path / "m"), "--interval", "0.1"]
    assert run(words) == Exit.USAGE
    assert "contact" in capsys.readouterr().err
    assert site.asked == []
    monkeypatch.setenv("CARAG_CONTACT", "keeper@example.org")
    assert run(words) == Exit.OK


def test_another_host_is_named_and_kept_with_the_folder(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A later run without it says what has changed."""
    with published(Clock(), {"/7.txt": plain(WALLETS)}) as files:
        host = f"localhost:{files.port}"
        site.pages["/c/"] = page(f"http://{host}/7.txt")
        assert fetched(site, tmp_path / "m", "--also", host) == Exit.OK
        assert "2 documents added" in capsys.readouterr().out
        assert fetched(site, tmp_path / "m") == Exit.OK
        said = capsys.readouterr().out.replace("\n", " ")
        assert f"mirrored {site.origin} below /c/, and http://{host} so far" in said
        assert fetched(site, tmp_path / "m", "--also", "http://x/") == Exit.BAD_INPUT
        assert "want an exact name" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    "wrong", [("--depth", "-1"), ("--interval", "0"), ("--prefix", "c"), ("--minutes", "nan")]
)
def test_an_option_out_of_range_is_refused(site: Site, tmp_path: Path, wrong: tuple[str, str]) -> None:
    assert fetched(site, tmp_path / "m", *wrong) == Exit.BAD_INPUT
    assert site.asked == []
