"""A damaged store answers as before, or says what is damaged and what to do; nothing else ever comes of it."""

from __future__ import annotations

import random
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from carag import Engine, Session
from carag.cli.app import run
from carag.errors import CorruptFile, InvalidArgument
from tests.engine.damage import damage
from tests.engine.documents import QUESTION, Counting, document, ids

if TYPE_CHECKING:
    from pathlib import Path

COMPLIANCE = Session(role="compliance", purpose="review")
REMEDY = re.compile(r"restore|delete it|rebuild the index|make one with|ingest into a new store")
COUNTS = [
    pytest.param(0, 40),
    pytest.param(40, 400, marks=pytest.mark.release),
    pytest.param(400, 2000, marks=pytest.mark.full),
]
"""The first and the last of the stores."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A store of six documents, and another of three."""
    made = []
    for count in (6, 3):
        path = tmp_path_factory.mktemp("sound") / "store"
        with Engine.open(path, profile="generic", embedder=Counting()) as engine:
            engine.add([document(number) for number in range(count)])
            engine.ask(QUESTION, COMPLIANCE)
        made.append(path)
    return made


@pytest.mark.parametrize(("first", "last"), COUNTS)
def test_a_damaged_store_is_told_with_a_remedy_or_answers_as_before(
    sound: list[Path], tmp_path: Path, first: int, last: int
) -> None:
    """Of stores damaged in ways that a seed draws, each gives the right documents or an error with a remedy (65)."""
    others = [path for store in sound for path in store.iterdir()]
    told: list[str] = []
    store = tmp_path / "store"
    for number in range(first, last):
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(sound[0], store)
        what = f"{number}: {damage(random.Random(f'damage {number}'), store, others)}"  # noqa: S311 - a seed
        try:
            with Engine.open(store, create=False, embedder=Counting()) as engine:
                engine.ask(QUESTION, COMPLIANCE)
                found = ids(engine, COMPLIANCE)
        except (CorruptFile, InvalidArgument) as error:  # on the command line 65
            told.append(f"{what}: {error}")
        except Exception as error:
            raise AssertionError(what) from error
        else:
            assert {f"d/{n}" for n in range(6)} == found, what
    assert [] == [one for one in told if not REMEDY.search(one)]
    assert (last - first) / 4 < len(told) < last - first  # most damages matter, and some do not


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *(
            (name, "garbage")
            for name in ("vkey", "audit.key", "private.key", "pinned", "corpus.db", "audit.db")
        ),
        *((name, "empty") for name in ("vkey", "audit.key", "private.key")),
        *((name, "directory") for name in ("index.carag", "index.words", "vkey", "private.key", "corpus.db")),
    ],
)
def test_the_command_line_ends_in_65_over_a_damaged_store(
    sound: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, way: str
) -> None:
    """Whatever file it is: bad input, in one line, and never an internal error."""
    store = tmp_path / "store"
    shutil.copytree(sound[0], store)
    (store / name).unlink()
    if way == "directory":
        (store / name).mkdir()
    else:
        (store / name).write_bytes(b"\xff\xfe\x00" if way == "garbage" else b"")
        (store / name).chmod(0o600)
    assert 65 == run(["upgrade", "--store", str(store)])
    assert REMEDY.search(capsys.readouterr().err)


@pytest.mark.parametrize("is_there", [True, False])
def test_an_ingest_that_fails_leaves_no_new_store_behind(tmp_path: Path, *, is_there: bool) -> None:
    """Nothing to ingest: 65, no new store and no directory remain, and an existing store is kept."""
    folder, store = tmp_path / "folder", tmp_path / "new" / "store"
    if is_there:
        folder.mkdir()
    told = ["ingest", str(folder), "--store", str(store), "--profile", "generic", "--embedder", "wordllama"]
    assert 65 == run(told)
    assert not store.parent.exists()
    Engine.open(store, profile="generic", embedder="wordllama").close()
    kept = (store / "vkey").read_bytes()
    assert 65 == run(told)
    assert kept == (store / "vkey").read_bytes()
