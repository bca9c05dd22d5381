"""The stance head: laws of its rows, and weights that the script makes."""

from __future__ import annotations

import io
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.regulatory import (
    Batch,
    CorpusConnector,
    Regulatory,
    RegulatoryDocument,
    Settings,
    Variant,
)
from carag.evaluation.regulatory.stance_head import POOLED, StanceHead, claim_hash, pooled
from carag.labelling.sentences import sentences

if TYPE_CHECKING:
    from pathlib import Path

CLAIM = "Providers keep the logs of a system for six months."
SAYS = "The providers shall keep the logs of each system for 6 months at least."
DENIES = "The providers shall keep the logs of each system for two months."
BESIDE = "Dogs are kept on a lead in the park."
HEAD = StanceHead()
texts = st.lists(
    st.sampled_from([SAYS, DENIES, BESIDE, f"{BESIDE} {SAYS}", "§ 4", "12"]), min_size=1, max_size=5
)


@given(texts)
def test_rows_are_probabilities_that_depend_on_their_own_passage(passages: list[str]) -> None:
    rows = HEAD.judge(CLAIM, passages)
    assert rows.shape == (len(passages), 3)
    assert ((rows >= 0) & (rows <= 1)).all()
    assert np.allclose(rows.sum(axis=1), 1, atol=1e-12)
    assert all((HEAD.judge(CLAIM, [one])[0] == row).all() for one, row in zip(passages, rows, strict=True))


@given(texts)
def test_neither_the_order_of_passages_nor_a_passage_twice_changes_the_conclusion(
    passages: list[str],
) -> None:
    said = {
        HEAD.conclude(CLAIM, list(order)).probabilities
        for order in itertools.islice(itertools.permutations([*passages, passages[0]]), 24)
    }
    assert len(said) == 1


@pytest.mark.parametrize(("passage", "column"), [(SAYS, 0), (DENIES, 1), (BESIDE, 2)])
def test_a_claim_never_seen_is_judged_by_the_words_it_shares(passage: str, column: int) -> None:
    assert not HEAD.knows(CLAIM)
    assert int(HEAD.judge(CLAIM, [passage]).argmax()) == column
    assert int(np.argmax(HEAD.conclude(CLAIM, [BESIDE, passage]).probabilities)) == column


def test_the_sentence_that_decides_is_named() -> None:
    passage = f"{BESIDE} {SAYS} {BESIDE}"
    found = HEAD.conclude(CLAIM, [BESIDE, passage])
    assert (found.passage, passage[found.start : found.end]) == (1, SAYS)


def test_a_negation_in_a_sentence_on_something_else_is_no_contradiction() -> None:
    (row,) = HEAD.judge(CLAIM, ["Dogs are not kept on a lead."])
    assert row.argmax() == 2


@pytest.mark.parametrize("claim", ["", "  \n", 3, None, "\ud800"])
def test_a_claim_without_text_is_refused(claim: Any) -> None:
    for ask in (HEAD.judge, HEAD.conclude):
        with pytest.raises(InvalidArgument):
            ask(claim, [SAYS])


@pytest.mark.parametrize("passages", ["one string", ["fine", ""], ["fine", 3], [b"bytes"]])
def test_passages_that_cannot_be_judged_are_refused(passages: Any) -> None:
    with pytest.raises(InvalidArgument):
        HEAD.judge(CLAIM, passages)


def test_without_passages_there_are_no_rows_and_no_conclusion() -> None:
    assert HEAD.judge(CLAIM, []).shape == (0, 3)
    with pytest.raises(InvalidArgument):
        HEAD.conclude(CLAIM, [])


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=20))
def test_pooled_scores_do_not_depend_on_the_order_of_sentences(pairs: list[tuple[float, float]]) -> None:
    scores = np.array(pairs).reshape(-1, 2)
    scores[:, 1] = np.minimum(scores[:, 0], scores[:, 1])
    made = pooled(scores)
    assert made.shape == (POOLED,)
    sums = [place for place in range(POOLED) if place != POOLED - 1]  # of equal ones the last may take either
    assert np.allclose(pooled(scores[::-1])[sums], made[sums])


def test_sentences_hold_every_letter_and_lines_end_them() -> None:
    passage = "One (see 4.2). Two\n\n  three?\n---\n (a) Four; see Art. 5"
    found = [passage[start:end] for start, end in sentences(passage)]
    assert found == ["One (see 4.2).", "Two", "three?", "(a) Four; see Art. 5"]
    assert sentences("---") == []


def test_what_was_learnt_can_be_left_out_and_is_another_judge() -> None:
    assert StanceHead().fingerprint == HEAD.fingerprint
    assert StanceHead(knows_requirements=False).fingerprint != HEAD.fingerprint


def test_the_weights_hold_numbers_and_where_they_come_from() -> None:
    assert HEAD.provenance["script"] == "bench/metric/train_stance.py"
    with np.load(io.BytesIO(_committed()), allow_pickle=False) as read:
        kinds = {name: read[name].dtype.kind for name in read.files}
    assert set(kinds.values()) <= {"f", "i", "u"}


def _committed() -> bytes:
    from importlib.resources import files

    return files("carag.evaluation.regulatory").joinpath("stance_head.npz").read_bytes()


class _Held(CorpusConnector):
    def load_documents(self) -> list[RegulatoryDocument]:
        return [RegulatoryDocument(f"{BESIDE}\n\n  {SAYS}\n{BESIDE}", "act")]


def test_a_claim_leads_to_the_sentence_in_its_document() -> None:
    """Offsets count in the document, whose white space the passage does not have."""
    from carag.retrieval import embedder_by_name

    metric = Regulatory(_Held(), embedder_by_name("wordllama"), HEAD, Settings(variant=Variant.STANCE))
    (judged,) = metric.batch("s", "a", [Batch(qa_id="1", query="How long?", assistant=f"Of course. {CLAIM}")])
    (claim,) = judged.claims
    assert (claim.verdict, claim.source) == ("SUPPORTS", "act")
    text = _Held().load_documents()[0].text
    assert text[claim.evidence_start : claim.evidence_end] == SAYS
    assert judged.assistant[claim.start : claim.end] == CLAIM
    assert judged.verdict == "COMPLIANT"


@pytest.mark.release
def test_the_requirements_learnt_are_those_of_the_data(shared_data: Path) -> None:
    """Known whatever their case and spacing, and judged by contracts they were learnt from."""
    from bench.metric.contracts import read_contracts

    contracts = read_contracts(shared_data / "legal", "dev")[:6]
    right = total = 0
    for contract in contracts:
        for pair in contract.pairs:
            assert HEAD.knows(f"  {pair.hypothesis.upper()} ")
            found = HEAD.conclude(pair.hypothesis, [contract.text])
            right += int(np.argmax(found.probabilities)) == pair.label
            total += 1
    assert right / total > 0.8
    assert claim_hash("A  b") == claim_hash("a B")
