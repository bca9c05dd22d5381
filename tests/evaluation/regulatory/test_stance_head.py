"""The stance head: laws of its rows, traps, cases it must get right, and that its weights are those of the script."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.regulatory import stance_head
from carag.evaluation.regulatory.stance_head import StanceHead, negated, pooled, sentences

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RETURN = (
    "Receiving Party shall destroy or return some Confidential Information upon the termination of Agreement."
)
TECHNICAL = "Confidential Information shall only include technical information."
DEVELOP = "Receiving Party may independently develop information similar to Confidential Information."
PASSAGES = [
    "The Recipient shall return or destroy all Confidential Information upon termination of this Agreement.",
    "This Agreement is governed by the laws of Delaware.",
    "Confidential Information means technical, financial, marketing and personnel information.\nNotices go by post.",
]


@pytest.fixture(scope="module")
def head() -> StanceHead:
    return StanceHead()


@given(st.lists(st.sampled_from([*PASSAGES, "12", "§ 4", "Keep it.", "a" * 900]), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_rows_are_probabilities_that_depend_on_their_own_passage(passages: list[str]) -> None:
    head = SHARED()
    rows = head.judge(RETURN, passages)
    assert rows.shape == (len(passages), 3)
    assert rows.dtype == np.float64
    assert ((rows >= 0) & (rows <= 1)).all()
    assert np.allclose(rows.sum(axis=1), 1, atol=1e-12)
    for passage, row in zip(passages, rows, strict=True):
        assert (head.judge(RETURN, [passage])[0] == row).all()


def _shared() -> Callable[[], StanceHead]:
    made: list[StanceHead] = []

    def get() -> StanceHead:
        if not made:
            made.append(StanceHead())
        return made[0]

    return get


SHARED = _shared()


def test_the_verdict_does_not_depend_on_the_order_of_passages(head: StanceHead) -> None:
    said = {
        head.verdict(RETURN, head.judge(RETURN, list(order))) for order in itertools.permutations(PASSAGES)
    }
    assert len(said) == 1


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_pooled_rows_are_finite_whatever_the_rows(pairs: list[tuple[float, float]]) -> None:
    rows = np.array([(bears * (1 - against), bears * against, 1 - bears) for bears, against in pairs])
    pool = pooled(rows)
    assert np.isfinite(pool).all()
    shuffled = rows[np.random.default_rng(1).permutation(len(rows))]
    assert np.allclose(pooled(shuffled), pool)


def test_another_head_gives_the_same_rows_and_fingerprint(head: StanceHead) -> None:
    other = StanceHead()
    assert (other.judge(TECHNICAL, PASSAGES) == head.judge(TECHNICAL, PASSAGES)).all()
    assert other.fingerprint == head.fingerprint


def test_other_weights_are_another_fingerprint(head: StanceHead) -> None:
    altered = json.loads(json.dumps(head.weights))
    altered["verdict"]["bears_from"] += 0.01
    assert StanceHead(altered).fingerprint != head.fingerprint


@pytest.mark.parametrize("claim", ["", "  \n", 3, None, "\ud800"])
def test_a_claim_without_text_is_refused(head: StanceHead, claim: Any) -> None:
    with pytest.raises(InvalidArgument):
        head.judge(claim, PASSAGES)


@pytest.mark.parametrize("passages", [[], "one string", ["fine", ""], ["fine", 3], [b"bytes"]])
def test_passages_that_cannot_be_judged_are_refused(head: StanceHead, passages: Any) -> None:
    with pytest.raises(InvalidArgument):
        head.judge(RETURN, passages)


def test_the_sentence_that_decided_is_named(head: StanceHead) -> None:
    passage = f"Notices go by post. {PASSAGES[0]} Delaware law governs."
    (judged,) = head.judge_spans(RETURN, [passage])
    assert passage[judged.start : judged.end] == PASSAGES[0]


def test_sentences_cover_all_letters_of_a_passage() -> None:
    passage = "One (see 4.2). Two\n\n  three?\n---\n Four"
    assert [passage[start:end].strip() for start, end in sentences(passage)] == [
        "One (see 4.2).",
        "Two",
        "three?",
        "Four",
    ]
    assert sentences("---") == [(0, 3)]


def test_a_claim_is_turned_round_by_its_first_modal_verb() -> None:
    assert negated("X shall only sell Y.") == "X shall not only sell Y."
    assert negated("The fee is due.") == "The fee is not due."
    assert negated("Fees rose.") == "It is not true that Fees rose."


def test_encoded_sentences_are_kept_up_to_a_bound(head: StanceHead, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stance_head, "_CACHED", 3)
    few = StanceHead(head.weights)
    first = few.judge(RETURN, PASSAGES)
    assert len(few._cache) == 3
    assert (few.judge(RETURN, PASSAGES) == first).all()
    monkeypatch.setattr(stance_head, "_CACHED", 100)
    few.judge(RETURN, PASSAGES)
    monkeypatch.setattr(few, "_encode", lambda text: pytest.fail(f"{text} was encoded again"))
    assert (few.judge(RETURN, PASSAGES) == first).all()


@pytest.mark.parametrize(
    ("claim", "passages", "want"),
    [
        (RETURN, PASSAGES[1:2], "neutral"),
        (TECHNICAL, PASSAGES, "contradicted"),
        (
            DEVELOP,
            ["Nothing prevents a party from independently developing similar information."],
            "supported",
        ),
        (DEVELOP, PASSAGES[1:2], "neutral"),
    ],
)
def test_plain_cases_of_trained_claims_come_out_right(
    head: StanceHead, claim: str, passages: list[str], want: str
) -> None:
    verdict = head.verdict(claim, head.judge(claim, passages))
    assert (verdict.verdict, verdict.known) == (want, True)
    assert verdict.supported + verdict.contradicted + verdict.neutral == pytest.approx(1)


def test_evidence_raises_support_even_where_the_verdict_stays_neutral(head: StanceHead) -> None:
    """Only 22 of 61 contracts trained on held this claim, and one plain clause does not overcome that."""
    with_clause = head.verdict(RETURN, head.judge(RETURN, PASSAGES))
    without = head.verdict(RETURN, head.judge(RETURN, PASSAGES[1:]))
    assert with_clause.supported > without.supported


def test_an_unseen_claim_is_judged_neutral_by_passages_about_something_else(head: StanceHead) -> None:
    claim = "Banks must report suspicious transactions within two days."
    rows = head.judge(claim, ["Dogs are kept on a lead in the park.", PASSAGES[1]])
    verdict = head.verdict(claim, rows)
    assert (verdict.verdict, verdict.known) == ("neutral", False)


def test_a_passage_on_the_claim_bears_more_than_one_beside_it(head: StanceHead) -> None:
    claim = "Banks must report suspicious transactions within two days."
    on, beside = head.judge(
        claim, ["A bank shall report a suspicious transaction within two days.", PASSAGES[1]]
    )
    assert on[2] < beside[2]


def test_the_weights_hold_no_text(head: StanceHead) -> None:
    text = json.dumps({key: part for key, part in head.weights.items() if key != "provenance"})
    assert "Party" not in text
    assert all(len(key) == 64 and int(key, 16) for key in head.weights["known"])


@pytest.mark.release
def test_training_again_gives_the_committed_weights(shared_data: Path, tmp_path: Path) -> None:
    """To the fourth digit of the general weights, and half precision's last bits of the others."""
    from bench.metric.train_stance import WEIGHTS, main

    out = tmp_path / "weights.json"
    assert main(["--data", str(shared_data / "legal"), "--out", str(out)]) == 0
    made, kept = json.loads(out.read_text()), json.loads(WEIGHTS.read_text())
    assert made["provenance"] == kept["provenance"]
    assert made["known"].keys() == kept["known"].keys()
    for part in ("relevance", "polarity"):
        assert np.allclose(made[part], kept[part], rtol=1e-3, atol=1e-4)
    for part in ("verdict", "verdict_known"):
        for key, value in kept[part].items():
            assert np.allclose(made[part][key], value, rtol=1e-3, atol=1e-3), (part, key)
