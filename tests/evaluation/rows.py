"""Rows for tests: one by hand, and a small benchmark whose truth is known."""

from __future__ import annotations

import hashlib
import random
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st

from carag.evaluation.row import SYSTEMS, Row, Stratum
from carag.evaluation.statistics.bootstrap import bootstrap_weights

if TYPE_CHECKING:
    from collections.abc import Iterator

FILTERED = tuple(system for system in SYSTEMS if system not in ("vanilla", "prefilter-rbac"))


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


PLAIN = Row(
    question_id="q1",
    filer=320193,
    role="buy_side",
    purpose="invest",
    as_of=None,
    system="vanilla",
    split="reported",
    kind="real",
    retrieved=("a:0", "a:1"),
    retrieved_admissible=(True, True),
    touched=(),
    prompt_chunks=("a:0", "a:1"),
    outcome="answer",
    answer_sha256=sha("answer"),
    answer_tokens=3,
    gold_answer_sha256=sha("gold"),
    gold=("a:0",),
    gold_admissible=(True,),
    answerable=True,
    f1=0.5,
    stratum=Stratum("loose", "0.5-1", "neutral"),
    canaries_planted=(),
    canaries_disclosed=(),
    ngram_overlap=0.0,
    existence_disclosed=False,
    latency_ms={"embed": 1.0, "retrieve": 0.25, "generate": 3.0, "total": 5.0},
    cost_usd=0.0,
    embedder="minilm",
    generator="extractive",
    seed=0,
)
"""A valid row, of which tests change some fields."""


@contextmanager
def few_draws(count: int) -> Iterator[None]:
    """Draw the bootstrap ``count`` times instead of 2,000, where the figures matter and not their intervals."""
    with pytest.MonkeyPatch.context() as patch:
        name = "carag.evaluation.report.strata.bootstrap_weights"
        patch.setattr(name, partial(bootstrap_weights, replicates=count))
        yield


def row(**changes: object) -> Row:
    return replace(PLAIN, **changes)


def benchmark(
    *,
    filers: int = 4,
    per_filer: int = 3,
    sessions: int = 2,
    seed: int = 1,
    systems: tuple[str, ...] = SYSTEMS,
) -> list[Row]:
    """Every system on every pair. Filters show only admissible chunks, and see what the oracle sees."""
    draw = random.Random(seed)  # noqa: S311 - rows for tests
    rows = []
    for filer in range(1, filers + 1):
        for number in range(per_filer):
            for session in range(sessions):
                chunks = [f"f{filer}:{at}" for at in range(12)]
                open_ = {chunk for chunk in chunks if draw.random() < 0.6}
                near = draw.sample(chunks, 12)
                gold = tuple(draw.sample(chunks, 2))
                share = sum(chunk in open_ for chunk in gold) / 2
                f1 = round(draw.random(), 4)
                band = draw.choice(["0.1-0.5", "0.5-1"])
                for system in systems:
                    shown = (
                        near[:8] if system == "vanilla" else [chunk for chunk in near if chunk in open_][:8]
                    )
                    if system == "prefilter-rbac":
                        shown = near[2:10]
                    answers = share == 1 or system == "vanilla"
                    rows.append(
                        row(
                            question_id=f"q{filer}-{number}",
                            filer=filer,
                            role=("buy_side", "sell_side")[session % 2],
                            purpose=("invest", "publish")[session % 2],
                            as_of=f"2025-{1 + session // 2:02}-01",
                            system=system,
                            split="dev" if number == 0 else "reported",
                            retrieved=tuple(shown),
                            retrieved_admissible=tuple(chunk in open_ for chunk in shown),
                            touched=tuple(chunk for chunk in shown if chunk not in open_),
                            prompt_chunks=tuple(shown),
                            outcome="answer" if answers else "decline",
                            answer_sha256=sha(f"{shown}{answers}"),
                            gold=gold,
                            gold_admissible=tuple(chunk in open_ for chunk in gold),
                            answerable=share == 1,
                            f1=f1 if answers else 0.0,
                            cited=tuple(shown) if answers else (),
                            cited_elsewhere=(),
                            figure_right=answers,
                            stratum=Stratum(
                                "loose" if share == 1 else "medium" if share else "void",
                                band,
                                "neutral",
                            ),
                            canaries_planted=(f"c{filer}",) if filer % 2 else (),
                            canaries_disclosed=(f"c{filer}",) if filer % 2 and system == "vanilla" else (),
                            latency_ms={
                                "embed": 1.0,
                                "retrieve": draw.random(),
                                "generate": 3.0,
                                "total": None,
                            },
                        )
                    )
    return rows


CHUNKS = [f"c:{at}" for at in range(10)]
some_chunks = st.lists(st.sampled_from(CHUNKS), max_size=8, unique=True).map(tuple)


@st.composite
def few_rows(draw: st.DrawFn, *, systems: tuple[str, ...] = ("oracle", "vanilla", "carag-auto")) -> list[Row]:
    """Rows of a few pairs, in which anything may have happened that a row can express."""
    rows = []
    for number in range(draw(st.integers(1, 5))):
        open_ = draw(st.sets(st.sampled_from(CHUNKS)))
        gold = draw(st.lists(st.sampled_from(CHUNKS), max_size=3, unique=True).map(tuple))
        has_answer = draw(st.booleans())
        planted = draw(st.sampled_from([(), ("k",), ("k", "l")]))
        facts = {
            "question_id": f"q{number // 2}",
            "filer": number // 4,
            "as_of": f"2025-01-{number + 1:02}",
            "split": draw(st.sampled_from(["dev", "reported"])),
            "kind": draw(st.sampled_from(["real", "built", "adversary:twin"])),
            "gold": gold,
            "gold_admissible": tuple(chunk in open_ for chunk in gold),
            "gold_answer_sha256": sha("gold") if has_answer else None,
            "answerable": draw(st.booleans()),
            "stratum": Stratum(
                draw(st.sampled_from(["loose", "tight", "void"])),
                draw(st.sampled_from(["0-0.1", "0.1-0.5"])),
                draw(st.sampled_from(["near", "far"])),
            ),
            "canaries_planted": planted,
        }
        for system in systems:
            retrieved = draw(some_chunks)
            outcome = draw(st.sampled_from(["answer", "answer", "decline", "refuse", "error"]))
            told = draw(st.booleans())
            cited = retrieved[:3] if outcome == "answer" else ()
            score = draw(st.integers(0, 10_000)) / 10_000 if outcome == "answer" else 0.0
            rows.append(
                row(
                    **facts,
                    system=system,
                    retrieved=retrieved,
                    retrieved_admissible=tuple(chunk in open_ for chunk in retrieved),
                    touched=tuple(chunk for chunk in retrieved if chunk not in open_ and draw(st.booleans())),
                    prompt_chunks=draw(some_chunks),
                    outcome=outcome,
                    answer_sha256=sha(draw(st.sampled_from("ab"))),
                    f1=score if has_answer else None,
                    cited=cited if told else None,
                    cited_elsewhere=cited[:1] if told and draw(st.booleans()) else None,
                    figure_right=score > 0.5 if has_answer and draw(st.booleans()) else None,
                    canaries_disclosed=planted[: draw(st.integers(0, 2))],
                    ngram_overlap=draw(st.sampled_from([0.0, 0.25])),
                    existence_disclosed=draw(st.booleans()),
                    cost_usd=draw(st.sampled_from([None, 0.0, 0.001])),
                )
            )
    return rows
