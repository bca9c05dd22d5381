"""The metric reads under a policy: what a session may not use is never embedded, judged, found or counted."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag import Document, Engine, Session
from carag.errors import InvalidArgument, Refused
from carag.evaluation.regulatory import (
    CorpusConnector,
    Regulatory,
    RegulatoryDocument,
    Settings,
    StoreCorpusConnector,
)
from carag.evaluation.regulatory.chunks import ChunkerConfig, paper_chunks
from carag.policy import NEVER, QUARANTINE, VERSION_WORD, Profile, infer
from tests.evaluation.regulatory.fakes import NEUTRAL, Everywhere, Held, Judge, Said, turn
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from carag.policy import Decision

PROFILE = Profile.open("generic")
BITS = PROFILE.vocabulary.flags
CELLS = [(cell.role, cell.purpose) for cell in PROFILE.table.cells]
NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
MINUTE = int(NOW.timestamp()) // 60
VARIANTS = ["paper", "reference", "stance"]


class Read(Held):
    """Documents read in a session of the generic profile."""

    def __init__(self, session: Session, *documents: RegulatoryDocument) -> None:
        super().__init__(*documents)
        self._session = session

    @property
    def decision(self) -> Decision:
        return infer(self._session, PROFILE.table, now=NOW)


def sources(connector: CorpusConnector, variant: str, **changed: Any) -> tuple[set[str], set[str]]:
    """Measure one turn that everything is near to; return the sources found, and all texts that a model was given."""
    embedder, judge, said = Everywhere(), Judge({}, otherwise=NEUTRAL), Said(lambda _text: 1.0)
    metric = Regulatory(
        connector,
        embedder,
        judge if variant == "stance" else said,
        Settings(variant=variant, top_k=1_000, **changed),  # type: ignore[arg-type]
    )
    (found,) = metric.batch("s", "a", [turn(query="Q", assistant="A a a")])
    given_to_models = {*embedder.seen, *said.seen, *(passage for _, passage in judge.asked)} - {"Q", "A a a"}
    # A judge of stance reads whole sentences, which a window may cut; all their words are in windows found.
    shown = [one.text for one in found.retrieved_chunks]
    assert {word for one in given_to_models for word in one.split()} == {
        word for one in shown for word in one.split()
    }
    assert all(any(one in given for given in given_to_models) for one in shown)
    return {one.source for one in found.retrieved_chunks}, given_to_models


words = st.integers(0, (1 << len(BITS)) - 1).map(lambda bits: bits | VERSION_WORD) | st.sampled_from(
    [0, 1, VERSION_WORD | QUARANTINE, 2 * VERSION_WORD, VERSION_WORD]
)
times = st.sampled_from([0, MINUTE - 1, MINUTE, MINUTE + 1, NEVER])
labels = st.lists(st.tuples(words, times, times), min_size=1, max_size=8)


@given(labels, st.sampled_from(CELLS), st.sampled_from(VARIANTS))
def test_what_the_cell_does_not_admit_is_neither_found_nor_shown_to_a_model(
    given_labels: list[tuple[int, int, int]], cell: tuple[str, str], variant: str
) -> None:
    """Judged by the cell's own masks and plain comparison of times."""
    documents = [RegulatoryDocument(f"text {n}", f"d{n}", 0, *label) for n, label in enumerate(given_labels)]
    found_cell = PROFILE.table.get(*cell)
    assert found_cell is not None
    admissible = {
        one.source
        for one in documents
        if found_cell.policy.admits(one.word) and one.public_at <= MINUTE < one.expires_at
    }
    connector = Read(Session(role=cell[0], purpose=cell[1]), *documents)
    if not admissible:
        with pytest.raises(InvalidArgument, match=f"contains no text that {cell[0]}/{cell[1]} may read"):
            sources(connector, variant)
        return
    found, texts = sources(connector, variant)
    assert found == admissible
    assert texts == {one.text for one in documents if one.source in admissible}


def test_stretches_of_a_document_with_mixed_labels_are_searched_apart() -> None:
    secret = VERSION_WORD | int(BITS["SECRET"])
    parts = [
        RegulatoryDocument("Open beginning.", "act", 0),
        RegulatoryDocument("Hidden middle.", "act", 16, secret),
        RegulatoryDocument("Open end.", "act", 31),
    ]
    connector = Read(Session(role="public", purpose="read"), *parts)
    metric = Regulatory(connector, Everywhere(), Said(lambda _text: 1.0))
    (found,) = metric.batch("s", "a", [turn()])
    assert [(one.text, one.start, one.end, one.chunk_index) for one in found.retrieved_chunks] == [
        ("Open beginning.", 0, 15, 0),
        ("Open end.", 31, 40, 1),
    ]


@settings(max_examples=examples(30))
@given(labels, st.integers(0, 7), st.sampled_from(VARIANTS))
def test_what_is_hidden_changes_nothing(
    given_labels: list[tuple[int, int, int]], other: int, variant: str
) -> None:
    """Whatever a hidden document says, and whether it exists at all, the verdict is the same byte for byte."""

    def measured(hidden_text: str | None) -> str:
        documents = [RegulatoryDocument("The public act.", "act")]
        for n, label in enumerate(given_labels):
            one = RegulatoryDocument(f"{hidden_text} {n}", f"d{n}", 0, *label)
            is_open = PROFILE.table.get("public", "read").policy.admits(one.word)  # type: ignore[union-attr]
            if hidden_text is not None and not (is_open and one.public_at <= MINUTE < one.expires_at):
                documents.insert(other % (len(documents) + 1), one)
        connector = Read(Session(role="public", purpose="read"), *documents)
        model = Judge({}) if variant == "stance" else Said(lambda _text: 0.7)
        metric = Regulatory(connector, Everywhere(), model, Settings(variant=variant))  # type: ignore[arg-type]
        metric.batch("s", "a", [turn()])
        return metric.result("s").model_dump_json()

    assert measured(None) == measured("one secret") == measured("quite another, longer secret")


# --- a store ---

PARAGRAPH = (
    "Article {n}.\n\nThe provider\tshall keep the  logs of system {n} for six months, and report\nevery serious "
    "incident {n} without delay.   \n\n\n"
)
LONG = "".join(PARAGRAPH.format(n=n) for n in range(60))
TEXTS = {
    "act": LONG,
    "notice": "A public notice.  With two   spaces.",
    "rent": "Rent is internal. " * 150,
    "plan": "The secret plan. " * 150,
    "old": "An expired rule.",
    "coming": "A rule to come.",
}


def day(days: int) -> datetime:
    return NOW + timedelta(days=days)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A store with a long act, and documents that are internal, secret, expired, yet to come, and about entities."""
    home = tmp_path_factory.mktemp("store")
    with Engine.open(home, profile="generic", embedder="wordllama", clock=lambda: NOW) as opened:
        opened.add(
            [
                Document(id="act", text=TEXTS["act"], bits=()),
                Document(id="notice", text=TEXTS["notice"], bits=(), entities=[7, 8]),
                Document(id="rent", text=TEXTS["rent"], bits=("INTERNAL",)),
                Document(id="plan", text=TEXTS["plan"], bits=("SECRET",)),
                Document(id="old", text=TEXTS["old"], bits=(), expires_at=day(-1)),
                Document(id="coming", text=TEXTS["coming"], bits=(), public_at=day(1)),
            ]
        )
        yield opened


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("session", "wanted"),
    [
        (Session(role="public", purpose="read"), {"act", "notice"}),
        (Session(role="employee", purpose="work"), {"act", "notice", "rent"}),
        (Session(role="counsel", purpose="advise"), {"act", "notice", "rent", "plan"}),
        (Session(role="counsel", purpose="advise", as_of=day(-2)), {"act", "notice", "rent", "plan", "old"}),
        (Session(role="public", purpose="read", allow_entities=frozenset({7, 8})), {"notice"}),
        (Session(role="employee", purpose="work", restricted=frozenset({7})), set()),
    ],
)
def test_a_store_is_read_as_its_session_may(
    engine: Engine, session: Session, wanted: set[str], variant: str
) -> None:
    connector = StoreCorpusConnector(engine, session)
    if not wanted:
        with pytest.raises(InvalidArgument, match="contains no text"):
            sources(connector, variant)
        return
    found, texts = sources(connector, variant)
    assert found == wanted
    for name, words_of in TEXTS.items():
        if name not in wanted:
            assert not any(words_of.strip()[:12] in one for one in texts)


def test_a_session_that_is_refused_reads_nothing_and_is_on_record(engine: Engine) -> None:
    before = engine.retrieve("logs", Session(role="public", purpose="read"), 1).receipt.seq
    embedder = Everywhere()
    connector = StoreCorpusConnector(engine, Session(role="public", purpose="work"))
    with pytest.raises(Refused):
        Regulatory(connector, embedder, Said({})).load()
    assert embedder.seen == []
    assert engine.retrieve("logs", Session(role="public", purpose="read"), 1).receipt.seq == before + 2


def normalised(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("size", [64, 1_000])
def test_passages_joined_again_are_cut_as_the_document_itself(engine: Engine, size: int) -> None:
    """The store cut the act in passages; the metric's windows run across those cuts, and stand where they say."""
    connector = StoreCorpusConnector(engine, Session(role="public", purpose="read"))
    (stretch,) = [one for one in connector.load_documents() if one.source == "act"]
    assert len([one for one in connector._readable[1] if one.document_id == "act"]) > 3
    config = ChunkerConfig(size, size // 10)
    whole = LONG.strip()
    windows = paper_chunks(stretch.text, "act", config, offset=stretch.start)
    assert windows == paper_chunks(whole, "act", config, offset=LONG.index(whole))
    for one in windows:
        assert one.text == normalised(LONG[one.start : one.end])
    characters = [(stretch.text[at], LONG[stretch.start + at]) for at in range(len(stretch.text))]
    assert all(ours == its or (ours.isspace() and its.isspace()) for ours, its in characters)


class Passages:
    """An engine that lets these passages be read."""

    def __init__(self, passages: Sequence[Any]) -> None:
        self._passages = passages

    evaluations = property(lambda self: self)

    def readable(self, session: Session) -> tuple[Decision, list[Any]]:
        return infer(session, PROFILE.table, now=NOW), list(self._passages)


def test_passages_with_something_hidden_between_are_not_joined(engine: Engine) -> None:
    """However short it is: the numbers of passages tell, not only the room between them."""
    readable = engine.evaluations.readable(Session(role="public", purpose="read"))[1]
    act = [one for one in readable if one.document_id == "act"]
    session = Session(role="public", purpose="read")
    assert len(StoreCorpusConnector(Passages(act), session).load_documents()) == 1  # type: ignore[arg-type]
    without = StoreCorpusConnector(Passages(act[:1] + act[2:]), session).load_documents()  # type: ignore[arg-type]
    assert [one.start for one in without] == [act[0].start, act[2].start]
    hidden = "5 words"
    close = replace(act[2], start=act[0].end + len(hidden), end=act[0].end + len(hidden) + len(act[2].text))
    apart = StoreCorpusConnector(Passages([act[0], close]), session).load_documents()  # type: ignore[arg-type]
    assert [one.text for one in apart] == [act[0].text, act[2].text]


@pytest.mark.parametrize(
    "other",
    [
        {"word": VERSION_WORD | int(BITS["DRAFT"])},
        {"public_at": 5},
        {"expires_at": MINUTE + 5},
        {"subjects": (3,)},
        {"document_id": "another"},
        {"form": "10-K", "document": "EX-99"},
        {"start": 0},
    ],
)
def test_passages_of_two_labels_or_documents_are_not_joined(engine: Engine, other: dict[str, Any]) -> None:
    session = Session(role="public", purpose="read")
    act = [one for one in engine.evaluations.readable(session)[1] if one.document_id == "act"][:2]
    two = [act[0], replace(act[1], **other)]
    found = StoreCorpusConnector(Passages(two), session).load_documents()  # type: ignore[arg-type]
    assert [one.text for one in found] == [one.text for one in two]
