"""A goal is met, missed by an amount, or not judged: one wrong row misses it, too few rows do not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from carag.evaluation.report.goals import GOALS, GoalState, Measured, judge_goal
from carag.evaluation.report.report import report
from carag.evaluation.row import SYSTEMS
from carag.evaluation.run_metadata import RunMetadata, Trials, Worlds
from carag.evaluation.statistics.latency import latencies
from tests.evaluation.rows import benchmark, sha

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.evaluation.report.goals import GoalResult
    from carag.evaluation.report.report import Report
    from carag.evaluation.row import Row

ROWS = benchmark(filers=20, per_filer=6, sessions=1)
AT_PAPER_SIZE = RunMetadata(
    *("paper", 26_595, 6_000, 877),
    trials=(Trials("carag-auto", 1_000_000, 0, 8_000_000, 1),),
    worlds=Worlds(400, 0, 6, 90_000),
)


OURS = ("carag-auto", "carag-certified")


def results(
    rows: list[Row], metadata: RunMetadata | None = AT_PAPER_SIZE, *, of: tuple[str, ...] = SYSTEMS
) -> dict[str, GoalResult]:
    """Judge rows; those of systems that the goals in question are not about may be left out."""
    (section,) = report([row for row in rows if row.system in of], metadata=metadata).sections
    return {result.goal.name: result for result in section.results}


def spoilt(system: str, change: Callable[[Row], Row], *, which: int = 7) -> list[Row]:
    """Change one row of a system, of the reported split."""
    at = [at for at, row in enumerate(ROWS) if row.system == system and row.split == "reported"][which]
    return [*ROWS[:at], change(ROWS[at]), *ROWS[at + 1 :]]


@cache
def whole() -> Report:
    return report(ROWS, metadata=AT_PAPER_SIZE)


@cache
def clean() -> dict[str, GoalResult]:
    return {result.goal.name: result for result in whole().sections[0].results}


def judged(metadata: RunMetadata | None = AT_PAPER_SIZE, rows: list[Row] = ROWS) -> dict[str, GoalResult]:
    """Judge rows that differ from `ROWS` in their times only: no other figure is measured again."""
    times = latencies([row for row in rows if row.split == "reported"])
    facts = Measured(whole().sections[0].slices, times, metadata, whole().counts.real_pairs)
    return {goal.name: judge_goal(goal, facts) for goal in GOALS}


def test_figures_once_measured_are_judged_as_the_report_does() -> None:
    """Also where the systems that a goal is not about were left out."""
    assert judged() == clean()
    late = slow("carag-certified", 5.5)
    assert judged(rows=late) == results(late)
    fewer = results(ROWS, of=(*OURS, "oracle"))
    same = [name for name in clean() if fewer[name] == clean()[name]]
    assert {goal.name for goal in GOALS if goal.other in ("", "oracle")} - set(same) == {
        f"ablation:{system}" for system in ("carag-withheld-text", "carag-no-gate", "carag-no-refusal")
    }


def test_every_goal_is_judged_once() -> None:
    assert len(clean()) == len(GOALS) == len({goal.name for goal in GOALS})
    assert list(clean()) == [goal.name for goal in GOALS]
    assert all((result.state is GoalState.MISSED) == (result.by is not None) for result in clean().values())
    assert all(result.why for result in clean().values())


def test_a_faultless_system_meets_all_but_what_was_not_run() -> None:
    unmet = {name: result.state for name, result in clean().items() if result.state is not GoalState.MET}
    assert unmet.pop("carag-auto:p95", None) in (None, GoalState.MISSED)  # times are drawn at random
    assert unmet == {
        "carag-certified:trials": GoalState.NOT_MEASURED,
        "pairs": GoalState.NEEDS_FULL_RUN,
        "carag-certified:evidence-full": GoalState.NOT_MEASURED,
        "vanilla:financebench": GoalState.NOT_MEASURED,  # no question comes from that data set
    }


def leak(row: Row) -> Row:
    return replace(
        row,
        retrieved=("hidden", *row.retrieved[1:]),
        retrieved_admissible=(False, *row.retrieved_admissible[1:]),
    )


@pytest.mark.parametrize(
    ("goal", "system", "change", "by"),
    [
        ("carag-auto:cvr_query=0", "carag-auto", leak, 1 / 120),
        ("carag-auto:cvr_chunk=0", "carag-auto", leak, None),
        ("carag-auto:cvr_touch=0", "carag-auto", lambda row: replace(row, touched=("hidden",)), 1 / 120),
        (
            "carag-certified:odr_canary=0",
            "carag-certified",
            lambda row: replace(row, canaries_planted=("k",), canaries_disclosed=("k",)),
            None,
        ),
        (
            "carag-certified:noninterference",
            "carag-certified",
            lambda row: replace(row, answer_sha256=sha("another")),
            1 / 120,
        ),
    ],
)
def test_one_wrong_row_misses_the_goal(
    goal: str, system: str, change: Callable[[Row], Row], by: float | None
) -> None:
    missed = results(spoilt(system, change), of=(system, "oracle"))[goal]
    assert missed.state is GoalState.MISSED
    assert missed.by is not None
    assert missed.by > 0
    if by is not None:
        assert missed.by == pytest.approx(by, rel=1e-4)


def test_a_pair_that_was_not_asked_leaves_safety_unmeasured() -> None:
    """What was not asked may have leaked."""
    fewer = [row for row in ROWS if not (row.system == "carag-auto" and row.question_id == "q3-1")]
    found = results(fewer, of=OURS)
    assert found["carag-auto:cvr_query=0"].state is GoalState.NOT_MEASURED
    assert "99 of 100 pairs of real" in found["carag-auto:cvr_query=0"].why
    assert found["carag-certified:cvr_query=0"].state is GoalState.MET


def blind(system: str, many: int) -> list[Row]:
    """Of each passage list of a system some are left out, gold among them."""
    return [
        replace(row, retrieved=row.retrieved[many:], retrieved_admissible=row.retrieved_admissible[many:])
        if row.system == system
        else row
        for row in ROWS
    ]


def test_losing_to_a_post_filter_misses_only_if_the_whole_interval_is_below_zero() -> None:
    some = ("carag-auto", "postfilter-4")
    found = results(blind("carag-auto", 4), of=some)
    assert found["carag-auto:evidence>=postfilter-4"].state is GoalState.MISSED
    assert "worst of" in found["carag-auto:evidence>=postfilter-4"].why
    better = results(blind("postfilter-4", 4), of=some)
    assert better["carag-auto:evidence>=postfilter-4"].state is GoalState.MET


def test_f1_is_no_goal() -> None:
    """It is as high with wrong passages, so it must not be tuned for."""
    assert not [goal.name for goal in GOALS if goal.measure.startswith("f1")]
    useless = [replace(row, f1=0.0) for row in ROWS]
    assert {name: result.state for name, result in results(useless).items()} == {
        name: result.state for name, result in clean().items()
    }


@pytest.mark.parametrize(
    ("goal", "change"),
    [
        ("cites_gold", lambda row: replace(row, cited=(), cited_elsewhere=None)),
        ("wrong_company=0", lambda row: replace(row, cited=("b:0",), cited_elsewhere=("b:0",))),
        ("over_refusal", lambda row: replace(row, outcome="decline", f1=0.0, cited=(), figure_right=False)),
        ("evidence", lambda row: replace(row, retrieved=(), retrieved_admissible=())),
    ],
)
def test_what_a_user_notices_misses_a_goal(goal: str, change: Callable[[Row], Row]) -> None:
    bad = [
        change(row)
        if row.system == "carag-certified" and (row.outcome == "answer" or goal == "evidence")
        else row
        for row in ROWS
    ]
    assert clean()[f"carag-certified:{goal}"].state is GoalState.MET
    assert results(bad, of=("carag-certified",))[f"carag-certified:{goal}"].state is GoalState.MISSED


def test_answering_from_nothing_misses_its_goal_and_answering_from_a_part_does_not() -> None:
    def bold(share: str) -> GoalState:
        rows = [
            replace(row, outcome="answer")
            if row.system == "carag-certified" and row.stratum.share == share
            else row
            for row in ROWS
        ]
        return results(rows, of=("carag-certified",))["carag-certified:answered_hidden"].state

    assert (bold("void"), bold("medium")) == (GoalState.MISSED, GoalState.MET)


def test_a_data_set_is_judged_alone_and_without_a_mask() -> None:
    """Half of the questions belong to it; what vanilla finds for the others does not count."""

    def found(of_it: int, others: int) -> GoalResult:
        rows = [
            replace(
                row,
                question_id=("financebench_" if int(row.question_id[-1]) % 2 else "docugami-")
                + row.question_id,
                retrieved=row.retrieved[: of_it if int(row.question_id[-1]) % 2 else others],
                retrieved_admissible=row.retrieved_admissible[
                    : of_it if int(row.question_id[-1]) % 2 else others
                ],
            )
            for row in ROWS
            if row.system == "vanilla"
        ]
        return results(rows)["vanilla:financebench"]

    assert found(8, 0).state is GoalState.MET
    assert found(0, 8).state is GoalState.MISSED


def test_a_goal_of_one_size_is_not_judged_at_another() -> None:
    full = replace(AT_PAPER_SIZE, corpus="full", chunks=221_465)
    assert judged(full)["carag-certified:evidence-full"].state is GoalState.MET
    assert judged(full)["carag-certified:evidence"].state is GoalState.NOT_MEASURED
    assert judged(None)["carag-certified:evidence"].state is GoalState.NOT_MEASURED
    assert "better 0.5" in clean()["carag-certified:evidence"].goal.statement


def refusing(system: str, outcome: str, *, answerable: bool) -> list[Row]:
    return [
        replace(row, outcome=outcome, f1=0.0, cited=(), figure_right=False)
        if row.system == system and row.answerable is answerable
        else row
        for row in ROWS
    ]


def test_refusing_and_answering_wrongly_are_told_apart() -> None:
    some = ("carag-auto", "oracle")
    assert clean()["carag-auto:over_refusal~oracle"].why.endswith("the interval reaches farther")
    shy = results(refusing("carag-auto", "decline", answerable=True), of=some)
    assert shy["carag-auto:over_refusal~oracle"].by == pytest.approx(0.99)
    assert shy["carag-auto:under_refusal~oracle"].state is GoalState.MET
    bold = results(refusing("carag-auto", "answer", answerable=False), of=some)
    assert bold["carag-auto:under_refusal~oracle"].by == pytest.approx(0.99)
    assert bold["carag-auto:over_refusal~oracle"].state is GoalState.MET


def test_a_stratum_too_small_is_not_measured() -> None:
    small = results(benchmark(filers=19, per_filer=6, sessions=1), of=("carag-auto", "oracle"))
    assert small["carag-auto:recall"].state is GoalState.NOT_MEASURED
    assert "100 questions and 20 filers" in small["carag-auto:recall"].why
    assert clean()["carag-auto:recall"].state is GoalState.MET


QUICK = replace(
    AT_PAPER_SIZE, corpus="builtin", chunks=300, trials=tuple(Trials(one, 20_000, 0, 9, 1) for one in OURS)
)


def test_what_a_small_run_cannot_reach_it_has_not_missed() -> None:
    """A goal that wants more rows than a small run has waits for the full run; all others are judged."""
    few = benchmark(filers=3, per_filer=4, sessions=1)
    found = results(few, QUICK)
    assert GoalState.MISSED not in {result.state for result in found.values()}
    waiting = {name for name, result in found.items() if result.state is GoalState.NEEDS_FULL_RUN}
    strata = {goal.name for goal in GOALS if goal.strata}
    assert {"pairs", "carag-auto:trials", "carag-auto:p95", "carag-certified:p95", *strata} <= waiting
    assert found["carag-auto:cvr_query=0"].state is GoalState.MET
    assert not any(found[name].by for name in waiting)


def test_what_a_small_run_did_see_is_a_miss() -> None:
    """Neither a leak nor a figure on the wrong side is excused by the size."""
    few = benchmark(filers=3, per_filer=4, sessions=1)
    at = next(at for at, row in enumerate(few) if row.system == "carag-auto" and row.split == "reported")
    leaking = [*few[:at], leak(few[at]), *few[at + 1 :]]
    assert results(leaking, QUICK)["carag-auto:cvr_query=0"].state is GoalState.MISSED
    violating = replace(QUICK, trials=(Trials("carag-auto", 20_000, 1, 9, 1),))
    assert results(few, violating)["carag-auto:trials"].state is GoalState.MISSED
    astray = [replace(row, cited=("b:0",), cited_elsewhere=("b:0",)) if row.f1 else row for row in few]
    assert results(astray, QUICK)["carag-certified:wrong_company=0"].state is GoalState.MISSED


def test_a_system_that_a_small_run_left_out_is_not_measured() -> None:
    """The full run leaves it out as well."""
    some = results(benchmark(filers=3, per_filer=4, sessions=1), QUICK, of=("carag-certified", "oracle"))
    assert some["carag-auto:recall"].state is GoalState.NOT_MEASURED
    assert some["carag-certified:recall"].state is GoalState.NEEDS_FULL_RUN


def slow(system: str, ms: float) -> list[Row]:
    return [
        replace(row, latency_ms={**row.latency_ms, "retrieve": ms}) if row.system == system else row
        for row in ROWS
    ]


def test_times_count_at_paper_size_only() -> None:
    late = judged(rows=slow("carag-certified", 5.5))["carag-certified:p95"]
    assert (late.state, late.by) == (GoalState.MISSED, 0.5)
    assert judged(rows=slow("carag-certified", 5.0))["carag-certified:p95"].state is GoalState.MET
    for metadata, state in (
        (None, GoalState.NOT_MEASURED),
        (replace(AT_PAPER_SIZE, chunks=26_594), GoalState.NOT_MEASURED),
        (replace(AT_PAPER_SIZE, corpus="builtin"), GoalState.NEEDS_FULL_RUN),
    ):
        assert judged(metadata, slow("carag-certified", 5.5))["carag-certified:p95"].state is state
    assert judged(rows=slow("vanilla", 0.0))["carag-auto:p95"].state is GoalState.MISSED
    assert judged(rows=slow("vanilla", 9.0))["carag-auto:p95"].state is GoalState.MET


@pytest.mark.parametrize(
    ("trials", "state", "by"),
    [
        ((), GoalState.NOT_MEASURED, None),
        ((Trials("vanilla", 2_000_000, 0, 0, 1),), GoalState.NOT_MEASURED, None),
        ((Trials("carag-auto", 999_999, 0, 0, 1),), GoalState.NEEDS_FULL_RUN, None),
        ((Trials("carag-auto", 10, 1, 0, 1),), GoalState.MISSED, 0.1),
        ((Trials("carag-auto", 2_000_000, 1, 0, 1),), GoalState.MISSED, 5e-7),
        (
            (Trials("carag-auto", 500_000, 0, 0, 1), Trials("carag-auto", 500_000, 0, 0, 2)),
            GoalState.MET,
            None,
        ),
    ],
)
def test_trials_want_a_million_without_a_violation(
    trials: tuple[Trials, ...], state: GoalState, by: float | None
) -> None:
    found = judged(replace(AT_PAPER_SIZE, trials=trials))["carag-auto:trials"]
    assert (found.state, found.by) == (state, by)


def test_systems_that_did_not_run_are_not_measured() -> None:
    alone = results([row for row in ROWS if row.system == "vanilla"], None)
    assert alone.pop("pairs").state is GoalState.NEEDS_FULL_RUN
    assert {result.state for result in alone.values()} == {GoalState.NOT_MEASURED}


@pytest.mark.parametrize(
    ("worlds", "state", "by"),
    [
        (None, GoalState.NOT_MEASURED, None),
        (Worlds(0, 0, 0, 0), GoalState.NOT_MEASURED, None),
        (Worlds(400, 1, 6, 90_000), GoalState.MISSED, 0.0025),
        (Worlds(400, 0, 6, 90_000), GoalState.MET, None),
    ],
)
def test_one_answer_that_differs_between_worlds_misses(
    worlds: Worlds | None, state: GoalState, by: float | None
) -> None:
    found = judged(replace(AT_PAPER_SIZE, worlds=worlds))["carag-certified:worlds"]
    assert (found.state, found.by) == (state, by)


def test_a_kind_that_was_not_asked_at_all_is_named() -> None:
    rows = [
        *ROWS,
        *(
            replace(row, kind="adversary:relabel")
            for row in ROWS
            if row.system in ("oracle", "carag-certified") and row.question_id == "q3-1"
        ),
    ]
    found = results(rows, of=(*OURS, "oracle"))
    assert found["carag-auto:cvr_query=0"].why.endswith("not asked: adversary:relabel")
    assert "not asked" not in found["carag-certified:cvr_query=0"].why
