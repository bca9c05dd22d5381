"""``carag audit accept``: a store that does not open is opened by naming what is accepted, and on record."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from carag import Engine
from carag.cli import Exit
from carag.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path, small_corpus: Path) -> Path:
    home = tmp_path / "store"
    with Engine.open(home, embedder="wordllama") as engine:
        engine.ingest(next(iter(sorted(small_corpus.glob("*.txt")))))
    return home


def loosen(store: Path) -> None:
    with closing(sqlite3.connect(store / "corpus.db")) as sql:
        sql.executescript("UPDATE labels SET word = word | 0x800000")
    for derived in ("index.carag", "index.state"):
        (store / derived).unlink()


LOSSES = {
    "--labels": (loosen, "LABELS_ACCEPTED"),
    "--lost-values": (lambda store: (store / "private.key").unlink(), "VALUES_LOST"),
}


@pytest.mark.parametrize("option", LOSSES)
def test_a_store_that_does_not_open_says_what_accepts_it_and_how(
    store: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command ends in 65 and names the option; the other option does not help; afterwards it is on record."""
    lose, code = LOSSES[option]
    lose(store)
    asked = ["ask", "What?", "--store", str(store), "--role", "public", "--purpose", "public_qa"]
    assert Exit.BAD_INPUT == run(asked)
    assert f"carag audit accept {option} --store {store}" in " ".join(capsys.readouterr().err.split())
    accept = ["audit", "accept", "--store", str(store)]
    (other,) = LOSSES.keys() - {option}
    assert Exit.BAD_INPUT == run(accept) == run([*accept, other])
    assert Exit.OK == run([*accept, option])
    assert Exit.DECLINED == run(asked)
    with Engine.open(store) as engine:
        assert code in {
            getattr(engine._log.record(number).event, "why", None) for number in range(engine._log.size)
        }
