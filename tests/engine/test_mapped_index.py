"""A large index file is searched while it is verified: what decides admissibility before, all else meanwhile."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine, Session
from carag.engine import rows
from carag.errors import CorruptFile
from carag.retrieval.words import header_hash
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from pathlib import Path

SESSION = Session(role="employee", purpose="work")
DOCUMENTS = [
    Document(id=f"memo/{n}", text=f"Memo {n} tells of branch {n % 7}.", bits=["SECRET"] * (n % 2))
    for n in range(60)
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store whose index file counts as a large one."""
    monkeypatch.setattr(rows, "_VERIFIED_AT_ONCE", 0)
    with Engine.open(tmp_path, profile="generic", embedder="wordllama") as engine:
        engine.add(DOCUMENTS)
    return tmp_path


def damage(home: Path, section: str) -> bytes:
    """Change a bit in the middle of a section of the index file, and return the whole file."""
    path = home / "index.carag"
    data = bytearray(path.read_bytes())
    table = [struct.unpack_from("<8sQQ", data, 128 + 32 * n) for n in range(18)]  # csrc/FORMAT.md
    where = {name.rstrip(b"\0").decode(): start + size // 2 for name, start, size in table}
    data[where[section]] ^= 1
    path.write_bytes(data)
    return bytes(data)


def test_an_index_of_an_earlier_format_is_built_anew(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    """From the store, which has all of it; and says so, once."""
    with Engine.open(home) as engine:
        before = engine.retrieve("Which branch?", SESSION).passages
    path = home / "index.carag"
    data = bytearray(path.read_bytes())
    data[8] = 1
    path.write_bytes(data)
    with CorpusStore.open(home / "corpus.db") as store:
        store.meta_update({"index_header": header_hash(path, 768)})
    for said in (1, 0):
        caplog.clear()
        with Engine.open(home) as engine:
            assert engine.retrieve("Which branch?", SESSION).passages == before
        assert caplog.text.count("an earlier format; building the index again") == said


def test_a_mapped_index_answers_as_a_loaded_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids and similarities are the same, before and after more is added."""

    def found(added: Document) -> list[list[tuple[str, float]]]:
        with Engine.open(home) as engine:
            before = engine.retrieve("Which branch?", SESSION).passages
            engine.add([added])
            after = engine.retrieve("Which branch?", SESSION).passages
        return [[(one.chunk_id, one.similarity) for one in some] for some in (before, after)]

    mapped = found(Document(id="memo/60", text="Which branch? The fifth.", bits=()))
    monkeypatch.setattr(rows, "_VERIFIED_AT_ONCE", 1 << 26)
    whole = found(Document(id="memo/61", text="A report to the board.", bits=()))
    assert len(mapped[0]) == 8
    assert mapped[1][0][0] == "memo/60:00000"
    assert whole[0] == mapped[1]


@pytest.mark.parametrize("section", ["words", "keys"])
def test_what_decides_admissibility_is_checked_before_the_first_search(home: Path, section: str) -> None:
    """A store with another word in its index does not open."""
    damage(home, section)
    with pytest.raises(CorruptFile, match=rf"{section}.*delete"):
        Engine.open(home)


def test_a_damaged_vector_ends_the_searches(home: Path) -> None:
    """The next question after it was noticed is refused, and closing says so too."""
    damage(home, "codes")
    engine = Engine.open(home)
    engine._collection._rows._verifying.join()
    with pytest.raises(CorruptFile, match=r"codes.*delete"):
        engine.retrieve("Which branch?", SESSION)
    with pytest.raises(CorruptFile, match=r"codes.*delete"):
        engine.close()


def test_damage_is_never_saved_under_a_new_checksum(home: Path) -> None:
    """What is added meanwhile stays in the store, and the rebuilt index has it."""
    before = damage(home, "codes")
    new = Document(id="memo/60", text="Which branch? The fifth.", bits=())
    with pytest.raises(CorruptFile, match="delete"), Engine.open(home) as engine:
        engine.add([new])
    assert (home / "index.carag").read_bytes() == before
    (home / "index.carag").unlink()
    with Engine.open(home) as engine:
        assert engine.add([new]).unchanged == 1
        assert engine.retrieve("Which branch?", SESSION).passages[0].chunk_id == "memo/60:00000"
