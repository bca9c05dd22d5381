"""Any object that embeds and any callable that answers will do, and each is checked at every call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag import Document, Engine, Outcome, Session
from carag.audit import Access, Begin, ModelChange, Record, Verdict, verify_receipt
from carag.errors import AuditUnavailable, InvalidArgument, ModelUnavailable
from carag.generation import own_generator
from carag.retrieval import ConfidenceGate, Passage, Withheld, embedder_by_name, own_embedder
from tests.engine.documents import DIM, Counting

if TYPE_CHECKING:
    from pathlib import Path

PUBLIC = Session(role="public", purpose="public_qa")
COMPLIANCE = Session(role="compliance", purpose="surveil")
QUESTION = "When do branches report?"
DOCUMENTS = [
    Document(id="open", text="Branches report by the fifth of May.", bits=()),
    Document(id="shut", text="Branches of Mr Li report on his health.", bits="PD_SPECIAL"),
]

OPEN = ConfidenceGate(-1)
"""The directions of `Counting` mean nothing, so its passages are near no question."""


def embedding(**changes: Any) -> Any:
    """An embedder, with other attributes or without some."""
    plain = Counting()
    attributes = {name: getattr(plain, name) for name in ("name", "dim", "embed_documents", "embed_query")}
    return SimpleNamespace(
        **{name: value for name, value in (attributes | changes).items() if value is not None}
    )


def asked(
    tmp_path: Path,
    generator: Any,
    *,
    embedder: Any = None,
    gate: ConfidenceGate | None = OPEN,
    **settings: Any,
) -> Any:
    """The answer, and the events on record, of one question to a store with two documents."""
    settings |= {"embedder": embedder or Counting(), "generator": generator, "gate": gate}
    with Engine.open(tmp_path / "store", **settings) as engine:
        engine.add(DOCUMENTS)
        try:
            answer = engine.ask(QUESTION, PUBLIC)
        except (InvalidArgument, ModelUnavailable) as error:
            answer = error
        events = [engine._log.record(seq).event for seq in range(engine._log.size)]
        if not isinstance(answer, Exception):
            assert verify_receipt(answer.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        return answer, events


# --- embedders ---


@given(
    st.lists(
        st.lists(st.floats(-1e30, 1e30).filter(lambda x: abs(x) > 1e-30), min_size=3, max_size=3), max_size=5
    ),
    st.sampled_from([np.float64, np.float32]),
)
def test_vectors_become_unit_rows(rows: list[list[float]], kind: type) -> None:
    own = own_embedder(embedding(dim=3, embed_documents=lambda _: np.array(rows, kind).reshape(-1, 3)))
    vectors = own.embed_documents(["x"] * len(rows))
    assert ((len(rows), 3), np.float32) == (vectors.shape, vectors.dtype)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=2e-5)  # what counts as a unit
    for row, vector in zip(rows, vectors, strict=True):
        assert np.all(np.sign(row)[np.abs(vector) > 0] == np.sign(vector)[np.abs(vector) > 0])


def test_unit_rows_stay_as_they_are_bit_for_bit() -> None:
    """So that an adapter changes no vector of an embedder that keeps its promise."""
    inner = embedder_by_name("wordllama")
    texts = [one.text for one in DOCUMENTS]
    own = own_embedder(inner)
    assert np.array_equal(inner.embed_documents(texts), own.embed_documents(texts))
    assert np.array_equal(inner.embed_query(QUESTION), own.embed_query(QUESTION))
    assert (inner.name, inner.fingerprint) == (own.name, own.fingerprint)


def test_the_fingerprint_is_made_of_name_dim_and_its_own() -> None:
    prints = {
        own_embedder(embedding(**changes)).fingerprint
        for changes in ({}, {"name": "b"}, {"dim": 2}, {"fingerprint": "1"}, {"fingerprint": "2"})
    }
    assert 5 == len(prints)
    assert own_embedder(embedding()).fingerprint in prints
    assert "1" == own_embedder(embedding(fingerprint="1", remote=False)).fingerprint


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"name": None}, "without name"),
        ({"dim": None}, "without dim"),
        ({"embed_documents": None, "embed_query": None}, "without embed_documents, embed_query"),
        ({"name": 7}, "name"),
        ({"name": "a\n"}, "name"),
        ({"dim": 0}, "dim 0"),
        ({"dim": "8"}, "dim '8'"),
        ({"dim": 8.0}, "dim 8.0"),
        ({"name": "minilm"}, "one of CARAG's own"),
        ({"fingerprint": 7}, "fingerprint"),
    ],
)
def test_what_is_no_embedder_is_refused_when_the_store_opens(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidArgument, match=why):
        Engine.open(tmp_path / "store", embedder=embedding(**changes))


@pytest.mark.parametrize("given_", [7, object(), ["minilm"], Counting], ids=["7", "object", "list", "class"])
def test_what_is_nothing_of_the_kind_is_no_attribute_error(tmp_path: Path, given_: Any) -> None:
    with pytest.raises(InvalidArgument, match="the embedder is"):
        Engine.open(tmp_path / "store", embedder=given_)
    with pytest.raises(InvalidArgument, match="the generator is"):
        Engine.open(tmp_path / "other", embedder=Counting(), generator=given_)


@pytest.mark.parametrize(
    ("vectors", "why"),
    [
        (np.ones((2, DIM + 1)), rf"\(2, {DIM + 1}\).*want numbers of shape \(2, {DIM}\)"),
        (np.ones((1, DIM)), rf"shape \(1, {DIM}\)"),
        (np.ones(DIM), "shape"),
        ([[1.0] * DIM, [1.0]], "not an array"),
        (np.full((2, DIM), np.nan), "not finite"),
        (np.full((2, DIM), np.inf), "not finite"),
        (np.zeros((2, DIM)), r"rows \[0, 1\]"),
        (np.full((2, DIM), "1"), "numbers"),
        (np.ones((2, DIM), bool), "numbers"),
        (None, "numbers"),
    ],
    ids=["wide", "few", "flat", "ragged", "nan", "infinite", "zero", "text", "boolean", "nothing"],
)
def test_a_wrong_output_is_named_and_nothing_is_stored(tmp_path: Path, vectors: Any, why: str) -> None:
    with Engine.open(tmp_path / "store", embedder=embedding(embed_documents=lambda _: vectors)) as engine:
        with pytest.raises(InvalidArgument, match=why):
            engine.add(DOCUMENTS)
        assert 0 == engine._collection.store.epoch


def test_a_wrong_vector_of_a_question_is_on_record(tmp_path: Path) -> None:
    wrong = embedding(embed_query=lambda _: np.ones((1, DIM)))
    error, events = asked(tmp_path, "extractive", embedder=wrong)
    assert isinstance(error, InvalidArgument)
    assert rf"shape ({DIM},)" in str(error)
    assert (Outcome.ERROR, "INVALID_ARGUMENT") == (events[-1].outcome, events[-1].why)


def test_an_embedder_that_fails_is_a_model_that_is_unavailable(tmp_path: Path) -> None:
    def fails(_: object) -> None:
        raise RuntimeError("a secret in a message")

    error, events = asked(tmp_path, "extractive", embedder=embedding(embed_query=fails))
    assert isinstance(error, ModelUnavailable)
    assert "secret" not in str(error)
    assert (Outcome.ERROR, "MODEL_UNAVAILABLE") == (events[-1].outcome, events[-1].why)


def test_a_remote_embedder_has_its_begin_record(tmp_path: Path) -> None:
    _, events = asked(tmp_path, "extractive", embedder=embedding(remote=True))
    assert isinstance(events[-2], Begin)
    assert len(events) - 2 == events[-1].begun


def test_a_store_is_opened_again_with_the_same_embedder_only(tmp_path: Path) -> None:
    Engine.open(tmp_path / "store", embedder=Counting()).close()
    with pytest.raises(
        InvalidArgument, match="'counting', which cannot be made from its name alone; give that object"
    ):
        Engine.open(tmp_path / "store")
    for other in (embedding(name="b"), embedding(dim=DIM + 1), "wordllama"):
        with pytest.raises(InvalidArgument, match="cannot be compared"):
            Engine.open(tmp_path / "store", embedder=other)


# --- the gate ---


def test_without_a_calibration_the_gate_stands_at_its_baseline_and_the_decline_says_so(
    tmp_path: Path,
) -> None:
    """The directions of `Counting` mean nothing, so nothing is near: no generator is called."""
    answer, events = asked(tmp_path, "extractive", gate=None)
    assert (Outcome.DECLINE, "BELOW_GATE", False) == (answer.outcome, answer.why, answer.model_called)
    told = answer.to_json()
    assert (False, "the gate stands at its baseline of 0.65: calibrate it with carag gate calibrate") == (
        told["gate_calibrated"],
        told["gate"],
    )
    assert [650_000] == [event.gate for event in events if isinstance(event, ModelChange)]


def test_a_gate_of_ones_own_is_a_gate(tmp_path: Path) -> None:
    """A threshold that is passed was chosen deliberately."""
    answer, _ = asked(tmp_path, "extractive", gate=ConfidenceGate(0.9999))
    assert ("BELOW_GATE", True) == (answer.why, answer.gate_calibrated)


def test_carags_own_embedders_keep_their_gate(tmp_path: Path) -> None:
    answer, _ = asked(tmp_path, "extractive", embedder="wordllama", gate=None)
    assert (True, "") == (answer.gate_calibrated, answer.gate)


# --- generators ---


def cites(question: str, passages: tuple[Passage, ...], withheld: Withheld) -> str:
    return f"{passages[0].text} [1]"


def test_a_function_answers(tmp_path: Path) -> None:
    answer, events = asked(tmp_path, cites)
    assert (Outcome.ANSWER, f"{DOCUMENTS[0].text} [1]") == (answer.outcome, answer.text)
    assert ["open:00000"] == [citation.chunk_id for citation in answer.citations]
    assert "cites" == events[-1].models.generate
    assert [True] == [hit.cited for hit in Record.parse(answer.receipt.record).hits]


def test_it_sees_admissible_passages_and_the_kinds_of_what_is_withheld_alone(tmp_path: Path) -> None:
    """Also for a role that may know which passages are hidden: a model may not."""
    shown: list[tuple[Any, ...]] = []

    def spy(*arguments: Any) -> str:
        shown.append(arguments)
        return "By May [1]."

    with Engine.open(tmp_path / "store", embedder=Counting(), generator=spy, gate=OPEN) as engine:
        engine.add(DOCUMENTS)
        answer = engine.ask(QUESTION, COMPLIANCE)
    (question, passages, withheld), *_ = shown
    assert (QUESTION, ["open"]) == (question, [passage.accession_number for passage in passages])
    assert type(passages) is tuple
    assert answer.withheld.hidden  # type: ignore[union-attr]
    assert (answer.withheld.kinds, ()) == (withheld.kinds, withheld.hidden)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("By the fifth of May.", "MODEL_DECLINED"),
        ("", "MODEL_DECLINED"),
        ("I do not know.", "MODEL_DECLINED"),
        ("By May [2].", "BAD_CITATION"),
        ("By May [1, 9].", "BAD_CITATION"),
        ("By May [0].", "BAD_CITATION"),
    ],
)
def test_a_text_that_cites_nothing_declines_and_one_that_cites_what_is_not_there_is_not_shown(
    tmp_path: Path, text: str, why: str
) -> None:
    answer, events = asked(tmp_path, lambda *_: text)
    assert (Outcome.DECLINE, why) == (answer.outcome, answer.why)
    assert not text or text not in answer.text
    assert why == events[-1].why


@pytest.mark.parametrize(
    "value", [None, 7, b"May [1]", ("May [1]",), "May [1]\0", "May [1] \ud800"], ids=repr
)
def test_what_is_no_text_is_an_error_on_record(tmp_path: Path, value: Any) -> None:
    error, events = asked(tmp_path, lambda *_: value)
    assert isinstance(error, InvalidArgument)
    assert (Outcome.ERROR, "INVALID_ARGUMENT") == (events[-1].outcome, events[-1].why)


@pytest.mark.parametrize(
    "raised", [RuntimeError("a secret"), KeyError("x"), AuditUnavailable("not its to say")]
)
def test_an_exception_is_a_model_that_is_unavailable_on_record(tmp_path: Path, raised: Exception) -> None:
    def fails(*_: object) -> str:
        raise raised

    error, events = asked(tmp_path, fails)
    assert isinstance(error, ModelUnavailable)
    assert "secret" not in str(error)
    assert (Outcome.ERROR, "MODEL_UNAVAILABLE") == (events[-1].outcome, events[-1].why)


class Answering:
    """An object that can be called."""

    remote = True

    def __call__(self, question: str, passages: tuple[Passage, ...], withheld: Withheld) -> str:
        return "By May [1]."


def test_one_that_says_it_is_remote_has_its_begin_record(tmp_path: Path) -> None:
    answer, events = asked(tmp_path, Answering())
    assert answer.outcome is Outcome.ANSWER
    assert isinstance(events[-2], Begin)
    assert isinstance(events[-1], Access)
    assert ("Answering", len(events) - 2) == (events[-1].models.generate, events[-1].begun)


def test_names_tell_callables_apart() -> None:
    def other(*_: object) -> str:
        return ""

    first, second = own_generator(cites), own_generator(other)
    assert ("cites", "other") == (first.name, second.name)
    assert first.fingerprint != second.fingerprint
    assert own_generator(cites).fingerprint == first.fingerprint
    assert not first.remote
