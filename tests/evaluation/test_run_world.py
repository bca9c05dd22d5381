"""What the judge holds to be admissible is what the engine hands out, and what the systems do is judged by it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.corpus.values import Labels
from carag.errors import InvalidArgument
from carag.evaluation.asking import Models
from carag.evaluation.built import built_pairs
from carag.evaluation.judge import row_of
from carag.evaluation.neighbours import Hnsw
from carag.evaluation.noninterference import compare_worlds, told
from carag.evaluation.pairs import CELLS, cross, pairs_for_model, share_of, split_of
from carag.evaluation.row import SYSTEMS
from carag.evaluation.systems import K, Systems
from carag.evaluation.trials import run_trials
from carag.generation import Extractive
from carag.index import Index
from carag.policy import NEVER, VERSION_WORD, Mask, Policy, Session
from carag.retrieval import ConfidenceGate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.evaluation.pairs import Pair
    from tests.evaluation.conftest import Small

QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"
DAYS = [None, date(2023, 6, 1), date(2024, 5, 1), date(2025, 4, 1)]


def models(small: Small) -> Models:
    return Models(small.embedder, Extractive(), ConfidenceGate(0.3))


@pytest.fixture(scope="module")
def pairs(small: Small) -> list[Pair]:
    real = cross(
        small.world, small.built.questions, small.built.gold, small.embedder.vectors, count=60, seed=0
    )
    return real + built_pairs(small.world, small.embedder, count=12, seed=0)


@pytest.fixture(scope="module")
def systems(small: Small) -> Iterator[Systems]:
    with Systems(small.built.store, small.world, models(small), seed=0) as opened:
        yield opened


@pytest.mark.parametrize("day", DAYS, ids=str)
def test_the_plain_reading_admits_exactly_what_the_engine_hands_out(
    small: Small, systems: Systems, day: date | None
) -> None:
    """Every chunk, every cell: neither misses one, neither adds one."""
    seen = set()
    for role, purpose in CELLS:
        about = frozenset(small.world.filers) - {0} if purpose == "dsar" else None
        session = Session(role=role, purpose=purpose, as_of=day, allow_entities=about)
        mask = small.world.admissible(session, QUESTION)
        assert mask is not None
        handed = {one.chunk_id for one in systems.engine.retrieve(QUESTION, session, k=400).passages}
        assert handed == {small.world.ids[row] for row in np.flatnonzero(mask)}
        seen.add(len(handed))
    assert len(seen) > 3  # sessions that all see the same would prove little


def test_the_questions_words_tighten_the_judges_reading_too(small: Small, systems: Systems) -> None:
    session = Session(role="buy_side", purpose="invest")
    for question in ("What do audited statements say?", "What is the latest report?"):
        mask = small.world.admissible(session, question)
        plain = small.world.admissible(session, "What is said?")
        assert mask is not None
        assert plain is not None
        assert mask.sum() < plain.sum()
        assert not (mask & ~plain).any()
        handed = systems.engine.retrieve(question, session, k=400).passages
        assert {one.chunk_id for one in handed} == {small.world.ids[row] for row in np.flatnonzero(mask)}


def test_a_session_the_table_refuses_is_refused_by_all_that_know_it(small: Small, systems: Systems) -> None:
    session = Session(role="auditor", purpose="publish")
    assert small.world.admissible(session, QUESTION) is None
    pair = replace(
        cross(small.world, small.built.questions, small.built.gold, small.embedder.vectors, count=1, seed=0)[
            0
        ],
        session=session,
    )
    for name in SYSTEMS:
        outcome = systems.ask(name, pair).outcome
        assert (outcome == "refuse") == (name not in {"vanilla", "prefilter-rbac"}), name


def test_certified_and_auto_find_what_the_oracle_finds(systems: Systems, pairs: list[Pair]) -> None:
    """At this size every plan is exact; so are text and outcome the same."""
    for pair in pairs:
        oracle = systems.ask("oracle", pair)
        for name in ("carag-certified", "carag-auto"):
            said = systems.ask(name, pair)
            assert (said.retrieved, said.outcome, said.text) == (
                oracle.retrieved,
                oracle.outcome,
                oracle.text,
            )


def test_only_systems_that_ignore_the_policy_violate_it(
    small: Small, systems: Systems, pairs: list[Pair]
) -> None:
    violating = dict.fromkeys(SYSTEMS, 0)
    touching = dict.fromkeys(SYSTEMS, 0)
    for pair in pairs[::3]:
        oracle = systems.ask("oracle", pair)
        for name in SYSTEMS:
            row = row_of(
                small.world,
                pair,
                name,
                systems.ask(name, pair),
                oracle,
                embedder="e",
                generator="g",
                seed=0,
            )
            violating[name] += not all(row.retrieved_admissible)
            touching[name] += bool(row.touched)
    assert {name for name, count in violating.items() if count} == {"vanilla", "prefilter-rbac"}
    assert {name for name, count in touching.items() if count} == {
        "vanilla",
        "prefilter-rbac",
        "carag-withheld-text",
    }


def test_the_judge_does_not_believe_a_system(small: Small, systems: Systems, pairs: list[Pair]) -> None:
    """A search that lets one hidden chunk through is seen, whatever it says of itself."""
    pair = next(one for one in pairs if one.stratum.share == "void" and one.gold_rows)
    oracle = systems.ask("oracle", pair)
    hidden = pair.gold_rows[0]
    leaking = replace(
        oracle,
        retrieved=(hidden,),
        shown=(small.world.ids[hidden],),
        text=small.world.text(hidden),
        outcome="answer",
    )
    row = row_of(small.world, pair, "carag-auto", leaking, oracle, embedder="e", generator="g", seed=0)
    assert row.retrieved_admissible == (False,)
    assert row.touched == (small.world.ids[hidden],)
    assert row.ngram_overlap > 0.5
    assert row.existence_disclosed


def test_postfilter_returns_too_few_and_says_so_by_its_count(systems: Systems, pairs: list[Pair]) -> None:
    short = [pair for pair in pairs if len(systems.ask("postfilter-1", pair).retrieved) < K]
    assert short
    assert all(
        len(systems.ask("postfilter-1", pair).retrieved) <= len(systems.ask("postfilter-16", pair).retrieved)
        for pair in short
    )


def test_gold_is_found_for_every_question_with_evidence(small: Small) -> None:
    """Of the shipped questions each quote stands in some chunk, and in the filing it names."""
    asked = {one.id: one for one in small.built.questions}
    for name, pieces in small.built.gold.items():
        if name not in asked:
            continue
        filings = {doc for piece in asked[name].evidence for doc, _ in piece.alternatives}
        rows = [row for piece in pieces for row in small.world.rows_at(piece)]
        assert {small.world.filing(row).accession_number for row in rows} <= filings
    assert small.built.dropped <= 1


def test_shares_and_splits() -> None:
    mask = np.array([True, True, False, False])
    assert [share_of(rows, mask) for rows in ((0, 1), (0, 2), (0, 2, 3, 2), (2,), ())] == [
        "loose",
        "medium",
        "tight",
        "void",
        "void",
    ]
    assert share_of((0,), None) == "void"
    splits = [split_of(f"q{number}") for number in range(2_000)]
    assert 0.15 < splits.count("dev") / len(splits) < 0.25
    assert splits == [split_of(f"q{number}") for number in range(2_000)]


def test_crossing_is_seeded_and_keeps_a_question_in_one_split(small: Small) -> None:
    def draw(seed: int) -> list[Pair]:
        return cross(
            small.world, small.built.questions, small.built.gold, small.embedder.vectors, count=50, seed=seed
        )

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    splits: dict[str, set[str]] = {}
    for pair in draw(1):
        splits.setdefault(pair.question.id, set()).add(pair.split)
    assert all(len(found) == 1 for found in splits.values())
    assert {"loose", "medium", "void"} <= {pair.stratum.share for pair in draw(1)}


def test_a_slow_model_is_asked_what_can_be_compared(pairs: list[Pair]) -> None:
    """Reported real pairs, two thirds with an answer to compare with; where they run out, all there are of the rest."""
    reported = [pair for pair in pairs if pair.split == "reported" and pair.kind == "real"]
    comparable = [pair for pair in reported if pair.answerable and pair.question.answer is not None]
    assert 3 < len(comparable) < len(reported) - 2
    for count in (0, 1, 3, len(reported), len(reported) + 9):
        chosen = pairs_for_model(pairs, count=count, seed=0)
        assert chosen == pairs_for_model(pairs, count=count, seed=0)
        assert len(chosen) == min(count, len(reported)) == len({id(pair) for pair in chosen})
        assert all(pair in reported for pair in chosen)
        shown = sum(pair in comparable for pair in chosen)
        assert shown >= min(len(comparable), 2 * len(chosen) / 3)


def test_built_questions_fill_the_strata_between(small: Small) -> None:
    found = built_pairs(small.world, small.embedder, count=20, seed=0)
    assert {"tight", "medium"} <= {pair.stratum.share for pair in found}
    for pair in found:
        assert len({small.world.filers[row] for row in pair.gold_rows}) == 4
        assert pair.kind == "built"


def test_what_is_hidden_changes_nothing(small: Small, pairs: list[Pair], tmp_path: Path) -> None:
    """Through Engine.ask, against stores rebuilt without it."""
    # The engine of the other fixture holds the store: ask in a copy.
    import shutil

    store = tmp_path / "store"
    shutil.copytree(small.built.store, store, ignore=shutil.ignore_patterns("*.lock"))
    result = compare_worlds(
        store,
        small.world,
        pairs[:12],
        tmp_path,
        models(small),
    )
    assert result.asked == 12
    assert result.rows_deleted > 500
    assert result.differing == ()


def test_the_comparison_sees_a_difference(small: Small, systems: Systems) -> None:
    """Its eyes are tested: one bit of one similarity, one passage more."""
    answer = systems.engine.ask(QUESTION, Session(role="buy_side", purpose="invest"))
    nearly = replace(answer.passages[0], similarity=float(np.nextafter(answer.passages[0].similarity, 2)))
    assert told(answer) == told(replace(answer, receipt=None))  # type: ignore[arg-type]
    assert told(answer) != told(replace(answer, passages=(nearly, *answer.passages[1:])))
    assert told(answer) != told(replace(answer, passages=answer.passages[:-1]))
    assert told(answer) != told(replace(answer, text=answer.text + " "))


@pytest.mark.parametrize("plan", ["auto", "certified"])
@pytest.mark.parametrize("count", [4_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_no_random_policy_is_broken(small: Small, plan: str, count: int) -> None:
    with Index.load(small.built.store / "index.carag") as index:
        trials = run_trials(index, small.world.store, plan=plan, count=count, seed=3)
    assert (trials.pairs, trials.violating) == (count, 0)
    assert trials.chunks > count  # a draw that admits nothing would prove nothing


def test_the_trials_see_an_index_that_was_not_told(small: Small) -> None:
    """A word changed in the index alone: hits now break the policy by the store's word."""
    with Index.load(small.built.store / "index.carag") as index:
        assert index.relabel_where(Policy(Mask()), set=0x21, clear=0x7FF_FFDE, as_of=NEVER - 1)
        trials = run_trials(index, small.world.store, plan="certified", count=2_000, seed=3, batch=16)
    assert trials.violating > 0


def test_an_instant_drawn_of_what_is_never_public_is_one_that_can_be_asked() -> None:
    keys = np.arange(64)
    labels = Labels(
        keys,
        np.full(64, VERSION_WORD, np.uint32),
        *(np.full(64, minute, np.uint32) for minute in (NEVER, NEVER, 0)),
    )
    index = Index(8)
    index.add(np.eye(64, 8, dtype=np.float32) + 1, labels.words, keys, public_at=labels.public_at)
    store = SimpleNamespace(open_labels=lambda: keys, labels=lambda _: labels)
    trials = run_trials(index, store, plan="auto", count=200, seed=0, batch=4)  # type: ignore[arg-type]
    assert (trials.pairs, trials.violating, trials.chunks) == (200, 0, 0)


def test_an_unknown_system_is_refused(small: Small) -> None:
    with pytest.raises(InvalidArgument, match="no system best"):
        Systems(
            small.built.store,
            small.world,
            models(small),
            seed=0,
            names=["best"],
        )


def test_the_callback_never_raises_for_too_few(small: Small) -> None:
    """hnswlib does; where nobody or one row is admitted, one gets that."""
    walk = Hnsw(small.world.vectors, seed=0)
    query = small.world.vectors[0]
    nobody = np.zeros(len(small.world), bool)
    assert not walk.nearest_of(query, K, nobody)[0].size
    one = nobody.copy()
    one[5] = True
    assert set(walk.nearest_of(query, K, one)[0].tolist()) <= {5}
