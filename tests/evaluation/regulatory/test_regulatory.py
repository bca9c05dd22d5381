"""A session's verdict: turns by weight, irrelevant ones left out or averaged in, and nothing lost on an error."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.regulatory import (
    Batch,
    BayesianMode,
    Estimate,
    MeasuredSession,
    Regulatory,
    RegulatoryMetric,
    Reranker,
    SessionVerdict,
    Settings,
    StatisticalMode,
)
from tests.evaluation.regulatory.fakes import (
    CONTRADICTS,
    SUPPORTS,
    Everywhere,
    Held,
    Judge,
    Said,
    Toward,
    metric,
    turn,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

COMPLIANT, NON_COMPLIANT, IRRELEVANT, NO_VERDICT = SessionVerdict
PASSAGES = ("p0", "p1", "p2", "p3")
FAR = "far away from all of it"
"""A response and query that find nothing."""


class Share(Reranker):
    """Lets as many of the four passages support a response as its last character says."""

    def score(self, query: str, documents: list[str]) -> list[float]:
        return [float(PASSAGES.index(one) < int(query[-1])) for one in documents]


def one(qa_id: str, supporting: int | None, weight: float | None = None) -> Batch:
    """A turn with as many supporting passages of four, or one that nothing covers."""
    if supporting is None:
        return turn(qa_id, FAR, FAR, weight)
    return turn(qa_id, "q", f"response {supporting}", weight)


def measured(*turns: Batch, variant: str = "paper", mode: Any = None, **changed: Any) -> RegulatoryMetric:
    """One session of these turns."""
    embedder = Toward(dict.fromkeys(PASSAGES, 1.0), {FAR: (-1.0, 0.0)})
    settings = Settings(variant=variant, **changed)  # type: ignore[arg-type] - as from a command line
    found = Regulatory(Held(*PASSAGES), embedder, Share(), settings, statistical_mode=mode)
    (session,) = found.measure([MeasuredSession("s", "a", list(turns))])
    return session


# --- by hand ---


def test_the_session_is_the_weighted_mean_of_its_turns() -> None:
    found = measured(one("1", 4, 0.5), one("2", 1, 0.3), one("3", 0, 0.2))
    assert found.compliance_score == pytest.approx(0.5 + 0.25 * 0.3)
    assert (found.verdict, found.coverage, found.n_interactions) == (COMPLIANT, 1.0, 3)
    assert (found.total_supporting_chunks, found.total_contradicting_chunks) == (5, 7)
    assert (found.compliance_score_ci_low, found.compliance_score_ci_high) == (None, None)
    assert [turn.verdict for turn in found.interactions] == [COMPLIANT, NON_COMPLIANT, NON_COMPLIANT]
    assert (found.session_id, found.assistant_id, found.variant) == ("s", "a", "paper")


@pytest.mark.parametrize(("supporting", "verdict"), [(4, COMPLIANT), (2, COMPLIANT), (1, NON_COMPLIANT)])
@pytest.mark.parametrize("variant", ["paper", "reference"])
def test_a_session_of_one_turn_is_that_turn(supporting: int, verdict: SessionVerdict, variant: str) -> None:
    found = measured(one("1", supporting), variant=variant)
    assert (found.verdict, found.compliance_score) == (verdict, supporting / 4)
    bayesian = measured(one("1", supporting), mode=BayesianMode(mc_samples=50), variant=variant)
    assert bayesian.compliance_score_ci_low == bayesian.compliance_score_ci_high == supporting / 4


def test_weights_that_do_not_sum_to_one_are_divided_by_their_sum_or_given_up() -> None:
    turns = [one("1", 4, 3.0), one("2", 0, 1.0)]
    assert measured(*turns).compliance_score == 0.75
    assert measured(*turns, variant="reference").compliance_score == 0.5


def test_weights_that_are_missing_share_what_is_left() -> None:
    for variant in ("paper", "reference"):
        found = measured(one("1", 4, 0.5), one("2", 0), one("3", 4), variant=variant)
        assert found.compliance_score == 0.75


def test_irrelevant_turns_are_left_out_of_the_mean_and_counted_as_coverage() -> None:
    found = measured(one("1", 1, 0.2), one("2", None, 0.5), one("3", 3, 0.3))
    assert found.compliance_score == pytest.approx((0.25 * 0.2 + 0.75 * 0.3) / 0.5)
    assert found.coverage == pytest.approx(0.5)
    assert found.n_interactions == 3


def test_the_package_averages_irrelevant_turns_in_at_the_threshold() -> None:
    turns = [one("1", 1, 0.2), one("2", None, 0.5), one("3", 3, 0.3)]
    found = measured(*turns, variant="reference", compliance_threshold=0.6)
    assert found.compliance_score == pytest.approx(0.25 * 0.2 + 0.6 * 0.5 + 0.75 * 0.3)
    assert found.coverage == pytest.approx(0.5)
    wrong = [one("1", 0), *(one(str(n), None) for n in range(2, 50))]
    assert measured(*wrong, variant="reference", compliance_threshold=0.5).compliance_score == 0.4898
    assert measured(*wrong).compliance_score == 0.0


@pytest.mark.parametrize("variant", ["paper", "reference"])
@pytest.mark.parametrize("mode", [None, BayesianMode(mc_samples=50)])
def test_a_session_of_irrelevant_turns_is_irrelevant(variant: str, mode: Any) -> None:
    found = measured(one("1", None), one("2", None), variant=variant, mode=mode, compliance_threshold=0.7)
    assert (found.verdict, found.compliance_score, found.coverage) == (IRRELEVANT, 0.7, 0.0)
    assert (found.compliance_score_ci_low is None) == (mode is None or variant == "paper")


def test_turns_of_no_weight_cannot_decide() -> None:
    """What the corpus covers has no weight: the session says nothing, though the package would call it compliant."""
    turns = [one("1", 4, 0.0), one("2", None, 1.0)]
    found = measured(*turns)
    assert (found.verdict, found.coverage) == (IRRELEVANT, 0.0)
    assert measured(*turns, variant="reference").verdict is COMPLIANT


def test_a_session_at_the_threshold_is_compliant_whatever_the_rounding() -> None:
    """Ten shares of 1/10 do not sum to 1 in floating point."""
    for mode in (None, BayesianMode(mc_samples=100)):
        turns = [one(str(n), 3) for n in range(10)]
        assert measured(*turns, compliance_threshold=0.75, mode=mode).verdict is COMPLIANT


def test_the_package_rounds_to_four_decimals() -> None:
    turns = [one("1", 1), one("2", 0), one("3", 0)]
    assert measured(*turns).compliance_score == pytest.approx(1 / 12, abs=1e-15)
    assert measured(*turns, variant="reference").compliance_score == 0.0833


def test_the_stance_leaves_out_what_is_not_spoken_of_and_reports_coverage() -> None:
    said, sold, other = "Logs are kept here.", "Logs are sold here.", "The weather is fine."
    judge = Judge({(said, "p"): SUPPORTS, (sold, "p"): CONTRADICTS})
    found = Regulatory(Held("p"), Everywhere(), judge, Settings(variant="stance"))  # type: ignore[arg-type]
    turns = [turn("1", assistant=said), turn("2", assistant=sold), turn("3", assistant=other)]
    found.batch("s", "a", turns)
    session = found.result("s")
    assert [each.verdict for each in session.interactions] == [COMPLIANT, NON_COMPLIANT, IRRELEVANT]
    assert (session.compliance_score, session.coverage) == (0.5, pytest.approx(2 / 3))


# --- laws ---

turns_drawn = st.lists(
    st.tuples(st.none() | st.integers(0, 4), st.none() | st.floats(0, 0.15)), min_size=1, max_size=6
)


@given(
    turns_drawn,
    st.sampled_from(["paper", "reference"]),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 0.75, 1.0]),
)
def test_every_score_is_in_bounds_and_the_interval_contains_the_mean(
    drawn: list[tuple[int | None, float | None]], variant: str, is_bayesian: bool, threshold: float
) -> None:
    turns = [one(str(n), *each) for n, each in enumerate(drawn)]
    if variant == "paper" and all(each.weight is not None for each in turns):
        turns[0] = turns[0].model_copy(update={"weight": None})
    mode = BayesianMode(mc_samples=40) if is_bayesian else None
    found = measured(*turns, variant=variant, mode=mode, compliance_threshold=threshold)
    assert 0 <= found.compliance_score <= 1
    assert 0 <= found.coverage <= 1
    if found.compliance_score_ci_low is not None and found.compliance_score_ci_high is not None:
        assert 0 <= found.compliance_score_ci_low <= found.compliance_score_ci_high <= 1
        if variant == "paper":
            assert found.compliance_score_ci_low <= found.compliance_score <= found.compliance_score_ci_high
    if found.verdict is not IRRELEVANT and variant == "paper":
        assert (found.verdict is COMPLIANT) == (found.compliance_score >= threshold)
    assert RegulatoryMetric.model_validate_json(found.model_dump_json()) == found


@given(turns_drawn, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_turns_changes_neither_score_nor_interval(
    drawn: list[tuple[int | None, float | None]], is_bayesian: bool, draw: random.Random
) -> None:
    turns = [one("whole", 2), *(one(str(n), *each) for n, each in enumerate(drawn))]
    shuffled = draw.sample(turns, len(turns))
    mode = BayesianMode(mc_samples=40) if is_bayesian else None
    first, second = measured(*turns, mode=mode), measured(*shuffled, mode=mode)
    assert sorted(each.qa_id for each in first.interactions) == sorted(
        each.qa_id for each in second.interactions
    )
    assert first.model_copy(update={"interactions": []}) == second.model_copy(update={"interactions": []})


@given(turns_drawn, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_bar_never_makes_a_session_compliant(
    drawn: list[tuple[int | None, float | None]], low: float, high: float
) -> None:
    turns = [one("whole", 2), *(one(str(n), *each) for n, each in enumerate(drawn))]
    before, after = (measured(*turns, compliance_threshold=each) for each in sorted((low, high)))
    assert before.compliance_score == after.compliance_score or before.verdict is IRRELEVANT
    assert not (before.verdict is NON_COMPLIANT and after.verdict is COMPLIANT)


# --- the corpus is loaded once, late ---


def test_the_corpus_is_loaded_when_first_needed_and_embedded_once() -> None:
    held, embedder = Held("p0", "p1"), Everywhere()
    found = Regulatory(held, embedder, Said({"p0": 1.0, "p1": 1.0}))
    assert (held.loads, embedder.seen) == (0, [])
    for number in range(3):
        found.batch(str(number), "a", [turn()])
    assert held.loads == 1
    assert [text for text in embedder.seen if text in {"p0", "p1"}] == ["p0", "p1"]
    assert found.load() == 2


def test_sessions_may_come_in_parts_and_interleaved() -> None:
    found = metric({"p": 1.0})
    found.batch("s", "a", [turn("1")])
    found.batch("t", "b", [turn("1")])
    found.batch("s", "a", [turn("2")])
    assert [each.qa_id for each in found.result("s").interactions] == ["1", "2"]
    assert found.result("t").assistant_id == "b"


def test_the_identity_tells_all_that_a_result_depends_on() -> None:
    """Two runs alike have one; another setting, mode, model or corpus has another."""

    class Median(StatisticalMode):
        def aggregate(self, scores: Sequence[float], weights: Sequence[float]) -> Estimate:
            return Estimate(sorted(scores)[len(scores) // 2])

    runs: list[dict[str, Any]] = [
        {},
        {"top_k": 9},
        {"variant": "reference"},
        {"mode": Median()},
        {"mode": BayesianMode()},
        {"mode": BayesianMode(rng_seed=1)},
        {"mode": BayesianMode(is_exact_package=True)},
        {"mode": BayesianMode(ci_level=0.9)},
        {"corpus": {"q": 1.0}},
        {"corpus": {"p": 1.0, "q": 1.0}},
    ]
    identities = [json.dumps(metric(**{"corpus": {"p": 1.0}, **one}).identity) for one in runs]
    assert len(set(identities)) == len(runs)
    again = [json.dumps(metric(**{"corpus": {"p": 1.0}, **one}).identity) for one in runs[:3]]
    assert again == identities[:3]
    assert json.dumps(metric({"p": 1.0}, mode=Median()).identity) == identities[3]


# --- what is wrong, and loses nothing ---


def test_a_session_without_turns_has_no_result() -> None:
    found = metric({"p": 1.0})
    for session in ("never", "empty"):
        if session == "empty":
            assert found.batch("empty", "a", []) == []
        with pytest.raises(InvalidArgument, match=f"session '{session}' has no turns; judge at least one"):
            found.result(session)
    found.batch("s", "a", [turn()])
    found.result("s")
    with pytest.raises(InvalidArgument, match="no turns"):
        found.result("s")  # it was forgotten, and may be measured again
    found.batch("s", "another", [turn()])


def test_a_turn_judged_twice_is_refused() -> None:
    found = metric({"p": 1.0})
    found.batch("s", "a", [turn("1")])
    for several in ([turn("1")], [turn("2"), turn("2")]):
        with pytest.raises(InvalidArgument, match=r"session 's' has two turns with the qa_id '[12]'; give"):
            found.batch("s", "a", several)
    assert [each.qa_id for each in found.result("s").interactions] == ["1"]


def test_a_session_of_two_assistants_is_refused() -> None:
    found = metric({"p": 1.0})
    found.batch("s", "a", [turn("1")])
    with pytest.raises(
        InvalidArgument, match="belongs to the assistant 'a', but this turn names 'b'; use one"
    ):
        found.batch("s", "b", [turn("2")])
    assert found.result("s").n_interactions == 1


def test_turns_of_which_one_failed_may_be_handed_in_again() -> None:
    scores = {"p": float("nan")}
    found = Regulatory(Held("p"), Everywhere(), Said(lambda text: scores[text] if calls.pop() else 1.0))
    calls = [True, False]  # the second turn gets no number
    with pytest.raises(InvalidArgument, match="the reranker"):
        found.batch("s", "a", [turn("1"), turn("2")])
    calls += [False, False]
    assert len(found.batch("s", "a", [turn("1"), turn("2")])) == 2
    assert found.result("s").n_interactions == 2


def test_a_session_whose_weights_cannot_be_shares_is_not_lost() -> None:
    found = metric({"p": 1.0})
    found.batch("s", "a", [turn("1", weight=0.0)])
    with pytest.raises(InvalidArgument, match="all weights of a session are 0"):
        found.result("s")
    found.batch("s", "a", [turn("2", weight=1.0)])
    assert found.result("s").n_interactions == 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"variant": "papers"}, "there is no variant 'papers'; want one of paper, reference, stance"),
        ({"variant": None}, "there is no variant None; want"),
        ({"chunk_size": 100, "chunk_overlap": 100}, "want an overlap of at least 0 and less than the size"),
        ({"top_k": 0}, "top_k is 0; want 1 to 1000 passages"),
        ({"top_k": 1.0}, "top_k is 1.0; want"),
        *(
            ({f"{name}_threshold": wrong}, f"{name}_threshold is .*; want a number from 0 to 1")
            for name in ("similarity", "contradiction", "compliance")
            for wrong in (-0.1, 1.1, float("nan"), "0.5", True, None)
        ),
    ],
)
def test_settings_out_of_range_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Settings(**changed)
    with pytest.raises(InvalidArgument, match=message):
        replace(Settings(), **changed)


@pytest.mark.parametrize("wrong", ["folder", None, Held])
def test_what_is_no_corpus_is_refused_before_anything_is_loaded(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"the corpus connector is .*; want a LocalCorpusConnector"):
        Regulatory(wrong, Everywhere(), Said({}))
