"""Our own reader judges each text by itself, and runs the embedder's graph with the weights that it adds."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper

from carag.errors import InvalidArgument, ModelUnavailable
from carag.generation.reader import minilm
from carag.generation.reader.graph import MATRICES, TYPES, initializers, session_of
from carag.generation.reader.minilm import MiniLmReader
from carag.generation.reader.pairs import FIRST, MARKS, TOKENS, Pairs, marks
from carag.retrieval.minilm import MiniLm
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = "For how many years must banks keep the records of a customer?"
HOLDS = "Banks shall keep the records of a customer for five years after the account is closed."
NOT = "Banks shall verify the identity of a customer before an account is opened."
KNOWN = {
    (QUESTION, HOLDS): 0.891111,
    (QUESTION, NOT): 0.054716,
    ("What is the limit of a transfer?", "The limit of a transfer is Rs. 2 lakh."): 0.899978,
    ("What is the limit of a transfer?", f"{NOT} " * 40 + "A transfer is limited to Rs. 2 lakh."): 0.324989,
}
"""Scores of the reader as it was measured."""


@pytest.fixture(scope="module")
def reader() -> MiniLmReader:
    return MiniLmReader()


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    return Pairs()


# --- laws ---


@pytest.mark.parametrize("pair", KNOWN, ids=["answers", "does not", "short", "long"])
def test_scores_are_those_that_were_measured_on_every_machine(
    reader: MiniLmReader, pair: tuple[str, str]
) -> None:
    """A mean over all windows, another order of marks or a head of other weights is farther away than this."""
    question, text = pair
    assert reader.holds(question, [text]) == [pytest.approx(KNOWN[pair], abs=1e-4)]


def test_each_text_is_judged_by_itself(reader: MiniLmReader) -> None:
    texts = [HOLDS, NOT, f"{NOT} " * 40 + HOLDS]
    alone = [reader.holds(QUESTION, [text])[0] for text in texts]
    assert reader.holds(QUESTION, texts) == alone == reader.holds(QUESTION, texts[::-1])[::-1]
    assert alone[0] > 0.5 > alone[1]
    assert alone[2] > 0.5  # the window that has the question's words is read


@given(st.integers(1, 900))
def test_windows_cover_a_text_and_repeat_a_quarter_of_the_one_before(pairs: Pairs, words: int) -> None:
    found = pairs.windows("Who?", " ".join(f"word {at}" for at in range(words)))
    bodies = [one.ids[one.split : -1] for one in found]
    assert all(len(one.ids) == len(one.types) <= TOKENS for one in found)
    overlap = (TOKENS - 3 - (found[0].split - 2)) // 4
    whole = bodies[0] + [token for body in bodies[1:] for token in body[overlap:]]
    encode = pairs._tokenizer.encode
    assert whole == encode(" ".join(f"word {at}" for at in range(words)), add_special_tokens=False).ids


WORDS = st.sampled_from(["bank", "the", "5", "##7", "five", ",", "loan"])


@given(st.lists(WORDS, max_size=9), st.lists(st.sampled_from(["bank", "five", "5", "rate"]), max_size=4))
def test_a_mark_says_whether_a_token_is_a_number_and_stands_in_the_other_text(
    tokens: list[str], others: list[str]
) -> None:
    for token, mark in zip(tokens, marks(tokens, others), strict=True):
        if token in ("the", ","):
            assert mark == 0
        elif token in ("5", "##7", "five"):
            assert mark == (4 if token in others else 3)
        else:
            assert mark == (1 if token in others else 2)


@given(st.lists(st.sampled_from(["bank", "the", "5", "loan", "rate"]), min_size=1, max_size=9))
def test_shared_words_are_counted_once_and_common_ones_not(pairs: Pairs, words: list[str]) -> None:
    (found,) = pairs.windows("the bank of 5", " ".join(words))
    assert len({"bank", "5"} & set(words)) == found.shared


# --- the graph ---


def test_tensors_are_read_as_onnx_reads_them() -> None:
    content = MiniLm.files[0].read()
    found = dict(initializers(content))
    expected = {
        one.name: numpy_helper.to_array(one)
        for one in onnx.load_from_string(content).graph.initializer
        if one.data_type in (1, 3) and one.raw_data
    }
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in found)
    assert all(f"{name}_q" in found and f"{name}_scale" in found for name in MATRICES)


def test_the_matrices_are_those_of_the_layers_in_order() -> None:
    graph = onnx.load_from_string(MiniLm.files[0].read()).graph
    made = {one.output[0]: one for one in graph.node if one.op_type == "Mul"}
    multiplied = [one.input[1] for one in graph.node if one.op_type == "MatMul" and one.input[1] in made]
    assert tuple(one for one in multiplied if f"{one}_q" in {w.name for w in graph.initializer}) == MATRICES


def test_onnxruntime_takes_a_larger_table_of_types_and_the_matrices_that_were_written_into_the_file() -> None:
    """As of onnxruntime 1.32, ``add_initializer`` may change a shape, but not what constants are folded from."""
    learnt = {TYPES: np.random.default_rng(1).standard_normal((2 * MARKS, 384)).astype(np.float32)}
    learnt |= {name: np.zeros(0, np.float32) for name in MATRICES}
    ids = np.array([[101, 2129, 102]])

    def run(update: float, row: int) -> bytes:
        given = learnt | {name: np.float32(update) for name in MATRICES}
        session, table = session_of(given)
        fed = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.full_like(ids, row),
        }
        found: bytes = session.run(["last_hidden_state"], fed)[0].tobytes()
        del table
        return found

    assert len({run(0.0, row) for row in range(2 * MARKS)}) == 2 * MARKS
    assert run(0.0, 0) != run(0.01, 0)


# --- traps ---


def test_the_weights_are_those_that_were_measured() -> None:
    assert hashlib.sha256(minilm._WEIGHTS.read_bytes()).hexdigest() == minilm._SHA256


def test_altered_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    altered = bytearray(minilm._WEIGHTS.read_bytes())
    altered[-1] ^= 1
    (tmp_path / "weights.npz").write_bytes(altered)
    monkeypatch.setattr(minilm, "_WEIGHTS", tmp_path / "weights.npz")
    with pytest.raises(ModelUnavailable, match="altered"):
        MiniLmReader().holds(QUESTION, [HOLDS])


@pytest.mark.parametrize("text", ["", " \n", "\ud800"])
def test_a_text_without_words_is_refused(reader: MiniLmReader, text: str) -> None:
    with pytest.raises(InvalidArgument, match="text 0"):
        reader.holds(QUESTION, [text])


def test_no_texts_have_no_scores(reader: MiniLmReader) -> None:
    assert reader.holds(QUESTION, []) == []


def test_a_long_question_is_read_up_to_its_limit(reader: MiniLmReader, pairs: Pairs) -> None:
    long = "How long are records kept " * examples(200)
    assert pairs.windows(long, HOLDS)[0].split == FIRST + 2
    assert 0 <= reader.holds(long, [HOLDS])[0] <= 1
