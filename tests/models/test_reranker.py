"""A reranker orders admissible passages and does nothing else; it is on record, and its scores are checked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag import Engine, Outcome, Session
from carag.audit import Begin, Models, Verdict, verify_receipt
from carag.errors import InvalidArgument, ModelUnavailable
from carag.retrieval import ConfidenceGate, JinaReranker, own_reranker, reranker_by_name
from carag.retrieval.reranker import pool_size
from tests.engine.documents import Counting, document
from tests.models.conftest import KEY_ENV, Server, as_json

ROOT = Path(__file__).parents[2]
PUBLIC = Session(role="public", purpose="public_qa")
QUESTION = "When do branches report?"
SHUT = [document(f"shut{at}", bits="PD_SPECIAL", text=f"Hidden {at}.") for at in range(30)]


class Longest:
    """Counts what it is shown."""

    name = "longest"

    def __init__(self, **attributes: Any) -> None:
        self.shown: list[list[str]] = []
        self.__dict__.update(attributes)

    def rerank(self, question: str, texts: list[str]) -> list[int]:
        assert (QUESTION, list) == (question, type(texts))
        self.shown.append(texts)
        return [len(text) for text in texts]


def store(path: Path, count: int, reranker: Any) -> Engine:
    engine = Engine.open(path / "store", embedder=Counting(), reranker=reranker, gate=ConfidenceGate(-1))
    engine.add([*(document(at, text="Branches report" + "." * (at * 7 % 41)) for at in range(count)), *SHUT])
    return engine


@pytest.mark.parametrize(("count", "k"), [(0, 3), (1, 3), (5, 3), (25, 3), (25, 1), (25, 25), (41, 8)])
def test_the_best_of_a_larger_pool_stay_and_all_are_admissible(tmp_path: Path, count: int, k: int) -> None:
    """The count is exact with and without a reranker, and hidden passages are never shown to it."""
    longest = Longest()
    with store(tmp_path, count, longest) as engine:
        found = engine.retrieve(QUESTION, PUBLIC, k).passages
        engine.requests.retriever.reranker = None
        pool = [one.text for one in engine.retrieve(QUESTION, PUBLIC, pool_size(k)).passages]
    assert min(k, count) == len(found)
    assert ([pool] if count else []) == longest.shown
    assert sorted(pool, key=len, reverse=True)[:k] == [one.text for one in found]


@given(st.lists(st.integers(0, 2), min_size=9, max_size=9), st.integers(1, 12))
def test_equal_scores_keep_the_order_of_similarity(scores: list[int], k: int) -> None:
    from dataclasses import dataclass

    from carag.retrieval import Evidence, Retriever, Withheld

    @dataclass(frozen=True)
    class One:
        at: int
        text: str = "x"
        chunk_id: str = ""
        head: None = None

    class Found(Retriever):
        def __init__(self) -> None:
            self.reranker = own_reranker(SimpleNamespace(name="a", rerank=lambda *_: scores))

        def _found(self, *_: object) -> Any:
            return Evidence(tuple(One(at) for at in range(9)), Withheld(()), "exact", 9)  # type: ignore[misc]

    kept: Any = Found().retrieve("q", None, k).passages  # type: ignore[arg-type]
    assert sorted(range(9), key=lambda at: -scores[at])[:k] == [one.at for one in kept]


def test_a_record_names_it_and_both_verifiers_take_that(tmp_path: Path) -> None:
    with store(tmp_path, 3, Longest(fingerprint="longest-1")) as engine:
        answer = engine.ask(QUESTION, PUBLIC)
        found = engine.retrieve(QUESTION, PUBLIC)
        elsewhere = engine.record_answer(found, "At noon. [1]", model="house")
        vkey = engine.vkey
    for receipt in (answer.receipt, found.receipt, elsewhere):
        assert "longest longest-1" == json.loads(receipt.record)["models"]["rerank"]
        assert Verdict.VERIFIED is verify_receipt(receipt.to_bytes(), vkey).verdict
        (tmp_path / "receipt.json").write_bytes(receipt.to_bytes())
        alone = subprocess.run(
            [
                sys.executable,
                ROOT / "scripts/verify_receipt.py",
                "--key",
                vkey,
                tmp_path / "receipt.json",
            ],
            capture_output=True,
            text=True,
        )
        assert 0 == alone.returncode, alone.stdout + alone.stderr
    assert answer.outcome is Outcome.ANSWER


def test_a_record_without_one_is_as_it_was() -> None:
    assert {"embed": "a", "generate": None, "prompt": None} == Models("a").to_json()
    assert Models("a") == Models.from_json(Models("a").to_json())
    assert Models("a", rerank="b") == Models.from_json(Models("a", rerank="b").to_json())


def test_the_gate_asks_for_the_most_similar_passage_wherever_it_stands(tmp_path: Path) -> None:
    with store(tmp_path, 9, Longest()) as engine:
        answer = engine.ask(QUESTION, PUBLIC)
        gate, passages = engine.requests.guarded.gate, answer.passages
    similarities = [one.similarity for one in passages]
    assert sorted(similarities, reverse=True) != similarities, "reordered"
    assert type(gate)(max(similarities)).passes(passages)
    assert not type(gate)(max(similarities) + 1e-6).passes(passages)


@pytest.mark.parametrize(
    "scores",
    [
        [1.0],
        [1.0, 2.0, float("nan")],
        [1.0, 2.0, float("inf")],
        None,
        "abc",
        [[1], [2], [3]],
        ["a", "b", "c"],
    ],
    ids=repr,
)
def test_wrong_scores_are_an_error_on_record_and_no_other_order(tmp_path: Path, scores: Any) -> None:
    wrong = SimpleNamespace(name="wrong", rerank=lambda *_: scores)
    with store(tmp_path, 3, wrong) as engine:
        with pytest.raises(InvalidArgument, match="the reranker 'wrong' gave"):
            engine.retrieve(QUESTION, PUBLIC)
        last = engine._log.record(engine._log.size - 1).event
    assert (Outcome.ERROR, "INVALID_ARGUMENT") == (last.outcome, last.why)  # type: ignore[union-attr]


def test_one_that_raises_is_unavailable(tmp_path: Path) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a secret")

    engine = store(tmp_path, 3, SimpleNamespace(name="wrong", rerank=fails))
    with engine, pytest.raises(ModelUnavailable, match="RuntimeError") as raised:
        engine.ask(QUESTION, PUBLIC)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "given_",
    [7, "jina:m", Longest, SimpleNamespace(name="a"), SimpleNamespace(name="a\n", rerank=len)],
    ids=repr,
)
def test_what_is_no_reranker_is_refused(tmp_path: Path, given_: Any) -> None:
    with pytest.raises(InvalidArgument, match="reranker"):
        Engine.open(tmp_path / "store", embedder=Counting(), reranker=given_)


# --- behind a server ---


def jina(server: Server) -> JinaReranker:
    return JinaReranker("m", url=server.url, key_env=KEY_ENV, retries=0, timeout=5)


def test_a_remote_one_is_called_after_its_begin_record(server: Server, tmp_path: Path) -> None:
    last: list[Any] = []
    with store(tmp_path, 5, jina(server)) as engine:
        server.on_request = lambda _: last.append(engine._log.record(engine._log.size - 1).event)
        found = engine.retrieve(QUESTION, PUBLIC, 3)
        record = json.loads(found.receipt.record)
    lengths = [len(one.text) for one in found.passages]
    assert 3 == len(lengths)
    assert sorted(lengths, reverse=True) == lengths
    assert [Begin] == [type(one) for one in last]
    assert record["seq"] - 1 == record["begun"]
    assert "Hidden" not in json.dumps(server.requests)


def test_nothing_is_sent_where_nothing_is_admissible(server: Server, tmp_path: Path) -> None:
    with store(tmp_path, 0, jina(server)) as engine:
        assert () == engine.retrieve(QUESTION, PUBLIC).passages
        assert not isinstance(engine._log.record(engine._log.size - 2).event, Begin)
    assert [] == server.requests


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ([{"index": 0, "relevance_score": 1}], "not one score for each of 2"),
        ([{"index": 0, "relevance_score": 1}] * 2, "not one score"),
        ([{"index": at, "relevance_score": 1} for at in (0, 2)], "not one score"),
        ([{"index": at, "relevance_score": float("nan")} for at in (0, 1)], "not finite"),
        ([{"index": at, "relevance_score": "1"} for at in (0, 1)], "2 numbers"),
        ([{"index": at} for at in (0, 1)], "KeyError"),
        (None, "TypeError"),
    ],
)
def test_a_wrong_answer_gives_no_order(server: Server, results: Any, why: str) -> None:
    server.gives(as_json({"results": results}))
    with pytest.raises(ModelUnavailable, match=why):
        jina(server).rerank("q", ["a", "b"])


def test_it_has_a_name() -> None:
    assert "jina:m" == reranker_by_name("jina:m", {"url": "http://[::1]"}).name
    for name, arguments, why in (
        ("jina:m", None, "needs url"),
        ("jina", None, "no reranker"),
        ("x:y", {}, "jina:MODEL"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            reranker_by_name(name, arguments)
