"""Documents of one's own are found by whom their bits admit, with the history, proofs and records of filings."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import carag.engine.writer
import carag.labelling.stated
from carag import Document, Engine, PolicyBit, Session
from carag.audit import Record, Verdict, verify_receipt
from carag.engine.what_if.replay import ReplayVerdict, replay
from carag.errors import InvalidArgument
from carag.labelling.stated import _label, _row
from carag.policy import NEVER, PolicyTable, Profile, as_of_minutes, infer, policy_word
from carag.retrieval import ConfidenceGate
from tests.engine.documents import COMPLIANCE, QUESTION, Clock, Counting, at, document, ids
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

TABLE = PolicyTable.shipped()
OPEN_CELLS = [cell for cell in TABLE.cells if cell.allow_list == "none"]
PUBLIC = Session(role="public", purpose="public_qa")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def embedder() -> Counting:
    return Counting()


@pytest.fixture
def engine(tmp_path: Path, embedder: Counting, clock: Clock) -> Iterator[Engine]:
    with Engine.open(tmp_path / "store", embedder=embedder, clock=clock, gate=ConfidenceGate(-1)) as opened:
        yield opened


# --- laws ---


@st.composite
def corpora(draw: st.DrawFn) -> list[Document]:
    """Documents of any bits, windows and entities; each may supersede one before it."""
    found = []
    for number in range(draw(st.integers(1, 8))):
        start = draw(st.none() | st.integers(0, 20))
        length = draw(st.none() | st.integers(1, 20))
        old = draw(st.none() | st.integers(0, number - 1)) if number else None
        found.append(
            document(
                number,
                bits=draw(st.frozensets(st.sampled_from(PolicyBit), max_size=3)),
                entities=draw(st.frozensets(st.integers(1, 3), max_size=2)),
                public_at=None if start is None else at(start),
                expires_at=None if length is None else at((start or 0) + length),
                supersedes=None if old is None else f"d/{old}",
            )
        )
    return found


def admissible(documents: Sequence[Document], removed: set[str], session: Session, now: datetime) -> set[str]:
    """What the session may use, by the table and the documents alone."""
    decision = infer(session, TABLE, now=now)
    ends = {one.id: [NEVER if one.expires_at is None else as_of_minutes(one.expires_at)] for one in documents}
    for one in documents:
        if one.supersedes is not None:
            ends[one.supersedes].append(0 if one.public_at is None else as_of_minutes(one.public_at))
    return {
        one.id
        for one in documents
        if one.id not in removed
        and decision.admits(
            policy_word(frozenset(one.bits)),  # type: ignore[arg-type]
            0 if one.public_at is None else as_of_minutes(one.public_at),
            entity=tuple(one.entities),
            expires_at=min(ends[one.id]),
        )
    }


@given(data=st.data(), documents=corpora(), k=st.integers(1, 9))
@settings(max_examples=examples(30))
def test_what_is_found_is_what_is_admissible(data: st.DataObject, documents: list[Document], k: int) -> None:
    """result is a subset of admissible, and len(result) == min(k, admissible), whatever the order they came in."""
    order = data.draw(st.permutations(documents))
    removed = data.draw(st.sets(st.sampled_from(documents).map(lambda one: one.id)))
    cell = data.draw(st.sampled_from(OPEN_CELLS))
    session = Session(
        role=cell.role,
        purpose=cell.purpose,
        as_of=at(data.draw(st.integers(0, 45))),
        restricted=data.draw(st.frozensets(st.integers(1, 3), max_size=1)),
    )
    with (
        TemporaryDirectory() as home,
        Engine.open(Path(home, "store"), embedder=Counting(), clock=Clock()) as engine,
    ):
        engine.add(order)
        engine.remove(removed)
        wanted = admissible(documents, removed, session, engine.requests.recorder.clock())
        found = engine.retrieve(QUESTION, session, k)
        event = Record.parse(found.receipt.record).event
        names = [passage.accession_number for passage in found.passages]
        assert (len(wanted), min(k, len(wanted))) == (event.index.admissible, len(names))  # type: ignore[union-attr]
        assert set(names) <= wanted
        assert len(set(names)) == len(names)
        assert verify_receipt(found.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        assert replay(Record.parse(found.receipt.record), TABLE).verdict is ReplayVerdict.MATCHES


def test_adding_twice_changes_nothing(engine: Engine, embedder: Counting) -> None:
    documents = [document(n, metadata={"title": f"Circular {n}"}, entities=[n]) for n in range(20)]
    first = engine.add([*documents, *documents])
    assert (20, 0, 0, 0, []) == (
        first.added,
        first.changed,
        first.unchanged,
        first.quarantined,
        first.problems,
    )
    size, epoch, embedded = engine._log.size, engine._collection.store.epoch, len(embedder.texts)
    again = engine.add(iter(documents))
    assert (0, 0, 20) == (again.added, again.changed, again.unchanged)
    assert (size, epoch, embedded) == (
        engine._log.size,
        engine._collection.store.epoch,
        len(embedder.texts),
    )


def test_only_what_changed_is_embedded(engine: Engine, embedder: Counting) -> None:
    many = examples(1000, least=100)
    documents = [document(n) for n in range(many)]
    engine.add(documents)
    embedder.texts.clear()
    for n in range(0, many, many // 10):
        documents[n] = document(n, text=f"Branches no longer report on day {n}.")
    report = engine.add(documents)
    assert (0, 10, many - 10) == (report.added, report.changed, report.unchanged)
    assert sorted(documents[n].text for n in range(0, many, many // 10)) == sorted(embedder.texts)


def test_passages_are_embedded_in_batches(
    engine: Engine, embedder: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carag.engine.writer, "_EMBED_BATCH", 10)
    engine.add([document(n) for n in range(35)])
    assert [10, 10, 10, 5] == embedder.batches


CHANGES: dict[str, dict[str, Any]] = {
    "text": {"text": "Another text."},
    "bits": {"bits": "PD_COMP"},
    "metadata": {"metadata": {"title": "Another"}},
    "entities": {"entities": [7]},
    "public_at": {"public_at": at(0)},
    "expires_at": {"expires_at": at(9)},
    "supersedes": {"supersedes": "d/other"},
    "language": {"language": "de"},
    "pages": {"pages": [0]},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_field_is_part_of_what_makes_a_document(engine: Engine, change: dict[str, Any]) -> None:
    engine.add([document(), document("other")])
    report = engine.add([document(**change)])
    assert (0, 1, 0) == (report.added, report.changed, report.unchanged)


def test_the_version_of_the_chunker_is_part_of_it(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.add([document()])
    monkeypatch.setattr(carag.labelling.stated, "CHUNKER_VERSION", "another")
    assert 1 == engine.add([document()]).changed


# --- versions, two times, proof ---


def test_a_changed_document_is_another_version_and_the_old_one_can_be_replayed(
    engine: Engine, clock: Clock
) -> None:
    engine.add([document(text="Report by the fifth.")])
    clock.pass_(hours=1)
    before = clock()
    clock.pass_(hours=1)
    engine.add([document(text="Report by the tenth.")])
    now = engine.retrieve(QUESTION, COMPLIANCE)
    then = engine.retrieve(QUESTION, Session(role="compliance", purpose="surveil", known_at=before))
    assert [("d/0.v2:00000", "Report by the tenth.")] == [(p.chunk_id, p.text) for p in now.passages]
    assert [("d/0:00000", "Report by the fifth.")] == [(p.chunk_id, p.text) for p in then.passages]
    for found in (now, then):
        assert verify_receipt(found.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED


def test_of_whatever_version_passages_and_citations_name_their_document(engine: Engine) -> None:
    """Its id is told beside the passage's, also in JSON; what a record holds is unchanged."""
    for version, text in enumerate(
        ("Report by the fifth.", "Report by the tenth.", "Report by noon."), start=1
    ):
        engine.add([document(id="urn:d:0", text=text)])
        answer = engine.ask(QUESTION, COMPLIANCE)
        told = answer.to_json()
        assert answer.citations
        places = [(one.document_id, one.version) for one in (*answer.passages, *answer.citations)]
        places += [(one["document_id"], one["version"]) for one in (*told["passages"], *told["citations"])]
        assert set(places) == {("urn:d:0", version)}
        assert b"document_id" not in answer.receipt.record


def test_an_id_may_hold_colons_and_a_passage_names_its_ordinal_last(engine: Engine) -> None:
    text = "\n\n".join(f"Paragraph {n} has a sentence. " * 20 for n in range(9))
    engine.add([document(id="urn:x:00001", text=text)])
    passages = engine.retrieve(QUESTION, COMPLIANCE, 400).passages
    assert len(passages) > 3
    for passage in passages:
        name, _, ordinal = passage.chunk_id.rpartition(":")
        assert ("urn:x:00001", "urn:x:00001") == (name, passage.accession_number)
        assert ordinal.isdecimal()
        assert text[passage.start : passage.end] == passage.text


def test_a_title_is_embedded_and_not_shown(engine: Engine, embedder: Counting) -> None:
    """The other metadata are not embedded; a citation names the document by it."""
    engine.add(
        [
            document(1, metadata={"title": " Circular 1 ", "author": "Li"}),
            document(2, metadata={"title": " "}),
        ]
    )
    assert ["Circular 1\nBranches report on day 1.", "Branches report on day 2."] == embedder.texts
    found = engine.retrieve(QUESTION, COMPLIANCE).passages
    assert "Circular" not in "".join(one.text for one in found)
    assert {one.source for one in found} == {"Circular 1, d/1", "d/2"}


def test_the_profile_says_under_what_passages_are_embedded_how_they_are_cited_and_how_long_they_are(
    tmp_path: Path, embedder: Counting
) -> None:
    """Parts without their field are left out; other lengths make another version of a document."""
    text, roles = Profile.open("generic").texts
    named = text.replace(
        'name = "generic"',
        'name = "office"\nheading = ["{team}", "of {year}"]\ncitation = ["No. {number}", "{part}", "{id}"]\n'
        "chunking = {target = 20, limit = 30}",
    )
    one = document(
        1, text="Branches report in May. Others report in June.", metadata={"team": "Risk"}, pages=[0, 24]
    )
    store = tmp_path / "store"
    with Engine.open(store, profile=Profile.from_texts(named, roles), embedder=embedder) as engine:
        engine.add([one, document(2, text="Short.", metadata={"year": 2024, "number": 7})])
        found = engine.retrieve(QUESTION, Session(role="public", purpose="read")).passages
    assert embedder.texts == [
        "Risk\nBranches report in May.",
        "Risk\nOthers report in June.",
        "of 2024\nShort.",
    ]
    assert {one.source for one in found} == {"page 1, d/1", "page 2, d/1", "No. 7, d/2"}
    longer = Profile.from_texts(named.replace("limit = 30", "limit = 60"), roles)
    with Engine.open(store, profile=longer, embedder=embedder, accept={"policy"}) as engine:
        assert engine.add([one]).changed == 1
        assert engine.add([one]).unchanged == 1


def test_the_content_hash_of_what_is_cut_by_passages_stays_while_the_chunker_does() -> None:
    """Taken with ``clause-2``; another hash makes another version of every document that is added again."""
    text, roles = Profile.open("generic").texts
    hashes = {
        "": "14dffc8ecf0f6ac0d37ec28257a8f1a7c58add7733f52dc4e23d097900da22a3",
        "chunking = {target = 500, limit = 900}": "9b627a788a2d30dd3224b5b51d0179faf50706e52983a2d609d93e02357b3d59",
    }
    one = Document(id="x", text="A text. " * 500, bits=["INTERNAL"], pages=[0, 100])
    for chunking, expected in hashes.items():
        named = text.replace('name = "generic"', f'name = "office"\n{chunking}')
        vocabulary = Profile.from_texts(named, roles).vocabulary
        assert _row(one, _label(one, vocabulary), vocabulary).content_hash == expected


def test_a_profile_may_have_documents_cut_at_their_clauses_which_citations_name(
    tmp_path: Path, embedder: Counting
) -> None:
    """The way of cutting and its overlap are part of a document's version; passages have none."""
    text, roles = Profile.open("generic").texts
    office = text.replace('name = "generic"', 'name = "office"\nchunking = {target = 40, limit = 70}')
    rules = "1. Branches\n(a) report on day 1; and\n(b) answer.\nProvided that they exist.\n2. Others report in June."
    one = document(1, text=rules, pages=[0, rules.index("2. ")])

    def parts(profile: str) -> list[tuple[str, str]]:
        with Engine.open(
            tmp_path / "store",
            profile=Profile.from_texts(profile, roles),
            embedder=embedder,
            accept={"policy"},
        ) as engine:
            assert engine.add([one]).unchanged == 0
            assert engine.add([one]).unchanged == 1
            found = engine.retrieve(QUESTION, Session(role="public", purpose="read")).passages
        return sorted((passage.text, passage.source) for passage in found)

    assert all("clause" not in source for _, source in parts(office))
    whole = office.replace("target = 40, limit = 70", 'by = "clauses", target = 80, limit = 90')
    assert parts(whole) == [
        (rules[: rules.index("\n2.")], "clause 1, page 1, d/1"),
        (rules[rules.index("2.") :], "clause 2, page 2, d/1"),
    ]
    longer = whole.replace("target = 80, limit = 90", "target = 20, limit = 30, whole = 90")
    assert parts(longer) == parts(longer.replace("whole = 90", "whole = 91"))  # each added again
    assert parts(longer.replace("whole = 90", "whole = 92"))[0][0] == rules[: rules.index("\n2.")]
    torn = whole.replace("target = 80, limit = 90", "target = 20, limit = 20, overlap = 8")
    assert {source for _, source in parts(torn)} >= {"clause 1(a), page 1, d/1", "clause 2, page 2, d/1"}
    assert parts(torn.replace("overlap = 8", "overlap = 7"))


# --- what is refused, before anything is stored ---

REFUSED: dict[str, tuple[list[Any], str]] = {
    "two of one id": ([document(), document(text="Another text.")], "given twice"),
    "unknown superseded": ([document(supersedes="d/none")], "neither among those given nor in the store"),
    "circle in the call": (
        [document(1, supersedes="d/2"), document(2, supersedes="d/3"), document(3, supersedes="d/1")],
        "supersedes itself",
    ),
    "circle with the store": (
        [document("stored", supersedes="d/1"), document(1, supersedes="d/stored")],
        "itself",
    ),
    "circle through the store": ([document("base", supersedes="d/next")], "itself"),
    "facts without rules": (
        [Document(id="f", text="x", facts={"a": 1})],
        "no rules that turn facts into bits; give bits",
    ),
    "unknown bits": ([document(bits="CONSENT")], "unknown policy bit"),
    "no document": ([{"id": "d/0"}], "carag.Document"),
}


@pytest.mark.parametrize(("documents", "why"), REFUSED.values(), ids=REFUSED)
def test_a_call_that_cannot_be_done_stores_nothing(engine: Engine, documents: list[Any], why: str) -> None:
    engine.add([document("stored"), document("base"), document("next", supersedes="d/base")])
    size, epoch = engine._log.size, engine._collection.store.epoch
    with pytest.raises(InvalidArgument, match=why):
        engine.add([document("good"), *documents])
    assert (size, epoch) == (engine._log.size, engine._collection.store.epoch)


@pytest.mark.parametrize("documents", [document(), "d/0", None, 7], ids=["a document", "text", "None", "7"])
def test_what_is_no_list_of_documents_is_refused(engine: Engine, documents: Any) -> None:
    with pytest.raises(InvalidArgument, match="want a list"):
        engine.add(documents)


def test_a_source_that_fails_midway_stores_nothing(engine: Engine) -> None:
    def broken() -> Iterator[Document]:
        yield document()
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        engine.add(broken())
    assert 0 == engine._collection.store.epoch


def test_a_document_without_text_is_stored_and_reported(engine: Engine) -> None:
    report = engine.add([document(text=" \n ")])
    assert 1 == report.added
    assert ["document 'd/0' has no text, so nothing can find it"] == report.problems


# --- filings and documents apart ---


def test_a_store_of_documents_takes_no_filings(engine: Engine, small_corpus: Path) -> None:
    engine.add([document()])
    with pytest.raises(InvalidArgument, match="in separate stores"):
        engine.ingest(small_corpus)
    assert {"d/0"} == ids(engine)


def test_a_store_of_filings_takes_no_documents(engine: Engine, small_corpus: Path) -> None:
    """Also one that has no note, because it is older than the note."""
    engine.ingest(next(iter(sorted(small_corpus.glob("*.txt")))))
    filings = ids(engine)
    for note in ("edgar", None):
        if note is None:
            store = engine._collection.store
            with store._writing() as sql:
                sql.execute("DELETE FROM meta WHERE name = 'reader'")
        with pytest.raises(InvalidArgument, match="in separate stores"):
            engine.add([document()])
        with pytest.raises(InvalidArgument, match="in separate stores"):
            engine.remove(sorted(filings))
    assert filings == ids(engine)


def test_an_empty_store_may_still_become_either(engine: Engine, tmp_path: Path) -> None:
    """A call that stored nothing commits the store to nothing."""
    (tmp_path / "empty").mkdir()
    engine.ingest(tmp_path / "empty")
    assert 1 == engine.add([document()]).added
