"""The paper's verdicts: of a passage by its rerank score, of a turn by the share of passages that support it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.regulatory import (
    Batch,
    CosineReranker,
    Regulatory,
    RegulatoryInteraction,
    Reranker,
    SessionVerdict,
    Settings,
    Verdict,
)
from carag.evaluation.regulatory.checker import verdict_of
from carag.evaluation.regulatory.ports import as_embedder, as_reranker
from carag.retrieval import embedder_by_name
from tests.evaluation.regulatory.fakes import Held, Judge, Said, Toward, metric, turn

S, C = Verdict.SUPPORTS, Verdict.CONTRADICTS
COMPLIANT, NON_COMPLIANT, IRRELEVANT, NO_VERDICT = SessionVerdict
scores = st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=1, max_size=6)
thresholds = st.integers(0, 20).map(lambda n: n / 20)
binary = st.sampled_from(["paper", "reference"])


def judged(given: list[float], **changed: Any) -> RegulatoryInteraction:
    """The verdict on one turn whose passages have these rerank scores."""
    (found,) = metric({f"p{n}": score for n, score in enumerate(given)}, **changed).batch("s", "a", [turn()])
    return found


def verdicts(found: RegulatoryInteraction) -> list[Verdict]:
    return [one.verdict for one in found.retrieved_chunks]


# --- a passage ---


@pytest.mark.parametrize("variant", ["paper", "reference"])
def test_a_score_at_the_threshold_supports_and_one_below_contradicts(variant: str) -> None:
    found = judged([1.0, 0.6, 0.59999999, 0.0], variant=variant)
    assert verdicts(found) == [S, S, C, C]
    assert (found.supporting_chunks, found.contradicting_chunks, found.neutral_chunks) == (2, 2, 0)


def test_the_package_compares_the_score_itself_and_shows_it_rounded() -> None:
    found = judged([0.59999999], variant="reference")
    assert (verdicts(found), found.retrieved_chunks[0].reranker_score) == ([C], 0.6)
    assert judged([0.59999999]).retrieved_chunks[0].reranker_score == 0.59999999


def test_passages_are_scored_against_the_response_and_not_the_query() -> None:
    said = Said({"p": 1.0})
    Regulatory(Held("p"), Toward({"p": 1.0}), said).batch("s", "a", [turn(query="Q", assistant="A")])
    assert said.queries == ["A"]


# --- a turn ---


@pytest.mark.parametrize(
    ("supporting", "contradicting", "threshold", "verdict"),
    [
        (0, 0, 0.5, IRRELEVANT),  # nothing was found
        (0, 0, 0.0, IRRELEVANT),
        (0, 3, 0.5, NON_COMPLIANT),  # first branch
        (0, 1, 0.0, NON_COMPLIANT),  # the first branch, though 0 >= 0
        (1, 1, 0.5, COMPLIANT),  # second branch, at the threshold
        (3, 0, 1.0, COMPLIANT),
        (1, 9, 0.1, COMPLIANT),
        (1, 2, 0.5, NON_COMPLIANT),  # otherwise
        (9, 1, 1.0, NON_COMPLIANT),
    ],
)
def test_the_three_branches_of_the_verdict(
    supporting: int, contradicting: int, threshold: float, verdict: SessionVerdict
) -> None:
    assert verdict_of(supporting, contradicting, threshold) is verdict
    if supporting + contradicting:
        found = judged([1.0] * supporting + [0.0] * contradicting, compliance_threshold=threshold)
        assert found.verdict is verdict
        assert found.compliance_score == supporting / (supporting + contradicting)


def test_the_score_is_the_share_of_supporting_passages() -> None:
    assert judged([0.9, 0.8, 0.1]).compliance_score == 2 / 3
    assert judged([0.9, 0.8, 0.1], variant="reference").compliance_score == 0.6667


@pytest.mark.parametrize("variant", ["paper", "reference", "stance"])
def test_a_turn_that_nothing_covers_is_irrelevant_and_scores_the_threshold(variant: str) -> None:
    model: Any = Judge({}) if variant == "stance" else Said({})
    settings = Settings(variant=variant, compliance_threshold=0.7)  # type: ignore[arg-type]
    (found,) = Regulatory(Held("far"), Toward({"far": 0.1}), model, settings).batch("s", "a", [turn()])
    assert (found.verdict, found.compliance_score, found.retrieved_chunks) == (IRRELEVANT, 0.7, [])
    assert found.insight == "No passage of the corpus is similar to this query or response."


def test_an_empty_response_is_found_by_its_query_and_supported_by_nothing() -> None:
    """By the paper's rule a low score contradicts: saying nothing where the corpus has a rule is not compliant."""
    embedder = embedder_by_name("wordllama")
    text = "Providers keep the logs for six months."
    found = Regulatory(Held(text), embedder, CosineReranker(embedder)).batch(
        "s", "a", [turn("1", "How long do providers keep the logs?", ""), turn("2", "", "")]
    )
    assert [one.verdict for one in found] == [NON_COMPLIANT, IRRELEVANT]
    assert found[0].retrieved_chunks[0].reranker_score == 0


def test_the_insight_says_what_was_counted() -> None:
    assert judged([1.0, 0.0, 0.0]).insight == (
        "NON_COMPLIANT: 1 of 3 passages support the response, 2 contradict it."
    )


# --- laws ---


@given(scores, thresholds, thresholds, binary)
def test_a_higher_contradiction_threshold_never_adds_a_supporting_passage(
    given: list[float], one: float, other: float, variant: str
) -> None:
    low, high = sorted((one, other))
    before = judged(given, contradiction_threshold=low, variant=variant)
    after = judged(given, contradiction_threshold=high, variant=variant)
    kept = {chunk.source for chunk in before.retrieved_chunks if chunk.verdict is S}
    assert {chunk.source for chunk in after.retrieved_chunks if chunk.verdict is S} <= kept


@given(scores, thresholds, thresholds, binary)
def test_a_higher_compliance_threshold_never_makes_a_turn_compliant(
    given: list[float], one: float, other: float, variant: str
) -> None:
    low, high = sorted((one, other))
    before = judged(given, compliance_threshold=low, variant=variant)
    after = judged(given, compliance_threshold=high, variant=variant)
    assert not (before.verdict is NON_COMPLIANT and after.verdict is COMPLIANT)


@given(scores, thresholds, thresholds, binary)
def test_scores_stay_in_bounds_and_counts_add_up(
    given: list[float], contradiction: float, compliance: float, variant: str
) -> None:
    found = judged(
        given, contradiction_threshold=contradiction, compliance_threshold=compliance, variant=variant
    )
    assert 0 <= found.compliance_score <= 1
    assert found.supporting_chunks + found.contradicting_chunks == len(found.retrieved_chunks) == len(given)
    assert found.supporting_chunks == sum(score >= contradiction for score in given)


# --- rerankers that return invalid scores ---


class Gives(Reranker):
    """Gives what it is made with, whatever it is asked."""

    def __init__(self, came: Any) -> None:
        self._came = came

    def score(self, query: str, documents: list[str]) -> Any:
        return self._came


NO_SCORES = {
    "NaN": [float("nan"), 0.5],
    "infinity": [float("inf"), 0.5],
    "a logit": [3.2, 0.5],
    "a negative": [0.5, -0.1],
    "one for two": [0.5],
    "three for two": [0.5] * 3,
    "a column": [[0.5], [0.5]],
    "texts": ["high", "low"],
    "nothing": None,
}


@pytest.mark.parametrize("variant", ["paper", "reference"])
@pytest.mark.parametrize("came", NO_SCORES.values(), ids=NO_SCORES)
def test_an_invalid_score_is_refused_by_the_name_of_its_reranker(came: Any, variant: str) -> None:
    held = Regulatory(
        Held("x", "y"),
        Toward({"x": 1.0, "y": 1.0}),
        Gives(came),
        Settings(variant=variant),  # type: ignore[arg-type]
    )
    with pytest.raises(InvalidArgument, match=r"the reranker 'Gives' returned .*; want"):
        held.batch("s", "a", [turn()])


@pytest.mark.parametrize("wrong", [object(), Said, None, "minilm"])
def test_an_invalid_reranker_or_embedder_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgument, match=r"the reranker is .*; want"):
        as_reranker(wrong)
    with pytest.raises(InvalidArgument, match=r"the embedder is .*; want"):
        as_embedder(wrong)


def test_names_and_fingerprints_are_those_of_the_class_unless_stated() -> None:
    class Stated(Reranker):
        name, fingerprint, remote = "mine", "abc", True

        def score(self, query: str, documents: list[str]) -> list[float]:
            return [1.0] * len(documents)

    assert (Stated.name, Stated.fingerprint, Stated.remote) == ("mine", "abc", True)
    assert (Said.name, Said.remote) == ("Said", False)
    assert Said.fingerprint != Gives.fingerprint


def test_a_derived_class_is_not_taken_for_its_parent() -> None:
    class Derived(Toward):
        pass

    class Renamed(Toward):
        name = "renamed"

    class Computed(Toward):
        @property
        def fingerprint(self) -> str:  # type: ignore[override]
            return "of its weights"

    assert (Derived.name, Renamed.name) == ("Derived", "renamed")
    assert len({Toward.fingerprint, Derived.fingerprint, Renamed.fingerprint}) == 3
    assert Computed({}).fingerprint == "of its weights"


# --- the cosine as a reranker ---


def test_the_cosine_reranker_embeds_a_corpus_once_and_knows_no_negative() -> None:
    cosines = {"here": 1.0, "there": 0.5, "behind": -1.0, "asked": 1.0}
    embedder = Toward(cosines)
    reranker = CosineReranker(embedder)
    assert reranker.score("asked", ["here", "there", "behind"]) == [1.0, 0.5, 0.0]
    assert reranker.score("asked", ["there", "here"]) == [0.5, 1.0]
    assert embedder.seen == ["here", "there", "behind", "asked", "asked"]


def test_the_cosine_reranker_has_nothing_to_say_of_nothing() -> None:
    reranker = CosineReranker(Toward({"here": 1.0}))
    assert reranker.score(" ", ["here"]) == [0.0]
    assert reranker.score("here", []) == []


def test_the_cosine_reranker_refuses_invalid_vectors() -> None:
    class Short(Toward):
        def encode(self, sentences: list[str]) -> Any:
            return super().encode(sentences)[1:]

    with pytest.raises(InvalidArgument, match="the embedder 'Short' returned"):
        CosineReranker(Short({"x": 1.0, "y": 0.0})).score("x", ["x", "y"])


def test_a_turn_is_what_it_says() -> None:
    with pytest.raises(ValueError, match="weight"):
        Batch(qa_id="1", query="q", assistant="a", weight=-1)
    for weight in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="weight"):
            Batch(qa_id="1", query="q", assistant="a", weight=weight)
    with pytest.raises(ValueError, match="extra"):
        Batch(qa_id="1", query="q", assistant="a", wait=1)  # type: ignore[call-arg]
