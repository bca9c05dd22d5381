"""A run brings the store up to a folder: what changed is embedded, the old version superseded, and nothing is lost."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine, Session
from carag.engine import freshness
from carag.engine.freshness import Source
from carag.errors import InvalidArgument, StoreLocked
from carag.labelling.chunking import chunk
from tests.engine.documents import Clock, Counting
from tests.engine.freshness.folders import (
    FACTS,
    REVIEW,
    circular,
    clause,
    held,
    opened,
    sound,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "_PAUSE", 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "circulars")


@pytest.fixture
def embedder() -> Counting:
    return Counting()


@pytest.fixture
def engine(tmp_path: Path, folder: Path, embedder: Counting) -> Iterator[Engine]:
    with opened(tmp_path / "store", embedder) as engine:
        yield engine


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


# --- what is embedded ---


def test_a_second_run_embeds_nothing_and_writes_nothing(
    engine: Engine, embedder: Counting, folder: Path
) -> None:
    """No transaction of the store, no record, no note."""
    first = engine.sync(folder)
    assert (first.added, first.embedded, first.reused) == (4, first.chunks, 0)
    store, size = engine._collection.store, engine._log.size
    notes = [*store._snapshot("SELECT name, value FROM meta ORDER BY name")]
    given = len(embedder.texts)
    second = engine.sync(folder)
    assert (second.added, second.changed, second.unchanged, second.chunks) == (0, 0, 4, 0)
    assert (size, given) == (engine._log.size, len(embedder.texts))
    assert notes == [*store._snapshot("SELECT name, value FROM meta ORDER BY name")]
    sound(engine)


def test_an_edited_clause_is_embedded_and_no_other(engine: Engine, embedder: Counting, folder: Path) -> None:
    """As many passages as the edit touches; those before keep their bytes, and so do those after the next boundary."""
    engine.sync(folder)
    before, given = held(engine), len(embedder.texts)
    edit(folder / "c2.md", clause(2, 4), clause(2, 4).replace("clause 4", "clause four"))
    report = engine.sync(folder)
    new = set(held(engine)["c2.md"]) - set(before["c2.md"])
    assert (report.changed, report.unchanged, report.embedded) == (1, 3, len(new)) == (1, 3, 1)
    assert report.reused == report.chunks - 1 == len(before["c2.md"]) - 1
    assert embedder.texts[given:] == [f"Circular 2\n{text}" for text in new]
    assert {name: texts for name, texts in held(engine).items() if name != "c2.md"} == {
        name: texts for name, texts in before.items() if name != "c2.md"
    }
    sound(engine)


def test_a_new_heading_is_another_text(engine: Engine, folder: Path) -> None:
    """A passage is embedded below its document's title, so that another title embeds all its passages again."""
    engine.sync(folder)
    edit(folder / "c1.md", "title: Circular 1", "title: Master direction 1")
    report = engine.sync(folder)
    assert (report.changed, report.reused) == (1, 0)
    assert report.embedded == report.chunks > 1


def test_a_file_of_another_name_and_a_return_to_an_older_text_embed_nothing(
    engine: Engine, embedder: Counting, folder: Path
) -> None:
    """A vector belongs to a text, not to a document or its newest version."""
    engine.sync(folder)
    text = (folder / "c3.md").read_text()
    edit(folder / "c3.md", "clause 5", "clause five")
    engine.sync(folder)
    given = len(embedder.texts)
    (folder / "c3.md").write_text(text)
    (folder / "c0.md").rename(folder / "renamed.md")
    report = engine.sync(folder, remove_vanished=True)
    assert (report.added, report.changed, report.vanished, report.embedded) == (1, 1, ["c0.md"], 0)
    assert given == len(embedder.texts)
    assert {"renamed.md", "c1.md", "c2.md", "c3.md"} == {*held(engine)}
    sound(engine)


def test_what_two_documents_of_one_title_say_alike_is_embedded_once(
    engine: Engine, embedder: Counting, folder: Path
) -> None:
    same = FACTS.format(9) + "The same short notice.\n"
    for name in ("x.md", "y.md"):
        (folder / name).write_text(same)
    report = engine.sync(folder)
    assert report.reused == 1
    assert sum("same short notice" in text for text in embedder.texts) == 1


def test_the_vector_taken_is_that_of_the_text(engine: Engine, folder: Path) -> None:
    """Row by row, after edits, renamings and returns: what the embedder would give."""
    engine.sync(folder)
    edit(folder / "c2.md", "clause 3", "clause three")
    (folder / "c1.md").rename(folder / "d1.md")
    engine.sync(folder, remove_vanished=True)
    store = engine._collection.store
    keys = store.labels.open()
    labels, vectors = store.labels.rows(keys)
    for key, vector in zip(labels.keys.tolist(), vectors, strict=True):
        (one,) = store.chunks([key])
        wanted = engine._collection.embedder.embed_documents([f"{one.stated['title']}\n{one.text}"])[0]
        assert vector.tolist() == wanted.tolist()


def test_documents_of_your_own_and_filings_take_vectors_as_well(tmp_path: Path) -> None:
    """``Engine.add``, and ``Engine.ingest`` of any profile, go the same way."""
    text = "\n\n".join(clause(1, n) for n in range(6))
    with Engine.open(tmp_path / "store", embedder=Counting(), clock=Clock()) as engine:
        first = engine.add([Document(id="a", text=text, bits=())])
        again = engine.add([Document(id="a", text=f"{text}\n\nOne more.", bits=())])
    assert (first.embedded, first.reused) == (len(chunk(text)), 0)
    assert (again.embedded, again.reused) == (1, again.chunks - 1)


# --- both time axes ---


def test_the_old_version_is_superseded_on_both_time_axes(engine: Engine, folder: Path) -> None:
    """What the store knew then it still tells; what it knows now holds from the day that the document states."""
    session = lambda **at: Session(role="compliance", purpose="review", **at)  # noqa: E731
    path = folder / "c0.md"
    path.write_text(
        "---\nclassification: internal\npublic_at: 2026-01-02T00:00:00+00:00\n---\nBranches report in May.\n"
    )
    engine.sync(path)
    then = engine._collection.store.known()
    edit(path, "May", "June")
    engine.sync(path)

    def said(**at: object) -> list[str]:
        return [one.text for one in engine.retrieve("When do branches report?", session(**at), 9).passages]

    known_then = datetime.fromtimestamp(then / 1e6, UTC)
    for as_of, old, new in (
        (datetime(2026, 1, 1, tzinfo=UTC), [], []),  # nothing was public
        (datetime(2026, 1, 3, tzinfo=UTC), ["Branches report in May."], ["Branches report in June."]),
    ):
        assert old == said(as_of=as_of, known_at=known_then)
        assert new == said(as_of=as_of)
    assert ["Branches report in June."] == said()


def test_at_every_instant_there_is_one_version(engine: Engine, folder: Path) -> None:
    """Of each document, at each instant the store ever had: the passages of one version, and of no two."""
    engine.sync(folder)
    for number in range(3):
        for one in (1, 2):
            path = folder / f"c{one}.md"
            path.write_text(
                path.read_text().replace("reports" if number else "report", "reports", 1) + "More.\n"
            )
        engine.sync(folder)
    store = engine._collection.store
    instants = [at for (at,) in store._snapshot("SELECT known_at FROM changes ORDER BY known_at")]
    assert len(instants) == 4
    for at in instants:
        versions: dict[str, set[int]] = {}
        for one in store.chunks(store.labels.open(known_at=at), known_at=at):
            versions.setdefault(one.document_id, set()).add(one.version)
        assert all(len(of_one) == 1 for of_one in versions.values())
        assert len(versions) == 4


# --- what changed is told by content ---


def test_an_edit_on_the_day_of_the_run_with_its_time_put_back_is_found(engine: Engine, folder: Path) -> None:
    """Same day, same size, same modification time: no date tells the two apart."""
    path = folder / "c1.md"
    was = path.stat()
    engine.sync(folder)
    edit(path, "clause 2:", "clause 3:")
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert (was.st_size, was.st_mtime_ns) == (path.stat().st_size, path.stat().st_mtime_ns)
    report = engine.sync(folder)
    assert (report.changed, report.unchanged) == (1, 3)
    assert any("clause 3:" in text and text.startswith("2.") for text in held(engine)["c1.md"])


def test_a_new_time_alone_is_no_change(engine: Engine, folder: Path) -> None:
    engine.sync(folder)
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    assert engine.sync(folder).unchanged == 4


# --- what vanished ---


def test_what_vanished_is_named_each_time_and_stays(engine: Engine, folder: Path) -> None:
    """Until it is withdrawn, or comes back."""
    engine.sync(folder)
    (folder / "c1.md").unlink()
    size = engine._log.size
    assert [["c1.md"], ["c1.md"]] == [engine.sync(folder).vanished for _ in range(2)]
    assert "c1.md" in held(engine)
    assert size == engine._log.size
    (folder / "c1.md").write_text(circular(1))
    assert ([], 4) == ((report := engine.sync(folder)).vanished, report.unchanged)


def test_what_vanished_is_withdrawn_when_told_so(engine: Engine, folder: Path) -> None:
    """It is found no more, and past questions still find it; a second run has nothing to do."""
    engine.sync(folder)
    then = datetime.fromtimestamp(engine._collection.store.known() / 1e6, UTC)
    (folder / "c1.md").unlink()
    report = engine.sync(folder, remove_vanished=True)
    assert (report.vanished, report.removed) == (["c1.md"], 1)
    size = engine._log.size
    assert ([], 0) == ((again := engine.sync(folder, remove_vanished=True)).vanished, again.removed)
    assert size == engine._log.size
    past = Session(role="compliance", purpose="review", known_at=then)
    found = [
        {one.accession_number for one in engine.retrieve("What?", session, 99).passages}
        for session in (past, REVIEW)
    ]
    assert [one - found[1] for one in found] == [{"c1.md"}, set()]
    sound(engine)


def test_what_came_from_elsewhere_never_vanishes(engine: Engine, folder: Path, tmp_path: Path) -> None:
    """Neither documents added by hand, nor those of another folder."""
    other = written(tmp_path / "other", 1)
    (other / "c0.md").rename(other / "o.md")
    engine.add([Document(id="own", text="Added by hand.", bits=())])
    engine.sync(other)
    report = engine.sync(folder, remove_vanished=True)
    assert (report.vanished, report.removed) == ([], 0)
    assert {"own", "o.md"} < {*held(engine)}


@pytest.mark.parametrize("harm", ["broken", "empty", "unreadable folder", "sidecar"])
def test_what_cannot_be_read_has_not_vanished(engine: Engine, folder: Path, harm: str) -> None:
    """Its document stays, whatever --remove-vanished says; the trouble is named."""
    (folder / "sub").mkdir()
    (folder / "c1.md").rename(folder / "sub" / "c1.md")
    engine.sync(folder)
    path = folder / "sub" / "c1.md"
    match harm:
        case "broken":
            path.write_bytes(b"\xff\xfe\x00broken")
        case "empty":
            path.write_bytes(b"")
        case "unreadable folder":
            if os.geteuid() == 0:
                pytest.skip("root reads every folder")
            path.parent.chmod(0)
        case "sidecar":
            (folder / "metadata.csv").write_bytes(b"\xff")
    report = engine.sync(folder, remove_vanished=True)
    path.parent.chmod(0o700)
    assert ([], 0) == (report.vanished, report.removed)
    assert any(one.startswith(("sub", "metadata.csv")) for one in report.problems)
    assert "sub/c1.md" in held(engine)


def test_a_row_that_is_gone_from_its_file_vanished_unless_the_file_has_trouble(
    engine: Engine, folder: Path
) -> None:
    rows = [f'{{"id": "r{n}", "text": "Row {n}.", "classification": "internal"}}\n' for n in range(3)]
    path = folder / "rows.jsonl"
    path.write_text("".join(rows))
    engine.sync(folder)
    path.write_text(rows[0] + "{\n")
    assert [] == engine.sync(folder).vanished
    path.write_text(rows[0])
    assert ["r1", "r2"] == engine.sync(folder).vanished


def test_a_folder_that_gives_nothing_withdraws_nothing(engine: Engine, folder: Path) -> None:
    """As when a disk is not mounted."""
    engine.sync(folder)
    for path in folder.iterdir():
        path.unlink()
    report = engine.sync(folder, remove_vanished=True)
    assert (len(report.vanished), report.removed) == (4, 0)
    assert "check that the folder is mounted" in report.problems[-1]
    assert len(held(engine)) == 4


def test_a_document_that_was_removed_by_hand_did_not_vanish(engine: Engine, folder: Path) -> None:
    engine.sync(folder)
    (folder / "c1.md").unlink()
    engine.remove(["c1.md"])
    assert [] == engine.sync(folder).vanished
    assert "c1.md" not in Source(engine._collection.store, folder).known()


# --- what changes meanwhile ---


def writing(monkeypatch: pytest.MonkeyPatch, write: Callable[[int], None]) -> list[int]:
    """Write while a folder is read: between its first and its last state of each pass."""
    passes: list[int] = []
    states = freshness._states

    def watched(path: Path) -> object:
        found = states(path)
        passes.append(len(passes))
        if len(passes) % 2:
            write(len(passes) // 2)
        return found

    monkeypatch.setattr(freshness, "_states", watched)
    return passes


def test_a_file_that_changes_while_it_is_read_is_read_again(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(number: int) -> None:
        if number == 0:
            edit(folder / "c1.md", "clause 2:", "clause two:")

    passes = writing(monkeypatch, write)
    report = engine.sync(folder)
    assert (len(passes), report.added, report.left) == (4, 4, [])
    assert any("clause two:" in text for text in held(engine)["c1.md"])


def test_a_file_that_does_not_come_to_rest_is_left_to_the_next_run(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is stored, its earlier version stays, and it has not vanished; the others go in."""
    engine.sync(folder)
    before = held(engine)["c1.md"]
    edit(folder / "c2.md", "clause 2:", "clause two:")

    def write(number: int) -> None:
        path, was = folder / "c1.md", (folder / "c1.md").stat()
        text = path.read_text()
        path.write_text(text.replace("reports" if "reports" in text else "report", "report" * (number + 1)))
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))

    with monkeypatch.context() as patched:
        writing(patched, write)
        report = engine.sync(folder, remove_vanished=True)
    assert (report.left, report.is_done, report.changed, report.vanished) == (["c1.md"], False, 1, [])
    assert before == held(engine)["c1.md"]
    report = engine.sync(folder)
    assert (report.left, report.is_done, report.changed) == ([], True, 1)


def test_a_sidecar_that_changes_meanwhile_leaves_all(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It states facts of any file: half of one and half of another would be labelled by neither."""
    sidecar = folder / "metadata.csv"
    with monkeypatch.context() as patched:
        writing(patched, lambda number: void(sidecar.write_text(f"file,year\nc1.md,{2000 + number}\n")))
        report = engine.sync(folder)
    assert (report.added, report.is_done, len(report.left)) == (0, False, 5)
    assert {} == held(engine)
    assert engine.sync(folder).added == 4


def void(_: object) -> None:
    return None


# --- stopping, and who may run ---


def test_a_run_that_is_told_to_stop_ends_between_two_documents(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was stored is on record, nothing is removed, and the next run goes on where it ended."""
    monkeypatch.setattr("carag.engine.writer._EMBED_BATCH", 1)
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 2

    report = engine.sync(folder, stop=stop)
    assert (report.added, report.stopped, report.is_done) == (2, True, False)
    sound(engine)
    report = engine.sync(folder)
    assert (report.added, report.unchanged, report.stopped) == (2, 2, False)
    sound(engine)


def test_a_store_of_filings_has_nothing_to_sync(tmp_path: Path, folder: Path) -> None:
    with (
        Engine.open(tmp_path / "store", embedder=Counting()) as engine,
        pytest.raises(InvalidArgument, match="run ingest again"),
    ):
        engine.sync(folder)


def test_a_folder_that_does_not_exist_is_refused(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="does not exist"):
        engine.sync(tmp_path / "nowhere")


def test_a_reader_of_ones_own_says_no_file_so_any_trouble_holds(engine: Engine, folder: Path) -> None:
    """Without places, one problem may hide any document."""

    def read(path: Path) -> list[Document | str]:
        texts = {one.name: one.read_text() for one in sorted(path.iterdir())}
        return [
            Document(id=name, text=text, bits=()) if "bad" not in text else f"{name}: bad"
            for name, text in texts.items()
        ]

    assert engine.sync(folder, reader=read).added == 4
    (folder / "c0.md").unlink()
    (folder / "c1.md").write_text("bad")
    assert [] == engine.sync(folder, reader=read).vanished
    (folder / "c1.md").write_text(circular(1))
    assert ["c0.md"] == engine.sync(folder, reader=read).vanished


def test_a_second_engine_is_refused_by_the_lock(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(StoreLocked, match="another writer holds"):
        opened(tmp_path / "store")


@pytest.mark.full
def test_of_31000_passages_an_edited_clause_embeds_one(tmp_path: Path) -> None:
    """As at every size: what is embedded depends on the edit, not on the store."""
    folder, embedder = written(tmp_path / "circulars", 660, 60), Counting()
    with opened(tmp_path / "store", embedder) as engine:
        first = engine.sync(folder)
        assert first.embedded == first.chunks >= 31_000
        edit(folder / "c77.md", clause(77, 30), clause(77, 30).replace("clause 30", "clause thirty"))
        given, report = len(embedder.texts), engine.sync(folder)
        assert (report.changed, report.unchanged, report.embedded) == (1, 659, 1)
        assert [text for text in embedder.texts[given:] if "clause thirty" in text] == embedder.texts[given:]
        sound(engine)
