"""The three-way reading: passages support a sentence, contradict it, or are not about it; the surest one decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.regulatory import Regulatory, SessionVerdict, Settings, Variant, Verdict
from carag.evaluation.regulatory.stance import claims_in
from tests.evaluation.regulatory.fakes import CONTRADICTS, NEUTRAL, SUPPORTS, Everywhere, Held, Judge, turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from carag.evaluation.regulatory import RegulatoryInteraction

S, C, N, U = Verdict
COMPLIANT, NON_COMPLIANT, IRRELEVANT, NO_VERDICT = SessionVerdict
LOGS, SOLD = "Logs are kept for six months.", "They are sold to anyone."
RESPONSE = f"Certainly! {LOGS} {SOLD}"
KEEP, SELL = "Keep logs for half a year.", "Logs must not be sold."


def judged(
    rows: Mapping[tuple[str, str], Sequence[float]],
    *,
    passages: Sequence[str] = (KEEP, SELL),
    response: str = RESPONSE,
    thresholds: Any = None,
    **changed: Any,
) -> RegulatoryInteraction:
    """The verdict on a response by a judge that knows only these rows."""
    metric = Regulatory(
        Held(*passages),
        Everywhere(),
        Judge(rows, thresholds),
        Settings(variant=Variant.STANCE, **changed),
    )
    (found,) = metric.batch("s", "a", [turn(assistant=response)])
    return found


def test_each_sentence_is_a_claim_with_its_place_and_the_passage_that_decided() -> None:
    found = judged({(LOGS, KEEP): SUPPORTS, (SOLD, SELL): CONTRADICTS})
    assert [RESPONSE[one.start : one.end] for one in found.claims] == [LOGS, SOLD]
    assert [(one.verdict, one.score, one.source, one.chunk_index) for one in found.claims] == [
        (S, 0.9, "d0", 0),
        (C, 0.9, "d1", 0),
    ]
    assert [(one.evidence_start, one.evidence_end) for one in found.claims] == [
        (0, len(KEEP)),
        (0, len(SELL)),
    ]
    assert [one.verdict for one in found.retrieved_chunks] == [S, C]
    assert (found.supporting_chunks, found.contradicting_chunks, found.neutral_chunks) == (1, 1, 0)
    assert (found.compliance_score, found.verdict) == (0.5, COMPLIANT)
    assert (
        found.insight
        == "COMPLIANT: the corpus covers 2 of 2 sentences; it supports 1, contradicts 1, and leaves 0 undecided."
    )


def test_a_sentence_that_no_passage_is_about_does_not_count() -> None:
    """The paper would take the silence for contradiction."""
    found = judged({(LOGS, KEEP): SUPPORTS})
    assert [one.verdict for one in found.claims] == [S, N]
    assert found.claims[1].source is found.claims[1].chunk_index is None
    assert found.claims[1].evidence_start is found.claims[1].evidence_end is None
    assert (found.compliance_score, found.verdict, found.neutral_chunks) == (1.0, COMPLIANT, 1)


def test_a_turn_that_no_passage_is_about_is_irrelevant() -> None:
    found = judged({}, compliance_threshold=0.7)
    assert (found.verdict, found.compliance_score) == (IRRELEVANT, 0.7)
    assert [one.verdict for one in found.retrieved_chunks] == [N, N]
    assert found.insight == "The corpus says nothing about the 2 sentences of this response."


def test_one_sentence_that_all_passages_contradict_is_not_compliant_at_any_threshold() -> None:
    found = judged({(SOLD, SELL): CONTRADICTS}, compliance_threshold=0.0)
    assert (found.verdict, found.compliance_score) == (NON_COMPLIANT, 0.0)


OPEN = (0.4, 0.4, 0.2)
"""A row of a judge that sees what a passage is about, and not what it says."""


@pytest.mark.parametrize(
    ("rows", "verdict", "score"),
    [
        ({(LOGS, KEEP): OPEN}, NO_VERDICT, 0.0),
        ({(LOGS, KEEP): OPEN, (SOLD, SELL): CONTRADICTS}, NON_COMPLIANT, 0.0),
        ({(LOGS, KEEP): SUPPORTS, (SOLD, SELL): OPEN}, COMPLIANT, 0.5),  # whatever the other one is
    ],
)
def test_a_sentence_left_undecided_never_makes_a_turn_compliant(
    rows: dict[tuple[str, str], Sequence[float]], verdict: SessionVerdict, score: float
) -> None:
    """Nor does it hide that another one is contradicted; and the passage that speaks of it is shown."""
    found = judged(rows)
    assert (found.verdict, found.compliance_score) == (verdict, score)
    assert all(one.source is not None for one in found.claims if one.verdict is U)
    above = judged(rows, compliance_threshold=0.51)
    assert above.verdict is (
        NON_COMPLIANT if (SOLD, SELL) in rows and rows[SOLD, SELL] != OPEN else NO_VERDICT
    )


@pytest.mark.parametrize(
    ("turns", "verdict"),
    [
        ("?", NO_VERDICT),
        ("+?", COMPLIANT),
        ("+??", NO_VERDICT),
        ("-?", NON_COMPLIANT),
        ("+-?", NO_VERDICT),
        ("--+?", NON_COMPLIANT),
    ],
)
def test_a_session_is_compliant_only_if_its_undecided_turns_could_not_change_that(
    turns: str, verdict: SessionVerdict
) -> None:
    said = {"+": SUPPORTS, "-": CONTRADICTS, "?": OPEN}
    rows = {(f"Turn number {at} speaks.", KEEP): said[one] for at, one in enumerate(turns)}
    metric = Regulatory(Held(KEEP), Everywhere(), Judge(rows), Settings(variant=Variant.STANCE))
    metric.batch("s", "a", [turn(str(at), assistant=claim) for at, (claim, _) in enumerate(rows)])
    found = metric.result("s")
    assert found.verdict is verdict
    assert (found.compliance_score >= 0.5) == (verdict is COMPLIANT)  # the score alone says the same


def test_of_two_passages_that_are_equally_sure_the_one_that_contradicts_decides() -> None:
    found = judged({(LOGS, KEEP): SUPPORTS, (LOGS, SELL): CONTRADICTS}, response=LOGS)
    (claim,) = found.claims
    assert (claim.verdict, claim.source) == (C, "d1")
    (claim,) = judged({(LOGS, KEEP): (0.5, 0.5, 0.0)}, response=LOGS).claims
    assert claim.verdict is C


def test_the_surer_passage_decides_and_is_not_outvoted() -> None:
    rows = {(LOGS, KEEP): (0.95, 0.0, 0.05), (LOGS, SELL): (0.0, 0.9, 0.1), (LOGS, "x"): (0.0, 0.9, 0.1)}
    (claim,) = judged(rows, passages=(KEEP, SELL, "x"), response=LOGS).claims
    assert (claim.verdict, claim.score, claim.source) == (S, 0.95, "d0")


@pytest.mark.parametrize(
    ("thresholds", "row", "verdict"),
    [
        (None, (0.5, 0.2, 0.3), S),  # 1/2 each, inclusive
        (None, (0.499, 0.2, 0.301), U),
        (None, (0.3, 0.2, 0.5), N),
        (None, (0.2, 0.5, 0.3), C),
        ((0.8, 0.3), (0.7, 0.3, 0.0), C),
        ((0.8, 0.3), (0.79, 0.21, 0.0), U),
        ((0.8, 0.3), (0.8, 0.2, 0.0), S),
        ((0.5, 0.2), (0.6, 0.4, 0.0), C),  # 0.2 above its threshold, against 0.1
        ((0.0, 0.0), (0.0, 0.0, 1.0), C),
        ((1.0, 1.0), (0.0, 1.0, 0.0), C),
    ],
)
def test_the_thresholds_are_the_judges_own(
    thresholds: tuple[float, float] | None, row: tuple[float, ...], verdict: Verdict
) -> None:
    found = judged({(LOGS, KEEP): row}, passages=(KEEP,), response=LOGS, thresholds=thresholds)
    assert (
        [one.verdict for one in found.claims] == [one.verdict for one in found.retrieved_chunks] == [verdict]
    )
    assert found.claims[0].score == (max(row) if verdict is U else row[[S, C, N].index(verdict)])


def test_the_contradiction_threshold_of_the_paper_is_not_used() -> None:
    rows = {(LOGS, KEEP): (0.55, 0.0, 0.45)}
    assert judged(rows, response=LOGS) == judged(rows, response=LOGS, contradiction_threshold=1.0)


@pytest.mark.parametrize("response", ["", " \n", "Yes.", "No! Never. Ask us.", "# Logs"])
def test_a_response_of_short_sentences_claims_nothing_and_says_so(response: str) -> None:
    found = judged({}, response=response)
    assert (found.verdict, found.claims, found.retrieved_chunks) == (IRRELEVANT, [], [])
    assert found.insight == "No sentence of this response has 3 words, so it claims nothing."


def test_the_judge_is_asked_of_every_sentence_and_passage_once() -> None:
    judge = Judge({})
    metric = Regulatory(Held(KEEP, SELL), Everywhere(), judge, Settings(variant=Variant.STANCE))
    metric.batch("s", "a", [turn(assistant=RESPONSE)])
    assert sorted(judge.asked) == sorted((claim, one) for claim in (LOGS, SOLD) for one in (KEEP, SELL))


# --- sentences ---


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One two three. Four five six.", ["One two three.", "Four five six."]),
        ("One two three; four five six", ["One two three; four five six"]),
        ("By Art. 5 it is so. No. 7 is not.", ["By Art. 5 it is so.", "No. 7 is not."]),
        ("Is it so? It is so!", ["Is it so?", "It is so!"]),
        ("- keep all logs\n- sell no logs", ["- keep all logs", "- sell no logs"]),
        ("1. keep all logs\n2. sell no logs", ["1. keep all logs", "2. sell no logs"]),
        ("Heading\n\nThe text of it.", ["The text of it."]),
        ("a) keep all logs\nb) sell no logs", ["a) keep all logs", "b) sell no logs"]),
        ("Keep all logs:\nnever sell any", ["Keep all logs:", "never sell any"]),
        ("Wrapped over\ntwo lines here.", ["Wrapped over\ntwo lines here."]),
        ("  spaced out here  ", ["spaced out here"]),
        ("At 3.5 per cent a year.", ["At 3.5 per cent a year."]),
    ],
)
def test_sentences_end_where_a_reader_would_say(text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in claims_in(text)] == found


@given(st.text("ab .!?;\n-1)\"'(#•", max_size=80))
def test_sentences_are_apart_in_order_and_have_three_words(text: str) -> None:
    last = 0
    for start, end in claims_in(text):
        assert last <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        words = text[start:end].split()
        assert len(words) >= 3 or (len(words) == 1 and len(words[0]) >= 16)
        last = end


# --- laws ---

rows = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(1, 20)).map(
    lambda parts: tuple(one / sum(parts) for one in parts)
)


@given(st.lists(rows, min_size=4, max_size=4), st.floats(0, 1), st.floats(0, 1))
def test_scores_stay_in_bounds_and_a_higher_bar_never_makes_compliant(
    given_rows: list[tuple[float, ...]], one: float, other: float
) -> None:
    pairs = [(claim, passage) for claim in (LOGS, SOLD) for passage in (KEEP, SELL)]
    stated = dict(zip(pairs, given_rows, strict=True))
    low, high = sorted((one, other))
    before, after = (judged(stated, compliance_threshold=limit) for limit in (low, high))
    assert 0 <= before.compliance_score <= 1
    assert not (before.verdict is NON_COMPLIANT and after.verdict is COMPLIANT)
    assert before.supporting_chunks + before.contradicting_chunks + before.neutral_chunks == 2


@given(st.lists(rows, min_size=4, max_size=4), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_threshold_of_support_never_adds_support(
    given_rows: list[tuple[float, ...]], one: float, other: float, contradiction: float
) -> None:
    pairs = [(claim, passage) for claim in (LOGS, SOLD) for passage in (KEEP, SELL)]
    stated = dict(zip(pairs, given_rows, strict=True))
    low, high = sorted((one, other))
    before, after = (judged(stated, thresholds=(limit, contradiction)) for limit in (low, high))
    assert {one.source for one in after.retrieved_chunks if one.verdict is S} <= {
        one.source for one in before.retrieved_chunks if one.verdict is S
    }


# --- invalid judges ---

NO_PROBABILITIES = {
    "a sum above 1": (0.9, 0.9, 0.9),
    "a sum below 1": (0.1, 0.1, 0.1),
    "a negative": (1.5, -0.5, 0.0),
    "NaN": (float("nan"), 0.5, 0.5),
    "two columns": (0.5, 0.5),
    "texts": ("a", "b", "c"),
}


@pytest.mark.parametrize("row", NO_PROBABILITIES.values(), ids=NO_PROBABILITIES)
def test_an_invalid_probability_is_refused_by_the_name_of_its_judge(row: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"the judge 'stated' returned .*; want"):
        judged({(LOGS, KEEP): row}, passages=(KEEP,), response=LOGS)


@pytest.mark.parametrize("rows_given", [[], [NEUTRAL] * 3])
def test_a_row_too_few_or_many_is_refused(rows_given: list[Any]) -> None:
    judge = Judge({})
    judge.judge = lambda claim, passages: rows_given  # type: ignore[method-assign]
    metric = Regulatory(Held(KEEP, SELL), Everywhere(), judge, Settings(variant=Variant.STANCE))
    with pytest.raises(InvalidArgument, match=r"want numbers of shape \(2, 3\)"):
        metric.batch("s", "a", [turn(assistant=LOGS)])


@pytest.mark.parametrize("wrong", [object(), Judge, None, "wordllama", Everywhere()])
def test_an_invalid_judge_is_refused(wrong: object) -> None:
    with pytest.raises(
        InvalidArgument, match=r"the judge is .*wants an object with name, fingerprint, remote"
    ):
        Regulatory(Held(KEEP), Everywhere(), wrong, Settings(variant=Variant.STANCE))


@pytest.mark.parametrize(
    "wrong", [(0.5,), (0.5, 0.5, 0.5), (0.5, 1.5), (-0.1, 0.5), (float("nan"), 0.5), "ab", ("a", "b")]
)
def test_thresholds_that_are_no_probabilities_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"has the thresholds .*; want"):
        judged({}, thresholds=wrong)
