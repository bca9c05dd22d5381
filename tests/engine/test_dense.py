"""By similarity alone an engine finds what it found before there was another order, and records it alike."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag import Engine, Outcome, Session
from carag.audit import Record
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.engine import Answer, Retrieval

GOLDEN = [
    json.loads(line)
    for line in Path(__file__).with_name("golden").joinpath("dense.jsonl").read_text().splitlines()
]
"""Retrieved from the corpus that ships, with WordLlama, by the last version before the fused ranker."""
NOW = datetime(2026, 1, 5, tzinfo=UTC)
BUY_SIDE = Session(role="buy_side", purpose="invest")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, small_corpus: Path) -> Path:
    """A store of the corpus, made by an engine that orders by similarity alone."""
    home = tmp_path_factory.mktemp("dense") / "store"
    with Engine.open(home, embedder="wordllama", clock=lambda: NOW, ranker="dense") as engine:
        engine.ingest(small_corpus)
    return home


@pytest.fixture
def dense(home: Path) -> Iterator[Engine]:
    with Engine.open(home, clock=lambda: NOW, ranker="dense") as engine:
        yield engine


@pytest.fixture
def fused(home: Path) -> Iterator[Engine]:
    with Engine.open(home, clock=lambda: NOW) as engine:
        yield engine


def session_of(said: dict[str, str]) -> Session:
    as_of = date.fromisoformat(said["as_of"]) if "as_of" in said else None
    return Session(role=said["role"], purpose=said["purpose"], as_of=as_of)


def recorded(result: Answer | Retrieval) -> dict[str, Any]:
    return json.loads(bytes(result.receipt.record))  # type: ignore[no-any-return]


def test_what_was_found_is_found(dense: Engine) -> None:
    """Passages in their order, similarities as a record rounds them, what is hidden, the plan and how many count."""
    for one in GOLDEN:
        found = dense.retrieve(one["question"], session_of(one["session"]), 8)
        assert [passage.chunk_id for passage in found.passages] == one["ids"]
        similarities = [passage.similarity for passage in found.passages]
        assert similarities == pytest.approx(one["similarities"], abs=2e-6)
        assert [hidden.chunk_id for hidden in found.withheld.hidden] == one["hidden"]
        index = recorded(found)["index"]
        assert (index["admissible"], index["plan"]) == (one["admissible"], one["plan"])


def test_a_record_has_the_fields_that_it_had(dense: Engine) -> None:
    """No name of a ranker and no word of a topic; so what was asked before can be told from what is asked now."""
    record = recorded(dense.retrieve(GOLDEN[0]["question"], BUY_SIDE, 8))
    assert record["models"] == {"embed": "wordllama", "generate": None, "prompt": None}
    assert set(record) == {
        *(
            "as_of",
            "commitments",
            "hits",
            "id",
            "index",
            "kind",
            "log",
            "models",
            "outcome",
            "policy",
            "purpose",
        ),
        *("role", "seq", "source", "t0", "t1", "tc", "v", "why"),
    }
    assert set(record["index"]) == {"admissible", "known", "plan", "snapshot"}


def test_by_similarity_alone_nobody_is_declined_for_whom_it_names(dense: Engine) -> None:
    """Neither for an unknown name nor for words that occur nowhere, because it reads neither."""
    answer = dense.ask("What royalty rate does Gringotts Holdings pay on net sales of LMF-204?", BUY_SIDE)
    assert answer.why not in ("NOTHING_ABOUT_IT", "TOO_FEW_WORDS")


def test_the_fused_ranker_is_recorded_with_all_that_its_order_depends_on(fused: Engine) -> None:
    """By name and fingerprint; the passages are others, and the store is the same."""
    record = recorded(found := fused.retrieve(GOLDEN[0]["question"], BUY_SIDE, 8))
    name, fingerprint = record["models"]["rank"].split(" ")
    assert name == "fused-1"
    assert len(fingerprint) == 43
    assert Record.parse(found.receipt.record).event.models.rank == record["models"]["rank"]  # type: ignore[union-attr]
    assert [one.chunk_id for one in found.passages] != GOLDEN[0]["ids"]
    assert record["index"]["admissible"] == GOLDEN[0]["admissible"]


def test_who_is_not_there_is_declined_and_recorded(fused: Engine) -> None:
    """Under the stable code, with no hit of somebody else in the answer."""
    answer = fused.ask("What royalty rate does Gringotts Holdings pay on net sales?", BUY_SIDE)
    assert (answer.outcome, answer.why, answer.citations) == (Outcome.DECLINE, "NOTHING_ABOUT_IT", ())
    assert "Gringotts Holdings" in answer.text
    assert recorded(answer)["why"] == "NOTHING_ABOUT_IT"


def test_a_ranker_that_there_is_not_is_refused(home: Path) -> None:
    """With those that there are; and the store is free for another engine."""
    with pytest.raises(InvalidArgument, match="there is no ranker 'best'; want one of fused-1, dense"):
        Engine.open(home, ranker="best")
    with Engine.open(home, ranker="dense"):
        pass
