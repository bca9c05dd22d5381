"""After an erasure no file of a store holds anything of the document; before it, the same scan finds everything."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag import Engine, Index, Session
from carag.errors import InvalidArgument
from carag.index import DType
from carag.policy import PolicyBit
from tests.engine.documents import Counting, document
from tests.engine.erasing.canaries import canary, found, kinds, marks, vector_marks
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

    from carag.engine.erasing.documents import ErasureReport

CANARIES = range(examples(200, least=20))
ALL = {"text", "title", "id", "file", "person", "unit vector", "eight-bit vector"}
"""What a store in files keeps of a document; its terms are in lower case."""
SESSIONS = {
    "generic": Session(role="employee", purpose="work", principals=["group:clerks"]),
    "circulars": Session(role="compliance", purpose="surveil", principals=["group:clerks"]),
    "clinical": Session(role="researcher", purpose="research", principals=["group:clerks"]),
}


def erase(engine: Engine, *ids: str, basis: str = "GDPR_17_1_D") -> ErasureReport:
    return engine.erase(ids, basis=basis, by="officer", approver="chief")


@pytest.mark.parametrize("profile", ["generic", "circulars", "clinical"])
def test_no_file_holds_anything_of_an_erased_document(tmp_path: Path, profile: str) -> None:
    """While the store is open, and after it was closed; beside documents that stay."""
    kept, wanted = CANARIES[-1] + 1, {number: marks(number) for number in CANARIES}
    with Engine.open(tmp_path, profile=profile, embedder=Counting()) as engine:
        engine.add([*map(canary, CANARIES), canary(kept), document("open")])
        engine.retrieve("Who asked for a loan?", SESSIONS[profile])
    before = found(tmp_path, wanted)
    assert {number for number, _ in before} == {*CANARIES}
    assert kinds(before) >= ALL
    with Engine.open(tmp_path, embedder=Counting()) as engine:
        report = erase(engine, *(canary(number).id for number in CANARIES))
        assert (report.documents, report.beyond) == (len(CANARIES), ("backups",))
        assert not found(tmp_path, wanted)
        assert kinds(found(tmp_path, {kept: marks(kept)})) >= {"text", "title", "id", "person"}
    assert not found(tmp_path, wanted)
    with Engine.open(tmp_path, embedder=Counting()) as engine:
        engine._collection.check()
        assert len(engine._collection.index) == 2


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("dtype", list(DType))
def test_consolidating_leaves_no_vector_in_a_file(tmp_path: Path, dtype: DType, *, mmap: bool) -> None:
    """For each type of vector; whole in memory, and from a mapped file."""
    vectors = np.random.default_rng(5).standard_normal((400, 32), dtype=np.float32)
    index, path = Index(32, dtype=dtype), tmp_path / "index.carag"
    index.add(vectors, np.full(400, 0x0800_0000, np.uint32), np.arange(400))
    index.save(path)
    gone = {number: vector_marks(vectors[number]) for number in range(0, 400, 5)}
    own = {DType.FLOAT32: "unit vector", DType.FLOAT16: "half vector", DType.INT8: "eight-bit vector"}[dtype]
    assert {number for number, what in found(tmp_path, gone) if what == own} == {*gone}
    index = Index.load(path, mmap=mmap)
    index.delete([*gone])
    index.consolidate()
    index.save(path)
    assert not found(tmp_path, gone)


def test_names_and_lists_that_others_share_stay(tmp_path: Path) -> None:
    """A principal on another document's list; a title and a text that another document has, too."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        twin = canary(1, id="twin", metadata={"title": "Another"})
        engine.add([canary(1), twin])
        erase(engine, canary(1).id)
        assert kinds(found(tmp_path, {1: marks(1)})) == {"text", "person"}
        assert {one.document_id for one in engine.retrieve("A loan?", SESSIONS["generic"]).passages} == {
            "twin"
        }


def test_a_superseded_document_does_not_come_back(tmp_path: Path) -> None:
    """What an erased document did to another stays, whatever comes later."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([document("old"), canary(1, supersedes="d/old")])
        erase(engine, canary(1).id)
        engine.add([document("next", supersedes="d/old")])
        engine.add([document("old", text="Another text.")])
        found_now = {one.document_id for one in engine.retrieve("When?", SESSIONS["generic"]).passages}
        assert found_now == {"d/next"}
        assert not found(tmp_path, {1: {"id": marks(1)["id"]}})


def test_an_id_that_is_a_word_of_the_store_takes_nothing_else_with_it(tmp_path: Path) -> None:
    """Ids that are also keys, codes and values of what the store keeps about other documents."""
    ids = ["title", "supersedes", "removed", "SUPERSEDED", "REPLACES", "id", "null", "allow", "metadata"]
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        kept = canary(1, metadata={"title": "title", "allow": "SUPERSEDED"}, supersedes="d/0")
        engine.add([document(0), kept, *(document(0, id=one) for one in ids)])
        before = engine._collection.store.documents.document(kept.id)
        labels = engine._collection.store.labels.history(f"{kept.id}:00000")
        erase(engine, *ids)
        assert engine._collection.store.documents.document(kept.id) == before
        assert engine._collection.store.labels.history(f"{kept.id}:00000") == labels
        assert engine.add([kept]).unchanged == 1


def test_what_supersedes_an_erased_document_can_be_given_again(tmp_path: Path) -> None:
    """As a folder gives it each night: it is unchanged, and what it ended stays ended."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        later = document("later", supersedes=canary(1).id)
        engine.add([canary(1), later])
        erase(engine, canary(1).id)
        assert engine.add([later]).unchanged == 1
        with pytest.raises(InvalidArgument, match="supersedes"):
            engine.add([document("new", supersedes=canary(1).id)])


def test_an_id_may_be_used_again(tmp_path: Path) -> None:
    """As a new document, which can be erased in turn."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        for _ in range(2):
            engine.add([canary(1)])
            assert len(engine.retrieve("A loan?", SESSIONS["generic"]).passages) == 1
            erase(engine, canary(1).id)
            assert not engine.retrieve("A loan?", SESSIONS["generic"]).passages
        assert not found(tmp_path, {1: marks(1)})


@pytest.mark.parametrize("earlier", ["removed", "changed"])
def test_earlier_versions_go_too(tmp_path: Path, earlier: str) -> None:
    """Of a document that was removed before, or whose text is another now."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([canary(1), canary(2)])
        if earlier == "removed":
            engine.remove([canary(1).id])
        else:
            engine.add([canary(1, text="Nothing of the kind.")])
        assert "text" in kinds(found(tmp_path, {1: marks(1)}))
        erase(engine, canary(1).id)
        assert not found(tmp_path, {1: marks(1)})


BAD = {
    "unknown": ({"ids": ["dossier"]}, "is not in the store"),
    "half unknown": ({"ids": ["dossier", canary(1).id]}, "with 1 of the 2 ids; nothing was erased"),
    "no basis": ({"basis": ""}, "is not a valid Basis"),
    "one person": ({"approver": "Officer "}, "cannot approve their own request"),
    "nobody approves": ({"approver": None}, "name the person who acts and the person who approves"),
    "nothing": ({"ids": []}, "no document is named"),
    "text": ({"ids": canary(1).id}, "want a list of document ids"),
    "not an id": ({"ids": [7]}, "id of a document is 7"),
    "erased": ({"ids": ["erased:1"]}, "want another beginning"),
}


@pytest.mark.parametrize(("given", "said"), BAD.values(), ids=BAD)
def test_a_request_that_cannot_be_met_changes_nothing(
    tmp_path: Path, given: dict[str, object], said: str
) -> None:
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([canary(1)])
        size = engine.log.size
        with pytest.raises(InvalidArgument, match=said):
            engine.erase(
                **{"ids": [canary(1).id], "basis": "GDPR_17_1", "by": "officer", "approver": "chief"} | given  # type: ignore[arg-type]
            )
        assert engine.log.size == size
        assert len(engine.retrieve("A loan?", SESSIONS["generic"]).passages) == 1


def test_no_document_may_take_the_id_of_what_was_erased(tmp_path: Path) -> None:
    with (
        Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine,
        pytest.raises(InvalidArgument, match="want another beginning"),
    ):
        engine.add([document(0, id="erased:7")])


def test_a_filing_is_erased_and_what_it_amended_stays_amended(small_corpus: Path, tmp_path: Path) -> None:
    """A 10-K/A: nothing of it is left, and the 10-K is not taken for the latest again."""
    original, amended = "9990000102-24-000005", "9990000102-24-000021"
    corpus, home = tmp_path / "corpus", tmp_path / "store"
    corpus.mkdir()
    for one in (original, amended):
        shutil.copy(small_corpus / f"{one}.txt", corpus)
    with Engine.open(home, embedder="wordllama") as engine:
        engine.ingest(corpus)
        store = engine._collection.store
        word = store.chunk(f"{original}:00000").word
        assert word & PolicyBit.SUPERSEDED
        text = store.chunk(f"{amended}:00002").text[40:140].encode()
        wanted = {0: {"text": text, "id": amended.encode()}}
        assert kinds(found(home, wanted)) == {"text", "id"}
        erase(engine, amended)
        assert not found(home, wanted)
        engine.ingest(corpus / f"{original}.txt")
        assert store.chunk(f"{original}:00000").word == word
        assert not found(home, wanted)
    with Engine.open(home) as engine:
        engine._collection.check()
