"""Claims about the thresholds that a profile ships: each of an embedder that was measured, and of no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carag.errors import InvalidArgument
from carag.policy import Profile
from carag.policy.shipped import SHIPPED
from carag.retrieval import (
    BASELINE,
    DEFAULT_EMBEDDER,
    ConfidenceGate,
    calibrations_of,
    gate_for,
    threshold_for,
)
from carag.retrieval.confidence import shipped
from carag.retrieval.reading import Declared

EDGAR = Profile.open("edgar")
GOOD = EDGAR.reading["gate.toml"]


def profile(text: str | None) -> Profile:
    rest = {name: one for name, one in EDGAR.reading.items() if name != "gate.toml"}
    return replace(EDGAR, reading=rest if text is None else {**rest, "gate.toml": text})


OWN = {DEFAULT_EMBEDDER, "wordllama"}


@pytest.mark.parametrize("name", ["circulars", "edgar"])
def test_a_profile_whose_documents_were_measured_ships_a_gate(name: str) -> None:
    """Each keeps the stated rule: at most 5 % of the in-scope questions declined."""
    found = calibrations_of(Profile.open(name))
    assert OWN <= set(found)
    for embedder, one in found.items():
        assert 20 * one.in_scope_declined <= one.in_scope
        assert one.out_of_scope_declined > one.in_scope_declined
        assert ConfidenceGate(one.threshold) == gate_for(Profile.open(name), embedder)


@pytest.mark.parametrize("embedder", sorted(OWN))
@pytest.mark.parametrize("made", [*map(Profile.open, ("clinical", "generic")), profile(None)])
def test_before_other_documents_the_gate_stands_at_the_embedders_own_baseline_and_says_so(
    made: Profile, embedder: str
) -> None:
    """It rises with the number of passages, from less than is asked of filings to about as much."""
    gate = gate_for(made, embedder)
    assert not gate.calibrated
    assert "a baseline of" in gate.standing
    assert "measured on five corpora, and was not calibrated for these documents" in gate.standing
    levels = [gate.among(10**digits).threshold for digits in range(7)]
    assert levels == sorted(levels)
    assert levels[0] < levels[1] < levels[2] < levels[-1] == gate.threshold < threshold_for(embedder)


@pytest.mark.parametrize("embedder", sorted(OWN))
def test_a_baseline_keeps_the_rule_that_it_states(embedder: str) -> None:
    """At most 5 % of the in-scope questions declined, and more of the others than of them."""
    for one in shipped._baselines().embedder[embedder]:
        assert one.in_scope_declined <= 0.05 < one.out_of_scope_declined


@pytest.mark.parametrize("made", [*map(Profile.open, SHIPPED), profile(None), profile("schema = 1")])
def test_an_embedder_that_no_calibration_names_starts_at_the_baseline_and_says_so(made: Profile) -> None:
    gate = gate_for(made, "bedrock:cohere.embed-multilingual-v3")
    assert ConfidenceGate(BASELINE, calibrated=False) == gate
    assert 0.65 == BASELINE
    assert "the gate stands at its baseline of 0.65: calibrate it with carag gate calibrate" == gate.standing


def test_no_threshold_is_carried_over() -> None:
    """An embedder that was never calibrated has no threshold to borrow."""
    assert 0.5 == threshold_for("minilm")
    with pytest.raises(InvalidArgument, match="no gate is calibrated"):
        threshold_for("bedrock:cohere.embed-multilingual-v3")


def test_a_gate_moves_no_passage() -> None:
    """What records say of how questions are read does not depend on it, so a new threshold keeps every ranker."""
    digests = {Declared.of(profile(text)).sha256 for text in (None, GOOD, GOOD.replace("0.50", "0.51"))}
    assert 1 == len(digests)


WRONG = {
    "a percentage": (
        GOOD.replace("threshold = 0.50", "threshold = 50.0"),
        "line 8: .*less than or equal to 1",
    ),
    "an unknown key": (GOOD.replace("calibrated = true", "calibrate = true"), "calibrate"),
    "more declined than asked": (
        GOOD.replace("in_scope_declined = 7", "in_scope_declined = 151", 1),
        "more questions were declined than asked",
    ),
    "no number": ("schema = true", "line 1: .*want 1"),
    "no version": (GOOD.replace("schema = 1", ""), "schema"),
    "a threshold alone": ("schema = 1\n[embedder.mine]\nthreshold = 0.4", "measured_on"),
    "another embedder twice": (GOOD + "[embedder.minilm]\nthreshold = 0.1", "not valid TOML"),
}


@pytest.mark.parametrize(("text", "why"), WRONG.values(), ids=WRONG)
def test_a_file_that_is_not_valid_is_refused_with_the_line(text: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^gate\.toml, line \d+: [\s\S]*") as refused:
        calibrations_of(profile(text))
    assert refused.match(why)
