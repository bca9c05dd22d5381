"""``carag adopt``: what is taken, what is left out and said, and what is stored when something is wrong: nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carag import Engine, Session
from carag.adopting import Mapping, Row, Source, adopt, spooled
from carag.adopting.sources import Wanted, source_of
from carag.cli import Exit
from carag.cli.app import run
from carag.errors import InvalidArgument
from carag.retrieval import AdoptedEmbedder

DIM = 3
FACTS = {"classification": "public"}


def listed(*rows: Row) -> Source:
    return Source("listed", iter(rows))


def row(id_: Any = "a", **changes: Any) -> Row:
    made = {"id": id_, "text": f"Text of {id_}.", "vector": [1.0, 2.0, 3.0], "metadata": dict(FACTS)}
    return Row(**{**made, **changes})


def opened(tmp_path: Path) -> Engine:
    embedder = AdoptedEmbedder("angles", DIM, encode=lambda _: [1, 2, 3])
    return Engine.open(tmp_path / "store", profile="generic", embedder=embedder)


def taken(engine: Engine, *rows: Row, mapping: Mapping | None = None, **more: bool) -> Any:
    mapping = mapping or Mapping()
    with spooled(listed(*rows), mapping) as spool:
        return adopt(engine, spool, "angles", **more)


def found(engine: Engine) -> dict[str, str]:
    session = Session(role="compliance", purpose="review")
    return {one.chunk_id: one.text for one in engine.retrieve("any", session, 100).passages}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (row("b", text=None), "it has no text"),
        (row("b", text=" \n"), "it has no text"),
        (row("b", vector=None), "its vector is None; want a list of numbers"),
        (row("b", vector=[1.0, float("nan"), 0.0]), "zero or not finite"),
        (row("b", vector=[1e39, 0.0, 0.0]), "zero or not finite"),
        (row("b", vector=[0.0, 0.0, 0.0]), "zero or not finite"),
        (row("b", vector=[1.0, 2.0]), "2 components, and the first row's 3"),
        (row("b", vector=[[1.0, 2.0, 3.0]]), "want a list of numbers"),
        (row(None), "its id is None"),
        (row(True), "its id is True"),
        (row("b" * 160), "id of a document"),
    ],
)
def test_a_row_that_cannot_be_used_is_listed_and_the_others_are_adopted(
    tmp_path: Path, wrong: Row, said: str
) -> None:
    with opened(tmp_path) as engine:
        report = taken(engine, row(), wrong, row("c"))
        assert (report.rows, report.added) == (3, 2)
        (problem,) = report.problems
        assert said in problem
        assert set(found(engine)) == {"a:00000", "c:00000"}


def test_a_document_that_its_source_no_longer_states_clearly_is_closed(tmp_path: Path) -> None:
    """A row that is there twice, and a time that cannot be read: an earlier, wider label of it does not stay open."""
    mapping = Mapping(facts={"classification": "classification"}, public_at="since")
    secret = {"classification": "secret"}
    for now in ([row(), row(metadata=secret)], [row(metadata={**FACTS, "since": "soon"})]):
        with opened(tmp_path / str(len(now))) as engine:
            taken(engine, row(), row("b"), mapping=mapping)
            assert set(found(engine)) == {"a:00000", "b:00000"}
            report = taken(engine, *now, row("b"), mapping=mapping)
            assert report.changed == 1
            assert report.problems
            assert set(found(engine)) == {"b:00000"}


def test_rows_of_one_document_are_its_passages_in_order(tmp_path: Path) -> None:
    """Wherever they are in the source; what they state must be the same in all of them."""
    mapping = Mapping(document="of", order="n", facts={"classification": "classification"})
    parts = [row(f"{at}", metadata={**FACTS, "of": "d", "n": at}) for at in (10, 9, 2)]
    with opened(tmp_path) as engine:
        report = taken(
            engine, parts[0], row("x", metadata={**FACTS, "of": "e", "n": 1}), *parts[1:], mapping=mapping
        )
        assert (report.added, report.chunks) == (2, 4)
        assert found(engine) == {
            "d:00000": "Text of 2.",
            "d:00001": "Text of 9.",
            "d:00002": "Text of 10.",
            "e:00000": "Text of x.",
        }
        parts[1].metadata["classification"] = "internal"
        report = taken(engine, *parts, mapping=mapping)
        assert "its rows state different things about it" in report.problems[0]
        assert set(found(engine)) == {"e:00000"}


def test_what_has_no_label_is_quarantined_and_listed(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        report = taken(engine, row(), row("b", metadata={"classification": "green"}), row("c", metadata={}))
        assert (report.added, report.newly_quarantined) == (3, 2)
        assert ["'b' is quarantined", "'c' is quarantined"] == [one[9:27] for one in report.problems]
        assert set(found(engine)) == {"a:00000"}


def test_only_documents_of_the_source_vanish_from_it(tmp_path: Path) -> None:
    """Not those of other origin, nor one whose row is unusable; none if a row does not say what it is."""
    with opened(tmp_path) as engine:
        taken(engine, row(), row("b"), row("c"))
        with spooled(listed(row("other")), Mapping()) as spool:
            spool.name = "elsewhere"
            adopt(engine, spool, "angles")
        assert taken(engine, row(), row("b", text="")).vanished == ["c"]
        assert taken(engine, row(), row(None)).vanished == []
        with pytest.raises(InvalidArgument, match="the source has no rows, and 3 documents are from it"):
            taken(engine, remove_vanished=True)
        assert taken(engine, row(), remove_vanished=True).removed == 2
        assert set(found(engine)) == {"a:00000", "other:00000"}


def test_vectors_of_another_model_or_length_are_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        with (
            spooled(listed(row()), Mapping()) as spool,
            pytest.raises(
                InvalidArgument, match="were made by 'other', and the store's embedder is 'angles'"
            ),
        ):
            adopt(engine, spool, "other")
        with pytest.raises(
            InvalidArgument, match="have 2 components, and those of the store's embedder 'angles' have 3"
        ):
            taken(engine, row(vector=[1.0, 2.0]))
        assert 0 == engine.contents.counts().filings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema = 2", "schema"),
        ("schema = 1\nvectors = 'v'", "vectors"),
        ("[facts]\nclassification = 3", "classification"),
        ("id = ", "not valid TOML"),
    ],
)
def test_a_mapping_that_is_not_understood_is_refused_with_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "mapping.toml"
    file.write_text(text)
    with pytest.raises(InvalidArgument, match=f"mapping.toml, line .*{said}"):
        Mapping.read(file)


def test_a_dot_leads_into_a_nested_field(tmp_path: Path) -> None:
    """A field whose own name has the dot goes first."""
    mapping = Mapping(facts={"classification": "meta.level"})
    assert mapping.stated({"meta": {"level": "a"}})["facts"] == {"classification": "a"}
    assert mapping.stated({"meta": {"level": "a"}, "meta.level": "b"})["facts"] == {"classification": "b"}
    assert mapping.stated({"meta": 3})["facts"] == {}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of FAISS with 3 rows, the second secret and the third without a label."""
    faiss = pytest.importorskip("faiss", reason="needs FAISS: pip install faiss-cpu")
    monkeypatch.chdir(tmp_path)
    made = faiss.IndexFlatIP(DIM)
    made.add(np.eye(DIM, dtype=np.float32))
    faiss.write_index(made, "index.faiss")
    levels = ["public", "secret", None]
    rows = [{"id": f"r{at}", "text": f"Text {at}.", "level": one} for at, one in enumerate(levels)]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("mapping.toml").write_text('model = "angles"\n[facts]\nclassification = "level"\n')
    return "faiss:index.faiss?rows=rows.jsonl"


WORDS = ["--profile", "generic", "--mapping", "mapping.toml", "--store", "store"]


def test_a_dry_run_says_what_the_run_does(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And leaves no store; the run says the same, and the same again leaves everything as it is."""
    assert run(["adopt", index, *WORDS, "--dry-run", "--json"]) == Exit.OK
    tried = json.loads(capsys.readouterr().out)
    assert not Path("store").exists()
    assert run(["adopt", index, *WORDS, "--json"]) == Exit.OK
    done = json.loads(capsys.readouterr().out)
    names = ("rows", "added", "chunks", "embedded", "problems", "quarantined", "newly_quarantined")
    assert [tried[name] for name in names] == [done[name] for name in names]
    assert (done["added"], done["quarantined"]) == (3, {"MISSING_FACT": 1})
    assert run(["adopt", index, *WORDS]) == Exit.OK
    said = capsys.readouterr()
    assert "3 rows: 0 documents added, 0 changed, 3 unchanged" in said.out


def test_a_store_without_the_model_refuses_questions(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By name on the command line, by the stand-in in Python; with the model it answers."""
    assert run(["adopt", index, *WORDS]) == Exit.OK
    assert (
        run(["ask", "What?", "--store", "store", "--role", "public", "--purpose", "read"]) == Exit.BAD_INPUT
    )
    assert "the store was written with 'angles'" in capsys.readouterr().err
    session = Session(role="public", purpose="read")
    with (
        Engine.open("store", embedder=AdoptedEmbedder("angles", DIM)) as engine,
        pytest.raises(InvalidArgument, match="nothing here can embed a text"),
    ):
        engine.ask("What?", session)
    with Engine.open("store", embedder=AdoptedEmbedder("angles", DIM, encode=lambda _: [0, 1, 0])) as engine:
        assert ["r0:00000"] == [one.chunk_id for one in engine.retrieve("What?", session).passages]
    with pytest.raises(InvalidArgument, match="written with 'angles'"):
        Engine.open("store", embedder=AdoptedEmbedder("angles", DIM, version="2"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["faiss:nothing.faiss?rows=rows.jsonl"], "'nothing.faiss' is not there"),
        (["faiss:index.faiss"], "names no file of texts"),
        (["faiss:index.faiss?rows=mapping.toml"], "mapping.toml, line 1"),
        (["faiss:index.faiss?rows=two.jsonl"], "has 2 rows, and the index has 3 vectors"),
        (["faiss:rows.jsonl?rows=rows.jsonl"], "the source cannot be read"),
        (["oracle://me:secret@host"], "nothing can be adopted from 'oracle'"),
        (["postgresql://host/db"], "the address names no table"),
    ],
)
def test_what_cannot_be_read_is_said_and_leaves_no_store(
    index: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("two.jsonl").write_text("".join(Path("rows.jsonl").read_text().splitlines(keepends=True)[:2]))
    assert run(["adopt", *words, *WORDS]) == Exit.BAD_INPUT
    error = capsys.readouterr().err
    assert said in error
    assert "secret" not in error
    assert not Path("store").exists()


def test_the_model_must_be_stated(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["adopt", index, "--profile", "generic", "--store", "store"]) == Exit.BAD_INPUT
    assert "which model made the vectors is not stated" in capsys.readouterr().err
    assert not Path("store").exists()


def test_an_equal_name_in_another_place_is_another_source(index: str, tmp_path: Path) -> None:
    """What one folder no longer has is not looked for among the documents of the other."""
    shutil.copytree(tmp_path, tmp_path / "other")
    names = []
    for folder in (tmp_path, tmp_path / "other"):
        address = f"faiss:{folder}/index.faiss?rows={folder}/rows.jsonl"
        with source_of(address, Wanted()) as source:
            names.append(source.name.split("@"))
    assert names[0][0] == names[1][0] == "faiss:index.faiss"
    assert names[0][1] != names[1][1]
