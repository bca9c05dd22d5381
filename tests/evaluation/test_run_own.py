"""A run with your own system: added to an existing run, asked again when changed, and never mixed up."""

from __future__ import annotations

import doctest
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carag.errors import InvalidArgument
from carag.evaluation.row import ORACLE, Row, read_rows
from carag.evaluation.run import Settings, run
from carag.evaluation.systems.own import Corpus, OwnSystem, load_own_systems

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.policy import Session

ASKED: list[str] = []
"""Questions that the system below was asked."""


def first_passages(corpus: Corpus) -> Callable[[str, Session], object]:
    """A poor system: the same passages for everyone."""

    def system(question: str, _: Session) -> dict[str, object]:
        ASKED.append(question)
        return {"ids": [one.id for one in corpus.passages[:2]], "text": None, "outcome": "answer"}

    return system


def out_of_bounds(_: Corpus) -> Callable[[str, Session], object]:
    return lambda _question, _session: {"ids": ["no such id"], "text": None, "outcome": "answer"}


OWN = OwnSystem("own:first", first_passages, "1" * 64)


def settings(cache: Path, *own: OwnSystem) -> Settings:
    return Settings(
        size="small",
        cache=cache,
        embedder="wordllama",
        pairs=5,
        built=1,
        attacks=0,
        compared=0,
        trials=0,
        systems=(ORACLE, "carag-certified"),
        own=own,
    )


@pytest.fixture(scope="module")
def without(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run of only our systems leaves."""
    out = tmp_path_factory.mktemp("without")
    run(settings(cache), out)
    return out


@pytest.fixture(scope="module")
def joined(cache: Path, without: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, resumed with a system in addition."""
    out = tmp_path_factory.mktemp("joined") / "out"
    shutil.copytree(without, out)
    run(settings(cache, OWN), out)
    return out


def rows_of(out: Path, *, own: bool) -> list[Row]:
    return [row for row in read_rows(out / "rows.jsonl") if row.system.startswith("own:") == own]


def test_a_system_joins_an_existing_run(without: Path, joined: Path) -> None:
    """No existing row is asked again: not one byte differs, including times."""
    assert rows_of(joined, own=False) == rows_of(without, own=False)
    assert [] == rows_of(without, own=True)


def test_its_cost_is_unknown_and_not_zero(joined: Path) -> None:
    assert {row.cost_usd for row in rows_of(joined, own=True)} == {None}
    assert {row.cost_usd for row in rows_of(joined, own=False)} == {0.0}


def test_the_report_names_it(joined: Path) -> None:
    page = (joined / "report.md").read_text("utf-8")
    assert "| own:first | leaks |" in page.partition("## Contents")[0]
    assert f"own:first comes from a file with SHA-256 {OWN.source_sha256}" in page


def test_a_finished_run_asks_nothing_again(cache: Path, joined: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(joined, out)
    ASKED.clear()
    run(settings(cache, OWN), out)
    assert [] == ASKED
    assert (out / "rows.jsonl").read_bytes() == (joined / "rows.jsonl").read_bytes()


def test_a_system_whose_source_changed_is_asked_again(cache: Path, joined: Path, tmp_path: Path) -> None:
    """Its earlier rows belong to another system and are set aside; ours stay."""
    out = tmp_path / "out"
    shutil.copytree(joined, out)
    ASKED.clear()
    run(settings(cache, OwnSystem("own:first", first_passages, "2" * 64)), out)
    assert len(ASKED) >= len(rows_of(out, own=True)) > 0
    assert rows_of(out, own=False) == rows_of(joined, own=False)
    (aside,) = out.glob("rows.before-*.jsonl")
    assert aside.read_bytes() == (joined / "rows.partial.jsonl").read_bytes()


def test_a_run_with_a_system_is_not_resumed_without_it(cache: Path, joined: Path, tmp_path: Path) -> None:
    """It would report rows of a system that was not asked everything."""
    out = tmp_path / "out"
    shutil.copytree(joined, out)
    with pytest.raises(InvalidArgument, match="contains rows of own:first; name it with --system again"):
        run(settings(cache), out)
    assert (out / "settings.json").read_bytes() == (joined / "settings.json").read_bytes()


def test_other_settings_are_named(cache: Path, joined: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(joined, out)
    held = json.loads((out / "settings.json").read_text())
    (out / "settings.json").write_text(json.dumps({**held, "pairs": 6, "seed": 9}))
    with pytest.raises(InvalidArgument, match=r"other settings \(pairs, seed\)"):
        run(settings(cache, OWN), out)


@pytest.mark.parametrize("text", ["", "[]", "7", '{"own": 7}'])
def test_invalid_settings_are_refused(cache: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(InvalidArgument, match="name another directory"):
        run(settings(cache), tmp_path)


def test_no_file_names_code_that_is_run(
    cache: Path, joined: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory with a run, and a module of that name next to it, import nothing."""
    out = tmp_path / "out"
    shutil.copytree(joined, out)
    held = json.loads((out / "settings.json").read_text())
    (out / "settings.json").write_text(json.dumps({**held, "own": {"own:evil_rag:make": "0" * 64}}))
    (tmp_path / "evil_rag.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    run(settings(cache, OWN), out)
    assert "evil_rag" not in sys.modules
    partial = (out / "rows.partial.jsonl").read_text()
    (out / "rows.partial.jsonl").write_text(partial.replace('"own:first"', '"own:evil_rag:make"'))
    with pytest.raises(InvalidArgument, match="own:evil_rag:make"):
        run(settings(cache, OWN), out)
    assert "evil_rag" not in sys.modules


def test_the_example_of_the_documentation_is_measured(cache: Path, without: Path, tmp_path: Path) -> None:
    """As on the page, in less than 20 lines; it knows no policy, so it leaks."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "measure-your-own-system.md"
    example = doctest.DocTestParser().get_examples(page.read_text("utf-8"))[0].source
    assert example.startswith("def factory(corpus):")
    assert len(example.splitlines()) < 20
    (tmp_path / "my_documented_rag.py").write_text(example)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        patch.setattr(sys, "path", [*sys.path])
        (system,) = load_own_systems(["my_documented_rag:factory"])
    out = tmp_path / "out"
    shutil.copytree(without, out)
    run(settings(cache, system), out)
    assert not any(row.outcome == "error" for row in rows_of(out, own=True))
    assert "| own:my_documented_rag:factory | leaks |" in (out / "report.md").read_text("utf-8")


def test_a_breach_of_the_contract_ends_the_run_and_loses_nothing(
    cache: Path, without: Path, tmp_path: Path
) -> None:
    """Once repaired, the system joins the run as if it had never failed."""
    out = tmp_path / "out"
    shutil.copytree(without, out)
    with pytest.raises(
        InvalidArgument, match=r"own:first, question .*'no such id' is not an id in the corpus"
    ):
        run(settings(cache, OwnSystem("own:first", out_of_bounds, "3" * 64)), out)
    alone = tmp_path / "alone"
    shutil.copytree(out, alone)
    run(settings(cache), alone)  # it has no rows, so it may be left out again
    run(settings(cache, OWN), out)
    assert rows_of(out, own=False) == rows_of(alone, own=False) == rows_of(without, own=False)
    assert len(rows_of(out, own=True)) > 0
