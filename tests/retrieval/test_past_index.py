"""The same question, day and knowledge find the same ids, whatever the store has learned since."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from carag import Engine, Outcome, Session
from carag.audit import Record
from carag.engine.collection import Collection
from carag.errors import StoreLocked
from carag.index import Index
from carag.policy import NEVER, QUARANTINE, Decision, Mask, Policy, PolicyTable, infer
from carag.retrieval import FUSED, PastIndex, Retriever, add_labels, embedder_by_name, ranker_by_name
from carag.store.store import CorpusStore
from tests.engine.filings import ingest_filings
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLE = PolicyTable.shipped()
HEADING = ("{company}", "{form}")
CELLS = [cell for cell in TABLE.cells if "known_at" in cell.past]
QUESTIONS = [
    "What royalty rate does Lumenfield pay on net sales?",
    "What does the board diversity matrix show about directors?",
    "Why can the annual report no longer be relied upon?",
    "Which securities were delisted?",
]
ORIGINAL, AMENDED = "9990000102-24-000005", "9990000102-24-000021"


class Clock:
    """A minute later at every look."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def portions(corpus: Path, directory: Path, count: int, seed: int) -> Iterator[Path]:
    """Deal the corpus out at random."""
    documents = sorted(corpus.glob("*.txt"))
    random.Random(seed).shuffle(documents)  # noqa: S311
    for n in range(count):
        portion = directory / f"portion-{n}"
        portion.mkdir()
        for file in documents[n::count]:
            shutil.copy(file, portion)
        yield portion


def found(engine: Engine, question: str, session: Session) -> tuple[Any, ...]:
    """All of an answer that must come again, the state of the index among it."""
    result = engine.retrieve(question, session, 12)
    event = Record.parse(result.receipt.record).event
    state = event.index  # type: ignore[union-attr]
    assert state is not None
    withheld = result.withheld
    return (
        [(hit.chunk_id, hit.similarity, hit.word, hit.text, hit.form, hit.filed) for hit in result.passages],
        [(one.chunk_id, [why.code for why in one.reasons]) for one in withheld.hidden] if withheld else None,
        (state.admissible, state.snapshot),
    )


@pytest.mark.parametrize("seed", range(examples(3, least=1)))
def test_what_was_asked_before_replays_after(tmp_path: Path, small_corpus: Path, seed: int) -> None:
    """Random sessions, days and instants of knowledge: before the rest comes in, after, and opened again."""
    rng = random.Random(seed)  # noqa: S311
    clock = Clock()
    saved: list[tuple[str, dict[str, Any], datetime, tuple[Any, ...]]] = []
    with Engine.open(tmp_path / "store", embedder="wordllama", clock=clock) as engine:
        for portion in portions(small_corpus, tmp_path, 4, seed):
            engine.ingest(portion)
            for _ in range(examples(15)):
                cell = rng.choice(CELLS)
                asked = {
                    "role": cell.role,
                    "purpose": cell.purpose,
                    "as_of": date(2022, 1, 1) + timedelta(days=rng.randrange(1500)),
                }
                question, instant = rng.choice(QUESTIONS), clock()
                saved.append((question, asked, instant, found(engine, question, Session(**asked))))
        again = [found(engine, q, Session(**asked, known_at=at)) for q, asked, at, _ in saved]
        assert [answer for *_, answer in saved] == again
        today = [found(engine, q, Session(**asked)) for q, asked, *_ in saved]
        assert sum(one != other for one, other in zip(again, today, strict=True)) > len(saved) // 3
        log = engine._log.size
    with Engine.open(tmp_path / "store", clock=clock) as engine:
        assert log == engine._log.size  # nothing was left to bring up
        rng.shuffle(saved)
        for question, asked, instant, answer in saved:
            assert answer == found(engine, question, Session(**asked, known_at=instant))


def test_a_record_says_when_to_ask_again(tmp_path: Path, small_corpus: Path) -> None:
    """The instant in a record, and nothing else, brings its passages back."""
    clock = Clock()
    session: dict[str, Any] = {"role": "auditor", "purpose": "assure", "as_of": date(2026, 1, 1)}
    first, *rest = portions(small_corpus, tmp_path, 2, 5)
    with Engine.open(tmp_path / "store", embedder="wordllama", clock=clock) as engine:
        engine.ingest(first)
        receipt = engine.retrieve(QUESTIONS[0], Session(**session), 12).receipt
        known_at = Record.parse(receipt.record).event.index.known_at  # type: ignore[union-attr]
        before = found(engine, QUESTIONS[0], Session(**session))
        engine.ingest(rest[0])
        assert "certified" != _over(engine._collection).retrieve(*ask(None, clock)).plan
        assert before != found(engine, QUESTIONS[0], Session(**session))
        instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=known_at or 0)
        assert before == found(engine, QUESTIONS[0], Session(**session, known_at=instant))
        # However many rows: no other plan gives the same again when the index has other rows.
        assert "certified" == _over(engine._collection).retrieve(*ask(instant, clock)).plan


def _over(collection: Collection) -> Retriever:
    return Retriever(collection, ranker_by_name(FUSED, collection.catalogue), exact_limit=0)


def ask(known_at: datetime | None, clock: Clock) -> tuple[str, Decision, int]:
    session = Session(role="auditor", purpose="assure", known_at=known_at)
    return QUESTIONS[0], infer(session, TABLE, now=clock()), 12


def test_explain_answers_for_the_day_and_the_knowledge(tmp_path: Path, small_corpus: Path) -> None:
    """The cause is the amendment's accession, from its day on, and for those who know of it."""
    clock = Clock()
    session: dict[str, Any] = {"role": "compliance", "purpose": "surveil"}
    with Engine.open(tmp_path / "store", embedder="wordllama", clock=clock) as engine:
        engine.ingest(small_corpus / f"{ORIGINAL}.txt")
        before = clock()
        engine.ingest(small_corpus / f"{AMENDED}.txt")
        chunk = f"{ORIGINAL}:00000"
        told = {
            name: engine.explain(chunk, Session(**session, **more)).causes
            for name, more in (
                ("now", {}),
                ("on its day", {"as_of": date(2024, 3, 1)}),
                ("as known before", {"known_at": before}),
            )
        }
        assert f"SUPERSEDED: set by {AMENDED}" in told["now"]
        assert not any(AMENDED in cause for name in ("on its day", "as known before") for cause in told[name])
        unknown = engine.explain(f"{AMENDED}:00000", Session(**session, known_at=before))
        assert (Outcome.DECLINE, "NOTHING_TO_EXPLAIN") == (unknown.outcome, unknown.why)


def test_no_day_shows_a_passage_twice(tmp_path: Path, small_corpus: Path) -> None:
    """A passage has many labels, and one at a time."""
    with CorpusStore.open(tmp_path / "corpus.db") as store:
        collection = Collection(store, embedder_by_name("wordllama"), tmp_path / "index.carag")
        ingest_filings(collection, small_corpus)
        labels = store.labels.of(store.labels.open())
        passages = {
            key: one.chunk_id for key, one in zip(labels.keys, store.chunks(labels.keys), strict=True)
        }
        assert len(set(passages.values())) < len(passages)
        query = np.ones(collection.index.dim, np.float32)
        edges = {int(edge) for column in (labels.public_at, labels.expires_at) for edge in column}
        days = {edge + step for edge in edges for step in (-1, 0)}
        for as_of in sorted(day for day in days if 0 <= day < NEVER):
            keys = collection.index.search(query, 5000, Policy(Mask()), plan="exact", as_of=as_of).keys[0]
            shown = [passages[key] for key in keys.tolist() if key >= 0]
            assert len(shown) == len(set(shown))
        collection.close()


def test_the_past_is_reached_from_either_side(tmp_path: Path, small_corpus: Path) -> None:
    """Moved to and fro at random, the index of an instant has that instant's labels open and no other."""
    rng = random.Random(0)  # noqa: S311
    with CorpusStore.open(tmp_path / "corpus.db") as store:
        collection = Collection(store, embedder_by_name("wordllama"), tmp_path / "index.carag")
        for portion in portions(small_corpus, tmp_path, 2, 0):
            ingest_filings(collection, portion)
        past = PastIndex(store, collection.index.dim, HEADING)
        instants = [row[0] for row in store._connection.execute("SELECT known_at FROM changes")]  # type: ignore[union-attr]
        for at in [instants[0] - 1, *rng.choices(instants, k=examples(25)), 2**62]:
            with past.at(at) as (index, words):
                keys = store.labels.open(known_at=at)
                labels = store.labels.of(keys)
                others = np.setdiff1d(index.keys(), keys)
                assert (index.words(others) & QUARANTINE).all()
                assert labels.words.tolist() == index.words(keys).tolist()
                assert labels.public_at.tolist() == index.public_at(keys).tolist()
                assert labels.expires_at.tolist() == index.expires_at(keys).tolist()
                assert labels.entities.tolist() == index.entities(keys).tolist()
                assert keys.tolist() == words.labels().tolist()
                assert set(labels.passages.tolist()) <= set(words.chunks().tolist())
                everything = (index.count(Policy(Mask()), as_of=day) for day in (0, NEVER // 2, NEVER - 1))
                fresh = Index(index.dim)
                if len(keys):
                    add_labels(fresh, store, keys)
                assert list(everything) == [
                    fresh.count(Policy(Mask()), as_of=day) for day in (0, NEVER // 2, NEVER - 1)
                ]
        assert set(collection.index.keys().tolist()) <= set(index.keys().tolist())
        collection.close()


def test_a_move_that_fails_midway_is_made_good(
    tmp_path: Path, small_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was open before the failure answers for neither instant; the next question completes the move."""
    monkeypatch.setattr("carag.retrieval.past_index._BATCH", 16)
    with CorpusStore.open(tmp_path / "corpus.db") as store:
        collection = Collection(store, embedder_by_name("wordllama"), tmp_path / "index.carag")
        for portion in portions(small_corpus, tmp_path, 2, 0):
            ingest_filings(collection, portion)
        instants = [row[0] for row in store._connection.execute("SELECT known_at FROM changes")]  # type: ignore[union-attr]
        past = PastIndex(store, collection.index.dim, HEADING)
        first, last = instants[0], instants[-1]
        for name, start, end in (("rows", first, last), ("of", first, last)):
            with past.at(start):
                pass
            whole, calls = getattr(store.labels, name), iter(range(100))

            def failing(keys: Any, whole: Any = whole, calls: Any = calls) -> Any:
                if next(calls) == 2:
                    raise StoreLocked("held")
                return whole(keys)

            monkeypatch.setattr(store.labels, name, failing)
            with pytest.raises(StoreLocked), past.at(end):
                pass
            monkeypatch.setattr(store.labels, name, whole)
            for at in (start, end):
                with past.at(at) as (index, words):
                    is_open = index.words(index.keys()) & QUARANTINE == 0
                    labels = store.labels.of(store.labels.open(known_at=at))
                    wanted = labels.keys[labels.words & QUARANTINE == 0]
                    assert index.keys()[is_open].tolist() == wanted.tolist()
                    assert labels.keys.tolist() == words.labels().tolist()
        collection.close()
